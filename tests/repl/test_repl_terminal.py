"""The conversation in a real terminal emulator, with a scripted brain and the real guard."""

from __future__ import annotations

import json
import os
import shlex
import signal

import pytest

from guard import render
from tests.approvals.terminal import Terminal
from tests.repl.tmux import Tmux, opsagent
from tests.waiting import has_ended, until

WELCOME = "/help"
READY = "guarded"
"""The end of the status line: the first frame is complete."""


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def terminal(work, tmp_path):
    opened = []

    def start(*replies, columns=80, rows=24, arguments=(), environ=()):
        script = tmp_path / "script.jsonl"
        script.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        brain = ("--brain", f"script:{script}") if replies else ()
        opened.append(Tmux(opsagent(*brain, *arguments), cwd=work, columns=columns, rows=rows, environ=environ))
        opened[-1].wait_for(WELCOME, READY)
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def change(command):
    """A brain that proposes a command, asks for it, runs it and looks."""
    return (
        {"text": "I would change this.", "calls": [{"tool": "ops_exec", "arguments": {"command": command}}]},
        {
            "expect": '"request": "(?P<request>a-[a-z0-9]+)"',
            "calls": [{"tool": "ops_approve", "arguments": {"request": "${request}", "why": "it is needed"}}],
        },
        {"calls": [{"tool": "ops_exec", "arguments": {"command": command}}]},
        {"text": "Finished."},
    )


def ask(screen):
    screen.type("please")
    screen.keys("Enter")
    screen.wait_for("approve? >")


@pytest.mark.guarantee("G-PERSON")
def test_a_change_is_approved_in_the_dock_and_runs(terminal, work):
    screen = terminal(*change("touch made"))
    ask(screen)
    shown = screen.wait_for("run this?", "| touch made", "R1: small and reversible", "undo        yes")
    assert not (work / "made").exists() and len(shown.split("\n")) <= 24
    screen.type("yes")
    screen.keys("Enter")
    screen.wait_for("Finished.", "✓ yes to a-", gone=["approve? >"])
    assert (work / "made").exists()


def test_a_no_runs_nothing_and_is_said(terminal, work):
    screen = terminal(*change("touch made"))
    ask(screen)
    screen.type("no not today")
    screen.keys("Enter")
    screen.wait_for("denied: nothing was run")
    assert not (work / "made").exists()


def test_what_is_typed_ahead_goes_to_the_composer(terminal, work):
    gate = work.parent / "gate"
    os.mkfifo(gate)
    first, *rest = change("touch made")
    screen = terminal({"deltas": ["One.\n", {"wait": "gate"}, "moment."], "calls": first["calls"]}, *rest)
    screen.type("please")
    screen.keys("Enter")
    screen.wait_for("One", "working")
    screen.type("yes")
    screen.wait_for("› yes")
    gate.open("w").close()
    screen.wait_for("approve? >", "kept for later: yes")
    assert not (work / "made").exists()
    screen.keys("Escape")
    screen.wait_for("not approved", "› yes")
    assert not (work / "made").exists()


def test_paste_of_2000_lines_is_one_text_and_nothing_is_sent(terminal):
    screen = terminal({"text": "Never asked."})
    screen.paste("".join(f"line {number}\n" for number in range(1, 2001)))
    shown = screen.wait_for("line 2000")
    assert "Never asked" not in shown and len(shown.split("\n")) <= 24
    screen.keys("C-c")
    screen.wait_for("›", gone=["line"])


def test_paste_into_the_dock_approves_nothing(terminal, work):
    screen = terminal(*change("touch made"))
    ask(screen)
    screen.paste("yes\n")
    screen.wait_for("a paste is no answer")
    screen.keys("Enter")
    screen.wait_for("Enter alone is no answer")
    assert not (work / "made").exists()


@pytest.mark.parametrize("columns", [100, 60])
def test_resize_in_the_middle_of_an_answer_doubles_and_loses_nothing(terminal, work, columns):
    os.mkfifo(work.parent / "gate")
    table = "| unit | 状态 |\n|---|---|\n| nginx | 失败了 |\n| 数据库服务 | 正常 |\n\n"
    pieces = ["Before 之前.\n\n", table, "a line\n", "| still | open |\n", {"wait": "gate"}, "and the rest.\n"]
    screen = terminal({"deltas": pieces})
    screen.type("please")
    screen.keys("Enter")
    screen.wait_for("still", "数据库服务 │ 正常")
    screen.resize(columns, 20)
    screen.wait_until(lambda shown: "guarded" in shown and "working" in shown)
    (work.parent / "gate").open("w").close()
    screen.wait_for("and the rest.", gone=["working"])
    shown = screen.everything()
    rows = [row.rstrip() for row in shown.split("\n")]
    once = ["› please"]
    once += ["Before 之前.", "nginx      │ 失败了", "数据库服务 │ 正常", "a line", "still │ open", "and the rest."]
    assert [rows.count(row) for row in once] == [1] * len(once), shown
    assert sum("guarded" in row for row in rows) == 1 == rows.count("›"), shown


