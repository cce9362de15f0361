"""The line that a person writes in: history, completion, several lines, an editor."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, Completion, ThreadedCompleter
from prompt_toolkit.history import InMemoryHistory

from agent.repl import commands
from guard.errors import GuardError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from agent.repl.world import Talk

MOST_CHOICES = 50


def composer(talk: Callable[[], Talk], accept: Callable[[str], None]) -> Buffer:
    """The buffer. `accept` gets what is sent."""

    def sent(buffer: Buffer) -> bool:
        text = buffer.text
        buffer.reset(append_to_history=True)
        accept(text)
        return True  # the text is gone already

    return Buffer(
        multiline=True,
        history=InMemoryHistory(),
        completer=ThreadedCompleter(Words(talk)),
        complete_while_typing=True,
        accept_handler=sent,
        enable_history_search=False,
        tempfile_suffix=".md",
        name="composer",
    )


class Words(Completer):
    """Completes slash commands, what can stand behind them, and paths behind `@`."""

    def __init__(self, talk: Callable[[], Talk]) -> None:
        self._talk = talk

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if text.startswith("/") and "\n" not in text:
            yield from self._commands(text[1:])
            return
        word = text.rpartition(" ")[2].rpartition("\n")[2]
        if word.startswith("@"):
            yield from _paths(word[1:], self._talk().world.cwd)

    def _commands(self, text: str) -> Iterator[Completion]:
        name, blank, rest = text.partition(" ")
        if not blank:
            for one in commands.COMMANDS:
                if one.name.startswith(name):
                    shown = f"/{one.name} {one.usage}".rstrip()
                    yield Completion(one.name, -len(name), display=shown, display_meta=one.summary)
            return
        known = commands.BY_NAME.get(name)
        if known is None or known.choices is None or " " in rest:
            return
        try:
            choices = known.choices(self._talk())
        except GuardError:
            return
        for choice in choices[:MOST_CHOICES]:
            if choice.startswith(rest):
                yield Completion(choice, -len(rest))


def _paths(text: str, cwd: str) -> Iterator[Completion]:
    head, slash, tail = text.rpartition("/")
    folder = os.path.normpath(os.path.join(cwd, os.path.expanduser(head + slash))) if slash else cwd
    try:
        with os.scandir(folder) as entries:
            found = sorted((one.name, one.is_dir()) for one in entries if one.name.startswith(tail))
    except OSError:
        return
    for name, is_folder in found[:MOST_CHOICES]:
        if name.startswith(".") and not tail.startswith("."):
            continue
        if " " in name or not name.isprintable():
            continue
        yield Completion(name + ("/" if is_folder else ""), -len(tail))
