"""Whose an ssh connection is: what is believed, and what is not."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys

import pytest

from guard.hands import connection


def test_process_without_an_ssh_server_above_it_has_no_connection():
    assert connection.connection_of(1) is None


PROBE = (
    "import os, sys; sys.path.insert(0, {root!r}); from guard.hands import connection as c; "
    "print(c.connection_of(os.getpid()), c.is_server(os.getppid()), repr(c.connection_text({{}}, os.getpid())))"
)


@pytest.mark.parametrize("name", ["sshd", "sshd-session"])
def test_a_process_that_only_has_the_name_is_no_server(name, tmp_path):
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    fake = tmp_path / name
    shutil.copy("/bin/sh", fake)
    code = PROBE.format(root=root)
    done = subprocess.run(
        [str(fake), "-c", '"$0" -c "$1"; true', sys.executable, code],
        capture_output=True,
        text=True,
        check=True,
        start_new_session=True,
    )
    assert done.stdout.split("\n")[0] == "None False ''"


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("192.0.2.1 50000 192.0.2.2 22", (("192.0.2.1", 50000), ("192.0.2.2", 22))),
        ("::ffff:192.0.2.1 50000 192.0.2.2 22", (("192.0.2.1", 50000), ("192.0.2.2", 22))),
        ("fe80::1%eth0 50000 fe80::2%eth0 22", (("fe80::1", 50000), ("fe80::2", 22))),
        ("UNKNOWN 65535 UNKNOWN 65535", None),
        ("192.0.2.1 50000 192.0.2.2", None),
        ("192.0.2.1 x 192.0.2.2 22", None),
        ("", None),
    ],
)
def test_both_ends_of_a_connection_are_read_from_what_the_server_says(text, ends):
    assert connection._ends_of(text) == ends


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_kernel_s_tables_are_read_as_the_sockets_are(family):
    try:
        server = socket.create_server(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0), family=family)
    except OSError:  # no IPv6 here: then there is no such table to misread
        assert family == socket.AF_INET6
        return
    with server, socket.create_connection(server.getsockname()[:2]) as client:
        held, _ = server.accept()
        with held:
            mine, port = client.getsockname()[0], client.getsockname()[1]
            rows = {(own, other, state): (user, inode) for own, other, state, user, inode in connection._rows()}
            wanted = ((mine, server.getsockname()[1]), (mine, port), "01")
            assert rows[wanted] == (os.getuid(), os.fstat(held.fileno()).st_ino)
            assert os.fstat(held.fileno()).st_ino in (connection.sockets_of(os.getpid()) or ())
            assert connection._is_own((mine, port), (mine, server.getsockname()[1]))
            assert connection._stands((mine, port), (mine, server.getsockname()[1])) is (os.getuid() == 0)


def test_a_variable_that_is_there_is_taken_and_one_that_is_not_is_no_connection():
    assert connection.connection_text({"SSH_CONNECTION": "a 1 b 2"}, os.getpid()) == "a 1 b 2"


def test_nobody_s_processes_are_no_servers():
    assert not connection.is_server(os.getpid())
    assert not connection.is_server(1 << 22)


@pytest.mark.parametrize("name", ["tmux: server", "screen", "SCREEN", "mosh-server"])
def test_what_outlives_a_connection_is_known_by_its_name(name, monkeypatch):
    monkeypatch.setattr(connection, "_name_of", lambda pid: name)
    assert connection.multiplexer_of(os.getpid()) == name.partition(":")[0]


@pytest.mark.parametrize(
    ("inside", "somebody", "text"),
    [("tmux", True, "some, through tmux"), ("tmux", False, ""), ("", True, "")],
)
def test_a_terminal_that_outlives_connections_may_be_anybodys_who_is_in(inside, somebody, text, monkeypatch):
    monkeypatch.setattr(connection, "connection_of", lambda pid: None)
    monkeypatch.setattr(connection, "multiplexer_of", lambda pid: inside)
    monkeypatch.setattr(connection, "somebody_is_in", lambda: somebody)
    assert connection.connection_text({}, os.getpid()) == text


def test_nobody_is_in_where_no_server_of_roots_has_begun_another(monkeypatch):
    monkeypatch.setattr(connection, "is_server", lambda pid: pid == os.getpid())
    assert not connection.somebody_is_in()
    monkeypatch.setattr(connection, "is_server", lambda pid: pid in (os.getpid(), os.getppid()))
    assert connection.somebody_is_in()
