"""Text that somebody else wrote, as a model gets it: named, fenced, and unable to end its fence. Pure.

Command output, files and attachments are data. They stand between a line that names their source and a line that ends
it, and whatever in them looks like such a line is spelled so that it is none.
"""

from __future__ import annotations

import re
from dataclasses import replace

from agent.messages import Message, Result, User
from guard.render import marker

_FENCE = re.compile(r"[<＜﹤](?=[\s/\\]*data\b)", re.IGNORECASE)
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b]{0,4096}\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, cursor
    r"|\x1b[ -/]{0,8}[0-~]"
)
"""ECMA-48 control sequences: they say nothing to a model and cost it tokens."""
_OVERWRITTEN = re.compile(r"[^\r\n]*\r(?!\n|\Z)")
"""What a progress bar wrote over."""
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
"""Controls, direction marks and characters of no width: a person would not see what they hide."""


def plain(text: str) -> str:
    """The text without terminal control, and with everything else that a person would not see spelled out."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text)
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    return _UNSEEN.sub(lambda found: marker(found[0]), text)


def enveloped(source: str, text: str) -> str:
    """The text as data from `source`, in a fence that nothing in it can end."""
    name = re.sub(r"[^\w .:/@,=+-]", "?", source)[:200]
    return f'<data from="{name}">\n{_FENCE.sub("&lt;", plain(text))}\n</data>'


def as_sent(message: Message) -> Message:
    """The message as a model gets it: results and attachments that others wrote are enveloped."""
    if isinstance(message, Result) and message.untrusted:
        source = f"{message.name} {message.execution}".strip()
        return replace(message, text=enveloped(source, message.text))
    if isinstance(message, User) and message.attachments:
        parts = [enveloped(f"attachment {number}", text) for number, text in enumerate(message.attachments, 1)]
        return User("\n\n".join((message.text, *parts)))
    return message
