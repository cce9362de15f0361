"""Saved outputs: redacted, bounded, for the owner only, and never a reason to lose a result."""

from __future__ import annotations

import os
import stat
import tracemalloc

import pytest

from guard.ledger.outputs import CUT_LINE_BYTES, KEPT_FILES, LATE_CHARS, OutputFolder, OutputWriter
from tests.ledger.world import ledger_in


class Lines:
    """A redacting stream in small: holds back the last, incomplete line."""

    def __init__(self):
        self.held = ""

    def feed(self, text):
        whole, newline, self.held = (self.held + text).rpartition("\n")
        return (whole + newline).replace("hunter2", "[REDACTED]")

    def flush(self):
        held, self.held = self.held, ""
        return held.replace("hunter2", "[REDACTED]")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "outputs"


def writer(folder, execution="e-1", stream="stdout", **more):
    return OutputWriter(OutputFolder.at(str(folder)), execution, stream, Lines(), **more)


def saved(folder, chunks, **more):
    one = writer(folder, **more)
    for chunk in chunks:
        one.feed(chunk)
    return one.finish()


def content(result):
    with open(result.path, "rb") as file:
        return file.read()


def test_short_output_makes_no_file(folder):
    result = saved(folder, [b"x" * 30_000])
    assert (result.path, result.reason) == (None, "")
    assert not folder.exists()


def test_long_output_is_saved_whole_and_private(folder):
    result = saved(folder, [b"line\n"] * 7000)
    assert content(result) == b"line\n" * 7000
    assert (result.size_bytes, result.cut_bytes, result.reason) == (35_000, 0, "")
    assert result.path == str(folder / "e-1.stdout.txt")
    assert stat.S_IMODE(os.stat(result.path).st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_threshold_counts_characters_not_bytes(folder):
    assert saved(folder, ["中".encode() * 30_000]).path is None
    assert content(saved(folder, ["中".encode() * 30_001])) == "中".encode() * 30_001


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50])
@pytest.mark.guarantee("G-REDACT")
def test_secret_never_reaches_the_file_however_the_bytes_come(folder, size):
    data = ("password hunter2 密码\n" * 40).encode()
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    result = saved(folder, chunks, threshold_chars=100)
    assert content(result).decode() == "password [REDACTED] 密码\n" * 40


def test_bad_bytes_are_replaced_and_the_rest_stays(folder):
    assert content(saved(folder, [b"a\xffb\n" * 30, b"\xe4\xb8"], threshold_chars=10)) == (
        ("a\ufffdb\n" * 30).encode() + "\ufffd".encode()
    )


@pytest.mark.parametrize("chunk", [1, 37, 1000, 100_000])
def test_head_and_tail_are_kept_and_the_cut_is_said(folder, chunk):
    lines = b"".join(b"%06d\n" % number for number in range(20_000))
    limit = 20_000
    result = saved(
        folder,
        [lines[at : at + chunk] for at in range(0, len(lines), chunk)] if chunk > 1 else [lines],
        threshold_chars=10,
        limit_bytes=limit,
    )
    data = content(result)
    assert len(data) == result.size_bytes <= limit
    head, _, rest = data.partition(b"\n[")
    cut_line, _, tail = rest.partition(b"]\n")
    assert lines.startswith(head)
    assert lines.endswith(tail)
    assert tail[:7] == lines[len(lines) - len(tail) :][:7] and tail[6:7] == b"\n"
    assert f"{result.cut_bytes} bytes are cut here" in cut_line.decode()
    assert len(head) + len(tail) + result.cut_bytes == len(lines)


def test_tail_without_lines_begins_with_a_whole_character(folder):
    result = saved(folder, ["中".encode() * 20_000], threshold_chars=10, limit_bytes=9_001)
    text = content(result).decode()
    assert set(text.split("\n")[0]) | set(text.split("\n")[-1]) <= {"中", "\ufffd"}
    assert set(text.split("\n")[-1]) == {"中"}


def test_output_exactly_at_the_limit_is_not_cut(folder):
    half = (10_000 - CUT_LINE_BYTES) // 2
    data = b"x" * (2 * half)
    assert content(saved(folder, [data], threshold_chars=10, limit_bytes=10_000)) == data


