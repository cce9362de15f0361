"""Calls in threads: they end once, can be stopped, found and paged, and are forgotten in the end."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capabilities import jobs
from capabilities.jobs import DONE, Cancelled, Jobs, Transcript

WAIT_S = 60.0


@given(
    st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.text(max_size=50)), max_size=30), st.integers(1, 20)
)
@settings(max_examples=150, deadline=None)
def test_pages_of_a_transcript_join_to_what_came(pieces, size):
    transcript = Transcript()
    for stream, text in pieces:
        transcript.feed(stream, text.encode())
    whole = "".join(text for _, text in pieces)
    offset, joined = 0, ""
    while offset < len(transcript):
        page = transcript.page(offset, size)
        assert page.offset == offset and 0 < len(page.text) <= size
        joined += page.text
        offset = page.next_offset
    assert joined == whole
    assert transcript.page(10**9, size).text == ""


def test_a_character_split_between_two_pieces_stays_whole_beside_the_other_stream():
    transcript = Transcript()
    data = "界".encode()
    transcript.feed("stdout", data[:1])
    transcript.feed("stderr", b"!")
    transcript.feed("stdout", data[1:])
    assert transcript.page(0, 10).text == "!界"


def test_a_long_transcript_holds_head_and_tail_and_a_page_from_the_gap_begins_at_the_tail(monkeypatch):
    monkeypatch.setattr(jobs, "HEAD_CHARS", 100)
    monkeypatch.setattr(jobs, "TAIL_CHARS", 200)
    transcript = Transcript()
    whole = "".join(f"{number:09}\n" for number in range(1000))
    for at in range(0, len(whole), 70):
        transcript.feed("stdout", whole[at : at + 70].encode())
    assert len(transcript) == len(whole)
    assert transcript.held_chars <= 100 + 200 + 70
    assert transcript.page(0, 1000).text == whole[:100]
    gap = transcript.page(5000, 10_000)
    assert gap.offset > 5000 and gap.text == whole[gap.offset :] and len(gap.text) >= 200
    assert gap.next_offset == gap.size == len(whole)


def test_an_answer_and_an_error_both_end_a_job():
    mine = Jobs(2)
    good = mine.start("t", lambda job: {"n": 1})
    bad = mine.start("t", lambda job: 1 // 0)
    assert good.wait(WAIT_S) and bad.wait(WAIT_S)
    assert (good.state, good.answer, good.error) == (DONE, {"n": 1}, None)
    assert isinstance(bad.error, ZeroDivisionError)
    called = threading.Event()
    bad.when_done(called.set)
    assert called.is_set()


def test_a_job_that_is_stopped_while_it_waits_never_begins():
    mine, gate, began = Jobs(1), threading.Event(), []
    first = mine.start("t", lambda job: gate.wait(WAIT_S) and {})
    second = mine.start("t", lambda job: began.append(1) or {})
    second.cancel()
    gate.set()
    assert first.wait(WAIT_S) and second.wait(WAIT_S)
    assert began == [] and isinstance(second.error, Cancelled)
    second.cancel()  # after the end it changes nothing


def test_the_end_stops_all_and_waits_for_them():
    mine, begun = Jobs(4), threading.Barrier(4)

    def work(job):
        begun.wait(WAIT_S)
        while not job.cancel_token.is_set():
            threading.Event().wait(0.01)
        return {"stopped": True}

    started = [mine.start("t", work) for _ in range(3)]
    begun.wait(WAIT_S)
    mine.cancel_all(WAIT_S)
    assert [job.answer for job in started] == [{"stopped": True}] * 3
    assert mine.active == 0


def test_a_kept_job_is_found_by_both_its_ids_and_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr(jobs, "KEPT_JOBS", 3)
    mine, made = Jobs(2), []
    for number in range(5):
        job = mine.start("t", lambda job, number=number: job.began(f"e-{number}") or {})
        assert job.wait(WAIT_S)
        assert mine.find(job.id) is None, "a finished job that nobody kept"
        mine.keep(job)
        made.append(job)
    assert [mine.find(f"e-{number}") is job for number, job in enumerate(made)] == [False, False, True, True, True]
    assert mine.find(made[4].id) is made[4]
    assert mine.find("e-nothing") is None


def test_many_jobs_over_few_threads_all_end():
    mine, most, now, lock = Jobs(3), [0], [0], threading.Lock()

    def work(job):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        threading.Event().wait(0.001)
        with lock:
            now[0] -= 1
        return {}

    started = [mine.start("t", work) for _ in range(100)]
    assert all(job.wait(WAIT_S) for job in started)
    assert most[0] <= 3


def test_saved_outputs_are_known_by_their_exact_path():
    mine = Jobs(1)
    mine.saved("/state/outputs/e-1.stdout.txt")
    assert mine.may_read_output("/state/outputs/e-1.stdout.txt")
    assert not mine.may_read_output("/state/outputs/e-2.stdout.txt")


@pytest.mark.parametrize("count", [1001])
def test_the_list_of_saved_outputs_has_an_end(count):
    mine = Jobs(1)
    for number in range(count):
        mine.saved(str(number))
    assert not mine.may_read_output("0") and mine.may_read_output(str(count - 1))