def test_live_rows_that_the_terminal_breaks_anew_are_found_again(terminal, work):
    os.mkfifo(work.parent / "gate")
    wide = f"| {'word ' * 13}| open |\n"
    screen = terminal({"deltas": ["a line\n", wide, {"wait": "gate"}, "and the rest.\n"]})
    screen.type("please")
    screen.keys("Enter")
    screen.wait_for("│ open", "working")
    screen.resize(50, 24)
    screen.wait_until(lambda shown: any(row.endswith("│ open") and len(row) <= 50 for row in shown.split("\n")))
    (work.parent / "gate").open("w").close()
    screen.wait_for("and the rest.", gone=["working"])
    shown = screen.everything()
    rows = [row.rstrip() for row in shown.split("\n")]
    assert shown.count("word") == 13 and shown.count("open") == 1 and rows.count("a line") == 1, shown
    assert sum("guarded" in row for row in rows) == 1 == rows.count("›"), shown


def test_a_very_fast_stream_arrives_whole_and_in_order(terminal):
    screen = terminal({"deltas": ["```\n", *(f"row {number}\n" for number in range(3000)), "```\nover\n"]})
    screen.type("please")
    screen.keys("Enter")
    screen.wait_for("over", gone=["working"])
    rows = [row.strip("│ ") for row in screen.everything().split("\n") if "│ row" in row]
    assert rows == [f"row {number}" for number in range(3000)]


def test_escape_interrupts_the_turn_and_the_conversation_goes_on(terminal, work):
    os.mkfifo(work.parent / "gate")
    screen = terminal({"deltas": ["One.\n", {"wait": "gate"}]}, {"text": "Second answer."})
    screen.type("please")
    screen.keys("Enter")
    screen.wait_for("One", "working")
    screen.keys("Escape")
    screen.wait_for("interrupted", gone=["working"])
    screen.type("again")
    screen.keys("Enter")
    screen.wait_for("Second answer.")


def test_type_ahead_is_queued_shown_editable_and_sent(terminal, work):
    os.mkfifo(work.parent / "gate")
    screen = terminal(
        {"deltas": ["One.\n", {"wait": "gate"}, "done."]}, {"expect": "^third$", "text": "Second answer."}
    )
    screen.type("first")
    screen.keys("Enter")
    screen.wait_for("One", "working")
    screen.type("second")
    screen.keys("Enter")
    screen.wait_for("queued: second")
    screen.keys("Up")
    screen.wait_for("› second", gone=["queued"])
    screen.keys("C-u")
    screen.type("third")
    screen.keys("Enter")
    screen.wait_for("queued: third")
    (work.parent / "gate").open("w").close()
    screen.wait_for("Second answer.", gone=["queued"])


def test_ctrl_c_clears_then_asks_then_leaves(terminal):
    screen = terminal({"text": "Never asked."})
    screen.type("half a thought")
    screen.wait_for("half a thought")
    screen.keys("C-c")
    screen.wait_for("›", gone=["half a thought"])
    screen.keys("C-c")
    screen.wait_for("Ctrl-C again leaves")
    screen.keys("C-c")
    assert screen.exit_code() == 0 and "to go on" not in screen.everything(), "nothing was said"


def test_leaving_says_how_to_go_on(terminal):
    screen = terminal({"text": "One."})
    screen.type("hello")
    screen.keys("Enter")
    screen.wait_for("One.", gone=["working"])
    screen.type("/exit")
    screen.keys("Enter")
    assert screen.exit_code() == 0 and "opsagent --resume c-" in screen.everything()


def test_text_goes_to_the_editor_and_back(terminal, tmp_path):
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf "%s and more\\nsecond line" "$(cat "$1")" > "$1"\n')
    editor.chmod(0o755)
    screen = terminal({"expect": "^words and more\nsecond line$", "text": "Read."}, environ={"VISUAL": str(editor)})
    screen.type("words")
    screen.wait_for("› words")
    screen.keys("C-x", "C-e")
    screen.wait_for("› words and more", "second line")
    screen.keys("Enter")
    screen.wait_for("Read.")


