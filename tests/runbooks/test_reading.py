"""What counts as an answer, and what a mount table and a control group say."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard.types import Interference
from runbooks.catalogue import load
from runbooks.cgroup import cpu_limit, cpu_paths, memory_limit, memory_paths
from runbooks.look import this_machine
from runbooks.model import Answer, Answers, Where
from runbooks.mounts import is_quiet, mounts_in, unescaped, writable_in_fstab
from runbooks.reading import age, files_command, files_in, number_of, pressure, why_not
from tests.runbooks.replay import HERE, NOW_S, Recorded


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "df was not run"),
        (Answer(None, status="timed_out"), "df did not answer in time"),
        (Answer(None, status="needs_stamp", reason="cannot enforce"), "df was not run: cannot enforce"),
        (Answer(None, status="refused"), "df was not run: refused"),
        (Answer(127, status="failed"), "df is not installed here"),
        (Answer(1, "", "df: boom\nmore", status="failed"), "df ended with code 1: df: boom"),
        (Answer(1, "said here", "", status="failed"), "df ended with code 1: said here"),
        (
            Answer(0, " \n", interference=[Interference("openat", "/var/log"), Interference("openat", "/x")]),
            "df said nothing, and the sandbox refused openat /var/log and 1 more",
        ),
        (
            Answer(2, status="failed", interference=[Interference("connect")]),
            "df ended with code 2: the sandbox refused connect",
        ),
    ],
)
def test_anything_but_a_good_answer_is_a_reason(answer, why):
    assert why_not(answer, "df").en == why


def test_a_good_answer_is_a_fact_and_an_empty_one_only_without_interference():
    assert why_not(Answer(0, "rows"), "df") is None
    assert why_not(Answer(0, ""), "df") is None
    assert why_not(Answer(0, "", interference=[]), "df") is None
    assert why_not(Answer(0, ""), "df", empty_is_fine=False) is not None


def test_files_come_apart_by_the_names_that_were_asked():
    paths = ["/sys/a", "/sys/a:b", "/gone"]
    answer = Answer(2, "/sys/a:1:2\n/sys/a:b:max\n/sys/a:second\nnoise\n", status="failed")
    assert files_in(answer, paths) == {"/sys/a": "1:2\nsecond\n", "/sys/a:b": "max\n"}
    assert files_command(paths) == ("grep", "-H", "", *paths)
    assert files_in(Answer(None, "/sys/a:1\n", status="timed_out"), paths) == {}


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "-inf", "1e999", "1,5"])
def test_what_is_no_finite_number_is_none(text):
    assert number_of(text) is None


def test_pressure_is_read_by_kind_and_window():
    text = "some avg10=1.50 avg60=2.25 avg300=0.00 total=9\nfull avg10=0.50 avg60=0.25 avg300=0.00 total=3\n"
    assert (pressure(text, "some", "avg60"), pressure(text, "full", "avg10")) == (2.25, 0.5)
    assert pressure(text, "full", "avg5") is pressure(None, "some", "avg60") is None


def mount(point, type="ext4", options="rw", whole="rw", device="8:1", root="/", source="/dev/sda1"):
    return f"28 1 {device} {root} {point} {options},relatime shared:1 - {type} {source} {whole}"


def points(*rows):
    return [one.point for one in mounts_in("\n".join(rows))]


def test_types_without_a_disk_and_images_are_left_out():
    rows = [
        mount(f"/m/{type}", type, device=f"0:{n}")
        for n, type in enumerate(("ramfs", "squashfs", "iso9660", "proc", "autofs", "fuse.lxcfs"))
    ]
    assert points(*rows, mount("/")) == ["/"]


def test_an_overlay_counts_only_as_the_root():
    assert points(
        mount("/", "overlay", device="0:9"), mount("/var/lib/docker/overlay2/x/merged", "overlay", device="0:10")
    ) == ["/"]


def test_bind_mounts_of_one_file_system_are_one():
    assert points(mount("/srv/www", root="/www"), mount("/"), mount("/home", root="/home")) == ["/"]
    assert points(mount("/data/deep"), mount("/data")) == ["/data"]


def test_a_later_mount_hides_the_earlier_on_the_same_point():
    rows = [mount("/mnt", device="8:2", source="/dev/a"), mount("/mnt", device="8:3", source="/dev/b")]
    assert [one.source for one in mounts_in("\n".join(rows))] == ["/dev/b"]
    assert points(mount("/mnt", device="8:2"), mount("/mnt", "ramfs", device="0:5")) == []


def test_file_systems_in_memory_count_but_never_as_switched_to_read_only_by_errors():
    root, run = mounts_in("\n".join([mount("/run", "tmpfs", whole="ro", device="0:5"), mount("/", device="8:1")]))
    assert (root.memory, run.memory, run.turned_read_only) == (False, True, False)


@pytest.mark.parametrize(
    ("point", "quiet"),
    [
        ("/run", False),
        ("/tmp", False),
        ("/run/user", True),
        ("/run/user/1000", True),
        ("/run/users", False),
        ("/dev/shm", True),
        ("/sys/fs/cgroup", True),
        ("/var/lib/docker/containers/7c1/mounts/shm", True),
    ],
)
def test_memory_of_the_kernel_a_user_or_a_container_is_quiet(point, quiet):
    assert is_quiet(mounts_in(mount(point, "tmpfs"))[0]) == quiet
    assert not is_quiet(mounts_in(mount(point))[0]), "a disk never is"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (59, "less than a minute"),
        (60, "1 minute"),
        (3569, "59 minutes"),
        (3571, "1 hour"),
        (1.95 * 3600, "2 hours"),
        (23.4 * 3600, "23 hours"),
        (23.9 * 3600, "1 day"),
        (10.6 * 86_400, "11 days"),
        (-5, "less than a minute"),
    ],
)
def test_a_span_is_rounded_to_its_unit(seconds, said):
    assert age(seconds)[0] == said


def test_servers_and_daemons_are_remote():
    kinds = ("nfs4", "cifs", "fuse.sshfs", "9p", "fuseblk", "fuse")
    rows = [mount(f"/m/{kind}", kind, device=f"0:{n}") for n, kind in enumerate(kinds)]
    assert all(one.remote for one in mounts_in("\n".join(rows)))
    assert not mounts_in(mount("/"))[0].remote


@pytest.mark.parametrize(
    ("options", "whole", "read_only", "turned"),
    [
        ("rw", "rw", False, False),
        ("ro", "ro", True, False),
        ("ro", "rw", True, False),
        ("rw", "ro,errors=remount-ro", False, True),
        ("rw", "rw,emergency_ro", False, True),
        ("rw", "rw,shutdown", False, True),
    ],
)
def test_read_only_on_purpose_differs_from_turned_read_only(options, whole, read_only, turned):
    (one,) = mounts_in(mount("/", options=options, whole=whole))
    assert (one.read_only, one.turned_read_only) == (read_only, turned)


def test_escapes_of_the_mount_table_are_undone():
    assert unescaped(r"/mnt/my\040disk\134x") == r"/mnt/my disk\x"
    assert unescaped("/mnt/\\344\\270\\255") == "/mnt/中"
    assert unescaped("/a\\04") == "/a\\04"


@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=40))
def test_any_mount_point_survives_the_kernels_escaping(point):
    escaped = point.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011").replace("\n", "\\012")
    assert unescaped(escaped) == point


@given(st.text(max_size=200))
def test_any_mount_table_is_read_without_an_error(text):
    mounts_in(text)
    writable_in_fstab(text)


def test_fstab_names_what_should_be_writable():
    text = (
        "# x\n/dev/a / ext4 defaults 0 1\n/dev/b /mnt/a\\040b xfs noatime 0 2\n"
        "/dev/c /iso iso9660 ro 0 0\n/dev/d /usb vfat noauto 0 0\nshort line\n"
    )
    assert writable_in_fstab(text) == {"/", "/mnt/a b"}


def test_the_limit_with_the_least_room_counts_among_all_ancestors():
    files = {
        "/sys/fs/cgroup/a/b/memory.max": "max\n",
        "/sys/fs/cgroup/a/b/memory.current": "10\n",
        "/sys/fs/cgroup/a/memory.max": "1000\n",
        "/sys/fs/cgroup/a/memory.current": "900\n",
        "/sys/fs/cgroup/a/memory.stat": "anon 1\ninactive_file 150\n",
        "/sys/fs/cgroup/memory.max": "5000\n",
        "/sys/fs/cgroup/memory.current": "1000\n",
    }
    assert next(iter(files)) in memory_paths("0::/a/b\n")
    limit = memory_limit(files)
    assert (limit.limit, limit.used, limit.group) == (1000, 750, "/a")
    assert memory_limit({"/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}) is None


def test_the_smallest_quota_counts_and_none_is_no_limit():
    assert cpu_limit({"/sys/fs/cgroup/cpu.max": "max 100000\n"}) is None
    assert (
        cpu_limit({"/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"})
        is None
    )
    files = {"/sys/fs/cgroup/a/cpu.max": "50000 100000\n", "/sys/fs/cgroup/cpu.max": "400000 100000\n"}
    assert cpu_limit(files).cores == 0.5


def test_a_group_seen_from_outside_its_namespace_is_the_root():
    assert memory_paths("0::/../../x\n") == [
        f"/sys/fs/cgroup/{name}" for name in ("memory.max", "memory.current", "memory.stat")
    ]
    assert memory_paths("garbage\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "0::/a/opsagent-31-777-0fe921\n",
        "4:memory:/a/opsagent-31-777-0fe921\n0::/\n",
        "0::/a/opsagent-3-7-0f/opsagent-9-9-1\n",
    ],
)
def test_groups_that_the_guard_makes_for_its_runs_are_no_limit_of_the_machine(text):
    paths = memory_paths(text)
    assert paths == memory_paths(re.sub(r"/opsagent-[^\n]*", "", text))
    assert paths
    assert cpu_paths("0::/a/opsagent-31-777-0fe921\n") == cpu_paths("0::/a\n")


def test_what_a_runbook_says_of_groups_and_processes_leaves_the_program_that_asks_out():
    where = Where("web-1", 0, NOW_S, groups="0::/user.slice/session-4.scope\n", pid=812)
    for name, key in (("memory", "memory.max"), ("cpu", "cpu.max")):
        case = HERE / name / ("debian-healthy" if name == "memory" else "debian-idle")
        recorded = Recorded(json.loads((case / "commands.json").read_text("utf-8"))["answers"])
        have, book = Answers(), load(name)
        for command in book.commands(have, where):
            have.add(command.key, recorded(command.argv, 1.0))
        (group,) = [command for command in book.commands(have, where) if command.key == "group"]
        assert f"/sys/fs/cgroup/user.slice/session-4.scope/{key}" in group.argv
    answers = Answers()
    answers.add("ps", Answer(0, "  PID   RSS COMMAND\n  812 412300 python\n   40  212300 mysqld\n", "", "succeeded"))
    answers.add(
        "files", Answer(0, "/proc/meminfo:MemTotal: 8000 kB\n/proc/meminfo:MemAvailable: 4000 kB\n", "", "succeeded")
    )
    first = load("memory").read(answers, where)[0]
    assert "mysqld" in first.text.en
    assert "python" not in first.text.en


def test_this_machine_knows_the_groups_and_the_process_of_the_program_itself():
    where = this_machine(now_s=NOW_S)
    assert (where.pid, where.groups) == (os.getpid(), Path("/proc/self/cgroup").read_text())
