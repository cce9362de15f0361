"""Snapshots on disk: one folder each, one pack of contents, one manifest. Touches the state folder and nothing else.

Promises: a snapshot exists when its manifest does, and that is written last, after the contents are durable; contents
are named by their hash and checked whenever they are read; nothing is ever changed in place. The bytes are the
original ones (files are 0600): whoever shows them redacts them first.
"""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256 as new_sha256
from typing import TYPE_CHECKING, Protocol

from guard.errors import NoWayBack, SnapshotImpossible, StateDamaged, StateUnsafe
from guard.ledger import index
from guard.ledger.formats import Malformed
from guard.ledger.manifests import manifest_bytes, manifest_of, other_states_of, states_bytes, states_of
from guard.ledger.state import state_error_of, write_all
from guard.quoting import quoted
from guard.saved import FILE, Blob, Manifest, SavedOutput
from guard.types import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from guard.ledger.log import Log
    from guard.ledger.state import StateFolder
    from guard.ports import Clock, Ids
    from guard.saved import BlobWriter, Node, Output, Sink

FOLDER = "snapshots"
KEEP = 200
"""Snapshots that stay; the oldest go, but never one that an unresolved execution needs."""

KEEP_SLACK = 20
"""How many more may gather before the old ones are looked for."""

UNFINISHED_S = 3600
"""A folder without a manifest that is older than this was left by a crash."""

MANIFEST_BYTES = 256 * 1024 * 1024
READ_BYTES = 1 << 20
_ZEROS = bytes(1 << 16)
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


class Captured(Protocol):
    """What is saved: `guard.hands.capture.Capture`."""

    @property
    def roots(self) -> tuple[str, ...]: ...
    @property
    def nodes(self) -> tuple[Node, ...]: ...
    @property
    def data_bytes(self) -> int: ...
    @property
    def recursive(self) -> bool: ...
    @property
    def outputs(self) -> tuple[Output, ...]: ...
    @property
    def unsaved(self) -> tuple[str, ...]: ...
    @property
    def left_out(self) -> tuple[str, ...]: ...
    def read(self, sink: Sink | None) -> tuple[Node, ...]: ...


@dataclass(frozen=True, slots=True)
class Listed:
    """One snapshot in a list."""

    id: str
    manifest: Manifest | None
    """None when it cannot be read."""
    problem: str = ""


