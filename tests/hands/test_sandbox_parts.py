"""The parts of the sandbox one by one: filter programs, supervisor, scratch, liveness, canaries."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import pathlib
import struct
import subprocess
import sys
import threading
import time

import pytest

from guard.errors import SandboxUnavailable
from guard.hands import liveness
from guard.hands.environment import build_environment
from guard.hands.sandbox import PROFILES, Sandbox, missing, pool, report, scratch, seccomp, syscalls, worker
from guard.hands.sandbox import profiles as table
from guard.hands.sandbox.kernel import TABLES, Kernel, probe
from guard.hands.sandbox.report import Notes
from guard.hands.targets.local import LocalTarget

ROOT = pathlib.Path(__file__).resolve().parents[2]


def verdict(code, number, arguments=(), arch=None, machine="x86_64"):
    """Runs a filter as the kernel would (classic BPF, the operations that the assembler uses)."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=iIQ6Q", number, TABLES[machine][0] if arch is None else arch, 0, *words)
    program = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    at = accumulator = 0
    while True:
        operation, yes, no, value = program[at]
        at += 1
        if operation == seccomp.LOAD:
            accumulator = struct.unpack_from("=I", data, value)[0]
        elif operation == seccomp.AND:
            accumulator &= value
        elif operation == seccomp.SHIFT_RIGHT:
            accumulator >>= value
        elif operation == seccomp.JUMP:
            at += value
        elif operation == seccomp.RETURN:
            return value
        else:
            tests = {
                seccomp.EQUAL: accumulator == value,
                seccomp.GREATER: accumulator > value,
                seccomp.ANY_BIT: bool(accumulator & value),
            }
            at += yes if tests[operation] else no


ALLOW, NOTIFY, EPERM, ENOSYS = seccomp.RET_ALLOW, seccomp.RET_NOTIFY, seccomp.RET_ERRNO | 1, seccomp.RET_ERRNO | 38
MACHINES = [Kernel(7, seccomp=True, notify=True, machine=machine) for machine in TABLES]


