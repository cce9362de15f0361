"""`opsagent install doctor HOST`: the host, our server and hook as it starts them, and what weakens them."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from agent.brains.checkup import BAD, OK, WARN, Check
from cli.hooks.hosts import CODEX, HOSTS, Host
from cli.install import entries, switches, trial
from cli.report import as_typed, line, safe, write
from guard.errors import GuardError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.install.entries import Change, Place

PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini"}
SEEN = {"claude-code": "2.1.332", "codex": "0.171.0", "gemini": "0.61.0"}
"""The versions that `make hosts` ran; a test compares them with its pins."""
VERSION_LIMIT_S = 60


def report(name: str, place: Place, changes: tuple[Change, ...], *, as_json: bool) -> int:
    """Prints every check and returns the exit code."""
    host = HOSTS[name]
    checks = [*_program(host), *_server(host, place), *_hook(host, place), *_weakened(host, place)]
    bad = any(check.state == BAD for check in checks)
    if as_json:
        rows = [
            {"name": one.name, "state": one.state, "detail": safe(one.detail), "mend": safe(one.mend)} for one in checks
        ]
        line({"format": 1, "host": name, "ok": not bad, "checks": rows})
        return 1 if bad else 0
    width = max(len(check.name) for check in checks)
    for one in checks:
        write(f"{one.state:4}  {safe(one.name):{width}}  {safe(one.detail)}\n")
        if one.mend:
            write(f"{'':6}{'':{width}}  → {safe(as_typed(one.mend))}\n")
    return 1 if bad else 0


def _program(host: Host) -> Iterator[Check]:
    path = shutil.which(PROGRAMS[host.name])
    if path is None:
        yield Check("program", WARN, f"{PROGRAMS[host.name]} is not on PATH")
        return
    try:
        done = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=VERSION_LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired):
        yield Check("program", BAD, f"{path} does not start")
        return
    version = done.stdout.decode("utf-8", "replace").strip()[:100]
    if SEEN[host.name] in version:
        yield Check("program", OK, f"{path}: {version}")
    else:
        yield Check("program", WARN, f"{path}: {version}; what follows was seen to work with {SEEN[host.name]}")


def _server(host: Host, place: Place) -> Iterator[Check]:
    found = list(switches.servers(host, place))
    if not found:
        yield Check("server", BAD, "the host does not know our MCP server", f"opsagent install {host.name} --write")
        return
    name, entry = found[0]
    argv = [str(entry.get("command")), *(str(word) for word in entry.get("args") or ())]
    own = entry.get("env")
    environ = {**place.environ, **({str(k): str(v) for k, v in own.items()} if isinstance(own, dict) else {})}
    try:
        started = trial.start_server(argv, environ)
    except GuardError as error:
        yield Check("server", BAD, error.message, f"opsagent install {host.name} --write")
        return
    yield Check("server", OK, f"{name}: opsagent {started.version}, tools there after {started.seconds:.1f} s")
    missing = sorted({*entries.READ_ONLY, *entries.ASKED} - {*entries.CONFIGURED, *started.tools})
    if missing:
        yield Check("tools", BAD, f"the server offers no {', '.join(missing)}")
    else:
        yield Check("tools", OK, f"{len(started.tools)}: {' '.join(started.tools)}")


def _hook(host: Host, place: Place) -> Iterator[Check]:
    """The hook as it stands in the settings, with calls that are never run and with every mishap."""
    found = list(switches.hook_commands(host, place))
    if not found:
        yield Check(
            "hook",
            WARN,
            "there is none: commands of the host's own shell are not guarded",
            f"opsagent install {host.name} --hook --write",
        )
        return
    path, command = found[0]
    if len(found) > 1:
        yield Check("hook", WARN, f"it stands {len(found)} times: {', '.join(file for file, _ in found)}")
    yield Check("hook", OK, f"{path}: {command}")
    read = trial.ask_hook(command, host, trial.READ, place.environ)
    yield _seen("hook, a read", f"{read.decision or 'no answer'} after {read.seconds:.2f} s", read.decision == "allow")
    never = trial.ask_hook(command, host, trial.IRREVERSIBLE, place.environ)
    yield _seen("hook, irreversible", never.decision or "no answer", never.decision == "deny")
    mishaps = {"missing": trial.without_program(command, place.opsx, place.environ)}
    if os.path.isdir("/proc/self/task"):
        mishaps["killed"] = trial.killed(command, place.environ)
    mishaps["hanging"] = trial.hanging(command, place.environ)
    for name, ended in mishaps.items():
        how = "it did not end" if ended.code is None else f"exit code {ended.code} after {ended.seconds:.1f} s"
        yield _seen(
            f"hook, {name}",
            f"{how}: {' · '.join(ended.err.strip().splitlines())[:200] or 'without a word'}",
            ended.stops,
        )
    if host is CODEX:
        yield Check(
            "hook, trust",
            WARN,
            "Codex runs it only after a person trusted it, which cannot be seen from here",
            "in Codex: /hooks",
        )


def _seen(name: str, detail: str, right: bool) -> Check:
    return Check(name, OK if right else BAD, detail, "" if right else "docs/hook.md")


def _weakened(host: Host, place: Place) -> Iterator[Check]:
    said = [*switches.warnings(host, place), *switches.unreadable(host, place)]
    for sentence in said:
        yield Check("settings", WARN, sentence)
    if not said:
        yield Check("settings", OK, "nothing in them switches off the hook or allows a change without a question")
