"""`opsx write` and `opsx edit` as a person and a script use them, from the request to the rollback."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.approvals.terminal import Terminal
from tests.approvals.terminal import opsx as argv


@pytest.fixture
def work():
    """A folder with a short name: lists cut what is longer than a line."""
    with tempfile.TemporaryDirectory(prefix="工作", dir="/tmp") as folder:
        (Path(folder) / "应用.conf").write_bytes("端口 = 80\nhost = a\n".encode())
        yield Path(folder)


def opsx(work, *words, stdin=b""):
    """A script's call: no terminal anywhere."""
    return subprocess.run([*argv(*words)], input=stdin, capture_output=True, cwd=work, env=dict(os.environ), timeout=60)


def answered(work, *words, answer="yes\r"):
    """A person's call that asks; what was shown."""
    terminal = Terminal(argv(*words), env=dict(os.environ), cwd=str(work), rows=60, columns=200)
    try:
        terminal.wait_for("anything else")
        terminal.answer(answer)
        assert terminal.end() == 0, terminal.shown
        return terminal.shown
    finally:
        terminal.close()


DIFFERENCE = "--- 应用.conf\n+++ 应用.conf\n@@ -1,2 +1,2 @@\n-端口 = 80\n+端口 = 443\n host = a\n".encode()
CALLS = {
    "write": (("write", "应用.conf", "-"), "端口 = 443\nhost = a\n".encode()),
    "write from a file": (("write", "应用.conf", "-f", "new"), b""),
    "edit": (("edit", "应用.conf", "--old", "端口 = 80", "--new=端口 = 443"), b""),
    "a difference": (("edit", "应用.conf", "-"), DIFFERENCE),
}


@pytest.mark.parametrize("name", CALLS)
def test_asked_shown_approved_done_and_taken_back(work, name):
    words, stdin = CALLS[name]
    (work / "new").write_bytes("端口 = 443\nhost = a\n".encode())
    asked = opsx(work, *words, stdin=stdin)
    assert asked.returncode == 3 and "+端口 = 443" in asked.stdout.decode()
    said = asked.stderr.decode()
    assert "nothing was changed" in said and "the same again does it" in said
    assert (work / "应用.conf").read_bytes().startswith("端口 = 80".encode())

    waiting = opsx(work, "pending").stdout.decode()
    assert f"change the file {work}/应用.conf" in waiting and "\\u" not in waiting
    id = waiting.split()[0]
    shown = opsx(work, "show", id).stdout.decode()
    for part in ("-端口 = 80", "+端口 = 443", f"{work}/应用.conf"):
        assert part in shown, shown
    as_object = json.loads(opsx(work, "show", id, "--json").stdout)
    assert "+端口 = 443" in as_object["change"] and as_object["request"]["kind"] == "file-change"

    screen = answered(work, "approve", id)
    assert "+端口 = 443" in screen and "opsx write or edit" in screen
    done = opsx(work, *words, "--json", stdin=stdin) if "-" not in words else opsx(work, *words, stdin=stdin)
    assert done.returncode == 0, done.stderr.decode()
    assert (work / "应用.conf").read_bytes() == "端口 = 443\nhost = a\n".encode()
    runs = opsx(work, "executions").stdout.decode()
    assert f"change the file {work}/应用.conf" in runs
    execution = next(word for word in runs.split() if word.startswith("e-"))
    assert f"change the file {work}/应用.conf" in opsx(work, "show", execution).stdout.decode()
    assert f"change the file {work}/应用.conf" in opsx(work, "stamps", "--all").stdout.decode()
    answered(work, "rollback", execution)
    assert (work / "应用.conf").read_bytes() == "端口 = 80\nhost = a\n".encode()


def test_the_json_object_is_that_of_a_run_with_path_and_difference(work):
    done = opsx(work, "write", "新文件", "-", "--json", "--why", "for 测试", stdin=b"x\n")
    answer = json.loads(done.stdout)
    assert (done.returncode, answer["status"], answer["level"], answer["decision"]) == (
        3,
        "needs_stamp",
        "R1",
        "needs_stamp",
    )
    assert (answer["path"], answer["difference"]) == (f"{work}/新文件", ["@@ -0,0 +1,1 @@", "+x"])
    assert answer["next"] == f"opsx approve {answer['request']}" and "stdout" not in answer
    assert json.loads(opsx(work, "show", answer["request"], "--json").stdout)["request"]["why"] == "for 测试"


def test_a_request_whose_file_changed_says_so_when_it_is_shown(work):
    opsx(work, "write", "应用.conf", "-", stdin=b"x\n")
    (work / "应用.conf").write_bytes(b"by hand\n")
    id = opsx(work, "pending").stdout.decode().split()[0]
    assert "is not what it was when the change was asked for" in opsx(work, "show", id).stdout.decode()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("write", "f"), 2, "no content was named"),
        (("write",), 2, "name one file"),
        (("write", "f", "g", "-"), 2, "name one file"),
        (("write", "f", "-", "-f", "x"), 2, "exclude each other"),
        (("write", "f", "-f", "gone"), 2, "cannot read"),
        (("edit", "f"), 2, "say what is replaced"),
        (("edit", "f", "--old", "a"), 2, "say what is replaced"),
        (("edit", "f", "--old", "", "--new", "a"), 2, "say what is replaced"),
        (("edit", "f", "-", "--old", "a", "--new", "b"), 2, "one of the two"),
        (("edit", "应用.conf", "-"), 2, "no @@ line"),
        (("edit", "gone", "--old", "a", "--new", "b"), 2, "there is no file"),
        (("write", "/proc/version", "-"), 2, "nothing was changed"),
        (("write", "f", "-", "--read-only"), 4, "read-only"),
        (("write", "f", "-", "--target", "web1"), 2, "nothing was"),
        (("write", "f", "-", "--cwd", "gone"), 2, "nothing was"),
    ],
)
def test_what_cannot_be_asked_for_says_why_and_changes_nothing(work, words, code, said):
    done = opsx(work, *words)
    assert (done.returncode, said in done.stderr.decode()) == (code, True), done.stderr.decode()
    assert sorted(os.listdir(work)) == ["应用.conf"] and b"80" in (work / "应用.conf").read_bytes()


def test_a_passage_can_be_taken_out_and_a_file_with_a_dash_named(work):
    (work / "-f").write_bytes(b"a b\n")
    done = opsx(work, "edit", "--old", " b", "--new", "", "--", "-f")
    assert done.returncode == 3 and "+a" in done.stdout.decode().split("\n")
    done = opsx(work, "write", "-f", "应用.conf", "--", "-")
    assert done.returncode == 3 and f"make the file {work}/-" in done.stdout.decode()


def test_an_agents_command_does_not_reach_them():
    import core
    from guard.types import Verdict

    for command in ("opsx write /tmp/f -f g", "opsx edit /tmp/f --old a --new b"):
        assert core.check(command).decision.verdict == Verdict.REFUSE, "law 6 names what an agent's command may call"
