"""What is particular to each host: its tools' names, how it wants to be answered, and what it can do.

Measured with Claude Code 2.1, Codex 0.17x and Gemini CLI 0.6x; docs/hook.md says what each does with each answer.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SHELL, FILES, OTHER_SHELL, ELSE = "shell", "files", "other-shell", "else"

_WRITING = ("write", "edit", "patch", "create", "replace", "move", "delete", "remove", "rename", "update")
"""Parts of tool names that tell of a change to files."""


class Host:
    """One host that can run `opsx hook` before a tool call."""

    __slots__ = (
        "name",
        "event",
        "shells",
        "asks",
        "asks_headless",
        "allows_unchanged",
        "project_variable",
        "folder_key",
    )

    def __init__(
        self,
        name: str,
        *,
        event: str,
        shells: "tuple[str, ...]",
        asks: bool,
        asks_headless: bool = True,
        allows_unchanged: bool,
        project_variable: str = "",
        folder_key: str = "",
    ) -> None:
        self.name = name
        self.event = event
        """The event before a tool call."""
        self.shells = shells
        """Tools that run their `command` in a shell, and that take a changed command from a hook."""
        self.asks = asks
        """A hook can have the host ask its person."""
        self.asks_headless = asks_headless
        """Without a terminal it takes a question for a no; else it would wait for ever."""
        self.allows_unchanged = allows_unchanged
        """"allow" without a changed input is understood; else silence stands for it."""
        self.project_variable = project_variable
        """Names the project folder in the hook's environment."""
        self.folder_key = folder_key
        """The shell tool's argument for another folder, relative to the project's."""

    def kind_of(self, tool: str, given: "dict[str, Any]") -> str:
        """What a tool does, as far as a guard is concerned."""
        if tool in self.shells:
            return SHELL
        if tool.startswith("mcp_"):
            return ELSE  # servers are installed by a person and have their own rules; ours guards itself
        low = tool.lower()
        if any(part in low for part in _WRITING):
            return FILES
        return OTHER_SHELL if isinstance(given.get("command"), str) else ELSE


CLAUDE_CODE = Host(
    "claude-code",
    event="PreToolUse",
    shells=("Bash",),
    asks=True,
    allows_unchanged=True,
    project_variable="CLAUDE_PROJECT_DIR",
)
# Codex marks a hook that answers "ask", or "allow" without a changed input, as failed, and then runs the command.
CODEX = Host("codex", event="PreToolUse", shells=("Bash",), asks=False, allows_unchanged=False)
GEMINI = Host(
    "gemini",
    event="BeforeTool",
    shells=("run_shell_command",),
    asks=True,
    asks_headless=False,
    allows_unchanged=True,
    project_variable="GEMINI_PROJECT_DIR",
    folder_key="dir_path",
)
HOSTS = {host.name: host for host in (CLAUDE_CODE, CODEX, GEMINI)}


class Answer:
    """What the host is told. `decision`: `allow` · `deny` · `ask` · `pass` (the host's own rules decide)."""

    __slots__ = ("decision", "reason", "command")

    def __init__(self, decision: str, reason: str = "", command: "str | None" = None) -> None:
        self.decision = decision
        self.reason = reason
        self.command = command
        """What runs instead, with `allow`; None for the command as it is."""


def answer_object(host: Host, answer: Answer, given: "dict[str, Any]") -> "dict[str, Any] | None":
    """The object that says it in the host's way; None for silence, which leaves the call to the host's own rules."""
    decision, changed = answer.decision, answer.command is not None
    if decision == "pass" or (decision == "allow" and not changed and not host.allows_unchanged):
        return None
    if decision == "ask" and not host.asks:
        decision = "deny"
    if host is GEMINI:
        told: dict[str, Any] = {"decision": decision, "reason": answer.reason, "systemMessage": answer.reason}
        if not answer.reason or decision == "allow":
            del told["reason"], told["systemMessage"]
        if changed:
            told["hookSpecificOutput"] = {
                "hookEventName": host.event,
                "tool_input": {**given, "command": answer.command},
            }
        return told
    inner: dict[str, Any] = {"hookEventName": host.event, "permissionDecision": decision}
    if answer.reason:
        inner["permissionDecisionReason"] = answer.reason
    if changed:
        # Codex takes the command alone; Claude Code takes the whole input and would lose what is left out.
        inner["updatedInput"] = {"command": answer.command} if host is CODEX else {**given, "command": answer.command}
    return {"hookSpecificOutput": inner}
