"""`opsx approve` on a real terminal: the whole right word is a yes, and nothing else is."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from guard.clock import RandomIds, SystemClock
from guard.hands.liveness import ProcLiveness
from guard.ledger.store import open_ledger
from guard.render import width
from tests.approvals.terminal import ROOT, Terminal, opsx

QUESTION = "anything else is no"


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def ledger(tmp_path):
    return open_ledger(
        clock=SystemClock(),
        ids=RandomIds(),
        redact=lambda text: text,
        liveness=ProcLiveness(),
        path=str(tmp_path / "state"),
    )


def environment():
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH",)}


@pytest.fixture
def terminal(work):
    opened = []

    def start(*arguments, cwd=work, **more):
        opened.append(Terminal(opsx(*arguments), env=environment(), cwd=str(cwd), **more))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def as_agent(*arguments, cwd):
    """The program without a terminal: whoever has none is an agent."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli.opsx import main; sys.exit(main({list(arguments)!r}))"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        env=environment(),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )


def asked_for(command, cwd):
    done = as_agent("exec", "--json", "--", command, cwd=cwd)
    assert done.returncode in (3, 4), done
    return json.loads(done.stdout)["request"]


def kinds(ledger):
    return [entry["kind"] for entry in ledger.entries()]


@pytest.mark.guarantee("G-PERSON")
def test_request_approved_from_elsewhere_runs_once(terminal, work, tmp_path, ledger):
    command = "printf '%s' \"中文 $HOME `id -u`\n" + "x" * 4000 + '" > out.txt'
    request = asked_for(command, work)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    person = terminal("approve", request, cwd=elsewhere, rows=400)
    person.wait_for(QUESTION)
    person.answer("yes\r")
    assert person.end() == 0
    (stamp,) = ledger.stamps.listed()
    assert f"opsx revoke {stamp.id} takes it back" in person.shown and "nothing ran yet" in person.shown
    assert (stamp.request, stamp.consent, stamp.cwd) == (request, "tty", str(work))
    entry = next(entry for entry in ledger.entries() if entry["kind"] == "approved")
    assert entry["tty"].startswith("/dev/pts/")
    assert len(entry["rendered_sha256"]) == 64
    first = as_agent("exec", "--json", "--", command, cwd=work)
    assert first.returncode == 0, first
    assert json.loads(first.stdout)["stamp"] == stamp.id
    assert (work / "out.txt").read_text().endswith("x" * 4000)
    second = as_agent("exec", "--json", "--", command, cwd=work)
    assert (second.returncode, json.loads(second.stdout)["execution"]) == (3, None)


def test_approve_of_nothing_in_particular_names_what_waits_newest_first(terminal, work):
    person = terminal("approve", columns=200)
    assert person.end() == 2 and "no request and no command was named" in person.shown
    asked = [asked_for(f"touch {name}", work) for name in "abcd"]
    person = terminal("approve", columns=200)
    assert person.end() == 2
    named = [word for word in person.shown.split() if word.startswith("a-")]
    assert named == asked[:0:-1] and "1 more: opsx pending" in person.shown


@pytest.mark.parametrize(("columns", "lines"), [(80, 2), (120, 1)])
def test_a_row_of_a_list_fits_the_terminal(terminal, work, columns, lines):
    asked_for("touch " + "中" * 200, work)
    as_agent("exec", "--", "echo " + "x" * 200, cwd=work)
    for verb, most in (("pending", columns), ("executions", columns * lines)):
        one = terminal(verb, columns=columns)
        assert one.end() == 0
        (row,) = one.shown.splitlines()
        assert most - 2 <= width(row) <= most and row.endswith("⟨…⟩")


