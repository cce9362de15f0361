"""Options are read strictly: no abbreviations, no surprises, and help comes from the same declaration."""

from __future__ import annotations

import pytest

from cli.command_text import command_of
from cli.options import Option, Verb, fitted, help_of, overview_of, parse
from guard.errors import BadCommand, UsageError

VERB = Verb(
    "exec",
    "none",
    "runs",
    usage="[options] -- CMD",
    options=(
        Option("json", "as JSON"),
        Option("file", "from FILE", value="FILE", short="f"),
        Option("peer", "a peer", value="HOST", many=True),
        Option("limit", "at most", value="N"),
    ),
    codes="0 done",
)


def read(*arguments):
    return parse("opsx", VERB, list(arguments))


def test_options_and_words_are_told_apart():
    parsed = read("--json", "-f", "x", "--peer", "a", "--peer=b", "word")
    assert parsed.flag("json") and parsed.value("file") == "x" and parsed.many("peer") == ["a", "b"]
    assert parsed.words == ["word"]


def test_everything_after_the_double_dash_is_the_commands_own():
    parsed = read("--json", "--", "ls", "--json", "--", "-f")
    assert parsed.words == ["ls", "--json", "--", "-f"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--jso"], "no option --jso; the nearest is --json$"),
        (["--quiet"], "no option --quiet$"),
        (["-x"], "no option -x"),
        (["--json=1"], "takes no value"),
        (["--file"], "needs its FILE"),
        (["--limit", "1", "--limit", "2"], "given twice"),
        (["ls", "--", "x"], "stands before"),
        (["--\u202ejson"], r"no option --\\u202ejson"),
    ],
)
def test_what_cannot_be_read_is_a_usage_error_that_names_it(arguments, said):
    with pytest.raises(UsageError, match=said):
        read(*arguments)


@pytest.mark.parametrize("word", ["-l", "--all", "-h"])
def test_option_between_a_commands_words_asks_for_the_double_dash(word):
    with pytest.raises(UsageError, match=f"{word} stands after 'ls'; put `--` before") as raised:
        read("--json", "ls", word, "x")
    assert raised.value.hint == f"opsx exec -- ls {word} x"


@pytest.mark.parametrize("text", ["0", "-1", "x", "1e3", "９", "99999999999999999999999"])
def test_a_number_outside_its_limits_is_named(text):
    with pytest.raises(UsageError, match="whole number"):
        read(f"--limit={text}").whole_number("limit", 5, low=1, high=10)


def test_one_word_is_bash_text_with_and_without_the_double_dash():
    assert command_of(read("df -h | tail")) == "df -h | tail"
    assert command_of(read("--", "df -h | tail")) == "df -h | tail"


def test_several_words_after_the_double_dash_are_quoted_one_by_one():
    assert command_of(read("--", "grep", "a b", "$HOME", "it's")) == "grep 'a b' '$HOME' 'it'\"'\"'s'"


def test_several_words_without_the_double_dash_are_refused_with_the_right_spelling():
    with pytest.raises(UsageError) as caught:
        command_of(read("df", "x y"))
    assert caught.value.hint == "opsx exec -- df 'x y'"


def test_no_command_is_a_usage_error():
    with pytest.raises(UsageError, match="no command"):
        command_of(read("--json"))


def test_a_file_is_read_byte_for_byte_but_for_its_last_newline(tmp_path):
    path = tmp_path / "c"
    path.write_bytes("printf '%s' 你好\n\n".encode())
    assert command_of(read("-f", str(path))) == "printf '%s' 你好\n"


def test_a_file_and_words_together_are_refused(tmp_path):
    with pytest.raises(UsageError, match="and from the command line"):
        command_of(read("-f", "x", "ls"))


def test_a_file_that_is_too_long_is_refused_without_reading_it_all(tmp_path):
    path = tmp_path / "c"
    path.write_bytes(b"a" * 70_000)
    with pytest.raises(BadCommand, match="longer than 65,536"):
        command_of(read("-f", str(path)))


def test_help_names_every_option_and_the_exit_codes():
    page = help_of("opsx", VERB)
    for option in VERB.options:
        assert f"--{option.name}" in page
    assert "exit codes: 0 done" in page
    assert all(len(line) <= 120 for line in page.splitlines())


@pytest.mark.parametrize("columns", [40, 57, 80])
def test_help_fits_the_terminal_below_where_its_text_begins(columns):
    summary = "takes back what was done, shows every path, asks, and puts back what can be put back"
    page = overview_of(
        "opsx",
        "A promise that is long enough to be broken somewhere on a narrow one.",
        [
            Verb("rollback", "none", summary),
            VERB,
        ],
    )
    rows = fitted(page, columns).split("\n")
    assert max(map(len, rows)) <= columns and " ".join(" ".join(rows).split()) == " ".join(page.split())
    first = next(number for number, row in enumerate(rows) if row.startswith("  rollback"))
    assert rows[first + 1].startswith(" " * 12) and not rows[first + 1].startswith(" " * 13)


def test_help_without_a_real_width_stays_as_it_is():
    page = help_of("opsx", VERB)
    assert fitted(page, 0) == page == fitted(page, 200)