class Snapshots:
    """The snapshots of one state folder."""

    def __init__(self, folder: StateFolder, *, log: Log, clock: Clock, ids: Ids, redact: Callable[[str], str]) -> None:
        self._folder = folder
        self._log = log
        self._clock = clock
        self._ids = ids
        self._redact = redact

    def state_path(self) -> str:
        """The real path of the state folder."""
        return os.path.realpath(self._folder.path)

    def save(self, capture: Captured, *, execution: str = "", reason: str = "exec", target: str = LOCAL) -> str:
        """Reads a capture's contents into a new snapshot, durably, and returns its id.

        Args:
            execution: the run that it is made for; "" for one that a person asked for.
            reason: `exec` · `manual` · `rollback`
        Raises:
            SnapshotImpossible: no space, or a file could not be read; nothing of it stays behind.
            StateError: the state folder cannot be used.
        Effects: a folder below `snapshots/`, one `snapshot` entry in the log.
        """
        snapshot = self._ids.new("s")
        try:
            with self._folder.folder(FOLDER, create=True) as above:
                self._require_space(above, capture)
                os.mkdir(snapshot, 0o700, dir_fd=above)
                try:
                    manifest = self._fill(above, snapshot, capture, execution, reason, target)
                except BaseException:
                    _remove(above, snapshot)
                    raise
                os.fsync(above)
        except OSError as error:
            if error.errno in _FULL:
                raise _no_space(capture, f"no space left below {self._folder.path}") from None
            raise state_error_of(error, f"{FOLDER} in {self._folder.path}") from error
        self._note("snapshot", manifest, nodes=len(manifest.nodes), bytes=manifest.pack_bytes)
        return snapshot

    def record_after(self, snapshot: str, nodes: Iterable[Node], states: Iterable[tuple[str, str, str]] = ()) -> None:
        """Keeps how the snapshot's paths stood when its change was over, so that later changes are told apart.

        Args: states: (kind, name, SHA-256) of what is no file.
        Raises: StateError: it cannot be written; a rollback then says that it cannot tell who changed what.
        """
        data = states_bytes(snapshot, nodes, states)
        with self._opened(snapshot) as fd:
            self._folder.write_new("after", data, dir_fd=fd)
        digest = new_sha256(data).hexdigest()
        entry = {"kind": "snapshot", "snapshot": snapshot, "part": "after", "manifest_sha256": digest}
        self._log.append([entry], durable=False)

    def load(self, snapshot: str) -> Manifest:
        """What a snapshot holds. Raises NoWayBack when there is none, StateDamaged when it is not what was written."""
        with self._opened(snapshot) as fd:
            try:
                data = self._folder.read_file("manifest", dir_fd=fd, limit_bytes=MANIFEST_BYTES)
            except FileNotFoundError:
                raise self._none(snapshot) from None
        try:
            manifest = manifest_of(data)
        except Malformed as error:
            raise self._damaged(snapshot, str(error)) from None
        if manifest.id != snapshot:
            raise self._damaged(snapshot, "it is the manifest of another")
        return manifest

    def after(self, snapshot: str) -> tuple[Node, ...] | None:
        """How its paths stood after the change; None when that was not recorded. Raises as `load`."""
        data = self._after(snapshot)
        try:
            return None if data is None else states_of(data, snapshot)
        except Malformed as error:
            raise self._damaged(snapshot, f"the state after it: {error}") from None

    def states_after(self, snapshot: str) -> dict[tuple[str, str], str]:
        """SHA-256 of each state that is no file after the change, by kind and name. Raises as `load`."""
        data = self._after(snapshot)
        try:
            return {} if data is None else other_states_of(data)
        except Malformed as error:
            raise self._damaged(snapshot, f"the state after it: {error}") from None

    def _after(self, snapshot: str) -> bytes | None:
        with self._opened(snapshot) as fd:
            try:
                return self._folder.read_file("after", dir_fd=fd, limit_bytes=MANIFEST_BYTES)
            except FileNotFoundError:
                return None

    @contextlib.contextmanager
    def contents(self, manifest: Manifest) -> Iterator[Pack]:
        """The contents of a snapshot, opened for reading. Raises StateDamaged, StateError."""
        with self._opened(manifest.id) as fd:
            try:
                pack = self._folder.open_file("pack", os.O_RDONLY, dir_fd=fd)
            except FileNotFoundError:
                raise self._damaged(manifest.id, "its pack is gone") from None
        try:
            yield Pack(pack, manifest, self._damaged)
        finally:
            os.close(pack)

    def verify(self, snapshot: str) -> tuple[str, ...]:
        """Reads all of a snapshot and says what in it is not what was written; () when it is whole.

        Raises: NoWayBack: there is no such snapshot. StateError: the state folder cannot be read.
        """
        try:
            manifest = self.load(snapshot)
            self.after(snapshot)
        except StateDamaged as error:
            return (error.message,)
        problems = []
        try:
            with self.contents(manifest) as pack:
                for digest in manifest.blobs:
                    try:
                        pack.read_into(digest, _nowhere)
                    except StateDamaged as error:
                        problems.append(error.message)
        except StateDamaged as error:
            return (error.message,)
        missing = {node.sha256 for node in manifest.nodes if node.saved} - manifest.blobs.keys()
        problems += [f"content {digest[:12]} of {snapshot} is not in its pack" for digest in sorted(missing)]
        return tuple(problems)

    def ids(self) -> tuple[str, ...]:
        """Ids of the snapshots, unfinished ones included, in no order. Raises StateError."""
        try:
            with self._folder.folder(FOLDER) as above:
                return tuple(name for name in os.listdir(above) if name.startswith("s-"))
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise state_error_of(error, f"{FOLDER} in {self._folder.path}") from error

    def listed(self) -> tuple[Listed, ...]:
        """All snapshots, newest first; damaged ones last. Raises StateError."""
        found = []
        for snapshot in self.ids():
            try:
                found.append(Listed(snapshot, self.load(snapshot)))
            except NoWayBack:
                continue
            except StateDamaged as error:
                found.append(Listed(snapshot, None, error.message))
        return tuple(sorted(found, key=lambda one: one.manifest.at if one.manifest else "", reverse=True))

    def of_execution(self, execution: str) -> str | None:
        """The snapshot that was made for a run, as the log tells it; None when there is none. Raises StateError."""
        for entry in index.about(self._folder, execution):
            if entry.get("kind") == "snapshot" and entry.get("execution") == execution:
                snapshot = entry.get("snapshot")
                return snapshot if isinstance(snapshot, str) else None
        return None

    def prune(self, *, keep: int = KEEP, is_needed: Callable[[Manifest], bool]) -> tuple[str, ...]:
        """Removes the oldest beyond `keep`, and what crashes left; returns the ids.

        Args:
            is_needed: whether an unresolved execution may still want this one; it then stays whatever its age.
        Raises: StateError.
        """
        self._folder.require_writable()
        removed = []
        listed = self.listed()
        for one in listed[keep:]:
            if one.manifest is not None and not is_needed(one.manifest):
                removed.append(one.id)
        known = {one.id for one in listed}
        now_s = datetime.fromisoformat(self._clock.utc()).timestamp()
        try:
            with self._folder.folder(FOLDER) as above:
                for snapshot in set(self.ids()) - known:
                    if now_s - os.stat(snapshot, dir_fd=above, follow_symlinks=False).st_mtime > UNFINISHED_S:
                        removed.append(snapshot)
                for snapshot in removed:
                    _remove(above, snapshot)
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise state_error_of(error, f"{FOLDER} in {self._folder.path}") from error
        if removed:
            self._log.append(
                [{"kind": "notice", "code": "snapshots-pruned", "snapshots": sorted(removed)[:50]}], durable=False
            )
        return tuple(sorted(removed))

    def _fill(self, above: int, snapshot: str, capture: Captured, execution: str, reason: str, target: str) -> Manifest:
        fd = os.open(snapshot, _FOLDER_FLAGS, dir_fd=above)
        try:
            pack_fd = self._folder.open_file("pack", os.O_WRONLY | os.O_CREAT | os.O_EXCL, dir_fd=fd)
            try:
                pack = _PackWriter(pack_fd)
                outputs = tuple(_save_output(pack, output) for output in capture.outputs)
                nodes = capture.read(pack)
                os.fsync(pack_fd)
            finally:
                os.close(pack_fd)
            manifest = Manifest(
                id=snapshot,
                at=self._clock.utc(),
                execution=execution,
                reason=reason,
                target=target,
                uid=os.geteuid(),
                roots=capture.roots,
                nodes=nodes,
                outputs=outputs,
                unsaved=capture.unsaved,
                left_out=capture.left_out,
                recursive=capture.recursive,
                pack_bytes=pack.position,
                blobs=pack.blobs,
            )
            try:
                data = manifest_bytes(manifest)
            except ValueError as error:
                raise SnapshotImpossible(f"the snapshot cannot be written down: {error}") from None
            self._folder.write_new("manifest", data, dir_fd=fd)
        finally:
            os.close(fd)
        from dataclasses import replace

        return replace(manifest, sha256=new_sha256(data).hexdigest())

    def _require_space(self, above: int, capture: Captured) -> None:
        space = os.fstatvfs(above)
        free = space.f_bavail * space.f_frsize
        needed = 2 * (capture.data_bytes + sum(len(output.data) for output in capture.outputs))
        if free < needed:
            # Twice: what is saved now will be written once more when it is put back.
            raise _no_space(
                capture, f"the snapshot needs {needed:,} bytes free in {self._folder.path}, it has {free:,}"
            )

    @contextlib.contextmanager
    def _opened(self, snapshot: str) -> Iterator[int]:
        if not _is_id(snapshot):
            raise self._none(snapshot)
        try:
            with self._folder.folder(FOLDER) as above:
                fd = os.open(snapshot, _FOLDER_FLAGS, dir_fd=above)
        except FileNotFoundError:
            raise self._none(snapshot) from None
        except OSError as error:
            raise state_error_of(error, f"{snapshot} in {self._folder.path}") from error
        try:
            info = os.fstat(fd)
            if info.st_uid != os.geteuid() or info.st_mode & 0o022:
                raise StateUnsafe(f"{snapshot} in {self._folder.path} belongs to or can be written by others")
            yield fd
        finally:
            os.close(fd)

    def _note(self, kind: str, manifest: Manifest, **fields: object) -> None:
        """The log names the manifest's hash: an edited one is found even with its own hash made to fit."""
        entry = {
            "kind": kind,
            "snapshot": manifest.id,
            "execution": manifest.execution or None,
            "reason": manifest.reason,
            "target": manifest.target,
            "manifest_sha256": manifest.sha256,
            "roots": [self._redact(root) for root in manifest.named[:50]],
            **fields,
        }
        self._log.append([entry], durable=True, use_reserve=True)

    def _none(self, snapshot: str) -> NoWayBack:
        shown = snapshot if _is_id(snapshot) else ascii(snapshot)[:70]
        return NoWayBack(f"there is no snapshot {shown}", not_done="nothing was changed", hint="opsx snapshot list")

    def _damaged(self, snapshot: str, what: str) -> StateDamaged:
        return StateDamaged(
            f"snapshot {snapshot} is not what was written: {what}",
            not_done="nothing was changed",
            hint=f"opsx snapshot verify {snapshot}",
        )


