"""Changes in a JSON text that leave every other byte as it is, comments included. Pure.

Members and items are put in at the beginning of their container, so that a comment beside the last one stays where it
belongs. Comments (`//`, `/* */`) are read because the hosts read them; trailing commas are not, because they do not.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

MOST_DEPTH = 200
_BLANK = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')

Path = tuple[str, ...]


class NotJson(ValueError):
    """The text is not JSON with comments, or can be read in two ways."""


@dataclass(slots=True)
class Node:
    """A value and where it stands."""

    start: int
    end: int
    """One past the last character."""
    value: Any
    members: dict[str, tuple[int, Node]] = field(default_factory=dict)
    """Of an object: where the key begins, and the value."""
    items: list[Node] = field(default_factory=list)


def parsed(text: str) -> Node:
    """The root. Raises NotJson."""
    at = _after_blank(text, 1 if text.startswith("\ufeff") else 0)
    node = _value(text, at, 0)
    if _after_blank(text, node.end) != len(text):
        raise NotJson(f"something follows the value at character {node.end + 1}")
    return node


def value_of(text: str) -> Any:
    """What the text says; an empty one says `{}`. Raises NotJson."""
    return parsed(text).value if text.strip("\ufeff \t\r\n") else {}


def with_member(text: str, path: Path, value: Any) -> str:
    """The text with `value` at `path`, for what is there; containers that are missing on the way are made.

    Raises:
        NotJson: the text cannot be read, or something on the way is no object.
    """
    if not text.strip("\ufeff \t\r\n"):
        text += "{}\n"
    above, node = _deepest(text, path[:-1])
    if above == len(path) - 1:
        known = node.members.get(path[-1])
        if known is not None:
            style = _Style(text, node, known[0])
            return text[: known[1].start] + style.written(value) + text[known[1].end :]
    for key in reversed(path[above + 1 :]):
        value = {key: value}
    return _put_in(text, node, (path[above], value))


def with_item(text: str, path: Path, value: Any) -> str:
    """The text with `value` in the array at `path`, unless an equal one is there. Raises NotJson."""
    found = at(value_of(text), path)
    if found is None:
        return with_member(text, path, [value])
    if not isinstance(found, list):
        raise NotJson(f"{'.'.join(path)} is not a list")
    return text if value in found else _put_in(text, _deepest(text, path)[1], (None, value))


def without(text: str, path: Path, position: int | None = None) -> str:
    """The text without the member at `path`, or an item of the array there. What is not there is no error."""
    depth, node = _deepest(text, path[:-1])
    if depth != len(path) - 1 or path[-1] not in node.members:
        return text
    key_start, value = node.members[path[-1]]
    if position is None:
        return _cut(text, node, key_start, value.end)
    if not 0 <= position < len(value.items):
        return text
    item = value.items[position]
    return _cut(text, value, item.start, item.end)


def at(value: Any, path: Path) -> Any:
    """What stands at `path`; None when there is nothing."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


# -- reading ------------------------------------------------------------------------------------------------------


