"""Makes a machine sick for real, in namespaces of its own, and lets `opsagent -p` find it through the guard.

Made: a control group whose memory is nearly used up, a small ext4 file system that is full, 200 zombies, a database
port on every address, a certificate that ended, a FUSE mount that never answers. Everything goes with the namespaces;
the group is removed. Needs root, loop devices, FUSE and openssl; what cannot be made here is said and counts as a
failure. Ends with 1 when something was not found or the answer about the hung mount took more than 20 s.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.runbooks.hung_mount import mount_dead_fuse  # noqa: E402

NAMESPACES = ["unshare", "--mount", "--net", "--uts", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]
PORT = 6379
HUNG_S = 20.0
ZOMBIES = 200
LIMIT_BYTES = 1 << 30
LEFT_BYTES = 96 << 20
"""What the held memory leaves of the limit, 9%: opsagent and its workers take some of it while they look."""
QUESTIONS = (
    ("memory", "how is the memory", "内存够用吗", "memory.limit", ("warn", "crit")),
    ("full file system", "is a disk full", "磁盘满了吗", "disk.space", ("crit",)),
    ("zombies", "are there zombie processes", "有僵尸进程吗", "processes.zombies", ("warn",)),
    ("open port", "is a database port exposed", "有没有对外暴露的端口", "ports.exposed", ("warn", "crit")),
    ("certificate", "has a certificate expired", "证书过期了吗", "certs.ends", ("crit",)),
)
ASK = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli.opsagent import main; sys.exit(main(sys.argv[1:]))"
HOLD = """
import mmap, sys
held = mmap.mmap(-1, int(sys.argv[1]))
for at in range(0, len(held), 4096):
    held[at] = 1
print("ready", flush=True)
sys.stdin.read()
"""


def run(*argv: str, **named: object) -> subprocess.CompletedProcess[str]:
    """One command that has to work."""
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60, **named)  # type: ignore[call-overload]


def make_group() -> tuple[Path, str]:
    """A memory control group with a limit, of either version, and the name of the file that its members are put in."""
    v1 = Path("/sys/fs/cgroup/memory")
    groups = Path("/proc/self/cgroup").read_text().splitlines()
    if v1.is_dir():
        own = next(line.split(":", 2)[2] for line in groups if ":memory:" in line).strip("/")
        folder, limit = v1 / own / f"stress-{os.getpid()}", "memory.limit_in_bytes"
    else:
        folder, limit = Path("/sys/fs/cgroup") / f"stress-{os.getpid()}", "memory.max"
    folder.mkdir()
    (folder / limit).write_text(str(LIMIT_BYTES))
    return folder, "cgroup.procs"


def hold_memory(folder: Path, members: str, size: int) -> subprocess.Popen[str]:
    """A process in the group that holds `size` bytes."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(size)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: (folder / members).write_text(str(os.getpid())),
    )
    assert holder.stdout and holder.stdout.readline() == "ready\n", "the memory could not be held"
    return holder


def fill_disk(work: Path) -> Path:
    """A full ext4 of 64 MiB on a loop device."""
    image, point = work / "small.img", work / "small"
    point.mkdir()
    with image.open("wb") as stream:
        stream.truncate(64 << 20)
    run("mkfs.ext4", "-q", "-F", str(image))
    run("mount", "-o", "loop", str(image), str(point))
    try:
        with (point / "fill").open("wb", buffering=0) as stream:
            while True:
                stream.write(bytes(1 << 16))
    except OSError:
        return point


def make_zombies(count: int) -> int:
    """Children of one process that ended and were never waited for; gives the parent."""
    ours, theirs = os.pipe()
    parent = os.fork()
    if parent == 0:
        for _ in range(count):
            if os.fork() == 0:
                os._exit(0)
        os.write(theirs, b"x")
        signal.pause()
    os.read(ours, 1)
    return parent


