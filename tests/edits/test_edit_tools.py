"""`write` and `edit` as a model calls them: what is replaced, what an answer tells, and what it never tells."""

from __future__ import annotations

import json

import pytest

from capabilities.call import Call
from capabilities.edits import edit_tool, replaced, write_tool
from capabilities.registry import BadArguments, Registry
from guard.errors import CannotEdit
from guard.redact import Redactor
from guard.types import Level, Policy
from tests.edits.world import approve, guard_at, kept_one

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"


@pytest.fixture
def guard(tmp_path):
    return guard_at(tmp_path)


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def ask(tool, guard, work, **arguments):
    call = Call(str(work), "mcp", client="tests 7", session="c-1")
    return Registry([tool(guard, call)]).call(tool.__name__.removesuffix("_tool"), arguments)


# ── the passage ──────────────────────────────────────────────────────────────────────────────────────────────────


def one(present, old, new):
    return replaced(present, old.encode("utf-8", "surrogateescape"), new.encode("utf-8", "surrogateescape"), Redactor())


@pytest.mark.parametrize(
    ("present", "old", "new", "after"),
    [
        (b"a\nb\nc\n", "b", "x\ny", b"a\nx\ny\nc\n"),
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\r\n", "b", "x\ny", b"a\r\nx\r\ny\r\n"),
        (b"a\r\nb\r\n", "a\r\nb", "x\r\ny", b"x\r\ny\r\n"),
        (b"a\r\nb\nc\n", "b\nc", "x\ny", b"a\r\nx\ny\n"),
        (b"a\r\nb\r\nc\n", "a\nb", "x\ny", b"x\r\ny\r\nc\n"),
        (b"\xef\xbb\xbfkey=1\n", "key=1", "key=2", b"\xef\xbb\xbfkey=2\n"),
        ("端口 = 80\n服务\n".encode(), "端口 = 80", "端口 = 443", "端口 = 443\n服务\n".encode()),
        (b"caf\xe9 = 1\n", "= 1", "= 2", b"caf\xe9 = 2\n"),
        (b"caf\xe9 = 1\n", "caf\udce9", "tea", b"tea = 1\n"),
        (b"no end", "end", "line end", b"no line end"),
        (b"whole", "whole", "", b""),
    ],
)
def test_one_passage_is_replaced_and_all_other_bytes_stay(present, old, new, after):
    assert one(present, old, new) == after


@pytest.mark.parametrize(
    ("present", "old", "told"),
    [
        (b"x = 1\ny = 1\nx = 1\n", "x = 1", "2 times, on lines 1, 3"),
        (b"aaa\n", "aa", "2 times, on lines 1, 1"),
        (b"a\n" * 30, "a\n", "30 times, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 20 more"),
        (b"listen 80;\nserver_name a;\n", "listen  80;", "nearest: line 1: listen 80;"),
        (b"listen 80;\n", "nothing like it", "no line comes near it"),
        (b"caf\xe9\n", "caf\u00e9", "not UTF-8"),
        (b"", "x", "no line comes near it"),
    ],
)
def test_a_passage_that_is_not_there_once_is_told_with_its_places_or_what_comes_nearest(present, old, told):
    with pytest.raises(CannotEdit) as caught:
        one(present, old, "new")
    assert told in caught.value.message and caught.value.hint


def test_what_is_hidden_is_neither_shown_nor_compared():
    with pytest.raises(CannotEdit) as caught:
        one(f"token = {SECRET}\ntoken_name = x\n".encode(), f"token = {SECRET[:-1]}x", "new")
    assert SECRET[4:20] not in caught.value.message


def test_escapes_in_a_nearest_line_stay_visible():
    with pytest.raises(CannotEdit) as caught:
        one(b"listen \x1b[2J80;\n", "listen 80;", "new")
    assert "\x1b" not in caught.value.message and "line 1" in caught.value.message


def test_a_passage_that_stays_the_same_is_no_change():
    with pytest.raises(CannotEdit, match="are the same"):
        one(b"a\n", "a", "a")


# ── the answers ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_edit_waits_for_a_person_and_runs_when_the_same_call_comes_again(guard, work):
    (work / "f").write_bytes(b"a = 1\nb = 2\n")
    wanted = {"path": "f", "old": "a = 1", "new": "a = 3"}
    first = ask(edit_tool, guard, work, **wanted)
    kept = kept_one(guard)
    assert (first["status"], first["level"], first["request"], first["execution"]) == (
        "needs_stamp",
        "R1",
        kept.id,
        None,
    )
    assert first["difference"] == ["@@ -1,2 +1,2 @@", "-a = 1", "+a = 3", " b = 2"]
    assert first["next"] == f"opsx approve {kept.id}; then make the same call again"
    assert (kept.session, kept.client, kept.shell) == ("c-1", "tests 7", "mcp")
    approve(guard, work, "f", b"a = 3\nb = 2\n")
    # Approved as asked by another caller with the same words: the stamp is of the change and not of who asks.
    second = ask(edit_tool, guard, work, **wanted)
    assert (second["status"], second["path"], second["recorded"]) == ("succeeded", str(work / "f"), True)
    assert second["next"] == f"opsx rollback {second['execution']}" and second["snapshot"]
    assert (work / "f").read_bytes() == b"a = 3\nb = 2\n"
    assert "stdout" not in second and "exit_code" not in second


