"""What is found about a command → what happens with it. The one place where levels become decisions."""

from guard.judge.shell.grammar import VERSIONS
from guard.types import Actor, Decision, Level, Mode, Profile, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge
    from guard.types import Enforcement, Policy

POLICY_VERSION = f"1 ({VERSIONS})"
"""Changes whenever any verdict changes; a stamp made under another version is void."""

LOOPBACK = ("localhost", "127.", "::1", "[::1]", "ip6-localhost")

_RUN_READ = Decision(Verdict.RUN, "read", "a read, and the sandbox holds it to that")
_RUN_PLAIN = Decision(Verdict.RUN, "plain-reader", "only plain readers of the system's own")


def profile_of(judge: "Judge") -> str:
    """The sandbox profile that fits everything in the command; `none` when no single one does."""
    needs = judge.needs
    if not needs:
        return Profile.LOCAL
    if len(needs) == 1:
        need = next(iter(needs))
        if need in (Profile.OBSERVE, Profile.NETADM, Profile.BLOCK):
            # Exact argv: the profile's extra right is for one program, not for what is piped or substituted around it.
            return need if _single(judge) else Profile.NONE
        if need == Profile.BUS:
            return need if _only_bus(judge) else Profile.NONE
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
    from guard.judge.engine import lookup

    if judge.flags & {"helper", "evaluates", "options-from-expansion"}:
        return False
    for name in judge.programs:
        if name not in BUS_PROGRAMS and name not in ("sudo", "test"):
            program = lookup(name)
            if program is None or not program.plain:
                return False
    return True


def _single(judge: "Judge") -> bool:
    from guard.judge.families import DEVICE_READERS

    special = [name for name in judge.programs if name in DEVICE_READERS]
    others = [name for name in judge.programs if name not in DEVICE_READERS and name not in ("sudo", "env")]
    return len(special) == 1 and not others


def is_named(host: str, port: int, policy: "Policy") -> bool:
    """Whether a person named this peer, in configuration or in this session, or it is this machine."""
    if host.startswith(LOOPBACK):
        return True
    return any(host in known or f"{host}:{port}" in known for known in (policy.peers, policy.person_peers))


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
    from guard.judge.engine import lookup

    if judge.flags & {"options-from-expansion", "evaluates", "opaque"}:
        return False
    for name in judge.programs:
        if name not in REMOTE_CLIENTS and name not in ("test",):
            program = lookup(name)
            if program is None or not program.plain:
                return False
    return True


def unnamed_peer(judge: "Judge", policy: "Policy") -> str:
    """The first peer that nobody named, "" when there is none. An empty host is the program's own configured target."""
    for host, port, protocol in judge.peers:
        if host:
            if not is_named(host, port, policy):
                return f"{host}:{port}" if port else host
            continue
        context = judge.ambient.get(f"{protocol} context", "")
        wanted = context or protocol
        if wanted not in policy.contexts:
            return f"the {protocol} target that its configuration names" if not context else f"{protocol} {context}"
    return ""


def decide(
    judge: "Judge", level: Level, profile: str, *, actor: str, enforcement: "Enforcement", policy: "Policy"
) -> Decision:
    """The decision: a function of level, what can be enforced, egress, actor and policy."""
    if judge.own_touched and actor != Actor.PERSON:
        return Decision(
            Verdict.REFUSE,
            "law-6",
            f"opsagent's own approval, code, state and settings are a person's ({judge.own_touched})",
        )
    if policy.frozen and level > Level.R0:
        return Decision(Verdict.REFUSE, "frozen", f"everything above R0 is stopped: {policy.frozen}")
    if policy.mode == Mode.READ_ONLY and level > Level.R0:
        return Decision(Verdict.REFUSE, "mode", "this target is read-only")
    if level == Level.R3:
        return Decision(Verdict.REFUSE, "level", "cannot be undone; a person can force it", forceable=True)
    if level == Level.R2:
        return Decision(Verdict.NEEDS_STAMP, "level", "needs a person's approval")
    if level == Level.R1:
        if policy.mode == Mode.LAB:
            return Decision(Verdict.RUN, "mode", "small and reversible, and this target is a lab")
        return Decision(Verdict.NEEDS_STAMP, "level", "needs a person's approval")
    return _decide_read(judge, profile, enforcement, policy)


def _decide_read(judge: "Judge", profile: str, enforcement: "Enforcement", policy: "Policy") -> Decision:
    peer = unnamed_peer(judge, policy) if judge.peers else ""
    if profile == Profile.REMOTE:
        if peer:
            return Decision(Verdict.NEEDS_STAMP, "egress", f"runs on {peer}, which nobody named")
        if not judge.remote_plain or not _only_clients(judge):
            return Decision(Verdict.NEEDS_STAMP, "cannot-enforce", "nothing can be enforced where it runs")
        return Decision(Verdict.RUN, "read", "plain readers on a machine that a person named")
    if peer:
        return Decision(Verdict.NEEDS_STAMP, "egress", f"sends to {peer}, which nobody named")
    if profile in enforcement.profiles:
        if profile == Profile.NET and enforcement.landlock_abi < 4:
            return Decision(Verdict.NEEDS_STAMP, "cannot-enforce", "this kernel cannot limit the ports")
        return _RUN_READ
    if judge.plain and profile == Profile.LOCAL and not judge.flags:
        return _RUN_PLAIN
    return Decision(Verdict.NEEDS_STAMP, "cannot-enforce", f"the {profile} sandbox does not hold here")
