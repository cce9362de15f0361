"""A file change as a person sees it: on the terminal of `opsx approve`, whole, and what is hidden in it."""

from __future__ import annotations

import json
import os

import pytest

from capabilities.edit_words import change_words
from capabilities.questions import prepared
from capabilities.subjects import Wanted
from dialogue.confirm import FILE_CHANGE
from guard.errors import ApprovalChanged, NotApproved, NotPermitted
from guard.redact import Redactor
from guard.types import Policy, UserRule
from tests.approvals.terminal import Terminal, opsx
from tests.edits.world import changed, guard_at, kept_one, kinds

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"


@pytest.fixture
def guard(tmp_path):
    return guard_at(tmp_path)


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def on_a_terminal(*arguments, answer=None, rows=60):
    """What `opsx` shows a person on a terminal, and how it ends."""
    terminal = Terminal(opsx(*arguments), env=dict(os.environ), cwd="/", rows=rows, columns=300)
    try:
        if answer is not None:
            terminal.wait_for("anything else is no")
            terminal.answer(answer)
        return terminal.end(), terminal.shown
    finally:
        terminal.close()


@pytest.mark.guarantee("G-PERSON")
def test_a_change_is_shown_with_its_difference_and_approved_from_another_terminal(guard, work):
    (work / "app.conf").write_bytes(b"port = 80\nhost = a\n")
    (work / "link").symlink_to("app.conf")
    asked = changed(guard, work, "link", b"port = 443\nhost = a\n").ran.outcome
    code, shown = on_a_terminal("approve", asked.request_id, answer="yes\r")
    assert code == 0, shown
    for text in (
        f"change the file {work}/app.conf",
        f"asked for as {work}/link",
        "now:  19 bytes",
        "then: 20 bytes",
        "-port = 80",
        "+port = 443",
        "  |  host = a",
        "R1: small and reversible",
        "opsx rollback",
    ):
        assert text in shown.replace("\r\n", "\n"), shown
    assert (work / "app.conf").read_bytes() == b"port = 80\nhost = a\n", "an approval runs nothing"
    done = changed(guard, work, "link", b"port = 443\nhost = a\n").ran.outcome
    assert (done.status, done.stamp is not None) == ("succeeded", True)
    assert (work / "app.conf").read_bytes() == b"port = 443\nhost = a\n"


@pytest.mark.parametrize("answer", ["\r", "y\r", "no\r"])
def test_anything_but_the_word_approves_no_change(guard, work, answer):
    (work / "f").write_bytes(b"before\n")
    asked = changed(guard, work, "f", b"after\n").ran.outcome
    code, _ = on_a_terminal("approve", asked.request_id, answer=answer)
    assert code in (3, 4) and "approved" not in kinds(guard)
    assert changed(guard, work, "f", b"after\n").ran.outcome.status == "needs_stamp"


def test_a_file_that_changed_since_it_was_asked_for_is_not_put_to_the_person(guard, work):
    (work / "f").write_bytes(b"before\n")
    asked = changed(guard, work, "f", b"after\n").ran.outcome
    (work / "f").write_bytes(b"by hand\n")
    code, shown = on_a_terminal("approve", asked.request_id)
    assert code == ApprovalChanged.exit_code and "is not what it was" in shown


def question(guard, work, path, content, **more):
    asked = changed(guard, work, path, content).ran.outcome
    kept = guard.ledger.request(asked.request_id)
    return prepared(Wanted.of_kept(kept), guard, force=False, holds="one run", **more)


def test_every_way_of_asking_gets_the_whole_change(guard, work):
    (work / "f").write_bytes(b"".join(b"line %d\n" % number for number in range(3_000)))
    new = b"".join(b"line %d changed\n" % number for number in range(0, 3_000, 2))
    made = question(guard, work, "f", new)
    assert made.ask.kind == FILE_CHANGE and made.ask.level == "R2", "more than a person is shown is high risk"
    made = question(guard, work, "g", b"".join(b"line %d\n" % number for number in range(3_900)))
    assert "+line 3899" in made.ask.command and "more lines" not in made.ask.command
    assert made.ask.command.startswith("make the file ") and made.ask.level == "R1"
    assert made.ask.snapshot_plan and made.ask.digest == made.binding.digest


