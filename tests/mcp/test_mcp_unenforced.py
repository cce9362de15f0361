"""On a kernel that enforces nothing the tools say so, and what is not a plain reader waits for a person."""

from __future__ import annotations

from dataclasses import replace

import pytest

from capabilities.probe import guard_state
from capabilities.run import bash_tool
from execution import open_guard
from guard.hands.sandbox import probe
from guard.hands.targets.local import LocalTarget
from tests.capabilities.world import asked, call_in


@pytest.fixture
def guard():
    kernel = replace(probe(), landlock_abi=0, seccomp=False, notify=False)
    return replace(open_guard(), target=LocalTarget(kernel))


def test_what_reads_plainly_runs_and_says_that_nothing_was_enforced(guard, tmp_path):
    got = asked(bash_tool(guard, call_in(tmp_path)), command="echo hello")
    assert (got["status"], got["stdout"], got["enforced"]) == ("succeeded", "hello\n", "none")


@pytest.mark.parametrize("command", ["git log", "kubectl get pods", "git status"])
def test_what_could_do_more_waits_for_a_person(guard, tmp_path, command):
    got = asked(bash_tool(guard, call_in(tmp_path)), command=command)
    assert (got["status"], got["execution"]) == ("needs_stamp", None)
    assert got["next"] == f"opsx approve {got['request']}"


def test_the_probe_says_what_is_missing(guard):
    sandbox = next(item for item in guard_state(guard) if item["name"] == "sandbox")
    assert sandbox["status"] == "missing" and sandbox["hint"]