@pytest.mark.guarantee("G-PERSON")
@pytest.mark.parametrize(
    "keys",
    ["\r", "\x1b", "\x1byes\r", "\x1b[200~yes\r\x1b[201~", "\x04", "y\r", "Yes\r", "yes \r", "yesyes\r", "\x03"],
    ids=["enter", "esc", "esc-yes", "paste", "eof", "y", "capital", "blank", "twice", "interrupt"],
)
def test_anything_but_the_word_is_no(terminal, work, ledger, keys):
    request = asked_for("touch a", work)
    person = terminal("approve", request)
    person.wait_for(QUESTION)
    person.answer(keys)
    assert person.end() == (130 if keys == "\x03" else 3)
    last = person.shown.splitlines()[-1].removeprefix("\x1b[?2004l")
    assert last.startswith("interrupted" if keys == "\x03" else "opsx: still waiting:")
    assert kinds(ledger) == ["requested"]
    assert ledger.request(request) is not None


@pytest.mark.guarantee("G-PERSON")
def test_terminal_that_goes_away_is_no(terminal, work, ledger):
    request = asked_for("touch a", work)
    person = terminal("approve", request)
    person.wait_for(QUESTION)
    person.hang_up()
    assert person.end() != 0
    assert kinds(ledger) == ["requested"]


@pytest.mark.guarantee("G-PERSON")
def test_keys_from_before_the_question_are_thrown_away(terminal, work, ledger):
    request = asked_for("touch a", work)
    person = terminal("approve", request)
    person.type("yes\ryes\ryes\r")
    person.wait_for(QUESTION)
    person.answer("\r")
    assert person.end() == 3
    assert kinds(ledger) == ["requested"]


def test_typed_no_is_a_denial_and_is_told_the_next_time(terminal, work, ledger):
    request = asked_for("touch a", work)
    person = terminal("approve", request)
    person.wait_for(QUESTION)
    person.answer("no\r")
    assert person.end() == 4
    assert kinds(ledger) == ["requested", "denied"]
    again = terminal("approve", asked_for("touch a", work))
    again.wait_for("you denied this at")
    again.wait_for(QUESTION)
    again.answer("yes\r")
    assert again.end() == 0


@pytest.mark.guarantee("G-PERSON")
def test_irreversible_wants_force_and_its_object(terminal, work, ledger):
    (work / "old").mkdir()
    request = asked_for("rm -rf old", work)
    unforced = terminal("approve", request)
    assert unforced.end() == 4
    assert "--force" in unforced.text
    for typed, code in (("yes\r", 3), ("old\r", 3), (f"{work}/old\r", 0)):
        person = terminal("approve", "--force", request, columns=200)
        person.wait_for("is no.\r\n> ")
        person.answer(typed)
        assert person.end() == code, person.text
    assert kinds(ledger) == ["requested", "approved"]
    assert ledger.stamps.listed()[0].forced
    done = as_agent("exec", "--json", "--", "rm -rf old", cwd=work)
    assert done.returncode == 0, done
    assert not (work / "old").exists()


def test_text_that_does_not_fit_is_read_to_its_end_first(terminal, work, ledger):
    request = asked_for("touch a " + "b " * 1500, work)
    hasty = terminal("approve", request, rows=0, columns=0)
    hasty.wait_for("more lines")
    hasty.answer("yes\r")
    assert hasty.end() == 3
    assert QUESTION not in hasty.text
    person = terminal("approve", request, rows=0, columns=0)
    person.wait_for("more lines")
    while QUESTION not in person.shown:
        assert person.code is None, person.text
        person.answer("\r")
    assert 2 <= person.text.count("more lines; Enter goes on") < 40
    person.answer("yes\r")
    assert person.end() == 0
    assert kinds(ledger) == ["requested", "approved"]


def test_what_changes_while_it_is_shown_is_not_approved(terminal, work, ledger):
    (work / "fix.sh").write_text("true\n")
    person = terminal("approve", "--", "bash", "fix.sh", rows=400)
    person.wait_for(QUESTION)
    (work / "fix.sh").write_text("false\n")
    person.answer("yes\r")
    assert person.end() == 3
    assert "changed while it was shown: file" in person.text
    assert kinds(ledger) == []


