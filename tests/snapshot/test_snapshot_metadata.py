"""Owner, mode, attributes, times and flags: saved without contents, put back on the very thing, with real tools."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess

import pytest

from guard.errors import SnapshotImpossible
from guard.hands.capture import capture
from guard.hands.restore import apply
from guard.ledger.differences import difference
from guard.ledger.plans import items_of_work
from guard.saved import Action, Limits, State
from guard.types import PlanItem
from tests.snapshot.trees import end, never, now_of, plan_of, roll_back, save, snapshots_in

ROOT = os.geteuid() == 0
OTHER = 65533
"""Nobody's number, and not the one that tests run as."""


def run(*argv):
    """A real tool. Where it is not installed, or may not do this here, the test has to say what it wants instead."""
    return subprocess.run([str(word) for word in argv], check=True, capture_output=True, text=True).stdout


def facts(path):
    """All that counts of one path, read without the code under test."""
    info = os.lstat(path)
    names = [] if stat.S_ISLNK(info.st_mode) else sorted(os.listxattr(path))
    return (info.st_mode, info.st_uid, info.st_gid, tuple((name, os.getxattr(path, name)) for name in names))


def tree_facts(folder):
    """`facts` of a folder and of everything below it."""
    found = {}
    for place, folders, files in os.walk(folder):
        for name in (".", *folders, *files):
            path = os.path.normpath(os.path.join(place, name))
            found[path] = facts(path)
    return found


@pytest.fixture
def snapshots(tmp_path):
    return snapshots_in(tmp_path / "state")


def back_and_forth(snapshots, saved, look):
    """Rolls back, then rolls that back; returns what `look` sees after each. Conflicts and failures are none."""
    plan = plan_of(snapshots, saved)
    assert plan.conflicts == ()
    own = snapshots.save(capture(items_of_work(plan), is_secret=never), execution="e-2", reason="rollback")
    with snapshots.contents(snapshots.load(saved)) as pack:
        results = apply(plan, pack, tag="e-2")
    assert [result for result in results if result.result != "done"] == []
    end(snapshots, own)
    first = look()
    plan, results = roll_back(snapshots, own, tag="e-3")
    assert plan.conflicts == () and {result.result for result in results.values()} <= {"done"}
    return first, look()


def test_a_mode_comes_back_and_goes_again_while_the_content_grows(tmp_path, snapshots):
    log = tmp_path / "app.log"
    log.write_text("one\n")
    log.chmod(0o640)
    before = facts(log)
    saved = save(snapshots, log, kind="meta")
    run("chmod", "604", log)
    end(snapshots, saved)
    changed = facts(log)
    with log.open("a") as file:
        file.write("two\n")
    written = log.stat().st_mtime_ns

    assert back_and_forth(snapshots, saved, lambda: facts(log)) == (before, changed)
    assert log.read_text() == "one\ntwo\n"
    assert log.stat().st_mtime_ns == written


def test_nothing_of_a_content_is_saved(tmp_path, snapshots):
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.write(b"secret words " * 10_000)
        file.truncate(1 << 40)  # a terabyte: nobody reads that in a test
    saved = save(snapshots, big, kind="meta", limits=Limits(file_bytes=1, data_bytes=1))

    manifest = snapshots.load(saved)
    assert manifest.pack_bytes == 0
    assert [node.sha256 for node in manifest.nodes] == [""]
    assert (manifest.hash_only, manifest.named) == ((), (str(big),))


def test_a_tree_comes_back_and_links_in_it_lead_nowhere(tmp_path, snapshots):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("x")
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "file").write_text("x")
    (tree / "sub" / "file").chmod(0o600)
    (tree / "link").symlink_to(outside / "file")
    (tree / "folder-link").symlink_to(outside)
    os.mkfifo(tree / "pipe", 0o600)
    before = tree_facts(tree)
    saved = save(snapshots, tree, kind="meta-tree")
    assert not any("outside" in node.path for node in snapshots.load(saved).nodes)

    run("chmod", "-R", "u+rwX,go+rX", tree)
    end(snapshots, saved)
    changed = tree_facts(tree)
    assert changed != before
    (outside / "file").chmod(0o777)
    (tree / "new").write_text("made since")

    def look():
        return {path: fact for path, fact in tree_facts(tree).items() if not path.endswith("/new")}

    assert back_and_forth(snapshots, saved, look) == (before, changed)
    assert stat.S_IMODE((outside / "file").stat().st_mode) == 0o777


