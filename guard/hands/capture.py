"""Reads what a snapshot needs: each path of a plan with content, owner, mode, times and attributes. Changes nothing.

In two passes. `capture` looks at everything (kinds, sizes, links, limits) and refuses what cannot be saved; the
`Capture` it returns then reads the contents into a sink, one after another in bounded memory, and checks that each
file is still the one that was looked at and that nobody wrote to it meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from guard.errors import SnapshotImpossible
from guard.hands.contents import impossible, read_file
from guard.hands.entries import children, inside, seen
from guard.hands.environment import home
from guard.hands.files import READ, Folder, Located, NoFolder, Unsafe, Walker, join, xattrs_of
from guard.hands.metadata import MetadataLooker, below_home, listed, read_metadata
from guard.hands.metadata import unreadable as _cannot_read
from guard.metadata import wanted_of
from guard.quoting import quoted
from guard.saved import (
    ABSENT,
    BLOCK,
    BLOCKED,
    CLOSED,
    DEVICE,
    DIRECTORY,
    FIFO,
    FILE,
    NOTHING_UNREAD,
    SOCKET,
    SYMLINK,
    Limits,
    Node,
    absent,
    label_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from guard.saved import Manifest, Output, Sink
    from guard.types import PlanItem

HARMLESS_DEVICES = frozenset(((1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0)))
"""null, zero, full, random, urandom, tty (Linux's admin-guide/devices.txt): what is written there changes nothing."""

KERNEL_FOLDERS = ("/proc/", "/sys/")


@dataclass(frozen=True, slots=True)
class Capture:
    """What a snapshot will hold, looked at and not read yet."""

    roots: tuple[str, ...]
    """Real paths, none below another when they count with what lies below them."""
    nodes: tuple[Node, ...]
    """Sorted, folders before what is in them; contents and attributes of files still unknown."""
    data_bytes: int
    """What the files take without their holes: at most this much goes into the pack."""
    recursive: bool
    outputs: tuple[Output, ...] = ()
    unsaved: tuple[str, ...] = ()
    """Things of the plan that no hand can save, as sentences."""
    left_out: tuple[str, ...] = ()
    """Paths that a person chose not to save."""
    secrets: frozenset[str] = frozenset()
    """Paths whose content is hashed only."""
    metadata_roots: tuple[str, ...] = ()
    """Real paths of which the metadata alone is kept, as they were named."""
    lenient: bool = False
    """What cannot be read keeps what is known of it."""

    def read(self, sink: Sink | None) -> tuple[Node, ...]:
        """The nodes with contents, hashes and attributes; saved contents go into the sink, None only hashes.

        Raises:
            SnapshotImpossible: a file cannot be read, became another one, or kept changing.
        """
        with Walker() as walker:
            return tuple(self._read_one(walker, node, sink) for node in self.nodes)

    def _read_one(self, walker: Walker, node: Node, sink: Sink | None) -> Node:
        if node.kind in (ABSENT, BLOCKED) or (node.kind == SYMLINK and not node.meta):
            return node
        parent, name = os.path.split(node.path)
        try:
            folder = walker.folder(parent)
            with folder.acting(node.uid):
                if node.meta:
                    return read_metadata(folder, name, node)
                if node.kind != FILE:
                    found = replace(node, xattrs=_xattrs_by_path(folder, name, node))
                else:
                    found = read_file(folder, name, node, sink, keep=node.path not in self.secrets)
                return found if node.flags < 0 else replace(found, flags=read_metadata(folder, name, node).flags)
        except Unsafe as error:
            raise impossible(error.path, error.why, error.hint) from None
        except PermissionError as error:
            if not self.lenient:
                raise _cannot_read(node.path, error) from None
            return node  # its kind, mode and times are known, and that is all that its owner took away
        except OSError as error:
            raise _cannot_read(node.path, error) from None


def _require_files(path: str) -> None:
    if (os.path.normpath(path) + "/").startswith(KERNEL_FOLDERS):
        raise impossible(path, "is part of the running kernel, which has no files to put back")


def _require_states(items: Sequence[PlanItem], unread: Mapping[tuple[str, str], str]) -> None:
    """Raises SnapshotImpossible, with the flags that go on, when states that a plan names could not be read."""
    missed = [(label_of(*key), unread[key]) for item in items if (key := (item.kind, item.object)) in unread]
    if missed:
        raise SnapshotImpossible(
            "; ".join(f"the state of {label} cannot be read ({why})" for label, why in dict(missed).items()),
            hint="to go on without a way back for it: "
            + " ".join(f"--no-snapshot-of {quoted(label)}" for label in dict(missed)),
        )


def capture(
    items: Sequence[PlanItem],
    *,
    limits: Limits | None = None,
    outputs: Sequence[Output] = (),
    unread: Mapping[tuple[str, str], str] = NOTHING_UNREAD,
    leave_out: Iterable[str] = (),
    is_secret: Callable[[str], bool] | None = None,
) -> Capture:
    """Looks at everything that a plan names and decides whether it can be saved.

    Args:
        items: `file` (a folder with all that is below it; a link with what it points to) or, not beside these,
            `path` (exactly that real path); `file-glob` (what the pattern lists, each as a `file`); the kinds of
            `guard.metadata`, of which the content is not kept; of other kinds those that are in `outputs` count as
            saved, the rest is said in `unsaved`.
        outputs: what commands and services said, captured by the caller.
        unread: why others, by kind and name, could not be read: then nothing is saved.
        leave_out: paths that a person chose not to save (`--no-snapshot-of`).
        is_secret: paths whose content must not be copied; by default the sandbox's list of secret files.
    Raises:
        SnapshotImpossible: names the path, the reason and the flag that would go on without it.
    """
    _require_states(items, unread)
    kept = {(output.kind, output.name) for output in outputs}
    unsaved = tuple(
        f"the state of {item.object if item.kind == 'state' else f'{item.kind} {item.object}'} is not saved"
        for item in items
        if item.kind not in ("file", "file-glob", "path")
        and wanted_of(item.kind) is None
        and (item.kind, item.object) not in kept
    )
    recursive = not any(item.kind == "path" or item.kind.endswith("-path") for item in items)
    looker = _Looker(limits or Limits(), recursive, leave_out)
    alone = MetadataLooker(limits or Limits(), looker.left_out)
    unlisted: list[str] = []
    with Walker() as walker:
        for item in items:
            if item.kind == "path":
                looker.add_exact(walker, item.object)
            elif item.kind == "file":
                looker.add_root(walker, item.object)
            elif item.kind == "file-glob":
                names = listed(below_home(item.object, pattern=True))
                unlisted += [] if names else [f"what {item.object} lists is not saved"]
                for name in names:
                    looker.add_root(walker, name)
            elif (wanted := wanted_of(item.kind)) is not None:
                alone.add(walker, item.object, wanted)
        for path in alone.absent:
            looker.add_root(walker, path)
        for path in alone.privileged:
            looker.add_exact(walker, path)
    looker.join(alone.found)
    nodes = tuple(sorted(looker.found.values(), key=lambda node: node.path.split("/")))
    secret = is_secret or secret_by_mask()
    secrets = frozenset(node.path for node in nodes if node.kind == FILE and not node.meta and secret(node.path))
    if recursive:
        # Putting back exactly some paths never writes through another name, so names outside do not matter then.
        looker.check(nodes)
    return Capture(
        roots=_without_nested(looker.roots) if recursive else tuple(looker.roots),
        nodes=nodes,
        data_bytes=looker.data_bytes,
        recursive=recursive,
        outputs=tuple(outputs),
        unsaved=(*unsaved, *unlisted, *alone.unsaved),
        left_out=looker.left_out,
        secrets=secrets,
        metadata_roots=tuple(path for path in alone.roots if looker.found[path].meta),
        lenient=not recursive,
    )


def survey(
    roots: Iterable[str],
    *,
    recursive: bool = True,
    left_out: Iterable[str] = (),
    limits: Limits | None = None,
    metadata: Iterable[Node] = (),
) -> tuple[Node, ...]:
    """How a snapshot's paths stand now, contents hashed: the state after a change, or before a rollback.

    Unlike `capture` it follows no link and takes what it finds: a FIFO, a socket or another file system in the way is
    a node of its kind, hard links may lead outside, and a path whose folder became a link or can be written by
    others is `blocked`.

    Args:
        metadata: nodes of which the same is looked at now as then: metadata alone, or inode flags besides.
    Raises:
        SnapshotImpossible: a path cannot be looked at.
    """
    looker = _Looker(limits or Limits(), recursive, left_out, lenient=True)
    with Walker() as walker:
        for root in roots:
            looker.add_exact(walker, root)
        for then in metadata:
            looker.add_again(walker, then)
    nodes = tuple(sorted(looker.found.values(), key=lambda node: node.path.split("/")))
    return Capture(tuple(looker.roots), nodes, looker.data_bytes, recursive, lenient=True).read(None)


def survey_of(manifest: Manifest) -> tuple[Node, ...]:
    """How everything that a snapshot holds stands now. Raises SnapshotImpossible."""
    return survey(manifest.roots, recursive=manifest.recursive, left_out=manifest.left_out, metadata=manifest.metadata)


def read_small(node: Node, limit_bytes: int) -> bytes | None:
    """The content of a file as it was surveyed; None when it is longer, is no file, or is another one by now."""
    if node.kind != FILE or node.size > limit_bytes:
        return None
    parent, name = os.path.split(node.path)
    try:
        with Walker() as walker:
            folder = walker.folder(parent)
            with folder.acting(node.uid):
                fd = os.open(name, READ, dir_fd=folder.fd)
                try:
                    info = os.fstat(fd)
                    if not stat.S_ISREG(info.st_mode) or (info.st_dev, info.st_ino) != (node.dev, node.ino):
                        return None
                    data = os.pread(fd, limit_bytes + 1, 0)
                    return data if len(data) <= limit_bytes else None
                finally:
                    os.close(fd)
    except (Unsafe, OSError):
        return None


class _Looker:
    """The first pass: finds the nodes below the roots and counts them against the limits."""

    def __init__(self, limits: Limits, recursive: bool, leave_out: Iterable[str], *, lenient: bool = False) -> None:
        self.found: dict[str, Node] = {}
        self.roots: dict[str, None] = {}
        self.data_bytes = 0
        self._limits = limits
        self._recursive = recursive
        self.left_out = tuple(sorted({os.path.normpath(path) for path in leave_out}))
        self._lenient = lenient

    def add_root(self, walker: Walker, path: str, *, through: int = 0) -> None:
        """Adds a path of the plan. `through` counts the links that led to it."""
        if path == "~" or path.startswith("~/"):
            path = home() + path[1:]
        if not path.startswith("/"):
            raise impossible(path, "is not an absolute path")
        if self._is_left_out(os.path.normpath(path)):
            return
        _require_files(path)
        try:
            # Nothing is taken out of the path: a link before `..` is followed first, as the kernel does.
            located = walker.locate(path)
            if self._is_left_out(located.whole):
                return
            _require_files(located.whole)
            self._add_located(walker, located, through)
        except Unsafe as error:
            raise impossible(error.path, error.why, error.hint) from None
        except OSError as error:
            raise _cannot_read(path, error) from None

    def _is_left_out(self, path: str) -> bool:
        return any(path == left or path.startswith(left + "/") for left in self.left_out)

    def add_exact(self, walker: Walker, path: str) -> None:
        """Adds a path that a snapshot holds, wherever its folders lead now."""
        parent, name = os.path.split(path)
        self.roots[path] = None
        try:
            folder = walker.folder(parent)
            with folder.acting():
                info = folder.stat(name)
                if info is None:
                    self.found[path] = absent(path)
                    return
                node = self._node(folder, name, info)
                if node.kind == DIRECTORY and self._recursive:
                    self._below(folder.fd, name, node, depth=1)
        except (FileNotFoundError, NoFolder):
            self.found[path] = absent(path)
        except Unsafe as error:
            if not self._lenient:
                raise impossible(error.path, error.why, error.hint) from None
            self.found[path] = Node(path, BLOCKED, link=str(error))
        except OSError as error:
            raise _cannot_read(path, error) from None

    def add_again(self, walker: Walker, then: Node) -> None:
        """Adds what stands now at the path of a node of which the metadata counts."""
        parent, name = os.path.split(then.path)
        found = self.found.get(then.path)
        if found is not None:
            flags = 0 if then.flags >= 0 and found.kind in (FILE, DIRECTORY) else -1
            self.found[then.path] = replace(found, flags=flags)
            return
        try:
            folder = walker.folder(parent)
            with folder.acting():
                info = folder.stat(name)
                if info is None:
                    self.found[then.path] = absent(then.path)
                    return
                node = seen(folder, name, info, meta=True, times=then.atime_ns >= 0, flags=then.flags >= 0)
                closed = node.kind == DIRECTORY and not os.access(
                    name, os.X_OK, dir_fd=folder.fd, effective_ids=True, follow_symlinks=False
                )
            self.found[then.path] = replace(node, link=CLOSED) if closed else node
        except (FileNotFoundError, NoFolder):
            self.found[then.path] = absent(then.path)
        except Unsafe as error:
            self.found[then.path] = Node(then.path, BLOCKED, link=str(error), meta=True)
        except OSError as error:
            if not any(node.link == CLOSED and then.path.startswith(path + "/") for path, node in self.found.items()):
                raise _cannot_read(then.path, error) from None

    def join(self, alone: Mapping[str, Node]) -> None:
        """Adds paths of which the metadata alone counts; of those that are kept in full, flags count besides."""
        for path, node in alone.items():
            full = self.found.get(path)
            self.found[path] = node if full is None else replace(full, flags=node.flags)
        if len(self.found) > self._limits.entries:
            raise impossible(max(alone), f"is one path too many: a snapshot holds at most {self._limits.entries:,}")

    def _add_located(self, walker: Walker, located: Located, through: int) -> None:
        if located.info is None:
            # What is made on the way to it has to go again, too: the first folder that is missing is what counts.
            self.roots[located.path] = None
            self.found[located.path] = absent(located.path)
            return
        self.roots[located.path] = None
        folder = walker.folder(located.folder)
        with folder.acting():
            node = self._node(folder, located.name, located.info)
        if node.kind in (FIFO, DEVICE) and not _is_harmless(node):
            what = "is a FIFO" if node.kind == FIFO else "is a device"
            raise impossible(node.path, f"{what}: what is written into it cannot be taken back")
        if node.kind == DIRECTORY:
            with folder.acting():
                self._below(folder.fd, located.name, node, depth=1)
        if node.kind == SYMLINK:
            self._behind(walker, node, through)

    def _behind(self, walker: Walker, link: Node, through: int) -> None:
        """What a link of the plan points to can be changed through it. A folder behind a link is left out: what
        names a link either replaces the link or names a path below it."""
        if through >= 40:
            return
        target = join(os.path.dirname(link.path), link.link) if not link.link.startswith("/") else link.link
        located = walker.locate(target)
        is_folder = located.info is not None and stat.S_ISDIR(located.info.st_mode)
        if not is_folder and not (located.whole + "/").startswith(KERNEL_FOLDERS):
            self.add_root(walker, located.whole, through=through + 1)

    def _below(self, parent_fd: int, name: str, node: Node, *, depth: int) -> None:
        if depth > self._limits.depth:
            raise impossible(node.path, f"is nested more than {self._limits.depth} folders deep")
        with contextlib.ExitStack() as open_folders:
            try:
                here = open_folders.enter_context(inside(parent_fd, name, node))
                if not os.access(".", os.X_OK, dir_fd=here.fd, effective_ids=True):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            except PermissionError as error:
                if not self._lenient:
                    raise _cannot_read(node.path, error) from None
                self.found[node.path] = replace(node, link=CLOSED)
                return
            try:
                for child, info in children(here, self.left_out):
                    below = self._node(here, child, info)
                    if below.kind != DIRECTORY:
                        continue
                    if below.dev == node.dev:
                        self._below(here.fd, child, below, depth=depth + 1)
                    elif not self._lenient:
                        raise impossible(below.path, "is another file system")
            except OSError as error:
                raise _cannot_read(node.path, error) from None

    def _node(self, folder: Folder, name: str, info: os.stat_result) -> Node:
        """Adds the node of one entry, its content not read yet."""
        node = seen(folder, name, info, meta=False)
        path, kind = node.path, node.kind
        if kind in (SOCKET, BLOCK) and not self._lenient:
            what = "a socket" if kind == SOCKET else "a block device"
            raise impossible(path, f"is {what}, which cannot be saved")
        if path not in self.found:
            if len(self.found) >= self._limits.entries:
                raise impossible(path, f"is one path too many: a snapshot holds at most {self._limits.entries:,}")
            self.data_bytes += min(info.st_size, info.st_blocks * 512) if kind == FILE else 0
            if self.data_bytes > self._limits.data_bytes:
                raise impossible(path, f"makes it too big: a snapshot holds at most {self._limits.data_bytes:,} bytes")
            if node.size > self._limits.file_bytes:
                raise impossible(path, f"is too big: {node.size:,} bytes, the most is {self._limits.file_bytes:,}")
        self.found[path] = node
        return node

    def check(self, nodes: Sequence[Node]) -> None:
        """Refuses files with names outside: a change of one shows under names that were not looked at."""
        names = Counter((node.dev, node.ino) for node in nodes if node.kind == FILE and not node.meta)
        for node in nodes:
            if node.kind == FILE and not node.meta and node.nlink > names[node.dev, node.ino]:
                outside = node.nlink - names[node.dev, node.ino]
                count = "another name" if outside == 1 else f"{outside} other names"
                raise impossible(node.path, f"has {count} (hard links) outside of what is saved")


def _xattrs_by_path(folder: Folder, name: str, node: Node) -> tuple[tuple[str, str], ...]:
    """Attributes of what is not opened for reading: a FIFO, a device, a folder."""
    flags = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, dir_fd=folder.fd)
    try:
        info = os.fstat(fd)
        if (info.st_dev, info.st_ino) != (node.dev, node.ino):
            raise impossible(node.path, "became something else while it was read")
        return xattrs_of(f"/proc/self/fd/{fd}" if hasattr(os, "O_PATH") else fd)
    finally:
        os.close(fd)


def _is_harmless(node: Node) -> bool:
    return node.kind == DEVICE and (os.major(node.rdev), os.minor(node.rdev)) in HARMLESS_DEVICES


def _without_nested(roots: Iterable[str]) -> tuple[str, ...]:
    kept: list[str] = []
    for root in sorted(roots, key=lambda path: path.split("/")):
        if not any(root == other or root.startswith(other.rstrip("/") + "/") for other in kept):
            kept.append(root)
    return tuple(kept)


def secret_by_mask() -> Callable[[str], bool]:
    """Tells whether a real path is on the sandbox's list of secret files of this machine, or below one of it."""
    from guard.hands.sandbox.masks import find_masks

    present = find_masks(()).present
    exact = frozenset(present)

    def secret(path: str) -> bool:
        return path in exact or any(path.startswith(mask + "/") for mask in present)

    return secret
