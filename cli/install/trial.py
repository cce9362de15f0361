"""Starts what is installed as a host would: the server up to its list of tools, and the hook with calls and mishaps."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from guard.errors import CannotRun
from guard.quoting import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cli.hooks.hosts import Host

SERVER_LIMIT_S = 60.0
HOOK_LIMIT_S = 30.0
"""The time that a host gives a hook (`cli.hooks.install.TIMEOUT_S`)."""
READ, IRREVERSIBLE = "uname -s", "rm -rf /var/lib"
"""What the hook is asked about; neither is run."""
MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Started:
    """A server that answered."""

    seconds: float
    """From its start to the list of tools."""
    version: str
    tools: tuple[str, ...]


def start_server(argv: list[str], environ: Mapping[str, str]) -> Started:
    """Speaks the handshake, asks for the tools, and ends it. Raises CannotRun."""
    began = time.monotonic()
    try:
        child = subprocess.Popen(
            argv,
            # Unbuffered: nothing is left to be written at the close, to a server that is gone.
            bufsize=0,
            env=dict(environ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        raise _no_server(f"{argv[0]}: {error.strerror}") from None
    assert child.stdin is not None and child.stdout is not None
    try:
        client = {"name": "opsagent-doctor", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
        greeting = _asked(child, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}, began)
        child.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        listed = _asked(child, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, began)
        tools = tuple(str(tool["name"]) for tool in listed["tools"])
        return Started(time.monotonic() - began, str(greeting["serverInfo"]["version"]), tools)
    except (OSError, KeyError, TypeError) as error:
        raise _no_server(f"it gave no proper answer ({type(error).__name__})") from None
    finally:
        child.stdin.close()
        child.stdout.close()
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _asked(child: subprocess.Popen[bytes], request: dict[str, Any], began: float) -> Any:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(json.dumps(request).encode() + b"\n")
    child.stdin.flush()
    data = b""
    while True:
        rest = began + SERVER_LIMIT_S - time.monotonic()
        if rest <= 0 or not select.select([child.stdout], [], [], rest)[0]:
            raise _no_server(f"no answer within {SERVER_LIMIT_S:.0f} s")
        part = os.read(child.stdout.fileno(), 65_536)
        data += part
        if not part or len(data) > MOST_BYTES:
            raise _no_server("it ended before it answered" if not part else "its answer is too long")
        *lines, data = data.split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                raise _no_server("it wrote something that is not the protocol") from None
            if isinstance(message, dict) and message.get("id") == request["id"]:
                return message["result"]


def _no_server(why: str) -> CannotRun:
    return CannotRun(f"the server does not start: {why}", not_done="its tools are not there")


@dataclass(frozen=True, slots=True)
class Answered:
    """How a hook ended."""

    code: int | None
    """None: it did not end within the host's time."""
    out: str
    err: str
    seconds: float

    @property
    def stops(self) -> bool:
        """Whether every host takes this for a no: exit code 2 with words (docs/hook.md, "The hosts, as measured")."""
        return self.code == 2 and bool(self.err.strip())

    @property
    def decision(self) -> str:
        """What its answer says; "" for none."""
        try:
            told = json.loads(self.out)
            return str(told.get("decision") or told["hookSpecificOutput"]["permissionDecision"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return ""


def ask_hook(command: str, host: Host, text: str, environ: Mapping[str, str]) -> Answered:
    """What the hook says to a command of the host's shell tool, which is not run."""
    with tempfile.TemporaryDirectory(prefix="opsagent-doctor-") as folder:
        given = {"command": text, "description": "a trial by opsagent install doctor"}
        frame = {"hook_event_name": host.event, "cwd": folder, "tool_name": host.shells[0], "tool_input": given}
        return _run(command, environ, json.dumps(frame).encode())


def without_program(command: str, opsx: str, environ: Mapping[str, str]) -> Answered:
    """The hook when its program is gone: the same command with a path at which nothing is."""
    return _run(command.replace(quoted(opsx), "/nonexistent/opsx", 1), environ, b"{}")


def hanging(command: str, environ: Mapping[str, str]) -> Answered:
    """The hook when it gets no call and so cannot answer."""
    return _run(command, environ, None)


def killed(command: str, environ: Mapping[str, str]) -> Answered:
    """The hook when it is killed while it works. Needs /proc."""
    return _run(command, environ, None, kills=True)


def _run(command: str, environ: Mapping[str, str], frame: bytes | None, *, kills: bool = False) -> Answered:
    """Args: frame: None leaves the input open and empty."""
    began = time.monotonic()
    child = subprocess.Popen(
        ["/bin/sh", "-c", command],
        env=dict(environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdin is not None
    try:
        if frame is not None:
            out, err = child.communicate(frame, HOOK_LIMIT_S)
        else:
            while kills and child.poll() is None and time.monotonic() < began + HOOK_LIMIT_S:
                for pid in _children(child.pid):
                    os.kill(pid, signal.SIGKILL)
                time.sleep(0.02)
            child.wait(max(0.0, began + HOOK_LIMIT_S - time.monotonic()))
            out, err = child.communicate(None, HOOK_LIMIT_S)
        code: int | None = child.returncode
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        out, err = child.communicate()
        code = None
    return Answered(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), time.monotonic() - began)


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except OSError:
        return []
