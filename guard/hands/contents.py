"""Contents of files, read in bounded memory and only if nobody wrote to them meanwhile. Changes nothing."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING

from guard.errors import SnapshotImpossible
from guard.hands.files import READ, xattrs_of
from guard.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from guard.hands.files import Folder
    from guard.saved import Node, Sink

TRIES = 3
"""How often a file that changes while it is read is read again."""

CHUNK_BYTES = 1 << 20
_ZEROS = bytes(1 << 16)


def impossible(path: str, why: str, hint: str = "") -> SnapshotImpossible:
    """The error for a path that cannot be saved."""
    without = f"to go on without a way back for it: --no-snapshot-of {quoted(path)}"
    return SnapshotImpossible(f"{path} {why}", hint=f"{hint}; {without}" if hint else without)


def read_file(folder: Folder, name: str, node: Node, sink: Sink | None, *, keep: bool) -> Node:
    """One file with its content. Reads again while somebody writes to it, `TRIES` times in all."""
    for _ in range(TRIES):
        fd = os.open(name, READ, dir_fd=folder.fd)
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or (info.st_dev, info.st_ino) != (node.dev, node.ino):
                raise impossible(node.path, "became another file while it was read")
            if info.st_nlink > node.nlink:
                raise impossible(node.path, "got another name (a hard link) while it was read")
            digest = _copy(fd, info, sink if keep else None)
            found = replace(
                node,
                mode=stat.S_IMODE(info.st_mode),
                uid=info.st_uid,
                gid=info.st_gid,
                mtime_ns=info.st_mtime_ns,
                size=info.st_size,
                ctime_ns=info.st_ctime_ns,
                xattrs=xattrs_of(fd),
                sha256=digest,
                saved=keep and sink is not None,
            )
            after = os.fstat(fd)
        finally:
            os.close(fd)
        written = (info.st_mtime_ns, info.st_ctime_ns, info.st_size)
        if written == (after.st_mtime_ns, after.st_ctime_ns, after.st_size):
            if sink is not None and keep:
                sink.done(digest)
            return found
    raise impossible(node.path, f"was written to while it was read, {TRIES} times in a row")


def _copy(fd: int, info: os.stat_result, sink: Sink | None) -> str:
    """Reads a whole file into the sink and returns its hash. Holes are asked for, not read."""
    digest = sha256()
    if sink is not None:
        sink.start()
    position = 0
    for offset, length in _extents(fd, info):
        _hole(digest, sink, offset - position)
        position = offset
        while length:
            chunk = os.pread(fd, min(length, CHUNK_BYTES), position)
            if not chunk:
                break  # it became shorter: the check after the read finds that
            digest.update(chunk)
            if sink is not None:
                sink.data(chunk)
            position += len(chunk)
            length -= len(chunk)
    _hole(digest, sink, info.st_size - position)
    return digest.hexdigest()


def _hole(digest: object, sink: Sink | None, size: int) -> None:
    if size <= 0:
        return
    if sink is not None:
        sink.hole(size)
    left = size
    while left:
        digest.update(_ZEROS[: min(left, len(_ZEROS))])  # type: ignore[attr-defined]
        left -= min(left, len(_ZEROS))


def _extents(fd: int, info: os.stat_result) -> Iterable[tuple[int, int]]:
    """(offset, length) of the parts that are data. A file without holes is one part."""
    if info.st_blocks * 512 >= info.st_size or not hasattr(os, "SEEK_DATA"):
        return ((0, info.st_size),) if info.st_size else ()
    found, position = [], 0
    while position < info.st_size:
        try:
            start = os.lseek(fd, position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole from here on (lseek(2))
                break
            return ((0, info.st_size),)
        end = min(os.lseek(fd, start, os.SEEK_HOLE), info.st_size)
        if end <= start:
            break
        found.append((start, end - start))
        position = end
    return found
