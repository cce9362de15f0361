"""A plan: all steps on one screen, one answer, one stamp each; carried out in order, stopping at the first failure."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from cli import plans
from guard.errors import UsageError
from tests.approvals.terminal import ROOT, Terminal, opsx

QUESTION = "anything else is no"


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def plan(tmp_path, work):
    def written(*rows):
        file = tmp_path / "plan"
        file.write_text("".join(f"{row}\n" for row in rows))
        return str(file)

    return written


def run(*arguments, cwd):
    """The program without a terminal, in a process of its own."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli.opsx import main; sys.exit(main({list(arguments)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    return done.returncode, json.loads(done.stdout) if "--json" in arguments else done.stderr


def approve(plan, work, *more):
    terminal = Terminal(opsx("approve", *more, "--plan", plan), env=dict(os.environ), cwd=str(work), rows=400)
    try:
        terminal.wait_for(QUESTION)
        terminal.answer("yes\n")
        assert terminal.end() == 0, terminal.text
        return terminal.text
    finally:
        terminal.close()


def test_plan_runs_in_order_after_one_answer_for_all_of_it(plan, work):
    file = plan(
        "# a comment", "echo one > a", "", "cat /dev/null", "echo two >> a", '{"command": "chmod 600 a", "why": "x"}'
    )
    shown = approve(file, work)
    assert "3 requests, in this order" in shown
    assert "line 4 needs no approval: cat /dev/null" in shown
    code, told = run("exec", "--json", "--plan", file, cwd=work)
    assert (code, told["status"], told["not_run"]) == (0, "succeeded", [])
    assert [(row["line"], row["level"], row["status"]) for row in told["steps"]] == [
        (2, "R1", "succeeded"),
        (4, "R0", "succeeded"),
        (5, "R1", "succeeded"),
        (6, told["steps"][3]["level"], "succeeded"),
    ]
    assert (work / "a").read_text() == "one\ntwo\n"
    assert (work / "a").stat().st_mode & 0o777 == 0o600
    # Each stamp was for one run: the same plan again needs another answer, and nothing of it runs before that.
    code, told = run("exec", "--json", "--plan", file, cwd=work)
    assert (code, told["status"], len(told["held_by"])) == (3, "needs_stamp", 3)
    assert (work / "a").read_text() == "one\ntwo\n"


def test_plan_stops_at_the_first_failure_and_names_the_way_back(plan, work):
    (work / "a").write_text("before\n")
    file = plan("echo after > a", "cat /dev/null", "false > b", "echo never > c")
    approve(file, work)
    code, told = run("exec", "--json", "--plan", file, cwd=work)
    assert (code, told["status"]) == (1, "failed")
    assert [row["status"] for row in told["steps"]] == ["succeeded", "succeeded", "failed"]
    assert told["not_run"] == [{"line": 4, "command": "echo never > c"}]
    assert told["rollback"] == [f"opsx rollback {told['steps'][number]['execution']}" for number in (2, 0)]
    assert told["next"] == told["rollback"][0]
    assert not (work / "c").exists()
    words = run("exec", "--plan", plan("echo never > c"), cwd=work)[1]
    assert "all 1 steps succeeded" in words  # its stamp is still there, since it never ran


def test_plan_with_one_step_that_is_not_approved_runs_nothing(plan, work):
    approve(plan("echo one > a"), work)
    file = plan("cat /dev/null", "echo one > a", "echo two > b")
    code, told = run("exec", "--json", "--plan", file, cwd=work)
    assert (code, told["status"], told["steps"]) == (3, "needs_stamp", [])
    assert [row["line"] for row in told["held_by"]] == [3]
    assert told["next"] == f"opsx approve --plan {file}"
    assert list(work.iterdir()) == []
    code, words = run("exec", "--plan", file, cwd=work)
    assert code == 3
    assert "line 3 waits for approval: " in words and "none of the 3 steps" in words


