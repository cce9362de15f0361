"""The log folded for listing and look-up. Touches the state folder's `index.db`, which may be deleted at any time.

The log is read directly while it is small. Beyond that a SQLite file says where in the log the entries of each id
are; it is brought up to the log's end before every answer, and whatever is wrong with it (locked, corrupt,
read-only, of another log) the answer comes from the log instead. It is never an error.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from typing import TYPE_CHECKING, TypeVar

from guard.errors import StateError
from guard.ledger.carried import distinct, entries_of, record_of, records_of
from guard.ledger.formats import Malformed, decoded_entry, sha256_of
from guard.ledger.records import FINAL, OPEN, Execution, Fold
from guard.ledger.segments import LOG_FOLDER, lines_from, lines_of, open_segment, segment_numbers
from guard.ledger.state import state_error_of
from guard.types import Status

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from guard.ledger.formats import Entry
    from guard.ledger.segments import Line
    from guard.ledger.state import StateFolder
    from guard.ports import Liveness

ANSWERS = frozenset(("approved", "denied", "revoked", "frozen", "thawed", "signing", "checkpoint"))
"""Kinds that are looked for by kind, newest first: what persons said, and what the log says about itself."""

ID_FIELDS = ("execution", "request", "stamp", "snapshot")
"""An entry is about the ids in these fields."""

SMALL_LOG_BYTES = 1024 * 1024
"""Up to this size the log is folded at once: that takes less time than to load SQLite."""

INDEX_NAME = "index.db"
INDEX_FORMAT = 4
"""Another number in the file means: build it again."""

BATCH_LINES = 20_000
"""Lines per transaction, so that a first build of a long log goes on where it was interrupted."""

LOCK_WAIT_S = 1.0

_SCHEMA = """
CREATE TABLE meta (format INTEGER, sha256 TEXT, segment INTEGER, start INTEGER, end INTEGER,
                   unreadable INTEGER, first INTEGER);
CREATE TABLE executions (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, at TEXT, status TEXT);
CREATE INDEX executions_by_status ON executions (status, seq);
CREATE TABLE places (ref TEXT, segment INTEGER, start INTEGER, end INTEGER, PRIMARY KEY (ref, segment, start))
    WITHOUT ROWID;
