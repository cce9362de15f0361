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


def settings_text(host: str, opsx: str) -> str:
    """The lines for the host's settings file (`WHERE`)."""
    command = hook_command(host, opsx)
    if host == "codex":
        return (
            "[[hooks.PreToolUse]]\n\n[[hooks.PreToolUse.hooks]]\n"
            f'type = "command"\ncommand = {_json(command)}\ntimeout = {TIMEOUT_S}\n'
        )
    event, unit = ("PreToolUse", 1) if host == "claude-code" else ("BeforeTool", 1000)
    entry = {"type": "command", "command": command, "timeout": TIMEOUT_S * unit}
    if host == "gemini":
        entry = {"name": "opsagent", **entry}
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
