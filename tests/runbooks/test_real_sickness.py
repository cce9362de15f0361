"""Sick things made for real on this machine, and found: zombies, an open port, an old certificate, large files."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time

import pytest

from runbooks import runner
from runbooks.library import certs, ports
from runbooks.model import Severity, Where
from tests.runbooks.hung_mount import ask
from tests.waiting import until

MAKES_ZOMBIES = """
import os, sys
for _ in range(150):
    if os.fork() == 0:
        os._exit(0)
print("ready", flush=True)
sys.stdin.read()
"""


def found(id, **named):
    where = Where("web-1", os.geteuid(), named.pop("now_s", time.time()), **named)
    return runner.run([id], ask, where, utc=lambda: "2026-12-01T04:40:00.000Z").findings


def test_zombies_are_counted_and_their_parent_is_named():
    with subprocess.Popen(
        [sys.executable, "-c", MAKES_ZOMBIES], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout.readline() == b"ready\n"

        def named():
            """The finding, once no test beside this one has more of them for a moment."""
            (zombies,) = [finding for finding in found("processes") if finding.id == "processes.zombies"]
            return zombies if f"(pid {parent.pid})" in zombies.text.en else None

        zombies = until(named, "the parent of 150 zombies")
        parent.stdin.close()
    assert zombies.severity == Severity.WARN
    assert zombies.number >= 150


def listener():
    """A socket that listens on every address at a port of the list, whichever is free."""
    for port in ports.SENSITIVE:
        sock = socket.socket()
        try:
            sock.bind(("0.0.0.0", port))
        except OSError:
            sock.close()
            continue
        sock.listen()
        return sock, port
    raise AssertionError("no port of the list is free here")


def test_a_database_port_on_every_address_is_found_and_a_port_by_its_number():
    sock, port = listener()
    try:
        findings = found("ports", numbers=[port])
    finally:
        sock.close()
    exposed = [finding for finding in findings if finding.id == "ports.exposed" and finding.number == port]
    assert [finding.severity for finding in exposed] == [Severity.CRIT if port in ports.CRITICAL else Severity.WARN]
    asked = next(finding for finding in findings if finding.id == "ports.asked")
    assert f"(pid {os.getpid()})" in asked.text.en
    assert any(finding.id == "ports.not-checked" and "outside" in finding.text.en for finding in findings)


@pytest.mark.parametrize(
    ("days_on", "severity", "said"),
    [(0, Severity.CRIT, "ends in "), (10, Severity.CRIT, "ended "), (-50, Severity.OK, "is good for")],
)
def test_a_real_certificate_is_read_to_its_end(tmp_path, monkeypatch, days_on, severity, said):
    if shutil.which("openssl") is None:
        assert any("none in the usual folders" in finding.text.en or finding.needs_root for finding in found("certs"))
        return
    key, cert = tmp_path / "privkey.pem", tmp_path / "shop.pem"
    request = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /O=Test/CN=shop.test"
    command = [*request.split(), "-keyout", str(key), "-out", str(cert)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    monkeypatch.setattr(certs, "FIND", ("find", str(tmp_path), "-name", "*.pem"))
    (finding,) = found("certs", now_s=time.time() + days_on * 86_400)
    assert (finding.severity, finding.subject) == (severity, str(tmp_path / "shop.pem"))
    assert "shop.test" in finding.text.en
    assert said in finding.text.en


def test_the_folder_that_fills_a_path_is_named(tmp_path):
    (tmp_path / "big").mkdir()
    (tmp_path / "small").mkdir()
    (tmp_path / "big" / "data.bin").write_bytes(os.urandom(3 << 20))
    (tmp_path / "small" / "note").write_text("x")
    folders, files = found("bigfiles", paths=[str(tmp_path)])
    assert folders.text.en.partition(": ")[2].startswith(f"{tmp_path}/big 3 MiB")
    assert files.text.en == f"No file below {tmp_path} has 100 MiB or more."
