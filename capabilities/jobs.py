"""Calls in threads of their own: waited for, followed, stopped, and kept for a while so that they can be polled.

A `Jobs` belongs to one client; what it keeps is only what that client started. Memory is bounded: transcripts have a
head and a tail, and only the newest jobs are kept.
"""

from __future__ import annotations

import codecs
import os
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guard.errors import GuardError

if TYPE_CHECKING:
    from collections.abc import Callable

    from guard.hands.cancel import CancelToken

HEAD_CHARS = 65_536
TAIL_CHARS = 262_144
"""What a transcript holds of a long output: as much as a reader pages through; the whole is in the saved output."""

KEPT_JOBS = 64
KEPT_CHARS = 8_000_000
"""Finished jobs beyond either limit are forgotten, oldest first."""

QUEUED, RUNNING, DONE = "queued", "running", "done"


class Cancelled(GuardError):
    """The caller wanted no answer any more."""

    code = "cancelled"
    exit_code = 130


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a transcript."""

    text: str
    offset: int
    """Of its first character; later than asked for when what lay before is no longer held."""
    next_offset: int
    size: int
    """Characters in all, so far."""


class Transcript:
    """Redacted output in the order in which it came; its first and last part. One writer, any number of readers."""

    def __init__(self) -> None:
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_chars = 0
        self._size = 0
        self._lock = threading.Lock()
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}

    def __len__(self) -> int:
        return self._size

    @property
    def held_chars(self) -> int:
        return len(self._head) + self._tail_chars

    def feed(self, stream: str, data: bytes) -> None:
        """Takes the next bytes of one stream; a character that is split between two calls stays whole."""
        decoder = self._decoders.get(stream)
        if decoder is None:
            decoder = self._decoders[stream] = codecs.getincrementaldecoder("utf-8")("replace")
        text = decoder.decode(data)
        with self._lock:
            self._size += len(text)
            room = HEAD_CHARS - len(self._head)
            if room > 0:
                self._head += text[:room]
                text = text[room:]
            if text:
                self._tail.append(text)
                self._tail_chars += len(text)
            while self._tail_chars - len(self._tail[0] if self._tail else "") >= TAIL_CHARS:
                self._tail_chars -= len(self._tail.popleft())

    def page(self, offset: int, characters: int) -> Page:
        """At most so many characters from `offset` on."""
        with self._lock:
            tail_from = self._size - self._tail_chars
            offset = min(offset, self._size)
            if len(self._head) <= offset < tail_from:
                offset = tail_from
            if offset < len(self._head):
                text = self._head[offset : offset + characters]
                if offset + len(text) == tail_from:
                    text += "".join(self._tail)[: characters - len(text)]
            else:
                text = "".join(self._tail)[offset - tail_from :][:characters]
            return Page(text, offset, offset + len(text), self._size)


class Job:
    """One call on its way. `answer` or `error` is set when `state` is DONE."""

    def __init__(self, id: str, tool: str, cancel: CancelToken) -> None:
        self.id = id
        """Ours, until the execution has one."""
        self.tool = tool
        self.execution = ""
        self.state = QUEUED
        self.transcript = Transcript()
        self.answer: dict[str, Any] | None = None
        self.error: BaseException | None = None
        self.began_s = time.monotonic()
        self.took_s = 0.0
        self.cancel_token = cancel
        self._lock = threading.Lock()
        self._finished = threading.Event()
        self._then: list[Callable[[], None]] = []

    @property
    def elapsed_s(self) -> float:
        return self.took_s if self.state == DONE else time.monotonic() - self.began_s

    def began(self, execution: str) -> None:
        """The execution has an id."""
        self.execution = execution

    def cancel(self) -> None:
        """Stops it, if it still runs."""
        with self._lock:
            if self.state != DONE:
                self.cancel_token.set()

    def wait(self, timeout_s: float) -> bool:
        """Waits for the end; False when it has not come."""
        return self._finished.wait(timeout_s)

    def when_done(self, call: Callable[[], None]) -> None:
        """Calls once when it is done, from its thread; at once when it is."""
        with self._lock:
            if self.state != DONE:
                self._then.append(call)
                return
        call()

    def run(self, work: Callable[[Job], dict[str, Any]]) -> None:
        """Does the work in this thread."""
        self.state = RUNNING
        try:
            if self.cancel_token.is_set():
                raise Cancelled("cancelled before it began")
            self.answer = work(self)
        except BaseException as error:  # whoever waits must learn of every end
            self.error = error
        with self._lock:
            self.took_s = time.monotonic() - self.began_s
            self.state = DONE
            self.cancel_token.close()
            then, self._then = self._then, []
        self._finished.set()
        for call in then:
            call()


class Jobs:
    """The calls of one client, over a few threads that never hold up the end of the process."""

    def __init__(self, threads: int = 32, *, shared_outputs: str = "") -> None:
        """Args: shared_outputs: a folder whose saved outputs this client may read, whoever ran the commands."""
        self._threads = threads
        self._shared = os.path.realpath(shared_outputs) if shared_outputs else ""
        self._lock = threading.Condition()
        self._queue: deque[tuple[Job, Callable[[Job], dict[str, Any]]]] = deque()
        self._idle = 0
        self._started = 0
        self._number = 0
        self._active: dict[str, Job] = {}
        self._kept: OrderedDict[str, Job] = OrderedDict()
        self._outputs: OrderedDict[str, None] = OrderedDict()

    def start(self, tool: str, work: Callable[[Job], dict[str, Any]]) -> Job:
        """Queues the work and returns at once."""
        from guard.hands.cancel import CancelToken

        with self._lock:
            self._number += 1
            job = Job(f"j-{self._number}", tool, CancelToken())
            self._active[job.id] = job
            job.when_done(lambda: self._ended(job))
            self._queue.append((job, work))
            if self._idle < len(self._queue) and self._started < self._threads:
                self._started += 1
                threading.Thread(target=self._serve, name=f"job-{self._started}", daemon=True).start()
            self._lock.notify()
        return job

    def keep(self, job: Job) -> None:
        """Keeps a job so that `find` knows it after its end; forgets the oldest finished ones beyond the limits."""
        with self._lock:
            self._kept[job.id] = job
            self._kept.move_to_end(job.id)
            self._forget()

    def find(self, id: str) -> Job | None:
        """The job with this id or with this execution, running or kept."""
        with self._lock:
            for job in (*self._active.values(), *self._kept.values()):
                if id in (job.id, job.execution):
                    return job
        return None

    def saved(self, path: str) -> None:
        """Notes a file that holds output of this client's own commands."""
        with self._lock:
            self._outputs[path] = None
            while len(self._outputs) > 1000:
                self._outputs.popitem(last=False)

    def may_read_output(self, path: str) -> bool:
        """Whether a file (its real path) holds output of this client's own commands, or of those that share theirs."""
        folder, name = os.path.split(path)
        if self._shared and folder == self._shared and name.startswith("e-") and name.endswith(".txt"):
            return True
        with self._lock:
            return path in self._outputs

    @property
    def active(self) -> int:
        """How many are queued or running."""
        return len(self._active)

    def cancel_all(self, wait_s: float) -> None:
        """Stops all and waits so long, together, until they are recorded."""
        with self._lock:
            jobs = list(self._active.values())
        for job in jobs:
            job.cancel()
        until = time.monotonic() + wait_s
        for job in jobs:
            job.wait(max(0.0, until - time.monotonic()))

    def _ended(self, job: Job) -> None:
        with self._lock:
            self._active.pop(job.id, None)
            if job.id in self._kept:
                self._forget()

    def _forget(self) -> None:
        chars = sum(job.transcript.held_chars for job in self._kept.values())
        for id, job in list(self._kept.items()):
            if len(self._kept) <= KEPT_JOBS and chars <= KEPT_CHARS:
                return
            if job.state == DONE:
                chars -= job.transcript.held_chars
                del self._kept[id]

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
                while not self._queue:
                    self._lock.wait()
                self._idle -= 1
                job, work = self._queue.popleft()
            job.run(work)
            del job, work
