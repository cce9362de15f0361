"""Without Landlock: reads of whole trees in a namespace, in which keys are closed; and what it takes and shows."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

import pytest

from guard.errors import CannotRun, SandboxUnavailable
from guard.hands import sandbox, sweep
from guard.hands.environment import build_environment
from guard.hands.process import Program, run_child
from guard.hands.sandbox import UNCONFINED, Sandbox, landlock, missing, space, space_helper, worker
from guard.hands.sandbox.kernel import probe
from guard.hands.sandbox.report import GO_ON, Notes
from guard.hands.targets.local import LocalTarget

WITHOUT_LANDLOCK = dataclasses.replace(probe(), landlock_abi=0)
NEITHER = dataclasses.replace(WITHOUT_LANDLOCK, namespaces=False)
KINDS = worker.KINDS if os.geteuid() == 0 else (worker.USER,)


@pytest.fixture(params=KINDS)
def kind(request, monkeypatch):
    monkeypatch.setattr(sandbox, "KINDS", (request.param,))
    return request.param


@pytest.fixture
def target(kind):
    made = LocalTarget(WITHOUT_LANDLOCK)
    yield made
    made.close()


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "somebody"
    (folder / ".aws").mkdir(parents=True)
    (folder / ".aws/credentials").write_text("the key\n")
    (folder / ".pgpass").write_text("the key\n")
    (folder / "notes").write_text("nothing\n")
    return folder


def read(target, command, home, *, masked=True, **more):
    env = {**build_environment().env, "HOME": str(home), **more.pop("env", {})}
    return target.run(command, cwd=str(home), profile="local", env=env, timeout_s=30, masked=masked, **more)


def worker_of(target, home):
    [found] = [each for each in target._sandbox._pool._workers.values() if each.key.home == str(home)]
    return found


@pytest.mark.guarantee("G-R0-SPACE")
def test_a_tree_is_read_without_the_keys_in_it(target, home):
    result = read(target, "grep -rs . . ; ls -A .aws; cat .pgpass; echo $?", home)
    assert result.enforced == "userns"
    assert result.stdout.text == "./notes:nothing\n1\n"
    assert {str(home / ".aws"), str(home / ".pgpass"), "/dev/*"} <= {*result.masked}
    assert any("all mounts look read-only there" in note for note in result.notes)


def test_what_reads_no_tree_sees_the_machine_as_it_is(target, home):
    shows = "findmnt -no OPTIONS /; stat -c %U /etc/passwd"
    plain = target.run(shows, cwd="/", profile="none", env=build_environment().env, timeout_s=30)
    result = read(target, shows, home, masked=False)
    assert (result.enforced, result.stdout.text, result.notes) == ("seccomp", plain.stdout.text, ())


@pytest.mark.guarantee("G-R0-SPACE")
def test_nothing_is_written_whatever_the_way(target, home):
    command = (
        "echo x > notes; rm notes; : > new; mkdir d; ln notes l; chmod 600 notes; touch -d 2001-01-01 notes; "
        'echo kept > "$TMPDIR/a" && cat "$TMPDIR/a"; echo gone > /dev/null && echo fine'
    )
    before = os.stat(home / "notes")
    result = read(target, command, home)
    assert result.stdout.text == "kept\nfine\n"
    assert sorted(os.listdir(home)) == [".aws", ".pgpass", "notes"]
    assert os.stat(home / "notes") == before
    assert ("openat", str(home / "new")) in {(each.operation, each.path) for each in result.interference}


def test_a_key_that_appears_later_is_closed_in_the_next_run(target, home):
    assert "the key" not in read(target, "cat .netrc", home).stdout.text
    (home / ".netrc").write_text("the key\n")
    assert read(target, "cat .netrc", home).stdout.text == ""
    # Replaced, as programs do it: what was put over the old one went with it.
    (home / "new").write_text("the key\n")
    (home / "new").rename(home / ".pgpass")
    assert read(target, "cat .pgpass", home).stdout.text == ""


def test_what_a_run_is_given_by_name_is_open_and_what_lies_beside_it_is_not(target, home):
    (home / ".aws/other").write_text("another key\n")
    named = {"AWS_SHARED_CREDENTIALS_FILE": str(home / ".aws/credentials")}
    result = read(target, "cat .aws/credentials; cat .aws/other", home, env=named)
    assert result.stdout.text == "the key\n"
    assert str(home / ".aws/other") in result.masked


@pytest.mark.guarantee("G-R0-SPACE")
def test_the_state_folder_is_closed(target, home, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    (state / "log").write_text("approvals\n")
    result = read(target, f"cat {state}/log; grep -r . {state}", home, hidden=[str(state)])
    assert result.stdout.text == ""


def test_exit_codes_signals_and_output_are_those_of_a_plain_run(target, home):
    for command in ("exit 7", "kill -9 $$", "echo a; echo b >&2; false", "printf '\\xff\\0'; sleep 30 & exit 3"):
        plain = target.run(command, cwd="/", profile="none", env=build_environment().env, timeout_s=30)
        result = read(target, command, home)
        assert (result.exit_code, result.stdout.text, result.stderr.text) == (
            plain.exit_code,
            plain.stdout.text,
            plain.stderr.text,
        )


def test_words_that_are_no_text_arrive_as_they_are(target, home):
    result = read(target, "printf '%s' \"$ODD\" | od -An -tx1", home, env={"ODD": "a\udcff"})
    assert result.stdout.text.split() == ["61", "ff"]


def test_its_limits_are_set_before_it_begins(target, home):
    result = read(target, "ulimit -n; ulimit -c; ulimit -f", home)
    assert result.stdout.text.split() == ["4096", "0", str((512 << 20) // 1024)]
    assert not any("limits" in note for note in result.notes)


def test_a_time_limit_ends_all_of_it(target, home):
    env = {**build_environment().env, "HOME": str(home)}
    result = target.run(
        "setsid sleep 818.25 & sleep 818.25", cwd="/", profile="local", env=env, timeout_s=0.5, masked=True
    )
    assert result.timed_out
    assert subprocess.run(["pgrep", "-f", "sleep 818.25"], capture_output=True).returncode == 1


def test_the_helper_is_never_taken_for_what_a_run_left(target, home):
    read(target, "true", home)
    bound = worker_of(target, home)
    helper = bound._helper.pid
    assert helper in sweep.HELPERS
    for _ in range(3):
        read(target, "(setsid env -i sleep 818.5 &) ; true", home)
    # It may have been replaced, because something changed beside a key: then it ended by itself.
    assert bound._helper.poll() in (None, 0)
    target.close()
    assert bound._helper.returncode == 0
    assert helper not in sweep.HELPERS


def test_a_helper_that_was_ended_is_replaced(target, home):
    assert read(target, "echo one", home).stdout.text == "one\n"
    for bound in target._sandbox._pool._workers.values():
        if bound.key.space:
            bound._helper.kill()
            bound._helper.wait()
    assert read(target, "echo two", home).stdout.text == "two\n"


def test_a_helper_that_ends_while_it_is_asked_starts_nothing(target, home, monkeypatch):
    read(target, "true", home)
    bound = worker_of(target, home)
    monkeypatch.setattr(bound, "is_usable", lambda: True)
    bound._helper.kill()
    bound._helper.wait()
    usable = iter([True])
    monkeypatch.setattr(bound, "is_usable", lambda: next(usable, False))
    assert read(target, "echo again", home).stdout.text == "again\n"


def test_commands_cannot_end_the_helper_or_look_into_it(target, home, monkeypatch):
    monkeypatch.setattr(landlock.Reach, "is_current", lambda self: True)  # the same helper for both
    read(target, "true", home)
    bound = worker_of(target, home)
    helper = bound._helper.pid
    result = read(
        target,
        f"kill -9 {helper}; kill -9 -- -{helper}; kill -0 {os.getpid()}; "
        f"cat /proc/{helper}/environ /proc/{helper}/mem /proc/{os.getpid()}/environ | head -c1; true",
        home,
    )
    assert bound._helper.poll() is None
    assert result.stdout.text == ""


def test_a_folder_that_cannot_be_entered_and_a_program_that_is_not_there_say_so(target, home):
    env = build_environment().env
    bound = target._sandbox.worker("local", home=str(home), masked=True)

    def start(argv, cwd):
        return run_child(
            Program(argv, env, spawner=lambda start: bound.spawn(start, Notes())),
            cwd=cwd,
            timeout_s=9,
            leave_nothing=True,
        )

    with pytest.raises(CannotRun, match="is missing"):
        start(["/nowhere/bash"], "/")
    with pytest.raises(CannotRun, match="cannot be entered"):
        start(["/bin/true"], str(home / "absent"))
    assert start(["/bin/true"], "/").exit_code == 0


def test_where_mounts_change_one_by_one_it_holds_as_well(kind, home, monkeypatch):
    plan = space.SpaceWorker._plan
    monkeypatch.setattr(space.SpaceWorker, "_plan", lambda self, helper: {**plan(self, helper), "mount_setattr": 0})
    target = LocalTarget(WITHOUT_LANDLOCK)
    # The last line for a place is about what is on top there.
    shown = "awk '{top[$2] = $4} END {for (place in top) if (top[place] !~ /^ro/) print place}' /proc/self/mounts; "
    assert read(target, shown + "cat .pgpass; head -c1 /dev/urandom | wc -c", home).stdout.text == "1\n"
    target.close()


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        ({"closed": ("/etc/passwd",), "closed_file": "/etc/hostname"}, "the canary /etc/passwd was not stopped"),
        ({"mount_setattr": 0, "own_folder": "/proc"}, "the canary new folder failed for another reason"),
        ({"closed_folder": "/nowhere", "closed": ("/etc",)}, None),
    ],
)
def test_a_namespace_that_does_not_hold_is_not_used(kind, spoilt, said, monkeypatch):
    plan = space.SpaceWorker._plan
    monkeypatch.setattr(space.SpaceWorker, "_plan", lambda self, helper: {**plan(self, helper), **spoilt})
    made = Sandbox(WITHOUT_LANDLOCK)
    assert made.space() == ""
    assert made.measure().mechanism == "seccomp"
    if said:
        assert said in made.no_space_because
    with pytest.raises(SandboxUnavailable, match="secret paths cannot be closed"):
        made.worker("local", masked=True)
    made.close()


def test_a_supervisor_that_does_not_refuse_is_found_out(kind, monkeypatch):
    monkeypatch.setattr(space.Supervisor, "_decided", lambda self, *arguments: GO_ON)
    made = Sandbox(WITHOUT_LANDLOCK)
    assert made.space() == ""
    assert "was not stopped" in made.no_space_because
    made.close()


def test_profiles_with_one_right_more_are_never_in_it(target):
    assert target.enforcement().mechanism == "userns"
    for profile in ("observe", "netadm", "block"):
        with pytest.raises(SandboxUnavailable, match="secret paths cannot be closed"):
            target._sandbox.worker(profile, masked=True)


@pytest.mark.guarantee("G-R0-SPACE")
def test_what_needs_closed_keys_never_runs_without_a_sandbox(target, home):
    for profile in UNCONFINED:
        with pytest.raises(SandboxUnavailable, match="nothing closes secret paths"):
            target.run(
                "touch ran", cwd=str(home), profile=profile, env=build_environment().env, timeout_s=9, masked=True
            )
    assert not (home / "ran").exists()


def test_without_a_supervisor_there_is_no_namespace():
    made = Sandbox(dataclasses.replace(WITHOUT_LANDLOCK, notify=False))
    assert (made.space(), made.measure().mechanism) == ("", "none")
    made.close()


def test_with_landlock_nothing_needs_one():
    made = Sandbox(probe())
    assert made.space() == ""
    assert made.worker("local", masked=True).mechanism == "strict"
    made.close()


class TestWhyThereIsNone:
    """The reason is found in the machine's own settings, and each is said with what mends it."""

    @pytest.mark.parametrize(
        ("setting", "value", "said"),
        [
            ("kernel/apparmor_restrict_unprivileged_userns", 1, "AppArmor"),
            ("kernel/unprivileged_userns_clone", 0, "Debian"),
            ("user/max_user_namespaces", 0, "the kernel is told to make none"),
            ("user/max_mnt_namespaces", 0, "no mount namespaces"),
        ],
    )
    def test_a_switch(self, setting, value, said, monkeypatch):
        monkeypatch.setattr(missing.os, "geteuid", lambda: 1000)
        found = missing.why_no_space("Operation not permitted", {f"/proc/sys/{setting}": value}.get)
        assert said in found[0]
        assert setting.rpartition("/")[2] in found[1]

    def test_something_above(self):
        why, mend = missing.why_no_space("[Errno 1] Operation not permitted", lambda path: None)
        assert "a container's own filter" in why
        assert "seccomp" in mend

    def test_root_is_not_told_about_switches_for_others(self, monkeypatch):
        monkeypatch.setattr(missing.os, "geteuid", lambda: 0)
        found = missing.why_no_space("x", {"/proc/sys/kernel/unprivileged_userns_clone": 0}.get)
        assert found[0] == "x"

    def test_doctor_names_it(self):
        made = Sandbox(NEITHER)
        pieces = {one.piece.partition(":")[0] for one in missing.missing_pieces(made)}
        assert {"Landlock", "a namespace for reads"} <= pieces
        made.close()
        made = Sandbox(WITHOUT_LANDLOCK)
        assert "a namespace for reads" not in {one.piece.partition(":")[0] for one in missing.missing_pieces(made)}
        made.close()


def test_numbers_stay_what_they_are_but_for_one():
    lines = [list(map(int, line.split())) for line in space.same_ids("uid").splitlines()]
    assert lines
    for first, second, count in lines:
        assert first == second
        assert not first <= space.UNMAPPED < first + count


def test_the_helper_speaks_only_with_its_parent(tmp_path):
    """Without a socket as its argument it does nothing; with one whose other end is closed it ends."""
    import socket

    ours, theirs = socket.socketpair()
    command = [sys.executable, "-I", "-S", space_helper.__file__, str(theirs.fileno())]
    helper = subprocess.Popen(command, pass_fds=[theirs.fileno()], stderr=subprocess.PIPE)
    theirs.close()
    ours.close()
    assert helper.communicate(timeout=30)[1] == b""
    assert helper.returncode == 0
