"""The conversation as rows: a pure fold over events. What is over leaves in order and is never changed again.

`reduce(transcript, event)` gives the next transcript; `release` takes out what can be written into the terminal's
scrollback: settled rows from the front, and of a streaming answer the blocks that are whole. So the shell appends and
never rewrites, and what it keeps stays small however long the conversation is.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from agent.repl import blocks
from dialogue import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.repl.blocks import Block
    from dialogue.events import Event

REQUESTED, RUNNING, DONE = "requested", "running", "done"
REPLACED = "replaced"
"""Outcome of an ask whose command the person changed: cancelled, and no longer waiting."""
KEPT_TOOLS = 50
"""Finished tools whose output can still be opened in the transcript; older ones are in the record."""
KEPT_OUTPUT = 200_000
"""Characters of an output that stay in memory."""
KEPT_WORDS = 400_000
"""Characters of an answer that stay in memory for /copy and for comparing with the whole."""


@dataclass(frozen=True, slots=True)
class Person:
    """What the person said."""

    text: str


@dataclass(frozen=True, slots=True)
class Words:
    """The answer's text, as far as it is here and has not left yet."""

    text: str = ""
    left: str = ""
    """What has left already, as it came."""
    fence: str = ""
    done: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """Blocks of an answer that leave. Not a row of the transcript: `release` makes it."""

    blocks: tuple[Block, ...]
    begins: bool
    """Whether these are the answer's first blocks."""


@dataclass(frozen=True, slots=True)
class ToolRow:
    """One use of a tool, from request to result."""

    id: str
    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    state: str = REQUESTED
    """`requested` · `running` · `done`"""
    status: str = ""
    """What it ended with: a guard.types.Status, or `error`."""
    execution: str = ""
    elapsed_ms: int = 0
    last_line: str = ""
    output: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class AskRow:
    """Something that a person was asked, and what came of it."""

    id: str
    kind: str
    ask: dict[str, Any]
    outcome: str = ""
    """"" while it is open."""


@dataclass(frozen=True, slots=True)
class FindingRow:
    """One thing that a check found (docs/runbooks.md, "finding")."""

    finding: dict[str, Any]


@dataclass(frozen=True, slots=True)
class NoteRow:
    """opsagent's own words."""

    kind: str
    """`notice` · `switch` · `session`; what a command of the person answered: `echo`, or `shown` when everything
    invisible in it is visible already."""
    text: str


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """What went wrong, in three parts."""

    code: str
    message: str
    not_done: str = ""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class EndRow:
    """The end of a turn; drawn only where it is not a plain success."""

    exit_code: int
    requests: tuple[str, ...] = ()
    """What the turn wanted and still waits for a person."""


Row = Person | Words | ToolRow | AskRow | FindingRow | NoteRow | ErrorRow | EndRow
Piece = Person | Written | ToolRow | AskRow | FindingRow | NoteRow | ErrorRow | EndRow


@dataclass(frozen=True, slots=True)
class Transcript:
    """What is still on the way, and what the status line and the commands need of the rest."""

    rows: tuple[Row, ...] = ()
    brain: str = ""
    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    busy: bool = False
    """A turn is running."""
    exit_code: int = 0
    """Of the last turn."""
    tools: tuple[ToolRow, ...] = ()
    """The last finished ones, oldest first."""
    answer: str = ""
    """The last complete block of an answer."""


def reduce(transcript: Transcript, event: Event) -> Transcript:
    """The transcript after one event. Types that are not known here change nothing."""
    step = _STEPS.get(type(event))
    return transcript if step is None else step(transcript, event)


def add(transcript: Transcript, row: Row) -> Transcript:
    """The transcript with one more row that no event brought: what a command of the person answered."""
    return replace(transcript, rows=(*transcript.rows, row))


