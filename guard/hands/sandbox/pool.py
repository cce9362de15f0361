"""The workers of one process."""

from __future__ import annotations

import contextlib
import os
import threading

from guard.hands.sandbox.kernel import Kernel
from guard.hands.sandbox.profiles import SandboxProfile
from guard.hands.sandbox.scratch import Scratch
from guard.hands.sandbox.worker import Worker, WorkerKey


class Pool:
    """The workers of one process: made when first needed, replaced when stale, the least used ones dropped."""

    LIMIT = 8

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._lock = threading.Lock()
        self._workers: dict[WorkerKey, Worker] = {}
        self._owner = os.getpid()

    def worker(self, key: WorkerKey, profile: SandboxProfile, scratch: Scratch) -> Worker:
        """A usable worker. Raises SandboxUnavailable."""
        with self._lock:
            if self._owner != os.getpid():  # after a fork the threads are gone
                self._workers, self._owner = {}, os.getpid()
            worker = self._workers.pop(key, None)
            if worker is not None and not worker.is_usable():
                worker.retire()
                worker = None
            if worker is None:
                worker = _kind_of(key)(self._kernel, key, profile, scratch)
            self._workers[key] = worker  # last place: most recently used
            while len(self._workers) > self.LIMIT:
                self._workers.pop(next(iter(self._workers))).retire()
            return worker

    def close(self) -> None:
        with self._lock, contextlib.suppress(RuntimeError):
            for worker in self._workers.values():
                worker.retire()
            self._workers = {}


def _kind_of(key: WorkerKey) -> type[Worker]:
    if not key.space:
        return Worker
    # Only where Landlock is missing: most processes never need it.
    from guard.hands.sandbox.space import SpaceWorker

    return SpaceWorker