def _after_blank(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _value(text: str, start: int, depth: int) -> Node:
    if depth > MOST_DEPTH:
        raise NotJson(f"it is more than {MOST_DEPTH} deep")
    first = text[start : start + 1]
    if first == "{":
        return _object(text, start, depth)
    if first == "[":
        return _array(text, start, depth)
    match = _STRING.match(text, start) or _SCALAR.match(text, start)
    if match is None:
        raise NotJson(f"line {text.count(chr(10), 0, start) + 1} is not JSON")
    try:
        return Node(start, match.end(), json.loads(match[0]))
    except ValueError:
        raise NotJson(f"line {text.count(chr(10), 0, start) + 1} is not JSON") from None


def _object(text: str, start: int, depth: int) -> Node:
    node = Node(start, start, {})
    at, more = _after_blank(text, start + 1), False
    while text[at : at + 1] != "}" or more:
        key = _STRING.match(text, at)
        if key is None:
            raise NotJson(f"line {text.count(chr(10), 0, at) + 1}: a name was expected")
        name = _value(text, at, depth).value
        if name in node.members:
            raise NotJson(f"{name!r} stands twice in one object")
        colon = _after_blank(text, key.end())
        if text[colon : colon + 1] != ":":
            raise NotJson(f"line {text.count(chr(10), 0, colon) + 1}: a colon was expected")
        child = _value(text, _after_blank(text, colon + 1), depth + 1)
        node.members[name] = (at, child)
        node.value[name] = child.value
        at, more = _after_comma(text, child.end, "}")
    node.end = at + 1
    return node


def _array(text: str, start: int, depth: int) -> Node:
    node = Node(start, start, [])
    at, more = _after_blank(text, start + 1), False
    while text[at : at + 1] != "]" or more:
        child = _value(text, at, depth + 1)
        node.items.append(child)
        node.value.append(child.value)
        at, more = _after_comma(text, child.end, "]")
    node.end = at + 1
    return node


def _after_comma(text: str, at: int, closer: str) -> tuple[int, bool]:
    """Where the next member or the closer begins, and whether there was a comma, so that there has to be one more."""
    at = _after_blank(text, at)
    if text[at : at + 1] == ",":
        return _after_blank(text, at + 1), True
    if text[at : at + 1] != closer:
        raise NotJson(f"line {text.count(chr(10), 0, at) + 1}: a comma or {closer} was expected")
    return at, False


def _deepest(text: str, path: Path) -> tuple[int, Node]:
    """How many names of the path are there, and the container in which the next one is missing."""
    node = parsed(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise NotJson(f"{'.'.join(path[:depth]) or 'the whole'} is not an object")
        if key not in node.members:
            return depth, node
        node = node.members[key][1]
    return len(path), node


# -- writing ------------------------------------------------------------------------------------------------------


class _Style:
    """How the lines around a place are written."""

    def __init__(self, text: str, container: Node, first: int | None) -> None:
        self.newline = "\r\n" if "\r\n" in text else "\n"
        outer = _indent_at(text, container.start)
        unit = "  "
        root = re.search(r"\{[^\S\n]*\r?\n([ \t]+)\S", text)
        if root:
            unit = root[1]
        self.outer, self.unit = outer, unit
        self.inner = outer + unit if first is None else _indent_at(text, first)

    def written(self, value: Any) -> str:
        shown = json.dumps(value, indent=self.unit, ensure_ascii=False)
        return shown.replace("\n", self.newline + self.inner)


def _indent_at(text: str, at: int) -> str:
    start = text.rfind("\n", 0, at) + 1
    match = re.match(r"[ \t]*", text[start:at])
    return match[0] if match else ""


def _put_in(text: str, node: Node, entry: tuple[str | None, Any]) -> str:
    """With a member (or an item: no name) before the first one of the container."""
    if not isinstance(node.value, (list if entry[0] is None else dict)):
        raise NotJson("what is there is neither a list nor an object")
    starts = [start for start, _ in node.members.values()] + [item.start for item in node.items]
    first = min(starts, default=None)
    on_a_line = first is not None and "\n" in text[node.start : first]
    style = _Style(text, node, first if on_a_line else None)
    name, value = entry
    shown = style.written(value) if name is None else f"{json.dumps(name, ensure_ascii=False)}: {style.written(value)}"
    put = f"{style.newline}{style.inner}{shown}"
    if first is None:
        put += style.newline + style.outer
    elif on_a_line:
        put += ","
    else:
        put += f",{style.newline}{style.inner}"
    return text[: node.start + 1] + put + text[node.start + 1 :]


def _cut(text: str, container: Node, start: int, end: int) -> str:
    """Without the piece, one comma beside it, and the blanks before it."""
    after = _after_blank(text, end)
    if text[after : after + 1] == ",":
        before = len(text[:start].rstrip(" \t"))
        if text[before - 1 : before] == "\n":
            before = before - 1 - (text[before - 2 : before - 1] == "\r")
            return text[:before] + text[end:after] + text[after + 1 :]
        blank = 1 if text[after + 1 : after + 2] == " " else 0
        return text[:start] + text[end:after] + text[after + 1 + blank :]
    head, inner = text[: container.start + 1], text[container.start + 1 : start]
    comma = _last_comma(inner)
    kept = inner if comma is None else inner[:comma] + inner[comma + 1 :]
    if not kept.strip() and not text[end : container.end - 1].strip():
        return head + text[container.end - 1 :]
    # A comment to the end of its line keeps that end.
    return head + kept.rstrip(" \t") + text[end:] if kept.rstrip(" \t").endswith("\n") else head + kept + text[end:]


def _last_comma(inner: str) -> int | None:
    """The comma between the last two members: the last one that stands in no comment and no text."""
    found, at = None, 0
    while at < len(inner):
        match = _STRING.match(inner, at)
        skipped = match.end() if match else _after_blank(inner, at)
        if skipped > at:
            at = skipped
            continue
        if inner[at] == ",":
            found = at
        at += 1
    return found
