"""What a tool answered, as the model reads it: one line of facts, then the text itself. Pure.

The facts come first because what follows is somebody else's: a line in an output that looks like facts is not the
first one. Empty fields, and what a model cannot act on, are left out; a text over the limit keeps head and tail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capabilities.bounded import cut_text, fitted, json_text
from guard.types import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_CHARACTERS = 30_000
"""Of one result. What is longer lies in the saved output that the facts name."""

TEXTS = ("stdout", "stderr", "content", "output", "answer")
"""Fields that hold text as somebody else wrote it, in the order in which they are shown."""

_ALWAYS_LEFT_OUT = frozenset(
    ("format", "opaque", "ambient", "target", "enforced", "unlimited", "forceable", "decision", "undecodable_bytes")
)
_FOR_THOSE_NOT_RUN = frozenset(("reasons", "effects", "because", "snapshot_plan", "reversible"))
_NOT_RUN = (Status.NEEDS_STAMP, Status.REFUSED, Status.SNAPSHOT_FAILED)


def result_text(answer: Mapping[str, Any]) -> str:
    """The answer of a tool in at most MOST_CHARACTERS characters."""
    texts = {name: answer[name] for name in TEXTS if isinstance(answer.get(name), str) and answer[name]}
    facts = facts_of({name: value for name, value in answer.items() if name not in texts})
    if len(texts) > 1:
        facts |= {f"{name}_characters": len(text) for name, text in texts.items()}
    line = json_text(fitted(facts, budget_bytes=MOST_CHARACTERS))
    room = MOST_CHARACTERS - len(line)
    parts = [line]
    for number, (name, text) in enumerate(texts.items()):
        # What a short text leaves over belongs to the others.
        share = room // (len(texts) - number)
        shown = cut_text(text.rstrip("\n"), max(share, 200))
        parts.append(f"{name}:\n{shown}" if len(texts) > 1 or name == "stderr" else shown)
        room -= len(shown)
    return "\n".join(parts)


def facts_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say something: no empty ones, reasons only for what did not run."""
    judged_only = "execution" not in answer and "status" not in answer
    ran = not judged_only and answer.get("status") not in _NOT_RUN
    facts: dict[str, Any] = {}
    for name, value in answer.items():
        if name in _ALWAYS_LEFT_OUT and not (judged_only and name in ("decision", "ambient", "forceable")):
            continue
        if ran and name in _FOR_THOSE_NOT_RUN and not isinstance(value, str):
            continue
        if value in (None, "", [], {}) or (name in ("recorded", "truncated") and value is (name == "recorded")):
            continue
        if name == "reasons":
            value = [reason["text"] for reason in value]
        elif name in ("effects", "snapshot_plan"):
            value = [f"{one['kind']} {one['object']}".strip() if isinstance(one, dict) else one for one in value]
        elif name == "because" and isinstance(value, dict):
            value = value.get("text", "")
        facts[name] = value
    if answer.get("enforced") == "none" and ran:
        facts["enforced"] = "none"
    return facts