@pytest.mark.parametrize("kernel", MACHINES, ids=lambda kernel: kernel.machine)
@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
@pytest.mark.parametrize("notify", [True, False])
def test_filters_decide_as_the_tables_say_on_both_architectures(kernel, profile, notify):
    numbers, refused = kernel.numbers, NOTIFY if notify else EPERM
    if profile.sends and not notify:
        with pytest.raises(ValueError, match="a supervisor has to answer"):
            seccomp.program(kernel, profile, notify=notify)
        return
    code = seccomp.program(kernel, profile, notify=notify)

    def ask(name, *arguments):
        return verdict(code, numbers[name], arguments, machine=kernel.machine)

    for name in ("read", "execve", "exit_group", "futex", "statx", "getdents64"):
        assert ask(name) == ALLOW
    for name in table.REFUSED:
        if name in numbers:
            assert ask(name) == refused, name
    for name in table.ABSENT:
        assert ask(name) == ENOSYS
    for name in table.REPORTED:
        if name in numbers:
            assert ask(name) == (NOTIFY if notify else ALLOW), name
    assert ask("openat", 0, 0, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY) == ALLOW
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_CREAT, os.O_TRUNC, 0o20000000):
        assert ask("openat", 0, 0, flags) == (NOTIFY if notify else ALLOW)
    assert ask("ioctl", 0, 0x5401) == ALLOW
    for request in (0x5412, 0x541C, 0x40086602, 0x401C5820, 0x5000940E, 0xC0045877):
        assert ask("ioctl", 0, request) == refused
    for kind in range(12):
        assert ask("syslog", kind) == (ALLOW if kind in (3, 9, 10) else refused)
    assert ask("prlimit64", 0, 7, 1) == ALLOW
    assert ask("prlimit64", 5, 7, 0) == ALLOW
    assert ask("prlimit64", 5, 7, 1 << 40) == refused
    assert ask("setpriority", 2, 0) == refused
    assert ask("setpriority", 0, 5) == refused
    assert ask("setpriority", 0, 0) == ALLOW
    questions = profile.sends == table.QUESTIONS
    # Where what is sent is read, memory is shared with nobody who runs: a child only while its parent waits for it.
    assert ask("clone", 0x1200011) == (refused if questions else ALLOW)
    assert ask("clone", 0x4111) == ALLOW
    assert ask("clone", 0x3D0F00) == (refused if questions else ALLOW)
    for name in ("write", "writev"):
        assert [ask(name, fd) for fd in (0, 1, 2, 3)] == ([EPERM, NOTIFY, NOTIFY, EPERM] if questions else [ALLOW] * 4)
    for name in table.SILENT:
        if name in numbers:
            assert ask(name) == (refused if questions else ALLOW), name
    for name in (*table.SENDS, "sendmmsg"):
        silent = ALLOW if not profile.sends else NOTIFY
        assert ask(name) == silent, name
    assert ask("setsockopt", 3, 0, 64) == (refused if questions else ALLOW)
    assert ask("setsockopt", 3, 1, 8) == ALLOW
    assert ask("ioctl", 0, 0x8946) == (refused if questions else ALLOW)  # SIOCETHTOOL
    for request in (0x1260, 0x80081272, 0x2285, 0x4E40):
        assert ask("ioctl", 0, request) == (ALLOW if profile.devices else refused)
    for request in (0x125D, 0x125F, 0x1261, 0x1277, 0x127D, 0x0306, 0x031C, 0x4C01, 0x5309):
        assert ask("ioctl", 0, request) == refused  # BLKROSET, BLKRRPART, BLKFLSBUF, BLKDISCARD, BLKSECDISCARD, …
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert ask("clone", flag | 17) == refused
    assert ask("socketpair", 1, 1) == ask("socketpair", 1, 0o2000005) == ALLOW
    assert ask("socketpair", 1, 2) == refused
    if not profile.sends:
        assert ask("sendto", 0, 0, 0, 0x20000000) == refused
    assert ask("quotactl", 0x80000700) == ALLOW
    assert ask("quotactl", 0x80000800) == refused
    for family in range(46):
        for kind in (1, 2, 3, 5):
            for protocol in (0, 4, 6, 16, 17, 132, 262):
                allowed = any(
                    rule.family == family and rule.type in (0, kind) and protocol in rule.protocols
                    for rule in profile.sockets
                )
                assert ask("socket", family, kind | 0o2000000, protocol) == (ALLOW if allowed else refused)
    # Numbers that nobody has given a meaning yet, the other entry points, and x32.
    assert verdict(code, 470, machine=kernel.machine) == ENOSYS
    assert verdict(code, 0x40000000 | 1, machine=kernel.machine) == ENOSYS
    for arch in (0x40000003, 0x40000028, 0):
        assert verdict(code, 1, arch=arch, machine=kernel.machine) == ENOSYS


def test_a_jump_over_more_than_255_instructions_arrives():
    assembler = seccomp.Assembler()
    assembler.emit(seccomp.LOAD, 0)
    assembler.when(seccomp.EQUAL, 7, "far")
    for _ in range(2000):
        assembler.emit(seccomp.RETURN, 1)
    assembler.label("far")
    assembler.emit(seccomp.RETURN, 2)
    code = assembler.assemble()
    assert (verdict(code, 7), verdict(code, 8)) == (2, 1)


def test_the_assembler_refuses_what_bpf_cannot_do():
    assembler = seccomp.Assembler()
    assembler.label("here")
    with pytest.raises(ValueError, match="set twice"):
        assembler.label("here")
    assembler.emit(seccomp.RETURN, 0)
    assembler.go("here")
    with pytest.raises(ValueError, match="backwards"):
        assembler.assemble()
    long = seccomp.Assembler(code=[(seccomp.RETURN, 0, 0, 0)] * 4097)
    with pytest.raises(ValueError, match="BPF_MAXINSNS"):
        long.assemble()


