"""`opsagent -p`: takes the question, opens the guard, prints the answer."""

import sys
import time

from agent import oneshot
from cli.json_text import json_line
from guard.errors import GuardError, UsageError
from runbooks.catalogue import BUILT_IN
from runbooks.look import BRAIN as OFFLINE
from runbooks.runner import Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from agent.brains.choice import Link
    from cli.options import Parsed
    from runbooks import runner
    from runbooks.catalogue import Books
    from runbooks.model import Ask

LANGUAGES = ("en", "zh")
STDIN_BYTES = 4 * oneshot.MOST_CHARACTERS + 1
"""More than the longest question can take in UTF-8, so that a longer one is seen to be too long."""
PROGRESS_AFTER_S = 2.0
BRAIN_VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")
MOST_REPLIES = 1_000
MOST_RUNBOOKS_S, MOST_MODEL_S = 120, 86_400
LEAST_WATCH_S, MOST_WATCH_S = 2, 86_400
CLEAR = "\x1b[H\x1b[2J"
"""Cursor home and clear (ECMA-48): a new answer stands where the last one was."""
PROGRESS_EVERY_S = 5.0
PROGRESS_COLUMNS = 60


class Interrupted(GuardError):
    """A person or the system stopped the question."""

    code = "cancelled"
    exit_code = 130


def main(parsed: "Parsed") -> int:
    """Answers the question that the arguments name."""
    links = links_of(parsed)
    question = question_of(parsed, with_model=bool(links))
    import core

    core.require_target(parsed.value("target", "local"))
    from cli import own_runbooks, surroundings
    from execution import open_guard

    guard = open_guard(
        surroundings.policy(read_only=parsed.flag("read-only")),
        outputs_folder=surroundings.outputs_folder(),
        noted=surroundings.enforcement(),
    )
    books = own_runbooks.books()
    question.shown = guard.redactor.text(question.text)
    beside = parsed.value("prompt", "-") != "-"
    if links:
        from cli import opsagent_model

        cwd = surroundings.cwd()
        if beside:
            add_piped(question, lambda: False)
        replies = parsed.whole_number("max-turns", 0, low=1, high=MOST_REPLIES)
        return opsagent_model.main(
            question, links, guard, cwd=cwd, books=books, replies=replies, resume=parsed.value("resume")
        )
    from capabilities.run import read_only_runner
    from cli import runbook_memory
    from cli.opsx_exec import cancel_on_signals

    cancel = cancel_on_signals()
    from guard.clock import RandomIds, SystemClock

    session = RandomIds().new("c")
    ask = read_only_runner(guard, cwd="/", session=session, cancel=cancel)
    if beside and question.output != "nagios":  # a monitoring system asks of the machine
        add_piped(question, cancel.is_set)
    return answer(
        question,
        ask,
        utc=SystemClock().utc,
        stopped=cancel.is_set,
        session=session,
        memory=runbook_memory,
        books=books,
        redact=guard.redactor.text,
    )


def links_of(parsed: "Parsed") -> "tuple[Link, ...]":
    """The brains that are asked, first choice first; none when the runbooks answer alone.

    Raises:
        BadBrains, BadConfig: what is configured or named cannot be used.
        UsageError: an option that only a model, or only the runbooks, can follow.
    """
    brain, model = parsed.value("brain"), parsed.value("model")
    alone = [name for name in ("nagios", "watch") if parsed.values.get(name)]
    if alone and (brain not in ("", OFFLINE) or model):
        raise UsageError(f"--{alone[0]} asks the runbooks, which need no model", hint="leave --brain and --model out")
    links: tuple[Link, ...] = ()
    if not alone and (brain not in ("", OFFLINE) or model or (not brain and somebody_set_one_up())):
        from cli.brains_config import chosen

        links = chosen(brain, model)
    wanting = [name for name in ("max-turns", "resume") if parsed.values.get(name)]
    if wanting and not links:
        raise UsageError(
            f"--{wanting[0]} is about a model's conversation, and the runbooks answer here",
            hint="--brain NAME; docs/brains.md tells how to set one up",
        )
    return links


