"""Where the state folder and the user's configuration are. Reads the environment and the passwd file, opens nothing.

On the hot path (`opsx check` looks for what the kernel enforces), so it imports almost nothing.
"""

from __future__ import annotations

import os
import pwd
import sys

from guard.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1
"""The number of the formats that this version writes (docs/formats.md)."""

HOME_VARIABLE = "OPSAGENT_HOME"

FROZEN_NAME = "frozen"
"""A file of this name in the state folder stops everything above R0."""

_NOTE_BYTES = 4096


def home_of_user() -> str:
    """The home folder that the passwd entry of the effective user names. HOME and XDG variables do not count.

    Raises:
        StateError: no passwd entry, or its home is not an existing folder.
    """
    uid = os.geteuid()
    try:
        home = pwd.getpwuid(uid).pw_dir
    except KeyError:
        raise StateError(
            f"user {uid} has no passwd entry, so there is no home to keep state below",
            not_done="nothing was recorded",
            hint=f"name a folder: {HOME_VARIABLE}=/path opsx …",
        ) from None
    if not home.startswith("/") or not os.path.isdir(home):
        raise StateError(
            f"the home folder of user {uid} does not exist: {home or '(empty)'}",
            not_done="nothing was recorded",
            hint=f"create it, or name a folder: {HOME_VARIABLE}=/path opsx …",
        )
    return home


def state_path(environ: Mapping[str, str] | None = None, *, platform: str = sys.platform) -> str:
    """Where the state folder is: `$OPSAGENT_HOME`, else the platform's place below the passwd entry's home.

    Raises:
        StateError: no passwd entry, no home, or `$OPSAGENT_HOME` is not an absolute path.
    """
    named = (os.environ if environ is None else environ).get(HOME_VARIABLE, "")
    if named:
        if not named.startswith("/"):
            raise StateError(
                f"{HOME_VARIABLE} is not an absolute path: {named}",
                not_done="nothing was recorded",
                hint=f"{HOME_VARIABLE}=/absolute/path",
            )
        return os.path.normpath(named)
    below = "Library/Application Support/opsagent" if platform == "darwin" else ".local/state/opsagent"
    return os.path.join(home_of_user(), below)


def config_path(environ: Mapping[str, str] | None = None, *, platform: str = sys.platform) -> str:
    """The user's `config.toml`, by the same rule as `state_path`. It need not exist. Raises StateError likewise."""
    if (os.environ if environ is None else environ).get(HOME_VARIABLE, ""):
        return os.path.join(state_path(environ, platform=platform), "config", "config.toml")
    below = "Library/Application Support/opsagent/config" if platform == "darwin" else ".config/opsagent"
    return os.path.join(home_of_user(), below, "config.toml")


def frozen_note(path: str) -> str:
    """Why everything above R0 is stopped, from the note in the state folder `path`; "" when there is no such note.

    A note that cannot be read stops as well: something is there that only a person should remove.
    """
    try:
        fd = os.open(os.path.join(path, FROZEN_NAME), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError:
        return "its reason cannot be read"
    try:
        text = os.read(fd, _NOTE_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        text = ""
    finally:
        os.close(fd)
    return text or "no reason was given"
