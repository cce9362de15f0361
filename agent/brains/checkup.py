"""Whether the brains of a chain can be used: key, address, model, tools. Asks them; changes nothing.

Without `call` nothing that costs money is asked: only the list of models. With it each brain gets one tiny request that
wants a tool used.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent.brains import sides
from agent.brains.choice import RUNBOOKS, Without
from agent.brains.keys import source_of
from agent.brains.making import sole_model
from agent.messages import User
from agent.providers.base import BrainError, Reply, RequestRefused, Sent
from capabilities.jobs import Cancelled
from capabilities.registry import Tool, hints_of, parameters
from guard.errors import GuardError
from guard.hands.cancel import CancelToken
from guard.types import Level

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent.brains.choice import Link
    from agent.brains.entries import Entry
    from agent.brains.making import Maker
    from agent.providers.api import Api

OK, WARN, BAD = "ok", "warn", "bad"
LIST_S = 2.0
"""For the list of models; with `call` ten times that."""
CALL_S = 60.0
"""For the one request: a local model may have to be loaded first."""
LISTED = 8
WORD = "ping"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: str
    """`ok` · `warn`: it works, with a drawback · `bad`: it does not work"""
    detail: str
    mend: str = ""
    """What a person can do about it; "" for nothing to do."""


def check_brains(links: Sequence[Link], maker: Maker, *, call: bool) -> tuple[Check, ...]:
    """All links side by side, in their order. Takes about as long as the slowest, which is bounded."""
    with ThreadPoolExecutor(max_workers=max(1, min(8, len(links)))) as pool:
        found = list(pool.map(lambda link: tuple(_checked(link, maker, call=call)), links))
    return tuple(check for checks in found for check in checks)


def _checked(link: Link, maker: Maker, *, call: bool) -> Iterator[Check]:
    name = f"brain {link.name}"
    if link == RUNBOOKS:
        yield Check(name, OK, "runbooks on this machine; no model and no key needed")
        return
    if isinstance(link, Without):
        try:
            maker.provider(link, cancel=CancelToken())
        except GuardError as error:
            yield Check(name, BAD, error.message, error.hint)
        else:
            yield Check(name, OK, "the file can be played")
        return
    api = None
    try:
        with _within(LIST_S * (10 if call else 1)) as cancel:
            api = maker.api(link, cancel=cancel)
            yield from _address(link)
            yield from _listed(link, api, cancel)
        if call and api.model:
            with _within(CALL_S) as cancel:
                yield _called(link, api, cancel)
    except Cancelled:
        more = "" if call else "; --online waits longer"
        yield Check(
            name, WARN if not call else BAD, f"no answer from {link.base_url} in time{more}", sides.silent(link)
        )
    except BrainError as error:
        yield Check(name, BAD, error.message, sides.mend(error, link))
    finally:
        if api is not None:
            api.close()


def _address(entry: Entry) -> Iterator[Check]:
    """A key that goes over the network unencrypted is said."""
    from agent.providers.endpoint import Endpoint

    place = Endpoint(entry.name, entry.base_url, entry.model)
    if not place.secure and not place.here and source_of(entry) != "no key":
        yield Check(
            f"brain {entry.name}",
            WARN,
            f"{entry.base_url} is not encrypted: the key and every word can be read on the way",
            "an https address, or a tunnel to this machine",
        )


def _listed(entry: Entry, api: Api, cancel: CancelToken) -> Iterator[Check]:
    """Reachable, key accepted, model there: by the list of models, where the API has one."""
    name, began_s = f"brain {entry.name}", time.monotonic()
    try:
        models = api.models(cancel=cancel)
    except RequestRefused as error:
        # Gateways often have no list; that the key counts is then known only by a request.
        yield Check(
            name, WARN, f"it has no list of models to look into: {error.message}", "--online asks the model itself"
        )
        return
    took_ms = round((time.monotonic() - began_s) * 1000)
    where = f"{entry.base_url} answers in {took_ms} ms, with {source_of(entry)}"
    if not entry.model:
        api.model = sole_model(models, entry)
        yield Check(name, OK, f"{where}; its one model is {api.model}")
    elif not models or entry.model in models:
        yield Check(name, OK, f"{where}; model {entry.model}")
    else:
        shown = ", ".join(models[:LISTED]) + (f" and {len(models) - LISTED} more" if len(models) > LISTED else "")
        yield Check(
            name, WARN, f"{where}, but does not list the model {entry.model}; it lists {shown}", "another model"
        )


def _called(entry: Entry, api: Api, cancel: CancelToken) -> Check:
    """One request that wants a tool used."""
    name = f"tools of {entry.name}"
    tool = Tool(
        "say",
        "Says one word.",
        parameters({"word": {"type": "string"}}),
        hints_of(Level.R0),
        lambda arguments: arguments,
    )
    sent = Sent(
        "You test a connection.", (User(f'Use the tool `say` with the word "{WORD}". Say nothing else.'),), (tool,)
    )
    began_s, reply = time.monotonic(), Reply("")
    for part in api.stream(sent, cancel=cancel):
        if isinstance(part, Reply):
            reply = replace(part, model=part.model or api.model)
    took = f"{time.monotonic() - began_s:.1f} s"
    asked = [call for call in reply.calls if call.name == tool.name and not call.fault]
    if asked and asked[0].arguments.get("word") == WORD:
        return Check(name, OK, f"{reply.model} used a tool as asked, in {took}")
    if asked:
        return Check(
            name, WARN, f"{reply.model} used the tool with other words than asked, in {took}", "a larger model"
        )
    return Check(
        name,
        BAD,
        f"{reply.model} answered in {took} and used no tool",
        "a model that is made for tools; some servers need an option for them",
    )


class _within:
    """A token that is set when the time is over. For a `with` block."""

    def __init__(self, seconds: float) -> None:
        self._token = CancelToken()
        self._timer = threading.Timer(seconds, self._token.set)
        self._timer.daemon = True

    def __enter__(self) -> CancelToken:
        self._timer.start()
        return self._token

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()
        self._token.close()
