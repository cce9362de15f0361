"""`probe`: what this machine is and has: `ok`, `missing`, `broken`, `timeout` or `not_run`, with a repair hint.

Programs are tried through the guard like any other read; the rest is what the process itself can see of its machine.
"""

from __future__ import annotations

import os
import platform
import shutil
from typing import TYPE_CHECKING

import execution
from capabilities.registry import JSON, Tool, hints_of, parameters
from guard.errors import GuardError, UsageError
from guard.lines import lines_of
from guard.quoting import joined
from guard.types import Level, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from capabilities.call import Call
    from guard.types import Enforcement

OK, MISSING, BROKEN, TIMEOUT, NOT_RUN = "ok", "missing", "broken", "timeout", "not_run"
EACH_S = 4.0
AT_ONCE = 4

PROGRAMS: dict[str, tuple[tuple[str, ...], str]] = {
    "bash": (("bash", "--version"), "the package bash; every command is run by it"),
    "systemctl": (
        ("systemctl", "--version"),
        "this machine has no systemd; services are looked after by something else",
    ),
    "journalctl": (("journalctl", "--version"), "comes with systemd; without it logs are files below /var/log"),
    "ip": (("ip", "-V"), "the package iproute2"),
    "ss": (("ss", "-V"), "the package iproute2"),
    "ps": (("ps", "--version"), "the package procps (procps-ng)"),
    "df": (("df", "--version"), "the package coreutils"),
    "lsof": (("lsof", "-v"), "the package lsof"),
    "curl": (("curl", "--version"), "the package curl"),
    "git": (("git", "--version"), "the package git"),
    "ssh": (("ssh", "-V"), "the package openssh-client (openssh-clients)"),
    "docker": (("docker", "--version"), "Docker's client is not installed"),
    "podman": (("podman", "--version"), "the package podman"),
    "kubectl": (("kubectl", "version", "--client"), "the Kubernetes client is not installed"),
    "helm": (("helm", "version", "--short"), "the Helm client is not installed"),
    "terraform": (("terraform", "version"), "Terraform is not installed"),
    "ansible": (("ansible", "--version"), "the package ansible-core"),
    "psql": (("psql", "--version"), "the package postgresql-client"),
    "mysql": (("mysql", "--version"), "the package default-mysql-client (mysql)"),
    "redis-cli": (("redis-cli", "--version"), "the package redis-tools (redis)"),
    "aws": (("aws", "--version"), "the AWS client is not installed"),
    "nginx": (("nginx", "-v"), "the package nginx"),
    "python3": (("python3", "--version"), "the package python3"),
}
"""Program → a call that only asks it who it is, and what is missing when it is not there."""

GROUPS = ("machine", "guard", "programs")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin:/opt/homebrew/bin"


class UnknownProbe(UsageError):
    """There is nothing of that name to probe."""

    code = "usage.probe"


def probe_tool(guard: execution.Guard, call: Call) -> Tool:
    """`probe`: everything, one group, or one program by name."""

    def run(arguments: JSON) -> JSON:
        what = arguments.get("what", "all")
        groups: dict[str, Callable[[], list[JSON]]] = {
            "machine": lambda: machine(),
            "guard": lambda: guard_state(guard),
            "programs": lambda: programs(PROGRAMS, guard, call),
        }
        if what == "all":
            items = [item for find in groups.values() for item in find()]
        elif what in groups:
            items = groups[what]()
        elif what in PROGRAMS:
            items = programs([what], guard, call)
        else:
            raise UnknownProbe(
                f"there is nothing called {repr(what)[:60]} to probe",
                not_done="nothing was looked at",
                hint=f"all, {', '.join(GROUPS)}, or a program: {', '.join(PROGRAMS)}",
            )
        return {"format": 1, "host": os.uname().nodename, "at": guard.clock.utc(), "items": items}

    return Tool(
        "probe",
        "What this machine is and has: system, what the guard enforces here, and which programs are ok, missing, "
        "broken or do not answer, with a repair hint.",
        parameters(
            {},
            {"what": {"type": "string", "maxLength": 60, "description": "all, machine, guard, programs, or a program"}},
        ),
        hints_of(Level.R0),
        run,
        {"type": "object", "required": ["format"]},
    )


def item(name: str, status: str, detail: str = "", hint: str = "", execution_id: str | None = None) -> JSON:
    """One thing that was looked at. `hint` is empty for what is ok."""
    return {"name": name, "status": status, "detail": detail, "hint": hint, "execution": execution_id}