def release(transcript: Transcript) -> tuple[tuple[Piece, ...], Transcript]:
    """What can leave now, in order, and the transcript without it."""
    pieces: list[Piece] = []
    rows = transcript.rows
    while rows:
        row = rows[0]
        if isinstance(row, Words):
            cut = blocks.cut(row.text, row.fence, final=row.done)
            if cut.blocks:
                pieces.append(Written(cut.blocks, not row.left))
            if not row.done:
                if cut.blocks:
                    left = (row.left + row.text[: len(row.text) - len(cut.rest)])[:KEPT_WORDS]
                    rows = (Words(cut.rest, left, cut.fence), *rows[1:])
                break
        elif not settled(row):
            break
        elif isinstance(row, FindingRow):
            said = _said_after(rows)
            if said is None:
                break
            if str(row.finding.get("text", "")) not in said:
                pieces.append(row)
        else:
            pieces.append(row)
        rows = rows[1:]
    if rows is transcript.rows:
        return (), transcript
    return tuple(pieces), replace(transcript, rows=rows)


def _said_after(rows: tuple[Row, ...]) -> str | None:
    """The answer behind findings, which may tell them all itself; "" without one, None while it can still come."""
    for row in rows:
        match row:
            case FindingRow() | NoteRow():
                continue
            case Words():
                return row.text if row.done else None
            case _:
                return ""
    return None


def settled(row: Row) -> bool:
    """Whether no event can change the row any more."""
    match row:
        case ToolRow():
            return row.state == DONE
        case AskRow():
            return bool(row.outcome)
        case Words():
            return row.done
        case _:
            return True


# ── one step for each type of event ──────────────────────────────────────────────────────────────────────────────

_Told = TypeVar("_Told", bound="Event")


def _session(transcript: Transcript, event: ev.SessionStarted) -> Transcript:
    return replace(transcript, brain=event.brain, model=event.model)


def _turn_started(transcript: Transcript, event: ev.TurnStarted) -> Transcript:
    return replace(add(transcript, Person(event.prompt)), busy=True)


def _delta(transcript: Transcript, event: ev.TextDelta) -> Transcript:
    rows = transcript.rows
    last = rows[-1] if rows else None
    if isinstance(last, Words) and not last.done:
        return replace(transcript, rows=(*rows[:-1], replace(last, text=last.text + event.delta)))
    return add(transcript, Words(event.delta))


def _text(transcript: Transcript, event: ev.Text) -> Transcript:
    """The whole is the authority: what it has beyond what has left is what remains to be shown."""
    kept = replace(transcript, answer=event.text[:KEPT_WORDS])
    open_words = [index for index, row in enumerate(transcript.rows) if isinstance(row, Words) and not row.done]
    if not open_words:
        return add(kept, Words(event.text, done=True)) if event.text else kept
    index = open_words[-1]
    row = transcript.rows[index]
    assert isinstance(row, Words)
    if event.text.startswith(row.left):
        done: tuple[Row, ...] = (replace(row, text=event.text[len(row.left) :], done=True),)
    else:
        done = (
            NoteRow("notice", "the answer as a whole differs from what came in pieces:"),
            Words(event.text, done=True),
        )
    return replace(kept, rows=(*transcript.rows[:index], *done, *transcript.rows[index + 1 :]))


def _discarded(transcript: Transcript, event: ev.TextDiscarded) -> Transcript:
    rows: list[Row] = []
    for row in transcript.rows:
        if not isinstance(row, Words) or row.done:
            rows.append(row)
        elif row.left:
            rows.append(replace(row, text="", done=True))
            rows.append(NoteRow("notice", "the answer broke off; what stands above of it does not count"))
    return replace(transcript, rows=tuple(rows))


def _requested(transcript: Transcript, event: ev.ToolRequested) -> Transcript:
    return add(_words_done(transcript), ToolRow(event.id, event.name, event.arguments))


def _started(transcript: Transcript, event: ev.ToolStarted) -> Transcript:
    def change(row: ToolRow) -> ToolRow:
        return replace(row, state=RUNNING, execution=event.execution or row.execution)

    return _tool(transcript, event.id, change)


def _progress(transcript: Transcript, event: ev.ToolProgress) -> Transcript:
    def change(row: ToolRow) -> ToolRow:
        return replace(row, state=RUNNING, elapsed_ms=event.elapsed_ms, last_line=event.last_line or row.last_line)

    return _tool(transcript, event.id, change)


