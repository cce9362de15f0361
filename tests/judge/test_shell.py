"""Reading shell text: what bash would do is what the tree says, and what the grammar misses is never a read."""

import random
import shutil
import subprocess

import pytest

from guard.judge.classify import check
from guard.judge.shell.parse import parse
from guard.judge.shell.syntax import Opaque, Simple
from guard.types import Level

BASH = shutil.which("bash") or "/bin/bash"

SPELLINGS = [
    "kk a b", "kk 'a b' c", 'kk "a b" c', "kk a\\ b", "kk 'a'\"b\"c", "kk $'a\\tb\\x41\\u00e9'",
        "kk a{1,2}{x,y}", "kk {1..3}",
    "kk {03..1}", "kk {a..c}z", "kk {a,{b,c}}d", "kk {a}", "kk a,b {,x}", "kk '{a,b}'",
        'kk "{a,b}"', "kk \\{a,b}", "kk ''",
    'kk ""', "kk a''b", "kk \"a'b\"", "kk 'a\"b'", 'kk "a\\"b\\\\c\\d"', "kk a#b # comment", "kk -n --x=y",
        "kk \\\n a", "kk a\\\nb",
    "kk \\  x", "kk é ü 中", "kk $", "kk a$ b", 'kk "5$"', "kk 'x' $'\\''", "kk =a a=b", "kk ]a }", "kk %1 +x @",
        "kk a:b,c", "kk \\a\\b",
    "kk $'\\101'", "kk \"\\$x\" '$x' \\$x", "kk a 'b\nc' d", "kk ~x a~", "kk !x", "kk {x..z..2}",
        "kk {1..5..2}", "kk {a,b}{",
    "kk a{b,c", "kk 1{2}3", "kk \"a\"{b,'c d'}",
]  # fmt: skip

UNSEEN = [
    'echo "5$ $(nosuch)"', "exp\\\nort Z=$(nosuch)", 'echo "$\\\n(nosuch)"', "x=1; echo ${x#:-$(nosuch)}",
        "x=1; echo ${x//a$(nosuch)/b}",
    "cat <<-E\n\t$(nosuch)\n\tE", "echo `nosuch``nosuch`", "echo ${x:-$<(nosuch)}", "x='a[$(nosuch)]'; echo $((x))",
    "echo \"$$ $(nosuch)\"", "cat <<é\n$(nosuch)\né", "echo $\"$(nosuch)\"", "x='$(nosuch)'; eval \"echo $x\"",
]  # fmt: skip

SEEDS = [
    'echo "$(kk)"', "cat <(kk)", "x=$(kk); echo", 'echo | echo "$(kk)"', "for i in 1; do echo $(kk); done",
        "cat <<E\n$(kk)\nE", 'cat <<"E"\n$(kk)\nE',
    "echo ${x:-$(kk)}", "echo $((1+$(kk)))", "[[ -f $(kk) ]]", "f() { kk; }; f", "echo `kk`", "{ echo; kk; }",
        "(echo; kk)", "echo '$(kk)'",
    "echo \\`kk\\`", "echo ${x/$(kk)/b}", "case $(kk) in a) echo;; esac", "cat <<-E\n\t$(kk)\n\tE",
        "echo a # kk", "echo <<< $(kk)", "! kk", "echo \"a\\$(kk)\"",
    "echo ${a[$(kk)]}", "x='a[$(kk)]'; echo $((x))", "eval 'kk'", "echo $'a$(kk)'", "if echo; then kk; fi",
        "echo a; kk",
]  # fmt: skip
TOKENS = [
    "\\\n", '"', "'", "\\", "\t", "\n", " ", "#", ";", "&", "|", "`", "$(kk)", "<(kk)", "$((1))", "{a,b}",
        '$"x"', "$'x'", "!", "(", ")", "}", "{",
    "<<E\n", "E\n", "*", "[[", "]]", "=", "$", "${", "$((", "))", ":-", "\\$", "\\`", "é", "-", "<", ">&1", "@",
]  # fmt: skip


@pytest.fixture
def stub(tmp_path):
    """A folder for PATH with one program, `kk`, that writes the arguments it got, each ended by a NUL."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "ran"
    program = folder / "kk"
    program.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" >> {log}\necho ran >> {log}.count\n")
    program.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()

    def run(text):
        for path in (log, tmp_path / "ran.count"):
            path.unlink(missing_ok=True)
        subprocess.run(
            [BASH, "--noprofile", "--norc", "-p", "-c", text],
            env={"PATH": str(folder), "LC_ALL": "C.UTF-8"}, cwd=work, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20, check=False,
        )  # fmt: skip
        ran = (tmp_path / "ran.count").exists() or any(work.iterdir())
        return log.read_text().split("\0")[:-1] if log.exists() else None, ran

    return run


@pytest.mark.parametrize("text", SPELLINGS)
def test_argv_is_what_bash_hands_to_the_program(text, stub):
    node = parse(text.encode()).items[0]
    assert isinstance(node, Simple)
    assert [word.value for word in node.words[1:]] == stub(text)[0]


@pytest.mark.parametrize("text", UNSEEN)
def test_what_the_grammar_does_not_see_is_not_a_read(text):
    assert check(text).level >= Level.R2


def test_a_text_that_is_judged_a_read_runs_no_unknown_program_in_bash(stub):
    random.seed(20261201)
    reads = 0
    for _ in range(1_500):
        text = random.choice(SEEDS)
        for _ in range(random.choice((1, 1, 2, 3))):
            at = random.randrange(len(text) + 1)
            text = text[:at] + random.choice(TOKENS) + text[at:]
        if check(text).level == Level.R0:
            reads += 1
            assert stub(text)[1] is False, text
    assert reads >= 40


def test_every_byte_of_a_broken_text_is_accounted_for():
    for text in ("ls (", "a | | b", "<<", "ls ) x", "if", "for in; do"):
        script = parse(text.encode())
        assert any(isinstance(item, Opaque) for item in script.items) or check(text).level >= Level.R2


def test_lines_before_a_syntax_error_count_because_bash_runs_them():
    assert check("rm -rf x\nls )").level == Level.R3
    assert check("ls\nrm -rf x; (\n").level == Level.R3


def test_large_code_points_do_not_reach_the_scanner():
    for text in ("{\U00062a40N\U000a1450", "x{\U0010ffff", "\U0001f600{a", "${\U00062a40}", "<<\U00062a40\n"):
        assert check(text).level >= Level.R2
    assert check("echo \U0001f600 {a,\U00062a40}").level == Level.R0


def test_spans_count_bytes():
    assessment = check("echo 中文; rm -rf x")
    start, end = assessment.reasons[0].span
    assert "echo 中文; rm -rf x".encode()[start:end] == b"rm -rf x"
