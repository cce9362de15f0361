"""One question about this machine, from its words to a report. Runs reads through the `ask` that it is given."""

import os
import time

from runbooks import planner, runner
from runbooks.catalogue import BUILT_IN, OVERVIEW, Books
from runbooks.model import Where
from runbooks.report import Report, report_of
from runbooks.since import changes
from runbooks.words import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from runbooks.model import Ask
    from runbooks.piped import Piped

BRAIN = "offline"


def this_machine(*, now_s: "float | None" = None) -> Where:
    """This machine and moment, as the runbooks may know them."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
            groups = file.read()
    except OSError:  # no /proc: the reads say what is missing
        groups = ""
    now_s = time.time() if now_s is None else now_s
    return Where(os.uname().nodename, os.geteuid(), now_s, groups=groups, pid=os.getpid())


def look(
    text: str,
    ask: "Ask",
    where: Where,
    *,
    utc: "Callable[[], str]",
    id: str = "",
    lang: str = "",
    brain: str = BRAIN,
    total_s: float = runner.TOTAL_S,
    on_step: "Callable[[runner.Step], None] | None" = None,
    stopped: "Callable[[], bool] | None" = None,
    recall: "Callable[[], Mapping[str, Any]] | None" = None,
    books: Books = BUILT_IN,
    piped: "Piped | None" = None,
    redact: "Callable[[str], str]" = str,
) -> Report:
    """Answers a question about this machine.

    Args:
        ask: runs one argv as a read through the guard (`capabilities.run.read_only_runner`).
        id: this runbook, whatever the words say; "" chooses by the words.
        lang: `en` or `zh`; "" answers in the language of the question.
        piped: a text that came with the question: its errors are findings too, and where the question names no check,
            they choose what is looked at.
        redact: takes secrets out of what is shown of `piped`.
        recall: gives what was kept of earlier reports (`runbooks.since.kept_of`), for "changed since".
    Raises:
        UnknownRunbook: there is no runbook `id`.
        runner.Stopped: `stopped` said so.
    """
    at = utc()
    plan = (
        planner.Plan([planner.Chosen(id)], lang=lang or "en")
        if id
        else planner.plan(text, own={id: book.phrases for id, book in books.own.items()})
    )
    if piped is not None and not id:
        plan = _with_piped(plan, piped)
    if lang:
        plan = plan.replace(lang=lang)
    question = Question(text[: planner.MOST_CHARACTERS])
    where = where.replace(
        light=any(chosen.id == OVERVIEW for chosen in plan.chosen),
        words=tuple(question.names),
        numbers=tuple(question.numbers),
        paths=tuple(question.paths),
    )
    ids = dict.fromkeys(member for chosen in plan.chosen for member in books.members_of(chosen.id))
    checked = runner.run(list(ids), ask, where, utc=utc, total_s=total_s, on_step=on_step, stopped=stopped, books=books)
    findings = [*(piped.findings(redact, at) if piped is not None else ()), *checked.findings]
    report = report_of(where.host, at, brain, plan, findings, checked.answers).replace(light=where.light, books=books)
    return report if recall is None else report.replace(since=tuple(changes(recall(), report)))


def _with_piped(plan: planner.Plan, piped: "Piped") -> planner.Plan:
    """A question that names no check ("why?") is about the piped text: its errors say where to look."""
    if plan.matched:
        return plan
    about = piped.about()
    chosen = [planner.Chosen(id, [word]) for id, word in about[: planner.MOST]]
    return plan.replace(
        chosen=tuple(chosen) or plan.chosen, left_out=tuple(id for id, _ in about[planner.MOST :]), matched=True
    )
