"""A snapshot's manifest as bytes and back, strictly. Pure. The fields are described in docs/formats.md.

JSON lines: a header, then outputs, nodes and blobs, then an end line that counts and hashes what stands before it,
so that a manifest that was cut or edited is told apart from one that was written.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

from guard.ledger.formats import FORMAT, Malformed, decoded, encoded, is_sha256
from guard.saved import BLOCK, BLOCKED, KINDS, SOCKET, Blob, Manifest, Node, SavedOutput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_NODE_DEFAULTS: dict[str, Any] = {
    "mode": 0,
    "uid": 0,
    "gid": 0,
    "mtime_ns": 0,
    "size": 0,
    "sha256": "",
    "link": "",
    "rdev": 0,
    "dev": 0,
    "ino": 0,
    "nlink": 1,
    "ctime_ns": 0,
    "saved": False,
    "meta": False,
    "atime_ns": -1,
    "flags": -1,
}
_LOOKED_AT = KINDS | {SOCKET, BLOCK, BLOCKED}
_WITHOUT_CONTENT = frozenset((SOCKET, BLOCK))
_MOST_MODE = 0o7777


def manifest_bytes(manifest: Manifest) -> bytes:
    """The whole file. Raises ValueError when one path's attributes are too long for a line (2 MiB)."""
    header = {
        "format": FORMAT,
        "id": manifest.id,
        "at": manifest.at,
        "execution": manifest.execution or None,
        "reason": manifest.reason,
        "target": manifest.target,
        "uid": manifest.uid,
        "roots": list(manifest.roots),
        "left_out": list(manifest.left_out),
        "unsaved": list(manifest.unsaved),
        "recursive": manifest.recursive,
        "pack_bytes": manifest.pack_bytes,
    }
    lines = [encoded(header)]
    lines += [
        encoded({"output": [output.kind, output.name, output.command, output.exit_code, output.sha256]})
        for output in manifest.outputs
    ]
    lines += [encoded({"node": node_object(node)}) for node in manifest.nodes]
    lines += [
        encoded({"blob": [sha256, blob.offset, blob.stored, blob.size, [list(extent) for extent in blob.extents]]})
        for sha256, blob in manifest.blobs.items()
    ]
    return _closed(lines)


def states_bytes(snapshot: str, nodes: Iterable[Node], states: Iterable[tuple[str, str, str]] = ()) -> bytes:
    """The file of how a snapshot's paths, and its states that are no files, stood after the change.

    Args:
        states: (kind, name, SHA-256 of the state).
    """
    lines = [encoded({"format": FORMAT, "snapshot": snapshot})]
    lines += [encoded({"node": node_object(node)}) for node in nodes]
    lines += [encoded({"state": list(state)}) for state in states]
    return _closed(lines)


def manifest_of(data: bytes) -> Manifest:
    """The manifest that a file holds. Raises Malformed."""
    lines = _opened(data)
    header = next(lines)
    nodes, outputs, blobs = [], [], {}
    for line in lines:
        if "node" in line:
            nodes.append(node_of(line["node"], KINDS))
        elif "blob" in line:
            sha256, blob = _blob_of(line["blob"])
            blobs[sha256] = blob
        elif "output" in line:
            outputs.append(_output_of(line["output"]))
        else:
            raise Malformed("a line of no known kind")
    try:
        return Manifest(
            id=_text(header["id"]),
            at=_text(header["at"]),
            execution=_text(header["execution"] or ""),
            reason=_text(header["reason"]),
            target=_text(header["target"]),
            uid=_whole(header["uid"]),
            roots=tuple(_path(path) for path in header["roots"]),
            nodes=tuple(nodes),
            outputs=tuple(outputs),
            unsaved=tuple(_text(text) for text in header["unsaved"]),
            left_out=tuple(_path(path) for path in header["left_out"]),
            recursive=bool(header["recursive"]),
            pack_bytes=_whole(header["pack_bytes"]),
            sha256=hashlib.sha256(data).hexdigest(),
            blobs=blobs,
        )
    except (KeyError, TypeError) as error:
        raise Malformed(f"the header lacks {error}") from None


def states_of(data: bytes, snapshot: str) -> tuple[Node, ...]:
    """The nodes that a states file of this snapshot holds. Raises Malformed."""
    lines = _opened(data)
    if next(lines).get("snapshot") != snapshot:
        raise Malformed("it belongs to another snapshot")
    return tuple(node_of(line.get("node"), _LOOKED_AT) for line in lines if "state" not in line)


