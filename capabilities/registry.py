"""What a tool is, and the one place that knows them all.

A tool's arguments are checked against its schema before the handler sees them; an unknown or malformed argument
is an error that names it, for a model to read and mend. Hints are derived from the highest level that the
handler can run, so that they cannot disagree with what the tool does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guard.errors import UsageError
from guard.types import Level

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

JSON = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Hints:
    """The four annotations of the Model Context Protocol (schema 2025-06-18, ToolAnnotations)."""

    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool


def hints_of(level: Level, *, idempotent: bool = False, open_world: bool = False) -> Hints:
    """The hints of a tool whose handler can run at most `level`."""
    return Hints(
        read_only=level == Level.R0,
        destructive=level >= Level.R2,
        idempotent=idempotent or level == Level.R0,
        open_world=open_world,
    )


@dataclass(frozen=True, slots=True)
class Tool:
    """One capability. `run(arguments)` gets arguments that fit `parameters` and returns a JSON object."""

    name: str
    description: str
    parameters: JSON
    """A JSON Schema of type object with `additionalProperties: false`."""
    hints: Hints
    run: Callable[[JSON], JSON]
    result: JSON | None = None
    """JSON Schema of what `run` returns."""


def parameters(required: Mapping[str, JSON], optional: Mapping[str, JSON] | None = None) -> JSON:
    """The schema of a tool's arguments: the required ones first, then the rest, and nothing else."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


class BadArguments(UsageError):
    """A tool was called with arguments that do not fit its schema."""

    code = "usage.arguments"


class UnknownTool(UsageError):
    """There is no tool of that name."""

    code = "usage.tool"


class Registry:
    """The tools of one shell, by name, in the order in which they are shown."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools are named {tool.name}")
            if tool.parameters.get("additionalProperties") is not False:
                raise ValueError(f"{tool.name} would take unknown arguments")
            self._tools[tool.name] = tool

    def __iter__(self) -> Any:
        return iter(self._tools.values())

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def tool(self, name: str) -> Tool:
        """The tool of that name. Raises UnknownTool, with the names that exist."""
        try:
            return self._tools[name]
        except KeyError:
            raise UnknownTool(
                f"there is no tool {repr(name)[:80]}", hint=f"the tools are {', '.join(self._tools)}"
            ) from None

    def call(self, name: str, arguments: object) -> JSON:
        """Checks the arguments and runs the tool.

        Raises:
            UnknownTool, BadArguments: nothing was run.
            GuardError: what the handler raises.
        """
        tool = self.tool(name)
        return tool.run(checked(tool, arguments))


def checked(tool: Tool, arguments: object) -> JSON:
    """The arguments, if they fit the tool's schema. Raises BadArguments."""
    return fitting(tool.name, tool.parameters, arguments)


def fitting(name: str, schema: JSON, arguments: object) -> JSON:
    """The arguments, if they fit what `parameters` made.

    Raises:
        BadArguments: not an object, an unknown or missing name, or a value of the wrong kind; names which.
    """
    usage = _usage(name, schema)
    if not isinstance(arguments, dict):
        kind = "null" if arguments is None else type(arguments).__name__
        raise BadArguments(f"{name} takes an object of arguments, not {kind}", hint=usage)
    known = schema["properties"]
    unknown = [str(one) for one in arguments if one not in known]
    if unknown:
        raise BadArguments(f"{name} does not know {', '.join(repr(one)[:60] for one in sorted(unknown))}", hint=usage)
    missing = [one for one in schema["required"] if one not in arguments]
    if missing:
        raise BadArguments(f"{name} needs {', '.join(missing)}", hint=usage)
    if not arguments:
        return arguments
    if all(_plainly_fits(known[name], value) for name, value in arguments.items()):
        return arguments
    from jsonschema import Draft202012Validator

    faults = sorted(Draft202012Validator(schema).iter_errors(arguments), key=lambda fault: fault.json_path)
    if faults:
        where = faults[0].json_path.removeprefix("$.")
        raise BadArguments(f"{name}: {where}: {faults[0].message[:200]}", hint=usage)
    return arguments


def _plainly_fits(schema: JSON, value: object) -> bool:
    """Whether a single value fits for sure. False says nothing: then jsonschema is asked, which has the last word.

    The library takes 40 ms of processor time to load, a fifth of a short question, and most calls are one command or
    one path. Its own answers are the measure: tests hold every yes given here against it.
    """
    wanted = {**schema}
    wanted.pop("description", None)
    match wanted.pop("type", None):
        case "string" if isinstance(value, str):
            pattern = wanted.pop("pattern", "")
            fits = wanted.pop("minLength", 0) <= len(value) <= wanted.pop("maxLength", len(value))
            return not wanted and fits and re.search(pattern, value) is not None
        case "integer" | "number" if type(value) is int:
            return wanted.pop("minimum", value) <= value <= wanted.pop("maximum", value) and not wanted
        case "boolean":
            return isinstance(value, bool) and not wanted
        case _:
            return False


def _usage(name: str, schema: JSON) -> str:
    required = schema["required"]
    optional = [one for one in schema["properties"] if one not in required]
    shown = ", ".join(required) + (f" [{', '.join(optional)}]" if optional else "")
    return f"{name}{{{shown}}}"
