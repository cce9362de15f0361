"""What a step of a rollback plan would change, in words for people. Pure."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from guard.lines import lines_of
from guard.metadata import flag_letters
from guard.saved import FILE, SYMLINK

if TYPE_CHECKING:
    from collections.abc import Callable

    from guard.saved import Node, Step

DIFF_BYTES = 256 * 1024
"""Files longer than this are told apart by size and hash: nobody reads more, and difflib takes quadratic time."""

DIFF_LINES = 200
"""Lines of one diff that are shown."""


def difference(step: Step, before: bytes | None, now: bytes | None, redact: Callable[[str], str]) -> str:
    """What a step would change, for a person: a unified diff from now to before, or sizes and hashes. Redacted.

    Args:
        before, now: contents up to `DIFF_BYTES`; None when longer or when there is no file.
    """
    lines = _metadata(step)
    if step.before.meta:
        return redact("\n".join(lines))
    if step.before.kind == step.now.kind == SYMLINK and step.before.link != step.now.link:
        lines.append(f"link: {step.now.link} → {step.before.link}")
    if FILE in (step.before.kind, step.now.kind) and not step.before.same_content(step.now):
        old, new = _text_of(step.now, now), _text_of(step.before, before)
        if old is None or new is None:
            lines.append(f"content: {_content(step.now)} → {_content(step.before)}")
        else:
            # Redacted before it is compared: a secret that spans lines must not be split first.
            lines += _unified(lines_of(redact(old)), lines_of(redact(new)))
    return redact("\n".join(lines))


def _metadata(step: Step) -> list[str]:
    before, now = step.before, step.now
    if before.kind != now.kind:
        return [f"{now.kind} → {before.kind}"]
    lines = []
    if (before.uid, before.gid) != (now.uid, now.gid):
        lines.append(f"owner: {now.uid}:{now.gid} → {before.uid}:{before.gid}")
    if before.mode != now.mode and before.kind != SYMLINK:
        lines.append(f"mode: {now.mode:04o} → {before.mode:04o}")
    for name in sorted(dict(before.xattrs).keys() | dict(now.xattrs).keys()):
        if dict(before.xattrs).get(name) != dict(now.xattrs).get(name):
            lines.append(f"attribute {name} comes back" if name in dict(before.xattrs) else f"attribute {name} goes")
    if before.flags != now.flags:
        lines.append(f"flags: {flag_letters(now.flags)} → {flag_letters(before.flags)}")
    if before.meta:
        if not now.same_inode(before):
            lines.append(f"it is another {now.kind} than the one that was saved")
        elif before.atime_ns >= 0:
            lines.append("times")
        elif before.kind == FILE and (before.size, before.mtime_ns) != (now.size, now.mtime_ns):
            lines.append("its content was written to since, and stays")
        return lines
    if not lines and before.same_content(now) and before.mtime_ns != now.mtime_ns and before.kind == FILE:
        lines.append("modification time")
    return lines


def _text_of(node: Node, data: bytes | None) -> str | None:
    if node.kind != FILE:
        return ""
    if data is None or len(data) > DIFF_BYTES or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _content(node: Node) -> str:
    return f"{node.size:,} bytes, sha256 {node.sha256[:16]}…" if node.kind == FILE else node.kind


def _unified(old: list[str], new: list[str]) -> list[str]:
    lines = list(difflib.unified_diff(old, new, "now", "before", lineterm=""))
    if len(lines) > DIFF_LINES:
        return [*lines[:DIFF_LINES], f"… {len(lines) - DIFF_LINES} more lines"]
    return lines or (["line ends only"] if old or new else [])
