"""What hosts really say to our MCP server: recorded by `make hosts RECORD=1`, replayed by the suite.

One file a host in `recorded/`: a head with the host's package and the day, then the host's lines with what our server
answered in short. Paths of the stage stand as `/stage`.
"""

from __future__ import annotations

import datetime
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.hosts.stage import Stage

FOLDER = Path(__file__).parent / "recorded"
STAGE = "/stage"
_VOLATILE = ("progressToken", "claudecode/toolUseId")


@dataclass(frozen=True)
class Recording:
    """One host's lines."""

    host: str
    package: str
    day: datetime.date
    rows: list[dict[str, Any]]
    """`{"send": message}` with `{"answer": outcome}` for requests."""

    def age(self, today: datetime.date) -> str:
        """A sentence for the end of a test run."""
        days = (today - self.day).days
        return f"frames of {self.package} were recorded {days} {'day' if days == 1 else 'days'} ago, on {self.day}"


def recordings() -> list[Recording]:
    """All of them."""
    found = []
    for path in sorted(FOLDER.glob("*.jsonl")):
        head, *rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        day = datetime.date.fromisoformat(head["day"])
        found.append(Recording(path.stem, head["package"], day, rows))
    return found


def outcome(message: dict[str, Any]) -> Any:
    """What is the same in every run of one answer of ours: its kind, and for a tool what the guard decided."""
    if "error" in message:
        return {"error": message["error"]["code"]}
    result = message["result"]
    if "tools" in result:
        return {"tools": sorted(tool["name"] for tool in result["tools"])}
    if "protocolVersion" in result:
        return {"protocolVersion": result["protocolVersion"]}
    if "content" not in result:
        return {"fields": sorted(result)}
    told = result.get("structuredContent") or {}
    kept = {name: told[name] for name in ("level", "decision", "status", "stdout") if name in told}
    return {"isError": result.get("isError", False), **kept}


def keep_if_asked(host: str, package: str, stage: Stage) -> None:
    """Writes the lines of the first connection of this stage when `RECORD` is set."""
    if not os.environ.get("RECORD"):
        return
    rows: list[dict[str, Any]] = []
    asked: dict[Any, dict[str, Any]] = {}
    for text in stage.wire.read_text("utf-8").splitlines():
        line = json.loads(text)
        try:
            message = json.loads(line["line"].replace(str(stage.folder), STAGE))
        except ValueError:
            continue
        if line["dir"] == ">":
            if message.get("method") in ("initialize", "server/discover") and rows and _has_calls(rows):
                break  # the next connection
            row = {"send": message}
            rows.append(row)
            if "id" in message and "method" in message:
                asked[message["id"]] = row
        elif message.get("id") in asked and "method" not in message:
            asked.pop(message["id"])["answer"] = outcome(message)
    FOLDER.mkdir(exist_ok=True)
    head = {"format": 1, "host": host, "package": package, "day": datetime.date.today().isoformat()}
    lines = [json.dumps(row, ensure_ascii=False) for row in (head, *rows)]
    (FOLDER / f"{host}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    print(f"recorded {len(rows)} lines of {package}")


def _has_calls(rows: list[dict[str, Any]]) -> bool:
    return any(row["send"].get("method") == "tools/call" for row in rows)
