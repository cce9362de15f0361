"""A stop ends a reply at any byte, and leaves nothing behind."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from agent.providers.base import BrainUnreachable
from capabilities.jobs import Cancelled
from guard.hands.cancel import CancelToken
from tests.model_server import Delivery, Gate, Say
from tests.model_server.clients import ask, at, provider, sent


@pytest.mark.parametrize("after", [0, 1, 2, 5])
def test_a_stop_ends_the_reply_while_the_server_holds_it(talk, cancel, after, stream):
    # The gate opens only when the server closes: nothing but the stop can have ended the wait.
    gate = Gate(after=after if stream else min(after, 1))
    server, api = talk(Say("x" * 100, delivery=Delivery(gate=gate)), Say("again"), stream=stream)
    with at(gate, cancel.set), pytest.raises(Cancelled):
        ask(api, cancel=cancel)
    assert ask(api)[1].text == "again"
    assert len(server.requests) == 2


def test_a_stop_before_the_status_ends_the_wait(talk, cancel):
    release = threading.Event()

    def holding(_):
        cancel.set()
        release.wait(30)
        return Say("late")

    _, api = talk(holding)
    with pytest.raises(Cancelled):
        ask(api, cancel=cancel)
    release.set()


def test_a_stop_that_came_before_sends_nothing(talk, cancel):
    server, api = talk(Say("x"))
    cancel.set()
    with pytest.raises(Cancelled) as caught:
        ask(api, cancel=cancel)
    assert (server.requests, caught.value.not_done) == ([], "nothing was sent")


def test_a_stop_while_connecting_ends_the_wait(kind, cancel):
    # A full queue of an address that accepts nobody: connecting takes as long as it may.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        fillers = []
        for _ in range(4):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            fillers.append(one)
        api = provider(kind, f"http://127.0.0.1:{full.getsockname()[1]}", connect_s=60.0)
        timer = threading.Timer(0.05, cancel.set)
        timer.start()
        with pytest.raises(Cancelled):
            ask(api, cancel=cancel)
        timer.join()
        for one in fillers:
            one.close()
    api.close()


def test_a_reader_that_goes_away_ends_the_connection(talk, cancel):
    gate = Gate(after=4)
    _, api = talk(Say("x" * 100, delivery=Delivery(gate=gate)), Say("fine"))
    reading = api.stream(sent(), cancel=cancel)
    assert next(reading)
    reading.close()
    assert ask(api)[1].text == "fine"


def test_closing_from_another_thread_ends_a_reply(talk, cancel):
    gate = Gate(after=2)
    _, api = talk(Say("x" * 100, delivery=Delivery(gate=gate)))
    with at(gate, api.close), pytest.raises(BrainUnreachable):
        ask(api, cancel=cancel)
    api.close()


def test_stops_leave_no_descriptor_behind(kind):
    counts = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        api = provider(kind, f"http://127.0.0.1:{listening.getsockname()[1]}")
        for _ in range(12):
            token = CancelToken()

            def take(token=token):
                with listening.accept()[0] as near:
                    near.recv(1)
                    token.set()

            thread = threading.Thread(target=take)
            thread.start()
            with pytest.raises(Cancelled):
                ask(api, cancel=token)
            thread.join()
            token.close()
            for one in threading.enumerate():
                if one.name.startswith("brain-"):
                    one.join(30)
            counts.append(len(os.listdir("/dev/fd")))
        api.close()
    assert len(set(counts)) == 1, counts
