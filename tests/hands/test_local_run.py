"""One command on this machine: result, limits of time and output, nothing inherited, nothing left."""

from __future__ import annotations

import dataclasses
import itertools
import os
import pathlib
import subprocess
import tempfile
import threading

import pytest

from guard.errors import CannotRun, SandboxUnavailable
from guard.hands.sandbox import Kernel
from guard.hands.sandbox.kernel import probe
from guard.hands.sandbox.scratch import remove_tree
from guard.hands.targets.local import LocalTarget, RunResult
from guard.ports import RunResult as RunResultPort
from guard.types import Interference, Profile
from tests.waiting import until

ENV = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class Token:
    """A cancel token, as callers have one."""

    def __init__(self):
        self._read, self._write = os.pipe()

    def set(self):
        os.write(self._write, b"x")

    def is_set(self):
        import select

        return bool(select.select([self._read], [], [], 0)[0])

    def fileno(self):
        return self._read

    def close(self):
        os.close(self._read)
        os.close(self._write)


@pytest.fixture
def token():
    made = Token()
    yield made
    made.close()


def running(text):
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                line = pathlib.Path(f"/proc/{name}/cmdline").read_bytes()
                state = pathlib.Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if text.encode() in line and state not in "ZX":
                found.append(int(name))
    return found


def dead_children():
    listed = subprocess.run(
        ["ps", "--ppid", str(os.getpid()), "-o", "stat=,pid=,comm="], capture_output=True, text=True
    )
    return [line for line in listed.stdout.splitlines() if line.startswith("Z")]


def test_result_has_exactly_the_fields_of_the_port():
    assert {field.name for field in dataclasses.fields(RunResult)} == {
        name for name, kind in vars(RunResultPort).items() if isinstance(kind, property)
    }


def test_df_through_a_pipe_is_strict_and_undisturbed(run):
    result = run("df -h | tail -n +2")
    assert (result.exit_code, result.enforced, result.profile, result.interference) == (0, "strict", "local", ())
    # The same file systems as outside; how full they are may change in between.
    outside = subprocess.run("df -h | tail -n +2", shell=True, capture_output=True, text=True, env=ENV).stdout
    assert [line.split()[0] for line in result.stdout.text.splitlines()] == [
        line.split()[0] for line in outside.splitlines()
    ]


