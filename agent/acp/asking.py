"""How the person behind an ACP client is asked: permission requests, and forms where the client has them.

The tool call that asks was sent before, and its request for permission carries all of what is asked. The refusing
choice comes first; `allow_always` is never more than so many runs of exactly this. Consent is `acp`. What cannot be
undone is asked only where the person can type what it destroys. Whatever is no such answer approves nothing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agent.acp.updates import diffs_of, text_content
from agent.held import Asking, Unasked, most_uses, page_of, shown_sha256, why_not_here
from dialogue.confirm import ANSWERED, APPROVED, CANCELLED, DENIED, FILE_CHANGE, UNANSWERED, Answer, Ask, ask_of
from guard import render

if TYPE_CHECKING:
    from agent.acp.updates import Told
    from agent.jsonrpc import Connection, Reply
    from dialogue.events import AskOpened, ToolRequested

JSON = dict[str, Any]
CONSENT = "acp"
TIMEOUT_S = 300.0
REJECT, ALLOW, ALWAYS, NONE = "reject", "allow", "allow-several", "none"
SEVERAL = 10
"""Runs that `allow_always` is for."""
MOST_WORDS = 20_000
CANNOT_TYPE = "what cannot be undone is approved where the person can type what it destroys"
CANNOT_SAY = "this client cannot ask its user for words"


class Asker:
    """`agent.held.Asker` over an ACP client, for one conversation."""

    def __init__(self, connection: Connection, told: Told, *, forms: bool, call: ToolRequested | None = None) -> None:
        """
        Args:
            forms: whether the client shows forms (`elicitation.form`).
            call: what asks; None for whatever call of the turn is at work.
        """
        self._connection, self._told, self._forms, self._call = connection, told, forms, call

    def for_call(self, call: ToolRequested) -> Asker:
        """The same for a call outside of a turn."""
        return Asker(self._connection, self._told, forms=self._forms, call=call)

    def __call__(self, session: str, event: AskOpened) -> Asking:
        """Puts a question on its way."""
        timeout_s = event.timeout_s or TIMEOUT_S
        if event.kind == "approval":
            return self._approval(session, ask_of(event.ask), timeout_s)
        options = [str(one) for one in event.ask.get("options") or ()]
        return self._question(session, str(event.ask.get("question", "")), options, timeout_s)

    def _approval(self, session: str, ask: Ask, timeout_s: float) -> Asking:
        page = page_of(ask)
        if why_not := why_not_here(ask) or (CANNOT_TYPE if ask.must_type and not self._forms else ""):
            return Unasked(Answer(UNANSWERED, CONSENT, reason=why_not))
        if ask.must_type:
            message = f"{page}\nType what it destroys, as shown ({ask.must_type}); anything else is no."
            asked = self._form(session, message, {"type": "string", "title": "What it destroys"})
            return Asking(lambda reply: typed_of(reply, ask.must_type, shown_sha256(message)), asked, timeout_s)
        what = f"all {1 + len(ask.also)}" if ask.also else "this"
        options = [
            {"optionId": REJECT, "name": "No, do not do it", "kind": "reject_once"},
            {"optionId": ALLOW, "name": f"Yes, exactly {what}, once", "kind": "allow_once"},
        ]
        if ask.resolves:
            options[1]["name"] = f"I looked at the machine: do exactly {what}, once"
        elif most_uses(ask) >= SEVERAL:
            name = f"Yes, exactly this, up to {SEVERAL} times"
            options.append({"optionId": ALWAYS, "name": name, "kind": "allow_always"})
        asked = self._permission(session, self._shown(ask, page), options)
        return Asking(lambda reply: permission_of(reply, options, shown_sha256(page)), asked, timeout_s)

    def _shown(self, ask: Ask, page: str) -> JSON:
        """The tool call as the permission request shows it: where, how risky, exactly what, and the difference."""
        level = max((one.level for one in (ask, *ask.also)), default="")
        more = f" and {len(ask.also)} more" if ask.also else ""
        title = f"{level} · {ask.host} · {ask.command}{more}"
        content = [text_content(page)]
        if ask.kind == FILE_CHANGE:
            content = [*diffs_of(_path_of(ask), ask.command.split("\n")), *content]
        return {"title": render.visible_line(title)[:1000], "status": "pending", "content": content}

    def _question(self, session: str, question: str, options: list[str], timeout_s: float) -> Asking:
        if self._forms:
            field: JSON = {"type": "string", "title": "Answer"}
            asked = self._form(session, question, {**field, "enum": options} if options else field)
            return Asking(words_of, asked, timeout_s)
        if not options:
            return Unasked(Answer(UNANSWERED, CONSENT, reason=CANNOT_SAY))
        choices = [{"optionId": NONE, "name": "No answer", "kind": "reject_once"}]
        choices += [
            {"optionId": f"option-{number}", "name": option, "kind": "allow_once"}
            for number, option in enumerate(options)
        ]
        asked = self._permission(session, {"title": render.visible_line(question)[:1000]}, choices)
        return Asking(lambda reply: choice_of(reply, choices), asked, timeout_s)

    def _permission(self, session: str, shown: JSON, options: list[JSON]) -> Any:
        call = self._call or self._told.asking
        known = {"toolCallId": "ask"} if call is None else self._told.call(call)
        params = {"sessionId": session, "toolCall": {**known, **shown}, "options": options}
        return self._connection.ask("session/request_permission", params)

    def _form(self, session: str, message: str, field: JSON) -> Any:
        call = self._call or self._told.asking
        params: JSON = {
            "mode": "form",
            "sessionId": session,
            "message": message,
            "requestedSchema": {"type": "object", "properties": {"answer": field}, "required": ["answer"]},
        }
        if call is not None:
            params["toolCallId"] = call.id
        return self._connection.ask("elicitation/create", params)


def permission_of(reply: Reply, options: list[JSON], sha256: str) -> Answer:
    """What an answer to a permission request means; only an option that was offered counts."""
    chosen = _chosen(reply)
    if chosen is None or chosen not in [option["optionId"] for option in options]:
        outcome = CANCELLED if _outcome(reply).get("outcome") == "cancelled" else UNANSWERED
        return Answer(outcome, CONSENT, sha256, reason=reply.why)
    if chosen == REJECT:
        return Answer(DENIED, CONSENT, sha256)
    return Answer(APPROVED, CONSENT, sha256, uses=SEVERAL if chosen == ALWAYS else 1)


def choice_of(reply: Reply, options: list[JSON]) -> Answer:
    """What the chosen answer to a question is."""
    chosen = _chosen(reply)
    names = {option["optionId"]: option["name"] for option in options}
    if chosen is None or chosen == NONE or chosen not in names:
        return Answer(UNANSWERED, CONSENT, reason=reply.why)
    return Answer(ANSWERED, CONSENT, reason=names[chosen])


def typed_of(reply: Reply, wanted: str, sha256: str) -> Answer:
    """What a form means that wants a text typed: exactly that text is a yes."""
    action, text = _filled(reply)
    if action == "accept":
        return Answer(APPROVED if text == wanted else UNANSWERED, CONSENT, sha256)
    outcome = {"decline": DENIED, "cancel": CANCELLED}.get(action, UNANSWERED)
    return Answer(outcome, CONSENT, sha256, reason=reply.why)


def words_of(reply: Reply) -> Answer:
    """What a form means that asked for words."""
    action, text = _filled(reply)
    if action != "accept" or not text.strip():
        return Answer(UNANSWERED, CONSENT, reason=reply.why)
    return Answer(ANSWERED, CONSENT, reason=text[:MOST_WORDS])


def _outcome(reply: Reply) -> JSON:
    result = reply.result if not reply.why else None
    outcome = result.get("outcome") if isinstance(result, dict) else None
    return outcome if isinstance(outcome, dict) else {}


def _chosen(reply: Reply) -> str | None:
    outcome = _outcome(reply)
    id = outcome.get("optionId")
    return id if outcome.get("outcome") == "selected" and isinstance(id, str) else None


def _filled(reply: Reply) -> tuple[str, str]:
    """The action of a form's answer, and its text."""
    result = reply.result if not reply.why and isinstance(reply.result, dict) else {}
    action, content = result.get("action"), result.get("content")
    text = content.get("answer") if isinstance(content, dict) and set(content) == {"answer"} else None
    return action if isinstance(action, str) else "", text if isinstance(text, str) else ""


def _path_of(ask: Ask) -> str:
    """The file of a file change: its first line names it (`capabilities.edit_words`)."""
    path = ask.command.partition("\n")[0].partition(" the file ")[2]
    return path if os.path.isabs(path) else os.path.join(ask.cwd, path)