def machine() -> list[JSON]:
    """System, kernel, processors, memory, user, init, container: what the process sees without running anything."""
    name = os.uname()
    found = [
        item("system", OK, _system_name()),
        item("kernel", OK, f"{name.sysname} {name.release} {name.machine}"),
        item("processors", OK, str(_processors())),
        item("user", OK, f"uid {os.geteuid()}" + (" (root)" if os.geteuid() == 0 else "")),
        item("python", OK, platform.python_version()),
    ]
    total = _first_field("/proc/meminfo", "MemTotal:")
    if total:
        found.append(item("memory", OK, f"{int(total) / 1024 / 1024:.1f} GiB"))
    container = _container()
    found.append(item("container", OK, container or "none seen"))
    init = _text("/proc/1/comm").strip()
    if init:
        systemd = os.path.isdir("/run/systemd/system")
        found.append(
            item("init", OK, init)
            if systemd
            else item(
                "init", MISSING, f"{init}; systemd does not manage this machine", "services are not systemd units"
            )
        )
    return found


def guard_state(guard: execution.Guard, enforced: Enforcement | None = None) -> list[JSON]:
    """What the guard can rely on here: sandbox profiles, records, bash.

    Args:
        enforced: what is known of the sandbox; None tries every profile now.
    """
    enforced = enforced if enforced is not None else guard.target.enforcement()
    if enforced.profiles:
        detail = f"{enforced.mechanism}, Landlock ABI {enforced.landlock_abi}: {', '.join(sorted(enforced.profiles))}"
        sandbox = item("sandbox", OK, detail)
    else:
        sandbox = item(
            "sandbox",
            MISSING,
            "this kernel enforces nothing for reads",
            "a kernel of 6.7 or later with Landlock and seccomp; until then most reads need approval",
        )
    found = [sandbox]
    try:
        guard.ledger.audit(1)
    except GuardError as error:
        found.append(item("records", BROKEN, guard.redactor.text(error.message), guard.redactor.text(error.hint)))
    else:
        found.append(item("records", OK, "the state folder can be read"))
    bash = os.access("/bin/bash", os.X_OK)
    found.append(item("/bin/bash", OK) if bash else item("/bin/bash", MISSING, "", "install the package bash"))
    return found


def programs(names: Iterable[str], guard: execution.Guard, call: Call) -> list[JSON]:
    """Each program, in order; at most four are asked at once."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="probe") as pool:
        return list(pool.map(lambda name: _program(name, guard, call), names))


def _program(name: str, guard: execution.Guard, call: Call) -> JSON:
    argv, hint = PROGRAMS[name]
    place = shutil.which(name, path=PATH)
    if place is None:
        return item(name, MISSING, "", hint)
    try:
        ran = execution.run(call.request(joined(argv)), guard, timeout_s=EACH_S, cancel=call.cancel)
    except GuardError as error:
        return item(name, BROKEN, guard.redactor.text(error.message), guard.redactor.text(error.hint))
    outcome = ran.outcome
    if outcome.execution is None:
        return item(name, NOT_RUN, place, outcome.decision.text if outcome.decision else "")
    said = (outcome.stdout.text.strip() or outcome.stderr.text.strip()).split("\n")[0][:120]
    if outcome.status == Status.SUCCEEDED:
        return item(name, OK, said, execution_id=outcome.execution)
    if outcome.status == Status.TIMED_OUT:
        return item(
            name, TIMEOUT, f"{place} did not answer in {EACH_S:.0f} s", "look at what it waits for", outcome.execution
        )
    reinstall = f"{place} ends with {outcome.exit_code}; reinstall it, or look at what it says"
    return item(name, BROKEN, said, reinstall, outcome.execution)


def _system_name() -> str:
    for place in ("/etc/os-release", "/usr/lib/os-release"):
        for line in lines_of(_text(place)):
            if line.startswith("PRETTY_NAME="):
                return line.partition("=")[2].strip().strip('"')
    return platform.platform(terse=True)


def _processors() -> int:
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _container() -> str:
    if os.path.exists("/.dockerenv"):
        return "docker"
    if os.path.exists("/run/.containerenv"):
        return "podman"
    return _text("/run/systemd/container").strip()


def _first_field(path: str, label: str) -> str:
    for line in lines_of(_text(path)):
        if line.startswith(label):
            return line[len(label) :].split()[0]
    return ""


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(65_536)
    except OSError:
        return ""
