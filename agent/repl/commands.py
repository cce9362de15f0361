"""The slash commands: one table with help, completion and what each does. A command yields effects; it draws nothing.

What `opsx` and `opsagent` already print is printed by them (`World.verb`), so that a list looks the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.repl import conversations
from agent.repl.by_hand import approve, roll_back
from agent.repl.goals import goal_of
from agent.repl.record import record_of
from agent.repl.world import Clear, Copy, Leave, Pursue, Say
from capabilities.going_back import in_short, newest_change
from dialogue.confirm import APPROVED
from guard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent.repl.world import Effect, Talk

    Run = Callable[[Talk, str], Iterator[Effect]]
    Choices = Callable[[Talk], tuple[str, ...]]


MOST_OUTPUTS = 20
"""Saved outputs that are listed, newest first."""


class UnknownCommand(UsageError):
    """A slash word that is no command. It is not sent to the brain."""

    code = "usage.slash"


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command."""

    name: str
    usage: str
    """What stands behind the name; "" for nothing."""
    summary: str
    run: Run
    alone: bool = False
    """Needs the conversation to be still: it is refused while a turn is running."""
    choices: Choices | None = None
    """What can stand behind the name, for completion."""


def is_command(text: str) -> bool:
    """Whether a line is for us: `/word`, where a path such as `/etc/hosts is …` is for the brain."""
    word = text.split(maxsplit=1)[0] if text.strip() else ""
    return word.startswith("/") and "/" not in word[1:] and text.startswith("/")


def found(text: str) -> tuple[Command, str]:
    """The command of a line and the words behind it. Raises UnknownCommand."""
    word, _, rest = text[1:].partition(" ")
    word, mark, more = word.partition("\n")
    if word in BY_NAME:
        return BY_NAME[word], (more + " " + rest if mark else rest).strip()
    close = [name for name in BY_NAME if word and (name.startswith(word) or word.startswith(name))]
    raise UnknownCommand(
        f"unknown command /{repr(word)[1:-1][:40]}",
        not_done="nothing was sent",
        hint=f"{' or '.join('/' + name for name in close[:3])}" if close else "/help lists them",
    )


def help_text(name: str = "") -> str:
    """All commands, or one of them. Raises UnknownCommand."""
    if name:
        command, _ = found("/" + name.removeprefix("/"))
        return f"/{command.name} {command.usage}".rstrip() + f"\n  {command.summary}"
    width = max(len(f"{one.name} {one.usage}") for one in COMMANDS) + 2
    rows = [f"  /{f'{one.name} {one.usage}'.strip():{width}} {one.summary}" for one in COMMANDS]
    return "\n".join(["commands:", *rows, "", *KEYS])


KEYS = (
    "!COMMAND runs a command by hand through the guard; @PATH attaches a file",
    "Enter sends · Alt-Enter or Ctrl-J: new line · Up/Down, Ctrl-R: history · Ctrl-X Ctrl-E: editor",
    "Esc interrupts the turn · Ctrl-C clears, then asks, then leaves · Ctrl-O opens the last output · Ctrl-Z suspends",
)


# ── what they do ─────────────────────────────────────────────────────────────────────────────────────────────────


def _help(talk: Talk, words: str) -> Iterator[Effect]:
    yield Say(help_text(words))


def _verb(program: str, *argv: str, takes: str = "") -> Run:
    """A command that shows what a verb prints. `takes`: `id` needs one word, `words` passes all as one."""

    def run(talk: Talk, words: str) -> Iterator[Effect]:
        arguments = list(argv)
        if takes == "id":
            if len(words.split()) != 1:
                raise UsageError("name one record", not_done="nothing was shown", hint="an id such as e-… or a-…")
            arguments.append(words)
        elif words:
            arguments += words.split()
        text, _ = talk.world.verb(program, arguments)
        yield Say(text.rstrip("\n") or "nothing", visible=True)

    return run


def _status(talk: Talk, words: str) -> Iterator[Effect]:
    opened = talk.opened
    model = f", model {opened.model}" if opened.model else ""
    lines = [f"brain {opened.brain}{model}", f"conversation {opened.id}, folder {talk.world.cwd}", talk.status()]
    record = record_of(talk.world, opened)
    lines.append(f"context: {record.context:.0%} full before older parts are shortened")
    if record.frozen:
        lines.append(f"FROZEN: {record.frozen}")
    if talk.goal is not None:
        lines.append(talk.goal.shown())
    if not talk.world.person:
        lines.append("nobody can approve here: a change is kept, and opsx approve a-… answers it elsewhere")
    yield Say("\n".join(lines))


def _approve(talk: Talk, words: str) -> Iterator[Effect]:
    if len(words.split()) > 1:
        raise UsageError("one request at a time", not_done="nothing was asked", hint="/approve a-… (/pending)")
    done = approve(words, talk.world.guard, talk.confirm, cwd=talk.world.cwd, session=talk.opened.id)
    if done["status"] == APPROVED:
        yield Say("it runs once, when the same is asked for again: say `go on`, or run it by hand with !")
    elif done.get("next"):
        yield Say(f"{done['status']}; next: {done['next']}")


def _rollback(talk: Talk, words: str) -> Iterator[Effect]:
    if len(words.split()) > 1:
        raise UsageError(
            "name one thing to take back", not_done="nothing was changed", hint="/rollback e-… (/executions)"
        )
    if not words:
        newest = newest_change(talk.world.guard)
        if newest is None:
            raise UsageError("nothing that ran can be taken back", not_done="nothing was changed", hint="/executions")
        words = newest.id
        yield Say(f"the newest change that is not back yet: {words}  {in_short(newest)}")
    done = roll_back(words, talk.world.guard, talk.confirm, cwd=talk.world.cwd, session=talk.opened.id)
    lines = [f"rollback of {words}: {done['status']}"]
    for row in done.get("results") or ():
        lines.append("  " + " ".join(str(row[name]) for name in ("result", "action", "path", "text") if row.get(name)))
    if not done.get("results"):
        lines += [f"  in the way, changed since: {name}" for name in done["conflicts"]]
        lines += [f"  differs and cannot be put back: {name}" for name in done["not_saved"]]
    lines += [f"  {note}" for note in done.get("notes") or ()]
    if done.get("next"):
        lines.append(f"next: {done['next']}")
    yield Say("\n".join(lines))