def test_tables_are_what_the_generator_writes_from_these_headers():
    generator = ROOT / "tools" / "generate_syscalls.py"
    if not pathlib.Path("/usr/include/asm-generic/unistd.h").exists():
        done = subprocess.run([sys.executable, str(generator)], capture_output=True, text=True)
        assert "install the kernel headers" in done.stderr
        return
    written = subprocess.run([sys.executable, str(generator)], capture_output=True, text=True, check=True).stdout
    fresh: dict = {}
    exec(written, fresh)
    for name in ("X86_64", "AARCH64"):
        committed = getattr(syscalls, name)
        # Newer headers may know more calls; the numbers of known ones never change.
        assert {call: fresh[name].get(call) for call in committed} == committed


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_when_the_supervisor_dies_calls_fail_and_the_next_run_gets_a_new_one(tmp_path):
    target = LocalTarget(probe())
    env = build_environment().env

    def call(command):
        return target.run(command, cwd=str(tmp_path), profile="local", env=env, timeout_s=20)

    assert call("true").exit_code == 0
    [first] = target._sandbox._pool._workers.values()
    supervisor = first._supervisor
    started = threading.Event()

    def die(message):
        started.set()
        raise SystemExit

    supervisor._answer = die
    result = call("echo x > /dev/null || echo refused; rm -f kept; mkdir made; echo still here")
    assert started.is_set()
    assert result.stdout.text == "refused\nstill here\n"
    assert "Function not implemented" in result.stderr.text
    assert list(tmp_path.iterdir()) == [tmp_path / "home"]
    again = call("echo x > /dev/null && echo fine")
    assert again.stdout.text == "fine\n"
    [second] = target._sandbox._pool._workers.values()
    assert second is not first
    target.close()


def test_a_supervisor_and_its_worker_end_when_they_are_let_go():
    sandbox = Sandbox(probe())
    held = sandbox.worker("local")
    sandbox.close()
    thread = held._supervisor._thread
    thread.join(10)
    assert not thread.is_alive()


def test_workers_are_bounded(tmp_path):
    sandbox = Sandbox(probe())
    for number in range(pool.Pool.LIMIT + 3):
        sandbox.worker("local", hidden=[str(tmp_path / str(number))])
    assert len(sandbox._pool._workers) == pool.Pool.LIMIT
    sandbox.close()


def test_a_sandbox_that_does_not_hold_is_found_out_before_it_is_used(monkeypatch):
    monkeypatch.setattr(worker.landlock.Rules, "enforce", lambda self: None)
    with pytest.raises(SandboxUnavailable, match="was not stopped"):
        Sandbox(probe()).worker("local")
    assert Sandbox(probe()).measure().profiles == {"observe"}  # the one that has no Landlock


def test_a_filter_that_is_missing_is_found_out_too(monkeypatch):
    kernel = dataclasses.replace(probe(), notify=False)
    monkeypatch.setattr(worker.seccomp, "load", lambda *arguments, notify: -1)
    with pytest.raises(SandboxUnavailable, match="the canary socket was not stopped"):
        Sandbox(kernel).worker("local")


def test_where_a_supervisor_cannot_hand_over_what_it_opened_nothing_holds_without_landlock(monkeypatch):
    """Linux 5.0 to 5.8: every `2>/dev/null` would fail, and programs would answer wrongly."""

    with open(os.devnull) as no_listener:  # it does not know the request, as an old kernel's listener
        assert report.can_hand_over(no_listener.fileno()) is False
    monkeypatch.setattr(report, "can_hand_over", lambda listener: False)
    made = Sandbox(dataclasses.replace(probe(), landlock_abi=0))
    assert made.measure().profiles == frozenset()
    [piece] = [one for one in missing.missing_pieces(made) if one.piece == "seccomp user notification"]
    assert "Linux 5.9" in piece.mend
    made.close()


@pytest.mark.parametrize("machine", TABLES)
@pytest.mark.parametrize("abi", [0, 1, 2, 3, 5, 6])
def test_filters_take_over_what_an_older_landlock_lacks_on_both_architectures(machine, abi):
    kernel = Kernel(abi, seccomp=True, notify=True, machine=machine)
    ours = 4711, 4712
    code = seccomp.program(kernel, PROFILES["local"], notify=True, worker=ours)

    def ask(name, *arguments):
        return verdict(code, kernel.numbers[name], arguments, machine=machine)

    for name in table.LOOKING_IN:
        assert ask(name) == (ALLOW if abi else NOTIFY), name
    # Before the right to truncate, what empties a file is refused by number and flags.
    assert ask("truncate") == NOTIFY
    assert ask("openat2") == (NOTIFY if abi >= 3 else ENOSYS)
    assert ask("openat", 0, 0, os.O_RDONLY | os.O_TRUNC) == NOTIFY
    # Before the scope of signals, the supervisor decides by session, and what it cannot see is refused.
    for name in ("kill", "tkill"):
        assert ask(name, 99) == (ALLOW if abi >= 6 else NOTIFY), name
    assert ask("tgkill", 99, 99) == (ALLOW if abi >= 6 else NOTIFY)
    for worker_id in ours:
        assert ask("kill", worker_id) == ask("tkill", worker_id) == ask("pidfd_open", worker_id) == NOTIFY
    for arch in {0x40000003, 0xC000003E, 0x40000028, 0xC00000B7} - {TABLES[machine][0]}:
        assert verdict(code, kernel.numbers["read"], arch=arch, machine=machine) == ENOSYS
    assert verdict(code, 0x40000000 | kernel.numbers["read"], machine=machine) == ENOSYS


