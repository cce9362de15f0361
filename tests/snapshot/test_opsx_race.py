"""The program itself, as root, saves and goes back in a folder of another user who swaps links into it meanwhile."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import execution
from acting import rollback_request
from guard.bound import Consent
from guard.ledger.answers import ToApprove
from guard.types import Request
from tests.approvals.terminal import ROOT
from tests.ledger.world import interpreter_for_others
from tests.snapshot.test_snapshot_race import ATTACKER, opened_for_others, protected
from tests.snapshot.trees import state_of

VISITOR = Path(__file__).with_name("visitor.py")
ROUNDS = 4


def opsx(*arguments):
    done = subprocess.run(
        [str(ROOT / "opsx"), *map(str, arguments)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def approved_plan(saved):
    """A person's yes to what going back would do now; returns its digest."""
    guard = execution.open_guard()
    plan = execution.plan_rollback(saved, guard)
    request = Request(execution.rollback_request(plan), cwd="/", actor="agent")
    item = ToApprove(request, execution.rollback_assessment(plan), rollback_request.binding_of(plan, request))
    guard.ledger.answers.approve([item], Consent("tty", "0" * 64))
    return plan.digest


def change(theirs):
    for name in ("file", "sub/file"):
        (theirs / name).write_text("after\n")
        (theirs / name).chmod(0o600)


@pytest.mark.guarantee("G-ROLLBACK-INSIDE")
def test_the_program_never_changes_a_file_outside(tmp_path):
    if os.geteuid() != 0:
        # An ordinary user has no folder of somebody else to work in: it is refused, by the program too.
        code, _, said = opsx("snapshot", "create", "/root/anything")
        assert code == 5 and "cannot be" in said
        return
    opened_for_others(tmp_path)
    outside = protected(tmp_path)
    theirs = tmp_path / "theirs"
    (theirs / "sub").mkdir(parents=True)
    for name in ("file", "sub/file"):
        (theirs / name).write_text("before\n")
        os.chown(theirs / name, ATTACKER, ATTACKER)
    for folder in (theirs, theirs / "sub"):
        os.chown(folder, ATTACKER, ATTACKER)
    code, printed, said = opsx("snapshot", "create", "--json", theirs)
    assert code == 0, said
    saved = json.loads(printed)["snapshot"]
    before = state_of(outside)
    results = Counter()
    for _ in range(ROUNDS):
        change(theirs)
        digest = approved_plan(saved)
        visitor = subprocess.Popen(
            [
                *("setpriv", "--reuid", str(ATTACKER), "--regid", str(ATTACKER), "--clear-groups"),
                *(interpreter_for_others(), "-I", str(VISITOR), str(theirs), str(outside)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert visitor.stdout.readline() == "visiting\n"
            code, _, _ = opsx("rollback", saved, "--plan", digest)
            results[code] += 1
            opsx("snapshot", "create", theirs)
        finally:
            visitor.send_signal(signal.SIGKILL)
            visitor.wait()
            visitor.stdout.close()
        assert state_of(outside) == before
        for place in (theirs / "file", theirs / "sub"):
            away = place.with_name(place.name + ".away")
            if away.exists():  # killed on a visit
                if place.is_symlink() or place.exists():
                    place.unlink()
                away.rename(place)
    change(theirs)
    code, _, said = opsx("rollback", saved, "--plan", approved_plan(saved))
    assert (code, (theirs / "file").read_text()) == (0, "before\n"), said
    # Done, stopped half-way by a swap, or not begun because what was planned was not there any more.
    assert set(results) <= {0, 1, 4, 5}, results
    for pack in (Path(os.environ["OPSAGENT_HOME"]) / "snapshots").glob("*/pack"):
        assert b"root's secret" not in pack.read_bytes()
