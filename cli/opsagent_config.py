"""`opsagent config show|path|check`: what counts here, and which file or variable said it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent.brains import choice
from agent.brains.entries import SETTINGS, Entry
from agent.brains.keys import source_of
from cli import brains_config, config
from cli.hooks.settings import project_writes
from cli.mcp_config import McpSettings
from cli.options import Option, Verb
from cli.report import line, safe, write
from cli.toml_lines import lines_of
from guard.errors import GuardError, UsageError
from guard.keeping import FOREVER
from guard.redact import Redactor
from guard.render import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.options import Parsed
    from cli.toml_lines import Place

VERB = Verb(
    "config",
    "cli.opsagent_config",
    "show what counts here and where it was said, name the file, or check it",
    usage="show | path | check",
    options=(
        Option("origin", "with show: the file and line, or the variable, that said it"),
        Option("json", "print one JSON object"),
    ),
    text="""
`show` lists every setting with its value; secrets are never shown. `path` names your own file, which need not exist.
`check` reads all files and says what of them is not used. docs/config.md tells the settings.""",
    codes="0 done, or nothing wrong · 2 usage, or something in a file is not used",
)

BUILT_IN = choice.BUILT_IN


@dataclass(frozen=True, slots=True)
class Row:
    """One setting as it counts."""

    name: str
    value: Any
    origins: tuple[str, ...]
    """`FILE:LINE`, `FILE`, the name of a variable, or `built in`."""


def main(parsed: Parsed) -> int:
    """Runs one of the three."""
    if parsed.words == ["show"]:
        return _show(origin=parsed.flag("origin"), as_json=parsed.flag("json"))
    if parsed.words == ["path"]:
        return _path(as_json=parsed.flag("json"))
    if parsed.words == ["check"]:
        return _check(as_json=parsed.flag("json"))
    raise UsageError("say show, path or check", hint=parsed.help_line())


def _path(*, as_json: bool) -> int:
    places = brains_config.places()
    own = os.path.join(config.folders()[-1], "config.toml")
    if as_json:
        files = [{"path": path, "there": os.path.lexists(path)} for path in places]
        line({"format": 1, "path": own, "files": files})
    else:
        write(f"{safe(own)}\n")
    return 0


_NAMES_ONLY = "env.pass"
"""A list of names of variables, whose own name looks like that of a password."""


def _show(*, origin: bool, as_json: bool) -> int:
    settings = config.load()
    redact = Redactor().text
    problems = list(settings.problems)
    try:
        brains = brains_config.load(redact)
    except GuardError as error:
        problems.append(error.message)
        brains = choice.NOTHING
    rows = list(_rows(settings, brains, redact, problems))
    if as_json:
        shown = [{"name": row.name, "value": _clean(row.value, redact), "origin": list(row.origins)} for row in rows]
        files = list(settings.files)
        line({"format": 1, "settings": shown, "files": files, "problems": [redact(text) for text in problems]})
        return 0
    for row in rows:
        tail = f"   # {', '.join(row.origins)}" if origin else ""
        setting = f"{row.name} = {_worded(_clean(row.value, redact))}"
        write((visible(setting) if row.name == _NAMES_ONLY else safe(setting)) + safe(tail) + "\n")
    _complain(problems)
    return 0


def _check(*, as_json: bool) -> int:
    settings = config.load()
    redact = Redactor().text
    problems = list(settings.problems)
    try:
        brains = brains_config.load(redact)
        choice.entries(brains, os.environ, redact=redact)
        choice.chain(brains, os.environ, redact=redact)
    except GuardError as error:
        if not any(error.message in problem for problem in problems):
            problems.append(error.message)
    _hook_setting(problems)
    files = list(settings.files)
    if as_json:
        line({"format": 1, "ok": not problems, "files": files, "problems": [redact(text) for text in problems]})
    else:
        # A mistake is one of them all: what one file leaves out, another may name.
        write("".join(f"{'read' if problems else 'ok'}  {safe(path)}\n" for path in files))
        if not files and not problems:
            write("there is no configuration file; the built-in settings hold\n")
        _complain(problems)
    return 2 if problems else 0


def _complain(problems: list[str]) -> None:
    write("".join(f"opsagent: {safe(problem)}\n" for problem in problems), to_stderr=True)


def _rows(settings: config.Settings, brains: choice.Configured, redact: Any, problems: list[str]) -> Iterator[Row]:
    at = {path: _lines(path) for path in brains_config.places()}
    used = {path: lines for path, lines in at.items() if path in settings.files}
    yield Row("policy.mode", str(settings.mode), _mode_origin(settings, used))
    for key in ("peers", "contexts", "trusted_bin"):
        yield Row(f"policy.{key}", list(getattr(settings, key)), _origins(used, ("policy", key)))
    yield Row("env.pass", list(settings.env), _origins(used, ("env", "pass")))
    keeping = settings.keeping or FOREVER
    yield Row("pending.notify", list(keeping.notify), _origins(used, ("pending", "notify"))[-1:])
    yield Row("approve.signer", keeping.signer, _origins(used, ("approve", "signer"))[:1])
    yield Row("approve.key", keeping.signing_key, _origins(used, ("approve", "key"))[-1:])
    for key in ("keep_days", "keep_mb"):
        yield Row(f"log.{key}", getattr(keeping, key), _origins(used, ("log", key)))
    yield Row("sessions.keep_days", keeping.session_days, _origins(used, ("sessions", "keep_days")))
    mcp = settings.mcp or McpSettings()
    for key in ("approval", "share_outputs", "edits"):
        yield Row(f"mcp.{key}", getattr(mcp, key), _origins(used, ("mcp", key)))
    yield Row("hook.project_writes", _hook_setting(problems), _origins(used, ("hook", "project_writes"))[-1:])
    try:
        links = choice.chain(brains, os.environ, redact=redact)
        entries = choice.entries(brains, os.environ, redact=redact)
    except GuardError as error:
        problems.append(error.message)
        return
    yield Row("brains.order", [link.name for link in links], (_order_origin(links, brains, at),))
    for entry in entries.values():
        if entry.origin != BUILT_IN or entry in links:
            yield from _entry_rows(entry, at)


def _entry_rows(entry: Entry, at: dict[str, dict[Place, int]]) -> Iterator[Row]:
    default = Entry("", "", "")
    lines = at.get(entry.origin, {})
    for setting in SETTINGS:
        value = getattr(entry, setting)
        place = ("brains", entry.name, setting)
        if setting in entry.origins:
            origin = entry.origins[setting]
        elif place in lines:
            origin = f"{entry.origin}:{lines[place]}"
        elif value == getattr(default, setting):
            continue
        else:
            origin = BUILT_IN
        shown = list(value) if isinstance(value, tuple) else value
        yield Row(f"brains.{entry.name}.{setting}", shown, (origin,))
    set_ = "is set" if os.environ.get(entry.key_env) else "is not set"
    yield Row(
        f"brains.{entry.name}.(key)", f"{source_of(entry)}{f', which {set_}' if entry.key_env else ''}", (entry.origin,)
    )


def _hook_setting(problems: list[str]) -> str:
    """The hook's own setting. What is wrong with it is added, unless its file is in the problems for something else."""
    writes, why = project_writes()
    if why and not any(why.partition(" cannot be used")[0] in problem for problem in problems):
        problems.append(f"[hook] project_writes: {why}")
    return writes


