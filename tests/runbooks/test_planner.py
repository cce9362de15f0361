"""The planner: phrases written before it and after it, false friends, changes, unknown questions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runbooks.catalogue import OVERVIEW, RANKED, load
from runbooks.phrases import PHRASES, table_of
from runbooks.planner import MOST, plan

HERE = Path(__file__).parent
EVERY = tuple(id for id in PHRASES if id != OVERVIEW)


def rows(name: str) -> list[tuple[str, str]]:
    lines = (HERE / name).read_text("utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]


PHRASE_ROWS = rows("phrases_before.txt") + rows("phrases_after.txt") + rows("phrases_fresh.txt")


@pytest.mark.parametrize(("wanted", "text"), PHRASE_ROWS, ids=[text for _, text in PHRASE_ROWS])
def test_a_phrase_chooses_its_runbooks_and_only_a_request_is_a_change(wanted, text):
    got = plan(text, known=EVERY)
    chosen = {chosen.id for chosen in got.chosen}
    assert (got.change is not None) == wanted.startswith("!")
    ids = set(wanted.lstrip("!").split())
    if ids == {"?"}:
        assert (got.matched, chosen) == (False, {OVERVIEW})
    else:
        assert got.matched
        assert ids <= chosen
    assert len(chosen) <= MOST


@pytest.mark.parametrize(
    "text",
    [
        "delete old logs in /var/log",
        "delete the logs in the folder of nginx",
        "any errors in the logs in the last hour",
        "errors logged in the last hour",
        "what was logged on Monday",
        "show what nginx logged in /var/log/nginx",
        "how large are the logs on this machine",
        "was anything logged in the night",
        "compress logs into one archive",
    ],
)
def test_logs_in_a_place_are_no_logins(text):
    assert "logins" not in {chosen.id for chosen in plan(text).chosen}


@pytest.mark.parametrize(
    "text", ["who logs in", "who logged in the last hour", "users logged in", "is anyone logged on", "did root log in?"]
)
def test_people_who_log_in_are_no_logs(text):
    assert [chosen.id for chosen in plan(text).chosen] == ["logins"]


def test_there_are_enough_phrases_and_half_were_written_before():
    before, after = rows("phrases_before.txt"), rows("phrases_after.txt")
    assert len(before) >= 150
    assert len(after) >= 150
    assert len(rows("phrases_fresh.txt")) >= 150
    assert len({text for _, text in PHRASE_ROWS}) == len(PHRASE_ROWS)


def test_every_runbook_has_phrases_in_both_languages_and_every_table_a_runbook():
    assert set(RANKED) <= set(PHRASES) - {OVERVIEW}
    for id, table in PHRASES.items():
        sources = " ".join(sources for _, sources in table)
        assert any("\u4e00" <= character <= "\u9fff" for character in sources), id
        assert any(word.isascii() and word.isalpha() for word in sources.split()), id


def test_a_runbook_without_a_module_is_never_chosen():
    got = plan("do any certificates expire soon", known=("disk",))
    assert [chosen.id for chosen in got.chosen] == [OVERVIEW]
    assert not got.matched


def test_every_ranked_runbook_has_a_module_that_carries_its_own_id():
    for id in RANKED:
        module = load(id)
        assert (module.ID, bool(module.TITLE.zh), bool(module.ABOUT.zh)) == (id, True, True)


def test_at_most_three_are_chosen_and_the_rest_is_named():
    got = plan("disk, memory, cpu, failed services and errors in the logs")
    assert len(got.chosen) == MOST
    assert set(got.left_out) | {chosen.id for chosen in got.chosen} == {"disk", "memory", "cpu", "services", "logs"}


def test_the_words_that_decided_are_named():
    got = plan("Is the Disk full?")
    assert [(chosen.id, chosen.because) for chosen in got.chosen] == [("disk", ("disk full",))]


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("restart nginx", "systemctl restart nginx"),
        ("please restart the postgres service", "systemctl restart postgresql"),
        ("重启一下 redis", "systemctl restart redis"),
        ("把 mysql 停掉", "systemctl stop mysql"),
        ("clean up old journal logs", "journalctl --vacuum-time=14d"),
        ("reboot this machine", "systemctl reboot"),
        ("重启服务器", "systemctl reboot"),
        ("free up some disk space", ""),
        ("restart $(reboot)", ""),
        ("bring nginx back up", "systemctl start nginx"),
        ("please take mysql down", "systemctl stop mysql"),
        ("turn off apache", "systemctl stop apache2"),
        ("roll back nginx", ""),
        ("make room on /var", ""),
        ("帮我 restart 一下 nginx", "systemctl restart nginx"),
    ],
)
def test_an_obvious_change_names_its_command_and_only_that(text, command):
    change = plan(text).change
    assert change is not None
    assert change.command == command


@pytest.mark.parametrize(
    "text",
    [
        "重启过吗",
        "上次重启是什么时候",
        "为什么 nginx 重启了",
        "服务启动失败",
        "不要重启，只看日志",
        "进程被杀掉了",
        "why did nginx restart",
        "which services failed to start",
        "are there open ports",
        "do not restart anything, show errors",
        "updates available?",
        "when did somebody stop mysql",
        "was there a clean shutdown",
        "free memory",
        "did it shut down cleanly",
        "why does it take up so much space",
        "do not take nginx down",
        "restart 是什么意思",
    ],
)
def test_false_friends_are_no_changes(text):
    assert plan(text).change is None


@pytest.mark.parametrize(
    ("text", "lang"), [("disk", "en"), ("磁盘", "zh"), ("check 磁盘 please", "zh"), ("Größe der disk", "en")]
)
def test_the_answer_speaks_the_language_of_the_question(text, lang):
    assert plan(text).lang == lang


@given(st.text(max_size=300))
def test_any_text_gets_a_plan(text):
    got = plan(text, known=EVERY)
    assert 1 <= len(got.chosen) <= MOST
    assert got.matched or [chosen.id for chosen in got.chosen] == [OVERVIEW]


@given(st.sampled_from([text for wanted, text in PHRASE_ROWS if wanted == "disk"]), st.sampled_from("!?.。！？"))
def test_case_blanks_and_final_marks_change_nothing(text, mark):
    plain = [chosen.id for chosen in plan(text, known=EVERY).chosen]
    dressed = f"  {text.upper()}  {mark}" if text.isascii() and "/" not in text else f"  {text}{mark} "
    assert [chosen.id for chosen in plan(dressed, known=EVERY).chosen] == plain


def test_a_line_that_is_not_in_the_notation_is_refused():
    with pytest.raises(ValueError, match="not a line of phrases"):
        table_of("[disk]\n7: disk\n")
