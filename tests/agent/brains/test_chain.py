"""A chain of brains: what is tried again, when the next one takes over, and what that one is told."""

from __future__ import annotations

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.brains import chain as chains
from agent.brains.chain import AGAIN_S, TRIES, Chain, World
from agent.brains.choice import RUNBOOKS, Without
from agent.brains.entries import entry_of
from agent.messages import Assistant, Note, Result, ToolCall, User
from agent.providers.base import (
    BrainBusy,
    BrainError,
    BrainUnreachable,
    ContextOverflow,
    KeyRefused,
    Reply,
    RequestRefused,
    Sent,
    Tokens,
)
from capabilities.jobs import Cancelled
from dialogue.events import BrainSwitched, Notice
from guard.hands.cancel import CancelToken
from guard.redact import Redactor

ASKED = Sent("system", (User("is nginx up?"),))


def entry(name, **table):
    return entry_of(name, {"kind": "openai", "base_url": "http://127.0.0.1:1/v1", "model": name, **table}, redact=str)


ONE, TWO = entry("one"), entry("two", price_in=2, price_out=8)


class Fake:
    """A provider that gives prepared outcomes, in order: pieces, replies, errors."""

    window_tokens = 1000

    def __init__(self, name, *outcomes):
        self.name, self.model, self.outcomes, self.sent, self.closed = name, f"{name}-model", list(outcomes), [], 0

    def stream(self, sent, *, cancel):
        self.sent.append(sent)
        outcome = self.outcomes.pop(0)
        for part in outcome if isinstance(outcome, list) else [outcome]:
            if isinstance(part, BaseException):
                raise part
            yield part

    def close(self):
        self.closed += 1


class Stage:
    """A chain over fakes, with a clock that moves only by waiting."""

    def __init__(self, *fakes, links=(), **world):
        self.fakes = {fake.name: fake for fake in fakes}
        self.waits, self.spent, self.now_s = [], [], 0.0
        self.made = []
        world.setdefault("make", self.make)
        self.chain = Chain(
            links or [ONE, TWO][: len(fakes)],
            World(
                wait=self.wait,
                monotonic=lambda: self.now_s,
                chance=lambda: 0.5,
                spent=lambda link, reply, ms: self.spent.append((link.name, reply.tokens, reply.cost, ms)),
                **world,
            ),
        )
        self.cancel = CancelToken()

    def make(self, link, *, cancel):
        self.made.append(link.name)
        return self.fakes[link.name]

    def wait(self, seconds, cancel):
        self.waits.append(seconds)
        self.now_s += seconds

    def ask(self, sent=ASKED, wrote=False):
        return list(self.chain.reply(sent, cancel=self.cancel, wrote=lambda: wrote))


OK = Reply("yes", tokens=Tokens(1_000_000, 500_000))


def test_a_reply_comes_with_its_brain_model_and_cost_and_is_recorded():
    stage = Stage(Fake("two", ["y", "es", OK]), links=[TWO])
    assert stage.ask() == ["y", "es", replace(OK, brain="two", model="two-model", cost=6.0)]
    assert stage.spent == [("two", OK.tokens, 6.0, 0)]


def test_what_may_succeed_is_tried_again_later_each_time_and_that_is_said():
    fake = Fake("one", BrainUnreachable("down"), ["ye", BrainUnreachable("cut")], OK)
    stage = Stage(fake)
    first, piece, second, reply = stage.ask()
    assert [type(first), piece, type(second), reply.text] == [Notice, "ye", Notice, "yes"]
    assert "down" in first.text and "trying again in 1 s" in first.text
    assert stage.waits == [1.25, 2.5]
    assert stage.made == ["one"]


def test_the_apis_own_wish_is_the_least_that_is_waited():
    stage = Stage(Fake("one", BrainBusy("429", retry_after_s=7), OK))
    assert stage.ask()[-1].text == "yes" and stage.waits == [7.25]


