"""Bytes from a keyboard through the real bindings: whatever is typed at random, nothing is approved."""

from __future__ import annotations

import random
import threading
from dataclasses import asdict, replace

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from agent.repl.app import Repl
from agent.repl.world import Opened
from dialogue import events as ev
from dialogue.confirm import APPROVED
from dialogue.protocol import Abilities
from tests.repl.conversation import ASK
from tests.repl.desks import LIMIT_S, World

KEYS = [
    *(key.encode() for key in "yesnoYES 13是x"),
    *(b"\r", b"\r", b"\r", b"\n", b"\t", b"\x1b", b"\x7f", b"\x15", b"\x01", b"\x05", b"\x0b", b"\x12", b"\x07"),
    *(b"\x1b[A", b"\x1b[B", b"\x1b[5~", b"\x1b[6~", b"\x1b[H", b"\x1b[F", b"\x1b[3~", b"\x1bOP", b"\x1by", b"\x1b\r"),
    *(b"\x1b[200~yes\n\x1b[201~", b"\x1b[200~yes\x1b[201~", b"\x1b[200~\r\x1b[201~", b"\xff"),
]
"""Without what leaves or suspends the program, which tests of their own press."""
ASKS = (ASK, replace(ASK, command="rm -rf /srv", level="R3", must_type="yes"), replace(ASK, also=(ASK, ASK, ASK)))
ROUNDS, PRESSED = 6, 200


class Brain:
    """A session that says nothing and remembers how its asks were settled."""

    name = "keys"
    abilities = Abilities(interrupt=True)

    def __init__(self):
        self.answers = []

    def start(self):
        pass

    def send_turn(self, turn):
        pass

    def events(self):
        yield ev.TurnStarted("…")
        yield ev.TurnCompleted(0)

    def respond(self, id, answer):
        self.answers.append(answer)

    def interrupt(self):
        pass

    def close(self):
        pass


class Keyboard:
    """A conversation in the main thread, and somebody who types in another."""

    def __init__(self, tmp_path):
        self.world, self.brain = World(tmp_path, scripts={"keys": []}), Brain()
        self.now_s, self.fault = 0.0, None

    def run(self, person):
        """Runs until the person is done."""
        with create_pipe_input() as keyboard:
            repl = Repl(
                self.world,
                Opened(self.brain, "c-keys", "keys"),
                keyboard=keyboard,
                output=DummyOutput(),
                now_s=lambda: self.now_s,
            )

            def typing():
                try:
                    self._seen(repl)
                    person(repl, keyboard)
                except BaseException as fault:
                    self.fault = fault
                finally:
                    repl._post(repl.leave)

            thread = threading.Thread(target=typing)
            thread.start()
            repl.run()
            thread.join(LIMIT_S)
        assert self.fault is None, self.fault

    def press(self, repl, keyboard, data):
        """Presses, and waits until it was handled."""
        keyboard.send_bytes(data)
        self._seen(repl)
        self._seen(repl)

    def _seen(self, repl):
        done = threading.Event()
        repl._post(done.set)
        assert done.wait(LIMIT_S)


@pytest.mark.guarantee("G-DOCK")
def test_random_bytes_approve_nothing(tmp_path):
    one, asked = Keyboard(tmp_path), 0

    def person(repl, keyboard):
        nonlocal asked
        for seed in range(ROUNDS):
            chance = random.Random(seed)
            for _ in range(PRESSED):
                one.now_s += chance.choice((0.0, 0.01, 0.1, 0.5, 2.0))
                if chance.random() < 0.05:
                    asked += 1
                    repl.desk.tell(ev.AskOpened(f"q-{asked}", asdict(chance.choice(ASKS)), "approval", 0.0))
                one.press(repl, keyboard, chance.choice(KEYS))

    one.run(person)
    assert asked > 30 and len(one.brain.answers) > 5, "asks came and were answered"
    assert [answer for answer in one.brain.answers if answer.outcome == APPROVED] == []


def test_the_whole_word_typed_later_approves(tmp_path):
    one = Keyboard(tmp_path)

    def person(repl, keyboard):
        repl.desk.tell(ev.AskOpened("q-1", asdict(ASK), "approval", 0.0))
        one.press(repl, keyboard, b"ye")  # too early: it is the composer's
        one.now_s += 5.0
        for data in (b"y", b"e", b"s", b"\r"):
            one.press(repl, keyboard, data)
        assert repl.composer.text == "ye"

    one.run(person)
    assert [answer.outcome for answer in one.brain.answers] == [APPROVED]
