"""Rows of the transcript as lines of a width. Pure.

What is not ours goes through the renderer, and no state is told by colour alone.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agent.repl import markdown
from agent.repl import transcript as tr
from agent.repl.lines import EMPTY, Line, cut, fitting, line, width, wrap
from guard import render

if TYPE_CHECKING:
    from agent.repl.transcript import Piece, Row

FOLDED_LINES = 4
"""Lines of an output that stand under a tool that did not succeed; of one that did, the last line is enough."""
BY_HAND_LINES = 200
"""Lines of the output of a command that the person ran: they want to see it."""
DIFF_LINES = 60
"""Lines of a difference that stand under an edit; the rest is counted."""
LIVE_TOOLS = 8
"""Tools at work that are drawn at once; the others are counted."""
LIVE_WORDS = 6
"""Rows of an answer that is not whole yet."""
_SENTENCES = ("message", "not_done", "because", "the_person_says")
_DIFF_TOOLS = ("write", "edit")

_MARKS = {
    "succeeded": ("✓", "done", ""),
    "approved": ("✓", "done", "approved"),
    "answered": ("✓", "done", ""),
    "resolved": ("✓", "done", "resolved"),
    "planned": ("·", "dim", "planned"),
    "proposed": ("·", "dim", "proposed"),
    "waiting": ("!", "confirm", "waiting"),
    "failed": ("✗", "failed", "failed"),
    "error": ("✗", "failed", "error"),
    "timed_out": ("✗", "failed", "timed out"),
    "snapshot_failed": ("✗", "failed", "not run: could not be saved first"),
    "cancelled": ("–", "dim", "cancelled"),
    "refused": ("⊘", "refused", "refused"),
    "denied": ("⊘", "refused", "denied"),
    "expired": ("⊘", "refused", "expired"),
    "needs_stamp": ("!", "confirm", "needs approval"),
    "unanswered": ("!", "confirm", "nobody answered"),
    "running": ("◐", "degraded", "goes on, detached"),
    "unknown": ("?", "danger", "UNKNOWN: it may have run"),
}
"""Status → mark, style, words ("" for the plain case)."""

ASK_WORDS = {
    "approved": ("✓", "done", "yes to"),  # the person's word; whether a stamp came of it is told by the tool
    "denied": ("⊘", "refused", "denied: nothing was run"),
    "expired": ("⊘", "refused", "expired: nobody answered in time, nothing was run"),
    "cancelled": ("–", "dim", "not approved; the request goes on waiting"),
    tr.REPLACED: ("–", "dim", "replaced by what you wrote; it waits no more"),
    "unanswered": ("!", "confirm", "nobody answered; the request goes on waiting"),
    "answered": ("✓", "done", "answered"),
}
SEVERITIES = {
    "crit": ("✗", "danger", "critical"),
    "warn": ("!", "confirm", "warning"),
    "note": ("·", "dim", "note"),
    "not_checked": ("?", "degraded", "not checked"),
    "ok": ("✓", "done", "ok"),
}
END_WORDS = {
    1: ("failed", "the turn failed"),
    3: ("confirm", "it waits for an approval: /approve {}"),
    4: ("refused", "refused: nothing of it was run"),
    5: ("failed", "not run: what it changes could not be saved first"),
    6: ("danger", "a run with no end on record has to be looked at first: /executions"),
    7: ("failed", "the record cannot be written or is damaged: /doctor"),
    8: ("degraded", "nothing could be checked"),
    124: ("degraded", "the time was over"),
    130: ("dim", "interrupted"),
}


def rows_of(piece: Piece, columns: int) -> list[Line]:
    """What leaves the transcript, as it goes into the scrollback."""
    match piece:
        case tr.Person():
            return [EMPTY, *_person(piece.text, columns)]
        case tr.Written():
            return [*([EMPTY] if piece.begins else []), *markdown.rendered(piece.blocks, columns)]
        case tr.ToolRow():
            return _finished_tool(piece, columns)
        case tr.AskRow():
            return _settled_ask(piece, columns)
        case tr.FindingRow():
            return _finding(piece.finding, columns)
        case tr.NoteRow():
            return _note(piece, columns)
        case tr.ErrorRow():
            return error_rows(piece.code, piece.message, piece.not_done, piece.hint, columns)
        case tr.EndRow():
            return _end(piece, columns)
    raise AssertionError(f"no rows for {type(piece).__name__}")


def live_rows(rows: tuple[Row, ...], columns: int, most: int) -> list[Line]:
    """What is still on the way, in at most `most` rows: the youngest words and the tools that are at work."""
    out: list[Line] = []
    tools = [row for row in rows if isinstance(row, tr.ToolRow)]
    for row in tools[:LIVE_TOOLS]:
        out.append(_tool_line(row, columns))
        if row.state == tr.RUNNING and row.last_line:
            out.append(_last_line(row.last_line, columns))
    if len(tools) > LIVE_TOOLS:
        out.append(line(f"  and {len(tools) - LIVE_TOOLS} more", "dim"))
    for words in rows:
        if isinstance(words, tr.Words):
            out += live_words(words, columns)
    return [cut(row, columns) for row in out[-most:]] if most > 0 else []


def live_words(words: tr.Words, columns: int) -> list[Line]:
    """The end of an answer that is not whole yet, as it will look, or its last rows."""
    from agent.repl import blocks

    text = words.text
    if len(text) > 4 * columns * LIVE_WORDS:
        text = text[-4 * columns * LIVE_WORDS :]
    found = blocks.cut(text, words.fence, final=True).blocks
    shown = [block for block in found if block.kind != blocks.CODE_CLOSE or not words.fence]
    return markdown.rendered(shown, columns)[-LIVE_WORDS:]


def what_of(name: str, arguments: dict[str, Any]) -> str:
    """What a tool is used for, in one line as it came: its command, its path, its question."""
    for key in ("command", "path", "question", "what", "id", "request", "stamp", "outcome", "status", "tail"):
        value = arguments.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value):
            return str(value)
    steps = arguments.get("steps")
    if isinstance(steps, list):
        return f"{len(steps)} steps"
    argv = arguments.get("argv")
    if isinstance(argv, list):
        return " ".join(str(word) for word in argv)
    return ""


def duration(elapsed_ms: int) -> str:
    """`0.2 s`, `47 s`, `3 min 05 s`."""
    seconds = elapsed_ms / 1000
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def error_rows(code: str, message: str, not_done: str, hint: str, columns: int) -> list[Line]:
    """An error in its three parts."""
    rows = wrap([("failed", f"✗ {_one(code)}: "), ("", _one(message))], columns, rest=line("  "))
    if not_done:
        rows += wrap([("", _one(not_done))], columns, first=line("  "), rest=line("  "))
    if hint:
        rows += wrap([("dim", "next: "), ("", _one(hint))], columns, first=line("  "), rest=line("  "))
    return rows


def output_rows(text: str, columns: int, *, diff: bool = False) -> list[Line]:
    """An output, line by line behind a margin; lines of a difference by what they do."""
    rows: list[Line] = []
    for one in text.rstrip("\n").split("\n"):
        style = _diff_style(one) if diff else "output"
        rows += markdown.code_rows(one, columns, (("md.edge", "  │ "),), style)
    return rows


def facts_in_words(text: str) -> str:
    """What a tool without output answered: the fields of its line of facts that are sentences."""
    first, _, rest = text.partition("\n")
    if not first.startswith("{"):
        return text
    try:
        facts = json.loads(first)
    except (ValueError, RecursionError):
        return text
    if isinstance(facts.get("error"), dict):
        facts = facts["error"]
    words = [str(facts[name]) for name in _SENTENCES if isinstance(facts.get(name), str)]
    return "\n".join([*words, rest] if rest else words)


def is_difference(row: tr.ToolRow) -> bool:
    """Whether the output of a tool is the difference that it made."""
    return row.name in _DIFF_TOOLS and not row.output.startswith("{") and row.status != "error"


# ── one kind of row each ─────────────────────────────────────────────────────────────────────────────────────────


def _one(text: str) -> str:
    return render.visible(text.strip().replace("\t", " "), keep="")


def _person(text: str, columns: int) -> list[Line]:
    rows: list[Line] = []
    for number, one in enumerate(text.strip("\n").split("\n")):
        mark = "› " if not number else "  "
        shown = render.visible(one.expandtabs(4).rstrip(), blank_run=0, keep="")
        rows += wrap([("person", shown)], columns, first=line(mark, "person.mark"), rest=line("  ", "person"))
    return [(*row, ("person", " " * max(0, columns - width(row)))) for row in rows]


def _tool_line(row: tr.ToolRow, columns: int) -> Line:
    """`✓ bash  systemctl status nginx … 0.2 s  e-4x`: one row, whatever the command."""
    if row.state == tr.DONE:
        mark, style, words = _MARKS.get(row.status, ("?", "degraded", _one(row.status)))
        if row.status == "failed" and row.exit_code is not None:
            words = f"exit {row.exit_code}"
    elif row.state == tr.RUNNING:
        mark, style, words = "◐", "running", "running"
    else:
        mark, style, words = "○", "dim", "requested"
    facts = [words] if words else []
    if row.elapsed_ms >= 100 or row.state == tr.RUNNING:
        facts.append(duration(row.elapsed_ms))
    if row.execution:
        facts.append(row.execution)
    tail = "  ".join(facts)
    name = _one(row.name) or "tool"
    what = _one(what_of(row.name, row.arguments))
    room = columns - render.width(mark) - render.width(name) - render.width(tail) - 5
    if room < 12:
        room, tail = columns - render.width(name) - 4, ""
    if render.width(what) > room:
        what = what[: fitting(what, max(0, room - 1))] + "…"
    fill = " " * max(
        1, columns - render.width(mark) - 1 - render.width(name) - 2 - render.width(what) - render.width(tail)
    )
    return ((style, f"{mark} "), ("tool", name), ("", f"  {what}"), ("", fill if tail else ""), (style, tail))


def _last_line(text: str, columns: int) -> Line:
    shown = render.visible(text.expandtabs(8).rstrip(), blank_run=0, keep="")
    return cut((("md.edge", "  │ "), ("output", shown)), columns)


def _finished_tool(row: tr.ToolRow, columns: int) -> list[Line]:
    rows = [cut(_tool_line(row, columns), columns)]
    text = facts_in_words(row.output.strip("\n"))
    if not text.strip():
        return rows
    lines = text.split("\n")
    if is_difference(row):
        rows += output_rows("\n".join(lines[:DIFF_LINES]), columns, diff=True)
        hidden = len(lines) - DIFF_LINES
    else:
        most = BY_HAND_LINES if row.name == "!" else 1 if row.status == "succeeded" else FOLDED_LINES
        shown = lines[-most:]
        rows += [_last_line(one, columns) for one in shown if one.strip()]
        hidden = len(lines) - len(shown)
    if hidden > 0:
        more = "1 more line" if hidden == 1 else f"{hidden:,} more lines"
        rows.append(cut(line(f"  └ {more}: ctrl-o", "dim"), columns))
    return rows


def _settled_ask(row: tr.AskRow, columns: int) -> list[Line]:
    mark, style, words = ASK_WORDS.get(row.outcome, ("?", "degraded", _one(row.outcome)))
    if row.kind == "question":
        asked, words = _one(str(row.ask.get("question", ""))), "" if row.outcome == "answered" else row.outcome
    else:
        asked = _one(str(row.ask.get("command", "")))
        if more := len(row.ask.get("also") or ()):
            asked += f" and {more} more"
    id = _one(str(row.ask.get("id", "")))
    head = " ".join(part for part in (words, id) if part)
    if columns > 40 and render.width(asked) > 3 * columns:
        asked = asked[: fitting(asked, 3 * columns - 1)] + "…"
    spans = [(style, f"{mark} {head}" + (": " if head else "")), ("", asked)]
    return wrap(spans, columns, rest=line("  "))


def _finding(finding: dict[str, Any], columns: int) -> list[Line]:
    mark, style, words = SEVERITIES.get(str(finding.get("severity")), ("?", "degraded", "not checked"))
    text = _one(str(finding.get("text", "")))
    return wrap([(style, f"{mark} {words}: "), ("", text)], columns, rest=line("  "))


def _note(row: tr.NoteRow, columns: int) -> list[Line]:
    if row.kind in ("echo", "shown"):
        rows: list[Line] = []
        for one in row.text.rstrip("\n").split("\n"):
            one = one.expandtabs(8).rstrip(" ")
            text = render.visible(one, blank_run=0, keep="") if row.kind == "echo" else _printable(one)
            rows += wrap([("", text)], columns, rest=line("    "))
        return rows
    style = "degraded" if row.kind in ("notice", "switch") else "dim"
    return wrap([(style, f"{'→' if row.kind == 'switch' else '·'} {_one(row.text)}")], columns, rest=line("  "))


def _printable(text: str) -> str:
    """Text that was made visible before, held to that: drawing it twice would show its marks as marks."""
    return "".join(char if char.isprintable() else render.marker(char) for char in text)


def _end(end: tr.EndRow, columns: int) -> list[Line]:
    code = end.exit_code
    if not code or (code == 3 and not end.requests):  # a change that was only spoken of waits for nobody
        return []
    style, words = END_WORDS.get(code, ("failed", f"the turn ended with {code}"))
    return wrap([(style, f"· {words.format(' '.join(end.requests))}")], columns, rest=line("  "))


def _diff_style(text: str) -> str:
    if text.startswith(("+++", "---", "@@")):
        return "diff.head"
    return "diff.add" if text.startswith("+") else "diff.del" if text.startswith("-") else "output"