def test_there_is_a_last_try_and_then_the_next_brain():
    stage = Stage(Fake("one", *[BrainBusy("429")] * TRIES), Fake("two", OK))
    parts = stage.ask()
    assert [type(part) for part in parts] == [Notice] * (TRIES - 1) + [BrainSwitched, Reply]
    assert (parts[-2].brain, parts[-2].because) == ("two", "429")
    assert stage.chain.name == "two" and stage.chain.model == "two-model"


def test_an_api_that_wants_more_than_a_minute_is_left_at_once():
    stage = Stage(Fake("one", BrainBusy("429", retry_after_s=3600)), Fake("two", OK))
    assert [type(part) for part in stage.ask()] == [BrainSwitched, Reply] and stage.waits == []


@pytest.mark.parametrize("error", [KeyRefused("401"), RequestRefused("no such model"), BrainError("rubbish")])
def test_what_cannot_succeed_is_not_tried_again_and_its_brain_is_not_asked_any_more(error):
    stage = Stage(Fake("one", error), Fake("two", OK, OK))
    assert [type(part) for part in stage.ask()] == [BrainSwitched, Reply]
    assert [type(part) for part in stage.ask()] == [Reply] and stage.waits == []


def test_a_brain_that_was_down_is_asked_first_again_after_a_while():
    stage = Stage(Fake("one", *[BrainUnreachable("down")] * TRIES, OK), Fake("two", OK, OK))
    stage.ask()
    assert [type(part) for part in stage.ask()] == [Reply]
    stage.now_s += AGAIN_S
    switched, reply = stage.ask()
    assert (switched.brain, reply.brain) == ("one", "one") and "first" in switched.because


def test_within_a_turn_no_brain_comes_back():
    stage = Stage(Fake("one", *[BrainUnreachable("down")] * TRIES, OK), Fake("two", OK, OK, OK))
    stage.ask(USED)
    stage.now_s += AGAIN_S
    assert [part.brain for part in stage.ask(USED)] == ["two"]
    assert [part.brain for part in stage.ask(replace(USED, messages=(*USED.messages, User("next"))))] == ["one", "one"]


def test_a_turn_with_the_same_words_is_another_turn():
    stage = Stage(Fake("one", KeyRefused("401")), Fake("two", OK, OK))
    stage.ask(USED)
    again = replace(USED, messages=(*USED.messages, Assistant("done"), User("restart nginx")))
    stage.ask(again)
    assert stage.fakes["two"].sent[1].messages[-1] == User("restart nginx")


def test_when_all_are_down_all_are_asked_again():
    stage = Stage(Fake("one", *[BrainUnreachable("down")] * TRIES, OK), Fake("two", *[BrainUnreachable("off")] * TRIES))
    with pytest.raises(BrainUnreachable, match="off"):
        stage.ask()
    assert stage.ask()[-1].brain == "one"


USED = Sent(
    "system",
    (
        User("earlier"),
        Assistant("", (ToolCall("t-0", "ops_exec", {"command": "old"}),)),
        Result("t-0", "ops_exec", "{}", "succeeded", "e-old"),
        User("restart nginx"),
        Assistant("", (ToolCall("t-1", "bash", {"command": "df"}), ToolCall("t-2", "ops_exec", {}))),
        Result("t-1", "bash", "{}", "succeeded", "e-read"),
        Result("t-2", "ops_exec", "{}", "succeeded", "e-nginx"),
    ),
    tuple(SimpleNamespace(name=name, hints=SimpleNamespace(read_only=name == "bash")) for name in ("bash", "ops_exec")),
)


