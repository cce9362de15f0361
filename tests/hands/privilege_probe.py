"""Runs commands with sudo as one user and prints what came of them, as JSON.

Usage: python privilege_probe.py COMMAND… (as the user, in a mount namespace with that user's sudoers).
"""

from __future__ import annotations

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from guard.hands.environment import build_environment
from guard.hands.privilege import privilege
from guard.hands.targets.local import LocalTarget


def main() -> None:
    target = LocalTarget()
    rows = []
    for command in sys.argv[1:]:
        # The limit is what a person would wait; sudo answers far below it or waits for a password for ever.
        result = target.run(command, cwd="/", profile="none", env=build_environment(source={}).env, timeout_s=20)
        rows.append([result.exit_code, result.stdout.text, result.stderr.text, result.timed_out])
    print(json.dumps({"privilege": privilege(), "rows": rows}))


if __name__ == "__main__":
    main()
