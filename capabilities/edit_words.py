"""A file change as a person is shown it: the file, what becomes of it, and its whole difference. Pure.

Hiding secrets must not hide what would be written: hidden is what the file holds already, and what no program acts on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from acting.edit import words_of
from guard import render
from guard.filechange import text_of
from guard.redact import MASK
from guard.saved import FILE

if TYPE_CHECKING:
    from collections.abc import Callable

    from acting.edit import Edit
    from guard.redact import Redactor
    from guard.saved import Node

_HARMLESS = re.compile(r"[A-Za-z0-9_.,/+=@%^~:-]+")
_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{1,40}-----\n([A-Za-z0-9+/=]{1,80}\n)+-----END [A-Z0-9 ]{1,40}-----\n?")
_HASH_SHOWN = 16


def change_words(edit: Edit, redactor: Redactor) -> tuple[str, bool]:
    """The change in lines, and whether a secret in them is hidden."""
    change, now = edit.change, edit.present.node
    path = render.visible_line(change.path)
    lines = [f"{'change' if now.kind == FILE else 'make'} the file {path}"]
    if change.asked:
        lines.append(f"asked for as {render.visible_line(change.asked)}, which leads there")
    if now.kind == FILE:
        lines.append(f"now:  {_about(now, change.before)}")
    lines.append(f"then: {_about(edit.wanted, change.after)}")
    mask, is_hidden = mask_of(edit, redactor)
    return "\n".join([*lines, "", *words_of(edit, mask)]), is_hidden


def mask_of(edit: Edit, redactor: Redactor) -> tuple[Callable[[str], str], bool]:
    """What hides secrets in both contents, and whether it hides any.

    A new secret that could be code, or that has blanks in it, stays in clear: the person reads what would be written.
    """
    old, new = ("" if edit.is_secret else text_of(edit.present.content)), text_of(edit.content)
    pieces = (*redactor.pieces(old), *redactor.pieces(new))
    is_hidden = bool(pieces) or redactor.text(new) != new or redactor.text(old) != old
    clear = [piece for piece in redactor.pieces(new) if piece not in old and not _may_be_hidden(piece)]
    if not clear:
        return redactor.text, is_hidden
    hidden = sorted({piece for piece in pieces if piece not in clear}, key=len, reverse=True)

    def mask(text: str) -> str:
        for piece in hidden:
            text = text.replace(piece, MASK)
        return text

    return mask, bool(hidden)


def _may_be_hidden(piece: str) -> bool:
    return _HARMLESS.fullmatch(piece) is not None or _KEY.fullmatch(piece) is not None


def _about(node: Node, mark: str) -> str:
    owner = f"owner {node.uid}:{node.gid}, mode {node.mode:04o}"
    return f"{node.size:,} bytes, {owner}, sha256 {mark[:_HASH_SHOWN]}…"
