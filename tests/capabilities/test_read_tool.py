"""`read`: lines of a file, on its real path, through the guard; no secret survives at a page's edge."""

from __future__ import annotations

import json
import os

import pytest

from capabilities.bounded import ANSWER_BYTES, wire_bytes
from capabilities.files import CannotRead, read_tool
from capabilities.jobs import Jobs
from capabilities.registry import BadArguments
from guard.types import NO_ENFORCEMENT
from tests.capabilities.world import asked, call_in, guard_in

KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "MIIEpAIBAAKCAQEA7bq0Zl3kVn5Cw8xgq1Ytu9Rj2sPd\n" * 40
    + "-----END RSA PRIVATE KEY-----\n"
)


@pytest.fixture
def tool(tmp_path):
    def made(guard=None, jobs=None):
        return read_tool(guard or guard_in(tmp_path), call_in(tmp_path), jobs or Jobs())

    return made


def numbered(path, count):
    path.write_text("".join(f"line {number}\n" for number in range(1, count + 1)))
    return path


def test_a_short_file_comes_whole(tool, tmp_path):
    numbered(tmp_path / "f", 3)
    got = asked(tool(), path="f")
    assert (got["content"], got["offset"], got["lines"], got["next_offset"]) == (
        "line 1\nline 2\nline 3\n", 1, 3, None,
    )  # fmt: skip
    assert (got["status"], got["path"], got["recorded"]) == ("succeeded", str(tmp_path / "f"), True)


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_pages_forward_join_to_the_file(tool, tmp_path, limit):
    whole = numbered(tmp_path / "f", 23).read_text()
    text, offset = "", 1
    while offset is not None:
        got = asked(tool(), path="f", offset=offset, limit=limit)
        text += got["content"]
        offset = got["next_offset"]
    assert text == whole


@pytest.mark.parametrize(
    ("offset", "limit", "first", "next_offset"), [(-1, 9, 23, None), (-5, 2, 19, -3), (-99, 4, 1, -19)]
)
def test_a_negative_offset_counts_from_the_end(tool, tmp_path, offset, limit, first, next_offset):
    numbered(tmp_path / "f", 23)
    got = asked(tool(), path="f", offset=offset, limit=limit)
    assert (got["content"].split("\n")[0], got["next_offset"]) == (f"line {first}", next_offset)


def test_pages_backward_join_to_the_end_of_the_file(tool, tmp_path):
    whole = numbered(tmp_path / "f", 23).read_text()
    text, offset = "", -10
    while offset is not None:
        got = asked(tool(), path="f", offset=offset, limit=3)
        text += got["content"]
        offset = got["next_offset"]
    assert text == "".join(whole.splitlines(keepends=True)[-10:])


def test_a_page_that_would_be_too_long_ends_earlier(tool, tmp_path):
    (tmp_path / "f").write_text("".join("x" * 300 + f"{number}\n" for number in range(500)))
    got = asked(tool(), path="f", limit=500)
    assert wire_bytes(got) <= ANSWER_BYTES
    assert got["lines"] < 500 and got["next_offset"] == 1 + got["lines"]
    again = asked(tool(), path="f", offset=got["next_offset"], limit=1)
    assert again["content"] == "x" * 300 + f"{got['lines']}\n"


def test_a_line_without_end_is_shown_by_its_head_and_tail(tool, tmp_path):
    (tmp_path / "f").write_text("HEAD" + "x" * 5_000_000 + "TAIL\nsecond\n")
    got = asked(tool(), path="f")
    first = got["content"].rpartition("\nsecond\n")[0]
    assert first.startswith("HEAD") and first.endswith("TAIL") and "left out" in first
    assert len(first) < 5000 and got["content"].endswith("second\n")


def test_a_secret_in_the_middle_of_a_block_is_not_shown_by_beginning_behind_its_head(tool, tmp_path):
    (tmp_path / "f").write_text("before\n" + KEY + "after\n")
    for arguments in ({"offset": 10, "limit": 5}, {"offset": -8}, {"offset": -2}, {}):
        assert "MIIEpAIB" not in json.dumps(asked(tool(), path="f", **arguments))
    assert asked(tool(), path="f", offset=-1)["content"] == "after\n"


