"""Settings of a host that switch off or go round what `opsagent install` put in. Reads files, changes none."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

from cli.hooks import mcp_entry
from cli.hooks.host_rules import MANAGED
from cli.hooks.hosts import CLAUDE_CODE, CODEX, Host
from cli.install import entries, jsonc, settings_files
from guard.errors import GuardError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cli.install.entries import Place

GEMINI_SYSTEM = "/etc/gemini-cli/settings.json"


def files(host: Host, place: Place) -> tuple[str, ...]:
    """The settings that the host reads, the strongest last."""
    if host is CLAUDE_CODE:
        folder, project = place.folder("CLAUDE_CONFIG_DIR", ".claude"), f"{place.project}/.claude"
        own = (f"{folder}/settings.json", f"{project}/settings.json", f"{project}/settings.local.json")
        return (*own, MANAGED)
    if host is CODEX:
        return (f"{place.folder('CODEX_HOME', '.codex')}/config.toml", f"{place.project}/.codex/config.toml")
    home = place.environ.get("GEMINI_CLI_HOME") or place.home
    system = place.environ.get("GEMINI_CLI_SYSTEM_SETTINGS_PATH") or GEMINI_SYSTEM
    return (f"{home}/.gemini/settings.json", f"{place.project}/.gemini/settings.json", system)


def tables(host: Host, place: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each settings file that is there and can be read, with what it says."""
    for path in files(host, place):
        try:
            text = settings_files.read(path)
            value = None if text is None else tomllib.loads(text) if host is CODEX else jsonc.value_of(text)
        except (GuardError, ValueError, RecursionError):
            continue  # `unreadable` tells
        if isinstance(value, dict):
            yield path, value


def unreadable(host: Host, place: Place) -> Iterator[str]:
    """A sentence for each settings file of which nobody knows what it switches off."""
    for path in files(host, place):
        try:
            text = settings_files.read(path)
            if text is not None:
                _ = tomllib.loads(text) if host is CODEX else jsonc.value_of(text)
        except GuardError as error:
            yield error.message
        except (ValueError, RecursionError) as error:
            yield f"{path}: {error}"


def hook_commands(host: Host, place: Place) -> Iterator[tuple[str, str]]:
    """Our hook, as often as it stands in the settings: the file and the shell command."""
    for path, table in tables(host, place):
        groups = jsonc.at(table, ("hooks", host.event))
        for group in groups if isinstance(groups, list) else ():
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for hook in hooks if isinstance(hooks, list) else ():
                command = hook.get("command") if isinstance(hook, dict) else None
                if isinstance(command, str) and f"hook {host.name}" in command:
                    yield path, command


def servers(host: Host, place: Place) -> Iterator[tuple[str, dict[str, Any]]]:
    """Our server, under each name that the host has for it."""
    for table in mcp_entry.servers(host, place.home, place.project, place.environ):
        for name, entry in table.items():
            if isinstance(name, str) and isinstance(entry, dict) and mcp_entry.starts_ours(entry):
                yield name, entry


def warnings(host: Host, place: Place) -> Iterator[str]:
    """One sentence for each setting that takes something away."""
    names = {name for name, _ in servers(host, place)} or {entries.SERVER}
    for _, entry in servers(host, place):
        yield from _entry_warnings(host, entry)
    for path, table in tables(host, place):
        found = (_claude_code if host is CLAUDE_CODE else _codex if host is CODEX else _gemini)(path, table, names)
        for said in found:
            yield f"{path}: {said}"
    if host is CLAUDE_CODE and place.environ.get("CLAUDE_CODE_SIMPLE"):
        yield "CLAUDE_CODE_SIMPLE is set: Claude Code runs without hooks"


def _entry_warnings(host: Host, entry: dict[str, Any]) -> Iterator[str]:
    if host is CLAUDE_CODE:
        if entry.get("alwaysLoad") is not True:
            yield "the server's entry has no alwaysLoad: a first request may offer a search in place of the tools"
    elif host is CODEX:
        if entry.get("required") is not True:
            yield "the server's entry is not required: a first request may lack the tools"
        modes = {tool: jsonc.at(entry, ("tools", tool, "approval_mode")) for tool in entries.ASKED}
        default = entry.get("default_tools_approval_mode")
        for tool, mode in modes.items():
            if (mode or default) == "approve":
                yield f"{tool} is called without a question (approval mode {mode or default!r})"
    elif entry.get("trust") is True:
        yield "the server is trusted: every tool is called without a question"


def _claude_code(path: str, table: dict[str, Any], names: set[str]) -> Iterator[str]:
    if table.get("disableAllHooks") is True:
        yield "disableAllHooks switches the hook off"
    if table.get("allowManagedHooksOnly") is True and path == MANAGED:
        yield "allowManagedHooksOnly switches off every hook but the administrator's"
    environ = table.get("env")
    if isinstance(environ, dict) and environ.get("CLAUDE_CODE_SIMPLE"):
        yield "CLAUDE_CODE_SIMPLE switches the hook off"
    allowed = jsonc.at(table, ("permissions", "allow"))
    for rule in allowed if isinstance(allowed, list) else ():
        if any(rule in (f"mcp__{name}", f"mcp__{name}__*") for name in names):
            yield f"{rule!r} allows every tool of the server; the rules that ask win where they stand too"
        elif any(rule == f"mcp__{name}__{tool}" for name in names for tool in entries.ASKED):
            yield f"{rule!r} allows a tool that changes things"
    if jsonc.at(table, ("permissions", "defaultMode")) == "bypassPermissions":
        yield "defaultMode bypassPermissions asks nobody; a hook's refusal still holds"
    off = table.get("disabledMcpjsonServers")
    if isinstance(off, list) and not names.isdisjoint(str(one) for one in off):
        yield "disabledMcpjsonServers switches the server off"


def _codex(path: str, table: dict[str, Any], names: set[str]) -> Iterator[str]:
    for name in ("hooks", "codex_hooks"):
        if jsonc.at(table, ("features", name)) is False:
            yield f"features.{name} = false switches the hook off"
    entry = jsonc.at(table, ("mcp_servers", entries.SERVER))
    if isinstance(entry, dict) and entry.get("enabled") is False:
        yield "the server is switched off (enabled = false)"
    if table.get("sandbox_mode") == "danger-full-access":
        yield "sandbox_mode danger-full-access: Codex's own shell is held by nothing but the hook"


def _gemini(path: str, table: dict[str, Any], names: set[str]) -> Iterator[str]:
    if jsonc.at(table, ("hooksConfig", "enabled")) is False:
        yield "hooksConfig.enabled = false switches the hook off"
    off = jsonc.at(table, ("hooksConfig", "disabled"))
    if isinstance(off, list) and any(one == entries.SERVER or "opsx hook" in str(one) for one in off):
        yield f"hooksConfig.disabled names the hook: {json.dumps(off)[:200]}"
    excluded, allowed = jsonc.at(table, ("mcp", "excluded")), jsonc.at(table, ("mcp", "allowed"))
    if isinstance(excluded, list) and not names.isdisjoint(map(str, excluded)):
        yield "mcp.excluded switches the server off"
    if isinstance(allowed, list) and names.isdisjoint(map(str, allowed)):
        yield "mcp.allowed does not name the server, so it is off"