class Pack:
    """The contents of one snapshot."""

    def __init__(self, fd: int, manifest: Manifest, damaged: Callable[[str, str], StateDamaged]) -> None:
        self._fd = fd
        self._manifest = manifest
        self._damaged = damaged

    def read_into(self, sha256: str, write: BlobWriter) -> None:
        """Hands over one content in parts and checks its hash at the end; holes are left out.

        Raises:
            StateDamaged: it is not there, or not what was saved. What was handed over must then be thrown away.
        """
        blob = self._manifest.blobs.get(sha256)
        if blob is None:
            raise self._damaged(self._manifest.id, f"content {sha256[:12]} is not in it")
        digest = new_sha256()
        place, position = blob.offset, 0
        for offset, length in blob.extents or ((0, blob.size),):
            _hash_zeros(digest, offset - position)
            position = offset
            while length:
                chunk = os.pread(self._fd, min(length, READ_BYTES), place)
                if not chunk:
                    raise self._damaged(self._manifest.id, f"content {sha256[:12]} is cut")
                digest.update(chunk)
                write(position, chunk)
                place, position, length = place + len(chunk), position + len(chunk), length - len(chunk)
        _hash_zeros(digest, blob.size - position)
        if digest.hexdigest() != sha256:
            raise self._damaged(self._manifest.id, f"content {sha256[:12]} has another hash")

    def read(self, sha256: str, limit_bytes: int) -> bytes | None:
        """One content whole; None when it is longer than the limit. Raises StateDamaged."""
        blob = self._manifest.blobs.get(sha256)
        if blob is not None and blob.size > limit_bytes:
            return None
        data = bytearray(blob.size if blob else 0)

        def write(offset: int, chunk: bytes) -> None:
            data[offset : offset + len(chunk)] = chunk

        self.read_into(sha256, write)
        return bytes(data)


