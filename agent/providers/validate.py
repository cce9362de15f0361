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
ENVELOPE_DEPTH = 100
"""Of what an API sends around them; what lies deeper is cut out before it is parsed."""
NAME_CHARS = 128
ID = re.compile(r"[\x21-\x7e]{1,128}")

# Possessive, and content with a text that never ends: linear in every case.
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")


class Unreadable(ValueError):
    """A text that is no JSON, or none that is taken; the words say why."""


def parsed(text: str) -> Any:
    """The JSON value of a text.

    Raises:
        Unreadable: no JSON, deeper than DEPTH, or a number that is none (NaN, Infinity, 1e999, 5,000 digits).
    """
    return _decoded(_STRICT, text, DEPTH)


def envelope(text: str) -> Any:
    """The same for what an API sends around a model's words: one strange corner does not make the rest unreadable.

    Containers below ENVELOPE_DEPTH are null, and numbers that are none are NO_NUMBER.
    """
    return _decoded(_LENIENT, _shallow(text, ENVELOPE_DEPTH), ENVELOPE_DEPTH + 1)


def _decoded(decoder: json.JSONDecoder, text: str, depth: int) -> Any:
    if depth_of_text(text, depth) > depth:
        raise Unreadable(f"it is nested deeper than {depth} levels")
    try:
        return decoder.decode(text)
    except json.JSONDecodeError as fault:
        raise Unreadable(f"it is no JSON: {fault.msg} at character {fault.pos}") from None
    except (ValueError, RecursionError) as fault:
        raise Unreadable(
            str(fault) if isinstance(fault, Unreadable) else "it holds a number that is too long"
        ) from None


def depth_of_text(text: str, enough: int = DEPTH) -> int:
    """How deeply objects and lists are nested in a JSON text, without parsing it; an upper bound up to `enough`."""
    most = text.count("[") + text.count("{")
    if most <= enough:
        return most
    depth = deepest = 0
    for found in _MARKS.finditer(text):
        if found[0] in ("[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif found[0] in ("]", "}"):
            depth -= 1
    return deepest


def _shallow(text: str, most: int) -> str:
    """The text with `null` for every container that lies deeper than `most`."""
    if text.count("[") + text.count("{") <= most:
        return text
    kept: list[str] = []
    at = depth = opened = 0
    for found in _MARKS.finditer(text):
        if found[0] in ("[", "{"):
            depth += 1
            if depth == most + 1:
                opened = found.start()
        elif found[0] in ("]", "}"):
            if depth == most + 1:
                kept += (text[at:opened], "null")
                at = found.end()
            depth -= 1
    return "".join((*kept, text[at:]))


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


def arguments(text: str) -> tuple[dict[str, Any], str]:
    """The arguments of a call as a model wrote them, and ""; or {} and why they cannot be used. No text: none."""
    if not text.strip():
        return {}, ""
    if len(text) > ARGUMENTS_CHARS:
        return {}, too_many(len(text))
    try:
        value = parsed(text)
        # Some models write the object as a text within the text.
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = parsed(value)
    except Unreadable as fault:
        return {}, f"the arguments cannot be read: {fault}"
    return _object(value)


def given_arguments(value: Any) -> tuple[dict[str, Any], str]:
    """The same of arguments that an API gave as a value."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return arguments(value)
    if depth_of(value) > DEPTH:
        return {}, f"the arguments cannot be read: they are nested deeper than {DEPTH} levels"
    if _holds_no_number(value):
        return {}, "the arguments cannot be read: they hold a number that is none"
    return _object(value)


def too_many(chars: int) -> str:
    """Why arguments of that length are not used."""
    return f"the arguments have {chars:,} characters; {ARGUMENTS_CHARS:,} are the limit"


def _object(value: Any) -> tuple[dict[str, Any], str]:
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


class _NoNumber:
    """What stands for NaN, Infinity and numbers beyond a float's range."""


NO_NUMBER = _NoNumber()


def _finite_or_none(text: str) -> Any:
    value = float(text)
    return value if math.isfinite(value) else NO_NUMBER


def _holds_no_number(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_holds_no_number(one) for one in value.values())
    return any(_holds_no_number(one) for one in value) if isinstance(value, list) else value is NO_NUMBER


_STRICT = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
_LENIENT = json.JSONDecoder(parse_constant=lambda _: NO_NUMBER, parse_float=_finite_or_none)
