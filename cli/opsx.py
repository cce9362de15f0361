"""`opsx`: the guard for people and scripts. Reads the verb, imports its module, reports errors."""

import os
import sys

from cli.options import Option, Verb, behind_verb, help_of, name_config, overview_of, parse
from cli.version import VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.errors import GuardError

PROGRAM = "opsx"
PROMISE = "opsx: judge, run and record shell commands. Reads run in a sandbox; changes need a person's approval."
CODES = (
    "0 done · 1 the command failed · 2 usage · 3 needs approval · 4 refused · 5 not saved · 6 unknown end · "
    "7 state damaged, locked or unwritable · 124 timed out · 130 interrupted"
)

JSON = Option("json", "print JSON: one object, or one a line where it is a log")
FILE = Option("file", "read the command from FILE (- is standard input)", value="FILE", short="f")
TARGET = Option("target", "where it would run; only `local` in this version", value="NAME")
CWD = Option("cwd", "folder to run in (default: the current one)", value="DIR")
READ_ONLY = Option("read-only", "refuse everything above R0")
WHY = Option("why", "your reason, kept with the record", value="TEXT")
COMMAND = "[options] -- CMD | 'TEXT' | -f FILE | -"
COMMAND_TEXT = """
After `--`, one word is bash text and several words are an argv, quoted one by one. Without `--` the command must be
exactly one word. R0 reads only, R1 is reversible, R2 is high risk or not understood, R3 is irreversible."""
CHANGE_TEXT = """
Shows the difference and keeps it as a request; after `opsx approve a-…` the same again saves the file, changes it in
one step, and names the way back. Owner and mode of a present file stay (docs/edits.md)."""

