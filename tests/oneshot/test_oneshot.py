"""`-p`: forms of the answer, exit codes, options, the event stream, interruption."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import jsonschema
import pytest

from agent import offline, oneshot
from cli import opsagent, opsagent_ask
from cli.json_text import json_line
from dialogue import events
from dialogue.protocol import Turn
from guard.errors import UsageError
from runbooks import runner
from runbooks.model import Answer
from tests.runbooks.replay import CASES, Recorded

UTC = "2026-12-01T04:40:00.000Z"
RECORDED = {f"{case.parent.name}/{case.name}": case for case in CASES}
ANSWER = json.loads((Path(__file__).parents[2] / "docs" / "answer.schema.json").read_text("utf-8"))


QUESTIONS = {"reboot": "uptime", "bigfiles": "which files are the largest"}
"""A bare `reboot` is a request; the other ids are questions as they are."""


def machine(*names):
    """An `ask` for a machine made of recordings."""
    rows = [
        row for name in names for row in json.loads((RECORDED[name] / "commands.json").read_text("utf-8"))["answers"]
    ]
    return Recorded(rows)


def answer(text, ask, output="text", lang=""):
    question = oneshot.Question(text, output=output, lang=lang)
    return oneshot.answer(question, ask, utc=lambda: UTC, encode=json_line)


HEALTHY = ("disk/debian-healthy", "memory/debian-healthy")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_recorded_machine_gives_an_answer_that_fits_the_schema(case, lang):
    question = QUESTIONS.get(case.parent.name, case.parent.name)
    text, code = answer(question, machine(f"{case.parent.name}/{case.name}"), "json", lang)
    got = json.loads(text)
    jsonschema.validate(got, ANSWER)
    assert code == (0 if got["findings"] else 8)
    assert (got["error"] is None) == bool(got["findings"])


def test_the_keys_come_in_the_documented_order():
    text, _ = answer("disk", machine("disk/debian-healthy"), "json")
    assert list(json.loads(text)) == ANSWER["required"]


def test_a_chinese_question_gets_a_chinese_answer_with_the_same_figures():
    english, _ = answer("check this machine's disk and memory", machine(*HEALTHY), "json")
    chinese, _ = answer("看一下本机磁盘和内存", machine(*HEALTHY), "json")
    english, chinese = json.loads(english), json.loads(chinese)
    assert english["runbooks"] == chinese["runbooks"] == ["disk", "memory"]
    figures = [(f["id"], f["number"], f["unit"]) for f in english["findings"]]
    assert figures == [(f["id"], f["number"], f["unit"]) for f in chinese["findings"]]
    assert "共 7.7 GiB，可用 5.7 GiB" in chinese["answer"]
    assert "5.7 of 7.7 GiB available" in english["answer"]


def test_the_answers_language_can_be_chosen():
    assert "检查项" in answer("disk", machine("disk/debian-healthy"), lang="zh")[0]
    assert "Looked at" in answer("磁盘", machine("disk/debian-healthy"), lang="en")[0]


def test_a_request_for_a_change_gets_the_look_and_code_3():
    text, code = answer("restart nginx", machine("services/debian-healthy"), "json")
    got = json.loads(text)
    assert code == 3
    assert got["error"]["code"] == "change.offline"
    assert got["error"]["not_done"] == "nothing was changed"
    assert "systemctl restart nginx" in got["error"]["hint"]
    assert got["findings"]


def test_no_change_command_is_ever_asked():
    ask = machine("services/debian-healthy")
    answer("restart nginx", ask)
    assert all("restart" not in argv for argv in ask.asked)
    assert ask.asked


def test_the_plugin_form_has_its_own_codes():
    text, code = answer("disk", machine("disk/rhel-var-full"), "nagios")
    assert code == 2
    assert text.splitlines()[0].startswith("DISK CRITICAL - /var is 98% full")
    assert answer("disk", machine("disk/not-allowed-to-run"), "nagios")[1] == 3


def test_an_overview_looks_at_its_members_and_takes_no_second_sample():
    ask = machine(
        "disk/debian-healthy", "memory/debian-healthy", "cpu/debian-idle", "services/debian-healthy", "logs/quiet"
    )
    got = json.loads(answer("how is this machine doing", ask, "json")[0])
    assert got["runbooks"] == ["overview"]
    assert {f["runbook"] for f in got["findings"]} >= {"disk", "memory", "cpu", "services", "logs"}
    assert not [argv for argv in ask.asked if argv[0] in ("top", "vmstat")]


def stream(text, ask, **named):
    question = oneshot.Question(text, output="stream-json")
    rows = list(oneshot.stream(question, ask, utc=lambda: UTC, session="c-test", encode=json_line, **named))
    return [json.loads(line) for line, _ in rows], [code for _, code in rows]


def test_the_event_stream_is_whole_and_every_read_goes_from_request_to_result():
    rows, codes = stream("disk", machine("disk/debian-healthy"))
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert all(events.from_json(row) is not None for row in rows)
    assert [row["type"] for row in rows[:2]] == ["session_started", "turn_started"]
    assert [row["type"] for row in rows[-2:]] == ["text", "turn_completed"]
    assert codes[-1] == rows[-1]["exit_code"] == 0
    assert set(codes[:-1]) == {None}
    for id in {row["id"] for row in rows if row["type"] == "tool_requested"}:
        kinds = [row["type"] for row in rows if row.get("id") == id]
        assert kinds == ["tool_requested", "tool_started", "tool_completed"]
    first = next(row for row in rows if row["type"] == "finding")
    assert first["finding"]["id"] == "disk.space"


def test_the_event_stream_ends_with_the_error_of_a_change():
    rows, codes = stream("restart nginx", machine("services/debian-healthy"))
    assert [row["type"] for row in rows[-2:]] == ["error", "turn_completed"]
    assert rows[-2]["code"] == "change.offline"
    assert codes[-1] == 3


def test_an_interrupted_event_stream_still_ends_with_turn_completed():
    release, begun = threading.Event(), threading.Event()

    def ask(argv, timeout_s):
        begun.set()
        release.wait()
        return Answer(0, "")

    try:
        rows, codes = stream("disk", ask, stopped=begun.is_set)
    finally:
        release.set()
    assert [row["type"] for row in rows[-2:]] == ["error", "turn_completed"]
    assert codes[-1] == 130


def test_a_session_takes_turns_in_order_and_refuses_others():
    session = offline.OfflineSession(machine("disk/debian-healthy"), utc=lambda: UTC)
    with pytest.raises(ValueError, match="open session"):
        session.send_turn(Turn("disk"))
    session.start()
    session.send_turn(Turn("disk"))
    with pytest.raises(ValueError, match="open session"):
        session.send_turn(Turn("disk"))
    assert isinstance(list(session.events())[-1], events.TurnCompleted)
    session.send_turn(Turn("disk", ("a piped log that failed",)))
    found = [event.finding for event in session.events() if isinstance(event, events.Finding)]
    assert [one["number"] for one in found if one["id"] == "piped.errors"] == [1]
    session.respond("ask-1", None)
    session.close()
    session.close()
    with pytest.raises(ValueError, match="open session"):
        session.send_turn(Turn("disk"))


def test_a_check_that_breaks_the_whole_turn_ends_it_with_code_1(monkeypatch):
    def broken(*args, **named):
        raise LookupError("no")

    monkeypatch.setattr(runner, "run", broken)
    session = offline.OfflineSession(machine("disk/debian-healthy"), utc=lambda: UTC)
    session.start()
    session.send_turn(Turn("disk"))
    last = list(session.events())[-2:]
    assert isinstance(last[0], events.Error)
    assert last[1] == events.TurnCompleted(1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("a\0b", "NUL"),
        ("\udcff", "UTF-8"),
        ("x" * (oneshot.MOST_CHARACTERS + 1), "32,769 characters"),
    ],
)
def test_a_question_that_is_none_is_refused(text, said):
    with pytest.raises(UsageError, match=said):
        oneshot.require_question(text)


def question(*argv):
    parsed = opsagent._parsed(list(argv))
    assert parsed is not None
    return opsagent_ask.question_of(parsed)


def test_options_are_read():
    got = question("-p", "disk", "--output", "stream-json", "--lang=zh", "--timeout", "7")
    assert (got.text, got.output, got.lang, got.total_s) == ("disk", "stream-json", "zh", 7.0)
    assert question("--prompt=disk", "--json").output == "json"
    assert question("-p", "disk", "--nagios").output == "nagios"
    assert question("-p", "-x looks like an option").text == "-x looks like an option"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["-p", "disk", "--bogus"], "opsagent has no option --bogus"),
        (["-p"], "-p needs its TEXT"),
        (["-p", "disk", "--output", "yaml"], "--output takes text, json or stream-json"),
        (["-p", "disk", "--output", "nagios"], "--output takes text, json or stream-json"),
        (["-p", "disk", "--json", "--nagios"], "exclude each other"),
        (["-p", "disk", "--lang", "fr"], "--lang takes en or zh"),
        (["-p", "disk", "--timeout", "0"], "--timeout takes a whole number"),
        (["-p", "disk", "--watch", "1s"], "--watch takes a time from 2s"),
        (["-p", "disk", "--watch", "soon"], "--watch takes a time from 2s"),
        (["-p", "disk", "--watch", "30s", "--json"], "--watch shows text"),
        (["disk"], "does not know what to do with 'disk'"),
        (["fleet"], "does not know what to do with .fleet."),
        (["check"], "it is a verb of opsx"),
        (["exec", "--", "ls"], "opsagent has no verb exec; it is a verb of opsx"),
        (["docter"], "what to do with 'docter'; the nearest is doctor"),
    ],
)
def test_wrong_arguments_are_usage_errors_that_say_what_works(argv, said):
    with pytest.raises(UsageError, match=said) as caught:
        question(*argv)
    assert caught.value.exit_code == 2
    assert caught.value.hint
    assert "  " not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("words", [["--help"], ["resume", "--help"], ["resume", "-h"], ["help"]])
def test_help_is_help_and_opens_nothing(capsys, words):
    assert opsagent.main(words) == 0
    assert capsys.readouterr().out == opsagent.help_page()


def test_a_brain_that_nobody_has_set_up_is_said_with_the_ones_there_are(capsys):
    assert opsagent.main(["-p", "disk", "--brain", "gpt"]) == 2
    said = capsys.readouterr().err
    assert "no brain 'gpt'" in said and "anthropic, openai, offline" in said


def test_the_question_can_come_from_standard_input(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("磁盘\n".encode())))
    assert question("-p", "-").text == "磁盘"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"disk")))
    assert question("--json").text == "disk"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"disk \xff")))
    with pytest.raises(UsageError, match="not valid UTF-8 at byte 6"):
        question()


def test_without_a_question_on_a_terminal_both_ways_to_ask_are_said(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Terminal())
    with pytest.raises(UsageError, match="no question was given") as raised:
        question()
    assert "opsagent -p" in raised.value.hint and "is a conversation" in raised.value.hint


@pytest.mark.parametrize(("text", "seconds"), [("30", 30.0), ("30s", 30.0), ("2m", 120.0)])
def test_a_watch_takes_seconds_and_minutes(text, seconds):
    assert question("-p", "disk", "--watch", text).watch_s == seconds


@pytest.mark.parametrize("terminal", [True, False])
def test_a_watch_answers_again_and_clears_only_a_terminal(terminal, monkeypatch, capsys):
    asked = oneshot.Question("disk")
    asked.watch_s = 30.0
    waits = []

    def wait(seconds, stopped):
        waits.append(seconds)
        if len(waits) == 3:
            raise opsagent_ask.Interrupted("interrupted")

    monkeypatch.setattr(opsagent_ask, "_wait", wait)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    ask = machine("disk/debian-healthy")
    with pytest.raises(opsagent_ask.Interrupted):
        opsagent_ask.answer(asked, ask, utc=lambda: UTC, stopped=lambda: False, session="c-1")
    shown = capsys.readouterr().out
    assert waits == [30.0, 30.0, 30.0]
    assert shown.count("/ is 18% full") == 3
    assert shown.count(opsagent_ask.CLEAR) == (3 if terminal else 0)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_one_line_after_two_seconds_and_only_on_a_terminal(terminal):
    class Stream(io.StringIO):
        def isatty(self):
            return terminal

    out, clock = Stream(), Clock()
    progress = opsagent_ask.Progress(out, lambda: False, monotonic=clock)
    progress.on_step(runner.Step(1, ("df", "-PT", "/mnt/gone")))
    for clock.now in (0.5, 1.9, 2.0, 2.5, 6.9, 7.1):
        assert progress.tick() is False
    progress.on_step(runner.Step(1, ("df", "-PT", "/mnt/gone"), Answer(0)))
    expected = "opsagent: looking for 2 s (df -PT /mnt/gone)\nopsagent: looking for 7 s (df -PT /mnt/gone)\n"
    assert out.getvalue() == (expected if terminal else "")


def test_an_interrupted_question_ends_with_130_and_says_that_nothing_changed():
    with pytest.raises(opsagent_ask.Interrupted) as caught:
        opsagent_ask.answer(
            oneshot.Question("disk"),
            machine("disk/debian-healthy"),
            utc=lambda: UTC,
            stopped=lambda: True,
            session="c-1",
        )
    assert caught.value.exit_code == 130
    assert "nothing was changed" in caught.value.not_done


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_needs_nothing_else(flag, capsys):
    assert opsagent.main([flag]) == 0
    assert capsys.readouterr().out == "opsagent 0.1.0\n"


def test_help_names_every_option_and_the_exit_codes(capsys):
    assert opsagent.main(["--help"]) == 0
    shown = capsys.readouterr().out
    for option in ("--prompt TEXT", "--json", "--output FORM", "--nagios", "--lang LANG", "--timeout S", "--read-only"):
        assert option in shown
    assert "8 nothing could be checked" in shown
    assert "opsagent  " not in shown.splitlines()[0]