def somebody_set_one_up() -> bool:
    """Whether a brain may be configured: a key or an address in the environment, or a file that could name one."""
    import os

    if any(os.environ.get(name) for name in BRAIN_VARIABLES):
        return True
    from cli import config

    files = [os.path.join(folder, "config.toml") for folder in config.folders()]
    return bool(config.named_file()) or any(os.path.lexists(path) for path in files)


def add_piped(question: oneshot.Question, stopped: "Callable[[], bool]", fd: int = 0) -> None:
    """Reads what is piped in beside the question, and says on stderr when that is not all of it."""
    import os

    from cli import piped_input

    if os.isatty(fd):
        return
    came = piped_input.read(fd, stopped=stopped)
    if stopped():
        raise Interrupted("interrupted", not_done="nothing was changed; there is no answer")
    question.piped, question.cut = came.text, came.cut
    if came.silent:
        sys.stderr.write(
            f"opsagent: nothing came on standard input within {piped_input.FIRST_S:g} s, so it was not read "
            "(</dev/null says that there is nothing)\n"
        )
    elif came.cut is not None:
        sys.stderr.write(f"opsagent: of the text on standard input: {came.cut.en}\n")


def answer(
    question: oneshot.Question,
    ask: "Ask",
    *,
    utc: "Callable[[], str]",
    stopped: "Callable[[], bool]",
    session: str,
    memory: "oneshot.Memory | None" = None,
    books: "Books" = BUILT_IN,
    redact: "Callable[[str], str]" = str,
) -> int:
    """Asks, prints in the chosen form, and returns the exit code."""
    from cli.report import write

    if question.output == "stream-json":
        code = 1
        for line, ended in oneshot.stream(
            question,
            ask,
            utc=utc,
            session=session,
            encode=json_line,
            stopped=stopped,
            memory=memory,
            books=books,
            redact=redact,
        ):
            write(line)
            code = code if ended is None else ended
        return code
    while question.watch_s:
        text = _once(question, ask, utc=utc, stopped=stopped, memory=memory, books=books, redact=redact)[0]
        write(CLEAR + visible(text) if sys.stdout.isatty() else visible(text) + "\n")
        _wait(question.watch_s, stopped)
    text, code = _once(question, ask, utc=utc, stopped=stopped, memory=memory, books=books, redact=redact)
    write(text if question.output == "json" else visible(text))
    return code


