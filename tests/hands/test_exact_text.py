"""What `guard.exact` reads is what bash makes of the same text, and everything else is not read at all."""

from __future__ import annotations

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.exact import PROGRAMS, profile_for, read_exact
from guard.judge.families import PROGRAMS as JUDGED

EXACT = (
    "ss -tlnp",
    "  ss   -tlnp\t'sport = :443' ",
    'lsof -nP -iTCP:443 "-sTCP:LISTEN"',
    "lsof +D /srv/data",
    "LC_ALL=C ss -tnp",
    "sudo iptables -S INPUT",
    "sudo sudo fdisk -l",
    "/usr/sbin/iptables -L -n -v --line-numbers",
    "fdisk -l /dev/sda 2>/dev/null",
    "lsof -i 2>&1",
    "lsof -i >/dev/null 2>&1",
    "lsof -i 2>&1 >/dev/null",
    "lsof -i &>/dev/null",
    "lsof -i > /dev/null",
    "fuser -v 80/tcp 1>&2",
    "blkid ''",
    "ss -p''l 'a b'\"c d\"",
)

STUB = 'printf "%s\\0" "${LC_ALL-}" "$0" "$@" >&9; echo out; echo err >&2'


def as_bash_has_it(text, tmp_path):
    """(LC_ALL, argv without sudo, stdout, stderr) as a recording program gets them from bash."""
    stub = tmp_path / "stub"
    stub.write_text(f"#!/bin/bash -p\n{STUB}\n")
    stub.chmod(0o755)
    record = tmp_path / "record"
    words = sorted({name for names in PROGRAMS.values() for name in names} | {"/usr/sbin/iptables"}, key=len)
    functions = "\n".join(f'function {name} {{ "$STUB" "$@"; }}' for name in words)
    done = subprocess.run(
        ["/bin/bash", "--norc", "-c", f'{functions}\nsudo() {{ "$@"; }}\nexec 9>"$RECORD"\n{text}'],
        env={"STUB": str(stub), "RECORD": str(record), "PATH": "/nowhere"},
        capture_output=True,
        text=True,
    )
    variable, _, *argv = record.read_bytes().decode().split("\0")[:-1]
    return variable, argv, done.stdout, done.stderr


@pytest.mark.parametrize("text", EXACT)
def test_one_program_with_literal_words_is_read_as_bash_reads_it(text, tmp_path):
    exact = read_exact(text)
    variable, argv, stdout, stderr = as_bash_has_it(text, tmp_path)
    assert list(exact.argv[1:]) == argv
    assert exact.env.get("LC_ALL", "") == variable
    places = {"stdout": "", "stderr": "", "nowhere": ""}
    places[exact.stdout] += "out\n"
    places[exact.stderr] += "err\n"
    assert (places["stdout"], places["stderr"]) == (stdout, stderr)
    assert exact.sudo == ("sudo" in text)
    assert profile_for(exact.program)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("ss -tlnp | grep ':80\\b'", "grep ':80\\b'"),
        ("lsof -i 2>/dev/null|head -n 3", "head -n 3"),
        ("iptables -S | awk '{ print $2; x = $(3) }' | sort -u", "awk '{ print $2; x = $(3) }' | sort -u"),
        ('ss -tnp | grep "users$" | wc -l 2>&1', 'grep "users$" | wc -l 2>&1'),
        ("ss -tnp | tail -n +2 2>/dev/null", "tail -n +2 2>/dev/null"),
    ],
)
def test_what_stands_behind_a_pipe_is_kept_as_it_is(text, rest):
    assert read_exact(text).rest == rest


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "|", "| cat", "lsof |", "lsof | ", "lsof || cat x", "lsof |& cat", "lsof ; id", "lsof; id",
        "lsof & id",
        "lsof && id", "lsof\nid", "lsof | cat\nid", "lsof $x", 'lsof "$x"', "lsof `id`", "lsof $(id)", "lsof <(id)",
        "lsof < x", "lsof > x", "lsof >> x", "lsof 2> x", "lsof >/dev/nullx", "lsof 3>/dev/null", "lsof >&3", "lsof *",
        "lsof [a]", "lsof {a,b}", "lsof ~/x", "lsof a\\ b", "lsof $'x'", 'lsof "a\\b"', "lsof 'a", 'lsof "a',
        "lsof 'a\nb'",
        "(lsof)", "{ lsof; }", "! lsof", "lsof # x", "sudo -u x lsof", "env lsof", "PATH=/x lsof", "LD_PRELOAD=/x lsof",
        "a=1", "LC_ALL=C", "lsof | cat; id", "lsof | cat & id", "lsof | cat && id", "lsof | cat || id", "lsof | (id)",
        "lsof | cat | ", "lsof | | cat", "lsof | cat $(id)", "lsof | cat `id`", 'lsof | cat "$(id)"', "lsof | cat $x",
        "lsof | cat <x", "lsof | { cat; }", "lsof | cat 'x", 'lsof | cat "x', "lsof | cat \\\n| id", "lsof | cat \\",
        "lsof | cat # | id", "lsof | ! cat", "if lsof", "lsof | cat >| x", "lsof | cat |& id", "lsof\r", "lsof \u00a0x",
        "lsof\u2028x", "time lsof | { cat", "coproc lsof &",
    ],
)  # fmt: skip
def test_anything_else_is_not_read(text):
    assert read_exact(text) is None


def test_every_word_is_given_to_bash_as_it_was_read():
    for text in EXACT:
        exact = read_exact(text)
        again = read_exact(shlex.join(exact.argv))
        assert again is not None
        assert again.argv == exact.argv


def test_each_program_belongs_to_one_profile_and_is_one_that_the_judge_knows():
    names = [name for programs in PROGRAMS.values() for name in programs]
    assert len(names) == len(set(names))
    assert set(names) <= JUDGED.keys()


def test_a_program_whose_other_verbs_need_more_is_exact_for_some_of_them_only():
    assert read_exact("nvme list").argv == ("nvme", "list")
    assert read_exact("nvme id-ctrl /dev/nvme0 | head") is not None
    assert read_exact("nvme smart-log /dev/nvme0") is None
    assert read_exact("smartctl -a /dev/sda") is None


@given(
    st.lists(
        st.sampled_from(
            ["lsof", "-i", " ", "  ", "'", '"', "a", "=", ":", "|", ">", "2", "&", "1", "/dev/null", "$", "\\"]
        )
    )
)
def test_whatever_is_read_has_the_words_that_a_shell_would_split(parts):
    text = "lsof " + "".join(parts)
    exact = read_exact(text)
    if exact is None or exact.rest or ">" in text:
        return
    assert list(exact.argv) == shlex.split(text)
