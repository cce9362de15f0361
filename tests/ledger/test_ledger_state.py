"""Where the state folder is, and whom it lets in."""

from __future__ import annotations

import os
import pwd
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from guard.errors import StateDamaged, StateError, StateUnsafe, StateUnwritable
from guard.ledger import location
from guard.ledger.parents import check_parents
from guard.ledger.state import StateFolder, config_path, home_of_user, state_path
from tests.ledger.world import interpreter_for_others

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def passwd_home(tmp_path, monkeypatch):
    """A passwd entry whose home is below tmp_path, and environment variables that say something else."""
    home = tmp_path / "passwd-home"
    home.mkdir()
    entry = pwd.struct_passwd(("me", "x", os.geteuid(), 0, "", str(home), "/bin/sh"))
    monkeypatch.setattr("pwd.getpwuid", lambda uid: entry)
    return str(home)


@pytest.fixture
def ordinary(monkeypatch):
    """Not root, whoever runs the tests: root's place is another matter (test_ledger_moving)."""
    monkeypatch.setattr(location, "is_root", lambda: False)


def test_home_and_xdg_variables_do_not_move_the_state(passwd_home, ordinary):
    environ = {
        "HOME": "/elsewhere",
        "XDG_STATE_HOME": "/elsewhere",
        "XDG_CONFIG_HOME": "/elsewhere",
        "OPSAGENT_HOME": "",
    }
    assert state_path(environ, platform="linux") == passwd_home + "/.local/state/opsagent"
    assert config_path(environ, platform="linux") == passwd_home + "/.config/opsagent/config.toml"
    assert state_path(environ, platform="darwin") == passwd_home + "/Library/Application Support/opsagent"


def test_opsagent_home_moves_state_and_config_together():
    assert state_path({"OPSAGENT_HOME": "/srv/x/"}) == "/srv/x"
    assert config_path({"OPSAGENT_HOME": "/srv/x"}) == "/srv/x/config/config.toml"


def test_relative_opsagent_home_is_an_error_not_a_folder_of_the_current_directory():
    with pytest.raises(StateError, match="not an absolute path"):
        state_path({"OPSAGENT_HOME": "state"})


def test_user_without_passwd_entry_is_told_what_to_do(monkeypatch, ordinary):
    def missing(uid):
        raise KeyError(uid)

    monkeypatch.setattr("pwd.getpwuid", missing)
    with pytest.raises(StateError, match="no passwd entry") as caught:
        state_path({})
    assert "OPSAGENT_HOME=" in caught.value.hint


def test_home_that_is_not_there_is_not_created(monkeypatch, tmp_path):
    gone = str(tmp_path / "nonexistent")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: pwd.struct_passwd(("me", "x", uid, 0, "", gone, "")))
    with pytest.raises(StateError, match="does not exist"):
        home_of_user()
    assert not os.path.exists(gone)


def test_new_folder_and_files_are_for_the_owner_only(tmp_path):
    path = str(tmp_path / "deep" / "er" / "state")
    old = os.umask(0)
    try:
        folder = StateFolder.open(path)
        folder.key()
        with folder.folder("torn", create=True):
            pass
    finally:
        os.umask(old)
    assert [mode_of(path), mode_of(path + "/torn"), mode_of(path + "/key"), mode_of(path + "/format")] == [
        0o700,
        0o700,
        0o600,
        0o600,
    ]
    assert sorted(os.listdir(path)) == ["format", "key", "torn"]


def test_symlinked_folder_is_refused(tmp_path):
    real = tmp_path / "real"
    StateFolder.open(str(real))
    os.symlink(real, tmp_path / "state")
    with pytest.raises(StateUnsafe):
        StateFolder.open(str(tmp_path / "state"))


