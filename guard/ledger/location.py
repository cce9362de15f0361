"""Where the state folder and the user's configuration are. Reads the environment and the passwd file; the one file that
it opens is the note of a stop.

On the hot path (`opsx check` looks for what the kernel enforces), so it imports almost nothing.
"""

from __future__ import annotations

import os
import pwd
import stat
import sys

from guard.errors import StateError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1
"""The number of the formats that this version writes (docs/formats.md)."""

HOME_VARIABLE = "OPSAGENT_HOME"

SYSTEM_PLACE = "/var/lib/opsagent"
MAC_SYSTEM_PLACE = "/Library/Application Support/opsagent"
"""Where root's state is, for every way of becoming root. Sources: FHS 3.0, 5.8 "/var/lib: Variable state information";
Apple, File System Programming Guide, "Library Directory" (the local domain's Application Support)."""

MOVING = ".moving"
"""Behind the older place's name while its records are copied to another file system (`guard.ledger.moving`)."""

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
    """Where the state folder is: `$OPSAGENT_HOME`; for root the system's place; else below the passwd entry's home.

    Root's records once were below root's home. As long as they are, that is where they are read and written: there is
    one truth at any moment, and `guard.ledger.moving` brings it over.

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
    if not is_root():
        return os.path.join(home_of_user(), _below_home(platform))
    system = system_place(platform)
    if os.path.lexists(os.path.join(system, "format")):
        return system
    older = older_place(platform)
    if not older:
        return system
    # In this order: a move takes the older place away before the one behind it is complete.
    at_older, at_moving = is_folder(older), is_folder(older + MOVING)
    return older + MOVING if at_moving else older if at_older else system


def system_place(platform: str = sys.platform) -> str:
    """Where root's state belongs."""
    return MAC_SYSTEM_PLACE if platform == "darwin" else SYSTEM_PLACE


def older_place(platform: str = sys.platform) -> str:
    """Where root's state was before: below root's own home. "" when root has no home."""
    try:
        home = pwd.getpwuid(0).pw_dir
    except KeyError:
        return ""
    return os.path.join(home, _below_home(platform)) if home.startswith("/") else ""


def since_the_move(path: str, folder: str) -> str:
    """Where a file of the state folder is now that a record names below root's older place; other paths as they are."""
    older = older_place() if folder == system_place() else ""
    return folder + path[len(older) :] if older and path.startswith(older + "/") else path


def own_places(environ: Mapping[str, str] | None = None, *, platform: str = sys.platform) -> tuple[str, ...]:
    """The state folder, and for root whatever else is there that is or was one. Raises as `state_path`."""
    current = state_path(environ, platform=platform)
    if not is_roots_own(environ):
        return (current,)
    older = older_place(platform)
    others = (system_place(platform), *((older, older + MOVING) if older else ()))
    return (current, *(place for place in others if place != current and is_folder(place)))


def is_root() -> bool:
    """Whether the effective user is root."""
    return os.geteuid() == 0


def is_roots_own(environ: Mapping[str, str] | None = None) -> bool:
    """Whether the state folder is root's, at a place that nobody named."""
    return is_root() and not (os.environ if environ is None else environ).get(HOME_VARIABLE, "")


def move_is_due() -> bool:
    """Whether root's records are not in the system's place, or a copy has left something: three looks at most."""
    if not is_roots_own():
        return False
    older = older_place()
    if not older or not (is_folder(older) or is_folder(older + MOVING)):
        return False
    return is_folder(older + MOVING) or not os.path.lexists(os.path.join(system_place(), "format"))


def is_folder(path: str) -> bool:
    """Whether a folder is there, and not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def _below_home(platform: str) -> str:
    return "Library/Application Support/opsagent" if platform == "darwin" else ".local/state/opsagent"


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