def test_plan_is_one_screen_one_answer_and_a_stamp_for_each(terminal, work, ledger):
    (work / "other").mkdir()
    (work / "plan").write_text(
        '# first\ntouch a\n\n{"command": "touch b", "cwd": "other", "why": "because"}\nmkdir \'c d\'\n'
    )
    person = terminal("approve", "--plan", "plan", "--ttl", "2h", rows=400)
    person.wait_for(QUESTION)
    assert "3 requests, in this order" in person.text
    person.answer("yes\r")
    assert person.end() == 0
    assert [(stamp.command, stamp.ttl_s) for stamp in reversed(ledger.stamps.listed())] == [
        ("touch a", 7200),
        ("touch b", 7200),
        ("mkdir 'c d'", 7200),
    ]
    assert as_agent("exec", "--", "touch b", cwd=work / "other").returncode == 0
    assert as_agent("exec", "--", "touch b", cwd=work).returncode == 3


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"command": "x", "force": "y"}\n', "line 1 of the plan"),
        ('{"command": 3}\n', "line 1 of the plan"),
        ("# nothing\n", "holds 0 steps"),
        ("touch x\n" * 51, "holds 51 steps"),
    ],
)
def test_plan_that_is_none_is_a_usage_error(terminal, work, ledger, content, said):
    (work / "plan").write_text(content)
    person = terminal("approve", "--plan", "plan", columns=200)
    assert person.end() == 2
    assert said in person.text
    assert kinds(ledger) == []


@pytest.mark.guarantee("G-PERSON")
@pytest.mark.parametrize(
    "arguments",
    [("approve", "--", "touch a"), ("approve", "--force", "a-404"), ("deny", "a-404"), ("thaw",),
        ("resolve", "e-1", "--done")],
    ids=["approve", "force", "deny", "thaw", "resolve"],
)  # fmt: skip
def test_agent_answers_nothing(work, ledger, arguments):
    done = as_agent(arguments[0], "--json", *arguments[1:], cwd=work)
    assert done.returncode == 4, done
    assert json.loads(done.stdout)["error"]["code"] == "not_permitted"
    assert kinds(ledger) == []


@pytest.mark.guarantee("G-FREEZE")
def test_freeze_reaches_every_command_and_a_person_thaws(terminal, work, ledger):
    request = asked_for("touch a", work)
    person = terminal("approve", request)
    person.wait_for(QUESTION)
    person.answer("yes\r")
    assert person.end() == 0
    assert as_agent("freeze", "--reason", "migration", cwd=work).returncode == 0
    done = as_agent("exec", "--", "touch a", cwd=work)
    assert done.returncode == 4
    assert "migration" in done.stderr
    assert as_agent("check", "--", "touch a", cwd=work).returncode == 4
    assert as_agent("exec", "--", "pwd", cwd=work).returncode == 0
    thawing = terminal("thaw")
    assert thawing.end() == 0
    assert as_agent("exec", "--", "touch a", cwd=work).returncode == 0
    assert (work / "a").exists()


def test_stamps_are_listed_and_revoked(terminal, work, ledger):
    person = terminal("approve", "--uses", "2", "--json", "--", "touch", "a")
    person.wait_for(QUESTION)
    person.answer("yes\r")
    assert person.end() == 0
    (stamp,) = json.loads(as_agent("stamps", "--json", cwd=work).stdout)["stamps"]
    assert (stamp["state"], stamp["uses"], stamp["command"]) == ("live", 2, "touch a")
    assert as_agent("revoke", stamp["id"], cwd=work).returncode == 0
    done = as_agent("exec", "--json", "--", "touch a", cwd=work)
    assert done.returncode == 3
    assert any("revoked" in note for note in json.loads(done.stdout)["notes"])


def test_unknown_run_is_resolved_by_a_person(terminal, work, ledger):
    from tests.ledger.world import asked, change_of, ledger_in

    lost = ledger_in(ledger.folder.path, ids=RandomIds())
    run = lost.begin(asked("x"), change_of("x"), profile="none", enforced="none", owner=(2**22 + 1, "1"))
    person = terminal("resolve", run, "--not-done", "--evidence", "looked")
    assert person.end() == 0
    assert ledger.show(run).execution.resolution == "not_done"
