"""`opsx audit retain` and `opsx audit verify`: what goes is shown, a person says yes, and the rest proves itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from guard.clock import RandomIds, SystemClock
from guard.hands.liveness import ProcLiveness
from guard.ledger.log import SEGMENT_BYTES
from guard.ledger.state import StateFolder
from guard.ledger.store import Ledger
from tests.approvals.terminal import ROOT, Terminal, opsx
from tests.ledger.world import asked, done, read_of, unchanged


@pytest.fixture
def long_log(tmp_path, monkeypatch):
    """More than two full segments, in lines as long as they may be."""
    state = tmp_path / "state"
    monkeypatch.setenv("OPSAGENT_HOME", str(state))
    ledger = Ledger(
        StateFolder.open(str(state)), clock=SystemClock(), ids=RandomIds(), redact=unchanged, liveness=ProcLiveness()
    )
    for _ in range(3 * SEGMENT_BYTES // 1_900_000 + 2):
        ledger.record("notice", text=["x" * 3800] * 490)
    begun = ledger.begin_read(asked(), read_of(), profile="local", enforced="strict")
    ledger.end(begun.execution, done())
    return ledger


def run(*arguments):
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli.opsx import main; sys.exit(main({list(arguments)!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL, start_new_session=True
    )
    return done.returncode, done.stdout, done.stderr


def segments(ledger):
    return sorted(name for name in os.listdir(os.path.join(ledger.folder.path, "log")) if name.endswith(".jsonl"))


def retain(typed):
    terminal = Terminal(opsx("audit", "retain", "--keep-mb", "32"), env=dict(os.environ), cwd="/")
    try:
        terminal.wait_for("changes nothing: ")
        terminal.answer(typed)
        return terminal.end(), terminal.text
    finally:
        terminal.close()


@pytest.mark.guarantee("G-RETENTION")
def test_person_lets_the_oldest_part_go_and_the_rest_is_whole(long_log):
    before = segments(long_log)
    assert len(before) >= 3
    code, out, _ = run("audit", "retain", "--keep-mb", "32", "--plan", "--json")
    plan = json.loads(out)
    assert (code, plan["segments"][0]) == (0, 1)
    code, _, said = run("audit", "retain", "--keep-mb", "32")
    assert (code, "only a person" in said) == (4, True)
    code, shown = retain("no\n")
    assert (code, "nothing was removed" in shown) == (3, True)
    assert segments(long_log) == before
    code, shown = retain("yes\n")
    assert (code, f"{len(plan['segments'])} segments" in shown) == (0, True)
    assert segments(long_log) == before[len(plan["segments"]) :]
    code, out, _ = run("audit", "verify")
    assert code == 0
    assert f"entries 1 to {plan['through_seq']:,} went behind a checkpoint" in out
    assert "the chain is whole" in out
    assert run("audit", "retain", "--keep-mb", "32", "--plan")[1] == "nothing is over the limits\n"


def test_nothing_goes_where_nothing_says_so(long_log):
    code, _, said = run("audit", "retain")
    assert (code, "nothing says how long" in said) == (2, True)


def test_configuration_says_it_too(long_log):
    folder = os.path.join(long_log.folder.path, "config")
    os.mkdir(folder, 0o700)
    with open(os.path.join(folder, "config.toml"), "w") as file:
        file.write("[log]\nkeep_mb = 32\n")
    os.chmod(os.path.join(folder, "config.toml"), 0o600)
    assert json.loads(run("audit", "retain", "--plan", "--json")[1])["segments"][0] == 1
