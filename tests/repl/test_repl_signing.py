"""A passphrase that ssh-keygen asks for in the middle of a conversation, on a real terminal."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.approvals.signer import PRINCIPAL, configured, made_key
from tests.repl.tmux import Tmux, opsagent

PASSPHRASE = "correct-horse"


@pytest.fixture
def screen(tmp_path):
    """A conversation in which an approval waits, where a key with a passphrase has to sign it."""
    keys, work = tmp_path / "keys", tmp_path / "work"
    keys.mkdir(mode=0o700)
    work.mkdir()
    public = made_key(keys / "alice", passphrase=PASSPHRASE)
    state = Path(os.environ["OPSAGENT_HOME"])
    configured(state, f"{PRINCIPAL} {public}\n", key=str(keys / "alice"))
    script = tmp_path / "script.jsonl"
    replies = [{"calls": [{"tool": "ops_approve", "arguments": {"command": "touch made"}}]}, {"text": "Finished."}]
    script.write_text("".join(json.dumps(reply) + "\n" for reply in [*replies, {"text": "Heard."}]))
    opened = Tmux(opsagent("--brain", f"script:{script}"), cwd=work, rows=30)
    opened.wait_for("/help", "guarded")
    opened.type("please")
    opened.keys("Enter")
    opened.wait_for("approve? >")
    opened.type("yes")
    opened.keys("Enter")
    opened.wait_for("Enter passphrase")
    yield opened
    opened.close()


@pytest.mark.guarantee("G-SIGNED")
def test_passphrase_reaches_ssh_keygen_and_nobody_else(screen):
    for letter in PASSPHRASE:
        screen.type(letter)
    screen.keys("Enter")
    shown = screen.wait_for("ops_approve", "approved", "Finished.")
    assert "nothing was approved" not in shown
    assert not any(row.startswith("›") and row.strip("› ") not in ("", "please") for row in shown.split("\n"))


def test_ctrl_c_at_the_passphrase_approves_nothing_and_the_conversation_goes_on(screen):
    screen.keys("C-c")
    screen.wait_for("nothing was approved", "interrupted")
    screen.type("and now?")
    screen.keys("Enter")
    screen.wait_for("› and now?", "Finished.")
