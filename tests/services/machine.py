"""A machine of one's own for a test: namespaces of its own in which the real programs change real states.

`python -m tests.services.machine FOLDER FAMILY STEPS` runs inside; the test sees the JSON that it prints.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
IN_PLACE = [
    "unshare",
    "--mount",
    "--net",
    "--uts",
    "--ipc",
    "--pid",
    "--fork",
    "--mount-proc",
    "--propagation",
    "private",
]


def story(folder, change, *, before="", disturb="", look="", twice=False, place="mount -t tmpfs none /mnt", alone=True):
    """What a change and its rollback did to a machine of its own.

    Args:
        folder: for the state folder and the answers.
        change: what is run as an approved change.
        before: shell text that prepares the machine.
        disturb: shell text that somebody else runs after the change.
        look: shell text that shows what else matters; `looked` has what it says before, after the change, in the end.
        twice: roll back once more in the end, instead of taking the rollback back.
        place: shell text that makes the machine's own places (mounts).
        alone: in namespaces of its own; else here, for what any user may change.
    Returns:
        The probe's answer: see `told` in `tests.services.inside`.
    """
    inside = ["bash", "-ec", f'{place}\nexec "$@"', "bash"] if alone else []
    order = {
        "change": change,
        "before": before,
        "disturb": disturb,
        "look": look,
        "twice": twice,
        "folder": str(folder),
    }
    done = subprocess.run(
        [
            *(IN_PLACE if alone else []),
            *inside,
            sys.executable,
            "-m",
            "tests.services.inside",
            json.dumps(order),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "OPSAGENT_HOME": f"{folder}/state", "HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def is_root():
    """Whether namespaces with real changes can be made here."""
    return os.geteuid() == 0


def went_back(told, *, forth="succeeded"):
    """Asserts what every family promises: changed, back to equal, and forth again.

    Args: forth: how taking the rollback back ends.
    """
    assert told["changed"] == [0, ""], told
    assert told["unsaved"] == []
    assert told["after"] != told["before"]
    assert told["now"] == told["before"], told["results"]
    assert told["status"] == "succeeded", told["results"]
    assert told["redone"] == [forth, told["after"]]
