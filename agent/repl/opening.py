"""What a conversation begins with on the screen. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent.repl.status import short_brain
from agent.repl.transcript import NoteRow

if TYPE_CHECKING:
    from agent.repl.world import Opened


def greeting(opened: Opened, person: bool) -> tuple[NoteRow, ...]:
    """Which conversation this is, and what has to be known of it before the first word."""
    notes = [NoteRow("session", f"conversation {opened.id} with {short_brain(opened.brain)} · /help · /exit")]
    if not person:
        notes.append(NoteRow("notice", "nobody can approve here: a change is kept for opsx approve a-…"))
    return (*notes, *(NoteRow("notice", note) for note in opened.notes))