def test_measure_is_made_once():
    sandbox = Sandbox(probe())
    first = sandbox.measure()
    assert first.profiles == {"local", "net", "bus", "observe", "netadm", "block"}
    assert (first.mechanism, first.landlock_abi, first.reports) == ("strict", probe().landlock_abi, True)
    assert sandbox.measure() is first
    sandbox.close()


def test_inside_a_sandbox_the_next_one_still_holds_and_says_that_it_cannot_report(tmp_path, run):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]);"
        "from guard.hands.targets.local import LocalTarget;"
        "r = LocalTarget().run('echo x > f; cat /dev/null; echo out', cwd='/', profile='local',"
        " env={'PATH': '/bin:/usr/bin'}, timeout_s=20);"
        "print(r.enforced, r.interference, r.stdout.text.strip(), r.stderr.text.count('denied'))"
    )
    result = run(f'/usr/bin/python3 -c "{code}" {ROOT}')
    assert result.stdout.text == "strict None out 1\n", result.stderr.text


@pytest.mark.parametrize(
    "code",
    [
        "l.syscall(437, -100, b'x', c.c_void_p(8), 24)",  # openat2 with flags that cannot be read
        "m = mmap.mmap(-1, 8192); a = c.addressof(c.c_char.from_buffer(m)); l.munmap(c.c_void_p(a + 4096), 4096);"
        "l.syscall(437, -100, b'x', c.c_void_p(a + 4092), 24); l.syscall(257, -100, c.c_void_p(a + 4095), 1, 0)",
        "l.syscall(257, -100, c.c_void_p(-1), 1, 0)",
        "l.syscall(257, -100, c.c_void_p(0), 1, 0); l.syscall(257, 77, b'x', 1, 0);"
        "l.syscall(257, -5, b'\\xff\\xfe', 1, 0)",
        "l.syscall(42, 0, c.c_void_p(1 << 40), 128); l.syscall(42, 0, b'\\x02', 1); l.syscall(42, 0, b'\\x02\\0', 2)",
        "l.syscall(91, 55, 0o600); l.syscall(91, -3, 0o600)",
    ],
)
def test_arguments_made_to_hurt_the_supervisor_do_not(run, code):
    program = f"import ctypes as c, mmap; l = c.CDLL(None); {code}; print('alive')"
    if os.uname().machine != "x86_64":
        return
    result = run(f'{sys.executable} -I -S -c "{program}"; : > /dev/null && echo supervised')
    assert result.stdout.text == "alive\nsupervised\n", result.stderr.text


def test_limits_are_never_set_on_this_process(run):
    import resource

    before = resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_NOFILE)
    run("(setsid env -i bash -c ': > x; sleep 0.2; : > y' &) ; sleep 0.5")
    LocalTarget(probe()).enforcement()
    assert (resource.getrlimit(resource.RLIMIT_FSIZE), resource.getrlimit(resource.RLIMIT_NOFILE)) == before


def test_notes_are_each_kept_once():
    notes = Notes()
    notes.add("openat", "/a")
    notes.add("openat", "/a")
    notes.add("mkdir", "/a")
    assert [each.operation for each in notes.as_interference()] == ["openat", "mkdir"]