def test_a_folder_that_was_closed_is_closed_again_after_what_is_in_it(tmp_path, snapshots):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("x")
    (tree / "file").chmod(0o600)
    tree.chmod(0o300 if not ROOT else 0o000)
    if not ROOT:
        with pytest.raises(SnapshotImpossible, match="cannot be read"):
            save(snapshots, tree, kind="meta-tree")
        tree.chmod(0o700)
        return
    saved = save(snapshots, tree, kind="meta-tree")
    run("chmod", "-R", "755", tree)
    end(snapshots, saved)
    roll_back(snapshots, saved)
    assert stat.S_IMODE(tree.stat().st_mode) == 0
    assert stat.S_IMODE((tree / "file").stat().st_mode) == 0o600


def test_a_named_link_is_followed_to_what_it_changes(tmp_path, snapshots):
    (tmp_path / "file").write_text("x")
    (tmp_path / "file").chmod(0o600)
    (tmp_path / "link").symlink_to("file")
    saved = save(snapshots, tmp_path / "link", kind="meta")
    run("chmod", "644", tmp_path / "link")
    end(snapshots, saved)
    roll_back(snapshots, saved)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_a_pattern_saves_what_bash_would_list(tmp_path, snapshots):
    for name in ("a.conf", "b.conf", ".hidden.conf", "c.txt"):
        (tmp_path / name).write_text("x")
    saved = save(snapshots, tmp_path / "*.conf", kind="meta-glob")
    assert [os.path.basename(node.path) for node in snapshots.load(saved).nodes] == ["a.conf", "b.conf"]

    looked = capture([PlanItem("meta-glob", f"{tmp_path}/*.nothing")], is_secret=never)
    assert (looked.unsaved, looked.nodes) == ((), ())
    looked = capture([PlanItem("meta-glob", f"{tmp_path}/[[=a=]]*")], is_secret=never)
    assert looked.unsaved == (f"what {tmp_path}/[[=a=]]* lists is not saved",)


def test_other_names_of_a_file_are_no_obstacle_and_follow(tmp_path, snapshots):
    (tmp_path / "one").write_text("x")
    (tmp_path / "one").chmod(0o640)
    os.link(tmp_path / "one", tmp_path / "two")
    saved = save(snapshots, tmp_path / "one", kind="meta")
    run("chmod", "600", tmp_path / "one")
    end(snapshots, saved)
    _, results = roll_back(snapshots, saved)
    assert [result.result for result in results.values()] == ["done"]
    assert stat.S_IMODE((tmp_path / "two").stat().st_mode) == 0o640
    assert os.path.samefile(tmp_path / "one", tmp_path / "two")


def test_a_mode_that_somebody_changed_since_is_a_conflict(tmp_path, snapshots):
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o600)
    saved = save(snapshots, file, kind="meta")
    file.chmod(0o640)
    end(snapshots, saved)
    file.chmod(0o644)

    plan = plan_of(snapshots, saved)
    (step,) = plan.conflicts
    assert (step.state, step.action) == (State.CHANGED, Action.NONE)
    assert difference(step, None, None, str) == "mode: 0644 → 0600"
    roll_back(snapshots, saved, overruled=[str(file)])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_another_file_at_the_same_place_is_a_conflict_even_with_an_equal_mode(tmp_path, snapshots):
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o600)
    saved = save(snapshots, file, kind="meta")
    file.chmod(0o640)
    end(snapshots, saved)
    (tmp_path / "new").write_text("y")
    (tmp_path / "new").chmod(0o640)
    os.replace(tmp_path / "new", file)

    (step,) = plan_of(snapshots, saved).conflicts
    assert "it is another file than the one that was saved" in difference(step, None, None, str)


def test_what_is_gone_cannot_come_back_and_the_rest_does(tmp_path, snapshots):
    for name in ("gone", "kept"):
        (tmp_path / name).write_text("x")
        (tmp_path / name).chmod(0o600)
    saved = save(snapshots, tmp_path / "gone", tmp_path / "kept", kind="meta")
    run("chmod", "644", tmp_path / "gone", tmp_path / "kept")
    end(snapshots, saved)
    (tmp_path / "gone").unlink()
    plan, results = roll_back(snapshots, saved)
    assert [step.path for step in plan.lost] == [str(tmp_path / "gone")]
    assert [result.result for result in results.values()] == ["done"]
    assert stat.S_IMODE((tmp_path / "kept").stat().st_mode) == 0o600


def test_a_change_between_plan_and_step_is_seen(tmp_path, snapshots):
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o600)
    saved = save(snapshots, file, kind="meta")
    file.chmod(0o640)
    end(snapshots, saved)
    plan = plan_of(snapshots, saved)
    file.chmod(0o777)
    with snapshots.contents(snapshots.load(saved)) as pack:
        (result,) = apply(plan, pack, tag="e-2")
    assert result.result == "conflict"
    assert stat.S_IMODE(file.stat().st_mode) == 0o777


