"""`opsx approve` with a signer configured: ssh-keygen asks on the same terminal, a wrong passphrase is no approval."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.approvals.signer import PRINCIPAL, Agent, configured, made_key
from tests.approvals.terminal import ROOT, Terminal, opsx

QUESTION = "anything else is no: "
PASSPHRASE = "correct horse"


@pytest.fixture
def state(tmp_path, monkeypatch):
    folder = tmp_path / "state"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("OPSAGENT_HOME", str(folder))
    (tmp_path / "keys").mkdir(mode=0o700)
    (tmp_path / "work").mkdir()
    return folder


def run(*arguments, cwd):
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli.opsx import main; sys.exit(main({list(arguments)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=cwd,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        start_new_session=True,
    )
    return done.returncode, json.loads(done.stdout)


def approve(tmp_path, *typed, **more):
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SSH_")} | more
    terminal = Terminal(opsx("approve", "--", "touch a"), env=environ, cwd=str(tmp_path / "work"), rows=100)
    try:
        terminal.wait_for(QUESTION)
        terminal.answer("yes\n")
        for prompt, text in typed:
            terminal.wait_for(prompt)
            terminal.type(text)
        return terminal.end(), terminal.text
    finally:
        terminal.close()


@pytest.mark.guarantee("G-SIGNED")
def test_passphrase_is_asked_for_and_the_signed_approval_runs(tmp_path, state):
    key = tmp_path / "keys" / "alice"
    configured(state, f"{PRINCIPAL} {made_key(key, passphrase=PASSPHRASE)}\n", key=str(key))
    code, shown = approve(tmp_path, ("Enter passphrase", PASSPHRASE + "\n"))
    assert code == 0, shown
    assert f"now sign it as {PRINCIPAL}" in shown
    assert PASSPHRASE not in shown
    code, told = run("exec", "--json", "--", "touch a", cwd=tmp_path / "work")
    assert (code, told["status"]) == (0, "succeeded")
    assert (tmp_path / "work" / "a").exists()


@pytest.mark.guarantee("G-SIGNED")
def test_wrong_passphrase_approves_nothing(tmp_path, state):
    key = tmp_path / "keys" / "alice"
    configured(state, f"{PRINCIPAL} {made_key(key, passphrase=PASSPHRASE)}\n", key=str(key))
    code, shown = approve(tmp_path, ("Enter passphrase", "wrong\n"))
    assert (code, "error[approval.unsigned]" in shown, "nothing was approved" in shown) == (3, True, True)
    code, told = run("exec", "--json", "--", "touch a", cwd=tmp_path / "work")
    assert (code, told["status"]) == (3, "needs_stamp")
    assert not (tmp_path / "work" / "a").exists()


@pytest.mark.guarantee("G-SIGNED")
def test_agent_signs_without_a_question_and_an_agent_without_the_key_does_not(tmp_path, state):
    key, other = tmp_path / "keys" / "alice", tmp_path / "keys" / "bob"
    configured(state, f"{PRINCIPAL} {made_key(key)}\n")
    made_key(other)
    for holds, expected in ((other, 3), (key, 0)):
        agent = Agent(tmp_path / "keys", holds)
        try:
            code, shown = approve(tmp_path, SSH_AUTH_SOCK=agent.socket)
        finally:
            agent.stop()
        assert code == expected, shown
    code, told = run("stamps", "--json", cwd=tmp_path / "work")
    assert [(stamp["state"], stamp["signer"]) for stamp in told["stamps"]] == [("live", PRINCIPAL)]
