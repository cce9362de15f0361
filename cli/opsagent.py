"""`opsagent`: one question with -p. Reads the arguments, imports what the question needs, reports errors."""

import os
import sys

from cli.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.options import Parsed, Verb

PROGRAM = "opsagent"
VERB_MODULES = {
    "runbook": "cli.opsagent_runbook",
    "sessions": "cli.opsagent_sessions",
    "config": "cli.opsagent_config",
    "usage": "cli.opsagent_usage",
    "doctor": "cli.opsagent_doctor",
    "install": "cli.opsagent_install",
    "rpc": "cli.opsagent_rpc",
    "acp": "cli.opsagent_acp",
}
"""Verb → the module with its `VERB`, imported only when the verb is used."""


def main(argv: "list[str]") -> int:
    """Answers, and returns the exit code. `argv` is without the program's name."""
    if argv in (["--version"], ["-V"]):
        sys.stdout.write(f"{PROGRAM} {VERSION}\n")
        return 0
    from cli.options import behind_verb
    from guard.errors import GuardError

    argv = behind_verb(argv)
    as_json = "--json" in argv or "--output=json" in argv or "--output json" in " ".join(argv)
    _open_closed()
    try:
        if argv[:1] == ["mcp"]:
            from cli.surroundings import bring_state

            bring_state()
            from cli.opsagent_mcp import main as mcp

            return mcp(argv[1:])
        if argv and argv[0] in VERB_MODULES:
            from importlib import import_module

            from cli.opsx import run_verb

            verb = import_module(VERB_MODULES[argv[0]]).VERB
            return run_verb(PROGRAM, {verb.name: verb}, argv)
        if argv[:1] == ["help"] and len(argv) == 2 and argv[1] in (*VERB_MODULES, "mcp"):
            return main([argv[1], "--help"])
        if argv[:1] == ["resume"]:
            argv = argv[1:] if argv[1:] in (["-h"], ["--help"]) else ["--resume", *(argv[1:] or ["last"])]
        parsed = _parsed(argv)
        if parsed is None:
            return 0
        from cli.surroundings import bring_state

        bring_state()
        if _is_conversation(parsed):
            from cli.opsagent_repl import main as talk

            return talk(parsed)
        from cli.opsagent_ask import main as ask

        return ask(parsed)
    except GuardError as failure:
        from cli.report import error

        return error(failure, as_json=as_json)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    except OSError as failure:
        from cli.report import cannot_write, error

        return error(cannot_write(failure), as_json=as_json)