"""


T = TypeVar("T")


class _Stale(Exception):
    """The index does not speak of this log."""


def newest(
    folder: StateFolder,
    liveness: Liveness,
    *,
    status: str | None,
    since: str | None,
    limit: int,
    small_log_bytes: int = SMALL_LOG_BYTES,
) -> tuple[list[Execution], int]:
    """The newest executions that fit, newest first, and how many lines of the log could not be read."""

    def from_index(index: _Index) -> tuple[list[Execution], int]:
        candidates = index.executions(status, since)
        return fitting(candidates, liveness, status=status, since=since, limit=limit), index.unreadable()

    def from_log() -> tuple[list[Execution], int]:
        fold = Fold().add_all(records_of(lines_from(folder)))
        newest_first = sorted(fold.executions.values(), key=lambda execution: -execution.seq)
        return fitting(newest_first, liveness, status=status, since=since, limit=limit), fold.unreadable

    return _answered(folder, small_log_bytes, from_index, from_log)


def about(folder: StateFolder, record_id: str, *, small_log_bytes: int = SMALL_LOG_BYTES) -> list[Entry]:
    """The entries about one id, oldest first."""

    def from_index(index: _Index) -> list[Entry]:
        return list(index.about(record_id))

    def from_log() -> list[Entry]:
        return [entry for entry in records_of(lines_from(folder)) if record_id in ids_of(entry)]

    return _answered(folder, small_log_bytes, from_index, from_log)


def about_each(
    folder: StateFolder, record_ids: Iterable[str], *, small_log_bytes: int = SMALL_LOG_BYTES
) -> dict[str, list[Entry]]:
    """The entries about each of several ids, oldest first; the log is gone through once for all of them."""
    wanted = dict.fromkeys(record_ids)
    if not wanted:
        return {}

    def from_index(index: _Index) -> dict[str, list[Entry]]:
        return {record_id: list(index.about(record_id)) for record_id in wanted}

    def from_log() -> dict[str, list[Entry]]:
        found: dict[str, list[Entry]] = {record_id: [] for record_id in wanted}
        for entry in records_of(lines_from(folder)):
            for record_id in ids_of(entry) & found.keys():
                found[record_id].append(entry)
        return found

    return _answered(folder, small_log_bytes, from_index, from_log)


def recent(
    folder: StateFolder, kinds: Iterable[str], *, most: int, small_log_bytes: int = SMALL_LOG_BYTES
) -> list[Entry]:
    """The newest entries of some kinds of `ANSWERS`, newest first."""
    wanted = frozenset(kinds)
    assert wanted <= ANSWERS

    def from_index(index: _Index) -> list[Entry]:
        return list(index.recent(wanted, most))

    def from_log() -> list[Entry]:
        marks = [f'"kind":"{kind}"'.encode() for kind in wanted]
        kept: deque[Entry] = deque(maxlen=most)
        for line in lines_from(folder):
            # Nearly all of a long log is runs: what cannot be an answer is not decoded.
            if any(mark in line.raw for mark in marks):
                kept.extend(entry for entry in records_of(iter((line,))) if entry["kind"] in wanted)
        return list(distinct(reversed(kept)))

    return _answered(folder, small_log_bytes, from_index, from_log)


def last_of(
    folder: StateFolder, groups: Sequence[tuple[str, ...]], *, small_log_bytes: int = SMALL_LOG_BYTES
) -> list[Entry | None]:
    """The newest entry of each group of kinds of `ANSWERS`, None where there is none; the log is gone through once."""
    wanted = {kind: at for at, kinds in enumerate(groups) for kind in kinds}
    assert wanted.keys() <= ANSWERS

    def from_index(index: _Index) -> list[Entry | None]:
        return [next(iter(index.recent(frozenset(kinds), 1)), None) for kinds in groups]

    def from_log() -> list[Entry | None]:
        marks = [f'"kind":"{kind}"'.encode() for kind in wanted]
        last: list[Entry | None] = [None] * len(groups)
        for line in lines_from(folder):
            if any(mark in line.raw for mark in marks):
                for entry in records_of(iter((line,))):
                    if (at := wanted.get(entry["kind"])) is not None:
                        last[at] = entry
        return last

    return _answered(folder, small_log_bytes, from_index, from_log)


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


def last_entries(folder: StateFolder, count: int) -> list[Entry]:
    """The last entries of the log, oldest of them first; reads back segment by segment."""
    kept: deque[Line] = deque()
    try:
        with folder.folder(LOG_FOLDER) as log_fd:
            for number in reversed(segment_numbers(log_fd)):
                if len(kept) >= count:
                    break
                fd = open_segment(folder, log_fd, number)
                try:
                    kept.extendleft(reversed(deque(lines_of(fd, number), maxlen=count - len(kept))))
                finally:
                    os.close(fd)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise state_error_of(error, f"the log in {folder.path}") from error
    return list(entries_of(iter(kept)))


def _answered(
    folder: StateFolder, small_log_bytes: int, from_index: Callable[[_Index], T], from_log: Callable[[], T]
) -> T:
    """The index's answer, built anew once when it is no good; else the log's own."""
    if _log_bytes(folder) <= small_log_bytes:
        return from_log()
    import sqlite3  # 15 ms and 2 MB that a small log need not pay

    for _attempt in range(2):
        try:
            with _Index.opened(folder) as index:
                index.catch_up()
                return from_index(index)
        except (sqlite3.OperationalError, UnicodeError, OverflowError):
            break  # locked, full, read-only: it may be fine the next time; or a text that SQLite cannot hold
        except (sqlite3.Error, _Stale):
            with contextlib.suppress(StateError, OSError):
                _remove(folder)
        except (StateError, OSError):
            break
    return from_log()


def _log_bytes(folder: StateFolder) -> int:
    try:
        with folder.folder(LOG_FOLDER) as log_fd:
            return sum(os.stat(f"{number:06d}.jsonl", dir_fd=log_fd).st_size for number in segment_numbers(log_fd))
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise state_error_of(error, f"the log in {folder.path}") from error


def _remove(folder: StateFolder) -> None:
    with folder.root() as root:
        for name in (INDEX_NAME, f"{INDEX_NAME}-wal", f"{INDEX_NAME}-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=root)


def ids_of(entry: Entry) -> set[str]:
    """The ids that an entry is about; for an answer also its kind, behind a colon that no id has."""
    ids = {value for name in ID_FIELDS if isinstance(value := entry.get(name), str) and value.isascii()}
    kind = entry.get("kind")
    if isinstance(kind, str) and kind in ANSWERS:
        ids.add(f":{kind}")
    return ids


class _Index:
    """An open index of one log."""

    def __init__(self, folder: StateFolder, log_fd: int, database: sqlite3.Connection) -> None:
        self._folder = folder
        self._log_fd = log_fd
        self._database = database
        self._segment_fds: dict[int, int] = {}

    @classmethod
    @contextlib.contextmanager
    def opened(cls, folder: StateFolder) -> Iterator[_Index]:
        import sqlite3

        folder.require_writable()  # the index of a newer version is not ours to bring up to date
        with folder.root() as root, folder.folder(LOG_FOLDER) as log_fd:
            os.close(folder.open_file(INDEX_NAME, os.O_RDWR | os.O_CREAT, dir_fd=root))
            below = f"/proc/self/fd/{root}"
            path = below if os.path.isdir(below) else folder.path
            database = sqlite3.connect(os.path.join(path, INDEX_NAME), timeout=LOCK_WAIT_S, isolation_level=None)
            index = cls(folder, log_fd, database)
            try:
                database.execute("PRAGMA journal_mode=WAL")
                database.execute("PRAGMA synchronous=NORMAL")
                database.execute("PRAGMA cache_size=-65536")  # 64 MiB at most: ids are random, so are the pages
                yield index
            finally:
                database.close()
                for fd in index._segment_fds.values():
                    os.close(fd)

    def catch_up(self) -> None:
        """Reads what the log has beyond the index. Raises _Stale when the index is of another log."""
        if not self._database.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
            self._create()
        self._forget()
        while self._batch():
            pass

    def executions(self, status: str | None, since: str | None) -> Iterator[Execution]:
        """Newest first, folded from their entries in the log."""
        terms, values = [], []
        if status is not None:
            terms.append("status = ?")
            values.append(OPEN if status in (Status.RUNNING, Status.UNKNOWN) else status)
        if since is not None:
            terms.append("at >= ?")
            values.append(since)
        where = f" WHERE {' AND '.join(terms)}" if terms else ""
        for (execution_id,) in self._database.execute(
            f"SELECT id FROM executions{where} ORDER BY seq DESC",  # noqa: S608 - the terms are literals of ours
            values,
        ):
            execution = Fold().add_all(self.about(execution_id)).executions.get(execution_id)
            if execution is not None:  # its beginning went with its segment
                yield execution

    def about(self, record_id: str) -> Iterator[Entry]:
        """The entries about an id, read from the log where the index says. Raises _Stale when they are not there."""
        rows = self._database.execute(
            "SELECT segment, start, end FROM places WHERE ref = ? ORDER BY segment, start", (record_id,)
        ).fetchall()
        yield from distinct(self._entry(record_id, *place) for place in rows)

    def recent(self, kinds: Iterable[str], most: int) -> Iterator[Entry]:
        """The newest entries of these kinds, newest first. Raises _Stale likewise."""
        refs = [f":{kind}" for kind in kinds]
        rows = self._database.execute(
            f"SELECT ref, segment, start, end FROM places WHERE ref IN ({', '.join('?' * len(refs))})"  # noqa: S608
            " ORDER BY segment DESC, start DESC LIMIT ?",
            (*refs, most),
        ).fetchall()
        yield from distinct(self._entry(*place) for place in rows)

    def _entry(self, ref: str, segment: int, start: int, end: int) -> Entry:
        try:
            entry = decoded_entry(self._bytes(segment, start, end))
        except (Malformed, FileNotFoundError):
            raise _Stale from None
        if ref not in ids_of(record_of(entry)):
            raise _Stale
        return entry

    def unreadable(self) -> int:
        """How many lines of the log are not records."""
        (count,) = self._database.execute("SELECT unreadable FROM meta").fetchone()
        return int(count)

    def _create(self) -> None:
        self._database.execute("BEGIN IMMEDIATE")
        with self._database:
            if self._database.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
                return
            for statement in _SCHEMA.split(";"):
                self._database.execute(statement)
            self._database.execute("INSERT INTO meta VALUES (?, '', 0, 0, 0, 0, 0)", (INDEX_FORMAT,))

    def _forget(self) -> None:
        """Takes out what is of segments that are gone from the log."""
        self._require_format()
        (first,) = self._database.execute("SELECT first FROM meta").fetchone()
        numbers = segment_numbers(self._log_fd)
        if not numbers or first >= numbers[0]:
            return
        self._database.execute("BEGIN IMMEDIATE")
        with self._database:
            self._database.execute("DELETE FROM places WHERE segment < ?", (numbers[0],))
            self._database.execute("DELETE FROM executions WHERE id NOT IN (SELECT ref FROM places)")
            self._database.execute("UPDATE meta SET first = ?", (numbers[0],))

    def _require_format(self) -> None:
        """Raises _Stale for an index of another version, before a column of ours is asked for."""
        row = self._database.execute("SELECT format FROM meta").fetchone()
        if row is None or row[0] != INDEX_FORMAT:
            raise _Stale

    def _batch(self) -> bool:
        """Takes in the next lines; False when there are none. Does not write when there is nothing new."""
        if self._next_line(self._anchor()) is None:
            return False
        self._database.execute("BEGIN IMMEDIATE")
        with self._database:
            return self._take(self._anchor())

    def _next_line(self, anchor: tuple[int, int, int]) -> Line | None:
        return next(lines_from(self._folder, anchor[0], anchor[1]), None)

    def _anchor(self) -> tuple[int, int, int]:
        """Segment and offset up to which the log is in the index, and its unreadable lines so far."""
        self._require_format()
        row = self._database.execute("SELECT sha256, segment, start, end, unreadable FROM meta").fetchone()
        sha256, segment, start, end, unreadable = row
        if segment:
            try:
                if sha256_of(self._bytes(segment, start, end)) != sha256:
                    raise _Stale
            except FileNotFoundError:
                raise _Stale from None
        return segment, end, unreadable

    def _take(self, anchor: tuple[int, int, int]) -> bool:
        segment, end, unreadable = anchor
        places, started, ended = [], [], []
        line, taken = None, 0
        for line in lines_from(self._folder, segment, end):
            taken += 1
            try:
                entry = decoded_entry(line.raw)
            except Malformed:
                unreadable += 1
                entry = {}
            entry = record_of(entry)
            places += [(ref, line.segment, line.start, line.end) for ref in ids_of(entry)]
            execution, kind, status = entry.get("execution"), entry.get("kind"), entry.get("status")
            if isinstance(execution, str) and execution.isascii():
                if kind == "started":
                    began_at = entry.get("began_at")
                    at = began_at if isinstance(began_at, str) and began_at else entry["at"]
                    started.append((entry["seq"], execution, at, OPEN))
                elif kind in ("ended", "reconciled") and isinstance(status, str) and status in FINAL:
                    ended.append((status, execution, OPEN))
            if taken == BATCH_LINES:
                break
        if line is None:
            return False
        self._database.executemany("INSERT OR IGNORE INTO executions VALUES (?, ?, ?, ?)", started)
        self._database.executemany("UPDATE executions SET status = ? WHERE id = ? AND status = ?", ended)
        self._database.executemany("INSERT OR IGNORE INTO places VALUES (?, ?, ?, ?)", places)
        self._database.execute(
            "UPDATE meta SET sha256 = ?, segment = ?, start = ?, end = ?, unreadable = ?",
            (sha256_of(line.raw), line.segment, line.start, line.end, unreadable),
        )
        return taken == BATCH_LINES

    def _bytes(self, segment: int, start: int, end: int) -> bytes:
        fd = self._segment_fds.get(segment)
        if fd is None:
            fd = self._segment_fds[segment] = open_segment(self._folder, self._log_fd, segment)
        return os.pread(fd, end - start, start)
