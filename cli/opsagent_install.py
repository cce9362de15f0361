"""`opsagent install HOST`: our server, its rules and the hook in a host's own settings; shown, written, or taken out.

`opsagent install doctor HOST` says whether what is installed does what it should.
"""

from __future__ import annotations

import difflib
import os

from cli import surroundings
from cli.hooks.ruling import surroundings_opsx
from cli.install import editors, entries, settings_files
from cli.options import Option, Parsed, Verb
from cli.report import line, safe, write
from guard.errors import NotPermitted, UsageError

VERB = Verb(
    "install",
    "cli.opsagent_install",
    "put opsagent into the settings of an agent host or an editor, or take it out",
    usage="claude-code | codex | gemini [options]\n"
    "       opsagent install zed | emacs | neovim [--write | --remove] [--json]\n"
    "       opsagent install doctor HOST [options]",
    options=(
        Option("hook", "the hook too: every command of the host comes past the guard (docs/hook.md)"),
        Option("scope", "user (default): your own settings; project: those of the current folder", value="SCOPE"),
        Option("write", "make the change; without it, it is only shown"),
        Option("remove", "take out what was put in, and nothing else"),
        Option("json", "print one JSON object"),
    ),
    text="""
Shows which lines go into which file. Everything else in the files stays byte for byte, comments too; what they said
before is kept, and --remove puts exactly that back when nobody changed them since. Tools that only read are allowed
without a question, the others always ask: nothing here approves a command.

An editor gets `opsagent acp` as an agent (docs/editors.md): Zed in its settings, Emacs in a block of its init file,
Neovim in a module of its own. A file that is a link is never written through.

`doctor` starts what is installed as the host would: version, server, tools, and what becomes of a command when the
hook is killed, missing or hanging. docs/hosts.md tells what each host enforces.""",
    codes="0 done · 1 a file cannot be changed, or doctor found a fault · 2 usage · 4 not a person",
)
MOST_SHOWN = 400
"""Lines of one difference."""


def main(parsed: Parsed) -> int:
    """Shows, writes, removes, or checks."""
    doctor = parsed.words[:1] == ["doctor"]
    words = parsed.words[1:] if doctor else parsed.words
    if len(words) != 1:
        raise UsageError("say which host or editor", hint=parsed.help_line())
    scope = parsed.value("scope", entries.USER)
    if scope not in (entries.USER, entries.PROJECT):
        raise UsageError("--scope is user or project", hint=parsed.help_line())
    if words[0] in editors.MADE and (doctor or any(name in parsed.values for name in ("scope", "hook"))):
        raise UsageError(f"{words[0]} is an editor: there is no hook, scope or doctor", hint=parsed.help_line())
    place = _place()
    widest = entries.changes(words[0], place, scope=scope, hook=True)
    if doctor:
        if any(parsed.flag(name) for name in ("write", "remove", "hook")):
            raise UsageError("doctor only looks", hint=parsed.help_line())
        from cli.install.doctor import report

        return report(words[0], place, widest, as_json=parsed.flag("json"))
    if parsed.flag("write") and parsed.flag("remove"):
        raise UsageError("--write and --remove exclude each other", hint=parsed.help_line())
    acts = parsed.flag("write") or parsed.flag("remove")
    if acts:
        _only_for_people()
    if parsed.flag("remove"):
        rewrites = [settings_files.to_remove(change) for change in reversed(widest)]
    else:
        wanted = entries.changes(words[0], place, scope=scope, hook=parsed.flag("hook"))
        by_path = {change.path: change for change in widest}
        rewrites = [settings_files.to_install(change, by_path[change.path]) for change in wanted]
    for rewrite in rewrites:
        if acts and (rewrite.changes or parsed.flag("remove")):
            if rewrite.changes:
                settings_files.carry_out(rewrite, keep=parsed.flag("write"))
            else:
                settings_files.forget(rewrite.path)
    _show(parsed, words[0], rewrites, acts=acts)
    return 0


def _only_for_people() -> None:
    from cli.actor import is_below_an_agent

    if is_below_an_agent():
        raise NotPermitted(
            "the settings in which a host keeps its rules are not changed from below an agent",
            not_done="nothing was changed",
            hint="a person does that, in a terminal of their own",
        )


def _place() -> entries.Place:
    opsx = surroundings_opsx()
    return entries.Place(
        opsagent=os.path.join(os.path.dirname(opsx), "opsagent"),
        opsx=opsx,
        home=entries.real_home(os.environ),
        project=os.path.realpath(surroundings.cwd("")),
        environ=os.environ,
    )


def _show(parsed: Parsed, host: str, rewrites: list[settings_files.Rewrite], *, acts: bool) -> None:
    if parsed.flag("json"):
        rows = [{"path": one.path, "changes": one.changes, "diff": safe(_difference(one))} for one in rewrites]
        line({"format": 1, "host": host, "done": acts, "files": rows})
        return
    changed = [one for one in rewrites if one.changes]
    for one in changed:
        write(_difference(one))
    if not changed:
        write("nothing of ours is in there\n" if parsed.flag("remove") else "everything is in place already\n")
    elif acts:
        write("".join(f"{'removed' if one.then is None else 'written'}: {safe(one.path)}\n" for one in changed))
        if host == "codex" and parsed.flag("hook"):
            write("Codex runs a hook only after you trusted it there: /hooks\n")
        if not parsed.flag("remove"):
            write(f"{editors.AFTERWARDS.get(host, f'see whether it works: opsagent install doctor {host}')}\n")
    else:
        write("nothing was changed; --write does it\n", to_stderr=True)


def _difference(rewrite: settings_files.Rewrite) -> str:
    """The change as a difference, each line made visible and redacted."""
    old, new = (rewrite.now or "").splitlines(), (rewrite.then or "").splitlines()
    from_, to = rewrite.path if rewrite.now is not None else "/dev/null", rewrite.path
    if rewrite.then is None:
        to = "/dev/null"
    rows = list(difflib.unified_diff(old, new, from_, to, n=2, lineterm=""))
    cut = [f"… {len(rows) - MOST_SHOWN} more lines"] if len(rows) > MOST_SHOWN else []
    return "".join(f"{safe(row)}\n" for row in rows[:MOST_SHOWN] + cut)
