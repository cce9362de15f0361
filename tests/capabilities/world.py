"""A guard whose target runs plain bash, so that tools can be tested without what this kernel enforces."""

from __future__ import annotations

import subprocess

import execution
from capabilities.call import Call
from capabilities.registry import Registry
from guard.clock import RandomIds
from guard.hands.liveness import ProcLiveness
from guard.ledger.store import open_ledger
from guard.redact import Redactor
from guard.types import Captured, Enforcement, Policy
from tests.fakes import FakeResult, FakeTarget, FixedClock


class PlainTarget(FakeTarget):
    """Runs the command with bash; prepared results come first."""

    def run(self, command, *, on_output=None, **options):
        if self.results:
            return super().run(command, on_output=on_output, **options)
        self.asked.append((command, options))
        done = subprocess.run(["/bin/bash", "-c", command], cwd=options["cwd"], capture_output=True)
        for name in ("stdout", "stderr"):
            data = getattr(done, name)
            # In pieces that divide lines and characters, as a pipe does.
            for at in range(0, len(data), 1000) if on_output else ():
                on_output(name, data[at : at + 1000])
        return FakeResult(
            exit_code=done.returncode,
            stdout=Captured(done.stdout.decode("utf-8", "replace")[:30_000], len(done.stdout)),
            stderr=Captured(done.stderr.decode("utf-8", "replace"), len(done.stderr)),
        )


def guard_in(tmp_path, *results, secrets=(), enforcement: Enforcement | None = None, policy: Policy | None = None):
    """A guard with its state below tmp_path."""
    redactor, clock = Redactor(secrets), FixedClock()
    ledger = open_ledger(
        clock=clock, ids=RandomIds(), redact=redactor.text, liveness=ProcLiveness(), path=str(tmp_path / "state")
    )
    target = PlainTarget(*results, **({"enforcement": enforcement} if enforcement else {}))
    return execution.Guard(target, ledger, redactor, clock, policy or Policy())


def call_in(tmp_path, **more) -> Call:
    """An agent's call from tmp_path."""
    return Call(str(tmp_path), "mcp", client="tests 7", call_id="toolu_1", session="c-1", **more)


def asked(tool, **arguments):
    """What the tool answers, through the registry's checks."""
    return Registry([tool]).call(tool.name, arguments)
