"""`opsagent doctor`: what works here, what does not, and how to mend it. Looks only; one tiny request with --online."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING

from agent.brains.checkup import BAD, OK, WARN, Check, check_brains
from agent.brains.choice import RUNBOOKS
from cli import surroundings
from cli.options import Option, Verb
from cli.report import as_typed, line, safe, write
from cli.version import VERSION
from guard.errors import GuardError, StateError, UsageError
from guard.ledger import location

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import execution
    from cli.options import Parsed
    from guard.ledger.state import StateFolder

    Part = Callable[[execution.Guard], Iterator[Check]]

VERB = Verb(
    "doctor",
    "cli.opsagent_doctor",
    "what works here and what does not: brains, sandbox, records, configuration, hooks; and how to mend it",
    usage="[options]",
    options=(
        Option("online", "wait longer for the brains and ask each one thing, so that its tools are seen to work"),
        Option("json", "print one JSON object"),
    ),
    text="""
Nothing is changed. Without --online the brains are asked for their lists of models only, which costs nothing and takes
2 s at most. `opsx selftest` tries judge, sandbox and log for real.""",
    codes="0 all well, or with drawbacks that are said · 1 something does not work · 2 usage",
)

LEAST_FREE_BYTES = 64 * 1024 * 1024
"""Below this a change may not find room for its snapshot and record."""
HOSTS = {
    "claude-code": "~/.claude/settings.json",
    "codex": "~/.codex/config.toml",
    "gemini": "~/.gemini/settings.json",
}
MOST_SETTINGS_BYTES = 1 << 20


def main(parsed: Parsed) -> int:
    """Prints every check."""
    if parsed.words:
        raise UsageError(f"opsagent doctor takes no {repr(parsed.words[0])[:60]}", hint=parsed.help_line())
    from execution import open_guard

    guard = open_guard(surroundings.policy(), outputs_folder=surroundings.outputs_folder())
    redact = guard.redactor.text
    parts = {**PARTS, "brains": lambda guard: _brains(guard, online=parsed.flag("online"))}
    checks = [check for name, part in parts.items() for check in _safely(name, part, guard)]
    bad = any(check.state == BAD for check in checks)
    if parsed.flag("json"):
        rows = [
            {"name": one.name, "state": one.state, "detail": redact(one.detail), "mend": redact(one.mend)}
            for one in checks
        ]
        line({"format": 1, "ok": not bad, "checks": rows})
    else:
        width = max(len(check.name) for check in checks)
        for one in checks:
            write(f"{one.state:4}  {safe(one.name):{width}}  {safe(redact(one.detail))}\n")
            if one.mend:
                write(f"{'':6}{'':{width}}  → {safe(redact(as_typed(one.mend)))}\n")
    return 1 if bad else 0


def _safely(name: str, part: Part, guard: execution.Guard) -> Iterator[Check]:
    """What a part finds; an error of its own is a finding too, and stops no other part."""
    try:
        yield from part(guard)
    except GuardError as error:
        yield Check(name, BAD, error.message, error.hint)


def _program(guard: execution.Guard) -> Iterator[Check]:
    from guard.judge.policy import POLICY_VERSION

    system = f"{platform.system()} {platform.release()}"
    yield Check(
        "program", OK, f"opsagent {VERSION}, policy {POLICY_VERSION}, Python {platform.python_version()}, {system}"
    )


def _state(guard: execution.Guard) -> Iterator[Check]:
    from guard.ledger.null import NullLedger

    ledger = guard.ledger
    if isinstance(ledger, NullLedger):
        yield Check("records", BAD, ledger.error.message, ledger.error.hint)
        return
    path = ledger.folder.path
    sick = _sick(ledger.folder)
    for note in ledger.notes:
        if sick is None or note != sick.message:
            yield Check("records", WARN, note)
    room = os.statvfs(path)
    free_bytes = room.f_bavail * room.f_frsize
    if free_bytes < LEAST_FREE_BYTES:
        yield Check(
            "records",
            WARN,
            f"{path} has {free_bytes // 1024**2} MiB left: changes may find no room for what they save first",
            "free some; opsx snapshot list",
        )
    listing = ledger.executions(status="unknown", limit=20)
    if listing.executions:
        ids = " ".join(run.id for run in listing.executions[:5])
        yield Check(
            "records",
            WARN,
            f"nobody knows how these runs ended, and they hold up what touches the same: {ids}",
            "look at the machine, then: opsx resolve e-… --done | --not-done",
        )
    if frozen := guard.policy.frozen or ledger.stop():
        yield Check("records", WARN, f"everything above R0 is stopped: {frozen}", "opsx thaw")
    if sick is None:
        whose = ", the records of everybody who becomes root here" if location.is_roots_own() else ""
        yield Check("records", OK, f"{path} can be written{whose}")
    else:
        said = f"{sick.message}: reads run unrecorded, changes do not run"
        yield Check("records", BAD, said, sick.hint)
    yield from _conversations(guard)


def _sick(folder: StateFolder) -> StateError | None:
    """Why nothing can be recorded; None when it can."""
    try:
        folder.require_writable()
        folder.key()
    except StateError as error:
        return error
    if not os.access(folder.path, os.W_OK | os.X_OK):
        return StateError(f"{folder.path} cannot be written", hint="is its file system read-only, or full?")
    return None


def _conversations(guard: execution.Guard) -> Iterator[Check]:
    from agent.sessions.store import Sessions

    try:
        found = Sessions.open(guard.redactor).listing(limit=50)
    except StateError as error:
        yield Check("conversations", BAD, error.message, error.hint)
        return
    for one in found:
        if one.fault:
            yield Check("conversations", WARN, f"{one.id} cannot be read: {one.fault}", "opsagent sessions list")


def _configuration(guard: execution.Guard) -> Iterator[Check]:
    from cli import config

    settings = config.load()
    for problem in settings.problems:
        yield Check("configuration", WARN, problem, "opsagent config check")
    if not settings.problems:
        files = len(settings.files)
        yield Check("configuration", OK, f"{files} {'file' if files == 1 else 'files'}, mode {settings.mode}")


def _secrets(guard: execution.Guard) -> Iterator[Check]:
    """Values that are known to be secret and too plain to be hidden wherever they occur."""
    for sentence in guard.redactor.weak:
        yield Check("secrets", WARN, f"{sentence}; it is not hidden where it stands without its name", "a longer one")


def _sandbox(guard: execution.Guard) -> Iterator[Check]:
    """Tried now: in each profile a program attempts what must be stopped and what must be left."""
    from guard.hands import sandbox
    from guard.hands.sandbox.canaries import try_canaries
    from guard.hands.sandbox.missing import missing_pieces

    shared = sandbox.shared()
    measured = shared.measure()
    if measured.profiles:
        canaries = list(try_canaries(shared, [name for name in sandbox.PROFILES if name in measured.profiles]))
        failed = [canary for canary in canaries if not canary.passed]
        profiles = ", ".join(name for name in sandbox.PROFILES if name in measured.profiles)
        how = f"{measured.mechanism}, Landlock ABI {measured.landlock_abi}; {profiles}"
        if failed:
            yield Check(
                "sandbox", BAD, f"{failed[0].words} does not hold ({len(failed)} in all)", "opsx sandbox doctor"
            )
        else:
            yield Check("sandbox", OK, f"reads are held, as {len(canaries)} attempts showed: {how}")
    for piece in missing_pieces(shared):
        yield Check("sandbox", WARN, f"{piece.piece} is not there: {piece.meaning}", piece.mend)


_MEANING = {
    "root": (
        "root: reads run at once in the sandbox, also of what only root sees; changes need approval and are saved "
        "first; `sudo` without options in a command is the command itself",
        "",
    ),
    "sudo without a password": (
        "sudo answers without a password: reads without it run at once; a command with it, a read too, needs approval "
        "each time; what only root can read is not saved first, so such a change ends with 5 unless --no-snapshot-of "
        "names it; a rollback runs without sudo",
        "run opsagent as root for reads without approval and changes with a way back",
    ),
    "sudo with a password": (
        "sudo with a password: nobody is asked for one here, so a command with sudo needs approval and then fails at "
        "once; reads of this user's run at once, changes of this user's files need approval and are saved first",
        "run opsagent as root for what only root may do, or give this user a NOPASSWD entry",
    ),
    "no sudo": (
        "no sudo: what only root may do fails at once and says so; reads of this user's run at once, changes of this "
        "user's files need approval and are saved first",
        "run opsagent as root for what only root may do",
    ),
}
"""What each answer of `guard.hands.privilege` means: what runs, what needs what, and the way to more."""


def _privileges(guard: execution.Guard) -> Iterator[Check]:
    """What this user may do, and what becomes of the rest."""
    from guard.hands import privilege

    found = privilege.privilege()
    yield Check("privileges", OK, *_MEANING[found])


def _hooks(guard: execution.Guard) -> Iterator[Check]:
    """Agent hosts whose settings are in this home: whether their commands come past the guard."""
    for host, name in HOSTS.items():
        path = os.path.expanduser(name)
        try:
            with open(path, "rb") as file:
                text = file.read(MOST_SETTINGS_BYTES).decode("utf-8", "replace")
        except OSError:
            continue  # that host is not used here
        if f"hook {host}" in text:
            yield Check(f"hook {host}", OK, f"{name} asks opsx before each tool")
        else:
            yield Check(
                f"hook {host}",
                OK,
                f"{name} has no hook of opsx: its commands are not guarded",
                f"opsagent install {host} --hook",
            )


def _brains(guard: execution.Guard, *, online: bool) -> Iterator[Check]:
    from agent.brains import choice
    from agent.brains.making import Maker
    from cli import brains_config

    known = brains_config.load(guard.redactor.text)
    links = choice.chain(known, os.environ, redact=guard.redactor.text)
    if links == (RUNBOOKS,):
        yield Check(
            "brains",
            OK,
            "no model is set up; the runbooks answer",
            "for a model: OPENAI_API_KEY, OPENAI_BASE_URL or ANTHROPIC_API_KEY, or [brains] (docs/brains.md)",
        )
        return
    yield from check_brains(links, Maker(os.environ, guard.redactor), call=online)


PARTS: dict[str, Part] = {
    "program": _program,
    "records": _state,
    "configuration": _configuration,
    "secrets": _secrets,
    "sandbox": _sandbox,
    "privileges": _privileges,
    "hooks": _hooks,
}