@pytest.mark.parametrize("name", ["key", "format"])
def test_symlinked_file_is_refused_and_its_target_untouched(tmp_path, name):
    target = tmp_path / "target"
    target.write_bytes(b"1" * 32)
    target.chmod(0o644)
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    os.symlink(target, state / name)
    with pytest.raises(StateUnsafe, match="link"):
        StateFolder.open(str(state)).key()
    assert mode_of(target) == 0o644


def test_fifo_in_place_of_a_file_is_refused_without_hanging(tmp_path):
    folder = StateFolder.open(str(tmp_path / "state"))
    os.mkfifo(tmp_path / "state" / "key", 0o600)
    with pytest.raises(StateUnsafe, match="not a regular file"):
        folder.key()


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777, 0o1777])
def test_folder_that_others_can_write_is_refused_with_the_command_that_helps(tmp_path, mode):
    path = tmp_path / "state"
    StateFolder.open(str(path))
    path.chmod(mode)
    with pytest.raises(StateUnsafe, match="written by others") as caught:
        StateFolder.open(str(path))
    assert f"chmod 0700 {path}" in caught.value.hint
    assert mode_of(path) == mode & 0o7777


def test_what_others_can_only_read_is_tightened_and_said(tmp_path):
    path = tmp_path / "state"
    StateFolder.open(str(path)).key()
    path.chmod(0o755)
    (path / "key").chmod(0o644)
    folder = StateFolder.open(str(path))
    folder.key()
    assert (mode_of(path), mode_of(path / "key")) == (0o700, 0o600)
    assert len(folder.notes) == 2
    assert "mode is now 0700" in folder.notes[0]


def test_somebody_elses_folder_keeps_its_mode_and_content(tmp_path):
    path = tmp_path / "etc"
    path.mkdir(mode=0o755)
    path.chmod(0o755)
    (path / "passwd").write_text("root:x:0:0")
    with pytest.raises(StateUnsafe, match="not a state folder"):
        StateFolder.open(str(path))
    path.chmod(0o700)
    with pytest.raises(StateUnsafe, match="such as passwd"):
        StateFolder.open(str(path))
    assert os.listdir(path) == ["passwd"]


def test_configuration_written_beforehand_is_no_strange_thing(tmp_path):
    (tmp_path / "state" / "config").mkdir(parents=True)
    (tmp_path / "state").chmod(0o700)
    assert StateFolder.open(str(tmp_path / "state")).path == str(tmp_path / "state")


def test_root_folder_is_refused():
    with pytest.raises(StateUnsafe):
        StateFolder.open("/")


def test_parent_that_everybody_can_write_is_refused_unless_sticky(tmp_path):
    parent = tmp_path / "open"
    parent.mkdir()
    parent.chmod(0o777)
    with pytest.raises(StateUnsafe, match="written by everybody"):
        StateFolder.open(str(parent / "state"))
    assert os.listdir(parent) == []
    parent.chmod(0o1777)
    StateFolder.open(str(parent / "state"))


def test_parent_of_another_user_is_refused(tmp_path, monkeypatch):
    """Its owner could move the folder away. The owner is real as root, and pretended by our own uid otherwise."""
    parent = tmp_path / "theirs"
    parent.mkdir()
    if os.geteuid() == 0:
        os.chown(parent, 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(StateUnsafe, match="belongs to user"):
        StateFolder.open(str(parent / "state"))
    assert os.listdir(parent) == []


@pytest.mark.parametrize("who", ["root", "user"])
def test_what_is_above_the_home_is_trusted_by_a_user_and_not_by_root(tmp_path, monkeypatch, who):
    server = tmp_path / "server"
    home = server / "home"
    home.mkdir(parents=True)
    real = os.geteuid()
    if who == "user" and real == 0:
        os.chown(home, 12345, 12345)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: pwd.struct_passwd(("me", "x", uid, 0, "", str(home), "/bin/sh")))
    server.chmod(0o777)
    if who == "root":
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        with pytest.raises(StateUnsafe, match="above the state folder"):
            StateFolder.open(str(home / "state"))
        assert os.listdir(home) == []
        return
    (home / "state").mkdir(mode=0o700)
    if real == 0:
        os.chown(home / "state", 12345, 12345)
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(StateUnsafe, match="written by everybody"):
        StateFolder.open(str(server / "state"))
    check_parents(str(home))


