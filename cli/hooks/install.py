"""How the hook is installed: the text that a person puts into the host's own settings. Nothing is changed from here."""

from guard.quoting import quoted

TIMEOUT_S = 30
"""Longer than the hook's own deadline: hosts that stop waiting run the command."""
_FAILED = "opsagent: the hook failed, so nothing was run"

WHERE = {
    "claude-code": "~/.claude/settings.json",
    "codex": "~/.codex/config.toml, then trust it in Codex: /hooks",
    "gemini": "~/.gemini/settings.json",
}


def hook_command(host: str, opsx: str) -> str:
    """The shell command that the host runs. Whatever ends the hook without an answer becomes exit code 2.

    The words are not decoration: Codex and Gemini CLI take a silent exit code 2 for "no opinion" and run the command.
    """
    return f"{quoted(opsx)} hook {host} || {{ echo {quoted(_FAILED)} >&2; exit 2; }}"


def hook_entry(host: str, opsx: str) -> "dict[str, object]":
    """The hook as the host's settings have it, without the event and the matcher around it."""
    entry: dict[str, object] = {
        "type": "command",
        "command": hook_command(host, opsx),
        "timeout": TIMEOUT_S * (1000 if host == "gemini" else 1),
    }
    return {"name": "opsagent", **entry} if host == "gemini" else entry


def settings_text(host: str, opsx: str) -> str:
    """The lines for the host's settings file (`WHERE`)."""
    if host == "codex":
        return (
            "[[hooks.PreToolUse]]\n\n[[hooks.PreToolUse.hooks]]\n"
            f'type = "command"\ncommand = {_json(hook_command(host, opsx))}\ntimeout = {TIMEOUT_S}\n'
        )
    event = "PreToolUse" if host == "claude-code" else "BeforeTool"
    entry = hook_entry(host, opsx)
    return (
        "{\n"
        '  "hooks": {\n'
        f'    "{event}": [\n'
        "      {\n"
        '        "matcher": "*",\n'
        f'        "hooks": [{_json(entry)}]\n'
        "      }\n"
        "    ]\n"
        "  }\n"
        "}\n"
    )


def _json(value: object) -> str:
    from cli.json_text import json_line

    return json_line(value)
