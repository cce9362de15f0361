"""`opsagent` without a question: the conversation on this terminal."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
from typing import TYPE_CHECKING

from agent.repl.opening import way_on
from agent.repl.world import Opened
from cli import surroundings
from cli.report import as_typed, write
from guard.types import Actor

if TYPE_CHECKING:
    from collections.abc import Mapping

    import execution
    from agent.repl.app import Repl
    from agent.repl.plain import Plain
    from agent.repl.world import World
    from agent.sessions.store import Sessions
    from cli.options import Parsed
    from dialogue.confirm import Confirm

SHELL = "repl"


def main(parsed: Parsed) -> int:
    """Opens the conversation that the arguments name and holds it. Returns the exit code."""
    world = TerminalWorld(read_only=parsed.flag("read-only"))
    resume = parsed.value("resume")
    # A person is shown what they go on with, and asked where it differs from what they have here.
    opened = world.open(brain=parsed.value("brain"), model=parsed.value("model"), resume="" if world.person else resume)
    first = f"/resume {resume}" if resume and world.person else ""
    if is_plain(parsed.flag("plain"), os.environ):
        from agent.repl.plain import Plain

        world.drawn.set()
        shell: Plain | Repl = Plain(world, opened, _line_confirm(world), sys.stdin, sys.stdout, first=first)
    else:
        from agent.repl.app import Repl
        from cli.clipboard import copied

        shell = Repl(world, opened, copy=lambda text: copied(text, os.environ), first=first)
        shell.app.after_render += lambda app: world.drawn.set()
    code = shell.run()
    if world.person and (id := way_on(shell.desk.opened)):
        write(f"opsagent: to go on: {as_typed(f'opsagent --resume {id}')}\n", to_stderr=True)
    return code


def is_plain(wanted: bool, environ: Mapping[str, str]) -> bool:
    """Whether control codes stay away: asked for, no terminal, or a terminal that wants none."""
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    return wanted or not terminal or environ.get("TERM", "") in ("", "dumb") or bool(environ.get("NO_COLOR"))


class TerminalWorld:
    """`agent.repl.world.World` for this process."""

    def __init__(self, *, read_only: bool) -> None:
        from execution import open_guard

        self.guard: execution.Guard = open_guard(
            surroundings.policy(read_only=read_only),
            outputs_folder=surroundings.outputs_folder(),
            noted=surroundings.enforcement(),
        )
        self.cwd = surroundings.cwd()
        self.environ: Mapping[str, str] = os.environ
        self.person = surroundings.actor() == Actor.PERSON
        self.drawn = threading.Event()
        """Set once the first prompt stands."""
        self._printing = threading.Lock()

    @property
    def sessions(self) -> Sessions:
        """The conversations on disk."""
        from agent.sessions.store import Sessions

        return Sessions.open(self.guard.redactor)

    def open(self, *, brain: str = "", model: str = "", resume: str = "", cwd: str = "") -> Opened:
        """See `World.open`."""
        from cli.opsagent_brains import opened

        if cwd:
            self.cwd = surroundings.cwd(cwd)
        return opened(self, brain=brain, model=model, resume=resume, drawn=self.drawn)

    def brains(self) -> tuple[str, ...]:
        """Names that `/brain` takes."""
        from cli.opsagent_brains import names

        return names()

    def verb(self, program: str, argv: list[str]) -> tuple[str, int]:
        """What a verb prints, errors too, and its exit code."""
        from cli import opsagent, opsx

        run = opsx.main if program == "opsx" else opsagent.main
        said = io.StringIO()
        with self._printing, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            code = run(argv)
        return said.getvalue(), code


def _line_confirm(world: World) -> Confirm:
    """How a person is asked on plain lines; nobody, where none is there."""
    from dialogue.confirm import NobodyThere

    if not world.person:
        return NobodyThere()
    from cli.ask import TerminalConfirm

    return TerminalConfirm()
