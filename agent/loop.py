"""One turn of a conversation: ask the brain, use the tools that it wants, ask again, until it is done.

Nothing here prints, asks or knows a protocol: replies come from a `Brain`, tools are used by `Hands`, and everything
that happens comes out as events. Reads that stand beside each other in one reply run side by side; everything else
runs alone, in order. Whatever ends a turn, each call has a result before the next request.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

from agent.messages import Assistant, Note, Result, ToolCall, User
from agent.providers.base import BrainError, Reply
from agent.sessions.cleaning import clean, clean_id
from agent.using import MAY_HAVE_RUN, PROGRESS_S, Used, side_by_side
from dialogue import events
from guard.errors import GuardError
from guard.types import Status

if TYPE_CHECKING:
    import queue
    from collections.abc import Callable, Generator, Iterator, Sequence

    from agent.messages import Message
    from agent.providers.base import Sent, Tokens
    from agent.stop import Stop
    from agent.using import Hands
    from dialogue.events import Event
    from guard.ports import Cancel
    from guard.redact import Redactor

    T = TypeVar("T")
    Steps = Generator[Event, None, T]
    """Events, and then a value for whoever drives it with `yield from`."""

APPROVE = "ops_approve"
"""The tool that asks the person about a kept request (`capabilities.approvals`)."""
BY_ITSELF = frozenset(("ops_exec", "bash", "read", "write", "edit"))
"""Tools that keep a request and leave the asking to APPROVE; the others ask in the same call."""
DENIALS = 2
"""This many denials of one intent end a turn; more would be pressing a person who said no."""


class Brain(Protocol):
    """Where replies come from: one provider, or a chain of them with retries."""

    @property
    def name(self) -> str:
        """Of the entry that would answer now."""
        ...

    @property
    def model(self) -> str: ...

    def reply(
        self, sent: Sent, *, cancel: Cancel, wrote: Callable[[], bool]
    ) -> Iterator[str | events.Notice | events.BrainSwitched | Reply]:
        """Pieces of text as they come; what a person should know meanwhile; one whole `Reply` as the last.

        A `Notice` or `BrainSwitched` after pieces voids these pieces: the reply is asked for again.

        Args:
            wrote: whether a tool of this turn has changed something; then a failed request is not tried again in a
                way that could repeat work, and another brain has to be told what ran.
        Raises:
            BrainError: no brain could answer.
            capabilities.jobs.Cancelled: `cancel` was set.
        """
        ...

    def close(self) -> None:
        """Ends connections; safe to call twice and from another thread."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """What one turn may take."""

    replies: int = 100
    """Requests to the brain."""
    timeout_s: float = 0.0
    """For the whole turn; 0: none."""
    progress_s: float = PROGRESS_S


class History(Protocol):
    """What was said; the session's file stands behind it."""

    def append(self, message: Message) -> str:
        """Keeps a clean message. Returns why it could not be saved, "" when it was; never raises."""
        ...

    def sync(self) -> str:
        """Waits until all of it is on the disk. Returns why that failed, "" when it did not; never raises."""
        ...

    def open_calls(self) -> Sequence[ToolCall]:
        """Calls without a result."""
        ...

    def has_call(self, id: str) -> bool:
        """Whether a call of this session has had this id."""
        ...


