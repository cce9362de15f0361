"""A process of its own that runs one change, outlives us, and sees its end. Only the way to it and back is here.

Why a process: a change must not die with the terminal, the agent or the host that asked for it, and its exit code must
not be lost with them. The witness is the change's parent and reads its output; we only listen. It waits at a gate until
its owner has put the begin on record, so that "began" is on disk before anything happens, and a gate that closes
without a word means: do not run.

The wire: one JSON line with the order in at the gate; JSON lines out, `{"stream", "data"}` for output as it comes and
one `{"end": …}`. What the witness does with an order is its caller's business (`execution`).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from guard.errors import CannotRun
from guard.hands.cancel import CancelToken
from guard.hands.liveness import process_start

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from guard.ports import Cancel

    Emit = Callable[[str, bytes], None]

PATIENCE_S = 5.0
"""A listener that reads nothing for this long is no longer told about output; the end and the record do not need it."""

ORDER_LIMIT_BYTES = 4 << 20
NEVER_BEGAN = 3
"""Exit code of a witness whose gate closed without an order."""


class Witness:
    """The owner's end. `pid` and `start` name the process in the record."""

    def __init__(self, argv: Sequence[str]) -> None:
        """Starts the process; it waits at the gate. Raises CannotRun."""
        # A stop that comes while it is still starting waits until it can be obeyed, and does not kill it unrecorded.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                close_fds=True,
            )
        except OSError as error:
            raise CannotRun(f"the process that watches a change could not be started: {error.strerror}") from error
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.pid = self._process.pid
        self.start = process_start(self.pid)

    def open_gate(self, order: dict[str, Any]) -> None:
        """Lets it begin. Raises CannotRun when it is gone already: nothing ran."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(order).encode() + b"\n")
            self._process.stdin.close()
        except OSError as error:
            raise CannotRun("the process that watches a change ended before it began") from error

    def close_gate(self) -> None:
        """Sends it home without an order: it runs nothing."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.wait()
        self.let_go()

    def follow(
        self, timeout_s: float, cancel: Cancel | None = None, on_output: Emit | None = None
    ) -> dict[str, Any] | None:
        """Listens until the end, the time limit, or the cancel token.

        Returns:
            What the witness said of the end; None when it was still at work at the limit or when the token was set,
            or when it vanished without a word (the record then reads as unknown).
        """
        assert self._process.stdout is not None
        fd = self._process.stdout.fileno()
        os.set_blocking(fd, False)
        deadline = time.monotonic() + timeout_s
        pending = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_READ)
            if cancel is not None:
                selector.register(cancel.fileno(), selectors.EVENT_READ)
            while True:
                left = deadline - time.monotonic()
                if left <= 0 or (cancel is not None and cancel.is_set()):
                    return None
                if not any(key.fd == fd for key, _ in selector.select(left)):
                    continue
                block = os.read(fd, 1 << 16)
                if not block:
                    # It is dying: its descriptors close before its process is gone, and who asks next must see it gone.
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        self._process.wait(2)
                    return None
                pending += block
                while (newline := pending.find(b"\n")) >= 0:
                    frame = json.loads(pending[:newline])
                    del pending[: newline + 1]
                    if "end" in frame:
                        self._process.wait()
                        self._process.stdout.close()
                        end: dict[str, Any] = frame["end"]
                        return end
                    if on_output is not None:
                        on_output(frame["stream"], base64.b64decode(frame["data"]))

    def stop(self) -> None:
        """Asks it to end the change (TERM, then KILL after two seconds) and to record that."""
        stop(self.pid, self.start)

    def let_go(self) -> None:
        """Stops listening. The witness goes on, and records the end by itself."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        # Somebody has to collect it when it ends, or a shell that lives long gathers zombies.
        threading.Thread(target=self._process.wait, daemon=True, name=f"witness {self.pid}").start()


def stop(pid: int, start: int) -> bool:
    """Asks the witness with this pid and start time to end its change. False when it is not there any more."""
    if pid <= 1 or process_start(pid) != start:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        return True
    return False


def serve(run: Callable[[dict[str, Any], Emit, CancelToken], dict[str, Any]]) -> int:
    """The witness's end: waits at the gate, runs the order, tells the end. Returns the exit code.

    Args:
        run: gets the order, a function that passes output on, and a token that TERM sets; returns what to tell.
    """
    token = CancelToken()
    signal.signal(signal.SIGTERM, lambda *_: token.set())
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    line = sys.stdin.buffer.readline(ORDER_LIMIT_BYTES)
    if not line.endswith(b"\n"):
        return NEVER_BEGAN
    out = _Teller(sys.stdout.fileno())
    end = run(json.loads(line), out.output, token)
    out.tell({"end": end})
    return 0


class _Teller:
    """Writes frames to a listener that may be slow or gone; neither may stop the change."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._gone = False
        os.set_blocking(fd, False)

    def output(self, stream: str, data: bytes) -> None:
        self.tell({"stream": stream, "data": base64.b64encode(data).decode("ascii")})

    def tell(self, frame: dict[str, Any]) -> None:
        rest = memoryview(json.dumps(frame).encode() + b"\n")
        while rest and not self._gone:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                self._gone = not select.select([], [self._fd], [], PATIENCE_S)[1]
            except OSError:
                self._gone = True
