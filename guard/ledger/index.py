"""The log folded for listing and look-up. Touches the state folder's `index.db`, which may be deleted at any time.

The log is read directly while it is small. Beyond that a SQLite file says where in the log the entries of each id
are; it is brought up to the log's end before every answer, and whatever is wrong with it (locked, corrupt,
read-only, of another log) the answer comes from the log instead. It is never an error.
"""

from __future__ import annotations

import os
from collections import deque
from typing import TYPE_CHECKING

from guard.ledger.records import Execution, Fold
from guard.ledger.segments import LOG_FOLDER, lines_from, lines_of, open_segment, segment_numbers
from guard.ledger.state import state_error_of
from guard.ledger.verify import entries_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from guard.ledger.formats import Entry
    from guard.ledger.segments import Line
    from guard.ledger.state import StateFolder
    from guard.ports import Liveness

ID_FIELDS = ("execution", "request", "stamp", "snapshot")
"""An entry is about the ids in these fields."""


def newest(
    folder: StateFolder, liveness: Liveness, *, status: str | None, since: str | None, limit: int
) -> tuple[list[Execution], int]:
    """The newest executions that fit, newest first, and how many lines of the log could not be read."""
    fold = Fold().add_all(entries_of(lines_from(folder)))
    return fitting(
        reversed(fold.executions.values()), liveness, status=status, since=since, limit=limit
    ), fold.unreadable


def fitting(
    executions: Iterable[Execution], liveness: Liveness, *, status: str | None, since: str | None, limit: int
) -> list[Execution]:
    """The first `limit` of them that fit, each with its missing end read."""
    found: list[Execution] = []
    for execution in executions:
        if since is not None and execution.started_at < since:
            continue
        read = execution.read_with(liveness)
        if status is None or read.status == status:
            found.append(read)
            if len(found) == limit:
                break
    return found


def about(folder: StateFolder, record_id: str) -> Iterator[Entry]:
    """The entries about one id, oldest first."""
    for entry in entries_of(lines_from(folder)):
        if any(entry.get(name) == record_id for name in ID_FIELDS):
            yield entry


def last_entries(folder: StateFolder, count: int) -> list[Entry]:
    """The last entries of the log, oldest of them first; reads back segment by segment."""
    kept: deque[Line] = deque()
    try:
        with folder.folder(LOG_FOLDER) as log_fd:
            for number in reversed(segment_numbers(log_fd)):
                fd = open_segment(folder, log_fd, number)
                try:
                    kept.extendleft(reversed(deque(lines_of(fd, number), maxlen=count - len(kept))))
                finally:
                    os.close(fd)
                if len(kept) >= count:
                    break
    except FileNotFoundError:
        return []
    except OSError as error:
        raise state_error_of(error, f"the log in {folder.path}") from error
    return list(entries_of(iter(kept)))
