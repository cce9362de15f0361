"""Events become rows, and rows leave in order and once."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.repl import transcript
from agent.repl.lines import width
from agent.repl.rows import live_rows, rows_of
from agent.repl.transcript import NoteRow, ToolRow, Words, Written, release
from dialogue import events as ev
from tests.repl.conversation import ASK, folded, golden, written

TABLE = "| unit | 状态 |\n|---|---:|\n| nginx | 失败 |\n| 数据库服务 | 正常 |\n"
DIAGNOSIS = (
    ev.SessionStarted("anthropic", "a-model"),
    ev.TurnStarted("why is nginx down?\n它为什么挂了"),
    ev.TextDelta("I look **first**.\n\n"),
    ev.Text("I look **first**.\n\n"),
    ev.ToolRequested("t-1", "bash", {"command": "systemctl status nginx --no-pager --lines=50 --full"}),
    ev.ToolRequested("t-2", "bash", {"command": "df -h"}),
    ev.ToolStarted("t-1", "e-4x7k2m4p9q1z"),
    ev.ToolStarted("t-2", "e-9q1z4x7k2m4p"),
    ev.ToolProgress("t-1", 2100, "starting \x1b[31mred\x1b[0m"),
    ev.ToolCompleted("t-2", "succeeded", "e-9q1z4x7k2m4p", "Filesystem Size\n/dev/vda 40G", 0, 40),
    ev.ToolCompleted("t-1", "failed", "e-4x7k2m4p9q1z", "\n".join(f"line {n}" for n in range(9)), 3, 2500),
    ev.ToolRequested("t-3", "ops_exec", {"command": "systemctl restart nginx"}),
    ev.ToolCompleted("t-3", "needs_stamp", None, '{"status": "needs_stamp", "because": "it changes something"}'),
    ev.ToolRequested("t-4", "ops_approve", {"request": "a-7k2m4p"}),
    ev.ToolStarted("t-4"),
    ev.AskOpened("q-1", dataclasses.asdict(ASK)),
    ev.AskSettled("q-1", "approved"),
    ev.ToolCompleted("t-4", "approved", None, "", None, 9000),
    ev.ToolRequested("t-5", "edit", {"path": "/etc/nginx/nginx.conf"}),
    ev.ToolCompleted("t-5", "succeeded", "e-1", "--- a\n+++ b\n@@ -1 +1 @@\n-old 旧\n+new 新", 0, 10),
    ev.Finding({"severity": "crit", "text": "/ is full", "host": "web-1"}),
    ev.Notice("not recorded: the disk is full"),
    ev.BrainSwitched("local", "anthropic answers 529"),
    ev.Error("brain.busy", "the API has too much to do", "nothing was run", "ask again"),
    ev.Text("# Result\n\n1. nginx runs\n2. 磁盘正常\n\n" + TABLE + "\n```sh\nsystemctl status nginx\n```\n> quoted\n"),
    ev.Usage(1200, 300, 0.02),
    ev.TurnCompleted(3, ["a-7k2m4p"]),
)


@pytest.mark.parametrize("columns", [80, 120])
def test_conversation_looks_as_on_paper(columns):
    golden(f"diagnosis-{columns}.txt", "\n".join(row.rstrip() for row in written(columns, *DIAGNOSIS)) + "\n")


@pytest.mark.parametrize("columns", [20, 40, 80, 120, 300])
def test_no_row_is_wider_than_the_window(columns):
    told = transcript.Transcript()
    for event in DIAGNOSIS:
        told = transcript.reduce(told, event)
        for line in live_rows(told.rows, columns, 12):
            assert width(line) <= columns
        pieces, told = release(told)
        for piece in pieces:
            assert all(width(line) <= columns for line in rows_of(piece, columns))


def test_a_tool_is_one_row_from_request_to_result():
    told = folded(*DIAGNOSIS[4:9])
    (first, second) = told.rows
    assert (first.state, first.elapsed_ms, first.last_line) == ("running", 2100, "starting \x1b[31mred\x1b[0m")
    assert (second.state, second.execution) == ("running", "e-9q1z4x7k2m4p")
    told = transcript.reduce(told, DIAGNOSIS[9])
    assert [row.state for row in told.rows] == ["running", "done"]
    assert release(told)[0] == (), "what was asked for first leaves first"


def test_what_is_over_leaves_in_order_and_once():
    pieces, told = release(folded(*DIAGNOSIS[:11]))
    assert [type(piece).__name__ for piece in pieces] == ["Person", "Written", "ToolRow", "ToolRow"]
    assert release(told) == ((), told) and told.rows == ()


def test_answer_leaves_block_by_block_and_the_whole_adds_only_the_rest():
    text = "One.\n\nTwo goes\non.\n\n```\ncode 1\ncode 2\n```\nlast"
    rows = []
    told = transcript.Transcript()
    for at in range(0, len(text), 3):
        told = transcript.reduce(told, ev.TextDelta(text[at : at + 3]))
        pieces, told = release(told)
        rows += [line for piece in pieces for line in rows_of(piece, 80)]
    assert told.rows == (Words("last", text[: -len("last")]),), "an unfinished block stays"
    told = transcript.reduce(told, ev.Text(text))
    pieces, told = release(told)
    rows += [line for piece in pieces for line in rows_of(piece, 80)]
    assert [line for line in rows if line] == [line for line in map(tuple, written_lines(text)) if line]
    assert told.rows == () and told.answer == text


def written_lines(text):
    pieces, _ = release(folded(ev.Text(text)))
    return [line for piece in pieces for line in rows_of(piece, 80)]


@given(st.text(alphabet="ab*`#|-> \n磁", max_size=120), st.lists(st.integers(1, 9), min_size=1, max_size=9))
def test_pieces_show_what_the_whole_shows(text, sizes):
    told, shown, at, turn = transcript.Transcript(), [], 0, 0
    while at < len(text):
        size = sizes[turn % len(sizes)]
        told = transcript.reduce(told, ev.TextDelta(text[at : at + size]))
        pieces, told = release(told)
        shown += [block for piece in pieces for block in piece.blocks]
        at, turn = at + size, turn + 1
    told = transcript.reduce(told, ev.Text(text))
    pieces, told = release(told)
    shown += [block for piece in pieces for block in piece.blocks]
    whole = [block for piece in release(folded(ev.Text(text)))[0] for block in piece.blocks]
    assert without_blanks(shown) == without_blanks(whole)


def without_blanks(found):
    return [block for block in found if block.kind != "blank"]


def test_whole_that_differs_from_its_pieces_is_shown_and_said():
    told = folded(ev.TextDelta("first\n\nmore"))
    _, told = release(told)
    pieces, _ = release(transcript.reduce(told, ev.Text("other")))
    assert isinstance(pieces[0], NoteRow) and isinstance(pieces[1], Written)


def test_reply_that_breaks_off_is_taken_back_or_said_to_be_void():
    assert folded(ev.TextDelta("half"), ev.TextDiscarded()).rows == ()
    _, told = release(folded(ev.TextDelta("first\n\nhalf")))
    pieces, _ = release(transcript.reduce(told, ev.TextDiscarded()))
    assert [piece for piece in pieces if isinstance(piece, NoteRow)], (
        "what stands in the scrollback is said not to count"
    )


def test_turn_that_ends_leaves_nothing_open():
    told = folded(
        ev.ToolRequested("a", "bash"), ev.ToolStarted("a"), ev.ToolRequested("b", "bash"), ev.AskOpened("q", {})
    )
    pieces, told = release(transcript.reduce(told, ev.TurnCompleted(130)))
    tools = [piece for piece in pieces if isinstance(piece, ToolRow)]
    assert [tool.status for tool in tools] == ["unknown", "cancelled"] and told.rows == () and not told.busy


def test_findings_that_the_answer_tells_itself_are_told_once():
    finding = ev.Finding({"severity": "crit", "text": "/ is full"})
    told = folded(finding)
    assert release(told)[0] == (), "the answer may still tell it"
    assert [type(piece).__name__ for piece in release(transcript.reduce(told, ev.Text("so: / is full")))[0]] == [
        "Written"
    ]
    pieces, _ = release(folded(finding, ev.Text("another matter")))
    assert [type(piece).__name__ for piece in pieces] == ["FindingRow", "Written"]


def test_unknown_event_changes_nothing():
    class Later(ev.Event):
        type = "later"

    told = folded(*DIAGNOSIS[:3])
    assert transcript.reduce(told, Later()) is told


def test_result_without_a_request_is_shown():
    (row,) = folded(ev.ToolCompleted("x", "succeeded", output="out")).rows
    assert (row.state, row.output) == ("done", "out")


def test_an_endless_output_is_kept_in_part():
    told = transcript.Transcript()
    for number in range(transcript.KEPT_TOOLS + 10):
        told = transcript.reduce(told, ev.ToolCompleted(str(number), "succeeded", output="x" * 300_000))
        _, told = release(told)
    assert len(told.tools) == transcript.KEPT_TOOLS and told.rows == ()
    assert all(len(tool.output) == transcript.KEPT_OUTPUT for tool in told.tools)


@pytest.mark.parametrize(
    ("name", "status", "output", "rows"),
    [
        ("ask_user", "answered", '{"status": "answered", "the_person_says": "web-1 重启"}', ["✓", "│ web-1 重启"]),
        ("ops_rollback", "planned", '{"status": "planned", "next": "…"}', ["· ", "planned"]),
        (
            "bash",
            "error",
            '{"error": {"message": "no such tool", "not_done": "nothing was run"}}',
            ["✗", "│ no such tool"],
        ),
        ("bash", "later-status", "", ["?", "later-status"]),
        ("bash", "unknown", "half", ["UNKNOWN: it may have run", "│ half"]),
    ],
)
def test_how_a_tool_ended_is_said_in_words(name, status, output, rows):
    shown = "\n".join(written(60, ev.ToolRequested("t", name), ev.ToolCompleted("t", status, output=output)))
    assert all(row in shown for row in rows), shown
