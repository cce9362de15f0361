"""What is found about a command → what happens with it. The one place where levels become decisions."""

from guard.judge.shell.grammar import VERSIONS
from guard.pointers import OUTSIDE, alternatives
from guard.types import Actor, Decision, Level, Mode, Profile, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge
    from guard.types import Enforcement, Policy

POLICY_VERSION = f"2 ({VERSIONS})"
"""Changes whenever any verdict changes; a stamp made under another version is void."""

LOOPBACK = ("localhost", "::1", "[::1]", "ip6-localhost")
"""Names of this machine, as a whole: `localhost.example.org` is somebody else's."""

_RUN_READ = Decision(Verdict.RUN, "read", "a read, and the sandbox holds it to that")
_RUN_MASKED = Decision(
    Verdict.RUN, "read-masked", "a read of all below a folder, held to that in a namespace that closes keys"
)
"""Only a run that closes them may follow: see `acting.act`."""
_NEEDS_MASKS = {"recursive-read": "all below a folder", "unseen-read": "what could not be looked at before"}
"""Flag → what is read: names that the text does not tell, so only a mask keeps keys out of it."""
_RUN_PLAIN = Decision(Verdict.RUN, "plain-reader", "only plain readers, all of them the system's own programs")


def profile_of(judge: "Judge", command: str) -> str:
    """The sandbox profile that fits everything in the command; `none` when no single one does."""
    needs = judge.needs
    if not needs:
        return Profile.LOCAL
    if "evaluates" in judge.flags and needs != {Profile.REMOTE}:
        # Data could become a command, and beside a read that needs a socket or a device it could use that too.
        return Profile.NONE
    if len(needs) == 1:
        need = next(iter(needs))
        if need in (Profile.OBSERVE, Profile.NETADM, Profile.BLOCK):
            # Exact argv: the profile's extra right is for one program, not for what is piped or substituted around it.
            return need if _is_exact(judge, need, command) else Profile.NONE
        if need == Profile.BUS:
            return need if _only_bus(judge) else Profile.NONE
        if need == Profile.NET and "helper" in judge.flags and not _only_net(judge):
            return Profile.NONE
        return need
    return Profile.NONE


BUS_PROGRAMS = frozenset(
    (
        "systemctl", "journalctl", "loginctl", "timedatectl", "hostnamectl", "localectl", "resolvectl",
        "systemd-resolve", "networkctl", "machinectl", "coredumpctl", "busctl", "systemd-analyze", "docker",
        "podman", "nerdctl", "crictl", "ctr", "docker-compose", "podman-compose", "nmcli",
    )
)  # fmt: skip
"""Programs whose reads ask a daemon over a local socket."""


def _only_bus(judge: "Judge") -> bool:
    """Every program asks the bus or is a plain reader: the sockets are open to whatever runs beside them."""
    from guard.judge.program import lookup

    if judge.flags & {"helper", "evaluates", "options-from-expansion"}:
        return False
    for name in judge.programs:
        if name not in BUS_PROGRAMS and name not in ("sudo", "test"):
            program = lookup(name)
            if program is None or not program.plain:
                return False
    return True


_NET_FAMILIES = frozenset(
    ("kubernetes", "containers", "cloud", "aws", "objectstores", "network", "firewall", "data", "remote", "transfer",
     "forges", "infrastructure", "packages", "wrappers")
)  # fmt: skip


def _only_net(judge: "Judge") -> bool:
    """Every program that its own configuration can make run others needs the network itself, or stands alone.

    A helper that a repository names could otherwise send what it reads through the opening meant for its neighbour.
    """
    from guard.judge.families import PROGRAMS
    from guard.judge.program import lookup

    names = set(judge.programs)
    if len(names) == 1:
        return True
    for name in names:
        if PROGRAMS.get(name) not in _NET_FAMILIES and name != "test":
            program = lookup(name)
            if program is None or not program.plain:
                return False
    return True


def _is_exact(judge: "Judge", profile: str, command: str) -> bool:
    """One program of the profile with literal words begins it, and nothing that flows out of it could use the right."""
    from guard.exact import PROGRAMS, profile_for, read_exact

    exact = read_exact(command)
    if exact is None or exact.program not in PROGRAMS[profile]:
        return False
    return sum(1 for name in judge.programs if profile_for(name)) == 1


