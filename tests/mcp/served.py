"""Starts the server the way `opsagent mcp` does, with shorter waits.

`served.py HANDLE_AFTER_S PROGRESS_EVERY_S [host] [share] [edits]`
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cli import surroundings  # noqa: E402
from execution import open_guard  # noqa: E402
from guard.clock import RandomIds  # noqa: E402
from mcp_server import Options, serve  # noqa: E402

if __name__ == "__main__":
    guard = open_guard(surroundings.policy(), outputs_folder=surroundings.outputs_folder())
    guard = replace(guard, outputs_folder=None)
    raise SystemExit(
        serve(
            guard,
            version="0",
            cwd=surroundings.cwd(),
            session=RandomIds().new("c"),
            options=Options(
                host_counts="host" in sys.argv[3:],
                shared_outputs=str(Path(guard.hidden[0]) / "outputs") if "share" in sys.argv[3:] else "",
                edits="edits" in sys.argv[3:],
                handle_after_s=float(sys.argv[1]),
                progress_every_s=float(sys.argv[2]),
            ),
        )
    )
