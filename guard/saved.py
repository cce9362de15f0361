"""What a path was: the values that capture makes, packs keep, plans compare and restore puts back. Pure.

A `Node` is one path at one moment. A snapshot is a set of nodes before a change; the state after it and the state
now are two more such sets, and a rollback plan is what follows from the three.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE = "file"
DIRECTORY = "dir"
SYMLINK = "symlink"
FIFO = "fifo"
DEVICE = "device"
ABSENT = "absent"
KINDS = frozenset((FILE, DIRECTORY, SYMLINK, FIFO, DEVICE, ABSENT))
"""What a snapshot can hold."""
SOCKET = "socket"
BLOCK = "block"
BLOCKED = "blocked"
"""Met when looking again, and where metadata is all that is kept: a socket, a block device. `blocked` is a path whose
folder cannot be entered safely."""

CLOSED = "closed"

Extents = tuple[tuple[int, int], ...]
"""(offset, length) of the parts of a file that are data, in order; the rest are holes, read as zeros."""


@dataclass(frozen=True, slots=True)
class Node:
    """One path at one moment."""

    path: str
    """Absolute, no link in its folders; bytes that are not UTF-8 as lone surrogates (PEP 383)."""
    kind: str
    """`file` · `dir` · `symlink` · `fifo` · `device` (character device) · `absent`"""
    mode: int = 0
    """Permission bits, 0..0o7777."""
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    size: int = 0
    """Bytes of a file; 0 for all else."""
    sha256: str = ""
    """Of a file's whole content, holes as zeros; 64 hex digits, "" for all else and for one that cannot be read."""
    link: str = ""
    """Text of a symbolic link; CLOSED for a folder that could not be looked into."""
    xattrs: tuple[tuple[str, str], ...] = ()
    """(name, value in hex), sorted by name: user attributes, ACLs, capabilities, labels."""
    rdev: int = 0
    dev: int = 0
    ino: int = 0
    nlink: int = 1
    ctime_ns: int = 0
    saved: bool = False
    """The content is in the pack. False for all but files, and for files that hold secrets: these keep a hash."""
    meta: bool = False
    """The content is no part of it: owner, mode and attributes are all that is kept and compared."""
    atime_ns: int = -1
    """Time of access, where times are a part of it; else -1."""
    flags: int = -1
    """Inode flags that chattr(1) can set, where they are a part of it; else -1."""

    def looks_like(self, other: Node) -> bool:
        """Equal in all that a rollback brings back but the times: kind, content, owner, mode, attributes."""
        if self.meta or other.meta:
            same_mode = self.mode == other.mode or self.kind == SYMLINK
            return self.kind == other.kind and same_mode and self._bare()[1:] == other._bare()[1:]
        if self.kind == other.kind == FILE:
            return self._bare() == other._bare() and self.same_content(other)
        return self.identity() == other.identity()

    def same_content(self, other: Node) -> bool:
        """Equal contents of two files, by hash; where one could not be read, by the times that the kernel keeps."""
        if self.kind != FILE or other.kind != FILE:
            return False
        if self.sha256 and other.sha256:
            return self.sha256 == other.sha256
        return self.same_inode(other) and (self.size, self.mtime_ns) == (other.size, other.mtime_ns)

    def _bare(self) -> tuple[object, ...]:
        return (self.mode, self.uid, self.gid, self.xattrs, self.flags)

    def identity(self) -> tuple[object, ...]:
        """What a plan's digest binds of it: no sizes and no times."""
        if self.kind == ABSENT:
            return (ABSENT,)
        if self.kind == SYMLINK:
            # The kernel gives every link mode 0777 and ignores it (symlink(7)).
            return (SYMLINK, self.uid, self.gid, self.link)
        flags = (self.flags,) if self.flags >= 0 else ()
        return (self.kind, self.mode, self.uid, self.gid, self.sha256, self.xattrs, self.rdev, *flags)

    def same_inode(self, other: Node) -> bool:
        """The same thing on the disk, whatever became of its content."""
        return (self.dev, self.ino, self.kind) == (other.dev, other.ino, other.kind)


