"""One answer for one question, whoever is first: how a dead man's wait ended. Touches the state folder only."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from guard.ledger.state import StateFolder

FOLDER = "deadman"
CONFIRMED, FIRED, STOOD_DOWN = "confirmed", "fired", "stood-down"
OUTCOMES = frozenset((CONFIRMED, FIRED, STOOD_DOWN))


def claim(folder: StateFolder, execution: str, outcome: str) -> bool:
    """Says how it ended; False when somebody said so before. Atomic and durable, so it ends once. Raises StateError.

    An empty file says `fired`: it needs no space, so a full disk keeps nothing from being taken back once.
    """
    with folder.folder(FOLDER, create=True) as fd:
        return folder.write_new(execution, b"" if outcome == FIRED else outcome.encode("ascii"), dir_fd=fd)


def outcome_of(folder: StateFolder, execution: str) -> str:
    """How it ended, "" while it has not. Raises StateError."""
    try:
        with folder.folder(FOLDER) as fd:
            text = folder.read_file(execution, dir_fd=fd, limit_bytes=64).decode("ascii", "replace")
    except FileNotFoundError:
        return ""
    return text if text in OUTCOMES else FIRED