@pytest.mark.guarantee("G-BOUNDED")
def test_memory_stays_bounded_whatever_comes(folder):
    block = b"0123456789abcde\n" * 4096
    one = writer(folder, limit_bytes=4 << 20)
    tracemalloc.start()
    for _ in range(512):
        one.feed(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    result = one.finish()
    assert result.size_bytes <= 4 << 20
    assert result.cut_bytes > 27 << 20
    assert peak < LATE_CHARS + (2 << 20)
    assert os.listdir(folder) == ["e-1.stdout.txt"]


def test_newest_two_hundred_are_kept_and_nothing_else_is_touched(folder):
    folder.mkdir()
    for number in range(KEPT_FILES + 5):
        path = folder / f"e-old{number}.stdout.txt"
        path.write_text("")
        os.utime(path, ns=(number, number))
    others = ["notes.txt", "e-.txt", ".gitkeep", "x.stdout.txt"]
    for name in others:
        (folder / name).write_text("")
        os.utime(folder / name, ns=(0, 0))
    os.mkdir(folder / "e-folder.stdout.txt")
    saved(folder, [b"x" * 30_001])
    names = set(os.listdir(folder))
    assert {*others, "e-folder.stdout.txt", "e-1.stdout.txt"} <= names
    kept = {f"e-old{number}.stdout.txt" for number in range(6, KEPT_FILES + 5)}
    assert names - set(others) - {"e-folder.stdout.txt", "e-1.stdout.txt"} == kept


@pytest.mark.parametrize(
    "trap", ["symlink-folder", "symlink-file", "file", "open-folder", "missing-parent", "existing"]
)
def test_folder_that_cannot_be_used_is_a_reason_not_an_error(folder, tmp_path, trap):
    target = tmp_path / "target"
    if trap == "symlink-folder":
        target.mkdir()
        os.symlink(target, folder)
    elif trap == "symlink-file":
        folder.mkdir()
        os.symlink(target, folder / "e-1.stdout.txt")
    elif trap == "file":
        folder.write_text("")
    elif trap == "open-folder":
        folder.mkdir()
        folder.chmod(0o777)
    elif trap == "missing-parent":
        folder = tmp_path / "no" / "outputs"
    else:
        folder.mkdir()
        (folder / "e-1.stdout.txt").write_text("kept")
    result = saved(folder, [b"x" * 20_000] * 5)
    assert result.path is None
    assert result.reason
    if trap == "existing":
        assert (folder / "e-1.stdout.txt").read_text() == "kept"
    else:
        assert not target.exists() or os.listdir(target) == []


def test_failing_write_leaves_no_half_file(folder, monkeypatch):
    one = writer(folder)
    one.feed(b"x" * 200_000)
    assert os.listdir(folder) == ["e-1.stdout.txt"]

    def full(fd, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("guard.ledger.outputs.write_all", full)
    one.feed(b"x" * 200_000)
    one.feed(b"x" * 200_000)
    result = one.finish()
    assert result.path is None
    assert "no space left" in result.reason
    assert os.listdir(folder) == []


def test_ledger_saves_in_the_state_folder_unless_one_is_named(tmp_path, folder):
    ledger = ledger_in(tmp_path / "state")
    for named, place in ((None, tmp_path / "state" / "outputs"), (str(folder), folder)):
        one = ledger.output_writer("e-9", "stderr", Lines(), folder=named)
        one.feed(b"x" * 30_001)
        assert one.finish().path == str(place / "e-9.stderr.txt")
    assert stat.S_IMODE(os.stat(tmp_path / "state" / "outputs").st_mode) == 0o700


def test_a_tail_that_lost_its_beginning_holds_no_half_of_a_secret_of_several_lines(folder):
    """The redacting stream of this test knows a block only by its first line, as a real one knows a PEM block."""

    class Blocks:
        def __init__(self):
            self.held, self.inside = "", False

        def feed(self, text):
            whole, newline, self.held = (self.held + text).rpartition("\n")
            out = []
            for line in (whole + newline).splitlines(keepends=True):
                self.inside = self.inside or line.startswith("BEGIN")
                out.append("[REDACTED]\n" if self.inside else line)
                self.inside = self.inside and not line.startswith("END")
            return "".join(out)

        def flush(self):
            rest, self.held = self.held, ""
            return rest

    one = OutputWriter(OutputFolder.at(str(folder)), "e-1", "stdout", Blocks(), limit_bytes=1 << 20)
    block = "BEGIN KEY\n" + "secretsecret\n" * 900 + "END KEY\n" + "plain line of text\n" * 20
    for _ in range((LATE_CHARS * 2) // len(block)):
        one.feed(block.encode())
    result = one.finish()
    with open(result.path, "rb") as file:
        saved = file.read()
    assert b"secret" not in saved and b"plain line" in saved and b"characters are cut here" in saved
    assert result.cut_bytes > LATE_CHARS // 2