def _wait(seconds: float, stopped: "Callable[[], bool]") -> None:
    """Waits, or raises Interrupted within a fifth of a second of being stopped."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if stopped():
            raise Interrupted("interrupted", not_done="nothing was changed")
        time.sleep(min(0.2, left))


def _once(
    question: oneshot.Question,
    ask: "Ask",
    *,
    utc: "Callable[[], str]",
    stopped: "Callable[[], bool]",
    memory: "oneshot.Memory | None",
    books: "Books",
    redact: "Callable[[str], str]",
) -> "tuple[str, int]":
    progress = Progress(sys.stderr, stopped)
    try:
        return oneshot.answer(
            question,
            ask,
            utc=utc,
            encode=json_line,
            on_step=progress.on_step,
            stopped=progress.tick,
            memory=memory,
            books=books,
            redact=redact,
        )
    except Stopped:
        raise Interrupted("interrupted", not_done="nothing was changed; there is no answer") from None


def visible(text: str) -> str:
    """The text with everything invisible in it shown, line by line; names of mounts and processes are not ours."""
    from guard import render

    return "".join(render.visible(line.rstrip("\n")) + "\n" for line in text.splitlines(keepends=True))


def question_of(parsed: "Parsed", *, with_model: bool = False) -> oneshot.Question:
    """The question and the form of its answer. `total_s` is 0 for a model that may take its time.

    Raises:
        UsageError: no question, or options that do not fit.
    """
    output = parsed.value("output", "json" if parsed.flag("json") else "nagios" if parsed.flag("nagios") else "text")
    if output not in oneshot.OUTPUTS or (parsed.value("output") == "nagios"):
        raise UsageError(f"--output takes text, json or stream-json, not {output!r}", hint="opsagent --help")
    chosen = [name for name in ("json", "output", "nagios") if parsed.values.get(name)]
    if len(chosen) > 1:
        raise UsageError(f"--{chosen[0]} and --{chosen[1]} exclude each other", hint="opsagent --help")
    lang = parsed.value("lang")
    if "lang" in parsed.values and lang not in LANGUAGES:
        raise UsageError(f"--lang takes en or zh, not {lang!r}", hint="opsagent --help")
    usual_s, most_s = (0, MOST_MODEL_S) if with_model else (20, MOST_RUNBOOKS_S)
    try:
        total_s = parsed.whole_number("timeout", usual_s, low=1, high=most_s)
    except UsageError as failure:  # its own hint names a verb, and a question has none
        raise UsageError(failure.message, hint="opsagent --help") from None
    watch_s = _watch_s(parsed, output)
    question = oneshot.Question(_text_of(parsed), output=output, lang=lang, total_s=float(total_s))
    question.watch_s = watch_s
    return question


def _watch_s(parsed: "Parsed", output: str) -> float:
    text = parsed.value("watch")
    if "watch" not in parsed.values:
        return 0.0
    number, unit = (text[:-1], text[-1:]) if text[-1:] in ("s", "m") else (text, "s")
    seconds = (
        int(number) * (60 if unit == "m" else 1) if number.isascii() and number.isdigit() and len(number) < 6 else 0
    )
    if not LEAST_WATCH_S <= seconds <= MOST_WATCH_S:
        raise UsageError(f"--watch takes a time from 2s to 1440m, not {text!r}", hint="--watch 30s")
    if output != "text":
        raise UsageError("--watch shows text; leave --json, --output and --nagios out", hint="opsagent --help")
    return float(seconds)


def _text_of(parsed: "Parsed") -> str:
    if "prompt" in parsed.values and parsed.value("prompt") != "-":
        return oneshot.require_question(parsed.value("prompt"))
    if "prompt" not in parsed.values and sys.stdin.isatty():
        raise UsageError(
            "no question was given",
            hint="opsagent -p 'disk and memory'; opsagent without options is a conversation",
        )
    data = sys.stdin.buffer.read(STDIN_BYTES)
    try:
        return oneshot.require_question(data.decode())
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the question on standard input is not valid UTF-8 at byte {error.start + 1}",
            hint="opsagent -p 'QUESTION'",
        ) from None


class Progress:
    """Says on a terminal what is taking so long: one plain line after two seconds, then one every five."""

    def __init__(
        self, stream: "Any", stopped: "Callable[[], bool]", *, monotonic: "Callable[[], float]" = time.monotonic
    ) -> None:
        self._stream, self._stopped, self._now = stream, stopped, monotonic
        self._began = monotonic()
        self._due = self._began + PROGRESS_AFTER_S
        self._shown = bool(stream.isatty())
        self._running: dict[int, str] = {}

    def on_step(self, step: "runner.Step") -> None:
        """Remembers what runs."""
        if step.answer is None:
            self._running[step.number] = " ".join(step.argv)
        else:
            self._running.pop(step.number, None)

    def tick(self) -> bool:
        """Called several times a second; shows a line when one is due. Returns whether to stop."""
        now = self._now()
        if self._shown and now >= self._due:
            self._due = now + PROGRESS_EVERY_S
            from guard.render import clip

            what = next(iter(self._running.values()), "")
            shown = clip(what, PROGRESS_COLUMNS)
            tail = f" ({shown})" if shown else ""
            self._stream.write(f"opsagent: looking for {now - self._began:.0f} s{tail}\n")
            self._stream.flush()
        return self._stopped()
