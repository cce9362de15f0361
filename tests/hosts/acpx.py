"""`opsagent acp` driven by acpx, a client of the Agent Client Protocol for the command line. Run by `make hosts`.

    .venv-test/bin/python -m tests.hosts.acpx

Prints one line a case and ends with 1 when one of them did not get what the agent should say.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.npm import Fetched, NoNpm, fetched
from tests.rpc.stories import change, kinds_in, use, written

ACPX = "acpx@0.19.1"
ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120


def said(acpx: Fetched, home: Path, *options: str, replies: tuple[dict | str, ...], words: str = "go") -> str:
    """What one call of acpx printed; the brain plays `replies`."""
    agent = f"{ROOT / 'opsagent'} acp --brain {written(home, *replies)}"
    done = subprocess.run(
        [*acpx.argv("acpx"), "--cwd", str(home), "--agent", agent, *options, "exec", words],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
        env={"PATH": os.defpath, "HOME": str(home), "OPSAGENT_HOME": str(home / "state")},
    )
    return done.stdout + done.stderr


def a_read(acpx: Fetched, home: Path) -> bool:
    out = said(acpx, home, replies=(use("bash", command="echo hello"), "It says hello."))
    return "It says hello." in out


def permission_denied(acpx: Fetched, home: Path) -> bool:
    said(acpx, home, "--deny-all", replies=(*change("touch made"), "left"))
    return not (home / "made").exists() and "approved" not in kinds_in(home)


def permission_granted(acpx: Fetched, home: Path) -> bool:
    said(acpx, home, "--approve-all", replies=(*change("touch made"), "done"))
    return (home / "made").exists() and "approved" in kinds_in(home)


def command_answered(acpx: Fetched, home: Path) -> bool:
    return "none" in said(acpx, home, replies=("x",), words="/pending")


CASES: tuple[Callable[[Fetched, Path], bool], ...] = (a_read, permission_denied, permission_granted, command_answered)


def main() -> int:
    """All cases, one after the other."""
    try:
        acpx = fetched(ACPX)
    except NoNpm as error:
        sys.stderr.write(f"acpx: {error}\n")
        return 1
    good = True
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="opsagent-acpx-") as folder:
            right = case(acpx, Path(folder))
        sys.stdout.write(f"acpx: {case.__name__.replace('_', ' ')}: {'ok' if right else 'WRONG'}\n")
        sys.stdout.flush()
        good = good and right
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
