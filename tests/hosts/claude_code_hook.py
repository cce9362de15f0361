"""The hook in a real Claude Code, driven by a scripted model: what it makes of commands, and every way to break it.

    .venv-test/bin/python -m tests.hosts.claude_code_hook

Run by `make hosts`. Every case has its counterpart without the hook, so that it is seen to make the difference. Prints
one line a case; ends with 1 when one of them is not as it should be.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from cli.hooks.install import hook_command
from tests.hosts import versions
from tests.hosts.claude_code import bash, claude
from tests.hosts.stage import ROOT, Stage, shown
from tests.model_server import Call
from tests.npm import Fetched, NoNpm, fetched


class HookStage(Stage):
    """A stage in which the host's shell has traps for `ls` and `cd`."""

    def __init__(self, folder: Path, programs: Fetched) -> None:
        super().__init__(folder, programs)
        self.sprung = folder / "sprung"
        (self.home / ".claude").mkdir()
        trap = f"touch {self.sprung}"
        (self.home / ".bashrc").write_text(f"alias ls='{trap}'\nalias cd='{trap}'\n")
        self.environ["BASH_FUNC_ls%%"] = f"() {{ {trap}; }}"

    def run(self, hook: str | None, *calls: Call) -> list[str]:
        """What the host told the model about each of its calls."""
        settings: dict[str, object] = {"permissions": {"allow": ["Bash", "Write"]}}
        if hook is not None:
            entry = {"type": "command", "command": hook, "timeout": 30}
            settings["hooks"] = {"PreToolUse": [{"matcher": "*", "hooks": [entry]}]}
        (self.home / ".claude" / "settings.json").write_text(json.dumps(settings))
        return claude(self, *calls)[1]

    def has_sprung(self) -> bool:
        """Whether a trap was sprung since the last question."""
        found = self.sprung.exists()
        self.sprung.unlink(missing_ok=True)
        return found


OURS = hook_command("claude-code", str(ROOT / "opsx"))


def reads_run_enforced(stage: HookStage) -> bool:
    without = stage.run(None, bash("ls"))
    fell_in = stage.has_sprung()
    answers = stage.run(OURS, bash("ls"), bash("cd /tmp"), bash("cd /tmp && ls -d /etc"))
    return (
        fell_in
        and "a-file" not in without[0]
        and answers[0].strip() == "a-file"
        and "/etc" in answers[2]
        and not stage.has_sprung()
    )


def exported_function_does_not_count(stage: HookStage) -> bool:
    (stage.home / ".bashrc").write_text("")
    stage.run(None, bash("ls"))
    fell_in = stage.has_sprung()
    answers = stage.run(OURS, bash("ls"))
    return fell_in and answers[0].strip() == "a-file" and not stage.has_sprung()


def runs_are_recorded(stage: HookStage) -> bool:
    return "ls" in [run["command"] for run in stage.executions()]


def writes_are_stopped(stage: HookStage) -> bool:
    outside = stage.home.parent / "outside"
    stage.run(None, bash(f"touch {outside}"))
    wrote = outside.exists()
    outside.unlink(missing_ok=True)
    answers = stage.run(OURS, bash(f"touch {outside}"), bash(f"rm -rf {stage.project}"))
    return (
        wrote
        and "no snapshot will exist" in answers[0]
        and "cannot be undone" in answers[1]
        and not outside.exists()
        and (stage.project / "a-file").exists()
    )


def own_settings_are_watched(stage: HookStage) -> bool:
    settings = stage.home / ".claude" / "settings.json"
    local = stage.project / ".claude" / "settings.local.json"
    answers = stage.run(
        OURS,
        Call("Write", {"file_path": str(local), "content": "{}"}),
        bash(f"echo '{{}}' > {settings}"),
    )
    kept = "PreToolUse" in settings.read_text() and not local.exists()
    return kept and all("settings in which the host keeps its hooks" in answer for answer in answers)


def project_writes_go_to_the_host(stage: HookStage) -> bool:
    stage.run(OURS, bash("echo hi > made"))
    made = (stage.project / "made").exists()
    config = stage.state / "config"
    config.mkdir(parents=True, exist_ok=True)
    (config / "config.toml").write_text('[hook]\nproject_writes = "ask"\n')
    answers = stage.run(OURS, bash("echo hi > made2"))
    (config / "config.toml").unlink()
    return made and "no snapshot will exist" in answers[0] and not (stage.project / "made2").exists()


