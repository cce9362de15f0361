"""What is sent of a long conversation: it fits or says so, keeps what must stay, and begins as it did before."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.compaction import LAST, Compactor, Limits, view
from agent.messages import Assistant, Note, Result, ToolCall, User, open_calls
from agent.shortening import placeholder, rules_of, size_of
from tests.agent.sessions.stories import conversations

SLOW = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
LONG = conversations(longest=3_000, most_turns=8, text_chars=120)
CHARS = st.sampled_from([300, 1_500, 4_000, 9_000])


def chars_of(messages):
    return sum(size_of(message).chars for message in messages)


def turn(number, *, output=3_000, words="what now?", reply="done"):
    """One question, one call with its output, one answer."""
    call = ToolCall(f"call_{number}", "bash", {"command": f"cat /var/log/{number}"})
    return [
        User(words),
        Assistant("I look.", (call,)),
        Result(call.id, "bash", '{"status":"succeeded"}\n' + "x" * output, "succeeded", f"e-{number}", untrusted=True),
        Assistant(reply),
    ]


def conversation(turns, **more):
    return [message for number in range(turns) for message in turn(number, **more)]


def test_short_conversation_is_sent_as_it_is():
    messages = conversation(10)
    seen = view(messages)
    assert seen.messages == tuple(messages)
    assert (seen.notes, seen.fits) == ((), True)


def test_long_results_before_the_last_eight_become_placeholders_that_name_their_execution():
    messages = conversation(30)
    seen = view(messages)
    assert seen.fits
    assert len(seen.messages) == len(messages)
    first = seen.messages[2]
    assert first == Result(
        "call_0",
        "bash",
        '{"status":"succeeded"}\n[3,000 characters of output left out to save room; ops_status {"id": "e-0"} shows it]',
        "succeeded",
        "e-0",
        untrusted=True,
    )
    assert seen.messages[-LAST:] == tuple(messages[-LAST:])
    assert "its file has all of it" in seen.notes[0]


def test_one_huge_result_among_the_last_is_cut_to_what_fits():
    messages = [*conversation(1), *turn(2, output=500_000)]
    seen = view(messages)
    assert seen.fits
    assert "characters left out" in seen.messages[-2].text
    assert seen.messages[0] == messages[0]


def test_what_goes_goes_in_pairs_and_a_note_says_which_executions():
    messages = conversation(400, output=300, reply="a reply of some length " * 10)
    seen = view(messages)
    assert seen.fits
    assert len(seen.messages) < len(messages) / 2
    assert seen.messages[0] == messages[0]
    note = seen.messages[1]
    assert isinstance(note, Note)
    assert "oldest part of this conversation is left out" in note.text
    assert "e-1" in note.text or "before" in note.text


def test_rules_denials_and_the_first_question_stay_whatever_goes():
    messages = [
        User("look after this machine"),
        Assistant("yes"),
        User("chatter " * 200 + "\nNever touch /srv/prod. 不要重启数据库。\n" + "chatter " * 200),
        Assistant("understood"),
        Note("the person denied: systemctl restart db (a-7k2m4p)"),
        Note("e-3 is unknown: look before anything that touches nginx"),
        *conversation(300, words="go on " * 20),
    ]
    seen = view(messages, limits=Limits(chars=12_000))
    assert seen.fits
    said = "\n".join(message.text for message in seen.messages)
    for kept in (
        "look after this machine",
        "Never touch /srv/prod.",
        "不要重启数据库。",
        "the person denied",
        "e-3 is unknown",
    ):
        assert kept in said
    assert said.count("chatter") < 200


def test_attachments_and_written_files_of_older_turns_are_cut():
    call = ToolCall("w", "write", {"path": "/etc/x", "content": "line\n" * 5_000})
    messages = [
        User("why?", ("log line\n" * 4_000,)),
        Assistant("", (call,)),
        Result("w", "write", "ok", "succeeded"),
        *conversation(12, output=300, reply="y" * 2_500),
    ]
    seen = view(messages)
    assert seen.fits
    question, reply = seen.messages[:2]
    assert question.text == "why?"
    assert len(question.attachments[0]) < 1_000
    assert reply.calls[0].arguments["path"] == "/etc/x"
    assert len(reply.calls[0].arguments["content"]) < 1_000


def test_small_window_counts_tokens_and_chinese_counts_more():
    plain = [User("x" * 3_000)] * 2
    chinese = [User("磁" * 3_000)] * 2
    limits = Limits(window_tokens=8_000, taken_tokens=4_000)
    assert limits.tokens == 3_200
    assert view(plain, limits=limits).messages == tuple(plain)
    assert view(chinese, limits=limits).messages != tuple(chinese)
    assert size_of(User("磁" * 100)).tokens >= 100
    assert size_of(User("x" * 350)).tokens in range(100, 112)


@pytest.mark.parametrize(("window", "room"), [(0, 0), (1, 1), (4_096, 1_024), (12_000, 3_000), (200_000, 172_000)])
def test_window_leaves_room_for_messages(window, room):
    assert Limits(window_tokens=window).tokens == room


def test_what_cannot_fit_says_so():
    seen = view([User("x" * 70_000)])
    assert not seen.fits
    assert "too long" in seen.notes[-1]
    assert seen.messages == (User("x" * 70_000),)


def test_tightened_limits_send_about_half():
    messages = conversation(40)
    wide, tight = Limits(), Limits().tightened()
    assert (
        chars_of(view(messages, limits=tight).messages) <= tight.chars < chars_of(view(messages, limits=wide).messages)
    )


def test_untrusted_mark_survives_a_placeholder():
    result = Result("c", "bash", "no facts\n" * 100, "failed", "", untrusted=True)
    short = placeholder(result)
    assert short.untrusted
    assert short.text == "[900 characters of output left out to save room; look again if it matters]"
    assert placeholder(Result("c", "bash", "short", "failed")).text == "short"


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Please look. Don't restart anything! Thanks", ("Don't restart anything!",)),
        ("only read\nand then tell me", ("only read",)),
        ("请看一下。禁止重启；谢谢", ("禁止重启；",)),
        ("what is the load?", ()),
    ],
)
def test_rules_are_found_by_their_words(text, rules):
    assert rules_of(text) == rules


@SLOW
@given(LONG, CHARS)
def test_view_fits_or_says_that_it_cannot(messages, chars):
    seen = view(messages, limits=Limits(chars=chars))
    assert seen.fits == (chars_of(seen.messages) <= chars)
    if chars_of(messages) <= chars:
        assert seen.messages == tuple(messages)


@SLOW
@given(LONG, CHARS)
def test_calls_and_results_stay_pairs_in_order(messages, chars):
    seen = view(messages, limits=Limits(chars=chars)).messages
    waiting = []
    for message in seen:
        if isinstance(message, Result):
            assert message.call_id == waiting.pop(0)
        else:
            assert not waiting
            waiting = [call.id for call in message.calls] if isinstance(message, Assistant) else []
    assert not open_calls(seen)


@SLOW
@given(LONG, CHARS)
def test_notes_and_the_first_question_always_stay(messages, chars):
    seen = view(messages, limits=Limits(chars=chars)).messages
    notes = [one for one in messages if isinstance(one, Note)]
    assert [one for one in seen if isinstance(one, Note) and "left out here" not in one.text] == notes
    first = next((one for one in messages if isinstance(one, User)), None)
    assert next((one.text for one in seen if isinstance(one, User)), None) == (first.text if first else None)


@SLOW
@given(LONG, CHARS)
def test_view_of_a_view_that_fits_is_that_view(messages, chars):
    limits = Limits(chars=chars)
    seen = view(messages, limits=limits)
    if seen.fits:
        assert view(seen.messages, limits=limits).messages == seen.messages


@SLOW
@given(LONG, st.sampled_from([4_000, 9_000]))
def test_each_view_begins_with_the_one_before_but_for_a_few_moments(messages, chars):
    limits = Limits(chars=chars)
    moments = 0
    before = ()
    for count in range(1, len(messages) + 1):
        if open_calls(messages[:count]):
            continue
        seen = view(messages[:count], limits=limits)
        if seen.messages[: len(before)] != before:
            moments += 1
        before = seen.messages if seen.fits else ()
    # Each moment frees a fifth of the room at least, so that as much has to be said before the next one.
    assert moments <= chars_of(messages) / (chars * 0.2) + 1


@SLOW
@given(LONG, CHARS)
def test_looking_only_at_what_is_new_gives_the_same_as_looking_at_all(messages, chars):
    limits = Limits(chars=chars)
    compactor = Compactor(limits)
    for count in range(1, len(messages) + 1):
        if open_calls(messages[:count]):
            continue
        given_now = compactor(messages[:count])
        whole = view(messages[:count], limits=limits)
        if not whole.fits:
            return
        assert given_now == whole.messages
        assert compactor.latest == whole


def test_compactor_begins_anew_for_another_conversation_or_other_limits():
    compactor = Compactor()
    long = conversation(40)
    assert len(compactor(long)) == len(long)
    other = conversation(2, words="another")
    assert compactor(other) == tuple(other)
    compactor.limits = Limits(chars=1_000)
    assert compactor.limits.chars == 1_000
    assert compactor(other) == view(other, limits=Limits(chars=1_000)).messages


def test_calls_that_wait_for_results_are_never_left_out():
    calls = tuple(ToolCall(f"p{number}", "bash", {"command": "x" * 100}) for number in range(20))
    results = [Result(call.id, "bash", "y" * 2_000, "succeeded") for call in calls]
    messages = [*conversation(20), User("all at once"), Assistant("", calls), *results]
    for count in range(len(messages) - 20, len(messages) + 1):
        seen = view(messages[:count], limits=Limits(chars=9_000))
        waiting = {call.id for call in open_calls(messages[:count])}
        assert {call.id for call in open_calls(seen.messages)} == waiting


@SLOW
@given(LONG)
def test_made_smaller_at_once_the_last_messages_stay_whole_and_later_views_begin_with_it(messages):
    if open_calls(messages):
        return
    compactor = Compactor(Limits(chars=10**9))
    assert compactor(messages) == tuple(messages)
    before = compactor.chars(messages)
    small = compactor.compact(messages)
    left = compactor.chars(messages)
    assert left <= before and small.fits
    assert small.messages[len(small.messages) - LAST :] == tuple(messages)[len(messages) - LAST :]
    first = next((one for one in messages if isinstance(one, User)), None)
    assert first is None or any(isinstance(one, User) and one.text == first.text for one in small.messages)
    more = [*messages, User("and now?")]
    assert compactor(more) == (*small.messages, more[-1]), "nothing is put back, and nothing else goes"
    assert compactor.chars(more) == left + size_of(more[-1]).chars


def test_a_long_conversation_made_smaller_at_once_is_about_a_third_of_what_it_was():
    long = conversation(60)
    compactor = Compactor(Limits(chars=10**9))
    compactor(long)
    before = compactor.chars(long)
    compactor.compact(long)
    assert compactor.chars(long) < before * 0.45 and compactor.latest.notes
