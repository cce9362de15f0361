"""Every error that the guard raises, as one tree.

    GuardError
    ├── UsageError                 2   the request itself is malformed; nothing was looked at
    │   ├── UnknownTarget          2
    │   ├── BadCommand             2   NUL, invalid UTF-8, too long, empty
    │   ├── CannotEdit             2   no file that can be changed as a text, or a change that is none
    │   ├── CwdGone                2
    │   └── NeedsTerminal          2   an editor, a shell …: it waits for somebody, and there is nobody
    ├── NotPermitted               4   refused for a reason that is not the command's level
    │   └── Frozen                 4   everything above R0 is stopped
    ├── NotApproved                3   there is no approval that fits what would run now
    │   ├── ApprovalExpired        3
    │   ├── ApprovalUsed           3   another run consumed it
    │   ├── ApprovalRevoked        3
    │   ├── ApprovalChanged        3   what would run is not what was approved
    │   ├── ApprovalUnsigned       3   it needs a person's signature and has none that holds
    │   └── TooManyAsks            3   the caller has three open requests already
    ├── SnapshotImpossible         5   what would change cannot be saved first
    ├── NoWayBack                  1   there is no snapshot to go back to
    ├── StateError                 7   the state folder
    │   ├── StateUnsafe            7   symlinked, foreign-owned, or open to others
    │   ├── StateUnwritable        7   full, read-only, sick
    │   ├── StateBusy              7   another process held the lock too long
    │   ├── StateDamaged           7   a record is not what was written
    │   └── StateInTwoPlaces       7   root's records are in the older place and in the system's
    ├── CannotRun                  1   the command could not be started (no bash, no such folder …)
    ├── SandboxUnavailable         1   a profile could not be installed on this kernel
    └── NothingChecked             8   no check gave an answer

Every class carries `code` (stable, dotted), `exit_code` and `rpc_code`; `docs/errors.md` is generated from
them. A message has three parts: what happened, what was *not* done, what to do next. Raise these for broken
surroundings; a refusal or a time-out is a value, not an error. Callers redact before they show one.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class GuardError(Exception):
    """Base of all. `str(error)` is the first part only."""

    code = "internal"
    exit_code = 1
    rpc_code = -32000

    def __init__(self, message: str, *, not_done: str = "nothing was run", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.not_done = not_done
        self.hint = hint

    def as_json(self) -> "dict[str, Any]":
        """The four fields that programs read, without an envelope around them."""
        return {"code": self.code, "message": self.message, "not_done": self.not_done, "hint": self.hint}


class UsageError(GuardError):
    """The request itself is malformed: unknown option, missing argument, wrong value."""

    code = "usage"
    exit_code = 2
    rpc_code = -32602


class UnknownTarget(UsageError):
    """The target is unknown, mistyped or empty. It never falls back to this machine."""

    code = "usage.target"


class BadCommand(UsageError):
    """The command is empty, too long, holds a NUL or is not valid UTF-8."""

    code = "usage.command"


class CannotEdit(UsageError):
    """The file cannot be changed as a text: no regular file, too long, binary, not ours, or the change is none."""

    code = "usage.edit"


class CwdGone(UsageError):
    """The folder to run in does not exist or cannot be entered."""

    code = "usage.cwd"


class NeedsTerminal(UsageError):
    """The command would wait for somebody at a terminal, which a guarded run has not; the hint spells it otherwise."""

    code = "usage.terminal"


class NotPermitted(GuardError):
    """Refused for a reason that is not the command's level: who asks, or where from."""

    code = "not_permitted"
    exit_code = 4
    rpc_code = -32003


class Frozen(NotPermitted):
    """A person or a program stopped everything above R0 until a person thaws it."""

    code = "frozen"


class NotApproved(GuardError):
    """There is no approval that fits what would run now."""

    code = "approval.missing"
    exit_code = 3
    rpc_code = -32006


class ApprovalExpired(NotApproved):
    """The approval was given too long ago."""

    code = "approval.expired"


class ApprovalUsed(NotApproved):
    """Another run consumed the approval."""

    code = "approval.used"


class ApprovalRevoked(NotApproved):
    """A person took the approval back."""

    code = "approval.revoked"


class ApprovalChanged(NotApproved):
    """What would run now is not what was approved: the message names what differs."""

    code = "approval.changed"


class ApprovalUnsigned(NotApproved):
    """The configuration asks for a signature of the approval, and there is none that holds."""

    code = "approval.unsigned"


class TooManyAsks(NotApproved):
    """The caller has three requests open already; a person answers one of them first."""

    code = "approval.too_many"


class SnapshotImpossible(GuardError):
    """Something that the command would change cannot be saved first, so the command is not run."""

    code = "snapshot.impossible"
    exit_code = 5
    rpc_code = -32005


class NoWayBack(GuardError):
    """Nothing was saved under this id, so there is nothing to go back to."""

    code = "rollback.no_way_back"


class StateError(GuardError):
    """The state folder cannot be used."""

    code = "state"
    exit_code = 7
    rpc_code = -32007


class StateUnsafe(StateError):
    """The state folder or a file in it is a link, belongs to somebody else, or is open to others."""

    code = "state.unsafe"


class StateUnwritable(StateError):
    """The state folder cannot be written: full, read-only or failing."""

    code = "state.unwritable"


class StateBusy(StateError):
    """Another process held the state's lock for longer than we wait."""

    code = "state.busy"


class StateDamaged(StateError):
    """A record is not what was written: the chain is broken, a line is not ours, the tail is cut."""

    code = "state.damaged"


class StateInTwoPlaces(StateError):
    """Root has records in the system's place and others where they were kept before; a person decides which count."""

    code = "state.two_places"


class CannotRun(GuardError):
    """The command could not be started at all."""

    code = "run.cannot_start"


class SandboxUnavailable(GuardError):
    """A sandbox profile could not be installed on this kernel."""

    code = "sandbox.unavailable"


class NothingChecked(GuardError):
    """No check gave an answer, so nothing can be said about this machine."""

    code = "nothing_checked"
    exit_code = 8