def test_suspended_conversation_goes_on(work, tmp_path):
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"text": "Still here."}) + "\n")
    line = f"{shlex.join(opsagent('--brain', f'script:{script}'))}; echo was suspended; fg"
    screen = Tmux(["bash", "--norc", "-mc", line], cwd=work)
    try:
        screen.wait_for(WELCOME, READY)
        screen.keys("C-z")
        screen.wait_for("was suspended", READY)
        screen.type("hello")
        screen.wait_for("› hello")
        screen.keys("Enter")
        screen.wait_for("Still here.")
    finally:
        screen.close()


def test_history_is_searched_and_goes_back(terminal):
    screen = terminal(*({"text": f"Answer {number}."} for number in (1, 2)))
    for number, text in enumerate(("restart the shop", "look at the disk"), 1):
        screen.type(text)
        screen.keys("Enter")
        screen.wait_for(f"Answer {number}.", gone=["working"])
    screen.keys("Up")
    screen.wait_until(lambda shown: shown.split("\n")[-2].startswith("› look at the disk"), "the last text")
    screen.keys("C-c")
    screen.wait_until(lambda shown: shown.split("\n")[-2].strip() == "›", "an empty line")
    screen.keys("C-r")
    screen.wait_for("I-search")
    screen.type("shop")
    screen.wait_until(lambda shown: "restart the shop" in "\n".join(shown.split("\n")[-3:]), "the text with shop")
    screen.keys("Enter")
    screen.keys("C-c")


def test_last_output_opens_whole(terminal):
    screen = terminal({"calls": [{"tool": "bash", "arguments": {"command": "seq 1 12"}}]}, {"text": "Counted."})
    screen.type("count")
    screen.keys("Enter")
    shown = screen.wait_for("Counted.", "11 more lines: ctrl-o", gone=["working"])
    assert "│ 7" not in shown
    screen.keys("C-o")
    screen.wait_for("│ 7", "│ 12")


def test_completion_is_taken_by_tab(terminal):
    screen = terminal({"text": "Never asked."})
    screen.type("/sess")
    screen.wait_for("/sessions", "earlier conversations")
    screen.keys("Tab", "Enter")
    screen.wait_for("› /sessions", gone=["/sess\n"])


def test_term_signal_ends_the_conversation_on_record(terminal, work, tmp_path):
    screen = terminal({"calls": [{"tool": "bash", "arguments": {"command": "sleep 300"}}]})
    screen.type("please")
    screen.keys("Enter")
    screen.wait_for("running")
    os.kill(screen.pid(), signal.SIGTERM)
    assert screen.exit_code() == 128 + signal.SIGTERM
    assert [run.status for run in entries(tmp_path)[1].executions(limit=10).executions] == ["cancelled"]


def test_unknown_slash_word_is_not_sent(terminal):
    screen = terminal({"text": "Never asked."})
    screen.type("/frobnicate the disk")
    screen.keys("Enter")
    screen.wait_for("unknown command /frobnicate", "nothing was sent")
    assert "Never asked" not in screen.screen()


def test_a_path_is_no_command(terminal):
    screen = terminal({"text": "I see."})
    screen.type("/frob/nicate says hello")
    screen.keys("Enter")
    screen.wait_for("I see.")


def test_bang_runs_by_hand_through_the_guard(terminal, work):
    screen = terminal({"text": "Never asked."})
    screen.type("!ls -d /etc")
    screen.keys("Enter")
    screen.wait_for("✓ !  ls -d /etc", "│ /etc")
    screen.type("!touch made")
    screen.keys("Enter")
    screen.wait_for("approve? >", "asked by    person")
    screen.type("edit")
    screen.keys("Enter")
    screen.wait_for("edit, then Enter")
    screen.type("-too")
    screen.keys("Enter")
    screen.wait_for("| touch made-too", "approve? >")
    screen.type("yes")
    screen.keys("Enter")
    screen.wait_for("✓ yes to", "✓ !  touch made-too")
    assert (work / "made-too").exists() and not (work / "made").exists()


def test_dock_in_chinese_overlaps_nothing(terminal):
    screen = terminal(*change("printf '%s' '重启前请先备份：数据库、配置文件、证书和计划任务，然后再继续执行' > 说明"))
    ask(screen)
    shown = screen.screen()
    rows = shown.split("\n")
    command = "printf '%s' '重启前请先备份：数据库、配置文件、证书和计划任务，然后再继续执行' > 说明"
    assert {f"  | {row}" for row in render.wrap(command, 76)} <= set(rows)
    assert len(rows) <= 24 and rows[-1].startswith(" working")