VERBS = (
    Verb(
        "check",
        "cli.opsx_check",
        "judge a command: level, decision and why; nothing runs",
        usage=COMMAND,
        options=(
            JSON,
            FILE,
            TARGET,
            CWD,
            READ_ONLY,
            Option("batch", 'judge JSONL rows {"cmd": …} from standard input, one JSON object a row out, in order'),
            Option("lines", "with --batch: every input line is a command"),
        ),
        text=COMMAND_TEXT,
        codes="0 would run · 3 needs approval · 4 refused · 2 usage",
    ),
    Verb(
        "explain",
        "cli.opsx_check",
        "say in words what a command does, part by part, and why it has its level",
        usage=COMMAND,
        options=(FILE, TARGET, CWD, READ_ONLY),
        text=COMMAND_TEXT,
        codes="as check",
    ),
    Verb(
        "exec",
        "cli.opsx_exec",
        "run a command through the guard: reads at once in a sandbox, anything else needs approval",
        usage=COMMAND + " | --plan FILE",
        options=(
            JSON,
            FILE,
            TARGET,
            CWD,
            READ_ONLY,
            WHY,
            Option("timeout", "seconds until a read is stopped, 1..600 (default 120)", value="S"),
            Option("snapshot-file", "save this file too before a change", value="PATH", many=True),
            Option("snapshot-cmd", "keep what this read says before a change", value="NAME::CMD", many=True),
            Option("no-snapshot-of", "go on although this path or state is not saved", value="NAME", many=True),
            Option("plan", "the commands of FILE in order, each approved; stops at the first failure", value="FILE"),
            Option(
                "dead-man", "seconds until a change that can cut this ssh connection is taken back; 0: never", value="S"
            ),
            Option("passthrough", "stream the output and end with the command's own exit code (ours become 125)"),
        ),
        text=COMMAND_TEXT,
        codes=CODES,
    ),
    Verb(
        "write",
        "cli.opsx_edit",
        "put a whole new content into one file, through the guard",
        usage="[options] PATH -f FILE | PATH -",
        options=(
            JSON,
            Option("file", "the new content (- is standard input)", value="FILE", short="f"),
            TARGET,
            CWD,
            READ_ONLY,
            WHY,
        ),
        text=CHANGE_TEXT,
        codes=CODES,
    ),
    Verb(
        "edit",
        "cli.opsx_edit",
        "replace one passage of a file, or put a unified difference into it, through the guard",
        usage="[options] PATH --old TEXT --new TEXT | PATH -f DIFF | PATH -",
        options=(
            JSON,
            Option("old", "the passage; it has to occur exactly once, to the letter", value="TEXT"),
            Option("new", "what stands there then", value="TEXT"),
            Option("file", "a unified difference of this one file (- is standard input)", value="DIFF", short="f"),
            TARGET,
            CWD,
            READ_ONLY,
            WHY,
        ),
        text=CHANGE_TEXT,
        codes=CODES,
    ),
    Verb(
        "hook",
        "cli.opsx_hook",
        "answer an agent host's hook before a tool call; the host runs this, with the call on standard input",
        usage="claude-code | codex | gemini",
        options=(Option("settings", "print what to put into the host's settings; changes nothing"),),
        text="""
Reads go through `opsx exec`, so that they are enforced and recorded; changes go to a person; what cannot be undone is
refused. Every fault of its own, and any answer that takes more than 5 s, stops the call (docs/hook.md).""",
        codes="0 answered · 2 the call is stopped",
    ),
    Verb(
        "list",
        "cli.opsx_list",
        "where things stand: what waits, is approved, goes on, has no known end, was saved last",
        options=(JSON,),
    ),
    Verb(
        "executions",
        "cli.opsx_records",
        "list what was run, newest first",
        usage="[options]",
        options=(
            JSON,
            Option("status", "only that status: succeeded, failed, timed_out, cancelled, unknown, running", value="S"),
            Option("since", "only those begun at or after this time (RFC 3339, or 15m, 2h, 3d ago)", value="TIME"),
            Option("limit", "at most N rows, 1..1000 (default 20)", value="N"),
            Option("all", "the reads of runbooks too, which are counted only"),
        ),
    ),
    Verb(
        "wait",
        "cli.opsx_running",
        "wait for a change that goes on by itself",
        usage="ID",
        options=(JSON, Option("timeout", "seconds to wait, 1..86400 (default 86400)", value="S")),
        codes="how it ended: 0 · 1 failed · 130 cancelled · 6 unknown · 124 still running",
    ),
    Verb(
        "tail",
        "cli.opsx_running",
        "print what a change has said so far, and follow it to its end",
        usage="ID",
        options=(Option("once", "print what is there and leave"),),
        codes="as wait",
    ),
    Verb(
        "cancel",
        "cli.opsx_running",
        "stop a running change (TERM, then KILL); what is unsafe to interrupt needs --force",
        usage="ID",
        options=(JSON, Option("force", "stop it although that leaves something half done")),
    ),
    Verb(
        "confirm",
        "cli.opsx_confirm",
        "keep a change that would be taken back by itself; over a connection opened after it. Without ID: what waits",
        usage="[ID]",
        options=(JSON,),
        codes="0 confirmed · 4 not by this person, or not over this connection",
    ),
    Verb("show", "cli.opsx_records", "show one execution or request in full", usage="ID", options=(JSON,)),
    Verb(
        "snapshot",
        "cli.opsx_snapshot",
        "save files before a change, and look at what was saved",
        usage="create PATH… | list | show ID | verify [ID…] | prune",
        options=(
            JSON,
            Option("snapshot-cmd", "create: keep what a read says, too", value="NAME::CMD", many=True),
            Option("no-snapshot-of", "create: leave out a path", value="PATH", many=True),
            Option("keep", "prune: how many stay, 0..100000 (default 200)", value="N"),
        ),
        codes="0 done · 5 something cannot be saved · 7 verify found damage",
    ),
    Verb(
        "rollback",
        "cli.opsx_snapshot",
        "take a change back: shows every path and conflict, asks a person, saves what is there, puts back, verifies",
        usage="[options] e-… | s-…",
        options=(
            JSON,
            Option("leave-conflicts", "take back the rest without what others changed since"),
            Option("overrule", "take PATH back although it was changed since", value="PATH", many=True),
            Option("full", "show every line of files that come back or go whole"),
            Option("plan", "only if the plan still has this digest", value="DIGEST"),
        ),
        codes="0 all is back · 1 conflicts or some of it · 3 needs a person · 4 changed since the plan was made",
    ),
    Verb(
        "pending",
        "cli.opsx_records",
        "list the requests that wait for approval",
        options=(JSON, Option("watch", "go on and print each new one as it comes; Ctrl-C ends it")),
    ),
    Verb(
        "approve",
        "cli.opsx_approve",
        "show a request in full and ask the person at this terminal; a yes is good for one run of exactly that",
        usage="[options] a-… | -- CMD | 'TEXT' | -f FILE | --plan FILE",
        options=(
            JSON,
            FILE,
            TARGET,
            CWD,
            Option("force", "R3: approve what cannot be undone; its object has to be typed as shown"),
            Option("ttl", "how long it holds: 900, 90s, 15m, 2h (default 15m; 1 s to 24 h)", value="TIME"),
            Option("uses", "for how many runs, 1..100 (default 1)", value="N"),
            Option("plan", "one command a line, or JSONL with command, cwd, why: one screen, one answer", value="FILE"),
            WHY,
            Option("snapshot-file", "as in exec", value="PATH", many=True),
            Option("snapshot-cmd", "as in exec", value="NAME::CMD", many=True),
            Option("no-snapshot-of", "as in exec", value="PATH", many=True),
        ),
        text=COMMAND_TEXT,
        codes="0 approved · 2 usage · 3 not approved · 4 denied, not a person, or nothing that can be approved",
    ),
    Verb(
        "deny",
        "cli.opsx_approve",
        "say no to a waiting request; remembered when the same is asked again",
        usage="a-… [--reason TEXT]",
        options=(JSON, Option("reason", "why not; the asker is told", value="TEXT")),
        codes="0 denied · 4 not a person",
    ),
    Verb(
        "stamps",
        "cli.opsx_approve",
        "list the approvals that are live",
        options=(JSON, Option("all", "those that are over, too")),
    ),
    Verb("revoke", "cli.opsx_approve", "take an approval back", usage="t-…", options=(JSON,)),
    Verb(
        "resolve",
        "cli.opsx_approve",
        "say how a run ended whose end is not on record; until then it blocks what touches the same",
        usage="e-… --done | --not-done",
        options=(
            JSON,
            Option("done", "it did what it was to do"),
            Option("not-done", "it did not"),
            Option("evidence", "how you know, kept with the record", value="TEXT"),
        ),
        codes="0 recorded · 4 not a person",
    ),
    Verb(
        "freeze",
        "cli.opsx_approve",
        "stop everything above R0, in every shell at once",
        usage="[REASON…]",
        options=(JSON, Option("reason", "why; shown to everybody who is stopped", value="TEXT")),
    ),
    Verb(
        "thaw", "cli.opsx_approve", "end the stop; only a person can", options=(JSON,), codes="0 done · 4 not a person"
    ),
    Verb(
        "audit",
        "cli.opsx_records",
        "print the end of the log; verify proves it whole, export prints all of it as JSONL, retain lets old parts go",
        usage="[verify | export | retain] [options]",
        options=(
            JSON,
            Option("tail", "the last N entries, 1..100000 (default 20)", value="N"),
            Option("journal", "verify: hold it against the heads that root's runs sent to the journal"),
            Option("keep-days", "retain: what is older may go (default: as configured)", value="N"),
            Option("keep-mb", "retain: the oldest may go while the log is larger (default: as configured)", value="N"),
            Option("plan", "retain: only show what would go"),
        ),
        codes="0 done · 7 verify found damage",
    ),
    Verb(
        "rules",
        "cli.opsx_rules",
        "your own rules: what counts, whether the examples hold, which file may lower a level",
        usage="list | test [FILE…] | lint [FILE…] | trust FILE",
        options=(JSON,),
        codes="0 done · 1 an example does not hold, or a file cannot be used · 3 not trusted · 4 not a person",
    ),
    Verb(
        "selftest",
        "cli.opsx_selftest",
        "prove judge, sandbox, log and a round trip, in a state folder of its own",
        options=(JSON,),
        codes="0 all passed · 1 something failed",
    ),
    Verb(
        "sandbox",
        "cli.opsx_sandbox",
        "what the sandbox of reads really holds here, tried now, and what is missing for more",
        usage="doctor",
        options=(JSON,),
        text="""
Inside every profile a program attempts what must be stopped (writing, signalling, reaching out …) and what must be
left; nothing of yours is touched. docs/sandbox.md tells what each layer is for.""",
        codes="0 every attempt ended as it must · 1 one did not, or nothing is enforced",
    ),
    Verb(
        "completions",
        "cli.completions",
        "print shell completions for opsx and opsagent",
        usage="bash | zsh | fish",
    ),
)
BY_NAME = {verb.name: verb for verb in VERBS}
ALIASES = {"history": ["executions"], "ps": ["executions", "--status", "running"], "status": ["list"]}
"""Other words for the same, by habit."""
HABITS = {
    "run": "exec -- CMD",
    **dict.fromkeys(("undo", "revert", "restore", "back"), "rollback"),
    **dict.fromkeys(("log", "logs"), "executions"),
    **dict.fromkeys(("diff", "cat", "view", "info"), "show ID"),
    **dict.fromkeys(("reject", "no"), "deny ID"),
    **dict.fromkeys(("stop", "kill"), "cancel ID"),
    **dict.fromkeys(("yes", "ok", "accept", "allow"), "approve ID"),
    **dict.fromkeys(("snapshots", "backup", "save"), "snapshot list"),
    **dict.fromkeys(("requests", "queue", "todo"), "pending"),
    "version": "--version",
}
"""Words that people try, and what they mean here; said, never done."""
STATELESS = frozenset(("check", "explain", "hook", "completions"))
"""Verbs that record nothing and have to answer at once: they move no state folder to its place."""


