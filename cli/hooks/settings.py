"""The hook's own settings: `[hook]` in config.toml, the system's, the user's, that of `--config`. Never from a project.

Read only when a command would write inside the project, so reads never pay for it.
"""

import os
import stat

from cli.config import named_file
from guard.errors import StateError
from guard.ledger import location

SYSTEM = "/etc/opsagent/config.toml"
DEFER, ASK = "defer", "ask"
MAX_BYTES = 1 << 20


def project_writes() -> "tuple[str, str]":
    """`defer` or `ask`, and why it is not what the file says ("" when it is).

    A file that cannot be read, is not ours, or says something else counts as `ask`.
    """
    value = DEFER
    try:
        files = [location.config_path()]
    except StateError as error:
        return ASK, error.message
    if not os.environ.get(location.HOME_VARIABLE):
        files.insert(0, SYSTEM)
    if named_file():
        files.append(named_file())
    for path in files:
        try:
            said = _read(path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            return ASK, f"{path} cannot be used: {error.strerror if isinstance(error, OSError) else error}"
        if said is not None:
            value = said
    return value, ""


def _read(path: str) -> "str | None":
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode) or info.st_uid not in (0, os.geteuid()) or info.st_mode & 0o022:
            raise ValueError("it is not a plain file that only its owner (you or root) can write")
        data = b""
        while len(data) <= MAX_BYTES and (part := os.read(fd, MAX_BYTES + 1 - len(data))):
            data += part
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        raise ValueError("it is longer than 1 MiB")
    import tomllib

    try:
        table = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise ValueError("it is not TOML") from None
    hook = table.get("hook", {})
    if not isinstance(hook, dict):
        raise ValueError("hook is not a table")
    said = hook.get("project_writes")
    if said not in (None, DEFER, ASK):
        raise ValueError(f"hook.project_writes is neither {DEFER!r} nor {ASK!r}")
    result: str | None = said
    return result
