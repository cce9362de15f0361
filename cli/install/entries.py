"""What each host needs in which file, as changes that can be made and taken back. Pure.

docs/hosts.md says what each entry is for, and with which version of the host it was seen to work.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from cli.hooks.install import hook_entry, settings_text
from cli.hooks.mcp_entry import starts_ours
from cli.install import editors, jsonc, toml_block
from guard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

SERVER = "opsagent"
"""The name of our server in a host's settings."""
READ_ONLY = (
    *("bash", "ops_audit", "ops_check", "ops_executions", "ops_list", "ops_status", "probe", "read", "runbook"),
)
"""Tools that can change nothing: a host may call them without asking."""
ASKED = ("edit", "ops_approve", "ops_exec", "ops_resolve", "ops_revoke", "ops_rollback", "ops_snapshot", "write")
"""The others. A host asks its person first, whatever its defaults are; that question approves nothing (docs/mcp.md)."""
CONFIGURED = ("edit", "write")
"""Those of them that the server offers only where `[mcp] edits` says so."""
START_TIMEOUT_S = 60
CALL_TIMEOUT_S = 120
"""The server hands out a handle after 30 s, so no call takes longer than a busy machine makes it."""
PASSED = (
    *("KUBECONFIG", "AWS_PROFILE", "AWS_REGION", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "DOCKER_HOST"),
    *("DOCKER_CONTEXT", "DOCKER_CONFIG", "CLOUDSDK_CONFIG", "AZURE_CONFIG_DIR", "PGHOST", "PGPORT", "PGUSER"),
    *("PGDATABASE", "PGPASSFILE", "SSH_AUTH_SOCK", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY"),
    *("HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
"""What programs look at to find their cluster, account or database. Codex hands a server only what it names."""
POLICY_MARK = "# Written by `opsagent install gemini`; `opsagent install gemini --remove` takes this file away.\n"

USER, PROJECT = "user", "project"


class Change(Protocol):
    """What has to be in one file."""

    @property
    def path(self) -> str: ...

    def with_ours(self, text: str) -> str:
        """The file's text (empty for none) with our entries. Raises ValueError."""

    def without_ours(self, text: str, before: str | None) -> str | None:
        """Without them; None when nothing of the file is left.

        Args:
            before: what it said before they were put in, where that is known: what stood there already stays.
        """


@dataclass(frozen=True, slots=True)
class JsonFile:
    """Members and list items of a JSON file."""

    path: str
    members: tuple[tuple[jsonc.Path, Any], ...] = ()
    items: tuple[tuple[jsonc.Path, Any], ...] = ()
    recognised: Callable[[Any], bool] = field(default=lambda item: False)
    """Whether an item is an older form of ours, such as a hook of another installation."""

    def with_ours(self, text: str) -> str:
        for path, value in self.members:
            known = jsonc.at(jsonc.value_of(text), path)
            if known is not None and not (isinstance(known, dict) and starts_ours(known)):
                raise jsonc.NotJson(f"{'.'.join(path)} is there already and starts something else")
            text = jsonc.with_member(text, path, value)
        for path, value in reversed(self.items):
            text = jsonc.with_item(text, path, value)
        return text

    def without_ours(self, text: str, before: str | None) -> str | None:
        then = jsonc.value_of(before or "")
        if not text.strip():
            return text
        for path, value in self.items:
            kept = jsonc.at(then, path)
            listed = jsonc.at(jsonc.value_of(text), path)
            for position in reversed(range(len(listed) if isinstance(listed, list) else 0)):
                item = listed[position]
                if (item == value or self.recognised(item)) and item not in (kept if isinstance(kept, list) else ()):
                    text = jsonc.without(text, path, position)
        for path, _ in self.members:
            known, old = jsonc.at(jsonc.value_of(text), path), jsonc.at(then, path)
            if isinstance(known, dict) and starts_ours(known):
                text = jsonc.without(text, path) if old is None else jsonc.with_member(text, path, old)
        for path, _ in (*self.items, *self.members):
            text = _without_empty(text, path, then)
        return None if before is None and not jsonc.value_of(text) and not _has_words(text) else text


def _without_empty(text: str, path: jsonc.Path, then: Any) -> str:
    """Without the containers on the way that hold nothing now and were not there before."""
    for depth in range(len(path), 0, -1):
        if jsonc.at(jsonc.value_of(text), path[:depth]) in ({}, []) and jsonc.at(then, path[:depth]) is None:
            text = jsonc.without(text, path[:depth])
    return text


def _has_words(text: str) -> bool:
    return text.strip("\ufeff{} \t\r\n") != ""


@dataclass(frozen=True, slots=True)
class TomlFile:
    """Tables at the end of a TOML file."""

    path: str
    block: str

    @property
    def _headers(self) -> frozenset[str]:
        names = [f"[mcp_servers.{SERVER}]", f"[mcp_servers.{SERVER}.env]", "[[hooks.PreToolUse]]"]
        names += [f"[mcp_servers.{SERVER}.tools.{tool}]" for tool in ASKED]
        return frozenset([*names, "[[hooks.PreToolUse.hooks]]"])

    def with_ours(self, text: str) -> str:
        return toml_block.with_block(text, self.block)

    def without_ours(self, text: str, before: str | None) -> str | None:
        left = toml_block.without_block(text, ours=self._headers)
        return None if before is None and not left and text else left


@dataclass(frozen=True, slots=True)
class OwnFile:
    """A file that is ours alone."""

    path: str
    text: str

    def with_ours(self, text: str) -> str:
        if text and not text.startswith(POLICY_MARK):
            raise ValueError("it is there already and not ours")
        return self.text

    def without_ours(self, text: str, before: str | None) -> str | None:
        return None if text.startswith(POLICY_MARK) else text


@dataclass(frozen=True, slots=True)
class Place:
    """Where things are: absolute paths."""

    opsagent: str
    opsx: str
    home: str
    project: str
    """The folder whose own settings `project` means."""
    environ: Mapping[str, str]

    def folder(self, variable: str, default: str) -> str:
        return self.environ.get(variable) or f"{self.home}/{default}"

    @property
    def own_variables(self) -> dict[str, str]:
        """What our server has to be told because a host may not pass it on."""
        name = "OPSAGENT_HOME"
        return {name: self.environ[name]} if self.environ.get(name) else {}


def changes(host: str, place: Place, *, scope: str, hook: bool) -> tuple[Change, ...]:
    """The files that one host needs, in the order in which they are written. Raises UsageError for an unknown host."""
    made: dict[str, Callable[[Place, str, bool], tuple[Change, ...]]] = {
        "claude-code": _claude_code,
        "codex": _codex,
        "gemini": _gemini,
    }
    if host in editors.MADE:
        return editors.changes(host, place)
    if host not in made:
        raise UsageError(f"say which host: {', '.join((*made, *editors.MADE))}", hint="opsagent install --help")
    return made[host](place, scope, hook)


def _claude_code(place: Place, scope: str, hook: bool) -> tuple[Change, ...]:
    # `alwaysLoad`: else the first request offers a search for tools in place of ours.
    entry = {"type": "stdio", "command": place.opsagent, "args": ["mcp"], "alwaysLoad": True}
    if place.own_variables:
        entry["env"] = place.own_variables
    if scope == PROJECT:
        servers, settings = f"{place.project}/.mcp.json", f"{place.project}/.claude/settings.json"
    else:
        # Beside the folder by default, in it when it is named.
        servers = f"{place.environ.get('CLAUDE_CONFIG_DIR') or place.home}/.claude.json"
        settings = f"{place.folder('CLAUDE_CONFIG_DIR', '.claude')}/settings.json"
    items = [(("permissions", "allow"), f"mcp__{SERVER}__{tool}") for tool in READ_ONLY]
    items += [(("permissions", "ask"), f"mcp__{SERVER}__{tool}") for tool in ASKED]
    group = {"matcher": "*", "hooks": [hook_entry("claude-code", place.opsx)]}
    return (
        JsonFile(servers, members=((("mcpServers", SERVER), entry),)),
        JsonFile(settings, items=(*items, *_hook(("hooks", "PreToolUse"), group, hook)), recognised=_is_our_hook),
    )


def _codex(place: Place, scope: str, hook: bool) -> tuple[Change, ...]:
    folder = f"{place.project}/.codex" if scope == PROJECT else place.folder("CODEX_HOME", ".codex")
    lines = [
        f"[mcp_servers.{SERVER}]",
        f"command = {_quoted(place.opsagent)}",
        'args = ["mcp"]',
        "required = true",
        f"startup_timeout_sec = {START_TIMEOUT_S}",
        f"tool_timeout_sec = {CALL_TIMEOUT_S}",
        f"env_vars = [{', '.join(map(_quoted, PASSED))}]",
    ]
    if place.own_variables:
        lines += ["", f"[mcp_servers.{SERVER}.env]"]
        lines += [f"{name} = {_quoted(value)}" for name, value in place.own_variables.items()]
    for tool in ASKED:
        lines += ["", f"[mcp_servers.{SERVER}.tools.{tool}]", 'approval_mode = "prompt"']
    if hook:
        lines += ["", settings_text("codex", place.opsx).rstrip("\n")]
    return (TomlFile(f"{folder}/config.toml", "\n".join(lines)),)


def _gemini(place: Place, scope: str, hook: bool) -> tuple[Change, ...]:
    entry: dict[str, Any] = {"command": place.opsagent, "args": ["mcp"], "timeout": CALL_TIMEOUT_S * 1000}
    if place.own_variables:
        entry["env"] = place.own_variables
    home = place.environ.get("GEMINI_CLI_HOME") or place.home
    folder = f"{place.project}/.gemini" if scope == PROJECT else f"{home}/.gemini"
    group = {"matcher": "*", "hooks": [hook_entry("gemini", place.opsx)]}
    settings = JsonFile(
        f"{folder}/settings.json",
        members=((("mcpServers", SERVER), entry),),
        items=_hook(("hooks", "BeforeTool"), group, hook),
        recognised=_is_our_hook,
    )
    if scope == PROJECT:
        return (settings,)  # Gemini CLI does not take a project's policies
    return (settings, OwnFile(f"{folder}/policies/{SERVER}.toml", _gemini_policy()))


def _gemini_policy() -> str:
    """Reads without a question; a question for the rest that wins over what a person clicked away earlier."""
    rules = (("allow", 300, READ_ONLY), ("ask_user", 960, ASKED))
    text = POLICY_MARK
    for decision, priority, tools in rules:
        text += f'\n[[rule]]\nmcpName = "{SERVER}"\ntoolName = [{", ".join(map(_quoted, tools))}]\n'
        text += f'decision = "{decision}"\npriority = {priority}\n'
    return text


def _hook(path: jsonc.Path, group: dict[str, Any], wanted: bool) -> tuple[tuple[jsonc.Path, Any], ...]:
    return ((path, group),) if wanted else ()


def _is_our_hook(item: Any) -> bool:
    """Whether a group of hooks holds nothing but one that starts `opsx hook`."""
    hooks = item.get("hooks") if isinstance(item, dict) else None
    commands = [one.get("command") for one in hooks if isinstance(one, dict)] if isinstance(hooks, list) else []
    return len(commands) == 1 and isinstance(commands[0], str) and "opsx hook " in commands[0].replace("'", "")


def _quoted(text: str) -> str:
    """As a TOML basic string; JSON's escapes are among TOML's."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def real_home(environ: Mapping[str, str]) -> str:
    """The home in which the hosts look for their settings: HOME, as they do. Raises UsageError."""
    home = environ.get("HOME", "")
    if not home.startswith("/"):
        raise UsageError("HOME is not set, and the hosts keep their settings there")
    return os.path.realpath(home)
