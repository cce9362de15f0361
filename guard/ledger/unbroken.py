"""Whether the log can be read from an entry on to its end, without a gap. Touches nothing.

What an entry means depends on what came after it: an approval is used up by a later line. So when one of the later
lines is not what was written, nothing can be said about it, and that has to be known before it is acted on.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from guard.ledger.carried import record_of
from guard.ledger.formats import Malformed, decoded_entry, sha256_of
from guard.ledger.segments import LOG_FOLDER, lines_from, lines_of, open_segment, segment_numbers
from guard.ledger.state import state_error_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from guard.ledger.segments import Line
    from guard.ledger.state import StateFolder


def broken_after(folder: StateFolder, seqs: Iterable[int]) -> frozenset[int]:
    """Those of some entries after which a line of the log is not what was written, or which are not to be found.

    Every line is chained to the one before by its hash, so most are not decoded: 100 MB take about half a second.

    Args:
        seqs: numbers of entries of the kind `approved`.
    Raises:
        StateError: the log cannot be read.
    """
    wanted = frozenset(seqs)
    if not wanted:
        return wanted
    sound: set[int] = set()
    before: Line | None = None
    for line in lines_from(folder, _segment_of(folder, min(wanted))):
        if before is not None and f'"prev":"{sha256_of(before.raw)}"'.encode() not in line.raw:
            sound.clear()
        if b'"code":"head-lost"' in line.raw:
            sound.clear()  # what used it up may have stood before this
        if b'"kind":"approved"' in line.raw:
            seq = _seq_of(line, as_carried=True)
            if seq in wanted:
                sound.add(seq)
        before = line
    if before is not None and not _seq_of(before):
        sound.clear()
    return wanted - sound


def _segment_of(folder: StateFolder, seq: int) -> int:
    """The newest segment that surely begins at or before an entry; 0 for the first."""
    try:
        with folder.folder(LOG_FOLDER) as log_fd:
            for number in reversed(segment_numbers(log_fd)):
                fd = open_segment(folder, log_fd, number)
                try:
                    first = next(lines_of(fd, number), None)
                finally:
                    os.close(fd)
                if first is not None and 0 < _seq_of(first) <= seq:
                    return number
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise state_error_of(error, f"the log in {folder.path}") from error
    return 0


def _seq_of(line: Line, *, as_carried: bool = False) -> int:
    """The entry's number, or that of the entry which it carries on; 0 when the line is no entry."""
    try:
        entry = decoded_entry(line.raw)
        return int((record_of(entry) if as_carried else entry)["seq"])
    except Malformed:
        return 0
