"""What in a request must not be waved through with a glance at its text: said in approvals, and never left to a host.

Pure, and wrong only towards saying so: what is not known to stay on this machine and to be what it says is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guard.judge.families import PROGRAMS
from guard.types import Level, Profile

if TYPE_CHECKING:
    from guard.types import Assessment

OPAQUE = "a part of it is not understood"
SECRETS = "it can show or handle credentials"
EGRESS = "it reaches other machines, or may"
PRIVILEGE = "it changes or takes rights"
UNTOLD = "what it changes is not told by its text"

_LOCAL_FAMILIES = frozenset(("archives", "files", "search", "shellbuiltins", "storage", "system", "text", "vcs"))
"""Families of the judge whose programs work on this machine; what they send elsewhere is in their effects."""
_HARMLESS_WRAPPERS = frozenset(("env", "nice", "ionice", "timeout", "time", "stdbuf", "nohup"))
_RAISERS = frozenset(("sudo", "su", "doas", "pkexec", "runuser", "setpriv", "run0"))
_REMOTE_PROFILES = frozenset((Profile.NET, Profile.REMOTE))
_UNREAD = "law 2"
"""The source of every reason that says: this was not understood."""
_TOLD = frozenset(
    (
        *("path.write", "path.delete", "touch.run", "mkdir.run", "rmdir.run", "process.kill"),
        *("files.cp", "files.mv", "files.ln", "files.install", "files.gzip", "files.tar.create"),
        *(
            f"{manager}.{verb}"
            for manager in ("systemctl", "service")
            for verb in ("start", "stop", "restart", "try-restart", "reload", "enable", "disable", "daemon-reload")
        ),
    )
)
"""Rules of the judge whose changes are in the effects by name, file for file and unit for unit."""
_CRITICAL = "path.critical"
"""Files such as sudoers, authorized_keys and PAM's: who may write them gives rights."""


def sensitive_parts(assessment: Assessment) -> tuple[str, ...]:
    """The parts in words, in a fixed order; empty for what is plainly read, local, and has no credentials or rights."""
    kinds = {effect.kind for effect in assessment.effects}
    programs = set(getattr(assessment, "programs", ()))
    found = []
    if assessment.opaque or any(reason.source == _UNREAD for reason in assessment.reasons):
        found.append(OPAQUE)
    if kinds & {"secret-read", "secret"}:
        found.append(SECRETS)
    strange = any(
        PROGRAMS.get(name) not in _LOCAL_FAMILIES and name not in _HARMLESS_WRAPPERS | _RAISERS for name in programs
    )
    if assessment.peers or assessment.profile in _REMOTE_PROFILES or kinds & {"network", "exec"} or strange:
        found.append(EGRESS)
    critical = any(reason.rule == _CRITICAL for reason in assessment.reasons)
    if "privilege" in kinds or programs & _RAISERS or critical:
        found.append(PRIVILEGE)
    changing = [reason.rule for reason in assessment.reasons if reason.level > Level.R0]
    # A unit that is named by a path runs whatever stands in that file.
    by_path = any(effect.kind == "service" and "/" in effect.object for effect in assessment.effects)
    if assessment.level > Level.R0 and (by_path or not (kinds - {"read"} and _TOLD.issuperset(changing))):
        found.append(UNTOLD)
    return tuple(found)