def absent(path: str) -> Node:
    """Nothing is there."""
    return Node(path, ABSENT)


@dataclass(frozen=True, slots=True)
class Output:
    """What a read-only command (or a service's state) said before the change; kept beside the files."""

    kind: str
    """`command` · `service` · `state`"""
    name: str
    """The NAME of `--snapshot-cmd NAME::CMD`, the unit, or the state's name."""
    command: str
    data: bytes
    exit_code: int


NOTHING_UNREAD: Mapping[tuple[str, str], str] = {}
"""Of no state it is said why it could not be read."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one snapshot may hold. Beyond it nothing is run, so these bound the wait as much as the disk."""

    entries: int = 50_000
    """Paths. Measured: 5,600 a second with their contents on two busy cores, so at most 9 s."""
    data_bytes: int = 2 * 1024**3
    """Data without holes, all files together."""
    file_bytes: int = 16 * 1024**3
    """Size of one file with its holes: what a hash has to run through."""
    depth: int = 100
    """Folders inside folders; each one held open costs a descriptor."""


class Sink(Protocol):
    """Where a capture's contents go: one blob at a time."""

    def start(self) -> None:
        """Begins a blob, or begins the present one again."""
        ...

    def data(self, chunk: bytes) -> None:
        """Appends data."""
        ...

    def hole(self, size: int) -> None:
        """Appends zeros that take no space."""
        ...

    def done(self, sha256: str) -> None:
        """Ends the blob, whose content has this hash."""
        ...


class Source(Protocol):
    """Where restored contents come from."""

    def read_into(self, sha256: str, write: BlobWriter) -> None:
        """Writes one blob and verifies it. Raises StateDamaged when the bytes are not those that were saved."""
        ...


class BlobWriter(Protocol):
    """Takes a blob's parts in order."""

    def __call__(self, offset: int, chunk: bytes, /) -> None: ...


# ── rollback ─────────────────────────────────────────────────────────────────────────────────────────────────────


class State:
    """How a path stands now, against what it was before and after the change."""

    UNCHANGED = "unchanged"
    """As the change left it: can be taken back."""
    CHANGED = "changed"
    """Somebody changed it since: a conflict."""
    GONE = "gone"
    """It was there after the change and is not any more: a conflict."""
    BACK = "back"
    """It is already what it was before."""
    DIFFERS = "differs"
    """It is not what it was, and no record says by whom: shown, and taken back when a person agrees."""
    EXTRA = "extra"
    """It appeared since and nothing says that the change made it: left alone."""
    NOT_SAVED = "not-saved"
    """Its content is not in the snapshot (a secret): left alone."""


CONFLICTS = frozenset((State.CHANGED, State.GONE))


class Action:
    """What is done to a path."""

    NONE = "none"
    WRITE = "write"
    """The file as it was, in a new inode or (with hard links) in the old one."""
    META = "meta"
    """Owner, mode, attributes and times only: the content is right already."""
    MAKE = "make"
    """A folder, link, FIFO or device as it was."""
    LINK = "link"
    """One more name of the file that stands first in `Step.links`."""
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Step:
    """One path of a rollback plan."""

    path: str
    state: str
    """A `State`."""
    action: str
    """An `Action`; `none` for conflicts that were not overruled."""
    before: Node
    """What it shall be again."""
    now: Node
    """What it was when the plan was made; checked again right before the step."""
    links: tuple[str, ...] = ()
    """All names of the same file in the snapshot, when there are several; the first is written, the others join it."""


STATE_KINDS = ("service", "state")
"""Kinds of things of a plan that are no files and are put back by commands."""


def label_of(kind: str, name: str) -> str:
    """How a state that is no file is named to people, and in `--overrule` and `--no-snapshot-of`."""
    return f"service {name}" if kind == "service" else name


