"""The slash commands about conversations: which there are, going on with one, a new one, a copy, another brain."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from agent.messages import Assistant, Result, ToolCall, User
from agent.repl.transcript import DONE, NoteRow, Person, ToolRow, Words
from agent.repl.world import Enter, Rows, Say
from guard.errors import GuardError, UsageError
from guard.types import Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agent.messages import Message
    from agent.repl.transcript import Row
    from agent.repl.world import Effect, Opened, Talk, World

LISTED = 20
REMEMBERED = 3
"""Conversations whose words are in the history of the composer."""
MOST_REMEMBERED = 200
TAIL = 6
"""Messages of an earlier conversation that are shown when it goes on."""
TAIL_CHARACTERS = 1_500
"""Of each of them."""
NOT_RECORDED = "not recorded"
"""Of a call whose result is not in the file: it may have run."""
GO_ON, GO_ON_THERE, LEAVE = "go on here", "go on in its folder", "leave it"


def listing(talk: Talk, words: str) -> Iterator[Effect]:
    """`/sessions`"""
    text, _ = talk.world.verb("opsagent", ["sessions", "list"])
    yield Say(text.rstrip("\n") or "there is no earlier conversation", visible=True)


def resume(talk: Talk, words: str) -> Iterator[Effect]:
    """`/resume`: lists, or shows the end of one and goes on with it. Nothing of it is run again.

    With another brain or in another folder than the ones it was held with, the person is asked first.
    """
    sessions = talk.world.sessions
    if not words:
        yield from listing(talk, "")
        yield Say("/resume ID goes on with one, /resume last with the newest other one")
        return
    if words == "last":
        others = [one for one in sessions.listing(limit=LISTED) if one.id != talk.opened.id and not one.is_open]
        if not others:
            raise UsageError("there is no other conversation", not_done="this one goes on")
        words = others[0].id
    id = sessions.find(words)
    if id == talk.opened.id:
        raise UsageError(f"{id} is this conversation", not_done="it goes on")
    from agent.sessions.on_record import runs_in

    kept = sessions.read(id, runs_of=runs_in(talk.world.guard.ledger))
    yield Rows(tail(kept.messages))
    for note in (*kept.notes, *_unknown(talk, id)):
        yield Say(f"! {note}")
    header = kept.header
    options = [GO_ON]
    moved = header.cwd and header.cwd != talk.world.cwd
    if moved and os.path.isdir(header.cwd):
        options.append(GO_ON_THERE)
    cwd = ""
    if moved or header.brain not in ("", talk.opened.brain):
        was = f"It was held with {header.brain or 'no brain'} in {header.cwd}."
        here = f"Here: {talk.opened.brain} in {talk.world.cwd}."
        answer = talk.question(f"Go on with {id}? {was} {here}", (*options, LEAVE))
        if answer not in options:
            yield Say("this conversation goes on")
            return
        cwd = header.cwd if answer == GO_ON_THERE else ""
    yield Enter(talk.world.open(brain=talk.opened.brain, resume=id, cwd=cwd))


def new(talk: Talk, words: str) -> Iterator[Effect]:
    """`/new`"""
    yield Enter(talk.world.open(brain=talk.opened.brain, model=talk.opened.model))


def fork(talk: Talk, words: str) -> Iterator[Effect]:
    """`/fork`"""
    of = words or talk.opened.id
    if not words and not talk.opened.messages():
        raise UsageError("nothing was said yet", not_done="nothing was copied")
    copy = talk.world.sessions.fork(of)
    for note in copy.notes:
        yield Say(f"! {note}")
    yield Say(f"{copy.header.id} is a copy of {copy.header.forked_from}; it goes on from here")
    yield Enter(talk.world.open(brain=talk.opened.brain, model=talk.opened.model, resume=copy.header.id))


def export(talk: Talk, words: str) -> Iterator[Effect]:
    """`/export`"""
    if not talk.opened.messages():
        raise UsageError("nothing was said yet", not_done="nothing was written")
    text, code = talk.world.verb("opsagent", ["sessions", "export", talk.opened.id])
    if code or not words:
        yield Say(text, visible=bool(code))
        return
    path = os.path.normpath(os.path.join(talk.world.cwd, os.path.expanduser(words)))
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", not_done="nothing was written", hint="name a new file") from None
    yield Say(f"written: {path}")


def brain(talk: Talk, words: str) -> Iterator[Effect]:
    """`/brain`"""
    if not words:
        yield Say(f"brain {talk.opened.brain}; there are {', '.join(talk.world.brains())}")
        return
    yield from _with(talk, words, "")


def model(talk: Talk, words: str) -> Iterator[Effect]:
    """`/model`"""
    if not words:
        yield Say(f"model {talk.opened.model or '(the brain chooses)'} of {talk.opened.brain}")
        return
    yield from _with(talk, talk.opened.brain, words)


def compact(talk: Talk, words: str) -> Iterator[Effect]:
    """`/compact`: what is sent is made much smaller at once; the file is never changed."""
    opened = talk.opened
    if opened.compact is None:
        raise UsageError("the runbooks are sent nothing of a conversation", not_done="nothing was shortened")
    before = opened.sent_chars()
    notes = opened.compact()
    after = opened.sent_chars()
    if after == before:
        yield Say(f"nothing to shorten: {before:,} characters are sent, and the newest messages stay whole")
        return
    yield Say("\n".join([f"{before:,} characters were sent, from now on {after:,}", *(f"  {note}" for note in notes)]))


def earlier(world: World) -> tuple[str, ...]:
    """What the person said in the conversations before this one, oldest first: for the history of the composer."""
    texts: list[str] = []
    for one in reversed(world.sessions.listing(limit=REMEMBERED)):
        with contextlib.suppress(GuardError):
            texts += [message.text for message in world.sessions.read(one.id).messages if isinstance(message, User)]
    return tuple(texts[-MOST_REMEMBERED:])


def ids(talk: Talk) -> tuple[str, ...]:
    """Ids for completion."""
    return tuple(one.id for one in talk.world.sessions.listing(limit=LISTED))


def tail(messages: Sequence[Message]) -> tuple[Row, ...]:
    """The last things that were said, as the rows that they were; of results only their status."""
    rows: list[Row] = []
    shown = [message for message in messages if isinstance(message, User | Assistant | Result)][-TAIL:]
    calls = {call.id: call for message in messages if isinstance(message, Assistant) for call in message.calls}
    results = {message.call_id for message in shown if isinstance(message, Result)}
    if len(shown) < len(messages):
        rows.append(NoteRow("echo", f"… {len(messages) - len(shown)} earlier"))
    for message in shown:
        if isinstance(message, User):
            rows.append(Person(_cut(message.text)))
        elif isinstance(message, Assistant):
            if message.text.strip():
                rows.append(Words(_cut(message.text), done=True))
            rows += [_used(call, NOT_RECORDED) for call in message.calls if call.id not in results]
        else:
            call = calls.get(message.call_id, ToolCall(message.call_id, message.name))
            rows.append(_used(call, message.status, message.execution))
    return tuple(rows)


def _used(call: ToolCall, status: str, execution: str = "") -> ToolRow:
    return ToolRow(call.id, call.name, call.arguments, DONE, status, execution)


def _with(talk: Talk, brain: str, model: str) -> Iterator[Effect]:
    """The same conversation with another brain; with the old one again when that fails."""
    old: Opened = talk.opened
    resume = old.id if old.messages() else ""
    old.session.close()
    try:
        opened = talk.world.open(brain=brain, model=model, resume=resume)
    except GuardError:
        yield Enter(talk.world.open(brain=old.brain, model=old.model, resume=resume))
        raise
    yield Enter(opened)
    yield Say(f"brain {opened.brain}" + (f", model {opened.model}" if opened.model else ""))


def _unknown(talk: Talk, id: str) -> Iterator[str]:
    """What of that conversation began and has no end on record."""
    for run in talk.world.guard.ledger.executions(status=Status.UNKNOWN, limit=50).executions:
        if run.session == id and not run.resolution:
            yield f"{run.id} began {run.started_at}, its end is not known: look first, then opsx resolve {run.id}"


def _cut(text: str) -> str:
    text = text.strip()
    return text[:TAIL_CHARACTERS] + (" …" if len(text) > TAIL_CHARACTERS else "")