def other_states_of(data: bytes) -> dict[tuple[str, str], str]:
    """SHA-256 of each state that is no file, by kind and name, of a states file. Raises Malformed."""
    found = {}
    for line in _opened(data):
        if "state" not in line:
            continue
        try:
            kind, name, sha256 = line["state"]
        except (TypeError, ValueError):
            raise Malformed("a state is not what it must be") from None
        if not is_sha256(_text(sha256)):
            raise Malformed("a hash is not one")
        found[_text(kind), _text(name)] = sha256
    return found


def node_object(node: Node) -> dict[str, Any]:
    """A node as JSON; what has its default is left out."""
    fields: dict[str, Any] = {"path": node.path, "kind": node.kind}
    for name, default in _NODE_DEFAULTS.items():
        value = getattr(node, name)
        if value != default:
            fields[name] = value
    if node.xattrs:
        fields["xattrs"] = [list(pair) for pair in node.xattrs]
    return fields


def node_of(fields: Any, kinds: frozenset[str] = KINDS) -> Node:
    """A node from JSON. Raises Malformed for anything that capture could not have made."""
    if not isinstance(fields, dict):
        raise Malformed("a node is not an object")
    values = dict(fields)
    path, kind = _path(values.pop("path", None)), values.pop("kind", None)
    xattrs = values.pop("xattrs", [])
    if kind not in (kinds | _WITHOUT_CONTENT if values.get("meta") is True else kinds):
        raise Malformed("a node of no known kind")
    for name, value in values.items():
        default = _NODE_DEFAULTS.get(name)
        if default is None or type(value) is not type(default):
            raise Malformed(f"a node's {name[:40]} is not what it must be")
    if values.get("sha256", "") and not is_sha256(values["sha256"]):
        raise Malformed("a hash is not one")
    if not 0 <= values.get("mode", 0) <= _MOST_MODE or values.get("size", 0) < 0:
        raise Malformed("a mode or size that cannot be")
    try:
        pairs = tuple((_text(name), bytes.fromhex(value).hex()) for name, value in xattrs)
    except (TypeError, ValueError):
        raise Malformed("attributes are not what they must be") from None
    return Node(path, kind, xattrs=pairs, **values)


def _closed(lines: list[bytes]) -> bytes:
    body = b"".join(lines)
    return body + encoded({"end": len(lines), "sha256": hashlib.sha256(body).hexdigest()})


def _opened(data: bytes) -> Iterator[dict[str, Any]]:
    """The lines before the end line, which must fit them. The first has the format."""
    if not data.endswith(b"\n"):
        raise Malformed("it is cut")
    cut = data.rfind(b"\n", 0, len(data) - 1) + 1
    body, end = data[:cut], decoded(data[cut:])
    if end.get("sha256") != hashlib.sha256(body).hexdigest():
        raise Malformed("its hash is not that of its lines")
    lines = body.split(b"\n")[:-1]
    if end.get("end") != len(lines) or not lines:
        raise Malformed("lines are missing")
    header = decoded(lines[0])
    if header.get("format") != FORMAT:
        raise Malformed(f"format {str(header.get('format'))[:20]}, this version reads {FORMAT}")
    yield header
    for line in lines[1:]:
        yield decoded(line)


def _blob_of(fields: Any) -> tuple[str, Blob]:
    try:
        sha256, offset, stored, size, extents = fields
        pairs = tuple((_whole(start), _whole(length)) for start, length in extents)
        blob = Blob(_whole(offset), _whole(stored), _whole(size), pairs)
    except (TypeError, ValueError):
        raise Malformed("a blob is not what it must be") from None
    end = 0
    for start, length in pairs:
        if start < end:
            raise Malformed("a blob's parts overlap")
        end = start + length
    if not is_sha256(_text(sha256)) or end > blob.size or blob.stored != (sum(n for _, n in pairs) or blob.stored):
        raise Malformed("a blob is not what it must be")
    return sha256, blob


def _output_of(fields: Any) -> SavedOutput:
    try:
        kind, name, command, exit_code, sha256 = fields
        return SavedOutput(_text(kind), _text(name), _text(command), _whole(exit_code), _text(sha256))
    except (TypeError, ValueError):
        raise Malformed("an output is not what it must be") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed("a text is missing")
    return value


def _path(value: Any) -> str:
    text = _text(value)
    if not text.startswith("/") or "\0" in text or ".." in text.split("/"):
        raise Malformed("a path is not absolute")
    return text


def _whole(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise Malformed("a number is missing")
    return value
