"""Whatever goes wrong in the hook stops the call: exit code 2 and a sentence, never silence and never a half answer."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.hooks.frame import MAX_BYTES, frame_of, json_value
from cli.hooks.hosts import HOSTS
from cli.hooks.install import hook_command, settings_text
from guard.errors import UsageError
from tests.hook.calls import LIMIT_S, ROOT, frame_bytes, hook


def stopped(done: subprocess.CompletedProcess[bytes]) -> bool:
    return done.returncode == 2 and done.stdout == b"" and done.stderr.strip() != b""


def test_good_frame_is_answered_with_one_object_and_code_0():
    done = hook(frame_bytes("rm -rf /srv/x"))
    assert done.returncode == 0 and done.stderr == b""
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    "frame",
    [
        b"", b"{", b"[]", b"null", b"{}", b"\xff", b'"x"', frame_bytes()[:-1], frame_bytes() + b"{}",
        frame_bytes(cwd="x"),
        frame_bytes(cwd=None), frame_bytes(tool_name=7), frame_bytes(tool_input=[]), frame_bytes(tool_input={}),
        frame_bytes(tool_input={"command": ["ls"]}), frame_bytes(hook_event_name="PostToolUse"), b"[" * 100_000,
        frame_bytes().replace(b'"ls"', b"NaN"), frame_bytes().replace(b'"ls"', b"1" * 5000),
    ],
)  # fmt: skip
def test_frame_that_is_not_understood_stops_the_call(frame):
    assert stopped(hook(frame))


def test_frame_that_never_ends_is_not_kept(monkeypatch):
    from cli.hooks import frame

    blocks = 0

    def endless(fd, size):
        nonlocal blocks
        blocks += 1
        return b"x" * size

    monkeypatch.setattr(frame.os, "read", endless)
    with pytest.raises(UsageError, match="MiB"):
        frame.read_frame()
    assert blocks * 65_536 <= MAX_BYTES + 65_536


@pytest.mark.parametrize("host", ["", "claude", "cursor", "CODEX", "--help"])
def test_unknown_host_is_not_guessed(host):
    done = hook(frame_bytes(), host)
    assert b"permissionDecision" not in done.stdout
    assert stopped(done) or host == "--help"


FAULTS = {
    "a crash": "raise ZeroDivisionError('SECRET')",
    "a system exit": "raise SystemExit(0)",
    "an interrupt": "raise KeyboardInterrupt",
    "a full stack": "def f(): f()\n    f()",
    "a full memory": "raise MemoryError",
    "a sick state folder": "raise OSError(28, 'SECRET')",
}


@pytest.mark.guarantee("G-HOOK-CLOSED")
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_anywhere_stops_the_call_and_tells_no_secret(fault):
    code = f"from cli.hooks import ruling\ndef rule(*_):\n    {FAULTS[fault]}\nruling.rule = rule"
    done = hook(frame_bytes("cat SECRET"), code=code)
    assert stopped(done) and b"SECRET" not in done.stderr


def test_judge_that_cannot_load_stops_the_call():
    assert stopped(hook(frame_bytes(), code="import core\ndel core.check"))


SHORT = "import cli.opsx_hook as h\nh.SOFT_S, h.DEADLINE_S = {soft}, {hard}\n"


@pytest.mark.parametrize(
    "hang",
    [
        "import time; time.sleep(50)",
        "import fcntl, os, tempfile; a = tempfile.TemporaryFile(); r, w = os.pipe(); os.read(r, 1)",
        "while True: pass",
    ],
)
def test_hang_ends_at_the_soft_deadline_with_a_sentence(hang):
    code = (
        SHORT.format(soft=0.3, hard=50) + f"from cli.hooks import ruling\ndef rule(*_):\n    {hang}\nruling.rule = rule"
    )
    done = hook(frame_bytes(), code=code)
    assert stopped(done) and b"no answer within" in done.stderr


def test_hang_outside_of_python_ends_at_the_hard_deadline():
    code = SHORT.format(soft=50, hard=0.5) + (
        "from cli.hooks import ruling\ndef rule(*_):\n"
        "    import ctypes; ctypes.PyDLL(None).sleep(50)\nruling.rule = rule"  # holds the lock: no Python runs
    )
    done = hook(frame_bytes(), code=code)
    assert done.returncode not in (0, None) and done.stdout == b"" and done.stderr != b""


PLAIN = (
    f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{{}}from cli.opsx import main\nsys.exit(main(['hook', 'codex']))"
)


def test_frame_that_does_not_come_ends_at_the_deadline():
    read, write = os.pipe()
    try:
        code = PLAIN.format(SHORT.format(soft=0.3, hard=50))
        done = subprocess.run([sys.executable, "-c", code], stdin=read, capture_output=True, timeout=LIMIT_S)
    finally:
        os.close(read)
        os.close(write)
    assert stopped(done)


@pytest.mark.parametrize("redirect", [">/dev/full", ">&-", "<&-"])
def test_answer_that_cannot_be_written_stops_the_call(redirect):
    done = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -c "$1" {redirect}', sys.executable, PLAIN.format("")],
        input=frame_bytes("rm -rf /x"),
        capture_output=True,
        timeout=LIMIT_S,
    )
    assert stopped(done)


# -- the launcher and the line that is installed -----------------------------------------------------------------


@pytest.fixture
def checkout(tmp_path):
    """A copy of the launcher, without an environment."""
    copy = tmp_path / "checkout"
    shutil.copytree(ROOT / "launch", copy / "launch", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("opsx", "requirements.lock"):
        shutil.copy2(ROOT / name, copy / name)
    return copy


def installed(checkout: Path, host: str = "claude-code", stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """What a host gets from the installed line."""
    return subprocess.run(
        ["/bin/sh", "-c", hook_command(host, str(checkout / "opsx"))],
        input=stdin or frame_bytes(),
        capture_output=True,
        timeout=LIMIT_S,
        env={"PATH": os.defpath, "HOME": str(checkout)},
    )


@pytest.mark.parametrize("host", HOSTS)
def test_hook_never_sets_itself_up(checkout, host):
    (checkout / "launch" / "bootstrap.py").write_text("import pathlib; pathlib.Path(__file__).with_name('ran').touch()")
    done = installed(checkout, host)
    assert stopped(done) and b"opsx --version" in done.stderr
    assert not (checkout / "launch" / "ran").exists() and not (checkout / ".venv").exists()


def venv_with(checkout: Path, python: str) -> None:
    (checkout / ".venv" / "bin").mkdir(parents=True)
    file = checkout / ".venv" / "bin" / "python"
    file.write_text(python)
    file.chmod(0o755)
    (checkout / ".venv" / ".ready").write_text("opsagent environment 1\n3.0\nlib\n\nanother lock")


@pytest.mark.guarantee("G-HOOK-CLOSED")
@pytest.mark.parametrize(
    "python",
    [
        "not a program\n",
        "#!/nowhere/python\n",
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\nkill -KILL $$\n",
        "#!/bin/sh\nkill -SEGV $$\n",
        "#!/bin/sh\nexit 3\n",
    ],
)
@pytest.mark.guarantee("G-HOOK-CLOSED")
@pytest.mark.parametrize("host", HOSTS)
def test_broken_environment_stops_the_call_with_words(checkout, python, host):
    venv_with(checkout, python)
    assert stopped(installed(checkout, host))


def test_environment_of_another_lock_stops_the_call(checkout):
    venv_with(checkout, "")
    (checkout / ".venv" / "bin" / "python").unlink()
    (checkout / ".venv" / "bin" / "python").symlink_to(sys.executable)
    assert stopped(installed(checkout))


def test_half_an_answer_is_stopped_by_its_exit_code(checkout):
    venv_with(checkout, '#!/bin/sh\nprintf \'{"hookSpecificOutput": {"permissionDecision": "al\'\nkill -KILL $$\n')
    done = installed(checkout)
    assert done.returncode == 2 and done.stderr.strip() != b""


def test_launcher_that_is_gone_stops_the_call(tmp_path):
    assert stopped(installed(tmp_path))


def test_launcher_limits_the_time_before_the_program_does(checkout):
    """Before the hook's own deadline stands, a signal that nobody handles ends it."""
    source = (checkout / "launch" / "start.py").read_text()
    script = source.replace("HOOK_DEADLINE_S = 5", "HOOK_DEADLINE_S = 1").replace(
        "    if os.geteuid() == 0:", "    import time\n    time.sleep(50)\n    if os.geteuid() == 0:", 1
    )
    assert script.count("time.sleep(50)") == 1
    (checkout / "launch" / "start.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(checkout / "launch" / "start.py"), "opsx", "venv", "hook", "codex"],
        input=b"",
        capture_output=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == -signal.SIGALRM


@pytest.mark.parametrize("host", HOSTS)
def test_printed_settings_are_in_the_hosts_form_and_hold_the_installed_line(host):
    opsx = "/opt/it's here/opsx"
    text = settings_text(host, opsx)
    if host == "codex":
        entry = tomllib.loads(text)["hooks"]["PreToolUse"][0]["hooks"][0]
    else:
        entry = json.loads(text)["hooks"][HOSTS[host].event][0]["hooks"][0]
    assert entry["command"] == hook_command(host, opsx) and entry["type"] == "command"
    # Longer than the hook's own deadline, in the host's unit.
    assert entry["timeout"] == (30_000 if host == "gemini" else 30)


# -- JSON --------------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON, st.booleans())
def test_c_scanner_reads_what_json_reads(value, ascii_only):
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert json_value(text) == json.loads(text)


@given(st.binary(max_size=60))
def test_no_bytes_are_taken_for_a_call_unless_json_takes_them(data):
    try:
        frame_of(data)
    except UsageError:
        return
    assert isinstance(json.loads(data), dict)


@pytest.mark.parametrize(
    "text", ["{", '{"a" 1}', "{'a': 1}", '{\n  // mine\n  "a": 1\n}', '"\\x"', '"\\ud8"', "[1,]", "nul"]
)
def test_malformed_json_is_an_error_of_ours_where_nothing_loaded_the_json_package(text):
    """As in the hook's own process: there the C scanner has no exception to raise."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nfrom cli.hooks.frame import json_value\n"
        "from guard.errors import UsageError\nassert 'json' not in sys.modules\n"
        f"try: json_value({text!r})\nexcept UsageError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=LIMIT_S)
    assert done.stdout == "refused\n", done.stderr


def test_settings_with_comments_do_not_stop_the_hook(tmp_path):
    """Gemini CLI takes comments, and the hook reads its settings to find our server there."""
    settings = tmp_path / "home" / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True)
    server = '{"mcpServers": {"ours": {"command": "/x/opsagent", "args": ["mcp"]}} /* opsagent */}\n// end'
    settings.write_text(server)
    code = f"import os; os.environ['HOME'] = {str(settings.parent.parent)!r}"
    frame = frame_bytes("touch /srv/x", hook_event_name="BeforeTool", tool_name="run_shell_command")
    done = hook(frame, "gemini", code=code)
    assert done.returncode == 0 and b"mcp_ours_ops_exec" in done.stdout, done.stderr
