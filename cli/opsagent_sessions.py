"""`opsagent sessions list|show|export|fork|rm|prune`: the conversations that this user has had."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agent.sessions.export import as_json, as_markdown, summary_object
from agent.sessions.on_record import runs_in
from agent.sessions.store import KEEP, Sessions
from cli.options import Option, Verb
from cli.report import line, safe, write
from guard.errors import UsageError
from guard.redact import Redactor
from guard.render import clip, pad, visible_line

if TYPE_CHECKING:
    from agent.sessions.store import Conversation, RunsOf, Summary
    from cli.options import Parsed

VERB = Verb(
    "sessions",
    "cli.opsagent_sessions",
    "list, show, export, copy or delete the conversations that you have had",
    usage="list | show ID | export ID | fork ID | rm ID… | prune",
    options=(
        Option("json", "print one JSON object"),
        Option("limit", "list: at most N rows, 1..100000 (default 20; with --json all)", value="N"),
        Option("format", "export: markdown (default) or json", value="FORM"),
        Option("turns", "fork: only the first N questions and what followed them", value="N"),
        Option("keep", "prune: how many of those used last stay, 0..1000000", value="N"),
        Option("older-than", "prune: only what was not used for so long: 12h, 30d", value="TIME"),
    ),
    text=f"""
ID is an id from the list, the beginning of one, or `last`. A conversation is kept in the state folder, redacted, one
file each (docs/sessions.md); what was run, approved and denied is in the log (opsx executions, opsx audit).

fork copies a conversation so that it can go on in two ways; of a damaged file it copies what stands before the damage.
rm deletes those that are named, prune many: without options the {KEEP} used last stay; with --older-than alone, what is
younger; with both, only what is neither among the first nor younger goes. A conversation that is open stays.
By itself one goes when it was not used for a year ([sessions] keep_days in config.toml), and that is said.""",
    codes="0 done · 2 usage, or there is no such conversation · 7 a file is damaged, or the state cannot be used",
)

_AGE_S = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_TEXT_COLUMNS = 60
_BRAIN_COLUMNS = 12


def main(parsed: Parsed) -> int:
    """Runs one of the six."""
    words = parsed.words
    verbs = {"show": _show, "export": _export, "fork": _fork}
    if words == ["list"] or not words:
        _takes(parsed, "list", ("json", "limit"))
        return _list(parsed)
    if words == ["prune"]:
        _takes(parsed, "prune", ("json", "keep", "older-than"))
        return _prune(parsed)
    if len(words) > 1 and words[0] == "rm":
        _takes(parsed, "rm", ("json",))
        return _rm(parsed)
    if len(words) == 2 and words[0] in verbs:
        _takes(parsed, words[0], {"show": ("json",), "export": ("json", "format"), "fork": ("json", "turns")}[words[0]])
        return verbs[words[0]](parsed, words[1])
    raise UsageError("say list, show ID, export ID, fork ID, rm ID or prune", hint=parsed.help_line())


def _takes(parsed: Parsed, action: str, names: tuple[str, ...]) -> None:
    for name in parsed.values:
        if name not in names:
            raise UsageError(f"sessions {action} has no option --{name}", hint=parsed.help_line())


def _list(parsed: Parsed) -> int:
    limit = parsed.whole_number("limit", 0 if parsed.flag("json") else 20, low=1, high=100_000) or None
    rows = Sessions.open(Redactor()).listing(limit=limit)
    if parsed.flag("json"):
        line({"format": 1, "sessions": [summary_object(row) for row in rows]})
        return 0
    for row in rows:
        write(_row(row) + "\n")
    if not rows:
        write("there is no conversation yet\n", to_stderr=True)
    return 0


def _row(row: Summary) -> str:
    mark = "!" if row.fault else "*" if row.is_open else " "
    text = clip(visible_line(row.fault or row.first_line), _TEXT_COLUMNS)
    brain = pad(clip(visible_line(row.brain), _BRAIN_COLUMNS), _BRAIN_COLUMNS)
    return f"{mark} {row.id:13} {row.used_at[:19]}Z {_size(row.size_bytes):>8}  {brain} {text}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:.1f} kB"


def _show(parsed: Parsed, which: str) -> int:
    return _put_out(_read(which), as_object=parsed.flag("json"))


def _export(parsed: Parsed, which: str) -> int:
    form = parsed.value("format", "json" if parsed.flag("json") else "markdown")
    if form not in ("markdown", "json"):
        raise UsageError(f"there is no form {repr(form)[:40]}", hint="--format markdown or --format json")
    return _put_out(_read(which), as_object=form == "json")


def _read(which: str) -> Conversation:
    redactor = Redactor()
    return Sessions.open(redactor).read(which, runs_of=_log(redactor))


def _log(redactor: Redactor) -> RunsOf:
    import execution

    return runs_in(execution.open_store(redactor))


def _put_out(conversation: Conversation, *, as_object: bool) -> int:
    if as_object:
        line(as_json(conversation))
    else:
        write(as_markdown(conversation))
    return 0


def _fork(parsed: Parsed, which: str) -> int:
    turns = parsed.whole_number("turns", 0, low=1, high=1_000_000) or None
    redactor = Redactor()
    copy = Sessions.open(redactor).fork(which, turns=turns, runs_of=_log(redactor))
    if parsed.flag("json"):
        line(
            {
                "format": 1,
                "id": copy.header.id,
                "forked_from": copy.header.forked_from,
                "messages": len(copy.messages),
                "notes": list(copy.notes),
            }
        )
        return 0
    write(f"{copy.header.id}\n")
    for note in (f"{len(copy.messages)} messages of {copy.header.forked_from} were copied", *copy.notes):
        write(f"opsagent: {safe(note)}\n", to_stderr=True)
    return 0


def _rm(parsed: Parsed) -> int:
    sessions = Sessions.open(Redactor())
    # Each has to be there before any goes: a mistyped id must not leave half of it done.
    wanted = [sessions.find(which) for which in parsed.words[1:]]
    return _deleted(tuple(sessions.delete(one) for one in dict.fromkeys(wanted)), as_object=parsed.flag("json"))


def _prune(parsed: Parsed) -> int:
    age_s = _age_s(parsed.value("older-than")) if parsed.value("older-than") else 0
    keep = parsed.whole_number("keep", 0 if age_s else KEEP, low=0, high=1_000_000)
    return _deleted(Sessions.open(Redactor()).prune(keep=keep, older_than_s=age_s), as_object=parsed.flag("json"))


def _deleted(gone: tuple[str, ...], *, as_object: bool) -> int:
    if as_object:
        line({"format": 1, "deleted": list(gone)})
        return 0
    for session in gone:
        write(f"{session}\n")
    write(f"{len(gone)} deleted\n", to_stderr=True)
    return 0


def _age_s(text: str) -> int:
    age = re.fullmatch(r"(\d{1,6})([mhdw])", text)
    if age is None or not int(age[1]):
        raise UsageError(f"{repr(text)[:40]} is not an age", hint="write 90m, 12h, 30d or 8w")
    return int(age[1]) * _AGE_S[age[2]]
