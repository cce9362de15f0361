"""Who asks: a person at a terminal, or an agent. Nothing raises it; anything unsure is an agent.

A person: standard input and standard error are one controlling terminal, and no ancestor process is an execution of
ours or a known agent host. That is a guard against confused models, not against a hostile process with your uid
(docs/threat-model.md).
"""

import os

from guard.types import Actor

HOST_NAMES = frozenset(
    (
        *("claude", "claude-code", "codex", "codex-cli", "gemini", "gemini-cli", "opencode", "pi", "qwen", "qwen-code"),
        *("cursor-agent", "aider", "goose", "goosed", "crush", "amp", "droid", "copilot", "kimi", "kiro-cli", "auggie"),
        *("cline", "continue", "openhands", "interpreter", "hermes", "openclaw"),
        *("opsagent", "opsagent-mcp", "mcp_server.py"),
    )
)
"""Process names of programs in which a model types the commands. `opsagent` itself is one: its loop's children are."""

HOST_MARKS = (
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CODEX_SANDBOX",
    "CODEX_THREAD_ID",
    "GEMINI_CLI",
    "OPENCODE",
    "QWEN_CODE",
    "CURSOR_AGENT",
    "AIDER_CHAT",
    "GOOSE_TERMINAL",
    "OPSAGENT_EXECUTION",
)
"""Variables that such hosts set in the environment of what they run; ours is the last."""

_MOST_ANCESTORS = 64


def actor_of_this_process() -> str:
    """`person` or `agent`, from the terminal and the ancestors of this process."""
    if not _one_controlling_terminal():
        return Actor.AGENT
    return Actor.AGENT if is_below_an_agent() else Actor.PERSON


def is_below_an_agent() -> bool:
    """Whether an execution of ours or a known agent host started this process, so that no answer is a person's."""
    return any(mark in os.environ for mark in HOST_MARKS) or _host_among_ancestors()


def _one_controlling_terminal() -> bool:
    try:
        if not (os.isatty(0) and os.isatty(2)):
            return False
        os.tcgetpgrp(0)  # ENOTTY when it is a terminal, but not the one that controls us (tcgetpgrp(3))
        return os.fstat(0).st_rdev == os.fstat(2).st_rdev
    except OSError:
        return False


def _host_among_ancestors() -> bool:
    """Walks up to init. A step that cannot be read counts as a host: unknown means agent."""
    pid = os.getppid()
    for _ in range(_MOST_ANCESTORS):
        if pid <= 1:
            return False
        step = _read_linux(pid) if os.path.isdir("/proc/self") else _read_elsewhere(pid)
        if step is None:
            return True
        parent, names, environment = step
        if not HOST_NAMES.isdisjoint(names):
            return True
        if any(f"\0{mark}=".encode() in b"\0" + environment for mark in HOST_MARKS):
            return True
        pid = parent
    return True


def _read_linux(pid: int) -> "tuple[int, set[str], bytes] | None":
    """(parent, names, environment) of a process (proc(5)); another user's environment reads as empty."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(4096).split(b"\0")[:2]
    except OSError:
        return None
    comm = stat[stat.index(b"(") + 1 : stat.rindex(b")")].decode("utf-8", "replace")
    parent = int(stat[stat.rindex(b")") + 2 :].split()[1])
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read(1 << 20)
    except OSError:
        environment = b""
    return parent, {comm, *_names(words)}, environment


def _names(words: "list[bytes]") -> "set[str]":
    """Base names of argv[0] and, for an interpreter, of the script in argv[1]."""
    names = {os.path.basename(word.decode("utf-8", "replace")) for word in words if word}
    return names | {name.removesuffix(".js").removesuffix(".mjs") for name in names}


def _read_elsewhere(pid: int) -> "tuple[int, set[str], bytes] | None":
    """The same from ps(1), where there is no /proc (macOS); environments stay unread there."""
    import subprocess

    try:
        shown = subprocess.run(
            ["/bin/ps", "-o", "ppid=,command=", "-p", str(pid)], capture_output=True, timeout=2, check=True
        ).stdout.split(None, 3)
        return int(shown[0]), _names(shown[1:3]), b""
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return None
