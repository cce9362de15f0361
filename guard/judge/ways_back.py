"""Whether what a command does comes back: `yes` · `partial` · `no`."""

from guard.judge.families.metadata import PROGRAMS
from guard.judge.levels import R1, R2
from guard.judge.touches import INCOMPLETE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge

_WHOLE = frozenset(f"{name}.run" for name in PROGRAMS) | {"files.rm.glob", "path.delete", "path.write"}
"""Findings of R2 whose every effect is in the plan."""

_OTHERWISE = frozenset(
    (
        "shopt",
        "chroot",
        "nsenter",
        "unshare",
        "bwrap",
        "firejail",
        "proot",
        "fakechroot",
        "arch-chroot",
        "systemd-nspawn",
    )
)
"""With these a path may be another one than the one that was saved, or a pattern list more."""


def reversible(judge: "Judge", planned: bool) -> str:
    """How much of a change a rollback brings back; `planned`: something is saved before it."""
    level = judge.level
    if level < R1:
        return "yes"
    whole = planned and INCOMPLETE not in judge.flags and _OTHERWISE.isdisjoint(judge.programs)
    if level == R1:
        return "yes" if whole else "partial"
    if not planned:
        return "no"
    # What cannot be undone is never wholly back, but what is saved before it is.
    return (
        "yes"
        if level == R2 and whole and all(finding[1] in _WHOLE for finding in judge.findings if finding[0] == R2)
        else "partial"
    )
