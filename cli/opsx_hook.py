"""`opsx hook HOST`: one tool call of an agent host on standard input, the host's answer on standard output.

Fails closed: whatever goes wrong here ends with exit code 2 and a sentence on stderr, within five seconds. It takes
no lock, writes nothing but the note of what the kernel enforces, and never sets anything up (docs/hook.md).
On the hot path: imports as little as it can.
"""

import os
import sys

from guard.errors import GuardError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from cli.options import Parsed

DEADLINE_S = 5
"""A host stops waiting after its own time (60 s and more) and then runs the command: an answer has to come first."""
SOFT_S = 4.0
"""When Python is still able to say what happened."""
DENIED = 2
"""The exit code that every host takes for "stop"."""


class _Late(BaseException):
    """The soft deadline has passed. Not an Exception: nothing on the way may catch it."""


def main(parsed: "Parsed") -> int:
    """Answers one call, or prints how to install the hook."""
    if parsed.flag("settings"):
        from cli.hooks.install import WHERE, settings_text
        from cli.hooks.ruling import surroundings_opsx
        from cli.report import write

        name = _host_name(parsed)
        write(settings_text(name, surroundings_opsx()))
        write(f"put this into {WHERE[name]}\n", to_stderr=True)
        return 0
    _set_deadline(SOFT_S, DEADLINE_S)
    try:
        answer = _answer_to(_host_name(parsed))
        _write_all(1, answer)
        return 0
    except GuardError as failure:
        return _deny(failure.message, failure)
    except _Late:
        return _deny(f"no answer within {SOFT_S:g} s", None)
    except BaseException as failure:  # Ctrl-C and a full stack too: a hook that ends in any other way would let it run
        return _deny("a fault in opsagent itself", failure)


def _host_name(parsed: "Parsed") -> str:
    from cli.hooks.hosts import HOSTS

    if len(parsed.words) != 1 or parsed.words[0] not in HOSTS:
        raise UsageError(f"say which host: {', '.join(HOSTS)}", hint=parsed.help_line())
    return parsed.words[0]


def _answer_to(name: str) -> bytes:
    """The whole answer, in the host's words; empty when the host's own rules decide."""
    from cli.hooks.frame import read_frame
    from cli.hooks.hosts import HOSTS, answer_object
    from cli.hooks.ruling import rule, surroundings_of
    from cli.json_text import json_line

    if sys.stdin is None or sys.stdout is None:
        # Closed at the start: the numbers 0 and 1 are then whatever was opened since, and an answer would go there.
        raise UsageError("standard input or output is closed")
    host = HOSTS[name]
    frame = read_frame()
    told = answer_object(host, rule(frame, host, surroundings_of(os.environ)), frame.input)
    return b"" if told is None else json_line(told).encode() + b"\n"


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _set_deadline(soft_s: float, hard_s: float) -> None:
    """Raises `_Late` here after `soft_s`; after `hard_s` the process ends from a thread that needs no Python."""
    import _signal  # type: ignore[import-not-found]  # `signal` itself loads enum
    import faulthandler

    def late(number: int, frame: "FrameType | None") -> None:
        raise _Late

    _signal.signal(_signal.SIGALRM, late)
    _signal.setitimer(_signal.ITIMER_REAL, soft_s)
    faulthandler.dump_traceback_later(hard_s, exit=True, file=2)


def _deny(message: str, failure: "BaseException | None") -> int:
    """Says why nothing was run, without any text of the command's, and returns the code that stops it."""
    where = ""
    try:
        if isinstance(failure, GuardError):
            from cli.report import safe

            message = safe(message)
        elif failure is not None:
            step = failure.__traceback__
            while step is not None:
                file = os.path.basename(step.tb_frame.f_code.co_filename)
                where = f" ({type(failure).__name__} at {file}:{step.tb_lineno})"
                step = step.tb_next
        _write_all(2, f"opsagent hook: {message}{where}. Nothing was run.\n".encode("utf-8", "replace"))
    except BaseException:
        sys.exit(DENIED)  # nobody can be told; the code still stops it
    return DENIED
