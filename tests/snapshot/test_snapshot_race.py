"""Another user swaps folders, links and hard links as fast as they can while root saves and puts back among them."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from guard.errors import SnapshotImpossible
from guard.hands.files import Unsafe, Walker, acting_as
from guard.hands.restore import apply
from guard.ledger.plans import rollback_plan
from tests.ledger.world import interpreter_for_others
from tests.snapshot.trees import end, now_of, save, snapshots_in, state_of

ATTACKER = 65534
SWAPPER = Path(__file__).with_name("swapper.py")
ROUNDS = 40


def opened_for_others(tmp_path):
    """Lets another user reach this test's folder."""
    for folder in (tmp_path, *tmp_path.parents):
        if str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o711)


def protected(tmp_path):
    """What must never change: root's files outside, some of which the attacker may link to."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("root's own\n")
    (outside / "file").chmod(0o666)
    (outside / "private").write_text("root's secret\n")
    (outside / "private").chmod(0o600)
    (outside / "folder").mkdir()
    (outside / "folder" / "file").write_text("root's too\n")
    return outside


def plan_in_spite_of_all(snapshots, saved):
    """A plan that overrules every conflict; None when something vanished while it was looked at."""
    manifest, after = snapshots.load(saved), snapshots.after(saved)
    try:
        now = now_of(snapshots, saved)
    except SnapshotImpossible:
        return None
    conflicts = rollback_plan("e-1", manifest, after, now).conflicts
    return rollback_plan("e-1", manifest, after, now, overruled=[step.path for step in conflicts])


@pytest.mark.guarantee("G-ROLLBACK-INSIDE")
@pytest.mark.parametrize("owner", [ATTACKER, 0], ids=["files-of-theirs", "files-of-root"])
def test_root_never_changes_a_file_outside(tmp_path, owner):
    if os.geteuid() != 0:
        # An ordinary user cannot act as another one, so there is nothing to race for: foreign folders are refused.
        with pytest.raises(Unsafe), acting_as(ATTACKER):
            raise AssertionError("acted as somebody else")
        return
    opened_for_others(tmp_path)
    outside = protected(tmp_path)
    theirs = tmp_path / "theirs"
    (theirs / "sub").mkdir(parents=True)
    for name in ("file", "sub/file", "gone"):
        (theirs / name).write_text("before\n")
        os.chown(theirs / name, owner, owner)
    for folder in (theirs, theirs / "sub"):
        os.chown(folder, ATTACKER, ATTACKER)
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, theirs)
    (theirs / "file").write_text("after\n")
    (theirs / "sub" / "file").write_text("after\n")
    (theirs / "gone").unlink()
    (theirs / "made").write_text("made\n")
    end(snapshots, saved)
    first_plan = plan_in_spite_of_all(snapshots, saved)
    before = state_of(outside)

    swapper = subprocess.Popen(
        [
            *("setpriv", "--reuid", str(ATTACKER), "--regid", str(ATTACKER), "--clear-groups"),
            *(interpreter_for_others(), "-I", str(SWAPPER), str(theirs), str(outside)),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert swapper.stdout.readline() == "swapping\n"
        manifest = snapshots.load(saved)
        results = Counter()
        for number in range(ROUNDS):
            plan = first_plan if number % 4 == 0 else plan_in_spite_of_all(snapshots, saved) or first_plan
            with snapshots.contents(manifest) as pack:
                results.update(result.result for result in apply(plan, pack, tag=f"e-{number}"))
            try:
                save(snapshots, theirs / "file", theirs / "sub")
            except SnapshotImpossible:
                pass
    finally:
        swapper.send_signal(signal.SIGKILL)
        swapper.wait()
        swapper.stdout.close()
    # Both sides had their turns: some steps came through, others met a swap.
    assert results["done"] > 0
    assert results["conflict"] + results["failed"] > 0
    assert state_of(outside) == before
    for one in snapshots.listed():
        pack = (tmp_path / "state" / "snapshots" / one.id / "pack").read_bytes()
        assert b"root's secret" not in pack


def test_a_folder_of_two_strangers_is_refused(tmp_path):
    if os.geteuid() != 0:
        with Walker() as walker, pytest.raises(Unsafe):
            (tmp_path / "open").mkdir()
            (tmp_path / "open").chmod(0o777)
            walker.folder(str(tmp_path / "open"))
        return
    (tmp_path / "one" / "two").mkdir(parents=True)
    os.chown(tmp_path / "one", 1, 1)
    os.chown(tmp_path / "one" / "two", 2, 2)
    with Walker() as walker, pytest.raises(Unsafe, match="below a folder of"):
        walker.folder(str(tmp_path / "one" / "two"))


def test_acting_as_another_ends_with_the_block_and_stays_in_its_thread(tmp_path):
    if os.geteuid() != 0:
        with pytest.raises(Unsafe), acting_as(ATTACKER):
            raise AssertionError("acted as somebody else")
        (tmp_path / "file").write_text("still able")
        return
    from concurrent.futures import ThreadPoolExecutor

    (tmp_path / "private").write_text("root's")
    (tmp_path / "private").chmod(0o600)
    opened_for_others(tmp_path)
    with ThreadPoolExecutor(1) as other:
        other.submit(int).result()  # a thread begins with the rights of the one that starts it
        with acting_as(ATTACKER):
            with pytest.raises(PermissionError):
                (tmp_path / "private").read_text()
            assert other.submit((tmp_path / "private").read_text).result() == "root's"
    assert (tmp_path / "private").read_text() == "root's"
