"""The launchers as processes of their own, as a script starts them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
START = "import sys; sys.path.insert(0, {root!r}); from cli.{program} import main; sys.exit(main(sys.argv[1:]))"


def argv(program, *arguments):
    """What starts `opsagent` or `opsx` in this interpreter."""
    return [sys.executable, "-I", "-c", START.format(root=str(ROOT), program=program), *arguments]


def start(program, *arguments, **named):
    """A process with nothing on standard input unless that is said, and its outputs as text."""
    named.setdefault("cwd", "/")
    named.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(
        argv(program, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **named
    )


def call(program, *arguments, stdin=None, **named):
    """Exit code, standard output, standard error."""
    if stdin is not None:
        named["stdin"] = subprocess.PIPE
    process = start(program, *arguments, **named)
    out, err = process.communicate(stdin, timeout=120)
    return process.returncode, out, err