def test_too_many_paths_name_the_root_and_the_flag(tmp_path):
    for number in range(5):
        (tmp_path / f"f{number}").write_text("x")
    with pytest.raises(SnapshotImpossible) as caught:
        capture([PlanItem("meta-tree", str(tmp_path))], limits=Limits(entries=3), is_secret=never)
    assert str(tmp_path) in caught.value.message and "at most 3" in caught.value.message
    assert f"--no-snapshot-of {tmp_path}" in caught.value.hint

    looked = capture(
        [PlanItem("meta-tree", str(tmp_path))], limits=Limits(entries=3), leave_out=[str(tmp_path)], is_secret=never
    )
    assert looked.nodes == ()


# ── times ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_times_come_back_and_a_file_that_touch_made_goes_again(tmp_path, snapshots):
    old = tmp_path / "old"
    old.write_text("x" * 100)
    os.utime(old, ns=(1_000_000_001, 2_000_000_002))
    saved = save(snapshots, old, tmp_path / "new", kind="times")
    assert snapshots.load(saved).pack_bytes == 0
    run("touch", old, tmp_path / "new")
    end(snapshots, saved)
    touched = (old.stat().st_atime_ns, old.stat().st_mtime_ns)

    def look():
        return (old.stat().st_atime_ns, old.stat().st_mtime_ns), (tmp_path / "new").exists()

    assert back_and_forth(snapshots, saved, look) == (((1_000_000_001, 2_000_000_002), False), (touched, True))


def test_times_stay_where_somebody_wrote_since(tmp_path, snapshots):
    file = tmp_path / "file"
    file.write_text("x")
    os.utime(file, ns=(10, 10))
    saved = save(snapshots, file, kind="times")
    run("touch", file)
    end(snapshots, saved)
    file.write_text("more")
    plan = plan_of(snapshots, saved)
    assert [(step.state, step.action) for step in plan.steps] == [(State.BACK, Action.NONE)]


def test_a_file_that_touch_made_and_somebody_filled_is_a_conflict(tmp_path, snapshots):
    new = tmp_path / "new"
    saved = save(snapshots, new, kind="times")
    run("touch", new)
    end(snapshots, saved)
    new.write_text("words of somebody")
    assert [step.path for step in plan_of(snapshots, saved).conflicts] == [str(new)]


# ── attributes, owners, flags ────────────────────────────────────────────────────────────────────────────────────


def test_access_lists_and_attributes_come_back(tmp_path, snapshots):
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o640)
    run("setfacl", "-m", "u:65534:r", file)
    run("setfattr", "-n", "user.note", "-v", "first", file)
    before = facts(file)
    saved = save(snapshots, file, kind="meta")
    run("setfacl", "-m", "u:65533:rw", file)
    run("setfattr", "-n", "user.note", "-v", "second", file)
    run("setfattr", "-n", "user.more", "-v", "x", file)
    end(snapshots, saved)
    changed = facts(file)
    assert back_and_forth(snapshots, saved, lambda: facts(file)) == (before, changed)


def test_capabilities_come_back_and_their_file_is_kept_in_full(tmp_path, snapshots):
    file = tmp_path / "tool"
    shutil.copy("/bin/true", file)
    if not ROOT:
        with pytest.raises(subprocess.CalledProcessError):
            run("setcap", "cap_net_raw+ep", file)
        return
    run("setcap", "cap_net_raw+ep", file)
    before = facts(file)
    saved = save(snapshots, file, kind="meta")
    assert snapshots.load(saved).pack_bytes > 0
    run("chown", OTHER, file)
    end(snapshots, saved)
    changed = facts(file)
    assert changed[3] == ()
    assert back_and_forth(snapshots, saved, lambda: facts(file)) == (before, changed)


def test_a_set_id_file_that_was_given_away_comes_back_as_a_new_file(tmp_path, snapshots):
    tool = tmp_path / "tool"
    tool.write_text("trusted\n")
    tool.chmod(0o4755)
    saved = save(snapshots, tool, kind="meta")
    if ROOT:
        os.chown(tool, OTHER, OTHER)
    else:
        tool.chmod(0o666)
    end(snapshots, saved)
    with tool.open("r+") as held:  # who may write now keeps it open
        plan, results = roll_back(snapshots, saved)
        assert [step.action for step in plan.work] == [Action.WRITE]
        assert [result.result for result in results.values()] == ["done"]
        held.write("evil!!!")
    assert tool.read_text() == "trusted\n"
    assert stat.S_IMODE(tool.stat().st_mode) == 0o4755


