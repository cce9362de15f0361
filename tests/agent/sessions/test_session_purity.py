"""Reading, mending and compaction see only what they are given; one module of the conversations knows the log."""

from __future__ import annotations

import pytest

from tests.sources import imports, names, within

PURE = (
    "agent.shortening",
    "agent.compaction",
    "agent.messages",
    "agent.sessions.cleaning",
    "agent.sessions.export",
    "agent.sessions.lines",
    "agent.sessions.reading",
    "agent.sessions.records",
    "agent.sessions.repair",
)
OUTSIDE = ("os", "io", "pathlib", "shutil", "tempfile", "socket", "subprocess", "time", "datetime", "random", "secrets")


@pytest.mark.parametrize("name", PURE)
def test_pure_modules_reach_nothing_outside(name):
    assert [one for one in imports(name) if one.at_run_time and within(one.module, *OUTSIDE)] == []
    assert {"open", "print", "input", "exec", "eval"} & {used for used, _ in names(name)} == set()


@pytest.mark.parametrize("name", [*PURE, "agent.sessions.lock", "agent.sessions.store", "agent.sessions.transcript"])
def test_conversations_on_disk_know_no_tool_no_brain_and_no_execution(name):
    known = (
        "agent.shortening",
        "agent.compaction",
        "agent.messages",
        "agent.sessions",
        "capabilities.bounded",
        "guard",
    )
    ours = [
        one.module for one in imports(name) if within(one.module, "agent", "capabilities", "core", "execution", "guard")
    ]
    assert [module for module in ours if not within(module, *known)] == []
