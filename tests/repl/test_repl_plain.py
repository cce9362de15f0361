"""The conversation on lines: the same words, no control codes, and a person is asked as `opsx approve` asks."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from cli.clipboard import MOST_BYTES, sequence, tool
from cli.opsagent_repl import is_plain
from guard.errors import UsageError
from tests.approvals.terminal import Terminal
from tests.repl.tmux import ROOT, opsagent


@pytest.fixture
def script(tmp_path):
    def write(*replies):
        path = tmp_path / "script.jsonl"
        path.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        return f"script:{path}"

    return write


CHANGE = (
    {"text": "I would.", "calls": [{"tool": "ops_exec", "arguments": {"command": "touch made"}}]},
    {
        "expect": '"request": "(?P<request>a-[a-z0-9]+)"',
        "calls": [{"tool": "ops_approve", "arguments": {"request": "${request}"}}],
    },
    {"calls": [{"tool": "ops_exec", "arguments": {"command": "touch made"}}]},
    {"text": "Finished."},
)


def talk(words, *arguments, cwd):
    return subprocess.run(
        opsagent("--plain", *arguments), input=words, cwd=cwd, capture_output=True, text=True, env=os.environ.copy()
    )


def test_lines_in_and_lines_out_without_control_codes(script, tmp_path):
    brain = script({"text": "**Fine**: 一切正常\n\n- one\n"}, {"expect": "^two$", "text": "Second."})
    done = talk("one\n/bogus\ntwo\n", "--brain", brain, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [row for row in done.stdout.split("\n") if row]
    assert rows[0].startswith("· conversation c-")
    assert rows[2:] == [
        *("› one", "Fine: 一切正常", "• one"),
        *("› /bogus", "✗ usage.slash: unknown command /bogus", "  nothing was sent", "  next: /help lists them"),
        *("› two", "Second."),
    ]
    assert "\x1b" not in done.stdout and not any(row != row.rstrip() for row in rows)


def test_without_a_person_a_change_waits_and_the_exit_code_says_so(script, tmp_path):
    done = talk("please\n", "--brain", script(CHANGE[0], {"text": "It waits."}), cwd=tmp_path)
    assert done.returncode == 3 and "nobody can approve here" in done.stdout and not (tmp_path / "made").exists()


def test_runbooks_say_that_they_keep_nothing_and_tell_a_change_once(tmp_path):
    done = talk("restart nginx\n", "--brain", "offline", cwd=tmp_path)
    assert done.returncode == 3 and done.stdout.startswith("· the runbooks answer, without a model; what is said")
    assert done.stdout.count("systemctl restart nginx\n") == 1 and "waits" not in done.stdout


def test_brain_that_does_not_exist_is_an_error_in_three_parts(tmp_path):
    done = talk("", "--brain", "nobody", cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.startswith("error[") and "Traceback" not in done.stderr


def test_script_that_cannot_be_read_fails_its_turn_and_no_more(tmp_path):
    done = talk("one\n/status\n", "--brain", "script:/nowhere", cwd=tmp_path)
    assert done.returncode == 2 and "cannot be read" in done.stdout and "conversation c-" in done.stdout


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def start(*arguments, **environ):
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        opened.append(Terminal(opsagent(*arguments), env={**os.environ, "TERM": "xterm", **environ}, cwd=str(work)))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.mark.parametrize("environ", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_a_person_approves_on_a_plain_terminal(script, terminal, tmp_path, environ):
    arguments = ("--brain", script(*CHANGE), *([] if environ else ["--plain"]))
    one = terminal(*arguments, **environ)
    one.wait_for("› ")
    one.type("please\n")
    one.wait_for("anything else is no")
    one.answer("yes\n")
    one.wait_for("Finished.")
    assert (tmp_path / "work" / "made").exists()
    one.type("/exit\n")
    one.end()
    shown = one.shown.replace("\x1b[?2004h", "").replace("\x1b[?2004l", "")  # a paste is no answer to a question
    assert one.code == 0 and "\x1b" not in shown


def test_lines_of_a_paste_are_one_text(script, terminal):
    one = terminal("--plain", "--brain", script({"expect": "^a\nb\nc$", "text": "All three."}))
    one.wait_for("› ")
    one.type("a\nb\nc\n")
    one.wait_for("All three.")


def test_ctrl_c_interrupts_the_turn_and_then_leaves(script, terminal, tmp_path):
    os.mkfifo(tmp_path / "gate")
    one = terminal("--plain", "--brain", script({"deltas": ["One.\n\n", {"wait": "gate"}]}))
    one.wait_for("› ")
    one.type("please\n")
    one.wait_for("One.")
    one.type("\x03")
    one.wait_for("interrupted\r\n› ")
    one.type("\x03")
    one.end()
    assert one.code == 130


@pytest.mark.parametrize(
    ("wanted", "environ", "plain"),
    [
        (False, {"TERM": "xterm"}, False),
        (True, {"TERM": "xterm"}, True),
        (False, {"TERM": "dumb"}, True),
        (False, {}, True),
        (False, {"TERM": "xterm", "NO_COLOR": "1"}, True),
        (False, {"TERM": "xterm", "NO_COLOR": ""}, False),
    ],
)
def test_when_control_codes_stay_away(monkeypatch, wanted, environ, plain):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert is_plain(wanted, environ) is plain


# ── the clipboard, which no test touches ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("environ", "platform", "argv"),
    [
        ({}, "linux", ()),
        ({"DISPLAY": ":0"}, "linux", ("xclip", "-selection", "clipboard")),
        ({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, "linux", ("wl-copy",)),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "a b c d"}, "linux", ()),
        ({}, "darwin", ("pbcopy",)),
    ],
)
def test_which_way_to_the_clipboard(environ, platform, argv):
    assert tool(environ, lambda name: f"/usr/bin/{name}", platform) == argv
    assert tool(environ, lambda name: None, platform) == ()


def test_terminal_is_asked_to_copy_in_its_own_words():
    assert sequence("磁盘\x1b") == "\x1b]52;c;56OB55uYGw==\x07"
    with pytest.raises(UsageError):
        sequence("x" * (MOST_BYTES + 1))


def test_help_names_the_conversation():
    done = subprocess.run(opsagent("--help"), capture_output=True, text=True, cwd=ROOT)
    assert "--plain" in done.stdout and "--resume ID" in done.stdout