def test_step_that_stands_twice_needs_two_approvals(plan, work):
    approve(plan("echo one >> a"), work)
    file = plan("echo one >> a", "echo one >> a")
    code, told = run("exec", "--json", "--plan", file, cwd=work)
    assert (code, [row["because"] for row in told["held_by"]]) == (
        3,
        ["it stands in the plan more often than it was approved"],
    )
    approve(plan("echo one >> a"), work)
    code, told = run("exec", "--json", "--plan", plan("echo one >> a", "echo one >> a"), cwd=work)
    # What is saved first is bound by its path, not by what is there: both runs are what was approved.
    assert (code, told["status"]) == (0, "succeeded")
    assert (work / "a").read_text() == "one\none\n"


def test_step_that_an_earlier_one_changed_is_not_run(plan, work):
    (work / "fix.sh").write_text("echo good > out\n")
    file = plan("echo 'echo bad > out' > fix.sh", "bash fix.sh", "echo never > c")
    approve(file, work)
    code, told = run("exec", "--json", "--plan", file, cwd=work)
    assert (code, told["status"]) == (3, "needs_stamp")
    assert [row["status"] for row in told["steps"]] == ["succeeded", "needs_stamp"]
    assert any("changed since approval: file" in note for note in told["steps"][1]["notes"])
    assert sorted(os.listdir(work)) == ["fix.sh"]
    assert told["rollback"] == [f"opsx rollback {told['steps'][0]['execution']}"]


def test_step_that_nobody_can_approve_refuses_the_whole_plan(plan, work):
    code, told = run("exec", "--json", "--plan", plan("echo a > a", "opsx approve a-123"), cwd=work)
    assert (code, told["status"], told["next"]) == (4, "refused", None)
    assert list(work.iterdir()) == []


def test_irreversible_step_names_the_force_that_its_approval_needs(plan, work):
    (work / "d").mkdir()
    file = plan("rm -rf d")
    code, told = run("exec", "--json", "--plan", file, cwd=work)
    assert (code, told["next"]) == (3, f"opsx approve --force --plan {file}")


@pytest.mark.parametrize(
    "row",
    ['{"cmd": "ls"}', '{"command": "ls", "user": "root"}', '{"command": 7}', '{"why": "no command"}'],
)
def test_row_that_is_no_step_stops_the_reading(plan, row):
    with pytest.raises(UsageError, match="line 2 of the plan is no step"):
        plans.read(plan("ls", row), cwd="/", why="", not_done="nothing was run")


def test_group_in_braces_is_a_command_and_a_folder_of_a_row_is_relative(plan):
    steps = plans.read(
        plan("{ echo a; }", '{"command": "ls", "cwd": "../etc"}', '{"command": "df", "cwd": "/var"}'),
        cwd="/srv",
        why="w",
        not_done="",
    )
    assert [(step.line, step.command, step.cwd, step.why) for step in steps] == [
        (1, "{ echo a; }", "/srv", "w"),
        (2, "ls", "/etc", "w"),
        (3, "df", "/var", "w"),
    ]


@pytest.mark.parametrize("rows", [["# nothing"], ["true"] * 51])
def test_plan_of_no_steps_or_too_many_is_no_plan(plan, rows):
    with pytest.raises(UsageError, match="1 to 50"):
        plans.read(plan(*rows), cwd="/", why="", not_done="")


def test_plan_that_is_no_text_is_no_plan(tmp_path):
    (tmp_path / "plan").write_bytes(b"echo \xff\n")
    with pytest.raises(UsageError, match="cannot be read"):
        plans.read(str(tmp_path / "plan"), cwd="/", why="", not_done="")
    (tmp_path / "plan").write_bytes(b"#" * (plans.PLAN_BYTES + 1))
    with pytest.raises(UsageError, match="longer than"):
        plans.read(str(tmp_path / "plan"), cwd="/", why="", not_done="")