def test_a_set_id_file_that_was_written_to_is_a_conflict(tmp_path, snapshots):
    tool = tmp_path / "tool"
    tool.write_text("trusted\n")
    tool.chmod(0o4755)
    saved = save(snapshots, tool, kind="meta")
    tool.chmod(0o666)
    end(snapshots, saved)
    tool.write_text("evil\n")
    assert [step.path for step in plan_of(snapshots, saved).conflicts] == [str(tool)]


def test_owners_of_a_tree_come_back_links_themselves_too(tmp_path, snapshots):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "file").write_text("x")
    (tree / "link").symlink_to("file")
    before = tree_facts(tree)
    saved = save(snapshots, tree, kind="meta-tree")
    if not ROOT:
        with pytest.raises(subprocess.CalledProcessError):
            run("chown", "-R", OTHER, tree)
        end(snapshots, saved)
        assert plan_of(snapshots, saved).work == ()
        return
    run("chown", "-R", f"{OTHER}:{OTHER}", tree)
    end(snapshots, saved)
    changed = tree_facts(tree)
    assert {fact[1] for fact in changed.values()} == {OTHER}
    assert back_and_forth(snapshots, saved, lambda: tree_facts(tree)) == (before, changed)


def test_flags_come_back_last_and_are_lifted_first(tmp_path, snapshots):
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o600)
    saved = save(snapshots, file, kind="flags")
    if not ROOT:
        with pytest.raises(subprocess.CalledProcessError):
            run("chattr", "+i", file)
        return
    try:
        run("chattr", "+d", file)
        file.chmod(0o644)
        run("chattr", "+i", file)
    except subprocess.CalledProcessError as error:
        assert "not supported" in error.stderr.lower()  # no file system with flags
        return
    end(snapshots, saved)

    def look():
        return stat.S_IMODE(file.stat().st_mode), set(run("lsattr", file).split()[0]) & set("id")

    try:
        assert back_and_forth(snapshots, saved, look) == ((0o600, set()), (0o644, {"i", "d"}))
    finally:
        run("chattr", "-i", file)


def test_a_flagged_file_whose_content_is_kept_comes_back_with_both(tmp_path, snapshots):
    file = tmp_path / "file"
    file.write_text("before")
    items = [PlanItem("file", str(file)), PlanItem("flags", str(file))]
    saved = snapshots.save(capture(items, is_secret=never), execution="e-1")
    file.write_text("after")
    if ROOT:
        subprocess.run(["chattr", "+i", str(file)], check=False, capture_output=True)
    end(snapshots, saved)
    _, results = roll_back(snapshots, saved)
    assert [(result.result, result.text) for result in results.values()] == [("done", "")]
    assert file.read_text() == "before"
    file.write_text("writable")


@pytest.mark.parametrize("place", ["file", "folder"])
def test_what_somebody_protected_since_stays_and_is_named(place, tmp_path, snapshots):
    file = tmp_path / "folder" / "file"
    file.parent.mkdir()
    file.write_text("before")
    saved = snapshots.save(capture([PlanItem("file", str(file))], is_secret=never), execution="e-1")
    file.write_text("after")
    end(snapshots, saved)
    pinned = file if place == "file" else file.parent
    done = subprocess.run(["chattr", "+i", str(pinned)], check=False, capture_output=True)
    try:
        _, results = roll_back(snapshots, saved)
    finally:
        subprocess.run(["chattr", "-i", str(pinned)], check=False, capture_output=True)
    told = [(result.result, result.text) for result in results.values()]
    if done.returncode:  # an ordinary user, or no file system with flags
        assert (told, file.read_text()) == ([("done", "")], "before")
        return
    said = f"somebody protected {pinned} since (chattr +i or +a): chattr -ia {pinned}, then go back again"
    assert (told, file.read_text()) == ([("failed", said)], "after")


def test_a_socket_and_a_device_have_metadata_like_anything(tmp_path, snapshots):
    import socket

    listener = socket.socket(socket.AF_UNIX)
    place = tmp_path / "s"
    folder = os.open(tmp_path, os.O_PATH)
    try:
        listener.bind(f"/proc/self/fd/{folder}/s")
    finally:
        os.close(folder)
    place.chmod(0o600)
    saved = save(snapshots, place, kind="meta")
    run("chmod", "666", place)
    end(snapshots, saved)
    roll_back(snapshots, saved)
    listener.close()
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_crash_before_the_end_is_on_record_shows_what_differs(tmp_path, snapshots):
    file = tmp_path / "file"
    file.write_text("x")
    file.chmod(0o600)
    saved = save(snapshots, file, kind="meta")
    file.chmod(0o644)
    plan, _ = roll_back(snapshots, saved)
    assert [step.state for step in plan.steps] == [State.DIFFERS]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [step.state for step in plan_of(snapshots, saved).steps] == [State.BACK]
    assert now_of(snapshots, saved)[0].meta
