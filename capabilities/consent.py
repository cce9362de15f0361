"""Asking a person through a host's own form: the words, the form, the sealed state, and what counts as a yes.

A form is answered by the host, which may have a person in front of it, a rule, or nothing. So the refusing answer
comes first in the list, nothing is filled in, more than a small change needs a code that stands only in the text, and
anything that is not exactly the expected answer is no. What is irreversible is never asked here.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import pwd
import secrets
import threading
from typing import TYPE_CHECKING, Any

from dialogue.confirm import APPROVED, CANCELLED, DENIED, UNANSWERED, Answer, Ask
from guard import render
from guard.types import Level

if TYPE_CHECKING:
    from collections.abc import Callable

JSON = dict[str, Any]

CONSENT = "elicitation"
YES, NO = "approve exactly this, once", "do not run it"
CODE_ALPHABET = "23456789ABCDEFGHJKMNPQRSTWXYZ"
"""Digits and letters that stay apart when they are read from one screen and typed into another field."""
CODE_LENGTH = 5
TTL_S = 300.0
"""How long a form may stay open: after that the facts are judged anew."""
MOST_OPEN = 100
"""Forms that are open at once; the oldest goes first."""
MOST_TEXT = 8_000
"""Hosts show forms in small windows; a longer request is approved where it can be scrolled: on a terminal."""


MARGIN = "  | "
"""Stands before each line of the command, so that none of it can pass for a line of ours."""


def user_name() -> str:
    """Whom commands run as, for people."""
    uid = os.geteuid()
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"


def askable(level: Level, text: str) -> str:
    """Why a request cannot be asked through a host's form; "" when it can."""
    if level > Level.R2:
        return "what is irreversible is approved on a terminal only"
    if len(text) > MOST_TEXT:
        return "it is too long for a host's form"
    return ""


def new_code() -> str:
    """A code for one form: 5 characters of 29, 24 bits."""
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH))


def words(ask: Ask, code: str, *, ttl_s: int, before: tuple[str, ...] = ()) -> str:
    """Everything that is being approved, with everything that is not ours made visible; the asker's words last.

    Args:
        before: what was said about this earlier, such as a denial.
    """
    shown = render.visible
    one = render.visible_line
    lines = [
        f"opsagent: approve a {ask.level} command on {one(ask.target)} ({one(ask.host)})?",
        f"user {one(ask.user)}, folder {one(ask.cwd)}",
        "",
        *(f"{MARGIN}{line}" for line in shown(ask.command).split("\n")),
        "",
    ]
    lines += [f"why {ask.level}: {one(reason)}" for reason in ask.reasons]
    lines += [f"does: {one(effect)}" for effect in ask.effects]
    lines.append(f"can be undone: {ask.reversible}")
    lines += [f"saved first: {one(item)}" for item in ask.snapshot_plan]
    lines += [f"NOT saved: {one(item)}" for item in ask.not_saved]
    lines += [f"not bound: {one(item)}" for item in ask.not_bound]
    lines += [f"before: {one(text)}" for text in before]
    lines.append(f"request {ask.id}; the approval holds for one run, {ttl_s} s long")
    if ask.why:
        lines += ["", f"the asker says: {one(ask.why)}"]
    lines += ["", f"To approve, type the code {code}." if code else f"To approve, choose: {YES}."]
    return "\n".join(lines)


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


class Sealer:
    """Marks that the client carries for us and cannot make, change, keep, or use twice.

    What a mark stands for stays in this process, the code of a form above all. A mark holds for one purpose, until its
    time is over, and once.
    """

    def __init__(self, boot_s: Callable[[], float], *, ttl_s: float = TTL_S) -> None:
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
