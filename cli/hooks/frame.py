"""Reads what a host says about one tool call: a JSON object on standard input, read whole and through the C scanner.

On the hot path: `json` costs more to import than everything else here.
"""

import os

from guard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_BYTES = 32 << 20
"""A frame is at most this long. It holds the whole new text of a file when the host's write tool is called."""


class Frame:
    """One tool call, as the host is about to make it."""

    __slots__ = ("event", "tool", "input", "cwd")
    event: str
    """The hook event's name, "" when the host does not say."""
    tool: str
    input: "dict[str, Any]"
    """The tool's arguments as the model gave them."""
    cwd: str
    """The host's current folder; absolute."""

    def __init__(self, event: str, tool: str, input: "dict[str, Any]", cwd: str) -> None:
        self.event = event
        self.tool = tool
        self.input = input
        self.cwd = cwd


def read_frame(fd: int = 0) -> Frame:
    """The call that stands on standard input, read to its end.

    Raises:
        UsageError: it is no JSON object, or not one that describes a tool call.
        OSError: it cannot be read.
    """
    parts, size = [], 0
    while part := os.read(fd, 1 << 16):
        parts.append(part)
        size += len(part)
        if size > MAX_BYTES:
            raise _unreadable(f"it is longer than {MAX_BYTES >> 20} MiB")
    return frame_of(b"".join(parts))


def frame_of(data: bytes) -> Frame:
    """The call that these bytes describe. Raises UsageError."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(f"byte {error.start} is not UTF-8") from None
    value = json_value(text)
    if not isinstance(value, dict):
        raise _unreadable("it is not an object")
    tool, given, cwd, event = (value.get(name) for name in ("tool_name", "tool_input", "cwd", "hook_event_name"))
    if not isinstance(tool, str) or not tool:
        raise _unreadable("it names no tool")
    if not isinstance(given, dict):
        raise _unreadable("the tool's input is not an object")
    if not isinstance(cwd, str) or not cwd.startswith("/"):
        raise _unreadable("it names no absolute current folder")
    return Frame(event if isinstance(event, str) else "", tool, given, cwd)


class _Strict:
    """The settings that the C scanner reads off its argument; those of `json.loads`, but no NaN or Infinity."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int

    @staticmethod
    def parse_constant(name: str) -> float:
        raise ValueError(f"{name} is no JSON")


def json_value(text: str) -> "Any":
    """The value of a JSON text. Raises UsageError for anything else, however deep or long."""
    text = text.strip(" \t\r\n")
    try:
        from _json import make_scanner
    except ImportError:  # another Python implementation
        import json

        try:
            return json.loads(text, parse_constant=_Strict.parse_constant)
        except (ValueError, RecursionError) as error:
            raise _unreadable(f"it is not JSON ({type(error).__name__})") from None
    try:
        value, end = make_scanner(_Strict)(text, 0)  # type: ignore[arg-type]
    # SystemError: the scanner takes its own error's class from json.decoder, and has none where nobody loaded that.
    except (StopIteration, ValueError, RecursionError, SystemError) as error:
        raise _unreadable(f"it is not JSON ({type(error).__name__})") from None
    if end != len(text):
        raise _unreadable("something follows the object")
    return value


def _unreadable(why: str) -> UsageError:
    return UsageError(f"what the host says cannot be read: {why}", hint="docs/hook.md")
