"""What a model API sent, reduced to what the rest of the program can rely on: depth, size, types, characters. Pure.

Nothing here raises on a model's account but `Unreadable`, whose words can be shown to the model.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

DEPTH = 64
"""Objects and lists within each other. Arguments of our tools need 3; a parser's stack gives up at about 1,000."""
ARGUMENTS_CHARS = 1024 * 1024
"""Of one call: more than the longest file that `write` takes."""
NAME_CHARS = 128
ID = re.compile(r"[\x21-\x7e]{1,128}")

# Possessive, and content with a text that never ends: linear in every case.
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = re.compile(r"[\[\]{}]")
_SURROGATE = re.compile("[\ud800-\udfff]")


class Unreadable(ValueError):
    """A text that is no JSON, or none that is taken; the words say why."""


def parsed(text: str) -> Any:
    """The JSON value of a text.

    Raises:
        Unreadable: no JSON, deeper than DEPTH, or a number that is none (NaN, Infinity, 1e999, 5,000 digits).
    """
    if depth_of_text(text) > DEPTH:
        raise Unreadable(f"it is nested deeper than {DEPTH} levels")
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as fault:
        raise Unreadable(f"it is no JSON: {fault.msg} at character {fault.pos}") from None
    except (ValueError, RecursionError) as fault:
        raise Unreadable(
            str(fault) if isinstance(fault, Unreadable) else "it holds a number that is too long"
        ) from None


def depth_of_text(text: str) -> int:
    """How deeply objects and lists are nested in a JSON text, without parsing it; an upper bound where it is flat."""
    most = text.count("[") + text.count("{")
    if most <= DEPTH:
        return most
    depth = deepest = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


def depth_of(value: Any) -> int:
    """How deeply objects and lists are nested in a value."""
    depth, level = 0, [value]
    while level:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        if any(isinstance(one, dict | list) for one in level):
            depth += 1
        level = inner
    return depth


def arguments(given: Any) -> tuple[dict[str, Any], str]:
    """The arguments of a call and "", or {} and why they cannot be used.

    Args:
        given: the JSON text that the model wrote (empty: none), or the value where the API gives one.
    """
    value = given
    if isinstance(given, str):
        if not given.strip():
            return {}, ""
        if len(given) > ARGUMENTS_CHARS:
            return {}, f"the arguments have {len(given):,} characters; {ARGUMENTS_CHARS:,} are the limit"
        try:
            value = parsed(given)
            # Some models write the object as a text within the text.
            if isinstance(value, str) and value.lstrip().startswith("{"):
                value = parsed(value)
        except Unreadable as fault:
            return {}, f"the arguments cannot be read: {fault}"
    elif depth_of(given) > DEPTH:
        return {}, f"the arguments cannot be read: they are nested deeper than {DEPTH} levels"
    if not isinstance(value, dict):
        return {}, f"the arguments are {kind_of(value)}, not an object"
    return {whole(name): _whole_value(one) for name, one in value.items()}, ""


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    if value is None:
        return "null"
    names = {
        bool: "true or false",
        str: "a text",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "no JSON")


def whole(text: str) -> str:
    """The text with halves of characters joined where they fit and replaced where not, so that it can be written."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def count(value: Any) -> int:
    """A number of tokens; 0 for anything else."""
    return value if type(value) is int and 0 <= value < 2**53 else 0


def text_of(value: Any) -> str:
    """The value if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def object_of(value: Any) -> dict[str, Any]:
    """The value if it is an object, else {}."""
    return value if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; [] for anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _whole_value(value: Any) -> Any:
    if isinstance(value, str):
        return whole(value)
    if isinstance(value, dict):
        return {whole(name): _whole_value(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_whole_value(one) for one in value]
    return value


def _no_number(name: str) -> Any:
    raise Unreadable(f"{name} is no number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Unreadable(f"{text[:20]} is too large a number")
    return value


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
