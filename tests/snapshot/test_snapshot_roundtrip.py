"""What was changed comes back with everything that belongs to it, and the way back can itself be taken back."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guard.hands.capture import capture
from guard.hands.restore import apply
from guard.ledger.plans import items_of_work
from guard.saved import State
from guard.types import PlanItem
from tests.snapshot.trees import end, never, now_of, plan_of, roll_back, save, snapshots_in, state_of


def shell(text, cwd):
    subprocess.run(["bash", "-ec", text], cwd=cwd, check=True)


def furnished(folder):
    """A tree with one of each kind of thing; owners and capabilities only where we may set them."""
    folder.mkdir()
    shell(
        """
        printf 'one\\ntwo\\n' > config; touch -d 2020-01-02 config
        mkdir -p deep/er; printf '\\0binary' > deep/er/blob; chmod 2750 deep
        setfattr -n user.note -v kept config
        setfacl -m u:1:r config; setfacl -d -m u:1:rwx deep/er
        ln -s config link; ln -s /nowhere broken; mkfifo -m 640 pipe
        printf same > first; ln first second
        truncate -s 8M sparse; printf end >> sparse
        : > empty; chmod 4711 deep/er/blob; mkdir locked; : > locked/in; chmod 555 locked
        printf x > $'odd\\nname \\xff'
        """,
        folder,
    )
    if os.geteuid() == 0:
        shell("chown 1:2 config deep/er; cp /bin/true tool; setcap cap_net_raw+ep tool; chown -h 3 link", folder)
    return folder


def test_every_kind_of_thing_comes_back_and_the_way_back_can_be_taken_back(tmp_path):
    tree = furnished(tmp_path / "tree")
    snapshots = snapshots_in(tmp_path / "state")
    before = state_of(tree)
    saved = save(snapshots, tree)
    assert snapshots.verify(saved) == ()
    shell(
        """
        sed -i s/one/ONE/ config; rm -r deep; printf changed > first; rm link broken pipe; mkdir link; : > link/new
        printf x > pipe; rm sparse; printf y >> empty; chmod 600 second; mkdir -p made/of; : > made/of/it
        chmod 755 locked; rm locked/in; setfattr -x user.note second 2>/dev/null || :
        """,
        tree,
    )
    if os.geteuid() == 0:
        shell("chown 9:9 tool; chown -R 5 locked", tree)
    end(snapshots, saved)
    changed = state_of(tree)

    own = roll_back_with_own_snapshot(snapshots, saved)
    assert state_of(tree) == before
    assert os.stat(tree / "sparse").st_blocks * 512 < 1 << 20
    assert os.path.samefile(tree / "first", tree / "second")

    roll_back_with_own_snapshot(snapshots, own)
    assert state_of(tree) == changed


def roll_back_with_own_snapshot(snapshots, saved):
    """As a rollback does it: what it will touch is saved first, and how it ended is recorded. Returns that snapshot."""
    plan = plan_of(snapshots, saved)
    assert plan.conflicts == ()
    items = items_of_work(plan)
    own = snapshots.save(capture(items, is_secret=never), execution="e-2", reason="rollback")
    with snapshots.contents(snapshots.load(saved)) as pack:
        results = apply(plan, pack, tag="e-2")
    assert [result for result in results if result.result != "done"] == []
    end(snapshots, own)
    return own


def test_a_path_that_was_not_there_goes_again_with_the_folders_made_for_it(tmp_path):
    (tmp_path / "tree").mkdir()
    wanted = tmp_path / "tree" / "a" / "b" / "file"
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, wanted)
    wanted.parent.mkdir(parents=True)
    wanted.write_text("made")
    end(snapshots, saved)
    _, results = roll_back(snapshots, saved)
    assert {result.result for result in results.values()} == {"done"}
    assert os.listdir(tmp_path / "tree") == []


def test_a_change_of_time_alone_comes_back(tmp_path):
    file = tmp_path / "file"
    file.write_text("text")
    os.utime(file, ns=(0, 1_500_000_000_123_456_789))
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, file)
    os.utime(file)
    end(snapshots, saved)
    roll_back(snapshots, saved)
    assert file.stat().st_mtime_ns == 1_500_000_000_123_456_789


def test_a_link_in_the_plan_saves_what_it_points_to(tmp_path):
    (tmp_path / "real").write_text("before")
    (tmp_path / "name").symlink_to("real")
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, tmp_path / "name")
    (tmp_path / "name").write_text("after")
    end(snapshots, saved)
    roll_back(snapshots, saved)
    assert (tmp_path / "real").read_text() == "before"
    assert (tmp_path / "name").is_symlink()


def test_hard_links_that_an_editor_broke_are_joined_again(tmp_path):
    (tmp_path / "one").write_text("text\n")
    os.link(tmp_path / "one", tmp_path / "two")
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, tmp_path / "one", tmp_path / "two")
    shell("sed -i s/text/other/ one", tmp_path)
    end(snapshots, saved)
    roll_back(snapshots, saved)
    assert os.path.samefile(tmp_path / "one", tmp_path / "two")
    assert (tmp_path / "two").read_text() == "text\n"


def test_equal_contents_are_kept_once(tmp_path):
    for name in "abc":
        (tmp_path / name).write_bytes(b"x" * 100_000)
    snapshots = snapshots_in(tmp_path / "state")
    manifest = snapshots.load(save(snapshots, *(tmp_path / name for name in "abc")))
    assert manifest.pack_bytes == 100_000
    assert len(manifest.blobs) == 1


def test_a_file_of_holes_alone_takes_no_space_and_comes_back(tmp_path):
    with open(tmp_path / "holes", "wb") as file:
        file.truncate(64 << 20)
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, tmp_path / "holes")
    assert snapshots.load(saved).pack_bytes == 0
    (tmp_path / "holes").write_text("short")
    end(snapshots, saved)
    roll_back(snapshots, saved)
    info = os.stat(tmp_path / "holes")
    assert (info.st_size, info.st_blocks) == (64 << 20, 0)


def test_what_is_secret_keeps_a_hash_and_no_bytes(tmp_path):
    (tmp_path / "key").write_text("very secret words")
    snapshots = snapshots_in(tmp_path / "state")
    item = PlanItem("file", str(tmp_path / "key"))
    saved = snapshots.save(capture([item], is_secret=lambda path: path.endswith("/key")), execution="e-1")
    folder = tmp_path / "state" / "snapshots" / saved
    assert not any(b"secret words" in file.read_bytes() for file in folder.iterdir())
    (tmp_path / "key").write_text("another")
    end(snapshots, saved)
    plan, results = roll_back(snapshots, saved)
    assert [step.state for step in plan.steps] == [State.NOT_SAVED]
    assert results == {}
    assert (tmp_path / "key").read_text() == "another"


def test_what_was_closed_is_opened_again_and_then_what_is_in_it(tmp_path):
    tree = tmp_path / "tree"
    (tree / "folder").mkdir(parents=True)
    (tree / "folder" / "in").write_text("in")
    (tree / "file").write_text("text")
    snapshots = snapshots_in(tmp_path / "state")
    before = state_of(tree)
    saved = save(snapshots, tree)
    (tree / "folder" / "in").write_text("IN")
    (tree / "folder").chmod(0)
    (tree / "file").chmod(0)
    end(snapshots, saved)
    plan = plan_of(snapshots, saved)
    closed = os.geteuid() != 0  # root looks into everything at once
    assert [f"{tree}/folder cannot be looked into now" in note for note in plan.notes] == [True] * closed
    roll_back_with_own_snapshot(snapshots, saved)
    assert (tree / "file").read_text() == "text"
    if closed:
        # What happened inside is not on record, so it is shown and taken back as what it is: a difference.
        _, results = roll_back(snapshots, saved)
        assert {result.result for result in results.values()} == {"done"}
    assert state_of(tree) == before


def test_paths_left_out_are_neither_saved_nor_removed(tmp_path):
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "in").write_text("in")
    (tmp_path / "tree" / "out").write_text("out")
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, tmp_path / "tree", leave_out=[str(tmp_path / "tree" / "out")])
    (tmp_path / "tree" / "in").write_text("IN")
    (tmp_path / "tree" / "out").write_text("OUT")
    end(snapshots, saved)
    roll_back(snapshots, saved)
    assert (tmp_path / "tree" / "in").read_text() == "in"
    assert (tmp_path / "tree" / "out").read_text() == "OUT"


NAMES = ("a", "b", "d/a", "d/b", "d/e/a")
EDITS = st.lists(
    st.tuples(
        st.sampled_from(
            (
                "write",
                "append",
                "delete",
                "mkdir",
                "rename",
                "chmod",
                "symlink",
                "hardlink",
                "fifo",
                "mtime",
                "attribute",
            )
        ),
        st.sampled_from((*NAMES, "d", "d/e", "new", "new/x")),
        st.sampled_from(NAMES),
    ),
    max_size=8,
)


def edit(root, kind, name, other):
    """One change; one that is impossible there changes nothing."""
    path, second = os.path.join(root, name), os.path.join(root, other)
    try:
        if kind in ("write", "append"):
            with open(path, "w" if kind == "write" else "a", opener=lambda p, f: os.open(p, f | os.O_NONBLOCK)) as file:
                file.write(f"{kind} {name}\n")
        elif kind == "delete":
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        elif kind == "mkdir":
            os.mkdir(path)
        elif kind == "rename":
            os.rename(second, path)
        elif kind == "chmod":
            os.chmod(path, 0o750 if os.path.isdir(path) else 0o640)
        elif kind == "symlink":
            os.symlink(other, path)
        elif kind == "hardlink":
            os.link(second, path)
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "mtime":
            os.utime(path, ns=(1, 1_600_000_000_000_000_000))
        elif kind == "attribute":
            os.setxattr(path, "user.edit", b"set", follow_symlinks=False)
    except OSError:
        pass


@pytest.mark.guarantee("G-ROLLBACK-UNDO")
@settings(max_examples=40, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=EDITS, second=EDITS)
def test_any_edits_are_taken_back_exactly(tmp_path, first, second):
    with tempfile.TemporaryDirectory(dir=tmp_path) as folder:
        root = os.path.join(folder, "tree")
        os.makedirs(os.path.join(root, "d", "e"))
        for name in NAMES:
            with open(os.path.join(root, name), "w") as file:
                file.write(name)
        for one in first:
            edit(root, *one)
        snapshots = snapshots_in(os.path.join(folder, "state"))
        before = state_of(root)
        saved = save(snapshots, root)
        for one in second:
            edit(root, *one)
        end(snapshots, saved)
        changed = state_of(root)
        own = roll_back_with_own_snapshot(snapshots, saved)
        assert state_of(root) == before
        assert {step.state for step in plan_of(snapshots, saved).steps} <= {State.BACK}
        roll_back_with_own_snapshot(snapshots, own)
        assert state_of(root) == changed


@pytest.mark.parametrize("exact", [True, False])
def test_what_was_looked_at_is_what_is_looked_at_again(tmp_path, exact):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_text("x")
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, tmp_path / "d", kind="path" if exact else "file")
    assert [node.path for node in now_of(snapshots, saved)] == [node.path for node in snapshots.load(saved).nodes]
    assert len(snapshots.load(saved).nodes) == (1 if exact else 2)
