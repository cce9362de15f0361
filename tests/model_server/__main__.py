"""`python -m tests.model_server SCRIPT.json [--port N]`: serves a script until it is interrupted."""

from __future__ import annotations

import argparse
import sys
import threading
from pathlib import Path

from tests.model_server import ModelServer
from tests.model_server.script import read_script


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("script", type=Path)
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    with ModelServer(*read_script(options.script), port=options.port) as server:
        sys.stdout.write(f"OPENAI_BASE_URL={server.openai_url} ANTHROPIC_BASE_URL={server.anthropic_url}\n")
        sys.stdout.flush()
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
