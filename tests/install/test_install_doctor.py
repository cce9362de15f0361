"""`opsagent install doctor`: what it starts, and that it sees each fault."""

from __future__ import annotations

import json
import os
import sys

import pytest

from cli import opsagent
from cli.hooks.hosts import CLAUDE_CODE, CODEX, GEMINI, HOSTS
from cli.hooks.install import hook_command
from cli.install import entries, trial
from guard.errors import CannotRun
from tests.sources import ROOT

OPSX = str(ROOT / "opsx")


@pytest.fixture
def host_home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    monkeypatch.setattr("cli.actor.is_below_an_agent", lambda: False)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def launchers(tmp_path):
    """The two programs as this test environment can start them: the checkout's own may not be set up."""
    for name in ("opsx", "opsagent"):
        path = tmp_path / name
        code = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli.{name} import main; sys.exit(main(sys.argv[1:]))"
        )
        path.write_text(f"#!{sys.executable}\n{code}\n")
        path.chmod(0o755)
    return tmp_path


def checks(capsys, host):
    code = opsagent.main(["install", "doctor", host, "--json"])
    told = json.loads(capsys.readouterr().out)
    return code, {row["name"]: row for row in told["checks"]}


@pytest.mark.parametrize("name", sorted(HOSTS))
def test_all_is_well_after_an_installation(host_home, launchers, monkeypatch, capsys, name):
    monkeypatch.setattr("cli.opsagent_install.surroundings_opsx", lambda: str(launchers / "opsx"))
    assert opsagent.main(["install", name, "--hook", "--write"]) == 0
    capsys.readouterr()
    code, rows = checks(capsys, name)
    assert code == 0, rows
    for part in ("server", "tools", "hook", "hook, a read", "hook, irreversible", "hook, missing", "hook, hanging"):
        assert rows[part]["state"] == "ok", rows[part]
    if os.path.isdir("/proc/self/task"):
        assert rows["hook, killed"]["state"] == "ok"
    assert rows["settings"]["state"] == "ok"
    named = {*entries.READ_ONLY, *entries.ASKED} - {*entries.CONFIGURED}
    assert set(rows["tools"]["detail"].split()[1:]) == named


def test_what_is_not_installed_is_said(host_home, capsys):
    code, rows = checks(capsys, "codex")
    assert code == 1
    assert rows["server"]["state"] == "bad" and "install codex --write" in rows["server"]["mend"]
    assert rows["hook"]["state"] == "warn"


def test_a_server_that_is_gone_is_bad(host_home, capsys):
    entry = {"command": str(host_home / "opsagent"), "args": ["mcp"], "alwaysLoad": True}
    (host_home / ".claude.json").write_text(json.dumps({"mcpServers": {"opsagent": entry}}))
    code, rows = checks(capsys, "claude-code")
    assert code == 1 and "No such file" in rows["server"]["detail"]


@pytest.mark.parametrize("script", ["exit 0", "echo hello", "exec cat", "head -c 2000000 /dev/zero"])
def test_what_is_no_server_is_bad(script, tmp_path):
    with pytest.raises(CannotRun, match="does not start"):
        trial.start_server(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"})


ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/"}


@pytest.mark.parametrize(
    ("command", "right"),
    [
        ("echo no >&2; exit 2", True),
        ("exit 2", False),
        ("echo no >&2; exit 1", False),
        ("exit 0", False),
    ],
)
def test_only_code_two_with_words_stops_every_host(command, right):
    assert trial.ask_hook(command, CLAUDE_CODE, "ls", ENVIRON).stops is right


def test_a_hook_without_the_words_around_it_is_seen_to_let_things_run():
    bare = f"{OPSX} hook codex"
    assert trial.without_program(bare, OPSX, ENVIRON).stops is False
    assert trial.without_program(hook_command("codex", OPSX), OPSX, ENVIRON).stops is True


def test_a_hook_that_never_ends_is_ended(monkeypatch):
    monkeypatch.setattr(trial, "HOOK_LIMIT_S", 0.2)
    ended = trial.hanging("while :; do sleep 60; done", ENVIRON)
    assert ended.code is None and not ended.stops


def test_a_hook_is_killed_in_earnest(monkeypatch):
    if not os.path.isdir("/proc/self/task"):
        monkeypatch.setattr(trial, "HOOK_LIMIT_S", 0.2)
        assert trial.killed("sleep 600", ENVIRON).code is None  # nobody is found, so nobody is killed
        return
    ended = trial.killed("sleep 600; echo killed >&2; exit 2", ENVIRON)
    assert ended.stops and "killed" in ended.err


@pytest.mark.parametrize("host", [CLAUDE_CODE, CODEX, GEMINI], ids=lambda host: host.name)
def test_the_decision_is_read_from_each_hosts_answer(host):
    inner = {"hookEventName": host.event, "permissionDecision": "deny"}
    told = {"decision": "deny"} if host is GEMINI else {"hookSpecificOutput": inner}
    assert trial.Answered(0, json.dumps(told), "", 0.1).decision == "deny"
    assert trial.Answered(0, "hello", "", 0.1).decision == ""
