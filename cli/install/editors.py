"""What each editor needs so that it starts `opsagent acp`, as changes that can be made and taken back. Pure.

docs/editors.md says what each of them is for. Zed has its agents in its settings; Emacs gets a block at the end of its
init file; Neovim gets a module of its own, whose use in the plugin's own set-up stays the person's.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli.install import jsonc

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    class Place(Protocol):
        """Where things are; `cli.install.entries.Place`."""

        @property
        def opsagent(self) -> str: ...
        @property
        def home(self) -> str: ...
        def folder(self, variable: str, default: str) -> str: ...


AGENT = ("agent_servers", "opsagent")
BEGIN = ";; opsagent begin: written by `opsagent install emacs`, taken out by `opsagent install emacs --remove`"
END = ";; opsagent end"
LUA_MARK = "-- Written by `opsagent install neovim`; `opsagent install neovim --remove` takes this file away.\n"
NEOVIM_LINE = 'require("codecompanion").setup({ adapters = { acp = { opsagent = require("opsagent") } } })'


@dataclass(frozen=True, slots=True)
class AgentMember:
    """Our agent among those of a settings file."""

    path: str
    value: dict[str, Any]

    def with_ours(self, text: str) -> str:
        known = jsonc.at(jsonc.value_of(text), AGENT)
        if known is not None and not _starts_ours(known):
            raise jsonc.NotJson(f"{'.'.join(AGENT)} is there already and starts something else")
        return jsonc.with_member(text, AGENT, self.value)

    def without_ours(self, text: str, before: str | None) -> str | None:
        if not text.strip() or not _starts_ours(jsonc.at(jsonc.value_of(text), AGENT)):
            return text
        then = jsonc.value_of(before or "")
        old = jsonc.at(then, AGENT)
        text = jsonc.without(text, AGENT) if old is None else jsonc.with_member(text, AGENT, old)
        if jsonc.at(jsonc.value_of(text), AGENT[:1]) == {} and jsonc.at(then, AGENT[:1]) is None:
            text = jsonc.without(text, AGENT[:1])
        return None if before is None and not text.strip("\ufeff{} \t\r\n") else text


def _starts_ours(entry: object) -> bool:
    """Whether an agent of the settings is opsagent's, of this installation or another."""
    if not isinstance(entry, dict) or not isinstance(command := entry.get("command"), str):
        return False
    return os.path.basename(command) == "opsagent" and entry.get("args", [])[:1] == ["acp"]


@dataclass(frozen=True, slots=True)
class Block:
    """Lines between two marks at the end of a file."""

    path: str
    lines: str

    def with_ours(self, text: str) -> str:
        newline = "\r\n" if "\r\n" in text else "\n"
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        return text + gap + newline.join([BEGIN, *self.lines.strip("\n").split("\n"), END, ""])

    def without_ours(self, text: str, before: str | None) -> str | None:
        rows = text.splitlines(keepends=True)
        marks = [at for at, row in enumerate(rows) if row.strip() in (BEGIN, END)]
        if not marks:
            return text
        if len(marks) != 2 or rows[marks[0]].strip() != BEGIN:
            raise ValueError(f"it has not one block from {BEGIN!r} to {END!r}; take it out by hand")
        kept = rows[: marks[0]]
        if kept and not kept[-1].strip():
            kept.pop()
        left = "".join(kept + rows[marks[1] + 1 :])
        return None if before is None and not left else left


@dataclass(frozen=True, slots=True)
class LuaFile:
    """A module that is ours alone."""

    path: str
    text: str

    def with_ours(self, text: str) -> str:
        if text and not text.startswith(LUA_MARK):
            raise ValueError("it is there already and not ours")
        return self.text

    def without_ours(self, text: str, before: str | None) -> str | None:
        return None if text.startswith(LUA_MARK) else text


def changes(editor: str, place: Place) -> tuple[AgentMember | Block | LuaFile, ...]:
    """The files that an editor needs. Raises KeyError for an unknown one."""
    return (MADE[editor](place),)


def _zed(place: Place) -> AgentMember:
    entry = {"type": "custom", "command": place.opsagent, "args": ["acp"]}
    return AgentMember(f"{place.folder('XDG_CONFIG_HOME', '.config')}/zed/settings.json", entry)


def _emacs(place: Place) -> Block:
    config = place.folder("XDG_CONFIG_HOME", ".config")
    # The order in which Emacs looks for it (Emacs manual, "Find Init").
    known = [f"{place.home}/.emacs.el", f"{place.home}/.emacs", f"{place.home}/.emacs.d/init.el"]
    if not os.path.isdir(f"{place.home}/.emacs.d"):
        known.append(f"{config}/emacs/init.el")
    path = next((one for one in known if os.path.lexists(one)), f"{place.home}/.emacs.d/init.el")
    return Block(path, EMACS.replace("COMMAND", _lisp(place.opsagent)))


def _neovim(place: Place) -> LuaFile:
    folder = f"{place.folder('XDG_CONFIG_HOME', '.config')}/nvim/lua"
    return LuaFile(f"{folder}/opsagent.lua", LUA_MARK + NEOVIM.replace("COMMAND", _lua(place.opsagent)))


MADE: dict[str, Callable[[Place], AgentMember | Block | LuaFile]] = {"zed": _zed, "emacs": _emacs, "neovim": _neovim}

AFTERWARDS = {
    "zed": "in Zed: open the agent panel and choose opsagent",
    "emacs": "in Emacs, with agent-shell: M-x opsagent-shell",
    "neovim": f"in your own set-up of CodeCompanion: {NEOVIM_LINE}",
}
"""What is left for the person to do."""

EMACS = """\
(autoload 'agent-shell-make-agent-config "agent-shell")
(defun opsagent-shell ()
  "Talk to opsagent in an agent-shell buffer."
  (interactive)
  (require 'agent-shell)
  (agent-shell--dwim
   :config (agent-shell-make-agent-config
            :identifier 'opsagent
            :mode-line-name "opsagent"
            :buffer-name "opsagent"
            :shell-prompt "opsagent> "
            :shell-prompt-regexp "opsagent> "
            :client-maker (lambda (buffer)
                            (agent-shell--make-acp-client
                             :command COMMAND
                             :command-params '("acp")
                             :context-buffer buffer)))
   :new-shell t))
"""

NEOVIM = """\
return {
  name = "opsagent",
  formatted_name = "opsagent",
  type = "acp",
  roles = { llm = "assistant", user = "user" },
  opts = {},
  commands = { default = { COMMAND, "acp" } },
  defaults = { mcpServers = {}, timeout = 20000 },
  parameters = {
    protocolVersion = 1,
    clientCapabilities = { fs = { readTextFile = true, writeTextFile = false } },
    clientInfo = { name = "CodeCompanion.nvim", version = "1.0.0" },
  },
  handlers = {
    setup = function() return true end,
    auth = function() return true end,
    form_messages = function(self, messages, capabilities)
      return require("codecompanion.adapters.acp.helpers").form_messages(self, messages, capabilities)
    end,
    on_exit = function() end,
  },
}
"""


def _lisp(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _lua(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
