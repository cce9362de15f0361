"""Properties: a log cut or changed anywhere loads or is reported; what is recorded comes back as it was."""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from guard.errors import StateDamaged
from guard.ledger.carried import entries_of
from guard.ledger.formats import MAX_DEPTH, Malformed, decoded, decoded_entry, encoded
from guard.ledger.log import Log
from guard.ledger.segments import lines_from
from guard.ledger.state import StateFolder
from guard.ledger.verify import verify
from tests.ledger.world import FakeLiveness, FixedClock, asked, done, ledger_in, read_of, segment

few = settings(max_examples=60, deadline=None, derandomize=True)
texts = st.text(st.characters(codec=None), max_size=60)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
batches = st.lists(st.tuples(st.lists(texts, min_size=1, max_size=3), st.booleans()), min_size=1, max_size=6)


def log_in(path, segment_bytes=1 << 24):
    folder = StateFolder.open(path + "/state")
    return folder, Log(folder, clock=FixedClock(), liveness=FakeLiveness(), segment_bytes=segment_bytes)


def written(path, batches, segment_bytes=1 << 24):
    folder, log = log_in(path, segment_bytes)
    for batch, durable in batches:
        log.append([{"kind": "notice", "text": text} for text in batch], durable=durable)
    return folder, log, [text for batch, _ in batches for text in batch]


def texts_in(folder):
    return [entry.get("text") for entry in entries_of(lines_from(folder)) if entry["kind"] == "notice"]


@few
@given(values)
def test_what_is_encoded_comes_back_equal_from_one_line(value):
    line = encoded({"value": value})
    assert line.count(b"\n") == 1 and line.endswith(b"\n")
    assert decoded(line) == {"value": value}


@few
@given(st.binary(max_size=200))
def test_any_bytes_are_a_record_or_malformed(data):
    for reader in (decoded, decoded_entry):
        try:
            record = reader(data)
        except Malformed:
            continue
        assert isinstance(record, dict)


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":1,"a":2}',
        b'{"a":NaN}',
        b'{"a":Infinity}',
        b'{"a":-Infinity}',
        b"[1]",
        b"1",
        b"",
        b"{} {}",
        b'{"a":"\xff"}',
        b'{"a":' * 5000 + b"1" + b"}" * 5000,
        b"[" * 100_000,
        b'{"a":' + b"9" * 10_000 + b"}",
        b"\0\0\0",
    ],
)
def test_strict_reader_refuses(line):
    with pytest.raises(Malformed):
        decoded(line)


def test_depth_is_limited_by_us_and_not_by_the_version_of_python():
    def nested(levels):
        return b'{"a":' * levels + b"1" + b"}" * levels

    assert decoded(nested(MAX_DEPTH))
    for levels in (MAX_DEPTH + 1, 200, 900):
        with pytest.raises(Malformed):
            decoded(nested(levels))
    brackets = encoded({"text": "[{" * 1000, "list": [[1, "["]] * 200})
    assert decoded(brackets)["text"] == "[{" * 1000


@pytest.mark.parametrize(
    "change", [{"seq": True}, {"seq": 2**70}, {"seq": 0}, {"seq": "1"}, {"prev": "x" * 64}, {"at": 1}, {"kind": None}]
)
def test_entry_with_a_wrong_frame_is_refused(change):
    frame = {"seq": 1, "prev": "0" * 64, "at": "2026-12-01T00:00:00.000Z", "kind": "notice"}
    assert decoded_entry(encoded(frame)) == frame
    with pytest.raises(Malformed):
        decoded_entry(encoded({**frame, **change}))


@few
@given(batches, st.sampled_from([300, 1 << 24]))
def test_everything_appended_comes_back_in_order_and_verifies(batches, segment_bytes):
    with tempfile.TemporaryDirectory() as path:
        folder, _, expected = written(path, batches, segment_bytes)
        assert texts_in(folder) == expected
        assert verify(folder).ok


@few
@given(batches, st.data())
def test_log_cut_at_any_byte_loads_or_is_reported(batches, data):
    with tempfile.TemporaryDirectory() as path:
        folder, log, expected = written(path, batches)
        size = os.path.getsize(segment(folder.path))
        keep = data.draw(st.integers(0, size), label="keep")
        os.truncate(segment(folder.path), keep)
        left = texts_in(folder)
        assert left == expected[: len(left)]
        report = verify(folder)
        if report.ok:
            log.append([{"kind": "notice", "text": "after"}], durable=True)
            assert [text for text in texts_in(folder) if text is not None] == [*left, "after"]
            assert verify(folder).ok
            kinds = [entry["kind"] for entry in entries_of(lines_from(folder))]
            assert ("torn" in kinds) == (report.torn_bytes > 0)
        else:
            with pytest.raises(StateDamaged):
                log.append([{"kind": "notice", "text": "after"}], durable=True)
            assert texts_in(folder) == left


@few
@given(batches, st.data())
def test_byte_changed_anywhere_in_a_durable_log_is_found(batches, data):
    with tempfile.TemporaryDirectory() as path:
        folder, _log, _ = written(path, [*batches, (["last"], True)])
        with open(segment(folder.path), "r+b") as file:
            content = file.read()
            at = data.draw(st.integers(0, len(content) - 1), label="at")
            file.seek(at)
            file.write(bytes([content[at] ^ data.draw(st.integers(1, 255), label="xor")]))
        assert not verify(folder).ok


@few
@given(st.binary(min_size=1, max_size=600), st.data())
def test_bytes_written_over_the_head_never_hide_a_cut_log(garbage, data):
    with tempfile.TemporaryDirectory() as path:
        folder, _, _ = written(path, [(["one"], True), (["two"], True), (["three"], True)])
        lines = list(lines_from(folder))
        os.truncate(segment(folder.path), lines[-1].start)
        with open(folder.path + "/log/head", "r+b") as file:
            before = file.read()
            file.seek(data.draw(st.integers(0, 511), label="at"))
            file.write(garbage)
            file.seek(0)
            assume(file.read() != before)
        assert not verify(folder).ok


@few
@given(texts, texts, texts, st.integers(-(2**31), 2**31))
def test_execution_comes_back_as_it_was_recorded(command, cwd, why, exit_code):
    with tempfile.TemporaryDirectory() as path:
        ledger = ledger_in(path + "/state")
        begun = ledger.begin_read(asked(command, cwd=cwd, why=why), read_of(), profile="local", enforced="strict")
        assert begun.recorded.ok
        assert ledger.end(begun.execution, done("failed", exit_code)).ok
        (found,) = ledger.executions().executions
        assert (found.command, found.cwd, found.why, found.exit_code) == (command, cwd, why, exit_code)
