"""`opsagent acp` as an editor on the official npm SDK sees it, every frame held against its schema; part of CI.

    .venv-test/bin/python -m tests.hosts.acp_sdk

Prints one line a case and ends with 1 when one of them did not get what the agent should say.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.npm import Fetched, NoNpm, fetched
from tests.rpc.stories import change, kinds_in, use, written

SDK = "@agentclientprotocol/sdk@2.4.0"
ROOT = Path(__file__).resolve().parents[2]
CLIENT = Path(__file__).with_name("acp_client.mjs")
ABLE = {"elicitation": {"form": {}}, "session": {"notices": {}}, "fs": {"readTextFile": False, "writeTextFile": True}}
OPEN = [["initialize"], ["new"]]
PATIENCE_S = 120

Steps = dict[str, list[Any]]


class Stage:
    """A home of its own, an agent with a scripted brain, and an editor."""

    def __init__(self, sdk: Fetched, folder: Path) -> None:
        self.sdk, self.home = sdk, folder
        self.package = sdk.folder / "node_modules" / "@agentclientprotocol" / "sdk"
        self.schema = json.loads((self.package / "schema" / "v1" / "schema.json").read_text("utf-8"))
        self.faults: list[str] = []

    def play(self, steps: list[list[str]], *replies: dict[str, Any] | str, **more: object) -> Steps:
        """What came of each step, by its name, in order."""
        frames, sent = self.home / "frames.jsonl", self.home / "sent.jsonl"
        argv = [str(ROOT / "opsagent"), "acp", "--brain", written(self.home, *replies)]
        play = {
            "sdk": str(self.package / "dist" / "v1" / "stable" / "acp.js"),
            "command": argv[0],
            "args": argv[1:],
            "cwd": str(self.home),
            "log": str(frames),
            "sent": str(sent),
            "able": ABLE,
            "permission": "reject",
            "steps": steps,
            **more,
        }
        path = self.home / "play.json"
        path.write_text(json.dumps(play))
        node = self.sdk.folder / "node_modules" / ".bin" / "node"
        done = subprocess.run(
            [str(node), str(CLIENT), str(path)],
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            env={"PATH": os.defpath, "HOME": str(self.home), "OPSAGENT_HOME": str(self.home / "state")},
        )
        if done.returncode:
            raise AssertionError(done.stderr[-2000:])
        self.faults += faults_in(frames.read_text(), sent.read_text(), self.schema)
        frames.unlink()
        sent.unlink()
        found: Steps = {}
        for row in map(json.loads, done.stdout.splitlines()):
            found.setdefault(row["what"], []).append(row)
        return found


def permission_rejected(stage: Stage) -> bool:
    got = stage.play([*OPEN, ["prompt", "make it"]], *change("touch made"), "left")
    asked = [one["asked"] for one in got["prompt"][0]["updates"] if "asked" in one]
    return (
        len(asked) == 1
        and asked[0]["toolCall"]["title"].endswith("touch made")
        and not (stage.home / "made").exists()
        and "denied" in kinds_in(stage.home)
    )


def permission_granted_and_executed(stage: Stage) -> bool:
    got = stage.play([*OPEN, ["prompt", "make it"]], *change("touch made"), "done", permission="allow")
    (turn,) = got["prompt"]
    said = "".join(one["content"]["text"] for one in turn["updates"] if one.get("sessionUpdate", "").endswith("_chunk"))
    return turn["result"]["stopReason"] == "end_turn" and said == "done" and (stage.home / "made").exists()


def difference_shown(stage: Stage) -> bool:
    (stage.home / "conf").write_text("a\nb\nc\n")
    edit = {"path": "conf", "old": "b", "new": "B"}
    replies = [use("edit", **edit), {**change("")[1]}, use("edit", **edit), "done"]
    got = stage.play([*OPEN, ["prompt", "edit it"]], *replies, permission="allow")
    (asked,) = [one["asked"] for one in got["prompt"][0]["updates"] if "asked" in one]
    diff = asked["toolCall"]["content"][0]
    return (
        (diff["type"], diff["oldText"], diff["newText"]) == ("diff", "a\nb\nc", "a\nB\nc")
        and diff["path"] == str(stage.home / "conf")
        and (stage.home / "conf").read_text() == "a\nB\nc\n"
    )


def cancelled_in_the_middle(stage: Stage) -> bool:
    got = stage.play([*OPEN, ["cancel", "wait"], ["prompt", "and now?"]], use("bash", command="sleep 300"), "here")
    return (
        got["cancel"][0]["result"]["stopReason"] == "cancelled"
        and got["prompt"][0]["result"]["stopReason"] == "end_turn"
        and got["exit"][0]["result"] == 0
    )


def loaded_in_a_new_process(stage: Stage) -> bool:
    first = stage.play([*OPEN, ["prompt", "remember"]], use("bash", command="echo hello"), "42")
    session = first["new"][0]["result"]["sessionId"]
    steps = [["initialize"], ["list"], ["load"], ["prompt", "which?"]]
    got = stage.play(steps, "it was 42", session=session)
    told = [one["sessionUpdate"] for one in got["load"][0]["updates"]]
    return (
        [one["sessionId"] for one in got["list"][0]["result"]["sessions"]] == [session]
        and told[:4] == ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]
        and got["prompt"][0]["result"]["stopReason"] == "end_turn"
    )


def read_only_chosen(stage: Stage) -> bool:
    steps = [*OPEN, ["configure", "read-only"], ["prompt", "make it"]]
    got = stage.play(steps, use("ops_exec", command="touch made"), "refused", permission="allow")
    return (
        got["configure"][0]["result"]["configOptions"][0]["currentValue"] == "read-only"
        and got["prompt"][0]["result"]["_meta"]["opsagent"]["exitCode"] == 4
        and not (stage.home / "made").exists()
    )


def person_asked_with_a_form(stage: Stage) -> bool:
    question = use("ask_user", question="which one?", options=["a", "b"])
    got = stage.play([*OPEN, ["prompt", "ask"]], question, "fine")
    (asked,) = [one["asked"] for one in got["prompt"][0]["updates"] if "asked" in one]
    return asked["mode"] == "form" and got["prompt"][0]["result"]["stopReason"] == "end_turn"


def several_things_planned(stage: Stage) -> bool:
    calls = [{"tool": "bash", "arguments": {"command": f"echo {word}"}} for word in ("one", "two")]
    got = stage.play([*OPEN, ["prompt", "/executions"], ["prompt", "look"]], {"calls": calls}, "done")
    plans = [one for one in got["prompt"][1]["updates"] if one.get("sessionUpdate") == "plan"]
    return {entry["status"] for entry in plans[-1]["entries"]} == {"completed"}


def nonsense_refused(stage: Stage) -> bool:
    got = stage.play([["initialize"], ["load"], ["configure", "lab"]], "x", session="c-none")
    return [got[what][0]["result"]["error"]["code"] for what in ("load", "configure")] == [-32002, -32002]


CASES: tuple[Callable[[Stage], bool], ...] = (
    permission_rejected,
    permission_granted_and_executed,
    difference_shown,
    cancelled_in_the_middle,
    loaded_in_a_new_process,
    read_only_chosen,
    person_asked_with_a_form,
    several_things_planned,
    nonsense_refused,
)


KINDS = ("Request", "Response", "Notification")


def faults_in(frames: str, sent: str, schema: dict[str, Any]) -> list[str]:
    """What of our frames is not as the schema has it. `sent` is what they answer."""
    definitions = schema["$defs"]
    named = {
        (one["x-method"], kind): name
        for name, one in definitions.items()
        for kind in KINDS
        if "x-method" in one and name.endswith(kind)
    }
    asked = {one["id"]: one["method"] for one in map(json.loads, sent.splitlines()) if "method" in one and "id" in one}
    found = []
    for frame in map(json.loads, frames.splitlines()):
        if set(frame) - {"jsonrpc", "id", "method", "params", "result", "error"} or frame["jsonrpc"] != "2.0":
            found.append(f"a frame with {sorted(frame)}")
        if frame.get("method") == "$/cancel_request":
            name, value = "CancelRequestNotification", frame["params"]
        elif "method" in frame:
            name, value = named[frame["method"], "Request" if "id" in frame else "Notification"], frame["params"]
        elif "error" in frame:
            name, value = "Error", frame["error"]
        else:
            name, value = named[asked[frame["id"]], "Response"], frame["result"]
        checked = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions})
        found += [f"{name}: {fault.json_path}: {fault.message[:200]}" for fault in checked.iter_errors(value)]
    return found


def main() -> int:
    """All cases, one after the other."""
    try:
        sdk = fetched(SDK)
    except NoNpm as error:
        sys.stderr.write(f"acp sdk: {error}\n")
        return 1
    good = True
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="opsagent-acp-") as folder:
            stage = Stage(sdk, Path(folder))
            right, faults = case(stage), stage.faults
        name = case.__name__.replace("_", " ")
        sys.stdout.write(f"acp sdk: {name}: {'ok' if right and not faults else 'WRONG'}\n")
        sys.stdout.write("".join(f"  {fault}\n" for fault in faults[:10]))
        sys.stdout.flush()
        good = good and right and not faults
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