@pytest.mark.guarantee("G-ANSWERED")
def test_after_a_write_nothing_is_tried_again_and_the_next_brain_is_told_what_ran():
    stage = Stage(Fake("one", BrainUnreachable("cut")), Fake("two", OK, OK, OK))
    assert [type(part) for part in stage.ask(USED, wrote=True)] == [BrainSwitched, Reply]
    assert stage.waits == [] and len(stage.fakes["one"].sent) == 1
    (told,) = stage.fakes["two"].sent
    assert told.messages[:-1] == USED.messages
    note = told.messages[-1]
    assert isinstance(note, Note) and "- ops_exec: succeeded, e-nginx" in note.text
    assert "e-old" not in note.text and "e-read" not in note.text and "Do not make them again" in note.text
    # As long as the turn lasts it is told with each request; the next turn begins without it.
    stage.ask(USED, wrote=True)
    assert stage.fakes["two"].sent[1].messages[-1] == note
    stage.ask(replace(USED, messages=(*USED.messages, User("thanks"))))
    assert stage.fakes["two"].sent[2].messages[-1] == User("thanks")


def test_a_call_without_a_result_may_have_run():
    cut = replace(USED, messages=USED.messages[:-1])
    stage = Stage(Fake("one", KeyRefused("401")), Fake("two", OK))
    stage.ask(cut)
    assert "- ops_exec: no result is recorded; it may have run" in stage.fakes["two"].sent[0].messages[-1].text


def test_a_brain_that_takes_over_before_anything_ran_is_told_nothing():
    stage = Stage(Fake("one", KeyRefused("401")), Fake("two", OK))
    stage.ask()
    assert stage.fakes["two"].sent == [ASKED]


def test_too_long_is_asked_once_more_with_less():
    small = Sent("system", (User("less"),))
    shrunk = []

    def shrink(sent, window):
        shrunk.append((sent, window))
        return small

    fake = Fake("one", ContextOverflow("too long"), OK, ContextOverflow("too long"), ContextOverflow("still"))
    stage = Stage(fake, shrink=shrink)
    notice, reply = stage.ask()
    assert "less of the conversation" in notice.text and reply.text == "yes"
    assert fake.sent == [ASKED, small] and shrunk == [(ASKED, 1000)]
    with pytest.raises(ContextOverflow, match="still"):
        stage.ask()


def test_too_long_with_nothing_to_leave_out_is_an_error():
    with pytest.raises(ContextOverflow):
        Stage(Fake("one", ContextOverflow("too long")), shrink=lambda sent, window: None).ask()


def test_the_runbooks_answer_when_no_model_does_and_say_why():
    def last(sent, why, cancel):
        return Reply(f"checks say: fine ({why})")

    stage = Stage(Fake("one", KeyRefused("401")), links=[ONE, RUNBOOKS], last=last)
    switched, reply = stage.ask()
    assert (switched.brain, reply.brain, reply.text) == ("offline", "offline", "checks say: fine (401)")
    assert stage.spent == [] and stage.chain.model == ""


def test_a_missing_key_counts_as_a_failed_brain():
    def make(link, *, cancel):
        if link is ONE:
            raise KeyRefused("the variable X is not set")
        return Fake("two", OK)

    stage = Stage(links=[ONE, TWO], make=make)
    switched, reply = stage.ask()
    assert switched.because == "the variable X is not set" and reply.brain == "two"


def test_secrets_in_an_errors_words_are_not_shown():
    redactor = Redactor(["the-key-of-this-test-123"])
    words = "bad key the-key-of-this-test-123"
    stage = Stage(Fake("one", BrainBusy(words), KeyRefused(words)), Fake("two", OK), shown=redactor.text)
    notice, switched, _ = stage.ask()
    assert "the-key" not in notice.text + switched.because and "bad key" in notice.text


def test_a_stream_without_a_reply_is_a_failure():
    stage = Stage(Fake("one", *[["half"]] * TRIES))
    with pytest.raises(BrainUnreachable, match="ended without a reply"):
        stage.ask()


def test_a_scripted_brain_costs_nothing():
    stage = Stage(Fake("script:x", OK), links=[Without("script:x")])
    assert stage.ask()[-1].brain == "script:x" and stage.spent == []


