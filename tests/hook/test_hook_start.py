"""A read costs the host next to nothing: what the hook loads, and that it leaves no trace but one note."""

from __future__ import annotations

import json
import os

import pytest

from tests.hook.calls import frame_bytes, hook
from tests.test_architecture import loaded_by, slow_ones, within

FEED = "import os\nr, w = os.pipe()\nos.write(w, {frame!r})\nos.close(w)\nos.dup2(r, 0)\n"


def loaded(tmp_path, host: str, frame: bytes) -> set[str]:
    return loaded_by(
        f"{FEED.format(frame=frame)}from cli.opsx import main\nassert main(['hook', {host!r}]) == 0", tmp_path
    )


@pytest.mark.parametrize("host", ["claude-code", "codex", "gemini"])
def test_read_loads_nothing_slow(tmp_path, host):
    # What the kernel enforces is measured by the first call that has a state folder.
    loaded_by("from cli.opsx import main\nmain(['exec', '--', 'ls'])", tmp_path)
    event, tool = ("BeforeTool", "run_shell_command") if host == "gemini" else ("PreToolUse", "Bash")
    frame = frame_bytes("ls -l | head -3", hook_event_name=event, tool_name=tool)
    loaded(tmp_path, host, frame)
    modules = loaded(tmp_path, host, frame)
    assert "guard.judge.shell.grammar" in modules
    assert slow_ones(modules) == set()
    wings = ("guard.hands", "guard.redact", "guard.render", "execution", "capabilities", "tomllib", "contextlib")
    assert not any(within(name, *wings) for name in modules)


def test_hook_takes_no_lock_and_writes_nothing_into_the_log(tmp_path):
    import fcntl

    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # somebody else holds it for as long as they like
        for command in ("ls", "rm -rf /srv/x", "systemctl restart nginx"):
            done = hook(frame_bytes(command))
            assert done.returncode == 0 and json.loads(done.stdout)
    assert set(os.listdir(state)) <= {"lock", "enforcement"}