def test_file_in_the_way_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "state").write_text("")
    with pytest.raises(StateUnsafe):
        StateFolder.open(str(tmp_path / "state"))
    with pytest.raises(StateError):
        StateFolder.open(str(tmp_path / "state" / "below"))


def test_key_is_made_once_however_many_ask_first(tmp_path):
    path = str(tmp_path / "state")
    StateFolder.open(path)
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: StateFolder.open(path).key(), range(32)))
    assert len(keys) == 1
    assert sorted(os.listdir(path)) == ["format", "key"]


def test_cut_key_is_damage_and_not_replaced(tmp_path):
    path = tmp_path / "state"
    StateFolder.open(str(path)).key()
    os.truncate(path / "key", 10)
    with pytest.raises(StateDamaged, match="10 bytes instead of 32"):
        StateFolder.open(str(path)).key()
    assert os.path.getsize(path / "key") == 10


def test_folder_of_a_newer_version_is_left_alone(tmp_path):
    path = tmp_path / "state"
    StateFolder.open(str(path))
    (path / "format").write_text("2\n")
    folder = StateFolder.open(str(path))
    with pytest.raises(StateUnwritable, match="has format 2"), folder.locked(1):
        pass
    with pytest.raises(StateUnwritable, match="has format 2"), folder.folder("x", create=True):
        pass
    assert sorted(os.listdir(path)) == ["format", "lock"]
    (path / "format").write_text("one\n")
    with pytest.raises(StateDamaged):
        StateFolder.open(str(path))


def test_write_new_leaves_a_file_of_that_name_alone(tmp_path):
    folder = StateFolder.open(str(tmp_path / "state"))
    with folder.root() as root:
        assert folder.write_new("x", b"first", dir_fd=root)
        assert not folder.write_new("x", b"second", dir_fd=root)
        assert folder.read_file("x", dir_fd=root, limit_bytes=10) == b"first"
        with pytest.raises(StateDamaged, match="larger"):
            folder.read_file("x", dir_fd=root, limit_bytes=4)
    assert sorted(os.listdir(tmp_path / "state")) == ["format", "x"]


def test_folder_of_another_user_is_refused(tmp_path):
    """As root: a folder given to another uid. As an ordinary user: root's own `/` children serve."""
    if os.geteuid() == 0:
        path = tmp_path / "state"
        StateFolder.open(str(path))
        os.chown(path, 65534, 65534)
        with pytest.raises(StateUnsafe, match="belongs to user 65534"):
            StateFolder.open(str(path))
    else:
        with pytest.raises((StateUnsafe, StateUnwritable)):
            StateFolder.open("/usr")


def test_ordinary_user_is_refused_a_folder_of_root(tmp_path):
    if os.geteuid() != 0:
        with pytest.raises((StateUnsafe, StateUnwritable)):
            StateFolder.open("/root/opsagent-state")
        return
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and str(folder).startswith("/tmp/"):
            folder.chmod(folder.stat().st_mode | 0o711)
    StateFolder.open(str(tmp_path / "state"))
    (tmp_path / "state").chmod(0o700)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from guard.ledger.state import StateFolder\nfrom guard.errors import StateError\n"
        "try:\n    StateFolder.open(sys.argv[2])\nexcept StateError as error:\n    print(error.code)"
    )
    done = subprocess.run(
        [
            "setpriv",
            "--reuid",
            "65534",
            "--clear-groups",
            interpreter_for_others(),
            "-I",
            "-c",
            code,
            ROOT,
            str(tmp_path / "state"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("state.unwritable\n", "")
