"""`opsagent runbook list|show|test`: what can be checked, by which commands and limits, and whether a file is right."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import core
from cli import own_runbooks, surroundings
from cli.options import Option, Verb
from cli.report import line, safe, write
from guard.errors import NotPermitted, UsageError
from guard.quoting import joined
from guard.types import Actor, Level
from runbooks.catalogue import OVERVIEW, Books
from runbooks.look import look, this_machine
from runbooks.model import Answers, Threshold
from runbooks.wording import answer_text, table, title_of

if TYPE_CHECKING:
    from cli.options import Parsed
    from runbooks.model import Command, Runbook

VERB = Verb(
    "runbook",
    "cli.opsagent_runbook",
    "list what can be checked, show one runbook's commands and limits, or test one",
    usage="list | show ID | test ID|FILE.toml",
    options=(
        Option("json", "with list and show: one JSON object"),
        Option("lang", "titles and sentences in en or zh (default en)", value="LANG"),
    ),
    text="""
Your own runbooks are TOML files in the folder `runbooks` beside config.toml (docs/runbooks.md). `test` reads
one, judges each of its commands (only reads may run), runs it and shows what it finds.""",
    codes="0 done · 2 the file or the usage is wrong · 4 a command is no read · 8 nothing could be checked",
)


def main(parsed: Parsed) -> int:
    """Runs one of the three."""
    words = parsed.words
    lang = parsed.value("lang", "en")
    if lang not in ("en", "zh"):
        raise UsageError(f"--lang takes en or zh, not {lang!r}", hint=parsed.help_line())
    if words == ["list"]:
        return _list(own_runbooks.books(), lang, as_json=parsed.flag("json"))
    if len(words) == 2 and words[0] == "show":
        return _show(own_runbooks.books(), words[1], lang, as_json=parsed.flag("json"))
    if len(words) == 2 and words[0] == "test":
        return _test(words[1], lang)
    raise UsageError("say list, show ID, or test ID|FILE.toml", hint=parsed.help_line())


def _list(books: Books, lang: str, *, as_json: bool) -> int:
    rows = [_row(books, id, lang) for id in books.known]
    if as_json:
        line({"format": 1, "runbooks": rows})
        return 0
    shown = table((row["id"], f"{row['about']}{' · ' + row['file'] if row['file'] else ''}") for row in rows)
    write("".join(f"{safe(text)}\n" for text in shown))
    return 0


def _row(books: Books, id: str, lang: str) -> dict[str, Any]:
    book = books.load(id)
    file = books.own[id].file if id in books.own else None
    return {"id": id, "title": book.TITLE.of(lang), "about": book.ABOUT.of(lang), "file": file}


def _show(books: Books, id: str, lang: str, *, as_json: bool) -> int:
    if id == OVERVIEW:
        members = books.members_of(OVERVIEW)
        text = f"{title_of(id).of(lang)}: {', '.join(members)}\n"
        if as_json:
            line({"format": 1, "id": id, "members": list(members)})
        else:
            write(text)
        return 0
    book = books.load(id)
    first = [joined(command.argv) for command in _first(book)]
    limits = _limits(book)
    if as_json:
        line({"format": 1, **_row(books, id, lang), "first_commands": first, "limits": limits})
        return 0
    lines = [f"{id}: {book.TITLE.of(lang)}", book.ABOUT.of(lang), "", "asks first:"]
    lines += [f"  {command}" for command in first]
    lines += ["", "limits:"] if limits else []
    for name, limit in limits.items():
        shown = ", ".join(
            f"{word} {limit['when']} {limit[word]:g} {limit['unit']}".rstrip()
            for word in ("warn", "crit")
            if limit[word] is not None
        )
        lines.append(f"  {name.lower()}: {shown} ({limit['source']})")
    write("".join(f"{safe(text)}\n" for text in lines))
    return 0


def _first(book: Runbook) -> list[Command]:
    return book.commands(Answers(), this_machine())


def _limits(book: Runbook) -> dict[str, dict[str, Any]]:
    from runbooks.own import OwnRunbook

    if isinstance(book, OwnRunbook):
        found = {f"{rule.command}.{rule.id}": rule.limits for rule in book.rules}
    else:
        found = {name: value for name, value in vars(book).items() if isinstance(value, Threshold)}
    return {
        name: {**limit.as_json(), "unit": limit.unit, "source": limit.source}
        for name, limit in found.items()
        if limit is not None
    }


def _test(what: str, lang: str) -> int:
    books = own_runbooks.books()
    if what.endswith(".toml") or "/" in what:
        try:
            book = own_runbooks.read(os.path.abspath(what))
        except OSError as error:
            raise UsageError(f"{what}: {error.strerror}", hint="opsagent runbook test FILE.toml") from None
        books = Books([book])
        what = book.ID
    for command in _first(books.load(what)) if what != OVERVIEW else []:
        judged = core.check(joined(command.argv), cwd="/", actor=Actor.RUNBOOK, enforcement=surroundings.enforcement())
        if judged.level != Level.R0:
            raise NotPermitted(
                f"{joined(command.argv)} is {judged.level.name}: {judged.decision.text}",
                hint=f"a runbook may only read; see: opsx explain {joined([joined(command.argv)])}",
            )
    from capabilities.run import read_only_runner
    from execution import open_guard
    from guard.clock import SystemClock

    guard = open_guard(surroundings.policy(), outputs_folder=surroundings.outputs_folder())
    where = this_machine()
    report = look("", read_only_runner(guard), where, utc=SystemClock().utc, id=what, lang=lang, books=books)
    write("".join(f"{safe(text)}\n" for text in answer_text(report, now_s=where.now_s).splitlines()))
    return report.exit_code
