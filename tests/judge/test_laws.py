"""The laws of judging as properties: each holds for commands that nobody thought of."""

import json
import shlex
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.judge.classify import check
from guard.types import Level

CORPUS = Path(__file__).parent.parent / "corpus"
ROWS = [json.loads(line) for path in sorted(CORPUS.glob("*.jsonl")) for line in path.read_text().splitlines()]
COMMANDS = st.sampled_from([row["cmd"] for row in ROWS])
SIMPLE = st.sampled_from(
    [row["cmd"] for row in ROWS if "\n" not in row["cmd"] and not set(row["cmd"]) & set("'\"\\$`<>|&;(){}*?[]#!~")]
)
RUNNABLE = st.sampled_from(
    [
        row["cmd"]
        for row in ROWS
        if not row["cmd"].startswith("#") and row["id"] not in ("shell.ls", "shell.echo-unterminated")
    ]
)

small = settings(max_examples=120, deadline=None, derandomize=True)

JOINS = ("{}; ls", "ls; {}", "ls && {}", "ls || {}", "{} & ls", "ls\n{}", "( {}\n)", "{{ {}\n}}",
    "if true; then {}\nfi", "while false; do {}\ndone", "f() {{ {}\n}}", "for i in 1; do {}\ndone")  # fmt: skip
WRAPPERS = (
    "sudo {}", "env {}", "env A=1 {}", "timeout 5 {}", "nice {}", "nice -n 5 {}", "nohup {}", "time {}", "setsid {}",
    "stdbuf -oL {}", "xargs {}", "xargs -n 1 {}", "find . -exec {} ;".replace(";", "\\;"),
    "sudo -u bob env timeout 5 {}", "command {}", "ionice -c3 {}", "watch {}", "parallel {} :::", "ssh web1 {}",
    "docker exec web {}", "kubectl exec web -- {}", "chroot /mnt {}", "busybox {}", "systemd-run {}", "flock /l {}",
    "doas {}", "taskset -c 0 {}", "docker run alpine {}", "strace {}", "unshare {}", "nsenter -t 1 {}",
    "su bob -c {q}", "bash -c {q}", "sh -c {q}", "sudo sh -c {q}", "eval {q}", "ssh web1 {q}", "watch {q}",
    "docker exec web sh -c {q}",
    "flock /l -c {q}", "echo {q} | at now",
)  # fmt: skip


def _level(command: str) -> Level:
    return check(command).level


@pytest.mark.guarantee("G-COMPOSE")
@small
@given(COMMANDS, st.sampled_from(JOINS))
def test_joining_with_another_command_never_lowers_the_level(command, join):
    assert _level(join.format(command)) >= _level(command)


@small
@given(COMMANDS, COMMANDS)
def test_a_sequence_has_at_least_the_level_of_each_part(first, second):
    assert _level(f"{first}\n{second}") >= _level(first)


@pytest.mark.guarantee("G-COMPOSE")
@small
@given(SIMPLE, st.sampled_from(WRAPPERS))
def test_a_wrapper_never_lowers_the_level(command, wrapper):
    # What runs in bash itself (cd, export …) has no effect below another program, and a unit's own words are kept.
    if shlex.split(command)[0] in (
        "exec",
        "f",
        "export",
        "trap",
        "time",
        "coproc",
        "source",
        ".",
        "builtin",
        "history",
        "enable",
        "alias",
        "hash",
    ):
        return
    assert _level(wrapper.format(command, q=shlex.quote(command))) >= _level(command)


@pytest.mark.guarantee("G-COMPOSE")
@small
@given(SIMPLE, st.data())
def test_requoting_a_word_changes_nothing(command, data):
    words = command.split()
    place = data.draw(st.integers(0, len(words) - 1))
    word = words[place]
    if "=" in word or word in (
        "time",
        "if",
        "while",
        "for",
        "coproc",
        "exec",
        "export",
        "until",
        "case",
        "function",
        "select",
    ):
        return
    for spelled in (
        f"'{word}'",
        f'"{word}"',
        f"$'{word}'",
        word[0] + "''" + word[1:],
        f"\\{word}",
        word[:1] + '"' + word[1:] + '"',
    ):
        assert _level(" ".join([*words[:place], spelled, *words[place + 1 :]])) == _level(command), spelled