def test_a_write_makes_or_replaces_a_file(guard, work):
    approve(guard, work, "new", "你好\n".encode())
    assert ask(write_tool, guard, work, path="new", content="你好\n")["status"] == "succeeded"
    assert (work / "new").read_text(encoding="utf-8") == "你好\n"
    approve(guard, work, "new", b"")
    assert ask(write_tool, guard, work, path=str(work / "new"), content="")["difference"] == [
        "@@ -1,1 +0,0 @@",
        "-你好",
    ]
    assert (work / "new").read_bytes() == b""


def test_an_edit_of_nothing_points_at_write(guard, work):
    with pytest.raises(CannotEdit, match="no file") as caught:
        ask(edit_tool, guard, work, path="missing", old="a", new="b")
    assert "write" in caught.value.hint


def test_secrets_are_in_no_answer_and_in_no_record(guard, work):
    (work / "f").write_bytes(f"token = {SECRET}\nport = 1\n".encode())
    answer = ask(edit_tool, guard, work, path="f", old="port = 1", new="port = 2")
    assert SECRET not in json.dumps(answer) and " token = [REDACTED]" in answer["difference"]
    (work / "g").write_bytes(b"")
    answer = ask(write_tool, guard, work, path="g", content=f"token = {SECRET}\n")
    assert SECRET not in json.dumps(answer)
    assert SECRET not in json.dumps([dict(entry) for entry in guard.ledger.entries()])


def test_a_file_with_credentials_is_written_unseen_and_not_edited(guard, work):
    (work / ".env").write_bytes(b"PIN=1234\n")
    answer = ask(write_tool, guard, work, path=".env", content="PIN=9876\n")
    assert answer["level"] == "R2" and not any("1234" in line for line in answer["difference"])
    with pytest.raises(CannotEdit, match="holds credentials") as caught:
        ask(edit_tool, guard, work, path=".env", old="PIN=1", new="PIN=2")
    assert "1234" not in str(caught.value.as_json())


def test_a_long_difference_is_cut_in_the_answer_and_high_risk_for_the_person(guard, work):
    (work / "f").write_bytes(b"old\n" * 5_000)
    answer = ask(write_tool, guard, work, path="f", content="new\n" * 5_000)
    assert len(answer["difference"]) == 201 and answer["difference"][-1] == "… 9,801 more lines"
    assert answer["level"] == "R2"


def test_a_refusal_says_why_and_asks_nobody(tmp_path, work):
    guard = guard_at(tmp_path, Policy(mode="read-only"))
    (work / "f").write_bytes(b"before\n")
    answer = ask(write_tool, guard, work, path="f", content="after\n")
    assert (answer["status"], answer["request"], answer["next"]) == ("refused", None, None)
    assert "read-only" in answer["because"]["text"]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (write_tool, {"path": "f"}),
        (write_tool, {"path": "", "content": ""}),
        (write_tool, {"path": "f", "content": 7}),
        (write_tool, {"path": "f\0", "content": ""}),
        (write_tool, {"path": "f", "content": "", "mode": "0777"}),
        (edit_tool, {"path": "f", "old": "", "new": "x"}),
        (edit_tool, {"path": "f", "old": "x"}),
        (edit_tool, {"path": ["f"], "old": "x", "new": "y"}),
    ],
)
def test_arguments_that_do_not_fit_are_named(guard, work, tool, arguments):
    with pytest.raises(BadArguments):
        ask(tool, guard, work, **arguments)


def test_a_text_that_is_no_unicode_is_an_error(guard, work):
    with pytest.raises(CannotEdit, match="no Unicode text at character 2"):
        ask(write_tool, guard, work, path="f", content="a\ud800")


def test_the_person_in_front_of_the_caller_is_asked_through_ops_approve(guard, work):
    from capabilities.approvals import approve_tool
    from dialogue.confirm import APPROVED, Answer

    class Yes:
        def ask(self, ask, *, timeout_s):
            self.asked = ask
            return Answer(APPROVED, "rpc", "0" * 64)

    (work / "f").write_bytes(b"a\n")
    person = Yes()
    call = Call(str(work), "rpc", session="c-1", confirm=person)
    edit, approves = Registry([edit_tool(guard, call)]), Registry([approve_tool(guard, call)])
    first = edit.call("edit", {"path": "f", "old": "a", "new": "b"})
    assert first["next"].startswith(f'ops_approve{{"request": "{first["request"]}"}} asks the person')
    said = approves.call("ops_approve", {"request": first["request"]})
    assert (said["status"], said["next"]) == ("approved", "the same call again")
    assert "+b" in person.asked.command and person.asked.kind == "file-change"
    assert edit.call("edit", {"path": "f", "old": "a", "new": "b"})["status"] == "succeeded"


def test_hints_say_that_it_can_change_everything(guard, work):
    call = Call(str(work), "mcp")
    for tool in (write_tool(guard, call), edit_tool(guard, call)):
        assert (tool.hints.read_only, tool.hints.destructive) == (False, True)
    assert Level.R3 > Level.R0


def test_what_comes_nearest_is_looked_for_in_a_bounded_way_whatever_the_lines_are(monkeypatch):
    compared = []

    def nearest(wanted, lines, **how):
        compared.extend((wanted, *lines))
        return []

    monkeypatch.setattr("difflib.get_close_matches", nearest)
    present = "".join(f"{number} {'x' * 1_500}\n" for number in range(5_000)).encode()
    with pytest.raises(CannotEdit, match="no line comes near it"):
        replaced(present, b"y" * 100_000, b"z", Redactor())
    assert len(compared) == 4_001 and max(map(len, compared)) == 200
