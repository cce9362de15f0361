"""Tells a person about a new request by a command of his own choice: once each, beside us, and never in the way.

The command runs under a small process of ours that outlives this one, ends it when it takes too long, and records when
it failed. Nothing waits for it, and nothing that it does changes what becomes of the request.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any

from guard import render

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from guard.ledger.approvals import KeptRequest

LIMIT_S = 20
"""A notice that takes longer is ended: mail and chat programs answer within seconds."""

COMMAND_CHARACTERS = 400
"""Of the command in the environment: a line for a pop-up; `opsx approve` shows all of it."""

PASSED = (
    *("LANG", "TZ", "OPSAGENT_HOME"),
    *("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"),
)
"""Passed to the command: what it needs to find its person's session. The asker is no person, so its HOME is not."""
BUS = ("unix:path=", "unix:abstract=", "unix:runtime=")
"""Addresses of buses that are sockets; others can start programs (D-Bus specification, "unixexec")."""


def notifier(argv: Sequence[str], redact: Callable[[str], str]) -> Callable[[KeptRequest], None]:
    """What the ledger calls for each new request. It starts the command and returns at once; it never raises."""

    def told(kept: KeptRequest) -> None:
        from acting.world import own_python

        order = {"argv": list(argv), "request": kept.id, "env": environment_of(kept, redact)}
        with contextlib.suppress(OSError):
            process = subprocess.Popen(
                own_python("from acting import notifying; sys.exit(notifying.main())"),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                close_fds=True,
            )
            # Somebody has to collect it when it ends, or a shell that lives long gathers zombies.
            threading.Thread(target=process.wait, daemon=True, name=f"notice {kept.id}").start()
            assert process.stdin is not None
            with process.stdin:
                process.stdin.write(json.dumps(order).encode())  # below the 64 KiB of a pipe: nobody waits

    return told


def environment_of(
    kept: KeptRequest, redact: Callable[[str], str], source: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What the command is told, in variables; every text is redacted, visible and on one line."""
    from guard.hands.environment import PATH

    def shown(text: str, most: int = 200) -> str:
        line = render.visible_line(redact(text).replace("\n", " "))
        return line if len(line) <= most else line[: most - 1] + "…"

    source = os.environ if source is None else source
    env = {name: source[name] for name in PASSED if name in source}
    buses = env.get("DBUS_SESSION_BUS_ADDRESS", "").split(";")
    if not all(bus.startswith(BUS) for bus in buses):
        env.pop("DBUS_SESSION_BUS_ADDRESS", None)
    with contextlib.suppress(KeyError):
        entry = pwd.getpwuid(os.geteuid())
        env |= {"HOME": entry.pw_dir, "USER": entry.pw_name, "LOGNAME": entry.pw_name}
    return {
        **env,
        "PATH": PATH,
        "OPSAGENT_REQUEST": kept.id,
        "OPSAGENT_LEVEL": kept.level,
        "OPSAGENT_TARGET": shown(kept.target),
        "OPSAGENT_MACHINE": shown(os.uname().nodename),
        "OPSAGENT_FOLDER": shown(kept.cwd),
        "OPSAGENT_COMMAND": shown(kept.command, COMMAND_CHARACTERS),
        "OPSAGENT_ACTOR": kept.actor,
        "OPSAGENT_CLIENT": shown(kept.client),
    }


def main() -> int:
    """The process beside us: runs what standard input orders, waits, and records a failure. Returns its exit code."""
    order = json.loads(sys.stdin.buffer.read())
    fault = _fault_of(order)
    if fault:
        from acting import world
        from guard.redact import Redactor

        text = f"nobody was told about {order['request']}: {fault}"
        world.open_store(Redactor()).note("notice", code="notify-failed", request=order["request"], text=text)
    return 1 if fault else 0


def _fault_of(order: dict[str, Any]) -> str:
    argv = order["argv"]
    try:
        child = subprocess.Popen(
            argv,
            env=order["env"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        return f"{argv[0]} cannot be started: {error.strerror}"
    try:
        code = child.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return f"{argv[0]} was ended after {LIMIT_S} s"
    return "" if code == 0 else f"{argv[0]} ended with {code}"
