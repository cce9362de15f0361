"""Asking a person through a host's own form: the words, the form, the sealed state, and what counts as a yes.

A form is answered by the host, which may have a person in front of it, a rule, or nothing. So the refusing answer
comes first in the list, nothing is filled in, more than a small change needs a code that stands only in the text, and
anything that is not exactly the expected answer is no. What is irreversible is never asked here.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from typing import TYPE_CHECKING, Any

from capabilities.asking import ASK_TIMEOUT_S
from dialogue.confirm import (
    APPROVED,
    CANCELLED,
    COMMAND,
    DENIED,
    FILE_CHANGE,
    RESOLVE,
    ROLLBACK,
    UNANSWERED,
    Answer,
    Ask,
)
from dialogue.screen import screen_of
from guard.errors import ApprovalChanged
from guard.types import Level

if TYPE_CHECKING:
    from collections.abc import Callable

    from dialogue.confirm import Confirm

JSON = dict[str, Any]

CONSENT = "elicitation"
HOST = "host"
YES, NO = "approve exactly this, once", "do not run it"
_QUESTIONS = {
    COMMAND: "opsagent asks: may this be run?",
    FILE_CHANGE: "opsagent asks: may this file be changed?",
    ROLLBACK: "opsagent asks: may this be taken back?",
    RESOLVE: "opsagent asks: is this how it ended?",
}
COLUMNS = 4_000
"""Hosts wrap by themselves, in windows of any width."""
CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTWXYZ"
"""Digits and letters that stay apart when they are read from one screen and typed into another field."""
CODE_LENGTH = 5
MOST_OPEN = 100
"""Forms that are open at once; the oldest goes first."""
MOST_TEXT = 8_000
"""Hosts show forms in small windows; a longer request is approved where it can be scrolled: on a terminal."""


def new_code() -> str:
    """A code for one form: 5 characters of 29, 24 bits."""
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH))


def words(ask: Ask, code: str) -> str:
    """Everything that is being approved, as it is shown everywhere, and how to say yes. Lines are not wrapped."""
    how = f"type the code {code}" if code else f"choose: {YES}"
    return f"{_QUESTIONS[ask.kind]}\n\n{screen_of((ask,), COLUMNS)}\nTo approve, {how}."


def form(code: str) -> JSON:
    """The form's schema: flat, as the protocol wants it; nothing has a default, and the first choice is no."""
    if code:
        field: JSON = {
            "type": "string",
            "title": "Code",
            "description": "the code that stands in the text; leave it empty to refuse",
            "maxLength": 32,
        }
        return {"type": "object", "properties": {"code": field}, "required": ["code"]}
    return {
        "type": "object",
        "properties": {"answer": {"type": "string", "title": "Answer", "enum": [NO, YES]}},
        "required": ["answer"],
    }


def sha256_of(text: str) -> str:
    """The hash of what was shown, for the record."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def answer_of(response: object, sha256: str, code: str) -> Answer:
    """What a host's response means. Only an accept with exactly the expected field is a yes.

    Args:
        response: `{"action": …, "content": …}` as it came, or whatever came instead.
        sha256: of what was shown.
    """
    if not isinstance(response, dict) or response.get("action") not in ("accept", "decline", "cancel"):
        return Answer(UNANSWERED, CONSENT, sha256)
    if response["action"] != "accept":
        return Answer(DENIED if response["action"] == "decline" else CANCELLED, CONSENT, sha256)
    content = response.get("content")
    if not isinstance(content, dict):
        return Answer(UNANSWERED, CONSENT, sha256)
    if code:
        typed = content.get("code")
        good = (
            set(content) == {"code"}
            and isinstance(typed, str)
            and hmac.compare_digest(typed.strip().upper().encode(), code.encode())
        )
    else:
        good = content == {"answer": YES}
    if good:
        return Answer(APPROVED, CONSENT, sha256)
    return Answer(DENIED if content == {"answer": NO} else UNANSWERED, CONSENT, sha256)


class FormConfirm:
    """Asks through the host's form. Never what is irreversible, too long for a form, or needs a look at the machine."""

    def __init__(self, asker: Callable[[str, str, JSON, JSON, float], tuple[object, JSON]]) -> None:
        """Args: asker: (purpose, text, form, state, timeout_s) → (what came back, the state that was asked with).

        It raises `capabilities.call.AnswerNeeded` where the answer comes with another call.
        """
        self._asker = asker

    def ask(self, ask: Ask, *, timeout_s: float) -> Answer:
        """Shows the form and waits.

        Raises:
            ApprovalChanged: the answer is to a form that showed something else by now.
        """
        code = new_code() if ask.level not in (Level.R0.name, Level.R1.name) else ""
        text = words(ask, code)
        if why_not := _no_form_for(ask, text):
            return Answer(UNANSWERED, CONSENT, reason=why_not)
        state: JSON = {"code": code, "sha256": sha256_of(text), "digest": ask.digest}
        response, state = self._asker(f"{ask.kind} {ask.id}", text, form(code), state, timeout_s)
        answer = answer_of(response, state["sha256"], state["code"])
        if answer.outcome == APPROVED and state["digest"] != ask.digest:
            raise ApprovalChanged(
                "something changed since it was shown", not_done="nothing was approved", hint="ask for it again"
            )
        return answer


