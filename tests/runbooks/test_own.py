"""Runbooks that a person wrote: their form, their findings, where they may lie, and that they only read."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from cli import opsagent, own_runbooks
from guard.ledger.state import config_path
from runbooks import runner
from runbooks.catalogue import Books, UnknownRunbook
from runbooks.look import look
from runbooks.model import Answer, Severity, Where
from runbooks.own import BadRunbook, runbook_of
from tests.runbooks.replay import NOW_S

HEAD = """
id = "queue"
title = { en = "Queue", zh = "队列" }
phrases = ["shop queue", "队列"]
[[command]]
key = "depth"
argv = ["cat", "/srv/depth"]
"""
RULE = """
[[finding]]
pattern = '^(?P<subject>\\S+) (?P<number>[\\d,.]+) jobs'
unit = "jobs"
warn = 100
crit = 1000
en = "{subject}: {number} jobs wait."
zh = "{subject}：{number} 个任务等待。"
next = "cat /srv/depth"
"""
WHERE = Where("web-1", 0, NOW_S)
AT = "2026-12-01T04:40:00.000Z"


def book(text=HEAD + RULE):
    return runbook_of(tomllib.loads(text), "queue.toml")


def found(output, text=HEAD + RULE, **answer):
    books = Books([book(text)])
    checked = runner.run(
        ["queue"], lambda argv, timeout_s: Answer(0, output, **answer), WHERE, utc=lambda: AT, books=books
    )
    return [(one.severity, one.subject, one.number, one.text.en) for one in checked.findings]


def test_a_number_is_compared_with_its_limits_for_each_match():
    assert found("mail 7 jobs\nnoise\nweb 1,000 jobs\nfax 100 jobs\n") == [
        (Severity.OK, "mail", 7.0, "mail: 7 jobs wait."),
        (Severity.CRIT, "web", 1000.0, "web: 1,000 jobs wait."),
        (Severity.WARN, "fax", 100.0, "fax: 100 jobs wait."),
    ]


def test_an_output_without_a_match_is_not_checked_unless_the_file_says_that_it_is_fine():
    assert found("nothing here\n")[0][0] == Severity.NOT_CHECKED
    fine = RULE.replace("warn = 100\ncrit = 1000", 'severity = "crit"\nmissing = "ok"')
    assert found("nothing here\n", HEAD + fine)[0][0] == Severity.OK
    assert found("web 3 jobs\n", HEAD + fine)[0][:2] == (Severity.CRIT, "web")


@pytest.mark.guarantee("G-NOT-CHECKED")
def test_a_command_that_failed_is_not_checked_even_if_its_output_matches():
    assert found("web 3 jobs\n", status="timed_out")[0][0] == Severity.NOT_CHECKED
    books = Books([book()])
    ask = lambda argv, timeout_s: Answer(1, "web 3 jobs\n", "no", status="failed")  # noqa: E731
    checked = runner.run(["queue"], ask, WHERE, utc=lambda: AT, books=books)
    assert checked.findings[0].severity == Severity.NOT_CHECKED


@pytest.mark.parametrize(
    ("path", "numbers"),
    [
        (".queues[].depth", [("0", 7.0), ("1", 250.0)]),
        (".queues[1].depth", [("", 250.0)]),
        (".by-name[].depth", [("mail", 3.0)]),
        (".total", [("", 257.0)]),
    ],
)
def test_a_path_finds_numbers_in_json(path, numbers):
    rule = RULE.replace("pattern = '^(?P<subject>\\S+) (?P<number>[\\d,.]+) jobs'", f'path = "{path}"')
    output = '{"queues": [{"depth": 7}, {"depth": 250}], "by-name": {"mail": {"depth": 3}}, "total": 257}'
    assert [(subject, number) for _, subject, number, _ in found(output, HEAD + rule)] == numbers


def test_a_path_in_what_is_no_json_or_not_there_is_not_checked():
    rule = RULE.replace("pattern = '^(?P<subject>\\S+) (?P<number>[\\d,.]+) jobs'", 'path = ".a.b"')
    for output in ("not json", "[" * 5000, '{"a": 7}', '{"a": {"b": "many"}}'):
        assert [row[0] for row in found(output, HEAD + rule)] == [Severity.NOT_CHECKED], output


def test_sentences_take_values_and_interpret_nothing_else():
    rule = RULE.replace("{subject}: {number} jobs wait.", "{subject} {number.__class__} {0} {unknown}|{{x}}")
    assert found("web 3 jobs\n", HEAD + rule)[0][3] == "web {number.__class__} {0} |{}"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('id = "queue"', 'id = "Queue"'), "id 'Queue'"),
        (('id = "queue"', ""), "id is not a text"),
        (('id = "queue"', 'id = "queue"\nrun = "rm"'), "run is not a key"),
        (('argv = ["cat", "/srv/depth"]', 'argv = "cat /srv/depth"'), "command[0].argv is not a list"),
        (('argv = ["cat", "/srv/depth"]', "argv = []"), "command[0].argv is not a list"),
        (('argv = ["cat", "/srv/depth"]', 'argv = ["cat\\u0000"]'), "command[0].argv is not a command"),
        (('key = "depth"', 'key = "depth"\ntimeout_s = 60'), "command[0].timeout_s is not from 0.1 to 8"),
        (('key = "depth"', 'key = "depth"\nshell = true'), "command[0].shell is not a key"),
        (("warn = 100\ncrit = 1000", ""), "needs limits (warn, crit) or a severity"),
        (("warn = 100\n", 'warn = 100\nseverity = "warn"\n'), "needs limits (warn, crit) or a severity"),
        (("warn = 100", 'warn = "many"'), "finding[0].warn is not a number"),
        (("warn = 100", "warn = nan"), "finding[0].warn is not a number"),
        (("(?P<number>", "("), "no group (?P<number>"),
        (("(?P<number>", "(?P<number"), "finding[0].pattern: "),
        (('unit = "jobs"', 'unit = "jobs"\npath = ".a"'), "a pattern or a path, and not both"),
        (('unit = "jobs"', 'unit = "jobs"\ncommand = "other"'), "finding[0].command 'other' is no command's key"),
        (('en = "{subject}: {number} jobs wait."\n', ""), "finding[0].en is not a text"),
        (('phrases = ["shop queue", "队列"]', ""), "phrases is not a list"),
        (('{ en = "Queue", zh = "队列" }', "7"), "title is neither a text nor"),
    ],
)
def test_a_file_that_does_not_fit_names_the_place(change, said):
    text = HEAD + RULE
    assert change[0] in text
    with pytest.raises(BadRunbook) as caught:
        book(text.replace(*change, 1))
    assert said in caught.value.message
    assert caught.value.exit_code == 2


def test_a_built_in_name_cannot_be_taken():
    for name in ("disk", "overview"):
        with pytest.raises(UnknownRunbook, match="two runbooks"):
            Books([book(HEAD.replace('"queue"', f'"{name}"') + RULE)])


def test_its_phrases_choose_it_in_both_languages():
    books = Books([book()])
    for text, lang in (("how is the shop queue", "en"), ("队列怎么样", "zh")):
        report = look(text, lambda argv, timeout_s: Answer(0, "web 3 jobs\n"), WHERE, utc=lambda: AT, books=books)
        assert (report.runbooks, report.lang) == (["queue"], lang)


@pytest.fixture
def folder():
    path = Path(config_path()).parent / own_runbooks.FOLDER
    path.mkdir(parents=True)
    return path


def write(path: Path, text: str = HEAD + RULE, mode: int = 0o600) -> Path:
    path.write_text(text, "utf-8")
    path.chmod(mode)
    return path


def test_files_of_the_config_folder_are_loaded_and_bad_ones_are_named(folder):
    write(folder / "a.toml")
    write(folder / "b.toml", "id = ")
    write(folder / "c.toml", HEAD)
    write(folder / "d.toml")
    write(folder / "notes.txt", "no runbook")
    books, problems = own_runbooks.load(str(folder))
    assert list(books.own) == ["queue"]
    assert [problem.partition(":")[0] for problem in problems] == ["b.toml", "c.toml", "d.toml"]
    assert "two runbooks are named queue" in problems[2]


def test_files_that_others_could_have_written_are_left_out(folder, tmp_path):
    write(folder / "open.toml", mode=0o666)
    (folder / "link.toml").symlink_to(write(tmp_path / "elsewhere.toml"))
    os.mkfifo(folder / "pipe.toml", 0o600)
    (folder / "large.toml").write_bytes(b"#" * (own_runbooks.MOST_BYTES + 1))
    books, problems = own_runbooks.load(str(folder))
    assert not books.own
    assert len(problems) == 4
    assert any("can be written by others" in problem for problem in problems)
    folder.chmod(0o777)
    assert own_runbooks.load(str(folder))[1] == [f"{folder} can be written by others"]


def test_no_folder_is_no_complaint():
    assert own_runbooks.load(None)[1] == own_runbooks.load("/nowhere/at/all")[1] == []


def test_the_current_folder_gives_no_runbook(tmp_path, monkeypatch):
    (tmp_path / "runbooks").mkdir()
    write(tmp_path / "runbooks" / "queue.toml")
    monkeypatch.chdir(tmp_path)
    assert not own_runbooks.books().own


def test_list_and_show_tell_ids_commands_and_limits(folder, capsys):
    write(folder / "queue.toml")
    assert opsagent.main(["runbook", "list"]) == 0
    shown = capsys.readouterr().out
    assert "disk" in shown
    assert "queue       Queue · queue.toml" in shown
    assert opsagent.main(["runbook", "list", "--lang", "zh", "--json"]) == 0
    assert '"title": "磁盘"' in capsys.readouterr().out
    assert opsagent.main(["runbook", "show", "queue"]) == 0
    shown = capsys.readouterr().out
    assert "  cat /srv/depth\n" in shown
    assert "depth.value: warn above 100 jobs, crit above 1000 jobs (queue.toml)" in shown
    assert opsagent.main(["runbook", "show", "memory"]) == 0
    assert "available: warn below 10 %, crit below 5 %" in capsys.readouterr().out
    assert opsagent.main(["runbook", "show", "overview", "--json"]) == 0
    assert '"members": ["disk"' in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["list", "x"], ["show"], ["test"], ["run", "disk"], ["list", "--lang", "fr"]])
def test_other_words_are_usage_errors(words, capsys):
    assert opsagent.main(["runbook", *words]) == 2
    assert capsys.readouterr().err.startswith("error[usage]: ")


def test_a_file_whose_command_is_no_read_is_refused_and_nothing_runs(tmp_path, capsys):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    file = write(tmp_path / "bad.toml", HEAD.replace('["cat", "/srv/depth"]', f'["rm", "{victim}"]') + RULE)
    assert opsagent.main(["runbook", "test", str(file)]) == 4
    assert "error[not_permitted]: rm " in capsys.readouterr().err
    assert victim.read_text() == "precious"


def test_a_file_is_tested_through_the_guard(tmp_path, capsys):
    depth = tmp_path / "depth"
    depth.write_text("web 250 jobs\n")
    file = write(tmp_path / "good.toml", HEAD.replace("/srv/depth", str(depth)) + RULE)
    assert opsagent.main(["runbook", "test", str(file)]) == 0
    assert "WARNING  web: 250 jobs wait." in capsys.readouterr().out