def is_named(host: str, port: int, policy: "Policy") -> bool:
    """Whether a person named this peer, in configuration or in this session, or it is this machine."""
    if host.lower() in LOOPBACK or _loopback_address(host):
        return True
    return any(host in known or f"{host}:{port}" in known for known in (policy.peers, policy.person_peers))


def _loopback_address(host: str) -> bool:
    """127.0.0.0/8 in dotted decimal, with all four numbers."""
    parts = host.split(".")
    return len(parts) == 4 and parts[0] == "127" and all(p.isascii() and p.isdigit() and int(p) < 256 for p in parts)


REMOTE_CLIENTS = frozenset(
    (
        "ssh",
        "slogin",
        "docker",
        "podman",
        "nerdctl",
        "docker-compose",
        "podman-compose",
        "crictl",
        "kubectl",
        "oc",
        "kubecolor",
        "k",
    )
)
"""Programs that run a command elsewhere; what they need here is covered by the peer that a person named."""


def _only_clients(judge: "Judge") -> bool:
    """Beside the clients, everything that runs on this machine is a plain reader."""
    from guard.judge.program import lookup

    if judge.flags & {"options-from-expansion", "evaluates", "opaque"}:
        return False
    for name in judge.programs:
        if name not in REMOTE_CLIENTS and name not in ("test",):
            program = lookup(name)
            if program is None or not program.plain:
                return False
    return True


def unnamed_peer(judge: "Judge", policy: "Policy") -> "tuple[str, str] | None":
    """The first peer that nobody named: (in words, the setting that would name it). None when there is none.

    An empty host is the program's own configured target.
    """
    for host, port, protocol in judge.peers:
        if host:
            if not is_named(host, port, policy):
                shown = host if len(host) <= 80 else f"a host with a name of {len(host)} characters"
                place = f"[{shown}]" if ":" in shown and port else shown
                return (f"{place}:{port}" if port else place), f'peers = ["{shown}"]'
            continue
        contexts = alternatives(judge.ambient).get(f"{protocol} context", [OUTSIDE])
        for context in contexts:
            named = context != OUTSIDE
            wanted = context if named else protocol
            if wanted not in policy.contexts:
                shown = f"{protocol} {context}" if named else f"the {protocol} target that its configuration names"
                return shown, f'contexts = ["{wanted}"]'
    return None


PRIVILEGE = frozenset(("sudo", "doas", "pkexec", "su", "runuser", "gosu", "su-exec", "sudoedit"))
"""Programs that run others as another user: a sandbox drops exactly the right that they need."""


SET_ID = frozenset(("crontab", "at", "atq", "atrm", "batch", "chage", "expiry", "passwd", "wall"))
"""Programs whose own file gives users a right (setuid, setgid) that their reads need. Root has it anyway."""


def _raises_privilege(judge: "Judge", policy: "Policy") -> str:
    """The program that needs a right which the sandbox takes away, "" when none does.

    As root, `sudo` with a plain command behind it is that command; our own `sudo` in the child's PATH sees to that.
    """
    for ran in judge.ran:
        if ran.name in SET_ID and not (policy.is_root or ran.away):
            return ran.name
        if ran.name not in PRIVILEGE or ran.away:
            continue
        if ran.name == "sudo" and policy.is_root and len(ran.words) > 1:
            first = ran.words[1].value
            if first is not None and first[:1] not in ("-", "") and "=" not in first:
                continue
        return ran.name
    return ""


