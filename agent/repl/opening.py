"""What a conversation begins and ends with on the screen. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.brains.entries import OFFLINE
from agent.repl.status import short_brain
from agent.repl.transcript import NoteRow

if TYPE_CHECKING:
    from agent.repl.world import Opened


def greeting(opened: Opened, person: bool) -> tuple[NoteRow, ...]:
    """Which conversation this is, and what has to be known of it before the first word."""
    what = f"conversation {opened.id} with {short_brain(opened.brain)}"
    if opened.brain == OFFLINE:
        what = "the runbooks answer, without a model; what is said here is not kept"
    notes = [NoteRow("session", f"{what} · /help · /exit")]
    if not person:
        notes.append(NoteRow("notice", "nobody can approve here: a change is kept for opsx approve a-…"))
    return (*notes, *(NoteRow("notice", note) for note in opened.notes))


def way_on(opened: Opened) -> str:
    """The id that goes on with a conversation later; "" where nothing of it is kept."""
    return "" if opened.brain == OFFLINE or not opened.messages() else opened.id