class TestScratch:
    def test_runs_have_folders_of_their_own(self, tmp_path):
        made = scratch.Scratch((str(tmp_path),))
        first, second = made.new_run(), made.new_run()
        assert first != second
        assert [os.stat(folder).st_mode & 0o777 for folder in (first, second, made.root())] == [0o700] * 3

    def test_without_a_place_there_is_none_and_the_run_says_so(self, tmp_path):
        nowhere = scratch.Scratch((str(tmp_path / "absent"),))
        assert nowhere.new_run() is None
        target = LocalTarget(scratch=nowhere)
        result = target.run("echo ${TMPDIR-none}", cwd="/", profile="local", env=build_environment().env, timeout_s=20)
        assert (result.stdout.text, result.enforced) == ("none\n", "strict")
        assert ("mkdir", "TMPDIR") in [(each.operation, each.path) for each in result.interference]
        assert any("no private folder" in note for note in result.notes)
        target.close()

    def test_what_a_killed_process_left_is_removed_and_what_lives_is_not(self, tmp_path, monkeypatch):
        alive = scratch.Scratch((str(tmp_path),)).root()
        dead = tmp_path / "opsagent-dead"
        dead.mkdir()
        (dead / "lock").touch()
        other = tmp_path / "opsagent-not-a-root"
        other.mkdir()
        now = time.time() + 3600
        monkeypatch.setattr(scratch.time, "time", lambda: now)
        scratch.Scratch((str(tmp_path),)).root()
        assert pathlib.Path(alive).exists()
        assert other.exists()
        assert not dead.exists()

    def test_the_root_is_locked_while_the_process_lives(self, tmp_path):
        root = scratch.Scratch((str(tmp_path),)).root()
        with open(f"{root}/lock") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def test_nothing_is_left_after_the_process(self, tmp_path):
        code = (
            "import sys; sys.path.insert(0, sys.argv[1]);"
            "from guard.hands.sandbox.scratch import Scratch; from guard.hands.targets.local import LocalTarget;"
            "t = LocalTarget(scratch=Scratch((sys.argv[2],)));"
            "t.run('echo x > $TMPDIR/y', cwd='/', profile='local', env={'PATH': '/bin:/usr/bin'}, timeout_s=20)"
        )
        subprocess.run([sys.executable, "-c", code, str(ROOT), str(tmp_path)], check=True)
        assert list(tmp_path.glob("opsagent-*")) == []


class TestProcessCounting:
    def test_a_run_with_too_many_processes_is_ended_by_counting(self, monkeypatch):
        from guard.hands import process

        monkeypatch.setattr(process, "MAX_PROCESSES", 20)
        result = process.run_child(
            process.Program(
                ["/bin/bash", "-c", "for i in {1..60}; do sleep 817.5 & done; sleep 817.5"], {"PATH": "/bin:/usr/bin"}
            ),
            cwd="/",
            timeout_s=30,
            leave_nothing=True,
            count_processes=True,
        )
        assert not result.timed_out
        assert any("limit 20" in note for note in result.notes)


class TestLiveness:
    def test_this_process_lives_and_another_start_or_boot_does_not(self):
        pid, start, boot = os.getpid(), liveness.process_start(os.getpid()), liveness.boot_id()
        assert len(boot) == 36
        assert liveness.is_alive(boot, pid, start)
        assert not liveness.is_alive(boot, pid, start + 1)
        assert not liveness.is_alive("another boot", pid, start)
        assert not liveness.is_alive(boot, 0, start)

    def test_a_zombie_is_not_alive(self):
        child = subprocess.Popen(["true"])
        start = liveness.process_start(child.pid)
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not liveness.is_alive(liveness.boot_id(), child.pid, start)
        child.wait()
        assert liveness.process_start(child.pid) == 0

    def test_a_name_with_brackets_and_blanks_is_read_past(self, tmp_path):
        program = tmp_path / "a) R 1 (b"
        program.symlink_to("/bin/sleep")
        child = subprocess.Popen([str(program), "60"])
        try:
            assert liveness.process_start(child.pid) >= liveness.process_start(os.getpid())
        finally:
            child.kill()
            child.wait()

    def test_without_proc_the_pid_alone_is_asked(self, monkeypatch):
        monkeypatch.setattr(liveness, "boot_id", lambda: "")
        assert liveness.is_alive("", os.getpid(), 0)
        child = subprocess.Popen(["true"])
        child.wait()
        assert not liveness.is_alive("", child.pid, 0)