def decide(
    judge: "Judge", level: Level, profile: str, *, actor: str, enforcement: "Enforcement", policy: "Policy"
) -> Decision:
    """The decision: a function of level, what can be enforced, egress, actor and policy."""
    if judge.own_touched and actor != Actor.PERSON:
        place = judge.own_touched
        if level == Level.R3 and any(own.startswith(place.rstrip("/") + "/") for own in policy.own_paths):
            text = f"it cannot be undone, and it would take opsagent's own files in {place} with it"
        else:
            text = f"opsagent's approvals, code, state and settings are a person's alone ({place})"
        return Decision(Verdict.REFUSE, "law-6", text)
    if policy.frozen and level > Level.R0:
        return Decision(Verdict.REFUSE, "frozen", f"everything above R0 is stopped here: {policy.frozen}")
    if policy.fault and level > Level.R0:
        text = f"only reads run while a file of the configuration cannot be used: {policy.fault}"
        return Decision(Verdict.REFUSE, "config", text)
    if policy.mode == Mode.READ_ONLY and level > Level.R0:
        return Decision(Verdict.REFUSE, "mode", "this target is read-only: only reads run")
    if level == Level.R3:
        return Decision(Verdict.REFUSE, "level", "it cannot be undone; only a person can force it", forceable=True)
    if level == Level.R2:
        return Decision(Verdict.NEEDS_STAMP, "level", _why_r2(judge))
    if level == Level.R1:
        if policy.mode == Mode.LAB:
            return Decision(Verdict.RUN, "mode", "small and reversible, and this target is a lab")
        return Decision(Verdict.NEEDS_STAMP, "level", "it changes something, if only a little")
    return _decide_read(judge, profile, enforcement, policy)


def _why_r2(judge: "Judge") -> str:
    """One sentence part on what kind of R2 it is: not understood, a credential, or a large change."""
    kinds = [finding[4] for finding in judge.findings if finding[0] >= Level.R2]
    if "law 4" in kinds:
        return "it can show a credential or open a device"
    if kinds and all(kind == "law 2" for kind in kinds):
        return "a part of it is not understood, so it may do anything"
    return "it changes something that matters"


def _decide_read(judge: "Judge", profile: str, enforcement: "Enforcement", policy: "Policy") -> Decision:
    peer = unnamed_peer(judge, policy) if judge.peers else None
    if peer is not None:
        does = "runs on" if profile == Profile.REMOTE else "asks"
        return Decision(
            Verdict.NEEDS_STAMP,
            "egress",
            f"a read, but it {does} {peer[0]}, which nobody named; "
            f"to allow it for good: [policy] {peer[1]} in config.toml",
        )
    if profile == Profile.REMOTE:
        if not judge.remote_plain or not _only_clients(judge):
            return Decision(Verdict.NEEDS_STAMP, "cannot-enforce", "a read, but nothing holds it to that where it runs")
        return Decision(Verdict.RUN, "read", "plain readers on a machine that a person named")
    raiser = _raises_privilege(judge, policy)
    if raiser:
        how = "run opsagent as root for this" if not policy.is_root else "leave its options out"
        return Decision(
            Verdict.NEEDS_STAMP, "privilege", f"a read, but no sandbox can hold what {raiser} starts; {how}"
        )
    if profile in enforcement.profiles:
        if enforcement.mechanism != "strict" and judge.flags & _NEEDS_MASKS.keys():
            if enforcement.mechanism == "userns" and profile in (Profile.LOCAL, Profile.BUS):
                return _RUN_MASKED
            what = next(text for flag, text in _NEEDS_MASKS.items() if flag in judge.flags)
            return Decision(
                Verdict.NEEDS_STAMP, "cannot-enforce", f"a read of {what}, and without Landlock keys are open"
            )
        if profile == Profile.NET and enforcement.landlock_abi < 4:
            return Decision(
                Verdict.NEEDS_STAMP, "cannot-enforce", "a read, but this kernel cannot limit which ports it reaches"
            )
        return _RUN_READ
    if judge.plain and not judge.flags and (profile == Profile.LOCAL or judge.needs == {Profile.OBSERVE}):
        return _RUN_PLAIN
    if profile == Profile.NONE:
        from guard.exact import BEYOND

        beyond = next((BEYOND[name] for name in judge.programs if name in BEYOND), "")
        if beyond:
            again = "an approval with --uses N is good for N times"
            return Decision(Verdict.NEEDS_STAMP, "cannot-enforce", f"a read, but {beyond}; {again}")
        return Decision(
            Verdict.NEEDS_STAMP,
            "cannot-enforce",
            "reads, but no one sandbox fits them all; ask them one by one"
            if len(judge.programs) > 1
            else "a read, but no sandbox gives it the right that it needs",
        )
    return Decision(Verdict.NEEDS_STAMP, "cannot-enforce", f"a read, but the {profile} sandbox does not hold here")
