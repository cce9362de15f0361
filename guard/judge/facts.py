"""Which read-only questions a command raises, and what their answers add. Answers raise a level, never lower it."""

from guard.judge import paths
from guard.judge.engine import R2, R3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge
    from guard.types import Facts

MAX_QUESTIONS = 256


def questions(judge: "Judge") -> "tuple[str, ...]":
    """Absolute paths whose real path and kind would matter: what the command reads, writes or removes."""
    asked: dict[str, None] = {}
    for kind, name in judge.effects:
        if kind in ("read", "write", "delete") and name.startswith("/") and not any(char in name for char in "*?["):
            asked[name] = None
            if len(asked) >= MAX_QUESTIONS:
                break
    return tuple(asked)


def apply(judge: "Judge", facts: "Facts") -> None:
    """Adds what links and file kinds tell: a link to a secret is a secret, a plain-looking device is a device."""
    for kind, name in list(judge.effects):
        if kind not in ("read", "write", "delete"):
            continue
        real = facts.real_paths.get(name, name)
        what = facts.kinds.get(real, "")
        span = (0, 0)
        if kind == "read":
            if real != name and paths.secret(real):
                judge.note(R2, "path.secret-link", f"{name} leads to {real}, which holds credentials", span, "law 4")
            if what in ("device", "fifo") and paths.device(real) not in ("harmless", "stream"):
                judge.note(R2, "path.device", f"{name} is a {what} ({real})", span, "law 4")
        else:
            if what == "device" and paths.device(real) not in ("harmless", "stream"):
                judge.note(R3, "path.device-write", f"{name} is a device ({real})", span, "law 1")
            elif real != name and paths.critical(real):
                judge.note(R2, "path.critical-link", f"{name} leads to {real}, a critical file", span, "law 7")
            if real != name and paths.own(real, judge.own_paths):
                judge.own_touched = real
                judge.note(R2, "own.write", f"{name} leads to opsagent's own {real}", span, "law 6")
