"""A real terminal emulator for tests: one program in a tmux of its own, its keys, its screen and its scrollback."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT_S = 60.0
"""A test that waits longer than this has failed; nothing measures time by it."""
PASSED = ("PATH", "HOME", "OPSAGENT_HOME", "LC_ALL", "TMPDIR")
CODE = "import sys; sys.path.insert(0, {root!r}); from cli.opsagent import main; sys.exit(main(sys.argv[1:]))"


def opsagent(*arguments):
    """The program as this interpreter runs it, without the launcher's set-up."""
    return [sys.executable, "-c", CODE.format(root=str(ROOT)), *arguments]


class Tmux:
    """A window with a program in it. `close` ends all of it."""

    def __init__(self, argv, *, cwd, columns=80, rows=24, environ=()):
        # Not in the test's own folder: the name of a socket has at most 107 bytes.
        self._folder = tempfile.TemporaryDirectory(prefix="tmux-")
        self._socket = os.path.join(self._folder.name, "s")
        settings = os.path.join(self._folder.name, "settings")
        # tmux runs a line with the user's login shell, which for an account like nobody is nologin.
        Path(settings).write_text("set-option -g default-shell /bin/sh\nset-option -g history-limit 100000\n")
        self._status = os.path.join(self._folder.name, "status")
        kept = {name: os.environ[name] for name in PASSED if name in os.environ} | dict(environ)
        words = ["env", "-i", *(f"{name}={value}" for name, value in kept.items()), "TERM=screen-256color", *argv]
        line = f"{shlex.join(words)}; echo $? > {shlex.quote(self._status)}; exec sleep 600"
        self._call(
            *("-f", settings, "new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", str(cwd), line),
        )

    def _call(self, *words, input=None):
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words],
            capture_output=True,
            text=True,
            input=input,
            check=False,
            timeout=LIMIT_S,
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def keys(self, *names):
        """Presses keys by tmux's names: `Enter`, `Escape`, `C-c`, `PageDown`."""
        self._call("send-keys", *names)

    def type(self, text):
        """Types a text, letter by letter."""
        self._call("send-keys", "-l", "--", text)

    def paste(self, text):
        """Pastes a text in brackets, as terminals do."""
        self._call("load-buffer", "-", input=text)
        self._call("paste-buffer", "-p")

    def resize(self, columns, rows):
        self._call("resize-window", "-x", str(columns), "-y", str(rows))

    def screen(self):
        """What is on the screen now, row by row."""
        return self._call("capture-pane", "-p").rstrip("\n")

    def everything(self):
        """The scrollback and the screen."""
        return self._call("capture-pane", "-p", "-S", "-").rstrip("\n")

    def wait_for(self, *texts, gone=()):
        """Waits until all texts are on the screen and none of `gone` is; returns the screen."""
        return self.wait_until(
            lambda shown: all(text in shown for text in texts) and not any(text in shown for text in gone), texts
        )

    def wait_until(self, is_so, what=""):
        """Waits until the screen is as wanted, and returns it."""
        end = time.monotonic() + LIMIT_S
        while not is_so(shown := self.screen()):
            assert time.monotonic() < end, f"{what!r} never came; the screen:\n{shown}"
            time.sleep(0.03)
        return shown

    def exit_code(self):
        """Waits for the program's end."""
        end = time.monotonic() + LIMIT_S
        while not os.path.exists(self._status) or not (text := Path(self._status).read_text().strip()):
            assert time.monotonic() < end, f"it never ended; the screen:\n{self.screen()}"
            time.sleep(0.03)
        return int(text)

    def pid(self):
        """Of the program: the only child of the window's shell."""
        shell = self._call("display-message", "-p", "#{pane_pid}").strip()
        return int(Path(f"/proc/{shell}/task/{shell}/children").read_text().split()[0])

    def hang_up(self):
        """Takes the terminal away, as a closed window or a broken line does."""
        self._call("kill-server")

    def close(self):
        subprocess.run(["tmux", "-S", self._socket, "kill-server"], capture_output=True, check=False, timeout=LIMIT_S)
        self._folder.cleanup()
