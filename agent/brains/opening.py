"""Puts a conversation together for any shell: its chain of brains, its file, what of it is sent, what it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agent.brains.chain import Chain, World
from agent.brains.choice import Without
from agent.brains.last import answer_of_runbooks
from agent.brains.making import Maker
from agent.compaction import Compactor, Limits, view
from agent.conversation import Conversation
from agent.history import Unsaved
from agent.loop import Limits as TurnLimits
from agent.sessions.on_record import runs_in
from agent.usage import Spent, record
from guard.errors import StateError
from guard.ledger.null import NullLedger
from runbooks.catalogue import BUILT_IN

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping, Sequence

    import execution
    from agent.brains.choice import Link
    from agent.history import Transcript
    from agent.providers.base import Reply, Sent
    from agent.sessions.lines import Header
    from agent.sessions.store import Sessions
    from runbooks.catalogue import Books

SHOWN = 3
"""Ids of deleted conversations that are named."""
TIGHTER = 4
"""How often a request that was too long for an unknown window is halved before it is given up."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A conversation that is ready for its first turn."""

    conversation: Conversation
    chain: Chain
    notes: tuple[str, ...]
    """What a person should know: what was mended in the file, what is different now, or why nothing is saved."""
    resumed: bool


def open_conversation(
    guard: execution.Guard,
    links: Sequence[Link],
    sessions: Sessions | StateError,
    *,
    cwd: str,
    shell: str,
    environ: Mapping[str, str],
    resume: str = "",
    client: str = "",
    asks: bool = False,
    plans: bool = False,
    limits: TurnLimits = TurnLimits(),  # noqa: B008 - frozen
    books: Books = BUILT_IN,
    warm: bool = True,
    drawn: threading.Event | None = None,
) -> Opened:
    """Opens and starts it; the first brain's library is loaded meanwhile.

    Args:
        links: what answers, first choice first (`agent.brains.choice.chain`).
        sessions: where it is kept, or why it cannot be: then it is held all the same, and that is said.
        resume: an id, the beginning of one, or `last`; "" begins a new one.
        books: what the last link knows to check.
        warm: False for a question that is there already: two threads that load code only take turns, and lose time.
        drawn: the library waits for this, for it would slow down whoever is to set it; None: nobody has to.
        Others: as `agent.conversation.Conversation` takes them.
    Raises:
        NoSuchSession, StateError: `resume` names none, or it cannot be read.
    """
    transcript, notes = _transcript(guard, links[0], sessions, cwd=cwd, resume=resume)
    chain = chain_of(links, guard, shell=shell, session=transcript.id, environ=environ, books=books)
    if warm:
        chain.warm(drawn)
    conversation = Conversation(
        guard,
        chain,
        transcript,
        cwd=cwd,
        shell=shell,
        client=client,
        asks=asks,
        plans=plans,
        limits=limits,
        compactor=Compactor(Limits(window_tokens=window_of(links))),
    )
    conversation.start()
    return Opened(conversation, chain, notes, bool(resume))


def _transcript(
    guard: execution.Guard, first: Link, sessions: Sessions | StateError, *, cwd: str, resume: str
) -> tuple[Transcript, tuple[str, ...]]:
    """Where a conversation is kept, and what a person should know about that. Raises as `open_conversation`."""
    if isinstance(sessions, StateError):
        if resume:
            raise sessions
        from guard.clock import RandomIds

        return Unsaved(RandomIds().new("c")), (f"the conversation is not being saved: {sessions.message}",)
    if resume:
        kept = sessions.resume(resume, runs_of=runs_in(guard.ledger))
        return kept, (*kept.notes, *_moved(kept.header, first, cwd), *_let_go(sessions, guard))
    model = "" if isinstance(first, Without) else first.model
    begun = sessions.create(cwd=cwd, brain=first.name, model=model)
    return begun, tuple(_let_go(sessions, guard))


def _let_go(sessions: Sessions, guard: execution.Guard) -> Iterator[str]:
    """Deletes what was not used for longer than conversations are kept, and says so. The one that is open now stays."""
    days = guard.policy.keeping.session_days if guard.policy.keeping else 0
    if not days:
        return
    try:
        gone = sessions.prune(keep=0, older_than_s=days * 86_400.0)
    except StateError as error:
        yield f"conversations older than {days} days could not be deleted: {error.message}"
        return
    if gone:
        which = ", ".join(gone[:SHOWN]) + (f" and {len(gone) - SHOWN} more" if len(gone) > SHOWN else "")
        what = "conversation was" if len(gone) == 1 else "conversations were"
        yield f"{len(gone)} {what} not used for {days} days and deleted ([sessions] keep_days): {which}"


def _moved(header: Header, first: Link, cwd: str) -> Iterator[str]:
    """What is different from when the conversation was held last."""
    if header.brain and header.brain != first.name:
        yield f"it was begun with the brain {header.brain}; {first.name} goes on"
    if header.cwd and header.cwd != cwd:
        yield f"it was begun in {header.cwd}; commands run in {cwd} now"


def chain_of(
    links: Sequence[Link],
    guard: execution.Guard,
    *,
    shell: str,
    session: str,
    environ: Mapping[str, str],
    books: Books = BUILT_IN,
) -> Chain:
    """The chain over these links, in this world."""
    return Chain(
        links,
        World(
            make=Maker(environ, guard.redactor).provider,
            shown=guard.redactor.text,
            last=answer_of_runbooks(guard, shell=shell, session=session, books=books),
            spent=_Spending(guard, session),
            shrink=smaller,
        ),
    )


def window_of(links: Sequence[Link]) -> int:
    """The smallest window of a chain, so that what is sent fits whoever takes over; 0 when nobody said."""
    known = [link.window_tokens for link in links if not isinstance(link, Without) and link.window_tokens]
    return min(known, default=0)


def smaller(sent: Sent, window_tokens: int) -> Sent | None:
    """The request with at most half of what it may have; None when nothing can be left out."""
    limits = Limits(window_tokens=window_tokens)
    for _ in range(TIGHTER):
        limits = limits.tightened()
        found = view(sent.messages, limits=limits)
        if not found.fits:
            return None
        if found.messages != sent.messages:
            return replace(sent, messages=found.messages)
    return None


class _Spending:
    """Records what replies cost. A state folder that cannot be written costs the record and nothing else."""

    def __init__(self, guard: execution.Guard, session: str) -> None:
        self._guard, self._session = guard, session

    def __call__(self, link: Link, reply: Reply, took_ms: int) -> None:
        ledger = self._guard.ledger
        if isinstance(ledger, NullLedger):
            return
        tokens = reply.tokens
        spent = Spent(
            at=self._guard.clock.utc(),
            brain=link.name,
            model=self._guard.redactor.text(reply.model),
            session=self._session,
            input=tokens.input,
            output=tokens.output,
            cached=tokens.cached,
            took_ms=took_ms,
            cost=reply.cost,
        )
        try:
            record(spent, ledger.folder)
        except StateError:
            pass  # that state is not writable is said with every run
