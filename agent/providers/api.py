"""What both wire formats share: send, learn what a server does not take, read its answer whole or in events."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.providers import validate
from agent.providers.base import NOT_USED, BrainError, BrainUnreachable, Reply
from agent.providers.failures import BODY_BYTES, failure, read_body, said_in, too_long
from agent.providers.gather import Gathering
from agent.providers.http import Http
from agent.providers.sse import EVENT_BYTES, EventTooLong, server_events

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator

    from agent.providers.base import Sent
    from agent.providers.endpoint import Endpoint
    from agent.providers.failures import Said
    from agent.providers.http import Answer
    from agent.providers.sse import ServerEvent
    from guard.ports import Cancel
    from guard.redact import Redactor

MOST_MODELS = 2_000


class Api(ABC):
    """One model behind one API. A `agent.providers.base.Provider`; one request at a time.

    Args:
        redactor: learns the key; everything that the API says in an error passes through it.
    """

    path: str
    models_path: str

    def __init__(self, endpoint: Endpoint, redactor: Redactor) -> None:
        self.name, self.model, self.window_tokens = endpoint.name, endpoint.model, endpoint.window_tokens
        self._endpoint, self._redactor = endpoint, redactor
        redactor.add(endpoint.key, f"the key of {endpoint.name}")
        self._http = Http(endpoint, redactor)
        self._told: set[str] = set()
        self._lessons: set[str] = set()

    def warm(self) -> threading.Thread:
        """Does in a thread what the first request would wait for: the HTTP library, and TLS where it is needed."""
        return self._http.warm()

    def close(self) -> None:
        """Ends connections; safe to call twice and from another thread."""
        self._http.close()

    def stream(self, sent: Sent, *, cancel: Cancel) -> Iterator[str | Reply]:
        """Pieces of text as they come, then one `Reply` as the last; see `Provider`."""
        while True:
            body = json.dumps(self._request(sent), ensure_ascii=False).encode("utf-8", "replace")
            with self._http.send("POST", self.path, self._all_headers(), cancel=cancel, body=body) as answer:
                if answer.status == 200:
                    yield from self._read(answer, sent)
                    return
                said = read_body(answer.beginning(BODY_BYTES))
                # What a server does not know is left out from now on; the same refusal again is an error.
                if answer.status not in (400, 422) or not self._learns(said):
                    raise failure(self._endpoint, self._redactor, answer.status, said, answer.headers)

    def models(self, *, cancel: Cancel) -> tuple[str, ...]:
        """The names that the API lists, "" left out.

        Raises:
            BrainError, Cancelled: as `stream` does.
        """
        with self._http.send("GET", self.models_path, self._all_headers(), cancel=cancel) as answer:
            if answer.status != 200:
                said = read_body(answer.beginning(BODY_BYTES))
                raise failure(self._endpoint, self._redactor, answer.status, said, answer.headers)
            value = validate.object_of(self._value(answer.body()))
            answer.settle()
        rows = validate.objects_of(value.get("data")) or validate.objects_of(value.get("models"))
        names = (validate.text_of(row.get("id")) or validate.text_of(row.get("name")) for row in rows[:MOST_MODELS])
        return tuple(validate.whole(name)[:200] for name in names if name)

    # What a wire format says.

    @abstractmethod
    def _headers(self) -> dict[str, str]:
        """Those that carry the key and the version."""

    @abstractmethod
    def _request(self, sent: Sent) -> dict[str, Any]:
        """The body of a request."""

    @abstractmethod
    def _event(self, name: str, value: dict[str, Any], gathering: Gathering) -> Iterator[str]:
        """Takes one event; yields what of it can be shown."""

    @abstractmethod
    def _whole(self, value: dict[str, Any], gathering: Gathering) -> Iterator[str]:
        """Takes a reply that came in one piece; yields what of it can be shown."""

    @abstractmethod
    def _lesson(self, said: Said) -> str:
        """What this refusal teaches about the server that `_request` can heed, in a few words; "" for nothing."""

    @abstractmethod
    def _keep(self, reply: Reply, gathering: Gathering) -> None:
        """Remembers what the API wants back together with the calls of this reply."""

    def _learned(self, lesson: str) -> bool:
        """Whether a refusal has taught this."""
        return lesson in self._lessons

    # The rest is the same.

    def _learns(self, said: Said) -> bool:
        """Whether the same request may be taken in another form. Each lesson is learned once, so this ends."""
        lesson = "" if too_long(said) else self._lesson(said)
        if not lesson or lesson in self._lessons:
            return False
        self._lessons.add(lesson)
        return True

    def _all_headers(self) -> dict[str, str]:
        plain = {"content-type": "application/json", "user-agent": "opsagent", "accept-encoding": "identity"}
        return {**plain, **self._headers()}

    def _read(self, answer: Answer, sent: Sent) -> Iterator[str | Reply]:
        gathering = Gathering(sent, self.name)
        kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            yield from self._read_events(answer, gathering)
        else:
            yield from self._whole(self._whole_value(answer.body(), gathering), gathering)
        if rest := gathering.rest():
            yield rest
        answer.settle()
        reply = gathering.reply()
        self._keep(reply, gathering)
        yield replace(reply, notes=(*reply.notes, *self._standing(reply)))

    def _read_events(self, answer: Answer, gathering: Gathering) -> Iterator[str]:
        try:
            for event in server_events(answer.pieces()):
                if event.data.strip() == b"[DONE]":
                    gathering.stop = gathering.stop or "end"
                    return
                for value in self._values(event, gathering):
                    yield from self._event(event.name, value, gathering)
        except BrainUnreachable:
            # After the model's own end only figures were to come.
            if not gathering.stop:
                raise
        except EventTooLong:
            raise self._fault(f"one event is longer than {EVENT_BYTES:,} bytes") from None
        if not gathering.stop:
            raise BrainUnreachable(f"{self.name} broke off in the middle of its reply", not_done=NOT_USED)

    def _values(self, event: ServerEvent, gathering: Gathering) -> Iterator[dict[str, Any]]:
        text = gathering.decode(event.data)
        try:
            values = [validate.envelope(text)]
        except validate.Unreadable as fault:
            try:
                # Some servers forget the empty line between events.
                values = [validate.envelope(line) for line in text.split("\n")]
            except validate.Unreadable:
                raise self._fault(f"an event cannot be read: {fault}") from None
        for value in values:
            if not isinstance(value, dict):
                raise self._fault(f"an event is {validate.kind_of(value)}, not an object")
            if value.get("error") or event.name == "error":
                raise failure(self._endpoint, self._redactor, 0, said_in(value))
            yield value

    def _whole_value(self, body: bytes, gathering: Gathering) -> dict[str, Any]:
        value = self._value(body, gathering)
        if not isinstance(value, dict):
            raise self._fault(f"the reply is {validate.kind_of(value)}, not an object")
        if value.get("error"):
            raise failure(self._endpoint, self._redactor, 0, said_in(value))
        return value

    def _value(self, body: bytes, gathering: Gathering | None = None) -> Any:
        text = gathering.decode(body) if gathering else body.decode("utf-8", "replace")
        try:
            return validate.envelope(text)
        except validate.Unreadable as fault:
            page = text.lstrip()[:200].lower().startswith(("<!doctype", "<html"))
            raise self._fault(
                "it is a web page" if page else f"the reply cannot be read: {fault}",
                hint="check base_url: it ends before /chat/completions or /v1/messages" if page else "",
            ) from None

    def _fault(self, words: str, *, hint: str = "") -> BrainError:
        return BrainError(f"{self.name} sent what cannot be used: {words}", not_done=NOT_USED, hint=hint)

    def _standing(self, reply: Reply) -> Iterator[str]:
        """What a person should know and what stays true; each is said once."""
        notes = []
        if reply.model and not same_model(self.model, reply.model):
            notes.append(f"{self.name} was asked for {self.model} and answered as {reply.model[:100]}")
        if self._endpoint.key and not self._endpoint.secure and not self._endpoint.here:
            notes.append(f"the key of {self.name} goes to {self._endpoint.host} unencrypted; use https")
        for note in notes:
            if note not in self._told:
                self._told.add(note)
                yield note


def same_model(asked: str, answered: str) -> bool:
    """Whether an API's name for the model that answered is the one that was asked for.

    `gpt-5` answers as `gpt-5-2025-08-07`, `openai/gpt-5` as `gpt-5`, `llama3` as `llama3:latest`, a file as its name.
    """
    one, other = sorted((_plain(asked), _plain(answered)), key=len)
    return not one or (other.startswith(one) and _VERSION.fullmatch(other[len(one) :]) is not None)


_VERSION = re.compile(r"(?:-(?:latest|preview|[a-z]{0,4}\d[a-z\d]{0,12}))*")
"""A date, a size, a number: what may stand behind the name that was asked for."""


def _plain(model: str) -> str:
    name = model.lower().replace("\\", "/").rpartition("/")[2]
    return re.sub("[:.@]", "-", name.removesuffix(":latest").removesuffix(".gguf"))