def make_certificate(work: Path) -> Path:
    """A certificate that ended on 2025-02-01, in a folder that a web server would use."""
    for kind in ("upper", "inner"):
        (work / kind).mkdir()
    run("mount", "-t", "tmpfs", "none", str(work / "inner"))
    upper, inner = work / "inner/upper", work / "inner/work"
    upper.mkdir()
    inner.mkdir()
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/etc,upperdir={upper},workdir={inner}", "/etc")
    folder = Path("/etc/nginx/tls")
    folder.mkdir(parents=True)
    ca = work / "ca"
    ca.mkdir()
    (ca / "index.txt").touch()
    (ca / "serial").write_text("01\n")
    (ca / "ca.cnf").write_text(
        f"[ca]\ndefault_ca=d\n[d]\ndatabase={ca}/index.txt\nserial={ca}/serial\nnew_certs_dir={ca}\n"
        "default_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n"
    )
    request = ["openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    run(*request, "-subj", "/CN=shop.example", "-keyout", f"{ca}/key.pem", "-out", f"{ca}/request.pem")
    sign = ["openssl", "ca", "-batch", "-selfsign", "-notext", "-config", f"{ca}/ca.cnf", "-keyfile", f"{ca}/key.pem"]
    dates = ["-startdate", "20250101000000Z", "-enddate", "20250201000000Z"]
    run(*sign, *dates, "-in", f"{ca}/request.pem", "-out", str(folder / "shop.pem"))
    return folder / "shop.pem"


def ask(question: str, folder: Path, members: str) -> tuple[dict, float]:
    """The answer of a process of its own that belongs to the group, and how long it took."""
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-I", "-c", ASK, "-p", question, "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: (folder / members).write_text(str(os.getpid())),
    )
    if not done.stdout.startswith("{"):
        raise SystemExit(f"{question}: exit code {done.returncode}: {done.stderr}")
    return json.loads(done.stdout), time.monotonic() - began


def inside(work: Path, folder: Path, members: str) -> NoReturn:
    """Makes everything, asks everything, prints what was found."""
    os.environ["OPSAGENT_HOME"] = str(work / "state")
    run("ip", "link", "set", "lo", "up")
    point = fill_disk(work)
    zombies = make_zombies(ZOMBIES)
    listener = socket.create_server(("0.0.0.0", PORT))
    certificate = make_certificate(work)
    holder = hold_memory(folder, members, LIMIT_BYTES - LEFT_BYTES)
    subjects = {"disk.space": str(point), "certs.ends": str(certificate)}
    missed = 0
    for what, english, chinese, id, severities in QUESTIONS:
        for question in (english, chinese):
            answer, took_s = ask(question, folder, members)
            hits = [
                finding
                for finding in answer["findings"]
                if finding["id"] == id
                and finding["severity"] in severities
                and finding["subject"] == subjects.get(id, finding["subject"])
            ]
            missed += not hits
            print(f"{what} ({took_s:.1f} s): {'found' if hits else 'NOT FOUND'}")
            for finding in hits or answer["findings"] + answer["not_checked"]:
                print(f"  {finding.get('severity', 'not checked')}: {finding['text']}")
    dead = work / "dead"
    dead.mkdir()
    mount_dead_fuse(str(dead))
    for question in ("is the disk ok", "磁盘正常吗"):
        answer, took_s = ask(question, folder, members)
        hits = [one for one in answer["findings"] if (one["id"], one["subject"]) == ("disk.hung", str(dead))]
        late = took_s > HUNG_S
        missed += not hits or late
        print(f"hung mount ({took_s:.1f} s): {'found' if hits else 'NOT FOUND'}{', TOO LATE' if late else ''}")
        for finding in answer["findings"] if hits else answer["findings"] + answer["not_checked"]:
            print(f"  {finding.get('severity', 'not checked')}: {finding['text']}")
    listener.close()
    for child in (zombies, holder.pid):
        os.kill(child, signal.SIGKILL)
    holder.wait()
    print("everything was found, in both languages" if not missed else f"{missed} not found or late", flush=True)
    os._exit(1 if missed else 0)  # closes /dev/fuse, which frees whoever still waits


def main(arguments: list[str]) -> int:
    """Makes the group outside and the rest inside the namespaces."""
    if arguments[:1] == ["--inside"]:
        inside(Path(arguments[1]), Path(arguments[2]), arguments[3])
    if os.geteuid() != 0:
        print("needs root: namespaces, a loop device and a control group are made")
        return 1
    missing = [program for program in ("unshare", "mkfs.ext4", "openssl", "ip") if shutil.which(program) is None]
    if missing:
        print(f"not installed here: {', '.join(missing)}")
        return 1
    folder, members = make_group()
    try:
        with tempfile.TemporaryDirectory() as work:
            inner = [sys.executable, str(Path(__file__).resolve()), "--inside", work, str(folder), members]
            return subprocess.run([*NAMESPACES, *inner], timeout=500).returncode
    finally:
        for _ in range(50):
            try:
                folder.rmdir()
                break
            except OSError:
                time.sleep(0.1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