def test_closing_ends_every_provider_and_the_next_request_is_cancelled():
    stage = Stage(Fake("one", KeyRefused("401")), Fake("two", OK))
    stage.ask()
    stage.chain.close()
    stage.chain.close()
    assert stage.fakes["one"].closed and stage.fakes["two"].closed
    with pytest.raises(Cancelled):
        stage.ask()


def test_waiting_ends_as_soon_as_it_is_cancelled():
    cancel = CancelToken()
    threading.Thread(target=cancel.set).start()
    with pytest.raises(Cancelled):
        chains.wait(600, cancel)
    chains.wait(0, CancelToken())
    cancel.close()


def test_warming_makes_the_first_provider_without_asking_it_anything():
    warmed = threading.Event()
    fake = Fake("one", OK)
    fake.warm = warmed.set
    stage = Stage(fake)
    stage.chain.warm()
    assert warmed.wait(30)
    assert stage.ask()[-1].text == "yes" and stage.made == ["one"]
    failing = Stage(Fake("one"), make=lambda link, *, cancel: (_ for _ in ()).throw(KeyRefused("no key")))
    failing.chain.warm()
    with pytest.raises(KeyRefused):
        failing.ask()


def test_warming_waits_for_the_prompt():
    drawn, warmed = threading.Event(), threading.Event()
    fake = Fake("one", OK)
    fake.warm = warmed.set
    stage = Stage(fake)
    stage.chain.warm(drawn)
    assert stage.made == []
    drawn.set()
    assert warmed.wait(30) and stage.made == ["one"]


def test_a_program_that_gives_a_key_is_not_run_before_it_is_needed():
    stage = Stage(Fake("one", OK), links=[replace(ONE, key_command=("pass",))])
    stage.chain.warm()
    assert stage.made == []


OUTCOMES = st.sampled_from(
    [
        ["piece", OK],
        [OK],
        [BrainUnreachable("down")],
        ["piece", BrainUnreachable("cut")],
        [BrainBusy("429", retry_after_s=50)],
        [BrainBusy("429")],
        [KeyRefused("401")],
        [RequestRefused("400")],
        [ContextOverflow("long")],
        ["half"],
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(OUTCOMES, min_size=40, max_size=40), min_size=3, max_size=3), st.lists(st.booleans(), max_size=5)
)
def test_whatever_fails_each_request_ends_in_one_reply_or_one_error(scripts, turns):
    """Nothing is used of a broken reply, nobody is asked for ever, and after a write each brain is asked once."""
    names = ("one", "two", "three")
    fakes = [Fake(name, *script) for name, script in zip(names, scripts, strict=True)]
    stage = Stage(
        *fakes, links=[entry(name) for name in names], shrink=lambda sent, window: replace(sent, system="less")
    )
    for wrote in turns:
        before = [len(fake.sent) for fake in fakes]
        waited = len(stage.waits)
        parts = []
        try:
            for part in stage.chain.reply(USED, cancel=stage.cancel, wrote=lambda wrote=wrote: wrote):
                parts.append(part)
        except BrainError:
            assert not any(isinstance(part, Reply) for part in parts)
        else:
            assert [isinstance(part, Reply) for part in parts].index(True) == len(parts) - 1
            assert parts[-1].brain == stage.chain.name
        asked = [len(fake.sent) - count for fake, count in zip(fakes, before, strict=True)]
        shrunk = [
            sum(sent.system == "less" for sent in fake.sent[count:]) for fake, count in zip(fakes, before, strict=True)
        ]
        for times, less in zip(asked, shrunk, strict=True):
            assert times <= (1 + bool(less) if wrote else TRIES + 1)
        assert not (wrote and len(stage.waits) > waited)
        assert sum(stage.waits[waited:]) <= len(names) * 60
    stage.cancel.close()