def test_a_known_value_is_replaced_whatever_the_page(tool, tmp_path):
    secret = "correct-horse-battery-staple-7421"
    (tmp_path / "f").write_text(f"one\nuse {secret} here\nthree\n")
    guard = guard_in(tmp_path, secrets=[secret])
    assert asked(tool(guard), path="f", offset=2, limit=1)["content"] == "use [REDACTED] here\n"


def test_what_runs_names_the_real_path_quoted(tool, tmp_path):
    odd = tmp_path / "it's; rm -rf x $(id)"
    odd.write_text("text\n")
    (tmp_path / "link").symlink_to(odd)
    guard = guard_in(tmp_path)
    got = asked(tool(guard), path="link")
    assert (got["content"], got["path"]) == ("text\n", str(odd))
    assert guard.target.asked[0][0].startswith("head -n 201 -- '")
    listed = guard.ledger.executions().executions
    assert [(run.level, run.client, run.call_id) for run in listed] == [("R0", "tests 7", "toolu_1")]


def test_a_secret_file_behind_a_harmless_name_is_kept_for_a_person(tool, tmp_path):
    place = tmp_path / ".ssh"
    place.mkdir()
    (place / "id_rsa").write_text(KEY)
    (tmp_path / "notes.txt").symlink_to(place / "id_rsa")
    guard = guard_in(tmp_path)
    got = asked(tool(guard), path="notes.txt")
    assert (got["status"], got["level"], "content" in got) == ("needs_stamp", "R2", False)
    assert got["next"] == f"opsx approve {got['request']}"
    assert guard.target.asked == []


def test_a_read_that_nothing_enforces_says_so_and_reads_nothing_that_is_not_plain(tool, tmp_path):
    numbered(tmp_path / "f", 3)
    got = asked(tool(guard_in(tmp_path, enforcement=NO_ENFORCEMENT)), path="f")
    assert got["status"] in ("succeeded", "needs_stamp")
    assert ("content" in got) == (got["status"] == "succeeded")


@pytest.mark.parametrize("path", ["nothing", "nothing/below", "f/below", "x" * 3000])
def test_what_is_not_there_is_an_error_with_a_hint(tool, tmp_path, path):
    numbered(tmp_path / "f", 1)
    with pytest.raises(CannotRead) as caught:
        asked(tool(), path=path)
    assert caught.value.not_done == "nothing was read"


def test_a_folder_is_an_error_that_names_the_command_for_it(tool, tmp_path):
    with pytest.raises(CannotRead) as caught:
        asked(tool(), path=".")
    assert caught.value.hint == f"ops_exec: ls -la -- {tmp_path}"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"path": ""},
        {"path": "a\0b"},
        {"path": "f", "limit": 0},
        {"path": "f", "limit": 2001},
        {"path": "f", "offset": "2"},
        {"path": "f", "lines": 2},
    ],
)
def test_arguments_that_do_not_fit_are_named(tool, arguments):
    with pytest.raises(BadArguments):
        asked(tool(), **arguments)


@pytest.mark.parametrize("path", ["fifo", "/dev/zero", "/dev/null", "zero"])
def test_what_is_no_regular_file_has_no_lines(tool, tmp_path, path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    guard = guard_in(tmp_path)
    with pytest.raises(CannotRead, match="no regular file"):
        asked(tool(guard), path=path)
    assert guard.target.asked == []


def test_ones_own_saved_output_is_read_where_no_command_may_look(tool, tmp_path):
    place = tmp_path / "state" / "outputs"
    place.mkdir(parents=True)
    saved = numbered(place / "e-1.stdout.txt", 30)
    jobs, guard = Jobs(), guard_in(tmp_path)
    jobs.saved(str(saved))
    got = asked(tool(guard, jobs), path=str(saved), offset=29)
    assert (got["content"], got["next_offset"]) == ("line 29\nline 30\n", None)
    assert asked(tool(guard, jobs), path=str(saved), offset=-3, limit=1)["content"] == "line 28\n"
    assert guard.target.asked == []
    saved.unlink()
    with pytest.raises(CannotRead):
        asked(tool(guard, jobs), path=str(saved))
