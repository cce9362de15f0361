"""What a launcher has to know before it can ask the guard: who, where, which policy, what this kernel enforces.

`opsx check` is on the hot path, so what the kernel enforces is measured once and kept in the state folder as one
line, named by boot id and kernel release; a run measures again.
"""

import os
import stat

from guard.errors import CwdGone, StateError
from guard.types import NO_ENFORCEMENT, Enforcement, Level, Mode, Policy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.types import Assessment

_CACHE = "enforcement"
_CACHE_FORMAT = "2"


def actor() -> str:
    """Who asks through this process."""
    from cli.actor import actor_of_this_process

    return actor_of_this_process()


def cwd(named: str = "") -> str:
    """The absolute folder to run in.

    Raises:
        CwdGone: it is not there or cannot be entered.
    """
    try:
        folder = os.path.join(os.getcwd(), named) if named else os.getcwd()
    except OSError:
        if not os.path.isabs(named):
            raise CwdGone("the current folder is gone", hint="cd to one that exists, or name one: --cwd DIR") from None
        folder = named
    folder = os.path.normpath(folder)
    if not os.path.isdir(folder):
        raise CwdGone(f"{folder} is not a folder that exists", hint="name another: --cwd DIR")
    if not os.access(folder, os.X_OK):
        raise CwdGone(f"{folder} cannot be entered as this user", hint="name another, or run opsx as its owner")
    return folder


def home_of_this_code() -> str:
    """The folder that holds opsagent's own code: the checkout, or the installed private package."""
    return os.path.dirname(os.path.dirname(os.path.realpath(__file__)))


def policy(*, read_only: bool = False) -> Policy:
    """The policy of this process: the configuration, its mode, and the paths that are opsagent's own.

    Effects: complains on stderr about configuration that cannot be used; only reads run then.
    """
    from cli import config
    from guard.keeping import FOREVER
    from guard.ledger import location

    own = [home_of_this_code()]
    frozen = ""
    # Not contextlib.suppress: the hook, which every tool call of a host waits for, would load contextlib for it.
    try:
        own += location.own_places()
        frozen = location.frozen_note(own[1])
    except StateError:
        pass  # no passwd entry: there is no state to protect
    try:
        own.append(location.config_path())
    except StateError:
        pass  # no home: no configuration of one's own
    if config.named_file():
        own.append(config.named_file())
    settings = config.load()
    config.complain(settings)
    return Policy(
        mode=Mode.READ_ONLY if read_only else settings.mode,
        peers=settings.peers,
        contexts=settings.contexts,
        trusted_bin=settings.trusted_bin,
        frozen=frozen,
        own_paths=own,
        own_private=own[1:],
        is_root=os.geteuid() == 0,
        env=settings.env,
        rules=settings.rules,
        keeping=settings.keeping or FOREVER,
        fault=settings.fault,
    )


def judged(command: str, *, cwd: str, actor: str, enforcement: Enforcement, policy: Policy) -> "Assessment":
    """What `core.check` says; for more than a read with what the state folder's log says about a stop, too.

    The policy of this process knows the note of a stop alone, which is all that a read needs.
    """
    import core

    found = core.check(command, cwd=cwd, actor=actor, enforcement=enforcement, policy=policy)
    if found.level == Level.R0 or policy.frozen:
        return found
    from guard.ledger import location
    from guard.ledger.stop import stop_of

    try:
        why = stop_of(location.state_path())
    except StateError:
        return found  # no passwd entry: there is no state that could say anything
    if not why:
        return found
    return core.check(command, cwd=cwd, actor=actor, enforcement=enforcement, policy=policy.replace(frozen=why))


def bring_state() -> None:
    """Brings root's records to the system's place when they are where they were kept before, and says so on stderr."""
    from guard.ledger import location

    if not location.move_is_due():
        return
    from cli.report import safe, write
    from guard.clock import SystemClock
    from guard.hands.holders import holders
    from guard.hands.liveness import ProcLiveness
    from guard.ledger.moving import move

    for sentence in move(clock=SystemClock(), liveness=ProcLiveness(), holders=holders):
        write(f"opsagent: {safe(sentence)}\n", to_stderr=True)


def enforcement() -> Enforcement:
    """What this machine's kernel enforces, from the state folder's note of this boot or measured now."""
    this_kernel = _this_kernel()
    known = _read_note(this_kernel)
    if known is not None:
        return known
    from guard.hands import sandbox

    measured = sandbox.measure()
    _write_note(this_kernel, measured)
    return measured


def _this_kernel() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
    except OSError:
        boot = "-"
    # The user decides too: root drops capabilities, others have none to drop.
    return f"{boot} {os.uname().release} {os.geteuid()}"


def _read_note(this_kernel: str) -> Enforcement | None:
    from guard.ledger import location

    try:
        # Not blocking: a FIFO in its place must not hold up every command.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        fd = os.open(os.path.join(location.state_path(), _CACHE), flags)
        try:
            kept = os.fstat(fd)
            text = os.read(fd, 4096).decode("ascii", "replace")
        finally:
            os.close(fd)
    except (OSError, StateError):
        return None
    if not stat.S_ISREG(kept.st_mode) or kept.st_uid != os.geteuid() or kept.st_mode & 0o022:
        return None
    fields = text.rstrip("\n").split("\t")
    if len(fields) != 6 or fields[0] != _CACHE_FORMAT or fields[1] != this_kernel or not fields[3].isdigit():
        return None
    return Enforcement(
        profiles=[name for name in fields[5].split(",") if name],
        mechanism=fields[2],
        landlock_abi=int(fields[3]),
        reports=fields[4] == "reports",
    )


def _write_note(this_kernel: str, measured: Enforcement) -> None:
    """Keeps what was measured; a state folder that is not there or not writable only costs time."""
    if measured == NO_ENFORCEMENT:
        return
    from guard.ledger import location

    line = "\t".join(
        (
            _CACHE_FORMAT,
            this_kernel,
            measured.mechanism,
            str(measured.landlock_abi),
            "reports" if measured.reports else "silent",
            ",".join(sorted(measured.profiles)),
        )
    )
    try:
        folder = location.state_path()
        if not os.path.isfile(os.path.join(folder, "format")):
            return  # not a state folder yet: it is not ours to put things into
        scratch = os.path.join(folder, f"{_CACHE}.{os.getpid()}")
        fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(fd, line.encode() + b"\n")
            os.rename(scratch, os.path.join(folder, _CACHE))
        except OSError:
            os.unlink(scratch)
            raise
        finally:
            os.close(fd)
    except (OSError, StateError):
        return


def outputs_folder() -> str | None:
    """Where long outputs are kept: the checkout's `outputs/` when it can be written, else the state folder's."""
    beside_code = os.path.join(home_of_this_code(), "outputs")
    if os.path.isdir(os.path.join(home_of_this_code(), ".git")) and os.access(beside_code, os.W_OK):
        return beside_code
    from guard.ledger import location

    try:
        return os.path.join(location.state_path(), "outputs")
    except StateError:
        return None
