"""What people type by habit: it says the verb that is meant, and runs nothing; `opsx list` says where things stand."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from cli import opsagent, opsx, opsx_records
from cli.options import Parsed, parse
from guard.errors import UsageError
from guard.ledger.records import Execution


def said(capsys, main, *argv):
    code = main(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.parametrize("word", opsx.HABITS)
def test_a_habit_names_a_verb_that_exists(capsys, word):
    code, out, err = said(capsys, opsx.main, word, "x")
    verb = opsx.HABITS[word].split()[0]
    assert (code, out) == (2, "") and f"opsx {opsx.HABITS[word]}" in err and "nothing was run" in err
    assert verb in opsx.BY_NAME or verb == "--version"
    assert word not in opsx.BY_NAME and word not in opsx.ALIASES


def test_other_words_are_offered_as_a_command_with_its_words_quoted(capsys):
    code, _, err = said(capsys, opsx.main, "ls", "-l", "a b; rm x")
    assert code == 2 and "opsx exec -- ls -l 'a b; rm x'" in err
    for argv in (["--frob"], ["exce", "x"]):
        _, _, err = said(capsys, opsx.main, *argv)
        assert "opsx --help" in err and "exec --" not in err


@pytest.mark.parametrize(("argv", "asks"), [(["disk"], "-p disk"), (["磁盘", "and", "内存"], "-p '磁盘 and 内存'")])
def test_a_question_without_its_option_is_spelled_with_it(capsys, argv, asks):
    code, _, err = said(capsys, opsagent.main, *argv)
    assert code == 2 and f"opsagent {asks} (a question goes after -p" in err


@pytest.mark.parametrize("verb", [*opsx.BY_NAME, *opsx.ALIASES])
def test_help_and_a_verb_is_the_help_of_that_verb(capsys, verb):
    assert said(capsys, opsx.main, "help", verb) == said(capsys, opsx.main, verb, "--help")


@pytest.mark.parametrize("verb", [*opsagent.VERB_MODULES, "mcp"])
def test_help_and_a_verb_of_opsagent(capsys, verb):
    code, out, _ = said(capsys, opsagent.main, "help", verb)
    assert code == 0 and out.startswith(f"usage: opsagent {verb}")


def test_help_of_nothing_that_exists_is_the_overview(capsys):
    code, out, _ = said(capsys, opsx.main, "help", "me")
    assert code == 0 and out.startswith(opsx.PROMISE)


# ── list ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_list_says_what_waits_and_that_everything_is_stopped(capsys, tmp_path):
    assert said(capsys, opsx.main, "list") == (
        0,
        "",
        "nothing waits, nothing is approved, nothing runs, nothing was saved\n",
    )
    assert opsx.main(["exec", f"touch {tmp_path}/新"]) == 3
    assert opsx.main(["write", f"{tmp_path}/f", "-f", __file__]) == 3
    (tmp_path / "kept").write_text("x")
    assert opsx.main(["snapshot", "create", str(tmp_path / "kept")]) == 0
    assert opsx.main(["freeze", "--reason", "维护"]) == 0
    capsys.readouterr()
    code, out, err = said(capsys, opsx.main, "status")
    assert (code, err) == (0, "")
    titles = [row for row in out.split("\n") if row.endswith(":")]
    assert [title.split(" (")[0] for title in titles] == [
        "everything above R0 is stopped",
        "waits for an answer",
        "saved last",
    ]
    assert "维护" in out and "touch" in out and "make the file" in out and "1 path, 1 byte:" in out
    shown = json.loads(said(capsys, opsx.main, "list", "--json")[1])
    assert len(shown["requests"]) == 2 and shown["format"] == 1


def test_list_takes_nothing_else():
    with pytest.raises(UsageError, match="takes no"):
        from cli.opsx_list import main

        main(words_of("list", "x"))


def words_of(verb: str, *words: str) -> Parsed:
    return parse("opsx", opsx.BY_NAME[verb], list(words))


def test_a_persons_list_is_open_to_agents_too():
    import core

    assert core.check("opsx list").level == 0


@pytest.mark.parametrize("given", [["disk", "is", "full"], ["disk is full"], ["--reason", "disk is", "full"]])
def test_freeze_takes_words_as_the_reason(capsys, given):
    code, out, _ = said(capsys, opsx.main, "freeze", *given)
    assert code == 0 and "is stopped: disk is full (since " in out


def _ran(id, command, *, level="R0", actor="runbook", snapshot=""):
    return Execution(
        id, 1, "2026-12-01T04:00:00.000Z", status="succeeded", level=level, command=command, actor=actor,
        snapshot=snapshot,
    )  # fmt: skip


def test_reads_of_runbooks_are_counted_and_what_was_taken_back_says_so(capsys, monkeypatch):
    runs = [
        _ran("e-3", f"opsx rollback e-1 --plan {'a' * 64}", level="R2", snapshot="s-3"),
        *(_ran(f"e-2{number}", "df -P") for number in range(30)),
        _ran("e-1", "touch x", level="R1", actor="person", snapshot="s-1"),
    ]
    store = SimpleNamespace(executions=lambda *, limit, **_: SimpleNamespace(executions=runs[:limit], notes=()))
    monkeypatch.setattr(opsx_records.execution, "open_store", lambda redactor: store)
    code, out, err = said(capsys, opsx.main, "executions")
    first, second = out.splitlines()
    assert code == 0 and "by time" in first and "runbook" not in first and "--plan" not in first
    assert "(taken back by e-3) touch x" in second
    assert "and 30 reads of runbooks: " in err and "executions --all" in err
    assert said(capsys, opsx.main, "executions", "--all")[1].count("df -P") == 19
    assert said(capsys, opsx.main, "executions", "--json")[1].count("df -P") == 19


def test_show_tells_people_the_way_back_and_leaves_out_what_programs_compare(capsys, monkeypatch):
    run = replace(
        _ran("e-1", "touch x", level="R1", snapshot="s-1"), effects=(("write", "/x"),), command_hmac="ab" * 32
    )
    shown = SimpleNamespace(id="e-1", execution=run, request=None, entries=({"kind": "started"},))
    monkeypatch.setattr(opsx_records.execution, "open_store", lambda redactor: SimpleNamespace(show=lambda id: shown))
    out = said(capsys, opsx.main, "show", "e-1")[1]
    assert "write /x\n" in out and "opsx rollback e-1\n" in out
    assert not {"seq", "boot", "command_hmac"} & {row.split(" ")[0] for row in out.split("\n")}
    assert json.loads(said(capsys, opsx.main, "show", "--json", "e-1")[1])["execution"]["command_hmac"] == "ab" * 32
