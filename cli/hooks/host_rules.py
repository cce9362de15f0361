"""A person's own deny and ask rules for the host's shell tool, which a rewritten command would slip past.

Claude Code matches its rules against what a hook made of the command (seen with 2.1.197), so `Bash(curl *)` would no
longer hold for a curl that goes through opsx. So the hook looks at them first. Codex and Gemini CLI ask their own
policy in another place.
"""

import os

from cli.hooks.frame import json_value
from guard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_BYTES = 4 << 20
_SPLITTERS = str.maketrans(dict.fromkeys("\n;&|(){}`", "\n"))
MANAGED = "/etc/claude-code/managed-settings.json"


def said_by_a_person(command: str, *, home: str, project: str, environ: "Mapping[str, str]") -> str:
    """`deny`, `ask` or "": the strictest rule that fits the command or one of its parts.

    A settings file that is there and cannot be read counts as `ask`: what it forbids is not known.
    """
    folder = environ.get("CLAUDE_CONFIG_DIR") or f"{home}/.claude"
    local = f"{project}/.claude"
    pieces = [command.strip(), *(piece.strip() for piece in command.translate(_SPLITTERS).split("\n"))]
    found = ""
    for path in (MANAGED, f"{folder}/settings.json", f"{local}/settings.json", f"{local}/settings.local.json"):
        try:
            rules = _rules(path)
        except (OSError, UsageError):
            found = found or "ask"
            continue
        for kind in ("deny", "ask"):
            listed = rules.get(kind)
            for rule in listed if isinstance(listed, list) else ():
                if isinstance(rule, str) and any(_fits(rule, piece) for piece in pieces):
                    if kind == "deny":
                        return "deny"
                    found = "ask"
    return found


def _rules(path: str) -> "dict[str, object]":
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    try:
        data = os.read(fd, MAX_BYTES + 1)
    finally:
        os.close(fd)
    if len(data) > MAX_BYTES:
        raise UsageError(f"{path} is longer than 4 MiB")
    if b'"Bash' not in data:
        return {}
    try:
        value = json_value(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8") from None
    permissions = value.get("permissions") if isinstance(value, dict) else None
    return permissions if isinstance(permissions, dict) else {}


def _fits(rule: str, piece: str) -> bool:
    """Whether `Bash`, `Bash(text)`, `Bash(prefix:*)` or `Bash(pat*ern)` fits; rather too often than too seldom."""
    if rule == "Bash":
        return True
    if not rule.startswith("Bash(") or not rule.endswith(")"):
        return False
    body = rule[5:-1].strip()
    if body.endswith(":*"):
        return piece.startswith(body[:-2])
    if body.endswith(" *") and piece == body[:-2]:
        return True
    first, *rest = body.split("*")
    if not rest:
        return piece == body
    if not piece.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        at = piece.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return piece.endswith(rest[-1]) and len(piece) - len(rest[-1]) >= at
