"""`--config FILE` counts for every verb of both programs, before the verb or behind it, and for nobody's command."""

from __future__ import annotations

import pytest

import core
from cli import config, opsagent, opsx
from cli.opsagent_mcp import VERB as MCP
from cli.options import behind_verb, name_config, parse
from guard.errors import UsageError
from guard.types import Verdict


@pytest.fixture(autouse=True)
def named_by_nobody(monkeypatch):
    monkeypatch.setattr(config, "_named", "")


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "strict.toml"
    path.write_text('[policy]\nmode = "read-only"\n[hook]\nproject_writes = "ask"\n')
    path.chmod(0o600)
    return str(path)


EVERY = [("opsx", verb) for verb in opsx.VERBS] + [("opsagent", verb) for verb in opsagent.verbs()]


@pytest.mark.parametrize(("program", "verb"), EVERY, ids=lambda one: getattr(one, "name", one))
def test_every_verb_of_both_programs_takes_it(program, verb, file):
    parsed = parse(program, verb, ["--config", file])
    name_config(parsed)
    assert config.named_file() == file and not parsed.values


@pytest.mark.parametrize("argv", ["--config F check touch+/tmp/x", "check --config=F -- touch+/tmp/x"])
def test_it_stands_before_the_verb_or_behind_it(argv, file, capsys):
    argv = [word.replace("F", file).replace("+", " ") for word in argv.split()]
    assert opsx.main(argv) == 4
    assert "read-only" in capsys.readouterr().out


def test_the_servers_and_the_question_take_it_too(file, capsys):
    assert behind_verb(["--config", file, "mcp", "--read-only"]) == ["mcp", "--config", file, "--read-only"]
    assert behind_verb([f"--config={file}", "rpc"]) == ["rpc", f"--config={file}"]
    assert behind_verb(["--config", file, "-p", "disk"]) == ["--config", file, "-p", "disk"]
    assert opsagent.main(["--config", file, "config", "show", "--origin"]) == 0
    assert f'policy.mode = "read-only"   # {file}:2' in capsys.readouterr().out
    assert parse("opsagent", MCP, ["--config", file]).value("config") == file


def test_the_hooks_own_table_in_it_counts(file):
    from cli.hooks.settings import project_writes

    assert project_writes() == ("defer", "")
    config.name_file(file)
    assert project_writes() == ("ask", "")


@pytest.mark.parametrize("named", ["gone.toml", "open.toml", "link.toml", ""])
def test_a_file_that_cannot_be_used_ends_the_program_before_anything(named, tmp_path, capsys):
    (tmp_path / "open.toml").write_text("")
    (tmp_path / "open.toml").chmod(0o666)
    (tmp_path / "link.toml").symlink_to(tmp_path / "open.toml")
    assert opsx.main(["--config", str(tmp_path / named) if named else "", "exec", "echo hi"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "nothing was run" in err and config.named_file() == ""


def test_without_a_verb_it_says_what_is_missing(file):
    assert opsx.main(["--config", file]) == 2
    with pytest.raises(UsageError, match="given twice"):
        parse("opsx", opsx.BY_NAME["check"], ["--config", file, "--config", file])


@pytest.mark.parametrize("program", ["opsx", "opsagent", "opsagent-mcp"])
def test_no_agents_command_names_one(program):
    for command in (
        f"{program} --config f check ls",
        f"{program} check --config f ls",
        f"{program} check --config=f ls",
    ):
        decision = core.check(command).decision
        assert (decision.verdict, decision.forceable) == (Verdict.REFUSE, False), command


def test_the_file_that_counts_is_kept_from_agents_commands(file):
    from cli.surroundings import policy

    config.name_file(file)
    held = policy()
    assert file in held.own_paths and file in held.own_private
