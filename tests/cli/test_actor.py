"""Who asks: a person needs a terminal and clean ancestors; everything else is an agent."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from cli.actor import HOST_MARKS, actor_of_this_process
from guard.types import Actor

ROOT = Path(__file__).resolve().parents[2]
PROBE = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from cli import actor; print(actor.actor_of_this_process())"


def in_terminal(argv, *, environment=None, stderr_to_pipe=False):
    """Runs argv with a new controlling terminal and returns what it printed."""
    pid, master = pty.fork()
    if pid == 0:
        if stderr_to_pipe:
            os.dup2(os.pipe()[1], 2)
        os.execve(argv[0], argv, {"PATH": os.environ["PATH"], **(environment or {})})
    shown = b""
    while True:
        try:
            block = os.read(master, 4096)
        except OSError:
            break
        if not block:
            break
        shown += block
    os.waitpid(pid, 0)
    os.close(master)
    return shown.decode().strip()


def probe_under(name, tmp_path):
    """A script whose process name is `name` and that runs the probe as its child."""
    script = tmp_path / name
    script.write_text(f'#!/bin/sh\n{sys.executable} -I -c "$PROBE"\nexit $?\n')
    script.chmod(0o755)
    return [str(script)]


def test_without_a_terminal_it_is_an_agent():
    shown = subprocess.run(
        [sys.executable, "-I", "-c", PROBE], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == Actor.AGENT


def test_a_terminal_only_on_standard_input_is_an_agent():
    assert in_terminal([sys.executable, "-I", "-c", PROBE], stderr_to_pipe=True) == Actor.AGENT


@pytest.mark.parametrize("mark", HOST_MARKS)
def test_a_mark_of_a_known_host_makes_it_an_agent(mark):
    assert in_terminal([sys.executable, "-I", "-c", PROBE], environment={mark: "1"}) == Actor.AGENT


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode", "opsagent"])
def test_a_known_host_among_the_ancestors_makes_it_an_agent(name, tmp_path):
    assert in_terminal(probe_under(name, tmp_path), environment={"PROBE": PROBE}) == Actor.AGENT


def test_a_terminal_with_clean_ancestors_is_a_person(monkeypatch):
    import cli.actor as module

    monkeypatch.setattr(module, "_one_controlling_terminal", lambda: True)
    monkeypatch.setattr(module, "_read_linux", lambda pid: (1, {"bash", "-bash"}, b"HOME=/root\0TERM=xterm\0"))
    assert actor_of_this_process() == Actor.PERSON


def test_an_ancestor_that_cannot_be_read_makes_it_an_agent(monkeypatch):
    import cli.actor as module

    monkeypatch.setattr(module, "_one_controlling_terminal", lambda: True)
    monkeypatch.setattr(module, "_read_linux", lambda pid: None)
    assert actor_of_this_process() == Actor.AGENT
