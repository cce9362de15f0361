"""The table `[brains]` of the configuration files. Read by what talks to a brain, and by nothing else.

Unlike the policy, a file that cannot be used here is an error: without it nobody knows which brain a person wants the
words sent to, and a guess could send them to somebody else.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from agent.brains.choice import NOTHING, RUNBOOKS, Configured, chain, configured
from agent.brains.entries import SCRIPT, BadBrains
from cli import config
from guard.redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable

    from agent.brains.choice import Link


def load(redact: Callable[[str], str]) -> Configured:
    """What all configuration files say about brains, a later file over an earlier one.

    Raises:
        BadConfig: a file is there and cannot be used. BadBrains: what it says about brains is wrong; names the file.
    """
    known = NOTHING
    for path in places():
        table = table_of(path)
        if "brains" in table:
            known = known.then(in_table(table, path, redact))
    return known


def places() -> list[str]:
    """The files, in order; they need not exist. A folder that is a link is left out, as the policy does."""
    standing = [os.path.join(folder, "config.toml") for folder in config.folders() if not os.path.islink(folder)]
    return [*standing, *filter(None, [config.named_file()])]


def table_of(path: str) -> dict[str, Any]:
    """A file as a table; empty when it is not there, or is the system's and not for this user. Raises BadConfig."""
    try:
        text = config.read_safely(path)
    except FileNotFoundError:
        return {}
    except PermissionError as error:
        if os.path.dirname(path) == config.SYSTEM_FOLDER:
            return {}  # the policy says each time that it is not used; what root keeps private names no brain of ours
        raise config.BadConfig(path, error.strerror or str(error)) from None
    except OSError as error:
        raise config.BadConfig(path, error.strerror or str(error)) from None
    import tomllib

    try:
        return tomllib.loads(text.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise config.BadConfig(path, f"it is not TOML: {error}") from None


def in_table(table: dict[str, Any], path: str, redact: Callable[[str], str]) -> Configured:
    """What one file says. Raises BadBrains, with the file's name."""
    try:
        return configured(table["brains"], redact=redact, origin=path)
    except BadBrains as error:
        raise BadBrains(f"{path}: {error.message}", hint=error.hint) from None


def chosen(brain: str, model: str) -> tuple[Link, ...]:
    """The brains for what was named on the command line ("" for what is configured); none for the runbooks alone.

    Raises:
        BadConfig, BadBrains: what is configured or named cannot be used.
    """
    redact = Redactor().text
    known = NOTHING if brain.startswith(SCRIPT) else load(redact)
    links = chain(known, os.environ, redact=redact, named=brain, model=model)
    return () if links == (RUNBOOKS,) else links
