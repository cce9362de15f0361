"""Completions and the command reference know every verb and option of both launchers."""

from __future__ import annotations

import subprocess

import pytest

from cli import completions, opsagent, opsx
from cli.options import HELP, help_of
from tools import generate_docs

SHELLS = {"bash": completions.bash, "zsh": completions.zsh, "fish": completions.fish}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("program", completions.launchers(), ids=lambda program: program.name)
def test_every_verb_and_option_is_completed(shell, program):
    script = SHELLS[shell](program)
    options = [*program.options, HELP, *(option for verb in program.verbs for option in verb.options)]
    for option in options:
        if option.name:
            assert (f"-l {option.name} " if shell == "fish" else f"--{option.name}") in script
    for verb in program.verbs:
        assert verb.name in script
    assert program.name in script


def completed(*words: str) -> set[str]:
    """What bash offers for the last word."""
    script = completions.bash(*completions.launchers())
    name = words[0]
    ask = f'{script}\nCOMP_WORDS=("$@")\nCOMP_CWORD=$(($# - 1))\n_{name}\nprintf "%s\\n" "${{COMPREPLY[@]}}"\n'
    done = subprocess.run(["/bin/bash", "-c", ask, "bash", *words], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("opsagent", ""), {"runbook", "mcp", "-p", "--watch", "--version"}),
        (("opsagent", "-p", "disk", "--n"), {"--nagios"}),
        (("opsagent", "runbook", ""), {"list", "show", "test", "--json", "--lang", "--help"}),
        (("opsagent", "mcp", "--c"), {"--cwd"}),
        (("opsx", "completions", ""), {"bash", "zsh", "fish", "--help"}),
        (("opsx", "audit", "v"), {"verify"}),
        (("opsx", "hook", "claude"), {"claude-code"}),
        (("opsx", "che"), {"check"}),
    ],
)
def test_bash_offers_what_fits(words, offered):
    assert offered <= completed(*words)


def test_bash_offers_files_after_the_double_dash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").touch()
    assert completed("opsx", "exec", "--", "cat", "no") == {"notes.txt"}


def test_the_reference_has_the_help_of_both_launchers_and_of_every_verb():
    page = generate_docs.cli_page()
    assert opsagent.help_page().rstrip() in page
    for name, verbs in (("opsx", opsx.VERBS), ("opsagent", opsagent.verbs())):
        for verb in verbs:
            assert f"### {name} {verb.name}\n" in page
            assert help_of(name, verb).rstrip() in page