def _outputs(talk: Talk, words: str) -> Iterator[Effect]:
    rows = [
        f"{run.ended_at or run.started_at}  {run.id}  {run.output_file}"
        for run in talk.world.guard.ledger.executions(limit=200).executions
        if run.output_file
    ]
    yield Say("\n".join(rows[:MOST_OUTPUTS]) or "no output was long enough to be saved")


def _copy(talk: Talk, words: str) -> Iterator[Effect]:
    if not talk.answer:
        raise UsageError("there is no answer yet", not_done="nothing was copied")
    yield Copy(talk.answer)
    yield Say(f"the last answer is on the clipboard ({len(talk.answer):,} characters)")


def _goal(talk: Talk, words: str) -> Iterator[Effect]:
    if words in ("stop", "off"):
        yield Pursue(None)
        yield Say("there is no goal")
    elif not words:
        yield Say(talk.goal.shown() if talk.goal else "there is no goal; /goal TEXT [--rounds N] sets one")
    else:
        yield Pursue(goal_of(words))


def _freeze(talk: Talk, words: str) -> Iterator[Effect]:
    note = talk.world.guard.ledger.answers.freeze(words, actor="person" if talk.world.person else "agent")
    yield Say(f"everything above R0 is stopped in every shell: {note}\n/thaw ends it; runs that have begun go on")


def _thaw(talk: Talk, words: str) -> Iterator[Effect]:
    if not talk.world.person:
        raise UsageError("only a person at a terminal may thaw", not_done="the stop holds")
    was = talk.world.guard.ledger.answers.thaw()
    yield Say("changes may run again, each with its approval" if was else "nothing was stopped")


def _clear(talk: Talk, words: str) -> Iterator[Effect]:
    yield Clear()


def _exit(talk: Talk, words: str) -> Iterator[Effect]:
    yield Leave()


def _ids(talk: Talk) -> tuple[str, ...]:
    return tuple(run.id for run in talk.world.guard.ledger.executions(limit=20).executions)


def _waiting(talk: Talk) -> tuple[str, ...]:
    return tuple(kept.id for kept in talk.world.guard.ledger.pending())


def _names(talk: Talk) -> tuple[str, ...]:
    return tuple(one.name for one in COMMANDS)


COMMANDS = (
    Command("help", "[COMMAND]", "this list, or one command", _help, choices=_names),
    Command(
        "resume", "[ID | last]", "go on with an earlier conversation", conversations.resume, True, conversations.ids
    ),
    Command("sessions", "", "earlier conversations", conversations.listing),
    Command("new", "", "begin a new conversation", conversations.new, True),
    Command(
        "fork", "[ID]", "go on in a copy of this or another conversation", conversations.fork, True, conversations.ids
    ),
    Command("export", "[FILE]", "this conversation as Markdown, to the screen or a new file", conversations.export),
    Command("model", "[NAME]", "the model, or another one", conversations.model, True),
    Command(
        "brain", "[NAME]", "the brain, or another one", conversations.brain, True, lambda talk: talk.world.brains()
    ),
    Command("status", "", "brain, folder, guard mode, context, goal", _status),
    Command("list", "", "where things stand: what waits, is approved, goes on, was saved", _verb("opsx", "list")),
    Command("pending", "", "requests that wait for an answer", _verb("opsx", "pending")),
    Command(
        "approve", "[ID]", "a request that waits is shown and you are asked; it runs nothing", _approve, True, _waiting
    ),
    Command("stamps", "", "approvals that are live", _verb("opsx", "stamps")),
    Command("executions", "[OPTIONS]", "what was run (opsx executions)", _verb("opsx", "executions")),
    Command(
        "show", "ID", "one execution, request, approval or snapshot", _verb("opsx", "show", takes="id"), choices=_ids
    ),
    Command(
        "rollback",
        "[ID]",
        "take a change back, the newest or that one: plan, differences, your answer",
        _rollback,
        True,
        _ids,
    ),
    Command("audit", "[OPTIONS]", "the record (opsx audit)", _verb("opsx", "audit")),
    Command("outputs", "", "long outputs that were saved", _outputs),
    Command("copy", "", "put the last answer on the clipboard", _copy),
    Command("goal", "TEXT [--rounds N] | stop", "go on by itself towards a goal, 6 rounds or N", _goal),
    Command(
        "compact", "", "send less of the conversation from now on; its file keeps all", conversations.compact, True
    ),
    Command("usage", "[OPTIONS]", "tokens, time and cost (opsagent usage)", _verb("opsagent", "usage")),
    Command("freeze", "[REASON]", "stop everything above R0 in every shell", _freeze),
    Command("thaw", "", "end the stop", _thaw),
    Command("config", "", "every setting and where it comes from", _verb("opsagent", "config", "show", "--origin")),
    Command("doctor", "", "what works here and what does not", _verb("opsagent", "doctor")),
    Command("clear", "", "an empty screen; the conversation goes on", _clear),
    Command("exit", "", "leave; the conversation can be resumed", _exit),
)
BY_NAME = {one.name: one for one in COMMANDS} | {"quit": COMMANDS[-1], "?": COMMANDS[0]}
