"""Whether the host has our MCP server, read from the host's own settings, and how its `ops_exec` is called there."""

import os

from cli.hooks.frame import json_value
from cli.hooks.hosts import CLAUDE_CODE, CODEX, Host
from guard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

MAX_BYTES = 64 << 20
"""A host's file beyond this is not looked at: Claude Code keeps its history there."""
OURS = ("opsagent-mcp", "mcp_server.py")


def ops_exec_name(host: Host, *, home: str, project: str, environ: "Mapping[str, str]") -> str:
    """The name of the tool under which the model finds `ops_exec`; "" when the server is not installed."""
    for table in servers(host, home, project, environ):
        for name, entry in table.items():
            if isinstance(name, str) and isinstance(entry, dict) and is_ours(entry):
                safe = "".join(char if char.isascii() and (char.isalnum() or char in "-_") else "_" for char in name)
                return f"mcp_{safe}_ops_exec" if host not in (CLAUDE_CODE, CODEX) else f"mcp__{safe}__ops_exec"
    return ""


def is_ours(entry: "dict[str, Any]") -> bool:
    """Whether a server of a host's settings is ours and switched on."""
    return not (entry.get("disabled") is True or entry.get("enabled") is False) and starts_ours(entry)


def starts_ours(entry: "dict[str, Any]") -> bool:
    """Whether a server of a host's settings is ours, switched on or not."""
    arguments = entry.get("args")
    words = [entry.get("command"), *(arguments if isinstance(arguments, list) else ())]
    names = [os.path.basename(word) for word in words if isinstance(word, str)]
    return any(name in OURS for name in names) or (names[:1] == ["opsagent"] and "mcp" in names[1:])


def servers(host: Host, home: str, project: str, environ: "Mapping[str, str]") -> "Iterator[dict[str, Any]]":
    """The tables of servers, of each file that the host reads."""
    if host is CODEX:
        folder = environ.get("CODEX_HOME") or f"{home}/.codex"
        for path in (f"{folder}/config.toml", f"{project}/.codex/config.toml"):
            yield from _tables(_toml(path), "mcp_servers")
        return
    if host is CLAUDE_CODE:
        folder = environ.get("CLAUDE_CONFIG_DIR") or home
        own = _json(f"{folder}/.claude.json")
        yield from _tables(own, "mcpServers")
        projects = own.get("projects")
        if isinstance(projects, dict):
            yield from _tables(projects.get(project), "mcpServers")
        yield from _tables(_json(f"{project}/.mcp.json"), "mcpServers")
        yield from _tables(_json("/etc/claude-code/managed-mcp.json"), "mcpServers")
        return
    for path in (f"{home}/.gemini/settings.json", f"{project}/.gemini/settings.json"):
        yield from _tables(_json(path), "mcpServers")


def _tables(value: "Any", key: str) -> "Iterator[dict[str, Any]]":
    if isinstance(value, dict) and isinstance(value.get(key), dict):
        yield value[key]


def _bytes_naming_us(path: str) -> bytes:
    """The file's bytes if they can name our server at all; b"" else."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError:
        return b""
    return data if len(data) <= MAX_BYTES and (b"opsagent" in data or b"mcp_server.py" in data) else b""


def _json(path: str) -> "dict[str, Any]":
    data = _bytes_naming_us(path)
    if not data:
        return {}
    text = data.decode("utf-8", "replace")
    try:
        value = json_value(text)
    except UsageError:
        # Rare enough to be paid for only here: Gemini CLI takes comments.
        from cli.install import jsonc

        try:
            value = jsonc.value_of(text)
        except jsonc.NotJson:
            return {}
    return value if isinstance(value, dict) else {}


def _toml(path: str) -> "dict[str, Any]":
    data = _bytes_naming_us(path)
    if not data:
        return {}
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return {}