def test_long_command_is_read_to_its_end_before_a_yes(terminal, work):
    lines = [f"echo step {number} >> log" for number in range(2, 55)]
    command = "bash <<'EOF'\n" + "\n".join([*lines, f"rm -rf {work}/data", "echo over >> log", "EOF"])
    (work / "data").mkdir()
    screen = terminal(*change(command))
    screen.type("please")
    screen.keys("Enter")
    screen.wait_for("all of it has to be read", f"line 55 of 57: rm -rf {work}/data"[:40], "> ")
    screen.wait_for("type what it destroys", gone=["one moment"])
    screen.type(f"{work}/data")
    screen.keys("Enter")
    screen.wait_for("read all of it first")
    assert (work / "data").exists()
    seen = set()
    for _ in range(30):
        shown = screen.screen()
        seen.update(row.rstrip() for row in shown.split("\n"))
        if "all read" in shown:
            break
        screen.keys("PageDown")
        screen.wait_until(lambda now, before=shown: now != before, "the next page")
    assert {f"  | {line}" for line in lines} <= seen and any(row.startswith("  ! rm -rf") for row in seen)
    screen.type(f"{work}/data")
    screen.keys("Enter")
    screen.wait_for("Finished.")
    assert not (work / "data").exists()


# ── the terminal goes away ───────────────────────────────────────────────────────────────────────────────────────


def gone(pid):
    """Waits until the process is no more."""
    until(lambda: has_ended(pid), f"the end of {pid}")


def entries(tmp_path):
    from guard.clock import RandomIds, SystemClock
    from guard.hands.liveness import ProcLiveness
    from guard.ledger.store import open_ledger

    ledger = open_ledger(
        clock=SystemClock(), ids=RandomIds(), redact=str, liveness=ProcLiveness(), path=str(tmp_path / "state")
    )
    return list(ledger.entries()), ledger


@pytest.mark.parametrize("state", ["idle", "writing", "streaming", "asked", "reading"])
def test_terminal_that_goes_away_leaves_nothing_behind_but_the_record(terminal, work, tmp_path, state):
    os.mkfifo(tmp_path / "gate")
    replies = {
        "streaming": ({"deltas": ["One.\n", {"wait": "gate"}]},),
        "asked": change("touch made"),
        "reading": ({"calls": [{"tool": "bash", "arguments": {"command": "sleep 300"}}]},),
    }.get(state, ({"text": "Never asked."},))
    screen = terminal(*replies)
    pid = screen.pid()
    if state == "writing":
        screen.type("half a thought")
        screen.wait_for("half a thought")
    elif state != "idle":
        screen.type("please")
        screen.keys("Enter")
        screen.wait_for({"streaming": "One.", "asked": "approve? >", "reading": "running"}[state])
    screen.hang_up()
    gone(pid)
    told, ledger = entries(tmp_path)
    assert not (work / "made").exists() and "approved" not in [entry["kind"] for entry in told]
    runs = ledger.executions(limit=10).executions
    assert all(run.status not in ("running", "unknown") for run in runs), runs
    if state == "reading":
        assert [run.status for run in runs] == ["cancelled"]
    if state == "asked":
        assert [kept.command for kept in ledger.pending()] == ["touch made"]


def test_change_that_runs_when_the_terminal_goes_away_ends_on_record(terminal, work, tmp_path):
    screen = terminal(*change("sh -c 'echo began > began; sleep 1; echo over > over'"))
    ask(screen)
    screen.keys("End")
    screen.type("yes")
    screen.keys("Enter")
    until((work / "began").exists)
    pid = screen.pid()
    screen.hang_up()
    gone(pid)

    def ended():
        runs = entries(tmp_path)[1].executions(limit=10).executions
        return [run for run in runs if run.level != "R0" and run.status != "running"]

    (run,) = until(ended, "an end on record")
    assert run.status in ("succeeded", "cancelled") and (run.status == "succeeded") == (work / "over").exists()


def test_copy_asks_the_terminal(work, tmp_path):
    script = tmp_path / "script.jsonl"
    script.write_text(json.dumps({"text": "An answer 磁盘."}) + "\n")
    environ = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY", "TMUX")}
    one = Terminal(opsagent("--brain", f"script:{script}"), env={**environ, "TERM": "xterm"}, cwd=str(work))
    try:
        one.wait_for("guarded")
        one.type("please\r")
        one.wait_for("An answer")
        one.type("/copy\r")
        one.wait_for("\x1b]52;c;QW4gYW5zd2VyIOejgeebmC4=\x07")
        one.type("/exit\r")
        assert one.end() == 0
    finally:
        one.close()