def mcp_server_is_named(stage: HookStage) -> bool:
    servers = {"mcpServers": {"guard": {"command": str(ROOT / "opsagent"), "args": ["mcp"]}}}
    (stage.project / ".mcp.json").write_text(json.dumps(servers))
    answers = stage.run(OURS, bash("systemctl restart nginx"))
    (stage.project / ".mcp.json").unlink()
    return "mcp__guard__ops_exec" in answers[0]


def stopped(stage: HookStage, hook: str) -> bool:
    """Whether a harmless command does not run under this hook."""
    made = stage.project / "ran"
    answers = stage.run(hook, bash(f"touch {made}; echo hi"))
    return "hi" not in answers[0].split() and not made.exists()


def broken_copy(stage: HookStage, name: str) -> Path:
    """A checkout of its own whose environment a case may break."""
    copy = stage.home.parent / name
    copy.mkdir()
    for part in ("opsx", "launch", "cli", "guard", "core.py", "capabilities", "requirements.lock"):
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, copy / part)
    (copy / ".venv").mkdir()
    return copy


def missing_venv_denies(stage: HookStage) -> bool:
    return stopped(stage, hook_command("claude-code", str(broken_copy(stage, "no-venv") / "opsx")))


def broken_venv_denies(stage: HookStage) -> bool:
    copy = broken_copy(stage, "bad-venv")
    shutil.copy2(ROOT / ".venv" / ".ready", copy / ".venv" / ".ready")
    (copy / ".venv" / "bin").mkdir()
    python = copy / ".venv" / "bin" / "python"
    python.write_text("not a program\n")
    python.chmod(0o755)
    first = stopped(stage, hook_command("claude-code", str(copy / "opsx")))
    python.unlink()
    python.symlink_to(os.path.realpath(ROOT / ".venv" / "bin" / "python"))  # its libraries are still not there
    return first and stopped(stage, hook_command("claude-code", str(copy / "opsx")))


def hang_denies(stage: HookStage) -> bool:
    pipe = stage.home.parent / "never"
    os.mkfifo(pipe)
    keep = os.open(pipe, os.O_RDWR)
    try:
        opsx = ROOT / "opsx"
        return stopped(stage, f"{opsx} hook claude-code <{pipe} || {{ echo late >&2; exit 2; }}")
    finally:
        os.close(keep)


def kill_denies(stage: HookStage) -> bool:
    """Kills the hook while it waits for its frame, as often as it is started."""
    pipe = stage.home.parent / "never"
    if not pipe.exists():
        os.mkfifo(pipe)
    keep, ended, killed = os.open(pipe, os.O_RDWR), threading.Event(), []

    def killer() -> None:
        while not ended.is_set():
            for entry in Path("/proc").iterdir():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
                    if b"hook" in words and b"opsx" in words and os.readlink(entry / "fd" / "0") == str(pipe):
                        os.kill(int(entry.name), signal.SIGKILL)
                        killed.append(entry.name)
                except OSError:
                    continue
            time.sleep(0.05)

    thread = threading.Thread(target=killer)
    thread.start()
    try:
        return stopped(stage, f"{ROOT / 'opsx'} hook claude-code <{pipe} || exit 2") and bool(killed)
    finally:
        ended.set()
        thread.join()
        os.close(keep)


CASES: tuple[Callable[[HookStage], bool], ...] = (
    reads_run_enforced,
    exported_function_does_not_count,
    runs_are_recorded,
    writes_are_stopped,
    own_settings_are_watched,
    project_writes_go_to_the_host,
    mcp_server_is_named,
    missing_venv_denies,
    broken_venv_denies,
    hang_denies,
    kill_denies,
)


def main() -> int:
    """All cases, one after the other."""
    try:
        programs = fetched(*versions.NPM)
    except NoNpm as error:
        sys.stderr.write(f"claude-code hook: NOT RUN: {error}\n")
        return 1
    print(f"== {versions.CLAUDE_CODE}, the hook")
    good = True
    with tempfile.TemporaryDirectory(prefix="opsagent-hook-", ignore_cleanup_errors=True) as folder:
        stage = HookStage(Path(folder), programs)
        for case in CASES:
            good &= shown(case.__name__.replace("_", " "), case(stage))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