class Turn:
    """One turn. Make one, read `events` to the end, forget it."""

    def __init__(
        self,
        brain: Brain,
        hands: Hands,
        history: History,
        *,
        sent: Callable[[], tuple[Sent, tuple[str, ...]]],
        stop: Stop,
        updates: queue.SimpleQueue[Event | Used | None],
        redactor: Redactor,
        limits: Limits,
        asks: bool = False,
    ) -> None:
        """
        Args:
            asks: whether the person can be asked: what waits at the end of the turn is then put to them, once.
            sent: makes the request of what was said so far, and what a person should know of it.
            updates: gets what tools tell; `None` wakes whoever waits on it.
        """
        self._brain, self._hands, self._history = brain, hands, history
        self._sent, self._stop, self._updates = sent, stop, updates
        self._redactor, self._limits = redactor, limits
        self._unmet: dict[str, tuple[int, str]] = {}
        self._asks = asks
        self._unasked: dict[str, str] = {}
        """Requests that nobody was asked about in this turn, by what they are about."""
        self._asked: set[str] = set()
        self._denials = 0
        self._wrote = False
        self._unsaved = ""
        self._tokens = [0, 0]
        self._cost: float | None = None

    def events(self, user: User, first: Sequence[ToolCall] = ()) -> Iterator[Event]:
        """Everything that happens, up to and with `TurnCompleted`.

        Args:
            first: calls that are made before the brain is asked, as if it had made them.
        """
        yield events.TurnStarted(self._redactor.text(user.text))
        yield from self._keep(user)
        try:
            if first:
                yield from self._use((yield from self._keep_reply(Assistant("", tuple(first), brain="offline"))))
            code = yield from self._rounds()
        except GuardError as fault:  # a brain that failed, or a cancelled wait
            code = fault.exit_code
            if not self._stop.is_set():
                yield self._error(fault)
        except Exception as fault:  # one broken reply never ends the session
            code = 1
            yield events.Error("internal", f"the turn broke: {type(fault).__name__}", "what ran is on record", "")
        yield from self._settle("not run: the turn ended before it")
        yield from self._unless_saved(self._history.sync())
        waiting = sorted({request for unmet, request in self._unmet.values() if request})
        if self._stop.is_set():
            code = self._stop.exit_code
            why = "it took too long" if code == 124 else "it was interrupted"
            yield events.Notice(f"the turn ended early: {why}")
        yield events.TurnCompleted(code, waiting)

    def _rounds(self) -> Steps[int]:
        """Asks and uses tools until the brain is done; returns the exit code."""
        for _ in range(self._limits.replies):
            reply = yield from self._reply()
            if self._stop.is_set():
                return self._stop.exit_code
            if reply.calls and reply.stop == "length":
                yield from self._settle("not run: your reply was cut by the length limit; call again, shorter", "error")
                continue
            if reply.calls:
                yield from self._use(reply.calls)
            elif not (yield from self._ask_what_waits()):
                return (yield from self._end(reply))
            if self._stop.is_set():
                return self._stop.exit_code
            if self._denials >= DENIALS:
                yield from self._keep(Note("The person denied the same thing twice, so the turn ended. Leave it."))
                yield events.Notice("the same was denied twice: the turn ends here")
                return 4
        hint = "ask to go on, or allow more with --max-turns"
        yield events.Error("turn.limit", f"the brain made {self._limits.replies} replies in one turn", "", hint)
        return 1

    def _reply(self) -> Steps[Reply]:
        """One reply of the brain, kept."""
        shown = False
        stream = self._redactor.stream()
        reply: Reply | None = None
        sent, notes = self._sent()
        for note in notes:
            yield events.Notice(self._redactor.text(note))
        for part in self._brain.reply(sent, cancel=self._stop.token, wrote=lambda: self._wrote):
            if isinstance(part, str):
                if text := stream.feed(part):
                    shown = True
                    yield events.TextDelta(text)
            elif isinstance(part, Reply):
                reply = part
            else:
                if shown:
                    yield events.TextDiscarded()
                shown, stream = False, self._redactor.stream()
                yield part
        if reply is None:
            raise BrainError("the brain gave no reply", not_done="nothing was run")
        said = Assistant(reply.text, reply.calls, brain=reply.brain or self._brain.name, model=reply.model)
        calls = yield from self._keep_reply(said)
        if shown and not reply.text:
            yield events.TextDiscarded()
        for note in reply.notes:
            yield events.Notice(self._redactor.text(note))
        yield self._usage(reply.tokens, reply.cost)
        return replace(reply, calls=calls)

    def _ask_what_waits(self) -> Steps[bool]:
        """Asks about what the brain wanted and asked nobody for, as if it had; True when something was approved."""
        waiting, self._unasked = self._unasked, {}
        if not waiting or not self._asks:
            return False
        calls = tuple(ToolCall("", APPROVE, {"request": request}) for request in waiting.values())
        yield from self._use((yield from self._keep_reply(Assistant("", calls, brain="offline"))))
        return any(self._unmet.get(about, (0, ""))[0] == 1 for about in waiting)

    def _end(self, reply: Reply) -> Steps[int]:
        """The exit code after a reply that wants no tool."""
        if reply.stop == "refused":
            yield events.Error("brain.refused", "the model declined to answer", "nothing more was run", "")
            return 1
        if not reply.text.strip():
            yield events.Error("brain.empty", "the model answered with nothing", "nothing more was run", "ask again")
            return 1
        if reply.stop == "length":
            yield events.Notice("the answer was cut by the model's length limit")
        codes = {unmet for unmet, _ in self._unmet.values()}
        if 1 in codes:
            yield events.Notice("what was approved was not carried out: opsx stamps lists approvals that still hold")
        # An approval is what a person can give; that a given one was not used comes last.
        return min(codes - {1} or codes, default=0)

    # ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _use(self, calls: Sequence[ToolCall]) -> Steps[None]:
        """Uses the tools of one reply: neighbouring reads side by side, everything else alone and in order."""
        waiting = deque(calls)
        while waiting and not self._stop.is_set() and self._denials < DENIALS:
            group = [waiting.popleft()]
            while waiting and self._hands.reads(group[0]) and self._hands.reads(waiting[0]):
                group.append(waiting.popleft())
            for update in side_by_side(group, self._hands, self._updates, self._stop, self._limits.progress_s):
                if isinstance(update, Used):
                    yield from self._take(update)
                else:
                    yield update
        why = "the person denied the same thing twice" if self._denials >= DENIALS else "the turn was interrupted"
        yield from self._settle(f"not run: {why} before it")

    def _take(self, used: Used) -> Steps[None]:
        """Keeps a result and what it means for the end of the turn."""
        self._wrote = self._wrote or used.wrote
        self._denials = max(self._denials, used.denials)
        if used.about:
            self._unmet.pop(used.about, None)
            if used.unmet:
                self._unmet[used.about] = (used.unmet, used.completed.request or "")
            if used.result.name == APPROVE:
                self._asked.add(used.about)
            self._unasked.pop(used.about, None)
            waits = used.unmet == 3 and used.completed.request and used.result.name in BY_ITSELF
            if waits and used.about not in self._asked:
                self._unasked[used.about] = used.completed.request or ""
        kept = yield from self._keep(used.result)
        shown = used.completed.output
        assert isinstance(kept, Result)
        clean_output = kept.text if shown == used.result.text else self._redactor.text(shown)
        yield replace(used.completed, output=clean_output)

    def _settle(self, text: str, status: str = Status.CANCELLED) -> Steps[None]:
        """Gives each call without a result one, so that no request ever holds an open call."""
        for call in self._history.open_calls():
            yield from self._keep(Result(call.id, call.name, text, status))
            yield events.ToolCompleted(call.id, status, output=text)

    def settle_quietly(self) -> None:
        """For a turn whose reader went away: calls without a result get one all the same."""
        for _ in self._settle(MAY_HAVE_RUN, Status.UNKNOWN):
            pass

    # ── small things ─────────────────────────────────────────────────────────────────────────────────────────────

    def _keep(self, message: Message) -> Steps[Message]:
        """Keeps it without secrets, and returns it so."""
        kept = clean(message, self._redactor)
        yield from self._unless_saved(self._history.append(kept))
        return kept

    def _unless_saved(self, why: str) -> Iterator[Event]:
        """Says so, once, when the session's file cannot be written: the conversation goes on without it."""
        if why and why != self._unsaved:
            yield events.Notice(f"the conversation is not being saved: {self._redactor.text(why)}")
        self._unsaved = why

    def _keep_reply(self, said: Assistant) -> Steps[tuple[ToolCall, ...]]:
        """Keeps a reply before anything of it runs; returns its calls as they are to run, under ids of their own."""
        own: list[ToolCall] = []
        for call in said.calls:
            id, number = clean_id(call.id, self._redactor) if call.id else "", len(own)
            while not id or self._history.has_call(id) or any(id == other.id for other in own):
                number += 1
                id = f"t-{number}"
            own.append(replace(call, id=id))
        kept = yield from self._keep(replace(said, calls=tuple(own)))
        assert isinstance(kept, Assistant)
        if kept.text:
            yield events.Text(kept.text)
        for shown in kept.calls:
            yield events.ToolRequested(shown.id, shown.name, shown.arguments)
        # What runs is what was asked for; only ids and names are those that stand in the session.
        pairs = zip(own, kept.calls, strict=False)
        return tuple(replace(call, id=shown.id, name=shown.name) for call, shown in pairs)

    def _usage(self, tokens: Tokens, cost: float | None) -> Event:
        self._tokens[0] += tokens.input
        self._tokens[1] += tokens.output
        if cost is not None:
            self._cost = (self._cost or 0.0) + cost
        return events.Usage(self._tokens[0], self._tokens[1], self._cost)

    def _error(self, fault: GuardError) -> Event:
        return events.Error(**{name: self._redactor.text(text) for name, text in fault.as_json().items()})
