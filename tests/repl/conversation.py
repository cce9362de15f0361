"""Conversations for tests of the terminal: events in order, and how rows look on paper."""

from __future__ import annotations

import os
from pathlib import Path

from agent.repl import rows, transcript
from agent.repl.lines import text_of
from dialogue import events as ev
from dialogue.confirm import Ask

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "repl"

ASK = Ask(
    id="a-7k2m4p",
    target="local",
    host="web-1",
    user="root (uid 0)",
    cwd="/srv/www",
    command="systemctl restart nginx",
    level="R1",
    reasons=("restarts a service: what it holds in memory is lost",),
    effects=("service nginx",),
    reversible="yes",
    snapshot_plan=("state of nginx",),
    not_bound=(),
    must_type="",
    why="",
    expires_at="",
    holds="one run within 15 min",
    asked_by="agent through repl",
)


def folded(*events: ev.Event) -> transcript.Transcript:
    """The transcript after these events."""
    told = transcript.Transcript()
    for event in events:
        told = transcript.reduce(told, event)
    return told


def written(columns: int, *events: ev.Event) -> list[str]:
    """What is in the scrollback after these events, released as often as possible, as text rows."""
    told, lines = transcript.Transcript(), []
    for event in events:
        told = transcript.reduce(told, event)
        pieces, told = transcript.release(told)
        for piece in pieces:
            lines += rows.rows_of(piece, columns)
    return [text_of(line) for line in lines]


def golden(name: str, text: str) -> None:
    """Compares with a file, or writes it when UPDATE_GOLDEN is set."""
    file = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    assert text == file.read_text(), f"{file} differs; UPDATE_GOLDEN=1 writes it anew: read the difference"
