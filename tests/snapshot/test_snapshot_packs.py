"""Packs are read back as they were written, or the damage is said; old ones go, needed ones stay."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from guard.errors import NoWayBack, StateDamaged
from guard.ledger.formats import Malformed
from guard.ledger.manifests import manifest_bytes, manifest_of, states_bytes, states_of
from guard.saved import Node
from tests.snapshot.trees import end, roll_back, save, snapshots_in


@pytest.fixture
def kept(tmp_path):
    """(snapshots, id, its folder, the file that was saved)."""
    (tmp_path / "file").write_bytes(os.urandom(50_000))
    (tmp_path / "small").write_text("small")
    snapshots = snapshots_in(tmp_path / "state")
    saved = save(snapshots, tmp_path / "file", tmp_path / "small")
    return snapshots, saved, tmp_path / "state" / "snapshots" / saved, tmp_path / "file"


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_files_are_ours_alone(kept):
    _, _, folder, _ = kept
    assert {name: stat.S_IMODE((folder / name).stat().st_mode) for name in os.listdir(folder)} == {
        "pack": 0o600,
        "manifest": 0o600,
    }
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_log_names_the_manifest(kept, tmp_path):
    snapshots, saved, _, _ = kept
    log = (tmp_path / "state" / "log" / "000001.jsonl").read_text()
    assert snapshots.load(saved).sha256 in log
    assert snapshots.of_execution("e-1") == saved
    assert snapshots.of_execution("e-2") is None


@pytest.mark.guarantee("G-SNAPSHOT-WHOLE")
def test_a_flipped_byte_is_found_and_never_put_back(kept):
    snapshots, saved, folder, file = kept
    file.write_text("changed")
    end(snapshots, saved)
    flip(folder / "pack", 1000)
    (problem,) = snapshots.verify(saved)
    assert "has another hash" in problem
    _, results = roll_back(snapshots, saved)
    assert results[str(file)].result == "failed"
    assert file.read_text() == "changed"
    assert sorted(os.listdir(file.parent)) == ["file", "home", "small", "state"]


def test_a_cut_pack_and_a_lost_pack_are_found(kept):
    snapshots, saved, folder, _ = kept
    os.truncate(folder / "pack", 100)
    assert any("is cut" in problem for problem in snapshots.verify(saved))
    (folder / "pack").unlink()
    assert "pack is gone" in snapshots.verify(saved)[0]


@pytest.mark.guarantee("G-SNAPSHOT-WHOLE")
def test_every_cut_and_every_flipped_byte_of_a_manifest_is_found(kept):
    snapshots, saved, folder, _ = kept
    whole = (folder / "manifest").read_bytes()
    for cut in range(0, len(whole), 7):
        (folder / "manifest").write_bytes(whole[:cut])
        with pytest.raises(StateDamaged):
            snapshots.load(saved)
    (folder / "manifest").write_bytes(whole)
    for position in range(0, len(whole), 13):
        flip(folder / "manifest", position)
        assert snapshots.verify(saved) != (), position
        flip(folder / "manifest", position)
    assert snapshots.verify(saved) == ()


def test_what_is_no_id_makes_no_path(kept):
    snapshots, _, _, _ = kept
    for name in ("", "s-", "../log", "s-../../log", "s-1/../s-1", "S-1", "s-" + "a" * 80):
        with pytest.raises((NoWayBack, StateDamaged)):
            snapshots.load(name)


def test_a_snapshot_without_a_manifest_does_not_exist(kept):
    snapshots, saved, folder, _ = kept
    (folder / "manifest").unlink()
    with pytest.raises(NoWayBack):
        snapshots.load(saved)
    assert snapshots.listed() == ()


def test_old_ones_go_and_needed_ones_stay(tmp_path):
    (tmp_path / "file").write_text("x")
    snapshots = snapshots_in(tmp_path / "state")
    ids = []
    for _ in range(5):
        snapshots._clock.utc_ms += 1000
        ids.append(save(snapshots, tmp_path / "file"))
    removed = snapshots.prune(keep=2, is_needed=lambda manifest: manifest.id == ids[0])
    assert removed == (ids[1], ids[2])
    assert {one.id for one in snapshots.listed()} == {ids[0], ids[3], ids[4]}


def test_what_a_crash_left_goes_when_it_is_old(kept, tmp_path):
    snapshots, saved, folder, _ = kept
    unfinished = folder.parent / "s-unfinished"
    unfinished.mkdir(mode=0o700)
    (unfinished / "pack").write_bytes(b"half")
    now_s = snapshots._clock.utc_ms / 1000
    os.utime(unfinished, (now_s - 10, now_s - 10))
    assert snapshots.prune(is_needed=lambda manifest: True) == ()
    os.utime(unfinished, (now_s - 4000, now_s - 4000))
    assert snapshots.prune(is_needed=lambda manifest: True) == ("s-unfinished",)
    assert snapshots.ids() == (saved,)


NODES = st.builds(
    Node,
    path=st.text(st.characters(exclude_characters="\0"), min_size=1, max_size=20).map(
        lambda text: "/" + text.replace("..", "")
    ),
    kind=st.sampled_from(["file", "dir", "symlink", "fifo", "device", "absent"]),
    mode=st.integers(0, 0o7777),
    uid=st.integers(0, 2**32 - 1),
    mtime_ns=st.integers(-(2**62), 2**62),
    size=st.integers(0, 2**62),
    sha256=st.sampled_from(["", "a" * 64]),
    link=st.text(max_size=10),
    xattrs=st.lists(st.tuples(st.text(max_size=8), st.binary(max_size=8).map(bytes.hex)), max_size=3).map(tuple),
    saved=st.booleans(),
)


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(nodes=st.lists(NODES, max_size=4))
def test_nodes_survive_their_bytes(nodes):
    assert states_of(states_bytes("s-1", nodes), "s-1") == tuple(nodes)


@pytest.mark.parametrize(
    "damage",
    [
        {"path": "relative"},
        {"path": "/a/../../etc/passwd"},
        {"path": "/nul\0byte"},
        {"kind": "socket"},
        {"mode": 0o17777},
        {"mode": "0644"},
        {"size": -1},
        {"sha256": "xyz"},
        {"unknown": 1},
        {"xattrs": [["user.a"]]},
    ],
)
def test_a_manifest_with_a_node_that_cannot_be_is_refused(kept, damage):
    import json
    from hashlib import sha256

    from guard.ledger.formats import encoded

    snapshots, saved, _, _ = kept
    lines = manifest_bytes(snapshots.load(saved)).splitlines(keepends=True)[:-1]
    position = next(number for number, line in enumerate(lines) if b'"node"' in line)
    node = json.loads(lines[position])["node"]
    lines[position] = encoded({"node": {**node, **damage}})
    body = b"".join(lines)
    with pytest.raises(Malformed):
        manifest_of(body + encoded({"end": len(lines), "sha256": sha256(body).hexdigest()}))


def test_a_snapshot_of_format_1_is_read_as_it_was_meant(tmp_path):
    golden = Path(__file__).parents[1] / "golden" / "snapshot-format-1"
    folder = tmp_path / "state" / "snapshots" / "s-golden"
    snapshots = snapshots_in(tmp_path / "state")
    folder.mkdir(parents=True, mode=0o700)
    folder.parent.chmod(0o700)
    for name in ("manifest", "after", "pack"):
        (folder / name).write_bytes((golden / name).read_bytes())
        (folder / name).chmod(0o600)
    assert snapshots.verify("s-golden") == ()
    manifest = snapshots.load("s-golden")
    assert (manifest.execution, manifest.reason, manifest.roots, manifest.left_out) == (
        "e-golden",
        "exec",
        ("/srv/www",),
        ("/srv/www/cache",),
    )
    assert [(node.path.rpartition("/")[2], node.kind, node.saved) for node in manifest.nodes] == [
        ("www", "dir", False),
        ("again", "file", True),
        ("conf", "file", True),
        ("holes", "file", True),
        ("key", "file", False),
        ("link", "symlink", False),
        ("new", "absent", False),
        ("null", "device", False),
        ("odd\udcff", "fifo", False),
    ]
    with snapshots.contents(manifest) as pack:
        assert pack.read(manifest.nodes[2].sha256, 100) == b"server {}\n"
        assert pack.read(manifest.nodes[3].sha256, 1 << 20) == bytes(65536) + b"end"
    assert [node.kind for node in snapshots.after("s-golden")] == ["file", "socket"]
    # Written again it is the same bytes: what this version writes is what that version wrote.
    assert manifest_bytes(manifest) == (golden / "manifest").read_bytes()