def test_what_no_person_can_see_is_made_visible(guard, work):
    (work / "a\nb").write_bytes(b"x\n")
    made = question(guard, work, "a\nb", b"x\x1b[2J\xe2\x80\xae\n")
    assert "\x1b" not in str(made.ask.command.split("\n")[0])
    assert made.ask.command.count("\n") == made.ask.command.split("@@")[0].count("\n") + 2, "the name stays on its line"
    from dialogue.screen import screen_of

    shown = screen_of([made.ask])
    assert "\x1b" not in shown and "\u202e" not in shown


def test_a_secret_is_hidden_with_a_fingerprint_and_two_changes_never_look_alike(guard, work):
    (work / "f").write_bytes(f"token = {TOKEN}\nport = 1\n".encode())
    made = question(guard, work, "f", f"token = {TOKEN}\nport = 2\n".encode())
    assert TOKEN not in made.ask.command and "token = [REDACTED]" in made.ask.command and made.ask.fingerprint
    other = question(guard, work, "f", f"token = {TOKEN[:-1]}x\nport = 2\n".encode())
    assert other.ask.fingerprint != made.ask.fingerprint and other.ask.command != made.ask.command


def test_what_could_be_code_is_not_hidden_as_a_secret(guard, work):
    (work / "f").write_bytes(b"")
    text = "password='x9Kq;2w reboot#1'\n"
    assert Redactor().text(text) != text
    made = changed(guard, work, "f", text.encode()).edit
    assert "x9Kq;2w reboot#1" in change_words(made, Redactor())[0]


def test_credentials_that_are_there_are_not_shown_to_the_person_either(guard, work):
    (work / ".env").write_bytes(b"PIN=1234\n")
    made = question(guard, work, ".env", b"PIN=9876\n")
    assert "1234" not in str(made.ask) and "not shown: the file holds credentials" in made.ask.command
    assert "it can show or handle credentials" in made.ask.sensitive


def test_what_needs_force_says_so(tmp_path, work):
    rule = UserRule("web", "tee", [f"{work}/*"], 3, "the shop", False, "rules.toml")
    guard = guard_at(tmp_path, Policy(rules=[rule]))
    (work / "f").write_bytes(b"before\n")
    ran = changed(guard, work, "f", b"after\n").ran
    assert (ran.outcome.status, ran.assessment.decision.forceable) == ("refused", True)
    kept = kept_one(guard)
    with pytest.raises(NotPermitted):
        prepared(Wanted.of_kept(kept), guard, force=False, holds="one run")
    assert prepared(Wanted.of_kept(kept), guard, force=True, holds="one run").ask.must_type


def test_an_answered_request_is_asked_no_more(guard, work):
    (work / "f").write_bytes(b"before\n")
    changed(guard, work, "f", b"after\n")
    kept = kept_one(guard)
    guard.ledger.answers.deny(kept.request(), request_id=kept.id)
    with pytest.raises(NotApproved, match="does not wait"):
        prepared(Wanted.of_kept(kept), guard, force=False, holds="one run")


def test_pending_names_the_file_without_its_content_and_show_the_difference(guard, work, capsys):
    from cli import opsx as program

    (work / "f").write_bytes(b"before\n")
    asked = changed(guard, work, "f", b"the content\n").ran.outcome
    assert program.main(["pending", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["requests"]
    assert (row["kind"], json.loads(row["command"])["path"]) == ("file-change", str(work / "f"))
    assert "the content" not in json.dumps(row)
    assert program.main(["show", asked.request_id]) == 0
    shown = capsys.readouterr().out
    assert str(work / "f") in shown and "-before\n+the content\n" in shown
