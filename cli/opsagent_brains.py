"""Opens a conversation for a shell: brain, file and guard put together."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from agent.repl.world import Opened
from guard.errors import StateError, UsageError

if TYPE_CHECKING:
    import threading

    from agent.brains.choice import Link
    from agent.repl.world import Place
    from agent.sessions.store import Sessions

SHELL = "repl"
OFFLINE, SCRIPT = "offline", "script:"


def opened(
    world: Place,
    *,
    brain: str,
    model: str,
    resume: str,
    shell: str = SHELL,
    client: str = "",
    drawn: threading.Event | None = None,
) -> Opened:
    """The conversation.

    Args:
        shell: the way in, for the records.
        client: name and version of a program that drives it.
        drawn: what is loaded for the first answer waits for this; None: at once.
    Raises:
        GuardError
    """
    links = _links(brain, model)
    if not links:
        if resume:
            raise UsageError(
                "a conversation goes on with a model, and the runbooks keep none",
                not_done="it was not opened",
                hint="--brain NAME, or /brain NAME; docs/brains.md tells how to set one up",
            )
        return _with_runbooks(world, shell)
    from agent.brains.opening import open_conversation, window_of
    from cli import own_runbooks

    held = open_conversation(
        world.guard,
        links,
        _sessions(world),
        cwd=world.cwd,
        shell=shell,
        client=client,
        environ=world.environ,
        resume=resume,
        asks=world.person,
        plans=world.person,
        books=own_runbooks.books(),
        drawn=drawn,
    )
    history = held.conversation.history
    return Opened(
        held.conversation,
        held.conversation.id,
        held.chain.name,
        held.chain.model,
        messages=lambda: history.messages,
        notes=held.notes,
        sent_chars=held.conversation.sent_chars,
        compact=held.conversation.compact,
        window_tokens=window_of(links),
    )


def _links(brain: str, model: str) -> tuple[Link, ...]:
    """The brains that answer. Naming the first of the configured ones leaves the others behind it."""
    if brain == OFFLINE and not model:
        return ()
    from cli.brains_config import chosen

    if brain and not brain.startswith(SCRIPT):
        configured = chosen("", "")
        if configured and configured[0].name == brain:
            brain = ""
    return chosen(brain, model)


def names() -> tuple[str, ...]:
    """The brains that can be named. Raises BadConfig, BadBrains."""
    from agent.brains.choice import entries
    from cli.brains_config import load
    from guard.redact import Redactor

    redact = Redactor().text
    return (*entries(load(redact), os.environ, redact=redact), OFFLINE)


def _with_runbooks(world: Place, shell: str) -> Opened:
    """The brain that needs no model; it keeps no conversation."""
    from agent.offline import OfflineSession
    from capabilities.run import read_only_runner
    from cli import own_runbooks
    from guard.clock import RandomIds
    from guard.hands.cancel import CancelToken

    id = RandomIds().new("c")
    ask = read_only_runner(world.guard, cwd="/", shell=shell, session=id, cancel=CancelToken())
    session = OfflineSession(
        ask, utc=world.guard.clock.utc, redact=world.guard.redactor.text, books=own_runbooks.books()
    )
    session.start()
    return Opened(session, id, OFFLINE)


def _sessions(world: Place) -> Sessions | StateError:
    try:
        return world.sessions
    except StateError as error:
        return error