@dataclass(frozen=True, slots=True)
class StateStep:
    """One state of a rollback plan that is no file."""

    kind: str
    """`service` · `state`"""
    name: str
    """The unit; `FAMILY` or `FAMILY KEY`."""
    state: str
    """A `State`."""
    commands: tuple[tuple[str, str], ...] = ()
    """(command, its standard input), in order: what would be run; () for nothing."""
    levels: tuple[str, ...] = ()
    """What each command is judged to be by itself."""
    before: str = ""
    """What it shall be again: SHA-256 of the state, 64 hex digits."""
    now: str = ""
    """What it was when the plan was made; "" when it could not be read."""
    difference: tuple[str, ...] = ()
    """Lines of a difference from now to before, not redacted."""
    lost: tuple[str, ...] = ()
    """What of it stays different all the same, as sentences."""
    proven: bool = True
    """This way back was tried against the real thing, and not only against its documented answers."""

    @property
    def label(self) -> str:
        """As `label_of`."""
        return label_of(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """Exactly what a rollback would do. A person consents to `digest`, and nothing else is applied."""

    of: str
    """The execution or snapshot that was named."""
    snapshot: str
    target: str
    steps: tuple[Step, ...]
    """In the order of work."""
    digest: str
    """SHA-256 over target, snapshot, paths, states, actions, identities now and then. 64 hex digits."""
    overruled: tuple[str, ...] = ()
    """Conflicting paths that a person chose to take back all the same."""
    leave_conflicts: bool = False
    """A person chose to take back the rest without them."""
    notes: tuple[str, ...] = ()
    """Sentences for people: what has no way back."""
    unkept: tuple[str, ...] = ()
    """Secret files that it replaces or removes: what is there now is not kept, so that is gone for good."""
    states: tuple[StateStep, ...] = ()
    """What is no file, in the order of the snapshot; carried out after the files."""
    further: tuple[tuple[str, str], ...] = ()
    """(label, snapshot) of states that go back further than this snapshot: to how that one has them."""

    @property
    def conflicts(self) -> tuple[Step, ...]:
        """The steps that stand in the way."""
        return tuple(step for step in self.steps if step.state in CONFLICTS and step.path not in self.overruled)

    @property
    def state_conflicts(self) -> tuple[StateStep, ...]:
        """The states that stand in the way."""
        return tuple(step for step in self.states if step.state in CONFLICTS and step.label not in self.overruled)

    @property
    def in_the_way(self) -> tuple[str, ...]:
        """Paths and labels of all that is in conflict and that nobody chose to overrule."""
        return (*(step.path for step in self.conflicts), *(step.label for step in self.state_conflicts))

    @property
    def does_something(self) -> bool:
        """Whether carrying it out would change anything."""
        return bool(self.work or self.state_work)

    @property
    def cannot_return(self) -> tuple[str, ...]:
        """Paths and labels of all that differs and cannot be put back."""
        return (*(step.path for step in self.lost), *(step.label for step in self.states_lost))

    @property
    def states_lost(self) -> tuple[StateStep, ...]:
        """The states that differ and that nothing here can put back."""
        return tuple(step for step in self.states if step.state == State.NOT_SAVED or (step.lost and not step.commands))

    @property
    def state_work(self) -> tuple[StateStep, ...]:
        """The states that would be put back."""
        return tuple(step for step in self.states if step.commands)

    @property
    def work(self) -> tuple[Step, ...]:
        """The steps that would do something."""
        return tuple(step for step in self.steps if step.action != Action.NONE)

    @property
    def lost(self) -> tuple[Step, ...]:
        """The steps that differ and cannot be put back: of their content only a hash was kept, or nothing."""
        return tuple(step for step in self.steps if step.state == State.NOT_SAVED)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What became of one step."""

    path: str
    action: str
    result: str
    """`done` · `conflict` · `failed` · `back` (nothing to do)"""
    text: str = ""
    """Why not, as a sentence without a full stop."""


@dataclass(frozen=True, slots=True)
class RolledBack:
    """What became of a rollback."""

    status: str
    """`succeeded` · `failed` (some of it; `results` say what) · `refused` (conflicts; nothing was touched)"""
    plan: RollbackPlan
    execution: str | None = None
    snapshot: str | None = None
    """What was there before the rollback: `opsx rollback` takes this id, too."""
    results: tuple[StepResult, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RollbackAsked:
    """A rollback as its command line asks for it."""

    of: str
    digest: str
    """Of the plan that is meant."""
    overruled: tuple[str, ...] = ()
    leave_conflicts: bool = False


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a snapshot would hold if it were made now: looked at, not read."""

    roots: tuple[tuple[Node, int], ...] = ()
    """Each path of the plan, real, with the number of paths that would be kept at and below it."""
    outputs: tuple[str, ...] = ()
    """Names of reads whose output would be kept."""
    hash_only: tuple[str, ...] = ()
    """Secret files: their content would not be kept."""
    unsaved: tuple[str, ...] = ()
    """Things of the plan that no hand can save, as sentences."""
    states: tuple[tuple[str, str], ...] = ()
    """(name, what of it would not come back) of each state that is no file and would be kept."""
    metadata: tuple[tuple[Node, int], ...] = ()
    """As `roots`, of paths of which owner, mode and attributes would be kept, and no content."""
    problem: str = ""
    """Why it cannot be made, so that nothing would run; then all else is empty."""

    @property
    def paths(self) -> int:
        """How many paths a rollback could bring back."""
        return sum(count for _, count in (*self.roots, *self.metadata))


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a snapshot holds, without its contents."""

    id: str
    at: str
    execution: str
    """`e-…` that it was made for; "" for one that a person asked for."""
    reason: str
    """`exec` · `manual` · `rollback`"""
    target: str
    uid: int
    roots: tuple[str, ...]
    """The paths of the plan."""
    nodes: tuple[Node, ...]
    """All paths, sorted by path bytes; folders before what is in them."""
    outputs: tuple[SavedOutput, ...] = ()
    unsaved: tuple[str, ...] = ()
    """Things of the plan that no hand can save, as sentences."""
    left_out: tuple[str, ...] = ()
    """Paths that a person chose not to save; a rollback does not look at them."""
    recursive: bool = True
    """What lies below the roots belongs to it; false for the snapshot that a rollback makes of exactly its paths."""
    pack_bytes: int = 0
    sha256: str = ""
    """Of the manifest's file; the log names it too."""
    blobs: dict[str, Blob] = field(default_factory=dict)

    @property
    def states(self) -> tuple[str, ...]:
        """Labels of the states in it that are no files."""
        return tuple(label_of(one.kind, one.name) for one in self.outputs if one.kind in STATE_KINDS)

    @property
    def hash_only(self) -> tuple[Node, ...]:
        """Files whose content was not kept: a rollback sees that one changed, and cannot put it back."""
        return tuple(node for node in self.nodes if node.kind == FILE and not node.saved and not node.meta)

    @property
    def metadata(self) -> tuple[Node, ...]:
        """Nodes that are looked at one by one: their content is no part of it, or more than usual is."""
        return tuple(node for node in self.nodes if node.meta or node.flags >= 0)

    @property
    def named(self) -> tuple[str, ...]:
        """Its roots, and the topmost paths of which only the metadata is kept: what people know it by."""
        alone = {node.path for node in self.nodes if node.meta}
        return (*self.roots, *sorted(path for path in alone if path.rpartition("/")[0] not in alone))

    @property
    def absences(self) -> tuple[Node, ...]:
        """What was not there: a rollback removes it."""
        return tuple(node for node in self.nodes if node.kind == ABSENT)

    @property
    def cut_out(self) -> tuple[str, ...]:
        """Paths below its roots that are no part of it: left out by choice, or the state folder itself."""
        return tuple(
            path for path in self.left_out if any(path.startswith(root.rstrip("/") + "/") for root in self.roots)
        )


@dataclass(frozen=True, slots=True)
class SavedOutput:
    """An `Output` with its data as a blob."""

    kind: str
    name: str
    command: str
    exit_code: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Blob:
    """Where a content lies in the pack."""

    offset: int
    stored: int
    """Bytes in the pack."""
    size: int
    """Bytes of the content."""
    extents: Extents = ()
    """Empty when it is one piece without holes."""
