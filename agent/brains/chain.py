"""A chain of brains behind one face: tries again what may succeed, moves on when it does not, and says both.

Nothing is tried again on a brain after a tool of the turn has changed something; the next brain is told what ran. The
last link may be the runbooks, which always answer. Pieces of a reply that broke off are void: what comes after a notice
is a new reply.
"""

from __future__ import annotations

import random
import select
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from agent.brains.choice import RUNBOOKS, Without
from agent.brains.takeover import takeover
from agent.messages import User
from agent.providers.base import BrainError, BrainUnreachable, ContextOverflow, Reply
from agent.usage import cost_of
from capabilities.jobs import Cancelled
from dialogue.events import BrainSwitched, Notice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agent.brains.choice import Link
    from agent.messages import Note
    from agent.providers.base import Provider, Sent
    from guard.ports import Cancel

TRIES = 3
"""Requests to one brain for one reply, the first included."""
LONGEST_S = 60.0
"""All waiting for one reply of one brain together; an API that wants more is left for the next brain."""
FIRST_S = 1.0
"""Before the second try; doubled for the third. Up to half of it more is added by chance, so that many do not return
at once (and never less than the API asked for)."""
WARM_WAIT_S = 2.0
"""How long loading the library waits for a prompt to be drawn: a slower terminal has other reasons."""
AGAIN_S = 300.0
"""A brain that could not be reached is passed over for so long, then it is asked first again."""

Part = str | Notice | BrainSwitched | Reply


class Make(Protocol):
    """`agent.brains.making.Maker.provider`."""

    def __call__(self, link: Link, *, cancel: Cancel) -> Provider: ...


def wait(seconds: float, cancel: Cancel) -> None:
    """Waits, or raises Cancelled as soon as the token is set."""
    if select.select([cancel.fileno()], [], [], seconds)[0] or cancel.is_set():
        raise Cancelled("interrupted while waiting for the brain", not_done="nothing was sent again")


@dataclass(frozen=True, slots=True)
class World:
    """What a chain needs beside its links."""

    make: Make
    shown: Callable[[str], str] = str
    """Takes secrets out of what is said about an error."""
    last: Callable[[Sent, str, Cancel], Reply] | None = None
    """The runbooks' answer, given why no model answered (`agent.brains.last`)."""
    spent: Callable[[Link, Reply, int], None] | None = None
    """Keeps what a reply cost; gets its time in ms."""
    shrink: Callable[[Sent, int], Sent | None] | None = None
    """A clearly smaller request for a window of so many tokens (0: unknown); None when there is none."""
    wait: Callable[[float, Cancel], None] = wait
    monotonic: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = random.random


