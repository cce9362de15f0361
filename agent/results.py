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

FIRST = ("status", "exit_code", "execution", "level", "decision", "request", "because", "reasons", "effects")
"""Facts that stand first, where they are."""

_JOINTS = 100
"""Characters for the names of texts and for the line that says what was cut out of one."""
_NOISE = {
    *("format", "opaque", "target", "unlimited", "undecodable_bytes", "profile", "seq", "boot", "pid", "pid_start"),
    *("uid", "command_hmac", "created_boot", "created_boot_s", "environment", "effects_total", "call_id"),
}
"""What a model cannot act on."""
_OF_JUDGEMENT = {
    *("reasons", "effects", "because", "snapshot_plan", "reversible", "forceable", "decision", "ambient"),
}
_OF_RUNS = {"recorded", "duration_ms", "at", "enforced", "masked"}
_NOT_RUN = (Status.NEEDS_STAMP, Status.REFUSED, Status.SNAPSHOT_FAILED)


def result_text(answer: Mapping[str, Any]) -> str:
    """The answer of a tool in at most MOST_CHARACTERS characters."""
    texts = {name: answer[name].rstrip("\n") for name in TEXTS if isinstance(answer.get(name), str) and answer[name]}
    facts = facts_of({name: value for name, value in answer.items() if name not in texts})
    facts = fitted(facts, budget_bytes=MOST_CHARACTERS)
    room = MOST_CHARACTERS - len(json_text(facts)) - _JOINTS
    # The shortest first: what it leaves over belongs to the others.
    for left, name in zip(range(len(texts), 0, -1), sorted(texts, key=lambda name: len(texts[name])), strict=True):
        texts[name] = cut_text(texts[name], max(room // left - _JOINTS, _JOINTS))
        room -= len(texts[name])
    if len(texts) > 1:
        facts |= {f"{name}_characters": len(text) for name, text in texts.items()}
    named = (f"{name}:\n{text}" if len(texts) > 1 or name == "stderr" else text for name, text in texts.items())
    return "\n".join((json_text(facts), *named))


def facts_of(answer: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that say something: judgement of what did not run, circumstances of what did, nothing empty."""
    is_run = "execution" in answer or "status" in answer
    not_run = not is_run or answer.get("status") in _NOT_RUN
    left_out = set(_NOISE)
    if not_run:
        left_out |= _OF_RUNS
    else:
        # `because` in words is an answer of its own: why nobody approved.
        left_out |= _OF_JUDGEMENT - ({"because"} if isinstance(answer.get("because"), str) else set())
        if answer.get("level") == "R0":
            left_out.add("level")
        if answer.get("enforced") != "none":
            left_out.add("enforced")
        if answer.get("recorded", True):
            left_out.add("recorded")
        if answer.get("interference") is not None:
            left_out.add("masked")  # what it ran into is told by name
    if is_run:
        left_out |= {"decision", "forceable"}
    if str(answer.get("next") or "").startswith("less "):
        left_out.add("next")  # a line for a person; a model has `read` and the file's name
    names = [*(name for name in FIRST if name in answer), *(name for name in answer if name not in FIRST)]
    facts = {name: _said(name, answer[name]) for name in names if name not in left_out}
    return {name: value for name, value in facts.items() if name == "recorded" or _says_something(value)}


def _said(name: str, value: Any) -> Any:
    """One fact in as few words as it takes."""
    if name == "because" and isinstance(value, dict):
        return value.get("text", "")
    if name == "reasons":
        return [reason["text"] for reason in value]
    if name in ("effects", "snapshot_plan"):
        return [f"{one['kind']} {one['object']}".strip() if isinstance(one, dict) else one for one in value]
    if isinstance(value, dict):
        said = {inner: _said(inner, one) for inner, one in value.items() if inner not in _NOISE}
        return {inner: one for inner, one in said.items() if _says_something(one)}
    if isinstance(value, list):
        return [_said("", one) for one in value]
    return value


def _says_something(value: Any) -> bool:
    return value is not False and value not in (None, "", [], {})