def main(argv: "list[str]") -> int:
    """Runs one verb and returns the exit code. `argv` is without the program's name."""
    if argv[:1] == ["help"] and len(argv) == 2 and argv[1] in (*BY_NAME, *ALIASES):
        argv = [argv[1], "--help"]
    if not argv or argv[0] in ("-h", "--help", "help"):
        from cli.report import write_help

        write_help(overview_of(PROGRAM, PROMISE, VERBS, f"exit codes: {CODES}"), to_stderr=not argv)
        return 0 if argv else 2
    if argv[0] in ("-V", "--version"):
        sys.stdout.write(f"opsx {VERSION}\n")
        return 0
    argv = behind_verb(argv)
    return run_verb(PROGRAM, BY_NAME, [*ALIASES.get(argv[0], argv[:1]), *argv[1:]])


def _no_verb(program: str, argv: "list[str]", verbs: "dict[str, Verb]") -> "GuardError":
    from cli.opsagent import VERB_MODULES
    from cli.options import nearest
    from guard.errors import UsageError

    word = argv[0]
    shown = repr(word)[1:-1][:60]
    if word.partition("=")[0] == "--config":
        return UsageError("--config FILE belongs to a verb, and none was named", hint=f"{program} --help")
    if word in VERB_MODULES:
        return UsageError(f"{program} has no verb {shown}; it is a verb of opsagent", hint=f"opsagent {shown} --help")
    close, hint = nearest(word, verbs), f"{program} --help"
    if word in HABITS:
        hint = f"{program} {HABITS[word]}"
    elif not close and not word.startswith("-"):
        from guard.quoting import joined

        hint = f"{program} exec -- {joined(argv)[:200]} (if that is a command; {program} --help lists the verbs)"
    return UsageError(f"{program} has no verb {shown!r}{close}", hint=hint)


