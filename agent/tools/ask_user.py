"""`ask_user`: a question to the person. The answer is words: it clarifies and approves nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from capabilities.registry import JSON, Tool, hints_of, parameters
from dialogue.confirm import ANSWERED, CANCELLED, DENIED, EXPIRED
from guard.types import Level

if TYPE_CHECKING:
    from agent.asking import Asks

NAME = "ask_user"
TIMEOUT_S = 900.0

_WITHOUT = {
    DENIED: "the person did not want to answer; go on without, or end",
    EXPIRED: f"nobody answered within {TIMEOUT_S / 60:.0f} minutes; nothing was decided",
    CANCELLED: "the turn was interrupted",
}
_NOBODY = "nobody can be asked here: go on with what you can find out by reading, and say what you assumed"


def ask_user_tool(asks: Asks | None) -> Tool:
    """Args: asks: None where no person can be asked."""

    def run(arguments: JSON) -> JSON:
        if asks is None:
            return {"status": "unanswered", "next": _NOBODY}
        answer = asks.question(arguments["question"], arguments.get("options", []), timeout_s=TIMEOUT_S)
        if answer.outcome == ANSWERED:
            return {"status": ANSWERED, "the_person_says": answer.reason}
        return {"status": answer.outcome, "next": _WITHOUT.get(answer.outcome, _NOBODY)}

    return Tool(
        NAME,
        "Asks the person one question, where only they can know the answer. It never counts as an approval: changes "
        "are approved with ops_approve.",
        parameters(
            {"question": {"type": "string", "minLength": 1, "maxLength": 4000}},
            {"options": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 200}}},
        ),
        hints_of(Level.R0),
        run,
    )