@small
@given(SIMPLE)
def test_a_line_continuation_between_words_never_lowers_the_level(command):
    assert _level(command.replace(" ", " \\\n ")) >= _level(command)


@small
@given(SIMPLE, st.integers(1, 60))
def test_a_line_continuation_inside_a_word_never_lowers_the_level(command, place):
    place = min(place, len(command) - 1)
    assert _level(command[:place] + "\\\n" + command[place:]) >= _level(command)


@pytest.mark.guarantee("G-UNREAD")
@small
@given(COMMANDS)
def test_a_substitution_counts_wherever_bash_runs_it(command):
    inner = f"$({command}\n)"
    wanted = _level(command)
    for frame in (
        "echo {}",
        'echo "{}"',
        "echo a{}b",
        "x={}",
        "ls > /dev/null {}",
        "case {} in x) ls;; esac",
        "echo ${{x:-{}}}",
        "echo $(( 1 + {} ))",
        "cat <<E\n{}\nE",
        "[[ -n {} ]]",
    ):
        assert _level(frame.format(inner)) >= wanted, frame


@pytest.mark.guarantee("G-UNREAD")
@small
@given(st.text(alphabet="abcxyz_-", min_size=6, max_size=12).filter(lambda name: name[0].isalpha()))
def test_a_program_that_is_not_known_is_at_least_r2(name):
    from guard.judge.families import PROGRAMS

    if name not in PROGRAMS:
        assert _level(name) >= Level.R2


@small
@given(COMMANDS)
def test_text_in_single_quotes_is_data(command):
    assert _level("echo " + shlex.quote(command)) == Level.R0
    assert _level("grep -rn -e " + shlex.quote(command) + " src") == Level.R0


@small
@given(COMMANDS)
def test_reasons_point_at_bytes_of_the_text_and_explain_the_level(command):
    assessment = check(command)
    size = len(command.encode())
    for reason in assessment.reasons:
        assert 0 <= reason.span[0] <= reason.span[1] <= size
        assert reason.rule and reason.text
    if assessment.level > Level.R0:
        assert max(reason.level for reason in assessment.reasons) == assessment.level


@small
@given(COMMANDS)
def test_what_is_told_later_is_what_was_found_at_once(command):
    one, two = check(command), check(command)
    assert (one.level, one.decision) == (two.level, two.decision)
    assert one.effects == two.effects and one.reasons == two.reasons == one.reasons
    assert one.snapshot_plan == two.snapshot_plan


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.text(max_size=80))
def test_no_text_raises(text):
    assert check(text).level in (Level.R0, Level.R1, Level.R2, Level.R3)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    st.lists(
        st.sampled_from(
            [
                "$(",
                ")",
                "`",
                '"',
                "'",
                "\\",
                "\n",
                "${",
                "}",
                "((",
                "))",
                "<(",
                "|",
                "&",
                ";",
                "<<E\n",
                "E\n",
                "rm",
                " ",
                "x=",
                "[[",
                "]]",
                "{",
                "a,b",
                "$",
                "case",
                "in",
                "esac",
                "do",
                "done",
                "if",
                "then",
                "fi",
                "é",
                "\x07",
            ]
        ),
        max_size=24,
    ).map("".join)
)
def test_no_shell_like_text_raises(text):
    assert check(text).level in (Level.R0, Level.R1, Level.R2, Level.R3)


@small
@given(COMMANDS, st.sampled_from("\x01\x07\x08\x0b\r\x1b\x7f\x85\u200f\u202e\u2066\ufeff"), st.integers(0, 40))
def test_a_character_that_nobody_sees_is_never_a_read(command, char, place):
    assert _level(command[:place] + char + command[place:]) >= Level.R2