def _mode_origin(settings: config.Settings, used: dict[str, dict[Place, int]]) -> tuple[str, ...]:
    """Of several files that name a mode, the first that names the strictest."""
    for path, lines in used.items():
        if ("policy", "mode") in lines and brains_config.table_of(path)["policy"]["mode"] == settings.mode:
            return (f"{path}:{lines[('policy', 'mode')]}",)
    return (BUILT_IN,)


def _origins(used: dict[str, dict[Place, int]], place: Place) -> tuple[str, ...]:
    found = tuple(f"{path}:{lines[place]}" for path, lines in used.items() if place in lines)
    return found or (BUILT_IN,)


def _order_origin(links: tuple[choice.Link, ...], brains: choice.Configured, at: dict[str, dict[Place, int]]) -> str:
    if path := brains.origins.get("order"):
        return f"{path}:{at[path].get(('brains', 'order'), 0)}"
    first = links[0]
    return choice.ENVIRONMENT if isinstance(first, Entry) and first.origin == choice.ENVIRONMENT else BUILT_IN


def _lines(path: str) -> dict[Place, int]:
    try:
        return lines_of(config.read_safely(path).decode("utf-8", "replace"))
    except (OSError, GuardError):
        return {}  # said elsewhere


def _clean(value: Any, redact: Any) -> Any:
    if isinstance(value, list):
        return [_clean(one, redact) for one in value]
    return redact(value) if isinstance(value, str) else value


def _worded(value: Any) -> str:
    """As TOML would have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(_worded(one) for one in value) + "]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}" if isinstance(value, float) else str(value)
