"""Tool calls that a small model printed as text instead of making them. Pure.

They are read as calls only when nothing else stands in the text, each names a tool, its arguments fit, and the block is
not one that the model has read somewhere: quoting a file or an output never runs what stands in it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.messages import Result, User
from agent.providers import validate
from capabilities.registry import checked
from guard.errors import UsageError

if TYPE_CHECKING:
    from agent.providers.base import Sent

LONGEST = validate.ARGUMENTS_CHARS
"""Longer texts are not looked at."""
DRESSES = 2
"""A fence around tags is the most that was seen; more is no call."""

_FENCED = re.compile(r"```[\w-]{0,20}[ \t]*\n(.*?)\n?```", re.DOTALL)
_TAGGED = re.compile(r"<(tool_call|function_call|tool)>(.*?)</\1>", re.DOTALL)
_OPEN_TAGGED = re.compile(r"<(tool_call|function_call)>((?:(?!</).)*)", re.DOTALL)
_FUNCTION = re.compile(r"<function=([\w.-]{1,128})>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([\w.-]{1,128})>\n?(.*?)\n?</parameter>", re.DOTALL)
_BLANKS = re.compile(r"\s*")
_MARKS = ("<tool_call>", "<function_call>", "<function=", "[TOOL_CALLS]", "<|python_tag|>")
_NAMES = ("arguments", "parameters", "args", "input")
_BESIDE = {"name", "id", "type", *_NAMES}
_LAID_OUT = re.compile(r"\\[nrt]|[\s\\]")


@dataclass(frozen=True, slots=True)
class Found:
    """What stands in a text instead of calls."""

    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    """Names and arguments."""
    problem: str = ""
    """Why it is not used."""


class _NoCall(ValueError):
    """It is not of that form."""


def calls_in(text: str, sent: Sent) -> Found | None:
    """The calls that a text consists of; None when it is just text."""
    stripped = text.strip()
    if not sent.tools or not stripped or len(stripped) > LONGEST:
        return None
    try:
        blocks = _blocks(stripped)
    except _NoCall:
        inside = any(mark in stripped for mark in _MARKS)
        return Found(problem="other words stand around it, or it is not whole") if inside else None
    return _judged(blocks, stripped, sent)


def _judged(blocks: list[tuple[str, Any]], text: str, sent: Sent) -> Found | None:
    tools = {tool.name: tool for tool in sent.tools}
    calls = []
    for name, given in blocks:
        tool = tools.get(name)
        if tool is None:
            if any(mark in text for mark in _MARKS) or _looks_meant(text):
                return Found(problem=f"there is no tool {repr(name)[:80]}")
            return None
        fitting, fault = validate.given_arguments(given)
        if not fault:
            try:
                checked(tool, fitting)
            except UsageError as misfit:
                fault = misfit.message
        if fault:
            return Found(problem=fault)
        calls.append((name, fitting))
    if _was_read(text, sent):
        return Found(problem="it stands in what the model has read")
    return Found(tuple(calls))


def _blocks(text: str, dresses: int = DRESSES) -> list[tuple[str, Any]]:
    """Names and arguments of the calls that make up the whole text. Raises _NoCall."""
    if dresses and (fenced := _FENCED.fullmatch(text)):
        return _blocks(fenced[1].strip(), dresses - 1)
    for mark in ("[TOOL_CALLS]", "<|python_tag|>"):
        if text.startswith(mark):
            return _from_json(text.removeprefix(mark).removesuffix("<|eom_id|>").strip())
    if text.startswith("<function="):
        return _each(_FUNCTION, text, lambda found: [(found[1], _function_arguments(found[2].strip()))])
    if dresses and text.startswith("<"):
        # Some servers eat the tag that ends the text.
        pattern = _TAGGED if "</tool" in text or "</function_call" in text else _OPEN_TAGGED
        return _each(pattern, text, lambda found: _blocks(found[2].strip(), dresses - 1))
    return _from_json(text)


def _each(pattern: re.Pattern[str], text: str, read: Any) -> list[tuple[str, Any]]:
    """What `read` makes of each block, if only blanks stand around them. Linear: each is tried in one place."""
    found: list[tuple[str, Any]] = []
    at = 0
    while at < len(text):
        block = pattern.match(text, at)
        if block is None:
            raise _NoCall
        found += read(block)
        at = _past_blanks(text, block.end())
    if not found:
        raise _NoCall
    return found


def _past_blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    return blanks.end() if blanks else at


def _from_json(text: str) -> list[tuple[str, Any]]:
    if not text.startswith(("{", "[")):
        raise _NoCall
    try:
        value = validate.parsed(text)
    except validate.Unreadable:
        raise _NoCall from None
    rows = value if isinstance(value, list) else [value]
    if not rows:
        raise _NoCall
    return [_call(row) for row in rows]


def _call(row: Any) -> tuple[str, Any]:
    if not isinstance(row, dict):
        raise _NoCall
    if row.get("type") == "function" and isinstance(row.get("function"), dict):
        row = row["function"]
    under = [name for name in _NAMES if name in row]
    if not isinstance(row.get("name"), str) or len(under) != 1 or not _BESIDE.issuperset(row):
        raise _NoCall
    return row["name"], row[under[0]]


def _function_arguments(inner: str) -> Any:
    if not inner:
        return {}
    if inner.startswith("{"):
        return inner
    given: dict[str, Any] = {}

    def read(found: re.Match[str]) -> list[tuple[str, Any]]:
        given[found[1]] = _plain_value(found[2])
        return [(found[1], None)]

    _each(_PARAMETER, inner, read)
    return given


def _plain_value(text: str) -> Any:
    """A value without quotes: numbers and true or false are those, everything else is text."""
    if re.fullmatch(r"-?\d{1,15}|true|false", text):
        return json.loads(text) if not re.match(r"-?0\d", text) else text
    return text


def _looks_meant(text: str) -> bool:
    return re.search(r'"name"\s*:', text) is not None and re.search(r'"(?:arguments|parameters)"\s*:', text) is not None


def _was_read(text: str, sent: Sent) -> bool:
    """Whether the block stands in something that came from outside, however it is quoted there."""
    cores = {_LAID_OUT.sub("", core) for core in _cores(text)}
    for message in sent.messages:
        texts: tuple[str, ...] = ()
        if isinstance(message, User):
            texts = (message.text, *message.attachments)
        elif isinstance(message, Result):
            texts = (message.text,)
        for one in texts:
            read = _LAID_OUT.sub("", one)
            if any(core in read for core in cores):
                return True
    return False


def _cores(text: str) -> list[str]:
    """The blocks without fence and tags, for the same call may be quoted in another dress."""
    text = fenced[1].strip() if (fenced := _FENCED.fullmatch(text)) else text
    return [found[2] for found in _TAGGED.finditer(text)] or [text]