def _open_closed() -> None:
    """Streams that the caller closed: nothing comes from them, and what is written there is dropped."""
    for stream, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, stream) is None:
            setattr(sys, stream, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _is_conversation(parsed: "Parsed") -> bool:
    """Whether no single question is asked: a person is at the terminal, or asked for a conversation by an option."""
    if any(name in parsed.values for name in ("prompt", "json", "output", "nagios", "watch", "timeout", "lang")):
        return False
    return parsed.flag("plain") or "resume" in parsed.values or sys.stdin.isatty()


def itself() -> "Verb":
    """What `opsagent` without a verb takes."""
    from cli.options import Option, Verb

    return Verb(
        "",
        "cli.opsagent_ask",
        "opsagent: looks at this machine and answers in the language of the question; it changes nothing by itself.",
        usage="[options]                     a conversation on this terminal\n"
        "       opsagent -p 'QUESTION' [options]      (-p - or a pipe: the question is read from standard input)",
        options=(
            Option("prompt", "the question, in plain words, English or Chinese", value="TEXT", short="p"),
            Option("json", "print one JSON object (the same as --output json)"),
            Option("output", "text (default), json, or stream-json: events, one a line", value="FORM"),
            Option("nagios", "one line with state and figures; exit 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN"),
            Option("lang", "answer in en or zh (default: the language of the question)", value="LANG"),
            Option(
                "timeout", "seconds: for all checks 1..120 (default 20); for a model 1..86400 (no limit)", value="S"
            ),
            Option("watch", "ask again every so often until Ctrl-C: 30s, 2m (at least 2s)", value="TIME"),
            Option(
                "brain", "who answers: openai, anthropic, offline, script:FILE, or a name of your own", value="NAME"
            ),
            Option("model", "the model to ask for, in place of the brain's own", value="MODEL"),
            Option("max-turns", "at most so many replies of the model, 1..1000 (default 100)", value="N"),
            Option("target", "the machine to look at; only `local` in this version", value="NAME"),
            Option("read-only", "refuse everything above R0"),
            Option("resume", "go on with this conversation (opsagent sessions), or `last`", value="ID"),
            Option("continue", "go on with the last conversation: --resume last"),
            Option("plain", "conversation: lines of text without control codes"),
            Option("version", "print the version", short="V"),
        ),
        text="""
examples:
  opsagent -p "check this machine's disk and memory"
  opsagent -p '哪些服务挂了'
  opsagent -p 'disk' --nagios
  journalctl -u nginx | opsagent -p 'why?'
  opsagent --continue -p 'now restart it'

`opsagent mcp` serves a host that speaks the Model Context Protocol (docs/mcp.md), `opsagent acp` an editor that speaks
the Agent Client Protocol (docs/editors.md), `opsagent rpc` a client of your own over JSON-RPC (docs/protocol.md).

With a model (docs/brains.md: a key in OPENAI_API_KEY or ANTHROPIC_API_KEY, an address in OPENAI_BASE_URL, or [brains]
in config.toml) the question is a turn of a conversation, with tools that the guard holds. A change is asked about on
the terminal; without one the answer ends with code 3 and the line for a person: opsx approve a-…

Without a model, runbooks answer: they read a few files and programs through the guard (opsx --help) and say what is
wrong, what was not checked and why, and where to look next. A question that asks for a change gets the look only.
A text that is piped in beside -p TEXT is read too: its error lines are grouped, and say where to look.

opsagent doctor says what works here and how to mend what does not (opsagent doctor --help); opsagent config check and
opsagent usage are about settings and about what models were asked (docs/config.md).
opsagent runbook list|show|test tells what can be checked (opsagent runbook --help).
opsagent sessions list|show|export|fork|rm|prune is about earlier conversations (opsagent sessions --help).
opsagent install HOST puts server and hook into Claude Code, Codex or Gemini CLI (opsagent install --help).""",
        codes=(
            "0 answered · 1 no brain could answer · 2 usage · 3 a change needs approval · 4 refused · "
            "7 state damaged or locked · 8 nothing could be checked · 124 timed out · 130 interrupted"
        ),
    )


def verbs() -> "tuple[Verb, ...]":
    """The verbs of this launcher, for completions and the reference."""
    from importlib import import_module

    from cli import opsagent_mcp

    return *(import_module(module).VERB for module in VERB_MODULES.values()), opsagent_mcp.VERB


def help_page() -> str:
    """The help of `opsagent` itself."""
    from cli.options import help_of

    return help_of(PROGRAM, itself()).replace(f"{PROGRAM}  ", f"{PROGRAM} ")


def _parsed(argv: "list[str]") -> "Parsed | None":
    """The arguments, or None when help or the version was all that was asked for.

    Raises:
        UsageError: an unknown option or verb, or no question.
    """
    from cli.options import name_config, parse
    from guard.errors import UsageError

    verb = itself()
    if argv and not argv[0].startswith("-") and argv != ["help"]:
        raise _unexpected(argv)
    try:
        parsed = parse(PROGRAM, verb, argv)
    except UsageError as failure:
        raise UsageError(failure.message.replace(f"{PROGRAM}  ", f"{PROGRAM} "), hint=f"{PROGRAM} --help") from None
    if parsed.flag("help") or argv == ["help"]:
        from cli.report import write_help

        write_help(help_page())
        return None
    if parsed.flag("version"):
        sys.stdout.write(f"{PROGRAM} {VERSION}\n")
        return None
    if parsed.words:
        raise _unexpected(parsed.words)
    if parsed.values.pop("continue", False):
        if "resume" in parsed.values:
            raise UsageError("--continue and --resume exclude each other", hint=f"{PROGRAM} --help")
        parsed.values["resume"] = "last"
    name_config(parsed)
    return parsed


def _unexpected(argv: "list[str]") -> Exception:
    from cli.opsx import ALIASES, BY_NAME
    from cli.options import nearest
    from guard.errors import UsageError
    from guard.quoting import joined

    word = argv[0]
    shown = repr(word)[1:-1][:60]
    if word == "version":
        return UsageError(f"{PROGRAM} has no verb version", hint=f"{PROGRAM} --version")
    if word in BY_NAME or word in ALIASES:
        return UsageError(f"{PROGRAM} has no verb {shown}; it is a verb of opsx", hint=f"opsx {shown} --help")
    close = nearest(word, (*VERB_MODULES, "mcp", "resume"))
    asks = f"{PROGRAM} -p {joined([' '.join(argv)])[:200]} (a question goes after -p; {PROGRAM} --help)"
    return UsageError(
        f"{PROGRAM} does not know what to do with {shown!r}{close}", hint=f"{PROGRAM} --help" if close else asks
    )
