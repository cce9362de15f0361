"""A desk without a terminal: what it tells its screen, and a world of its own below the test's folder."""

from __future__ import annotations

import queue
import time

from agent.conversation import Conversation
from agent.providers.one import OneBrain
from agent.providers.scripted import Scripted, steps_of
from agent.repl import dock, rows
from agent.repl.desk import Desk
from agent.repl.lines import text_of
from agent.repl.world import Opened
from agent.sessions.store import Sessions
from guard.errors import UsageError
from tests.capabilities.world import guard_in

LIMIT_S = 30.0
"""A test that waits longer than this has failed; nothing measures time by it."""
COLUMNS = 100


class World:
    """`agent.repl.world.World` over a real guard whose target runs plain bash, and scripted brains."""

    def __init__(self, tmp_path, *, person=True, scripts=None):
        self.guard = guard_in(tmp_path)
        self.state = str(tmp_path / "state")
        folder = tmp_path / "work"
        folder.mkdir(exist_ok=True)
        self.cwd, self.person, self.environ = str(folder), person, {}
        self.scripts = scripts or {}
        self.verbs = []
        self.brain = None

    @property
    def sessions(self):
        return Sessions.open(self.guard.redactor, self.state)

    def open(self, *, brain="", model="", resume="", cwd=""):
        name = brain or next(iter(self.scripts))
        if name not in self.scripts:
            raise UsageError(f"there is no brain {name}", not_done="nothing was changed")
        self.cwd = cwd or self.cwd
        self.brain = Scripted(name, steps_of(self.scripts[name]))
        transcript = self.sessions.resume(resume) if resume else self.sessions.create(cwd=self.cwd, brain=name)
        conversation = Conversation(
            self.guard, OneBrain(self.brain), transcript, cwd=self.cwd, shell="repl", asks=self.person, findings=False
        )
        conversation.start()
        history = conversation.history
        return Opened(
            conversation,
            transcript.id,
            name,
            model or "script",
            messages=lambda: history.messages,
            notes=tuple(transcript.notes) if resume else (),
            sent_chars=conversation.sent_chars,
            compact=conversation.compact,
        )

    def brains(self):
        return tuple(self.scripts)

    def verb(self, program, argv):
        self.verbs.append([program, *argv])
        return f"{program} {' '.join(argv)} said this\n", 0


class Seat:
    """A desk, and the screen in front of it."""

    def __init__(self, tmp_path, *replies, person=True, scripts=None):
        self.posted = queue.SimpleQueue()
        self.world = World(tmp_path, person=person, scripts=scripts or {"one": list(replies)})
        self.composed, self.copied, self.rows = "", [], []
        self.edited = None
        self.remembered = ()
        self.left = self.cleared = False
        self.now_s = 0.0
        self.desk = Desk(self.world, self.world.open(), self, self.posted.put, lambda: self.now_s)

    # The desk's screen.

    def changed(self):
        pass

    def clear(self):
        self.cleared = True

    def copy(self, text):
        self.copied.append(text)

    def compose(self, text):
        self.composed = text

    def edit(self, text):
        self.edited = text

    def remember(self, texts):
        self.remembered = texts

    def leave(self):
        self.left = True

    # The person.

    def pump(self, until=None):
        """Lets things happen until `until()` is so, or nothing is at work any more; returns all rows so far."""
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                self.posted.get(timeout=0.05)()
            except queue.Empty:
                pass
            for piece in self.desk.pieces():
                self.rows += [text_of(line).rstrip() for line in rows.rows_of(piece, COLUMNS)]
            if until() if until else (not self.desk.busy() and self.posted.empty()):
                return self.rows
            assert time.monotonic() < end, "it never came to this; so far:\n" + "\n".join(self.rows)

    def say(self, text):
        self.desk.submit(text)
        return self.pump()

    def asked(self, text=""):
        """Sends a text and waits until something is asked; returns what."""
        if text:
            self.desk.submit(text)
        self.pump(lambda: self.desk.dock.waiting)
        self.now_s += 1.0
        return self.desk.dock.waiting[0]

    def answer(self, words):
        """Reads to the end and types into the dock."""
        self.desk.press(dock.Key(dock.END))
        for char in words:
            assert self.desk.press(dock.Key(dock.TEXT, char))
        self.desk.press(dock.Key(dock.ENTER))

    def shown(self):
        return "\n".join(self.rows)

    def close(self):
        self.desk.close()