def _no_form_for(ask: Ask, text: str) -> str:
    """Why a request cannot be asked through a host's form; "" when it can."""
    if ask.must_type:
        return "what is irreversible is approved on a terminal only"
    if ask.also:
        return "several requests at once are approved on a terminal only"
    if ask.resolves:
        return "a run that touches the same things has no end on record; a person looks at it first"
    if len(text) > MOST_TEXT:
        return "it is too long for a host's form"
    return ""


class HostConfirm:
    """Takes the host's own prompt on this call for the person's answer, where the configuration says that it counts.

    Nothing proves that there was a prompt, or what it showed. So it counts only for what the call's own arguments
    spelled out, and never for what must not be waved through; that goes to `otherwise`.
    """

    def __init__(self, command: str, otherwise: Confirm | None) -> None:
        """Args: command: as it stands in the call's arguments, "" when it does not."""
        self._command = command
        self._otherwise = otherwise

    def ask(self, ask: Ask, *, timeout_s: float) -> Answer:
        """Answers at once, or asks the other way."""
        why_not = self._no_host_for(ask)
        if not why_not:
            return Answer(APPROVED, HOST, sha256_of(f"{ask.command}\n{ask.fingerprint}"))
        if self._otherwise is not None:
            return self._otherwise.ask(ask, timeout_s=timeout_s)
        return Answer(UNANSWERED, HOST, reason=why_not)

    def _no_host_for(self, ask: Ask) -> str:
        if ask.kind != COMMAND or ask.must_type or ask.resolves or ask.also:
            return "a host's prompt does not count for what is irreversible, for a rollback, or beside an unknown run"
        if ask.sensitive:
            return f"a host's prompt does not count for this: {'; '.join(ask.sensitive)}"
        if not self._command:
            return "a host's prompt shows only what the call says: call ops_approve with the command itself"
        return ""


class Sealer:
    """Marks that the client carries for us and cannot make, change, keep, or use twice.

    What a mark stands for stays in this process, the code of a form above all. A mark holds for one purpose, until its
    time is over, and once.
    """

    def __init__(self, boot_s: Callable[[], float], *, ttl_s: float = ASK_TIMEOUT_S) -> None:
        self._boot_s = boot_s
        self._ttl_s = ttl_s
        self._key = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._open: dict[str, tuple[float, JSON]] = {}

    def seal(self, purpose: str, state: JSON) -> str:
        """A mark that `unseal` gives `state` for, with the same purpose."""
        now_s = self._boot_s()
        nonce = secrets.token_urlsafe(16)
        with self._lock:
            self._open = {one: kept for one, kept in self._open.items() if kept[0] > now_s}
            while len(self._open) >= MOST_OPEN:
                del self._open[next(iter(self._open))]
            self._open[nonce] = (now_s + self._ttl_s, state)
        return f"{nonce}.{self._mac(purpose, nonce)}"

    def unseal(self, purpose: str, mark: object) -> JSON | None:
        """The state, once; None for everything else: forged, changed, used, too old, for another purpose."""
        if not isinstance(mark, str) or len(mark) > 200 or not mark.isascii():
            return None
        nonce, _, mac = mark.partition(".")
        if not hmac.compare_digest(mac, self._mac(purpose, nonce)):
            return None
        with self._lock:
            end_s, state = self._open.pop(nonce, (0.0, {}))
        return state if end_s > self._boot_s() else None

    def _mac(self, purpose: str, nonce: str) -> str:
        return hmac.new(self._key, purpose.encode() + b"\0" + nonce.encode(), hashlib.sha256).hexdigest()
