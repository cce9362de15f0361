"""The system prompt: a versioned text, and the facts of this machine behind it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from capabilities.probe import OK, guard_state, machine
from guard.hands.files import user_name
from guard.render import visible_line
from guard.types import Mode

if TYPE_CHECKING:
    import execution

PROMPT_VERSION = 1
"""Counts up with every change of the text, so that records can be compared."""

_TEXT = Path(__file__).with_name("system_prompt.md")

_MODES = {
    Mode.READ_ONLY: "read-only: everything above R0 is refused, and nobody can approve it here",
    Mode.GUARDED: "guarded: everything above R0 needs a person's approval",
    Mode.LAB: "lab: R1 runs without approval; R2 and R3 need it",
}


@cache
def text() -> str:
    """The part that is the same everywhere."""
    return _TEXT.read_text("utf-8").strip()


def system_prompt(guard: execution.Guard, *, cwd: str, can_ask: bool) -> str:
    """The whole prompt. The facts come last and do not change within a conversation, so that a provider can cache it.

    Args:
        can_ask: whether the person can be asked through this conversation.
    """
    return f"{text()}\n\n# This machine\n{facts(guard, cwd=cwd, can_ask=can_ask)}"


def facts(guard: execution.Guard, *, cwd: str, can_ask: bool) -> str:
    """What a model has to know of where it works, one fact a line."""
    found = {one["name"]: one for one in (*machine(), *guard_state(guard, guard.enforcement()))}
    lines = [f"host: {os.uname().nodename}", f"user: {user_name(os.geteuid())} (uid {os.geteuid()})", f"folder: {cwd}"]
    for name in ("system", "kernel", "processors", "memory", "container", "init"):
        if name in found:
            lines.append(f"{name}: {found[name]['detail']}")
    sandbox = found["sandbox"]
    held = sandbox["detail"] if sandbox["status"] == OK else f"NOT enforced here ({sandbox['detail']})"
    lines.append(f"reads are held by: {held}")
    if found["records"]["status"] != OK:
        lines.append(f"records: {found['records']['detail']}; changes are refused until that is mended")
    policy = guard.policy
    lines.append(f"mode: {_MODES.get(policy.mode, policy.mode)}")
    if policy.frozen:
        lines.append(f"frozen: {policy.frozen}; everything above R0 is refused")
    asked = "the person can be asked here (ops_approve)" if can_ask else "nobody can be asked here"
    lines.append(f"approval: {asked}")
    return "\n".join(f"- {visible_line(guard.redactor.text(line))}" for line in lines)
