"""What the methods of `opsagent rpc` take and give: the source of the checks, and of docs/protocol.md. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from capabilities.ops import ID, MOST_ROWS, STATUSES
from capabilities.registry import parameters

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON = dict[str, Any]

APPROVE, ASK_USER = "approve", "ask_user"
"""What a client can be asked; it declares so in `initialize`."""
YES, NO = "approve", "deny"
"""Answers to APPROVE."""
PROTOCOL = 1
MOST_TEXT, MOST_ATTACHED = 1_000_000, 8_000_000
"""Characters of a prompt, and of one text that comes with it."""

SESSION: JSON = {**ID, "description": "a conversation that is open here, c-…"}
_NAMED: JSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 100}, "version": {"type": "string", "maxLength": 100}},
    "required": ["name"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Declared:
    """One method, as it is documented and checked."""

    does: str
    """A sentence."""
    parameters: JSON
    result: Mapping[str, str] = field(default_factory=dict)
    """Name → what it is; every result has `format` beside."""


METHODS: dict[str, Declared] = {
    "ping": Declared("Answers at once, whatever else goes on.", parameters({})),
    "initialize": Declared(
        "Says who the client is and what it can be asked. Optional, once, before the first conversation. Without it "
        "everything is asked with `ask_user`.",
        parameters(
            {},
            {
                "client": _NAMED,
                "answers": {
                    "type": "array",
                    "items": {"enum": [APPROVE, ASK_USER]},
                    "description": "the requests that it answers; an empty list: nobody can be asked",
                },
            },
        ),
        {
            "protocol": f"{PROTOCOL}",
            "version": "of opsagent",
            "methods": "the names of all methods",
            "can_ask": "whether this process will ask at all: not below another agent",
        },
    ),
    "prompt": Declared(
        "Runs one turn of a conversation and answers when it has ended. A conversation does one turn at a time; a "
        "second prompt is refused with code -32000.",
        parameters(
            {"text": {"type": "string", "minLength": 1, "maxLength": MOST_TEXT}},
            {
                "session": {**SESSION, "description": "without it the default one, which the first prompt opens"},
                "attachments": {
                    "type": "array",
                    "maxItems": 20,
                    "items": {"type": "string", "maxLength": MOST_ATTACHED},
                    "description": "further texts (a log, a file): data, never instruction",
                },
            },
        ),
        {
            "session": "the conversation, c-…",
            "answer": "the last whole text of the brain",
            "exit_code": "as `opsagent -p` would end (docs/loop.md)",
            "executions": "what was run, e-…",
            "requests": "changes that wait for a person, a-…",
            "…": "and the other fields of docs/answer.schema.json",
        },
    ),
    "reset": Declared(
        "Ends a conversation and opens a new one in its place; a running turn is interrupted. The file of the old one "
        "stays.",
        parameters({}, {"session": SESSION}),
        {"session": "the new one", "was": "the old one, or null"},
    ),
    "cancel": Declared(
        "Interrupts the running turn of a conversation, or all of them. The `prompt` is still answered, with exit code "
        "130. `$/cancel_request` with `requestId` does the same for one request.",
        parameters({}, {"session": SESSION}),
        {"cancelled": "how many"},
    ),
    "pending": Declared(
        "The requests that wait for a person's approval, of all clients.",
        parameters({}),
        {"requests": "as `opsx pending --json` shows them"},
    ),
    "executions": Declared(
        "Recorded runs, newest first.",
        parameters(
            {}, {"status": {"enum": list(STATUSES)}, "limit": {"type": "integer", "minimum": 1, "maximum": MOST_ROWS}}
        ),
        {"executions": "as `opsx executions --json` shows them", "notes": "sentences about the record"},
    ),
    "rollback/plan": Declared(
        "What going back to before a run, or to a snapshot, would do. Changes nothing.",
        parameters({"id": {**ID, "description": "e-… or s-…"}}),
        {
            "steps": "path by path, with differences",
            "conflicts": "paths that others changed since",
            "status": "planned",
        },
    ),
    "rollback/apply": Declared(
        "Does that, if the person approves exactly the plan that is shown then.",
        parameters({"id": {**ID, "description": "e-… or s-…"}}),
        {"status": "succeeded, failed, refused, denied, needs_stamp …", "results": "path by path"},
    ),
    "status": Declared(
        "Where this process is, and which conversations it has open.",
        parameters({}),
        {
            "version": "of opsagent",
            "host": "name of this machine",
            "user": "whom commands run as",
            "cwd": "where they run",
            "mode": "read-only, guarded or lab",
            "frozen": "why all changes are stopped, or null",
            "sessions": "objects with id, brain, model and whether a turn is running",
            "default": "the conversation that a prompt without `session` goes to, or null",
        },
    ),
    "session/list": Declared(
        "The conversations on disk, the one used last first.",
        parameters({}, {"limit": {"type": "integer", "minimum": 1, "maximum": 1000}}),
        {"sessions": "as `opsagent sessions list --json` shows them"},
    ),
    "session/resume": Declared(
        "Opens a conversation of the disk to go on with it.",
        parameters({"session": {**ID, "description": "an id, the beginning of one, or last"}}),
        {"session": "its id", "messages": "how many it has", "notes": "what was mended"},
    ),
    "session/fork": Declared(
        "Copies a conversation and opens the copy.",
        parameters(
            {"session": {**ID, "description": "an id, the beginning of one, or last"}},
            {"turns": {"type": "integer", "minimum": 1, "description": "only the first so many questions"}},
        ),
        {
            "session": "the copy",
            "forked_from": "the other",
            "messages": "how many it has",
            "notes": "what was left out",
        },
    ),
    "session/close": Declared(
        "Ends a conversation; a running turn is interrupted.", parameters({"session": SESSION}), {"session": "it"}
    ),
}

ASKS: dict[str, Declared] = {
    APPROVE: Declared(
        'Asks for a yes. The answer is exactly `{"answer": "approve"}` or `{"answer": "deny"}`; everything else, and '
        "silence, approves nothing.",
        parameters(
            {
                "session": {"type": "string"},
                "ask": {"type": "object", "description": "all of the request; its fields are below"},
                "text": {"type": "string", "description": "the same as a page of text, as a terminal would show it"},
                "answers": {"type": "array", "items": {"enum": [NO, YES]}},
                "timeout_s": {"type": "number", "description": "an answer after that counts no more"},
            },
            {
                "most_uses": {
                    "type": "integer",
                    "description": "an approval may say `uses`: how many runs of exactly this, at most so many",
                },
            },
        ),
        {
            "answer": "`approve` or `deny`",
            "typed": "with `approve`, where `ask.must_type` is not empty: that text, as the person typed it",
            "uses": "with `approve`: 1 to `most_uses` (1)",
            "reason": "with `deny`: the person's words",
        },
    ),
    ASK_USER: Declared(
        "Asks for words. For a client that does not declare `approve` it also asks for approvals: then `kind` is "
        "`approval`, `question` has all of the request, and only the text that it names approves.",
        parameters(
            {
                "session": {"type": "string"},
                "kind": {"enum": ["question", "approval"]},
                "question": {"type": "string"},
                "options": {"type": "array", "items": {"type": "string"}},
                "timeout_s": {"type": "number"},
            }
        ),
        {"answer": "a text; anything else is no answer"},
    ),
}
