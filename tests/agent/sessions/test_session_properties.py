"""What holds for every conversation and every damage."""

from __future__ import annotations

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agent.messages import Assistant, Note, Result, ToolCall, User, open_calls
from agent.sessions.cleaning import clean
from agent.sessions.lines import Chain, Header, header_record
from agent.sessions.reading import read
from agent.sessions.records import record_of
from agent.sessions.repair import NOT_RECORDED, paired
from guard.errors import StateDamaged, StateError
from guard.ledger.formats import MAX_LINE_BYTES
from guard.redact import Redactor
from tests.agent.sessions.stories import STORY, conversations

KEY = bytes(range(32))
AT = "2026-12-01T00:00:00.000Z"
REDACTOR = Redactor()
SLOW = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def written(messages, key=KEY):
    """A session file with these messages."""
    chain = Chain(key)
    lines = [chain.line(header_record(Header("c-1", AT, "/srv", "openai", "m")))]
    return b"".join([*lines, *(chain.line(record_of(message, AT)) for message in messages)])


def opened(data, **more):
    return read(data, shown="c-1.jsonl", key=KEY, redactor=REDACTOR, **more)


@SLOW
@given(conversations())
def test_what_was_written_is_what_is_read(messages):
    found = opened(written(messages))
    assert list(found.messages) == messages
    assert found.notes == ()
    assert found.whole_bytes == len(written(messages))


@SLOW
@given(conversations(), st.data())
def test_file_cut_at_any_byte_loads_with_what_was_whole_or_is_refused(messages, data):
    whole = written(messages)
    at = data.draw(st.integers(0, len(whole)))
    header_ends = whole.index(b"\n") + 1
    if at < header_ends:
        try:
            opened(whole[:at])
        except StateDamaged as error:
            assert "line 1" in error.message
            return
        raise AssertionError("a file without its header was opened")
    found = opened(whole[:at])
    count = whole[:at].count(b"\n") - 1
    assert list(found.messages) == messages[:count]
    assert bool(found.notes) == (whole[at - 1] != 10)
    mended = paired(found.messages)
    assert not open_calls(mended.messages)


def test_story_cut_at_every_byte_never_crashes_and_invents_nothing():
    whole = written(STORY)
    for at in range(len(whole)):
        try:
            found = opened(whole[:at])
        except StateDamaged:
            assert at <= whole.index(b"\n")
            continue
        assert found.messages == STORY[: len(found.messages)]


def test_any_byte_of_the_story_flipped_is_refused_with_its_line_or_said():
    whole = written(STORY)
    header_ends = whole.index(b"\n") + 1
    last_line = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for at in range(len(whole)):
        for bit in (0x01, 0x20, 0x80):
            data = whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :]
            try:
                found = opened(data)
            except StateError as error:
                line = whole[:at].count(b"\n") + 1
                assert f"line {line} " in error.message or "format" in error.message
                continue
            assert found.notes, f"byte {at} was changed and nobody was told"
            if at < header_ends:
                assert found.messages == STORY
            else:
                # Only the very last line feed can go without an error: that is a half last line.
                assert at == len(whole) - 1 > last_line
                assert found.messages == STORY[:-1]


@SLOW
@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_behind_a_header_are_read_or_refused(data, ours):
    head = written([]) if ours else written([], key=b"another")
    try:
        found = opened(head + data)
    except StateDamaged as error:
        assert "line" in error.message
        return
    assert found.messages == ()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
ANY_TEXT = st.text(st.characters(), max_size=60)
ANY_MESSAGE = st.one_of(
    st.builds(User, ANY_TEXT, st.lists(ANY_TEXT, max_size=3).map(tuple)),
    st.builds(Note, ANY_TEXT),
    st.builds(Result, ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT, ANY_TEXT, st.booleans()),
    st.builds(
        Assistant,
        ANY_TEXT,
        st.lists(
            st.builds(ToolCall, ANY_TEXT, ANY_TEXT, st.dictionaries(st.text(max_size=8), JSON, max_size=3), ANY_TEXT),
            max_size=3,
        ).map(tuple),
        ANY_TEXT,
        ANY_TEXT,
    ),
)


@SLOW
@given(ANY_MESSAGE)
def test_any_message_can_be_kept_and_comes_back_as_it_was_kept(message):
    kept = clean(message, REDACTOR)
    assert clean(kept, REDACTOR) == kept
    assert opened(written([kept])).messages == (kept,)


IDS = st.sampled_from(["a", "b", "c"])
LOOSE = st.lists(
    st.one_of(
        st.builds(User, st.just("u")),
        st.builds(Note, st.just("n")),
        st.builds(Assistant, st.just("x"), st.lists(st.builds(ToolCall, IDS, st.just("bash")), max_size=3).map(tuple)),
        st.builds(Result, IDS, st.just("bash"), st.just("r"), st.just("succeeded")),
    ),
    max_size=14,
)


@settings(max_examples=400, deadline=None)
@given(LOOSE)
def test_mended_conversation_has_one_result_right_behind_each_call(messages):
    mended = paired(messages)
    used = set()
    waiting = []
    for message in mended.messages:
        if isinstance(message, Result):
            assert message.call_id in waiting
            waiting.remove(message.call_id)
            continue
        assert not waiting, "something stands between a call and its result"
        if isinstance(message, Assistant):
            for call in message.calls:
                assert call.id not in used
                used.add(call.id)
                waiting.append(call.id)
    assert not waiting
    assert [one for one in mended.messages if isinstance(one, User)] == [
        one for one in messages if isinstance(one, User)
    ]
    assert paired(mended.messages).messages == mended.messages
    assert paired(mended.messages).notes == ()


@settings(max_examples=200, deadline=None)
@given(LOOSE)
def test_what_is_mended_at_the_end_and_written_is_not_mended_again(messages):
    mended = paired(messages)
    assume(mended.added)
    again = paired([*messages, *mended.added])
    assert again.messages == mended.messages
    assert again.added == ()


def test_whole_conversation_needs_no_mending():
    assert paired(STORY).notes == ()
    assert paired(STORY[:-2]).added[0].text.count(NOT_RECORDED) == 1


def test_message_of_any_size_fits_into_a_line():
    worst = "\U0001f600"
    huge = [
        User(worst * 30_000, (worst * 30_000,) * 70),
        Assistant(worst * 30_000, tuple(ToolCall(f"c{n}", "w", {"a": worst * 2_000}) for n in range(300))),
        Assistant("", (ToolCall("c", "w", {"a": "x" * 3_000_000}),)),
        Result("c", "bash", "\0" * 900_000, "succeeded"),
        Note("\n" * 2_500_000),
    ]
    for message in huge:
        kept = clean(message, REDACTOR)
        assert len(Chain(KEY).line(record_of(kept, AT))) <= MAX_LINE_BYTES
        assert clean(kept, REDACTOR) == kept
    kept = clean(Result("c", "bash", "head" + "x" * 3_000_000 + "tail", "succeeded"), REDACTOR)
    assert kept.text.startswith("head")
    assert kept.text.endswith("tail")
    assert "characters left out" in kept.text


def test_arguments_that_json_cannot_hold_become_a_fault():
    deep: dict = {}
    for _ in range(2000):
        deep = {"x": deep}
    for arguments in ({"x": float("nan")}, {"x": object()}, deep):
        (call,) = clean(Assistant("", (ToolCall("c", "bash", arguments),)), REDACTOR).calls
        assert call.arguments == {}
        assert call.fault
