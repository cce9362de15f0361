"""Keeps the last findings of each runbook in the state folder, so that the next answer can say what has changed.

One small file, 0600, replaced whole. It is a convenience: when it cannot be read or written, the answer is given
without that sentence, and two questions at once may forget one of them. What the log says is not touched.
"""

import os

from guard.errors import StateError
from runbooks.since import FORMAT, MOST_BYTES, kept_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from runbooks.report import Report

FOLDER, FILE = "runbooks", "last.json"


def recall() -> "dict[str, Any]":
    """What was kept, by runbook; empty when nothing was or it cannot be read."""
    import json

    from guard.ledger.state import StateFolder, state_path

    try:
        state = StateFolder(state_path())
        with state.folder(FOLDER) as folder:
            kept = json.loads(state.read_file(FILE, dir_fd=folder, limit_bytes=MOST_BYTES))
    except (StateError, OSError, ValueError, RecursionError):
        return {}
    books = kept.get("runbooks") if isinstance(kept, dict) and kept.get("format") == FORMAT else None
    return books if isinstance(books, dict) else {}


def remember(report: "Report") -> None:
    """Keeps this report's findings beside those of other runbooks."""
    from cli.json_text import json_line
    from guard.ledger.state import StateFolder, state_path, write_all

    kept = kept_of(report)
    if not kept:
        return
    line = json_line({"format": FORMAT, "runbooks": {**recall(), **kept}}) + "\n"
    try:
        state = StateFolder(state_path())
        with state.folder(FOLDER, create=True) as folder:
            fresh = f".{FILE}.{os.getpid()}"
            fd = state.open_file(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, dir_fd=folder)
            try:
                write_all(fd, line.encode())
                # Not synced to the disk: after a crash the file may be empty, and then nothing is remembered.
                os.rename(fresh, FILE, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(fresh, dir_fd=folder)
                raise
            finally:
                os.close(fd)
    except (StateError, OSError):
        return
