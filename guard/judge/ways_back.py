"""Whether what a command does comes back: `yes` · `partial` · `no`."""

from guard.judge.families.metadata import INCOMPLETE, PROGRAMS
from guard.judge.levels import R1, R2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge

_WHOLE = frozenset(f"{name}.run" for name in PROGRAMS)
"""Findings of R2 whose every effect is in the plan."""

_OTHER_ROOTS = frozenset(
    ("chroot", "nsenter", "unshare", "bwrap", "firejail", "proot", "fakechroot", "arch-chroot", "systemd-nspawn")
)
"""Below these a path may be another one than the one that was saved."""


def reversible(judge: "Judge", planned: bool) -> str:
    """How much of a change a rollback brings back; `planned`: something is saved before it."""
    level = judge.level
    if level < R1:
        return "yes"
    whole = planned and INCOMPLETE not in judge.flags and _OTHER_ROOTS.isdisjoint(judge.programs)
    if level == R1:
        return "yes" if whole else "partial"
    if level > R2 or not planned:
        return "no"
    return "yes" if whole and all(finding[1] in _WHOLE for finding in judge.findings if finding[0] == R2) else "partial"
