"""Opens a conversation for the terminal: brain, file and guard put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.repl.world import Opened

if TYPE_CHECKING:
    from agent.repl.world import World

SHELL = "repl"
OFFLINE, SCRIPT = "offline", "script:"


def opened(world: World, *, brain: str, model: str, resume: str) -> Opened:
    """The conversation. Raises GuardError."""
    from agent.conversation import Conversation
    from agent.providers.one import OneBrain
    from agent.providers.scripted import open_script
    from agent.sessions.on_record import runs_in
    from guard.clock import SystemClock

    if not brain.startswith(SCRIPT):
        from agent.offline import OfflineSession
        from capabilities.run import read_only_runner
        from guard.clock import RandomIds
        from guard.hands.cancel import CancelToken

        id = RandomIds().new("c")
        ask = read_only_runner(world.guard, cwd="/", shell=SHELL, session=id, cancel=CancelToken())
        session = OfflineSession(ask, utc=SystemClock().utc, redact=world.guard.redactor.text)
        session.start()
        return Opened(session, id, OFFLINE)
    one = OneBrain(open_script(brain.removeprefix(SCRIPT)))
    sessions = world.sessions
    if resume:
        transcript = sessions.resume(resume, runs_of=runs_in(world.guard.ledger))
    else:
        transcript = sessions.create(cwd=world.cwd, brain=one.name, model=one.model)
    conversation = Conversation(world.guard, one, transcript, cwd=world.cwd, shell=SHELL, asks=world.person)
    conversation.start()
    history = conversation.history
    return Opened(
        conversation,
        transcript.id,
        one.name,
        one.model,
        messages=lambda: history.messages,
        notes=tuple(transcript.notes) if resume else (),
    )
