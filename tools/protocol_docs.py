"""The generated parts of docs/protocol.md: methods, asks, events from their declarations, frames from a recording."""

from __future__ import annotations

import dataclasses
import inspect
import json
from pathlib import Path
from typing import Any

from agent.rpc.schemas import ASKS, METHODS, Declared
from dialogue.confirm import Ask
from dialogue.events import EVENTS

ROOT = Path(__file__).resolve().parent.parent
FRAMES = ROOT / "tests" / "golden" / "rpc" / "frames.jsonl"
SHOWN = 180
"""Characters of a frame."""


def protocol_page() -> str:
    """The page with its parts as the code is now."""
    page = (ROOT / "docs" / "protocol.md").read_text("utf-8")
    parts = {"methods": _declared(METHODS), "asks": _asks(), "events": _events(), "frames": _frames()}
    for name, text in parts.items():
        head, _, rest = page.partition(f"<!-- {name}: ")
        note, _, rest = rest.partition("-->\n")
        _, end, tail = rest.partition(f"<!-- end of {name} -->")
        page = f"{head}<!-- {name}: {note}-->\n\n{text}\n\n{end}{tail}"
    return page


def _declared(methods: dict[str, Declared]) -> str:
    return "\n\n".join(_method(name, one) for name, one in methods.items())


def _method(title: str, one: Declared) -> str:
    rows = [f"### {title}", "", one.does]
    fields = one.parameters["properties"]
    if fields:
        needed = one.parameters["required"]
        rows += ["", "| parameter | | |", "| --- | --- | --- |"]
        rows += [
            f"| `{name}`{'' if name in needed else ' (optional)'} | {_kind(schema)} | {schema.get('description', '')} |"
            for name, schema in fields.items()
        ]
    if one.result:
        rows += ["", "| result | |", "| --- | --- |"]
        rows += [f"| {field if field == '…' else f'`{field}`'} | {text} |" for field, text in one.result.items()]
    return "\n".join(rows)


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " · ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        return f"array of {_kind(schema['items'])}"
    if schema["type"] == "object":
        names = ", ".join(f"`{name}`" for name in schema.get("properties", {}))
        return f"object ({names})" if names else "object"
    limits = ""
    if "maxLength" in schema:
        limits = f" of at most {schema['maxLength']:,} characters"
    elif "maximum" in schema:
        limits = f", {schema['minimum']} to {schema['maximum']}"
    return {"string": "text", "integer": "whole number"}.get(schema["type"], schema["type"]) + limits


def _asks() -> str:
    rows = ["", "", "The fields of `ask`; all of them are always there.", "", "| field | |", "| --- | --- |"]
    rows += [f"| `{name}` | {text} |" for name, text in _documented(Ask).items()]
    return _declared(ASKS) + "\n".join(rows)


def _events() -> str:
    rows = ["| type | when | fields |", "| --- | --- | --- |"]
    for kind in EVENTS:
        names = ", ".join(f"`{field.name}`" for field in dataclasses.fields(kind))
        rows.append(f"| `{kind.type}` | {' '.join((inspect.getdoc(kind) or '').split())} | {names} |")
    return "\n".join(rows)


def _documented(kind: type) -> dict[str, str]:
    """Each field of a dataclass with the text below it in the source."""
    found: dict[str, str] = {}
    lines = inspect.getsource(kind).split("\n")
    fields = {field.name for field in dataclasses.fields(kind)}
    name, text = "", ""
    for line in lines[1:]:
        stripped = line.strip()
        declared = stripped.partition(":")[0]
        if declared in fields and not text:
            name = declared
            found[name] = ""
        elif name and (text or stripped.startswith('"""')):
            text += " " + stripped.replace('"""', "")
            if stripped.endswith('"""') and stripped != '"""':
                found[name], text = text.strip().replace("|", "\\|"), ""
    return found


def _frames() -> str:
    rows = ["```"]
    for line in FRAMES.read_text("utf-8").splitlines():
        frame = json.loads(line)
        (way, message), *_ = frame.items()
        text = json.dumps(message, ensure_ascii=False)
        rows.append(f"{way} {text if len(text) <= SHOWN else text[:SHOWN] + ' …'}")
    return "\n".join([*rows, "```"])
