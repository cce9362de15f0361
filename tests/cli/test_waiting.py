"""What is said to somebody who waits."""

from __future__ import annotations

import io

from cli.waiting import Waiting


class Clock:
    def __init__(self):
        self.s = 100.0

    def __call__(self):
        return self.s


def test_it_says_how_long_and_for_what():
    clock = Clock()
    waiting = Waiting(True, stream=io.StringIO(), monotonic=clock)
    clock.s += 3
    assert waiting.words() == "working for 3 s (waiting for the model)"
    waiting.now("t-1", "df -h")
    waiting.now("t-2", "uptime")
    assert waiting.words() == "working for 3 s (df -h and 1 more)"
    waiting.over("t-1")
    assert waiting.words() == "working for 3 s (uptime)"


def test_what_a_command_hides_is_shown():
    waiting = Waiting(True, stream=io.StringIO(), monotonic=Clock())
    waiting.now("t-1", "ls \x1b[2J")
    assert "\x1b" not in waiting.words()


def test_the_time_of_a_person_is_not_counted():
    clock = Clock()
    waiting = Waiting(True, stream=io.StringIO(), monotonic=clock)
    with waiting.hidden():
        clock.s += 500
    clock.s += 4
    assert waiting.words().startswith("working for 4 s")


def test_nobody_is_told_where_nobody_looks():
    stream = io.StringIO()
    with Waiting(False, stream=stream):
        pass
    assert stream.getvalue() == ""