@pytest.mark.parametrize(
    ("command", "code"),
    [("true", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("no-such-program", 127)],
)
def test_exit_code_is_the_shell_s_or_128_and_the_signal(run, command, code):
    assert run(command).exit_code == code


def test_text_reaches_bash_byte_for_byte(run):
    assert run("printf '%s|' \"$0\" \"$#\" 'a  b' $'\\t' \"é$((1+1))\"").stdout.text == "/bin/bash|0|a  b|\t|é2|"


def test_a_refused_write_is_named_with_its_path(run, tmp_path):
    result = run("echo x > new.txt; mkdir -p a/b; rm -f /etc/hosts")
    assert Interference("openat", f"{tmp_path}/new.txt") in result.interference
    assert Interference("unlinkat", "/etc/hosts") in result.interference
    assert list(tmp_path.iterdir()) == [tmp_path / "home"]


def test_writing_to_null_to_own_output_and_to_the_private_folder_is_no_interference(run):
    result = run(
        "echo a >/dev/null; echo b >/dev/stderr; echo c >&2; echo d >/dev/stdout; echo e >/proc/self/fd/1;"
        ' cd "$TMPDIR"; echo f >g; mkdir h; mv g h/i; cat h/i; rm -r h; sort <<<"j"; id >/dev/null'
    )
    assert (result.exit_code, result.interference) == (0, ())
    assert result.stdout.text == "d\ne\nf\nj\n"
    assert result.stderr.text == "b\nc\n"


def test_many_refusals_are_capped_and_counted(run):
    result = run("for i in {1..230}; do : > x$i; done 2>/dev/null")
    assert len(result.interference) == 200
    assert "30 more refused operations are not listed" in result.notes


def test_private_folder_is_private_and_gone_when_something_was_in_it(run):
    first = run(
        'echo "$TMPDIR"; stat -c %a "$TMPDIR"; ls -A "$TMPDIR" | wc -l; mkdir "$TMPDIR/made"; echo x >"$TMPDIR/f"'
    )
    folder, mode, entries = first.stdout.text.split()
    assert (mode, entries) == ("700", "0")
    assert not os.path.exists(folder)


def test_every_private_folder_begins_empty_and_no_two_runs_share_one(run):
    folders = {}

    def one(number):
        folders[number] = run(
            'ls -A "$TMPDIR" | wc -l; echo "$TMPDIR"; sleep 0.3; (( RANDOM % 2 )) && echo x >"$TMPDIR/f"'
        )

    for _ in range(3):
        threads = [threading.Thread(target=one, args=(number,)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        lines = [result.stdout.text.split() for result in folders.values()]
        assert {entries for entries, _ in lines} == {"0"}
        assert len({folder for _, folder in lines}) == 5


def test_a_deep_private_folder_with_closed_ones_in_it_is_removed(run):
    result = run(
        'echo "$TMPDIR"; cd "$TMPDIR"; for i in {1..60}; do mkdir d && cd d || exit 1; done; mkdir -m 0 closed'
    )
    assert result.exit_code == 0
    assert not os.path.exists(result.stdout.text.strip())


def test_thousands_of_levels_are_removed():
    top = tempfile.mkdtemp(dir="/dev/shm")
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d", 0o700, dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    remove_tree(top)
    assert not os.path.exists(top)


def test_big_sort_uses_the_private_folder(run):
    result = run("seq 200000 -1 1 | sort -n -S 64k | head -1")
    assert (result.stdout.text, result.interference) == ("1\n", ())


def test_caches_go_to_the_private_folder(run):
    result = run('for v in XDG_CACHE_HOME KUBECACHEDIR GOCACHE; do case ${!v} in "$TMPDIR"/*) echo in;; esac; done')
    assert result.stdout.text == "in\nin\nin\n"


def test_stdin_is_empty_and_no_descriptor_is_inherited(run):
    read, write = os.pipe()
    os.set_inheritable(write, True)
    try:
        result = run("cat; read -r line; echo rc $?; ls /proc/self/fd")
    finally:
        os.close(read)
        os.close(write)
    assert result.stdout.text == "rc 1\n0\n1\n2\n3\n"  # 3 is ls's own look at the folder


def test_nothing_leaks_over_many_runs(run):
    for profile in ("local", "none"):
        run("true", profile=profile)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            run("echo x; (sleep 60 &)", profile="local") if profile == "local" else run("true", profile=profile)
        # Fewer is no leak: something of an earlier test may be collected meanwhile.
        assert len(os.listdir("/proc/self/fd")) <= before


def test_limits_are_set_before_the_command_begins_and_cannot_be_raised(run):
    result = run("ulimit -c; ulimit -n; ulimit -f; ulimit -n 5000 2>/dev/null; ulimit -n")
    core, files, size, after = result.stdout.text.split()
    assert (core, files, size, after) == ("0", "4096", "524288", "4096")
    assert "the limits on memory, files and processes were not set" not in result.notes


def test_our_own_limits_stay_as_they_are(run):
    import resource

    before = [resource.getrlimit(kind) for kind in range(resource.RLIMIT_NOFILE + 1)]
    run("true")
    assert [resource.getrlimit(kind) for kind in range(resource.RLIMIT_NOFILE + 1)] == before


def test_a_fork_bomb_ends_with_the_run(run):
    result = run("bomb() { bomb | bomb & }; bomb; sleep 1; true", timeout_s=20)
    assert result.exit_code is not None
    until(lambda: running("bomb() {") == [], "the end of every bomb")
    assert run("echo alive").stdout.text == "alive\n"


def test_a_file_over_the_limit_ends_its_writer(run):
    result = run('truncate -s 600M "$TMPDIR/big"; echo $?')
    assert result.stdout.text.strip() in {"153", "1"}  # SIGXFSZ or EFBIG


@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_timeout_ends_the_whole_group(run, trap):
    result = run(f"echo begun; {trap}sleep 812.5 & sleep 812.5; wait", timeout_s=2)
    assert (result.timed_out, result.cancelled, result.stdout.text) == (True, False, "begun\n")
    assert result.exit_code in (143, 137)
    assert running("sleep\0812.5") == []


def test_time_to_tidy_up_is_given_and_its_output_read(run):
    result = run("trap 'echo tidied; exit 3' TERM; while :; do sleep 0.05; done", timeout_s=0.5)
    assert (result.timed_out, result.exit_code, result.stdout.text) == (True, 3, "tidied\n")


def test_a_process_that_cannot_be_ended_is_named(run, monkeypatch):
    from guard.hands import process

    ended = process._Child._reap
    monkeypatch.setattr(process._Child, "_reap", lambda child, limit_s: ended(child, limit_s) and False)
    result = run("echo $$; sleep 812.5", timeout_s=0.3)
    [note] = [note for note in result.notes if "did not die" in note]
    assert note.startswith(f"process {result.stdout.text.strip()} did not die (state ")
    assert note.endswith("stuck in the kernel); it is left behind")


def test_cancel_ends_it(run, token):
    timer = threading.Timer(0.3, token.set)
    timer.start()
    result = run("sleep 813.5", cancel=token)
    timer.join()
    assert (result.cancelled, result.timed_out) == (True, False)
    assert running("sleep\0813.5") == []


def test_a_token_that_is_set_already_starts_nothing(run, token, tmp_path):
    token.set()
    result = run("echo x > made", profile="none", cancel=token)
    assert (result.cancelled, result.exit_code, list(tmp_path.iterdir())) == (True, None, [tmp_path / "home"])


@pytest.mark.parametrize(
    "way",
    [
        "sleep 814.5 &",
        "nohup sleep 814.5 >/dev/null 2>&1 &",
        "setsid sleep 814.5 &",
        "(setsid sleep 814.5 >/dev/null 2>&1 &)",
        "(setsid env -i sleep 814.5 >/dev/null 2>&1 &)",
        "(setsid env -i bash -c '(sleep 814.5 & sleep 814.5 &) & sleep 0.2' >/dev/null 2>&1 &)",
    ],
)
def test_nothing_survives_the_end(run, way):
    before = dead_children()  # what an earlier test left in mid-work on purpose
    result = run(f"{way}\nsleep 0.1; echo done")
    assert (result.exit_code, result.stdout.text) == (0, "done\n")
    assert running("sleep\0814.5") == []
    assert set(dead_children()) <= set(before)


def test_a_background_process_of_one_run_is_not_taken_from_another(run):
    results = {}
    slow = threading.Thread(
        target=lambda: results.update(slow=run("(setsid sleep 1; echo kept > $TMPDIR/f) & wait; cat $TMPDIR/f"))
    )
    slow.start()
    for _ in range(10):
        run("(setsid sleep 50 &); true")
    slow.join()
    assert results["slow"].stdout.text == "kept\n"


def test_an_approved_command_may_leave_a_service_behind(run):
    before = dead_children()
    result = run("sleep 815.5 & echo done", profile=Profile.NONE)
    left = running("sleep\0815.5")
    for pid in left:
        os.kill(pid, 9)
    assert len(left) == 1
    run("true")
    assert set(dead_children()) <= set(before)
    assert (result.exit_code, result.enforced, result.interference) == (0, "none", None)
    assert "a background process still held the output; what it writes from now on is not read" in result.notes


def test_twenty_at_once_keep_their_own_answers_and_notes(run, tmp_path):
    results = {}

    def one(number):
        results[number] = run(
            f"echo x > refused{number}; echo out {number}; echo err {number} >&2; sleep 0.0{number % 5}"
        )

    threads = [threading.Thread(target=one, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, result in results.items():
        assert result.stdout.text == f"out {number}\n"
        assert result.stderr.text.endswith(f"err {number}\n")
        assert result.interference == (Interference("openat", f"{tmp_path}/refused{number}"),)
    assert len(results) == 20


def test_output_is_delivered_as_it_comes(run):
    got = []
    result = run(
        "echo one; echo two >&2; sleep 0.1; echo three", on_output=lambda stream, data: got.append((stream, data))
    )
    assert b"".join(data for stream, data in got if stream == "stdout") == b"one\nthree\n"
    assert ("stderr", b"two\n") in got
    assert result.stdout.size_bytes == 10


def test_a_sink_that_fails_ends_the_command(run):
    def broken(stream, data):
        raise RuntimeError("the reader is gone")

    with pytest.raises(RuntimeError, match="the reader is gone"):
        run("echo x; sleep 816.5", on_output=broken)
    assert running("sleep\0816.5") == []


@pytest.mark.guarantee("G-BOUNDED")
def test_sixty_four_megabytes_stay_bounded(run):
    import resource

    run("true")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = run("head -c 64M /dev/zero | tr '\\0' 'x'")
    assert (result.stdout.size_bytes, result.stdout.truncated) == (64 << 20, True)
    assert len(result.stdout.text) < 30_200
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 << 10


def test_a_missing_bash_is_a_clear_sentence():
    with pytest.raises(CannotRun, match=r"/nonexistent/bash is missing; commands are run by bash") as caught:
        LocalTarget(bash="/nonexistent/bash").run("true", cwd="/", profile="local", env=ENV, timeout_s=5)
    assert "bash" in caught.value.hint


@pytest.mark.parametrize("profile", ["local", "none"])
def test_a_folder_that_is_gone_is_a_clear_sentence(run, tmp_path, profile):
    with pytest.raises(CannotRun, match="does not exist or cannot be entered"):
        run("true", cwd=str(tmp_path / "gone"), profile=profile)


def test_a_profile_that_does_not_exist_runs_nothing(run):
    for profile in ("everything", "", "LOCAL"):
        with pytest.raises(SandboxUnavailable, match="there is no sandbox profile"):
            run("true", profile=profile)


class TestLesserKernels:
    """The same machine with abilities left out: what cannot be held is refused, never pretended."""

    def target(self, **less):
        return LocalTarget(dataclasses.replace(probe(), **less))

    def call(self, target, command, profile="local", **more):
        return target.run(command, cwd="/", profile=profile, env=ENV, timeout_s=30, **more)

    @pytest.mark.parametrize(
        "less",
        [{"landlock_abi": 0, "notify": False}, {"seccomp": False}, {"machine": "riscv64", "seccomp": False}],
    )
    def test_without_what_could_hold_it_nothing_holds_and_nothing_runs(self, less):
        target = self.target(**less)
        held = target.enforcement()
        assert (held.profiles, held.mechanism) == (frozenset(), "none")
        with pytest.raises(SandboxUnavailable, match="cannot hold the local sandbox"):
            self.call(target, "true")
        plain = self.call(target, "echo ran", profile=Profile.NONE)
        assert (plain.stdout.text, plain.enforced, plain.interference) == ("ran\n", "none", None)

    def test_without_notifications_it_holds_and_says_that_it_cannot_tell(self, tmp_path):
        target = self.target(notify=False)
        assert target.enforcement().reports is False
        result = self.call(target, f"echo x > {tmp_path}/f; chmod 777 {tmp_path}; echo $(ulimit -n) $0; exit 3")
        assert (result.exit_code, result.enforced, result.interference) == (3, "strict", None)
        assert result.stdout.text == "4096 /bin/bash\n"
        assert not (tmp_path / "f").exists()

    def test_without_notifications_what_needs_a_supervisor_does_not_hold(self):
        target = self.target(notify=False)
        assert target.enforcement().profiles == {"local", "net", "bus", "block"}
        for profile, command in (("observe", "ss -tlnp"), ("netadm", "iptables -S")):
            with pytest.raises(SandboxUnavailable, match="no seccomp user notification"):
                self.call(target, command, profile=profile)

    def test_without_landlock_a_supervisor_answers_for_each_write_and_nothing_is_masked(self, tmp_path):
        target = self.target(landlock_abi=0, namespaces=False)
        held = target.enforcement()
        assert (held.profiles, held.mechanism) == ({"local", "bus", "observe", "netadm", "block"}, "seccomp")
        (tmp_path / "elsewhere").mkdir()
        command = (
            "echo a >/dev/null; echo b >/dev/stderr; echo c >&2; echo d >/dev/stdout; echo e >/proc/self/fd/1; "
            'cd "$TMPDIR"; echo f >g; mkdir h; mv g h/i; cat h/i; echo more >>h/i; wc -l <h/i; ln -s h/i j; cat j; '
            "rm -r h j; ls -A | wc -l; seq 200000 -1 1 | sort -n -S 64k | head -1; cat <<<here; "
            f"ln -s {tmp_path}/elsewhere out; echo x > out/made; mkdir out/sub; rmdir out; rm out; "
            f"mkdir ../../out; mv /etc/hostname .; cp /etc/hostname . && wc -l < hostname"
        )
        result = self.call(target, command)
        assert result.stdout.text == "d\ne\nf\n2\nf\nmore\n0\n1\nhere\n1\n", result.stderr.text
        assert list((tmp_path / "elsewhere").iterdir()) == []
        assert result.masked == ()
        refused = {(each.operation, each.path.rpartition("/")[2]) for each in result.interference}
        assert ("openat", "made") in refused
        assert ("mkdir", "out") in refused

    def test_before_abi_4_there_is_no_net(self):
        target = self.target(landlock_abi=3)
        assert target.enforcement().profiles == {"local", "bus", "observe", "netadm", "block"}
        with pytest.raises(SandboxUnavailable, match="needs 4"):
            self.call(target, "true", profile="net", ports=[443])

    @pytest.mark.parametrize(("abi", "notify"), [(0, True), *itertools.product(range(1, 8), (True, False))])
    def test_every_older_landlock_and_none_stop_the_same(self, tmp_path, abi, notify):
        if abi > probe().landlock_abi:
            assert not self.target(landlock_abi=abi).enforcement().profiles
            return
        target = self.target(landlock_abi=abi, notify=notify)
        kept = tmp_path / "kept"
        kept.write_text("kept")
        victim = subprocess.Popen(["sleep", "600"])
        python = "/usr/bin/python3 -I -S -c"
        try:
            result = self.call(
                target,
                f"cd {tmp_path}; echo x > kept; rm -f kept; mv kept g; ln kept h; truncate -s 0 kept; "
                f"{python} 'import os; os.open(\"kept\", os.O_RDONLY | os.O_TRUNC)'; "
                f"kill -9 {victim.pid}; kill -0 {victim.pid} && echo SIGNALLED; "
                f"sleep 9 & kill $! && wait $!; echo ended $?; cat kept",
            )
            assert victim.poll() is None
        finally:
            victim.kill()
            victim.wait()
        assert "SIGNALLED" not in result.stdout.text
        assert result.enforced == ("strict" if abi else "seccomp")
        assert result.stdout.text.endswith("kept")
        assert kept.read_text() == "kept"
        assert kept.stat().st_nlink == 1
        if abi >= 6 or notify:
            assert "ended 143" in result.stdout.text  # its own children it may end

    def test_claiming_more_than_the_kernel_has_fails_closed(self, tmp_path):
        kernel = dataclasses.replace(probe(), landlock_abi=probe().landlock_abi + 40)
        result = LocalTarget(kernel).run("true", cwd="/", profile="local", env=ENV, timeout_s=9)
        assert result.enforced == "strict"  # unknown rights are not asked for
        broken = Kernel(probe().landlock_abi, seccomp=True, notify=True, machine="")
        with pytest.raises(SandboxUnavailable):
            LocalTarget(broken).run(f"echo x > {tmp_path}/f", cwd="/", profile="local", env=ENV, timeout_s=9)
        assert not (tmp_path / "f").exists()
