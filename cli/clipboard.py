"""A text for the clipboard: by the desktop's own tool where there is a desktop, else by the terminal (OSC 52)."""

from __future__ import annotations

import base64
import shutil
import subprocess
from typing import TYPE_CHECKING

from guard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_BYTES = 100_000
"""What terminals take in one sequence at least (xterm and tmux allow about as much)."""
TOOL_S = 5.0


def tool(
    environ: Mapping[str, str], which: Callable[[str], str | None] = shutil.which, platform: str = ""
) -> tuple[str, ...]:
    """The program that takes a text on its standard input; () where the terminal has to do it.

    Over SSH the clipboard that the person means is that of the machine that the terminal runs on.
    """
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return ()
    if platform == "darwin":
        return ("pbcopy",) if which("pbcopy") else ()
    if environ.get("WAYLAND_DISPLAY") and which("wl-copy"):
        return ("wl-copy",)
    if environ.get("DISPLAY") and which("xclip"):
        return ("xclip", "-selection", "clipboard")
    if environ.get("DISPLAY") and which("xsel"):
        return ("xsel", "--clipboard", "--input")
    return ()


def sequence(text: str) -> str:
    """What asks the terminal to take the text. Raises UsageError when it is too long for that."""
    data = text.encode("utf-8", "replace")
    if len(data) > MOST_BYTES:
        raise UsageError(
            f"{len(data):,} bytes are too long for the terminal's clipboard",
            not_done="nothing was copied",
            hint="/export FILE",
        )
    return f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"


def copied(text: str, environ: Mapping[str, str]) -> str:
    """Copies, and returns what has to be written to the terminal for it, or ""."""
    import sys

    argv = tool(environ, platform=sys.platform)
    if argv:
        try:
            subprocess.run(
                argv,
                input=text.encode("utf-8", "replace"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=TOOL_S,
                check=True,
            )
            return ""
        except (OSError, subprocess.SubprocessError):
            pass  # the terminal is asked instead
    return sequence(text)
