"""How a client of `opsagent rpc` is asked: the typed `approve` where it declares that, else words. Consent is `rpc`.

Whoever holds the pipe holds the power to approve. So all of the ask goes through it, and nothing but the one
well-formed yes is one: no other type, no further field, no missing field, nothing late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agent.held import Asking, Unasked, most_uses, page_of, shown_sha256, why_not_here
from agent.rpc.schemas import APPROVE, ASK_USER, NO, YES
from dialogue.confirm import ANSWERED, APPROVED, DENIED, UNANSWERED, Answer, Ask, ask_of
from dialogue.screen import question_of

if TYPE_CHECKING:
    from collections.abc import Container

    from agent.jsonrpc import Connection, Reply
    from dialogue.events import AskOpened

CONSENT = "rpc"
MOST_WORDS = 20_000
"""Characters of a person's answer."""
TIMEOUT_S = 300.0


class Asker:
    """`agent.held.Asker` over a connection."""

    def __init__(self, connection: Connection, answers: Container[str]) -> None:
        """Args: answers: which of APPROVE and ASK_USER the client answers."""
        self._connection, self._answers = connection, answers

    def __call__(self, session: str, event: AskOpened) -> Asking:
        """Puts a question on its way."""
        timeout_s = event.timeout_s or TIMEOUT_S
        if event.kind == "approval":
            return self._approval(session, ask_of(event.ask), event.ask, timeout_s)
        if ASK_USER not in self._answers:
            return Unasked(Answer(UNANSWERED, CONSENT, reason="this client answers no questions"))
        options = [str(one) for one in event.ask.get("options") or ()]
        asked = self._words(session, "question", str(event.ask.get("question", "")), options, timeout_s)
        return Asking(words_of, asked, timeout_s)

    def _approval(self, session: str, ask: Ask, fields: dict[str, Any], timeout_s: float) -> Asking:
        text = page_of(ask)
        if why_not := why_not_here(ask):
            return Unasked(Answer(UNANSWERED, CONSENT, reason=why_not))
        if APPROVE in self._answers:
            params: dict[str, Any] = {
                "session": session,
                "ask": fields,
                "text": text,
                "answers": [NO, YES],
                "timeout_s": timeout_s,
            }
            if (uses := most_uses(ask)) > 1:
                params["most_uses"] = uses
            asked = self._connection.ask(APPROVE, params)
            return Asking(lambda reply: approval_of(reply, ask, shown_sha256(text)), asked, timeout_s)
        if ASK_USER not in self._answers:
            return Unasked(Answer(UNANSWERED, CONSENT, reason="this client answers no requests for approval"))
        question, (word, *_) = question_of((ask, *ask.also))
        question = f"{text}\n{question}"
        asked = self._words(session, "approval", question, [] if ask.must_type else ["no", "yes"], timeout_s)
        return Asking(lambda reply: spelled_approval_of(reply, word, shown_sha256(question)), asked, timeout_s)

    def _words(self, session: str, kind: str, question: str, options: list[str], timeout_s: float) -> Any:
        params = {"session": session, "kind": kind, "question": question, "options": options, "timeout_s": timeout_s}
        return self._connection.ask(ASK_USER, params)


def approval_of(reply: Reply, ask: Ask, sha256: str) -> Answer:
    """What came back for APPROVE means."""
    none = _none(reply, sha256)
    said = reply.result
    if reply.why or not isinstance(said, dict):
        return none
    if said.get("answer") == NO:
        reason = said.get("reason", "")
        if set(said) - {"answer", "reason"} or not isinstance(reason, str):
            return none
        return Answer(DENIED, CONSENT, sha256, reason=reason[:MOST_WORDS])
    wanted = {"answer", "typed"} if ask.must_type else {"answer"}
    uses = said.get("uses", 1)
    if said.get("answer") != YES or set(said) - {"uses"} != wanted or type(uses) is not int:
        return none
    if not 1 <= uses <= most_uses(ask) or (ask.must_type and said["typed"] != ask.must_type):
        return none
    return Answer(APPROVED, CONSENT, sha256, uses=uses)


def spelled_approval_of(reply: Reply, word: str, sha256: str) -> Answer:
    """What words mean that came back for an approval: exactly the asked-for text is a yes."""
    typed = _text(reply)
    if typed is None:
        return _none(reply, sha256)
    if typed == word:
        return Answer(APPROVED, CONSENT, sha256)
    if typed == "no" or typed.startswith("no "):
        return Answer(DENIED, CONSENT, sha256, reason=typed[3:].strip()[:MOST_WORDS])
    return Answer(UNANSWERED, CONSENT, sha256)


def words_of(reply: Reply) -> Answer:
    """What words mean that came back for a question."""
    typed = _text(reply)
    if typed is None or not typed.strip():
        return _none(reply, "")
    return Answer(ANSWERED, CONSENT, reason=typed[:MOST_WORDS])


def _text(reply: Reply) -> str | None:
    said = reply.result
    if reply.why or not isinstance(said, dict) or set(said) != {"answer"}:
        return None
    return said["answer"] if isinstance(said["answer"], str) else None


def _none(reply: Reply, sha256: str) -> Answer:
    return Answer(UNANSWERED, CONSENT, sha256, reason=reply.why)
