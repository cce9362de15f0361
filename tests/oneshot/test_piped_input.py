"""What is read from standard input beside `-p TEXT`: bounded, never waited for without end, never from a socket."""

from __future__ import annotations

import json
import os
import socket
import threading

import pytest

from agent import oneshot
from cli import opsagent_ask, piped_input
from guard.redact import Redactor
from runbooks.catalogue import Books
from tests.oneshot.test_oneshot import UTC, machine


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        try:
            os.close(end)
        except OSError:
            continue


class Runs:
    """A clock that moves on by itself."""

    def __init__(self, step_s: float) -> None:
        self.now, self.step_s = 0.0, step_s

    def __call__(self) -> float:
        self.now += self.step_s
        return self.now


def test_a_pipe_is_read_to_its_end(pipe):
    ours, theirs = pipe
    os.write(theirs, "错误 one\0\xff\n".encode("utf-8", "replace") + b"\xff\n")
    os.close(theirs)
    got = piped_input.read(ours)
    assert (got.text, got.cut, got.silent) == ("错误 one\xff\n\ufffd\n", None, False)


def test_a_silent_pipe_is_left_alone_and_an_endless_one_is_used_as_far_as_it_came(pipe):
    ours, theirs = pipe
    got = piped_input.read(ours, monotonic=Runs(1.0))
    assert (got.text, got.silent) == ("", True)
    os.write(theirs, b"so far\n")
    got = piped_input.read(ours, monotonic=Runs(1.0))
    assert (got.text, got.silent) == ("so far\n", False)
    assert "did not end within 10 s" in got.cut.en


def test_an_ended_pipe_without_a_byte_is_not_silent(pipe):
    ours, theirs = pipe
    os.close(theirs)
    got = piped_input.read(ours)
    assert (got.text, got.cut, got.silent) == ("", None, False)


def test_of_a_long_text_the_last_whole_lines_are_kept(tmp_path, pipe, monkeypatch):
    monkeypatch.setattr(piped_input, "MOST_BYTES", 1 << 20)
    text = "".join(f"line {number}\n" for number in range(300_000)).encode()
    file = tmp_path / "log"
    file.write_bytes(text)
    with file.open("rb") as stream:
        from_file = piped_input.read(stream.fileno())
    ours, theirs = pipe
    writer = threading.Thread(target=lambda: (_write_all(theirs, text), os.close(theirs)))
    writer.start()
    from_pipe = piped_input.read(ours)
    writer.join()
    for got in (from_file, from_pipe):
        assert got.text.endswith("line 299999\n")
        assert got.text.startswith("line ")
        assert (1 << 20) - 20 < len(got.text) <= 1 << 20
        assert got.cut.en == "its last 1 MiB of 3.3"


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def test_a_file_is_read_from_where_it_stands(tmp_path):
    file = tmp_path / "log"
    file.write_text("one\ntwo\n")
    with file.open("rb", buffering=0) as stream:
        stream.read(4)
        assert piped_input.read(stream.fileno()).text == "two\n"


def test_sockets_folders_and_closed_descriptors_are_not_read(pipe):
    left, right = socket.socketpair()
    right.sendall(b"error\n")
    null = os.open("/dev/null", os.O_RDONLY)
    try:
        assert piped_input.read(left.fileno()).text == ""
        assert piped_input.read(null).text == ""
    finally:
        os.close(null)
        left.close()
        right.close()
    closed = os.dup(pipe[0])
    os.close(closed)
    assert piped_input.read(closed).text == ""


def test_being_stopped_while_a_pipe_is_read_ends_the_question(pipe):
    with pytest.raises(opsagent_ask.Interrupted):
        opsagent_ask.add_piped(oneshot.Question("why?"), lambda: True, fd=pipe[0])


def test_what_was_not_read_is_said_on_stderr(pipe, monkeypatch, capsys):
    monkeypatch.setattr(piped_input, "FIRST_S", 0.01)
    question = oneshot.Question("why?")
    opsagent_ask.add_piped(question, lambda: False, fd=pipe[0])
    assert question.piped == ""
    assert "nothing came on standard input within 0.01 s" in capsys.readouterr().err
    monkeypatch.setattr(piped_input, "WHOLE_S", 0.05)
    monkeypatch.setattr(piped_input, "FIRST_S", 3.0)
    os.write(pipe[1], b"db failed\n")
    opsagent_ask.add_piped(question, lambda: False, fd=pipe[0])
    assert question.piped == "db failed\n"
    assert "did not end within 0.05 s" in capsys.readouterr().err


@pytest.mark.parametrize("output", ["text", "json", "stream-json"])
def test_every_form_of_the_answer_carries_the_piped_errors_redacted(output, capsys):
    question = oneshot.Question("disk", output=output)
    question.piped = "login failed password=Tr0ub4dor-and-more\n"
    code = opsagent_ask.answer(
        question,
        machine("disk/debian-healthy"),
        utc=lambda: UTC,
        stopped=lambda: False,
        session="c-1",
        redact=Redactor().text,
    )
    shown = capsys.readouterr().out
    assert code == 0
    assert "login failed password=[REDACTED]" in shown
    assert "Tr0ub4dor" not in shown
    if output == "json":
        assert [finding["id"] for finding in json.loads(shown)["findings"]][:2] == ["piped.errors", "piped.group"]


def test_events_know_the_users_own_runbooks_too(monkeypatch):
    seen = []
    monkeypatch.setattr(oneshot, "stream", lambda *args, **named: seen.append(named["books"]) or iter([("{}\n", 0)]))
    books = Books()
    question = oneshot.Question("disk", output="stream-json")
    named = {"utc": lambda: UTC, "stopped": lambda: False, "session": "c-1", "books": books}
    assert opsagent_ask.answer(question, machine("disk/debian-healthy"), **named) == 0
    assert seen == [books]
