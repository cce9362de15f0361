"""Several writers at once, and writers that are killed: one has it, and what was acknowledged is there."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from agent.messages import User
from agent.sessions.lock import hold, is_held
from agent.sessions.repair import paired
from guard.errors import StateBusy
from guard.ledger.state import StateFolder
from tests.agent.sessions.stories import sessions_in, told

ROOT = Path(__file__).resolve().parents[3]
THREADS, ROUNDS = 6, 40

WRITER = """
import sys
sys.path.insert(0, {root!r})
from agent.messages import Assistant, Result, ToolCall, User
from agent.sessions.store import Sessions
from guard.redact import Redactor
transcript = Sessions.open(Redactor(), {place!r}).create(cwd="/")
count = 0
while True:
    for message in (
        User("question"),
        Assistant("look", (ToolCall(f"call_{{count}}", "bash", {{"command": "df -h"}}),)),
        Result(f"call_{{count}}", "bash", "x" * 3000, "succeeded"),
        Assistant("answer"),
    ):
        transcript.append(message)
        count += 1
        sys.stdout.write(f"{{count}}\\n")
        sys.stdout.flush()
"""


def test_one_of_many_gets_the_lock_however_often_it_changes_hands(tmp_path):
    folder = StateFolder.open(str(tmp_path / "state"))
    with folder.folder("sessions", create=True):
        pass
    inside = threading.Semaphore(1)
    begin = threading.Barrier(THREADS)
    faults, wins = [], []

    def contend():
        begin.wait()
        with folder.folder("sessions") as dir_fd:
            for _ in range(ROUNDS):
                try:
                    held = hold(folder, "c-1", dir_fd=dir_fd)
                except StateBusy:
                    continue
                if not inside.acquire(blocking=False):
                    faults.append("two have it")
                else:
                    wins.append(1)
                    inside.release()
                held.release()

    threads = [threading.Thread(target=contend) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert wins
    with folder.folder("sessions") as dir_fd:
        assert not is_held(folder, "c-1", dir_fd=dir_fd)


def test_lock_that_a_dead_process_left_behind_holds_nothing(tmp_path):
    sessions = sessions_in(tmp_path / "state")
    session = told(sessions)
    (tmp_path / "state" / "sessions" / f"{session}.lock").write_text("1\n")
    (tmp_path / "state" / "sessions" / f"{session}.lock").chmod(0o600)
    assert not sessions.listing()[0].is_open
    sessions.resume(session).close()
    assert not (tmp_path / "state" / "sessions" / f"{session}.lock").exists()


@pytest.mark.parametrize("acknowledged", [1, 2, 3, 7, 30])
def test_killed_writer_loses_nothing_that_was_acknowledged(tmp_path, acknowledged):
    place = str(tmp_path / "state")
    code = WRITER.format(root=str(ROOT), place=place)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        while int(writer.stdout.readline()) < acknowledged:
            pass
        writer.kill()
        rest = writer.stdout.read().split()
    said = int(rest[-1]) if rest else acknowledged
    sessions = sessions_in(place)
    transcript = sessions.resume("last")
    messages = transcript.messages
    assert said <= len(messages) <= said + 2  # one more that was written and not said, and the result of a lost call
    assert paired(messages).notes == ()
    transcript.append(User("go on"))
    transcript.close()
    assert sessions.read("last").messages == (*messages, User("go on"))
    assert sessions.read("last").notes == ()