class Chain:
    """`agent.loop.Brain` over several links. One thread asks; `close` and `warm` are safe from others."""

    def __init__(self, links: Sequence[Link], world: World) -> None:
        if not links:
            raise ValueError("a chain has a link")
        self._links, self._world = tuple(links), world
        self._providers: dict[str, Provider] = {}
        self._making = threading.Lock()
        self._closed = False
        self._at = self._links[0]
        self._gone: set[str] = set()
        """Links that will not answer in this conversation: no key, an unknown model."""
        self._until: dict[str, float] = {}
        """Links that are passed over, until when."""
        self._turn: User | None = None
        """What the person said last: it names the turn."""
        self._note: Note | None = None
        """What a brain that took over is told, as long as the turn is the same."""

    @property
    def name(self) -> str:
        """Of the link that would answer now."""
        return self._at.name

    @property
    def model(self) -> str:
        """ "" while it is not known yet."""
        provider = self._providers.get(self._at.name)
        return provider.model if provider is not None else "" if isinstance(self._at, Without) else self._at.model

    def warm(self, after: threading.Event | None = None) -> None:
        """Begins in a thread what the first request would wait for. What goes wrong is told by that request.

        Args:
            after: is waited for, a moment at most.
        """
        first = self._links[0]
        if not isinstance(first, Without) and not first.key_command and first.model:
            threading.Thread(target=self._warm, args=(first, after), name="brain-warm", daemon=True).start()

    def reply(self, sent: Sent, *, cancel: Cancel, wrote: Callable[[], bool]) -> Iterator[Part]:
        """As `agent.loop.Brain.reply` says it.

        Raises:
            BrainError: of the last link, when none answered.
        """
        why: list[str] = []
        links = self._ready(self._is_same_turn(sent))
        for number, link in enumerate(links):
            if link is not self._at:
                yield from self._switch(link, sent, "; ".join(why) or "it comes first and may answer again")
            try:
                yield from self._ask(link, self._told(sent), "; ".join(why), cancel, wrote)
                return
            except BrainError as error:
                why.append(self._world.shown(error.message))
                self._pass_over(link, error)
                if number == len(links) - 1:
                    raise

    def close(self) -> None:
        with self._making:
            self._closed = True
            providers = list(self._providers.values())
        for provider in providers:
            provider.close()

    # ── one link ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _ask(self, link: Link, sent: Sent, why: str, cancel: Cancel, wrote: Callable[[], bool]) -> Iterator[Part]:
        """One reply of one link, asked for again where that may help."""
        if link == RUNBOOKS:
            yield self._runbooks(sent, why, cancel)
            return
        provider = self._provider(link, cancel)
        waited_s, tries, shrunk = 0.0, 1, False
        while True:
            try:
                yield from self._try(link, provider, sent, cancel)
                return
            except ContextOverflow as error:
                smaller = None
                if not shrunk and self._world.shrink is not None:
                    smaller = self._world.shrink(sent, provider.window_tokens)
                if smaller is None:
                    raise
                sent, shrunk = smaller, True
                yield Notice(f"{self._world.shown(error.message)}: asked again with less of the conversation")
            except BrainError as error:
                wait_s = self._wait_s(error, tries)
                if not error.retryable or tries == TRIES or wrote() or waited_s + wait_s > LONGEST_S:
                    raise
                yield Notice(f"{self._world.shown(error.message)}: trying again in {max(1, round(wait_s))} s")
                self._world.wait(wait_s, cancel)
                waited_s, tries = waited_s + wait_s, tries + 1

    def _try(self, link: Link, provider: Provider, sent: Sent, cancel: Cancel) -> Iterator[Part]:
        """One request."""
        began_s = self._world.monotonic()
        for part in provider.stream(sent, cancel=cancel):
            if isinstance(part, str):
                yield part
                continue
            prices = (None,) * 3 if isinstance(link, Without) else (link.price_in, link.price_out, link.price_cached)
            reply = replace(
                part, brain=link.name, model=part.model or provider.model, cost=cost_of(part.tokens, *prices)
            )
            if self._world.spent is not None and not isinstance(link, Without):
                self._world.spent(link, reply, round((self._world.monotonic() - began_s) * 1000))
            yield reply
            return
        raise BrainUnreachable(f"{link.name} ended without a reply", not_done="nothing of this reply was used")

    def _runbooks(self, sent: Sent, why: str, cancel: Cancel) -> Reply:
        if self._world.last is None:
            raise BrainError("no brain could answer", not_done="nothing was asked")
        return replace(self._world.last(sent, why, cancel), brain=RUNBOOKS.name)

    def _wait_s(self, error: BrainError, tries: int) -> float:
        backoff_s = FIRST_S * 2.0 ** (tries - 1)
        least_s: float = backoff_s if error.retry_after_s is None else error.retry_after_s
        return least_s + backoff_s / 2 * self._world.chance()

    # ── which link ───────────────────────────────────────────────────────────────────────────────────────────────

    def _ready(self, same_turn: bool) -> list[Link]:
        """The links that may answer now, in order; all that are not gone when every one is passed over.

        Within a turn none goes back to an earlier one: two brains in turn make one muddle.
        """
        links = self._links[self._links.index(self._at) :] if same_turn else self._links
        there = [link for link in links if link.name not in self._gone] or [self._links[-1]]
        now_s = self._world.monotonic()
        return [link for link in there if self._until.get(link.name, 0.0) <= now_s] or there

    def _is_same_turn(self, sent: Sent) -> bool:
        """Whether the turn of the last request goes on; a new one begins without its note."""
        asked = next((message for message in reversed(sent.messages) if isinstance(message, User)), None)
        same = asked == self._turn and not isinstance(next(reversed(sent.messages), None), User)
        self._turn = asked
        if not same:
            self._note = None
        return same

    def _pass_over(self, link: Link, error: BrainError) -> None:
        if error.retryable:
            self._until[link.name] = self._world.monotonic() + AGAIN_S
        elif not isinstance(error, ContextOverflow) and len(self._links) > 1:
            self._gone.add(link.name)

    def _switch(self, link: Link, sent: Sent, why: str) -> Iterator[BrainSwitched]:
        self._at = link
        self._note = takeover(sent)
        yield BrainSwitched(link.name, why)

    def _told(self, sent: Sent) -> Sent:
        """The request, with what a brain that took over in this turn has to know."""
        return sent if self._note is None else replace(sent, messages=(*sent.messages, self._note))

    # ── providers ────────────────────────────────────────────────────────────────────────────────────────────────

    def _provider(self, link: Link, cancel: Cancel) -> Provider:
        with self._making:
            provider = self._providers.get(link.name)
            if self._closed:
                raise Cancelled("the conversation was closed", not_done="nothing was sent")
            if provider is None:
                provider = self._providers[link.name] = self._world.make(link, cancel=cancel)
            return provider

    def _warm(self, link: Link, after: threading.Event | None) -> None:
        if after is not None:
            after.wait(WARM_WAIT_S)
        try:
            provider = self._provider(link, _NEVER)
        except (BrainError, Cancelled):
            return
        warm = getattr(provider, "warm", None)
        if warm is not None:
            warm()


class _Never:
    """A token that nobody sets, for what begins before there is a turn."""

    def is_set(self) -> bool:
        return False

    def fileno(self) -> int:
        return -1


_NEVER = _Never()
