"""How long one hook call takes, beside other guards' hooks, as ratios to `python -c pass` in the same run.

    .venv/bin/python benchmarks/hook.py [ROUNDS [FOLDER]]

Fetches nah (pip) and cc-safety-net (npm) into FOLDER, a temporary one by default; what cannot be fetched is said and
left out. Each round runs every hook once with every frame, in turn, so that a slow machine hits all alike. The
target for ours is at most 3 times the bare interpreter; nothing here fails, it prints.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = str(ROOT / ".venv/bin/python")
COMMANDS = {
    "a read": "ls",
    "a longer read": "kubectl -n prod get pods | grep -v Running | head -20",
    "a change": "systemctl restart nginx",
    "irreversible": "rm -rf /srv/data",
}


def frame(command: str) -> bytes:
    """What Claude Code says before a call of its shell."""
    return json.dumps(
        {
            "session_id": "s",
            "transcript_path": "/nowhere/t.jsonl",
            "cwd": "/",
            "permission_mode": "default",
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command, "description": "a step"},
            "tool_use_id": "toolu_0",
        }
    ).encode()


def fetched(folder: Path) -> dict[str, list[str]]:
    """The other guards' hooks, by name; installs what is not there."""
    found: dict[str, list[str]] = {}
    try:
        nah = folder / "nah/bin/nah"
        if not nah.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder / "nah")], check=True, timeout=300)
            subprocess.run([str(folder / "nah/bin/pip"), "install", "-q", "nah"], check=True, timeout=300)
        found["nah"] = [str(nah), "_claude-hook"]
    except (OSError, subprocess.SubprocessError) as error:
        sys.stdout.write(f"nah is left out: {error}\n")
    try:
        script = folder / "ccs/node_modules/cc-safety-net/dist/bin/cc-safety-net.js"
        if not script.exists():
            (folder / "ccs").mkdir(exist_ok=True)
            npm = [shutil.which("npm") or "npm", "install", "--no-audit", "--no-fund", "--silent", "cc-safety-net"]
            subprocess.run([*npm, "--prefix", str(folder / "ccs")], check=True, timeout=300)
        found["cc-safety-net"] = [shutil.which("node") or "node", str(script), "hook", "--claude-code"]
    except (OSError, subprocess.SubprocessError) as error:
        sys.stdout.write(f"cc-safety-net is left out: {error}\n")
    return found


def main(rounds: int, folder: Path) -> None:
    """Prints a table: medians and ratios for each hook and frame, and what the hook said."""
    hooks = {"opsx hook": [str(ROOT / "opsx"), "hook", "claude-code"], **fetched(folder)}
    home = folder / "home"
    home.mkdir(exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "OPSAGENT_HOME": str(home / "state")}
    subprocess.run([str(ROOT / "opsx"), "exec", "--", "true"], env=environment, capture_output=True, check=False)
    floor: list[tuple[float, float]] = []
    taken: dict[tuple[str, str], list[tuple[float, float]]] = {}
    said: dict[tuple[str, str], str] = {}
    for number in range(rounds + 1):
        runs = [("", "", [PYTHON, "-c", "pass"], b"")]
        runs += [(name, kind, argv, frame(text)) for kind, text in COMMANDS.items() for name, argv in hooks.items()]
        for name, kind, argv, given in runs:
            before, used = time.perf_counter(), cpu_s()
            done = subprocess.run(argv, input=given, env=environment, cwd="/", capture_output=True, check=False)
            spent = ((time.perf_counter() - before) * 1000, (cpu_s() - used) * 1000)
            if number:  # the first round warms caches
                (taken.setdefault((name, kind), []) if name else floor).append(spent)
            if name:
                said[name, kind] = decision(done)
    base = middle(floor)
    sys.stdout.write(f"python -c pass: {base[0]:.1f} ms, {base[1]:.1f} ms of CPU\n")
    sys.stdout.write(f"{'frame':16}{'hook':16}{'ms':>7}{'ratio':>7}{'CPU ms':>8}{'ratio':>7}  says\n")
    for (name, kind), times in taken.items():
        wall, cpu = middle(times)
        ratios = f"{wall:7.1f}{wall / base[0]:7.2f}{cpu:8.1f}{cpu / base[1]:7.2f}"
        sys.stdout.write(f"{kind:16}{name:16}{ratios}  {said[name, kind]}\n")


def middle(times: list[tuple[float, float]]) -> tuple[float, float]:
    """Medians of both columns."""
    return statistics.median(wall for wall, _ in times), statistics.median(cpu for _, cpu in times)


def cpu_s() -> float:
    """CPU time of all children so far: on a busy machine it says more than the clock."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def decision(done: subprocess.CompletedProcess[bytes]) -> str:
    """The decision in an answer, in one word or two."""
    if done.returncode:
        return f"exit {done.returncode}"
    if not done.stdout.strip():
        return "nothing"
    inner = json.loads(done.stdout).get("hookSpecificOutput", {})
    return f"{inner.get('permissionDecision')}{' rewritten' if 'updatedInput' in inner else ''}"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    if len(sys.argv) > 2:
        main(count, Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory(prefix="opsagent-bench-") as temporary:
            main(count, Path(temporary))