def _completed(transcript: Transcript, event: ev.ToolCompleted) -> Transcript:
    def change(row: ToolRow) -> ToolRow:
        return replace(
            row,
            state=DONE,
            status=event.status,
            execution=event.execution or row.execution,
            output=event.output[:KEPT_OUTPUT],
            exit_code=event.exit_code,
            elapsed_ms=event.duration_ms or row.elapsed_ms,
        )

    after = _tool(transcript, event.id, change)
    finished = [row for row in after.rows if isinstance(row, ToolRow) and row.id == event.id and row.state == DONE]
    return replace(after, tools=(*after.tools, *finished[-1:])[-KEPT_TOOLS:])


def _tool(transcript: Transcript, id: str, change: Callable[[ToolRow], ToolRow]) -> Transcript:
    """Changes the youngest row of that id; a result without a request gets a row, so that nothing is lost."""
    rows = transcript.rows
    for index in range(len(rows) - 1, -1, -1):
        row = rows[index]
        if isinstance(row, ToolRow) and row.id == id and row.state != DONE:
            return replace(transcript, rows=(*rows[:index], change(row), *rows[index + 1 :]))
    return add(transcript, change(ToolRow(id, "")))


def _ask_opened(transcript: Transcript, event: ev.AskOpened) -> Transcript:
    return add(transcript, AskRow(event.id, event.kind, event.ask))


def _ask_settled(transcript: Transcript, event: ev.AskSettled) -> Transcript:
    rows = tuple(
        replace(row, outcome=event.outcome)
        if isinstance(row, AskRow) and row.id == event.id and not row.outcome
        else row
        for row in transcript.rows
    )
    return replace(transcript, rows=rows)


def _finding(transcript: Transcript, event: ev.Finding) -> Transcript:
    return add(_words_done(transcript), FindingRow(event.finding))


def _notice(transcript: Transcript, event: ev.Notice) -> Transcript:
    return add(transcript, NoteRow("notice", event.text))


def _switched(transcript: Transcript, event: ev.BrainSwitched) -> Transcript:
    return replace(add(transcript, NoteRow("switch", f"{event.brain} goes on: {event.because}")), brain=event.brain)


def _usage(transcript: Transcript, event: ev.Usage) -> Transcript:
    return replace(
        transcript,
        input_tokens=event.input_tokens,
        output_tokens=event.output_tokens,
        cost=event.cost or transcript.cost,
    )


IN_THE_ANSWER = frozenset({"change.offline", "nothing_checked"})
"""Errors of the runbooks whose whole text their answer says, too: for programs; a person is told once."""


def _error(transcript: Transcript, event: ev.Error) -> Transcript:
    if event.code in IN_THE_ANSWER and transcript.answer:
        return _words_done(transcript)
    return add(_words_done(transcript), ErrorRow(event.code, event.message, event.not_done, event.hint))


def _turn_completed(transcript: Transcript, event: ev.TurnCompleted) -> Transcript:
    """Everything that is still open ends with the turn: a tool without a result is said to have none."""
    rows: list[Row] = []
    for row in _words_done(transcript).rows:
        if isinstance(row, ToolRow) and row.state != DONE:
            row = replace(row, state=DONE, status="unknown" if row.state == RUNNING else "cancelled")
        elif isinstance(row, AskRow) and not row.outcome:
            row = replace(row, outcome="unanswered")
        rows.append(row)
    end = EndRow(event.exit_code, tuple(event.requests))
    return replace(transcript, rows=(*rows, end), busy=False, exit_code=event.exit_code)


def _words_done(transcript: Transcript) -> Transcript:
    if not any(isinstance(row, Words) and not row.done for row in transcript.rows):
        return transcript
    rows = tuple(replace(row, done=True) if isinstance(row, Words) else row for row in transcript.rows)
    return replace(transcript, rows=rows)


_STEPS: dict[type[Event], Callable[[Transcript, Any], Transcript]] = {
    ev.SessionStarted: _session,
    ev.TurnStarted: _turn_started,
    ev.TextDelta: _delta,
    ev.Text: _text,
    ev.TextDiscarded: _discarded,
    ev.ToolRequested: _requested,
    ev.ToolStarted: _started,
    ev.ToolProgress: _progress,
    ev.ToolCompleted: _completed,
    ev.AskOpened: _ask_opened,
    ev.AskSettled: _ask_settled,
    ev.Finding: _finding,
    ev.Notice: _notice,
    ev.BrainSwitched: _switched,
    ev.Usage: _usage,
    ev.Error: _error,
    ev.TurnCompleted: _turn_completed,
}