def run_verb(program: str, verbs: "dict[str, Verb]", argv: "list[str]") -> int:
    """Parses and runs `argv[0]`, reporting whatever goes wrong in three parts."""
    from guard.errors import GuardError

    # A hook whose answer cannot be written must fail, so that its host stops the call.
    for stream in () if argv[0] == "hook" else ("stdout", "stderr"):
        if getattr(sys, stream) is None:  # closed by the caller: what is written there is dropped
            setattr(sys, stream, open(os.devnull, "w", encoding="utf-8", closefd=True))  # noqa: SIM115
    as_json = "--json" in argv[1 : argv.index("--") if "--" in argv else len(argv)]
    try:
        verb = verbs.get(argv[0])
        if verb is None:
            raise _no_verb(program, argv, verbs)
        parsed = parse(program, verb, argv[1:])
        if parsed.flag("help"):
            from cli.report import write_help

            write_help(help_of(program, verb))
            return 0
        name_config(parsed)
        if verb.name not in STATELESS:
            from cli.surroundings import bring_state

            bring_state()
        from importlib import import_module

        code: int = import_module(verb.module).main(parsed)
        return code
    except GuardError as failure:
        from cli.report import error

        return error(failure, as_json=as_json)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130
    except BrokenPipeError:
        return 0
    except OSError as failure:
        from cli.report import cannot_write, error

        return error(cannot_write(failure), as_json=as_json)
    except Exception as failure:
        # The outermost edge of a shell: a traceback may hold a secret, so only where and what is shown, redacted.
        from cli.report import error, internal

        return error(internal(failure), as_json=as_json)