class _PackWriter:
    """Appends contents to a pack; one that is there already is not kept twice."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.position = 0
        self.blobs: dict[str, Blob] = {}
        self._start = 0
        self._size = 0
        self._extents: list[tuple[int, int]] = []

    def start(self) -> None:
        if self.position != self._start:
            self._rewind()
        self._size = 0
        self._extents = []

    def data(self, chunk: bytes) -> None:
        write_all(self._fd, chunk)
        if self._extents and sum(self._extents[-1]) == self._size:
            offset, length = self._extents[-1]
            self._extents[-1] = (offset, length + len(chunk))
        else:
            self._extents.append((self._size, len(chunk)))
        self._size += len(chunk)
        self.position += len(chunk)

    def hole(self, size: int) -> None:
        self._size += size

    def done(self, sha256: str) -> None:
        if sha256 in self.blobs:
            self._rewind()
        else:
            whole = not self._extents or self._extents == [(0, self._size)]
            extents = () if whole and (self._extents or not self._size) else tuple(self._extents) or ((0, 0),)
            self.blobs[sha256] = Blob(self._start, self.position - self._start, self._size, extents)
        self._start = self.position

    def _rewind(self) -> None:
        os.ftruncate(self._fd, self._start)
        os.lseek(self._fd, self._start, os.SEEK_SET)
        self.position = self._start


def _save_output(pack: _PackWriter, output: Output) -> SavedOutput:
    digest = new_sha256(output.data).hexdigest()
    pack.start()
    pack.data(output.data)
    pack.done(digest)
    return SavedOutput(output.kind, output.name, output.command, output.exit_code, digest)


def _no_space(capture: Captured, what: str) -> SnapshotImpossible:
    files = sorted((node for node in capture.nodes if node.kind == FILE), key=lambda node: node.size, reverse=True)
    hint = "free space there"
    if files:
        hint += f"; to go on without a way back for the largest: --no-snapshot-of {quoted(files[0].path)}"
    return SnapshotImpossible(what, hint=hint)


def _remove(above: int, snapshot: str) -> None:
    """Removes a snapshot's folder, the manifest first: what is half removed counts as unfinished."""
    with contextlib.suppress(FileNotFoundError):
        fd = os.open(snapshot, _FOLDER_FLAGS, dir_fd=above)
        try:
            names = os.listdir(fd)
            for name in sorted(names, key=lambda name: name != "manifest"):
                os.unlink(name, dir_fd=fd)
        finally:
            os.close(fd)
        os.rmdir(snapshot, dir_fd=above)


def _is_id(snapshot: str) -> bool:
    if not snapshot.startswith("s-") or len(snapshot) > 64:
        return False
    return all(character in "abcdefghijklmnopqrstuvwxyz0123456789-" for character in snapshot)


def _hash_zeros(digest: object, size: int) -> None:
    while size > 0:
        digest.update(_ZEROS[: min(size, len(_ZEROS))])  # type: ignore[attr-defined]
        size -= min(size, len(_ZEROS))


def _nowhere(offset: int, chunk: bytes) -> None:
    """Takes a content that is only checked."""
