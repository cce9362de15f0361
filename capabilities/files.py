"""`read`: a part of a text file, by lines, redacted from its beginning so that no secret is split by a page's edge."""

from __future__ import annotations

import os
import stat
from itertools import islice
from typing import TYPE_CHECKING

import execution
from capabilities.bounded import cut_text, largest_page
from capabilities.registry import JSON, Tool, hints_of, parameters
from capabilities.shapes import next_step
from guard.errors import UsageError
from guard.quoting import joined
from guard.types import Level, Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from capabilities.call import Call
    from capabilities.jobs import Jobs

LINES = 200
MOST_LINES = 2000
LINE_CHARS = 4000
"""A longer line is shown by its head and tail."""
_HELD_BYTES = 4 * LINE_CHARS
CONTEXT_LINES = 256
"""Read before the wanted last lines, so that what began there (a 16,384 bit key has 200 lines) is recognised."""


class CannotRead(UsageError):
    """There is no text to read under that path."""

    code = "usage.path"


class _Lines:
    """Takes redacted bytes and keeps the lines first..last (1-based), or the last `count`."""

    def __init__(self, first: int, count: int) -> None:
        self.first = first
        self.count = count
        self.seen = 0
        self.kept: list[str] = []
        self._rest = b""
        self._gap_bytes = 0

    def feed(self, stream: str, data: bytes) -> None:
        if stream != "stdout":
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._rest) > 4 * _HELD_BYTES:
            self._gap_bytes += len(self._rest) - 2 * _HELD_BYTES
            self._rest = self._rest[:_HELD_BYTES] + self._rest[-_HELD_BYTES:]

    def finish(self) -> None:
        if self._rest:
            self._line(self._rest)
            self._rest = b""

    def _line(self, line: bytes) -> None:
        self.seen += 1
        if self.first < 0:
            self.add(self._shown(line))
        elif self.first <= self.seen < self.first + self.count:
            self.kept.append(self._shown(line))
        self._gap_bytes = 0

    def add(self, line: str) -> None:
        """Keeps it as the last of at most `count`."""
        self.kept.append(line)
        del self.kept[: -self.count]

    def _shown(self, line: bytes) -> str:
        if not self._gap_bytes:
            return cut_text(line.decode("utf-8", "replace"), LINE_CHARS)
        head = line[:_HELD_BYTES].decode("utf-8", "replace")[: LINE_CHARS * 2 // 3]
        tail = line[-_HELD_BYTES:].decode("utf-8", "replace")[-LINE_CHARS // 3 :]
        missing = self._gap_bytes + len(line) - len(head.encode()) - len(tail.encode())
        return f"{head}\n[… about {missing:,} bytes left out …]\n{tail}"


def read_tool(guard: execution.Guard, call: Call, jobs: Jobs) -> Tool:
    """`read`: runs as a read through the guard, on the path that the given one really is."""

    def run(arguments: JSON) -> JSON:
        offset, limit = int(arguments.get("offset", 1)) or 1, int(arguments.get("limit", LINES))
        path = os.path.realpath(os.path.join(call.cwd, arguments["path"]))
        if jobs.may_read_output(path):
            return _saved(path, offset, limit)
        _require_file(path)
        return _through_the_guard(guard, call, path, offset, limit)

    return Tool(
        "read",
        "Reads lines of a text file, in the sandbox. `offset` is the first line (1-based); a negative one counts from "
        "the end. Also reads the `output_file` of your own runs.",
        parameters(
            {"path": {"type": "string", "minLength": 1, "maxLength": 4096, "pattern": "^[^\\u0000]*$"}},
            {
                "offset": {"type": "integer"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_LINES},
            },
        ),
        hints_of(Level.R0),
        run,
        {"type": "object", "required": ["format"]},
    )


def _require_file(path: str) -> None:
    """Accepts a regular file, or one that only the guard can look at. Raises CannotRead."""
    try:
        mode = os.stat(path).st_mode
    except PermissionError:
        return
    except (OSError, ValueError) as error:
        raise CannotRead(
            f"there is no file {repr(path)[1:-1]}: {getattr(error, 'strerror', None) or 'not a path'}",
            not_done="nothing was read",
            hint='look with ops_exec{"command": "ls -la DIR"}',
        ) from None
    if stat.S_ISDIR(mode):
        raise CannotRead(
            f"{repr(path)[1:-1]} is a folder",
            not_done="nothing was read",
            hint=f"ops_exec: ls -la -- {joined([path])}",
        )
    if not stat.S_ISREG(mode):
        # A device can have a line without an end, and a pipe waits for its writer.
        raise CannotRead(f"{repr(path)[1:-1]} is no regular file", not_done="nothing was read")


def _through_the_guard(guard: execution.Guard, call: Call, path: str, offset: int, limit: int) -> JSON:
    if offset > 0:
        argv = ["head", "-n", str(offset + limit), "--", path]
        lines = _Lines(offset, limit + 1)
    else:
        argv = ["tail", "-n", str(-offset + CONTEXT_LINES), "--", path]
        lines = _Lines(-1, -offset)
    ran = execution.run(
        call.request(joined(argv)), guard, cancel=call.cancel, on_output=lines.feed, on_begin=call.on_begin
    )
    lines.finish()
    outcome = ran.outcome
    found: JSON = {
        "format": 1,
        "path": path,
        "status": outcome.status,
        "level": ran.assessment.level.name,
        "execution": outcome.execution,
        "request": outcome.request_id,
        "recorded": outcome.recorded,
        "next": next_step(outcome),
    }
    if outcome.status != Status.SUCCEEDED:
        because = outcome.decision.text if outcome.decision and outcome.execution is None else ""
        return {**found, "because": because or outcome.stderr.text[:1000]}
    return _page(found, lines.kept, offset, limit)


def _page(found: JSON, kept: list[str], offset: int, limit: int) -> JSON:
    """The biggest page that fits. `kept` holds what lies from `offset` on, at least one line more if there is more."""
    if offset < 0:
        offset = -len(kept)  # a shorter file has no lines further back

    def make(count: int) -> JSON:
        shown = kept[:count]
        more = len(kept) > len(shown)
        return {
            **found,
            "content": "".join(f"{line}\n" for line in shown),
            "offset": offset,
            "lines": len(shown),
            "next_offset": offset + len(shown) if more else None,
        }

    return largest_page(make, min(limit, max(1, len(kept))))


def _saved(path: str, offset: int, limit: int) -> JSON:
    """Lines of an output that was saved redacted; it lies where no sandboxed command may look."""
    try:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            if offset > 0:
                kept = list(islice(_lines(file), offset - 1, offset + limit))
            else:
                window = _Lines(-1, -offset)
                for line in _lines(file):
                    window.add(line)
                kept = window.kept
    except OSError as error:
        raise CannotRead(
            f"the saved output {repr(path)[1:-1]} is gone: {error.strerror}",
            not_done="nothing was read",
            hint="run the command again; the newest 200 outputs are kept",
        ) from None
    found: JSON = {"format": 1, "path": path, "status": Status.SUCCEEDED}
    return _page(found, kept, offset, limit)


def _lines(file: Iterable[str]) -> Iterable[str]:
    return (cut_text(line.rstrip("\n"), LINE_CHARS) for line in file)
