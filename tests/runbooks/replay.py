"""Plays recorded answers to a runbook.

`python -m tests.runbooks.replay` rewrites every expected.json; read the diff like code.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from guard.types import Interference
from runbooks import runner
from runbooks.model import Answer, Where, worst_first

HERE = Path(__file__).parent
NOW_S = 1_796_100_000.0
"""2026-12-01T04:40:00Z: when the recorded answers were given."""
CASES = sorted(path.parent for path in HERE.glob("*/*/commands.json"))


class Recorded:
    """An `ask` that answers from a recording and remembers what was asked."""

    def __init__(self, answers: list[dict]) -> None:
        self.by_argv = {tuple(row["argv"]): row for row in answers}
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, argv, timeout_s):
        self.asked.append(tuple(argv))
        row = self.by_argv.get(tuple(argv))
        if row is None:
            raise AssertionError(f"the recording has no answer to {list(argv)}")
        exit_code = row.get("exit_code", 0)
        return Answer(
            exit_code,
            _text(row.get("stdout", [])),
            _text(row.get("stderr", [])),
            row.get("status", "succeeded" if exit_code == 0 else "failed"),
            f"e-{len(self.asked)}" if exit_code is not None else None,
            [Interference(*pair) for pair in row["interference"]] if "interference" in row else None,
            True,
            row.get("reason", ""),
            "2026-12-01T04:40:00.000Z",
        )


def _text(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def case_name(folder: Path) -> str:
    return f"{folder.parent.name}/{folder.name}"


def play(folder: Path) -> tuple[list[dict], list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The findings of one case as JSON, what was asked, and what the recording holds. In UTC, as the recordings are."""
    zone = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        return _play(folder)
    finally:
        os.environ.pop("TZ")
        if zone is not None:
            os.environ["TZ"] = zone
        time.tzset()


def _play(folder: Path) -> tuple[list[dict], list[tuple[str, ...]], list[tuple[str, ...]]]:
    recording = json.loads((folder / "commands.json").read_text("utf-8"))
    ask = Recorded(recording["answers"])
    where = Where(
        "web-1",
        recording.get("euid", 0),
        recording.get("now_s", NOW_S),
        recording.get("light", False),
        recording.get("words", ()),
        recording.get("numbers", ()),
        recording.get("paths", ()),
    )
    checked = runner.run([folder.parent.name], ask, where, utc=lambda: "2026-12-01T04:40:00.000Z")
    missing = [str(answer.reason) for answer in checked.answers if "the recording has no answer" in answer.reason]
    assert not missing, missing
    return [found(finding) for finding in worst_first(checked.findings)], ask.asked, list(ask.by_argv)


def found(finding) -> dict:
    """A finding without what differs from run to run."""
    limits = finding.threshold
    return {
        "severity": finding.severity,
        "id": finding.id,
        "subject": finding.subject,
        "number": finding.number,
        "unit": finding.unit,
        "threshold": limits.as_json() if limits else None,
        "en": finding.text.en,
        "zh": finding.text.zh,
        "next": finding.next,
        "needs_root": finding.needs_root,
    }


if __name__ == "__main__":
    for case in CASES:
        text = json.dumps(play(case)[0], ensure_ascii=False, indent=1) + "\n"
        (case / "expected.json").write_text(text, "utf-8")
