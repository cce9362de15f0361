"""A reply put together from pieces, the same for every wire format: text, calls, notes, limits. Touches nothing.

What is shown while it comes is for display; `reply` is the authority.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agent.messages import Assistant, ToolCall
from agent.providers import printed, validate
from agent.providers.base import NOT_USED, BrainError, Reply, Sent, Tokens

if TYPE_CHECKING:
    from collections.abc import Hashable

TEXT_CHARS = 8 * 1024 * 1024
MOST_CALLS = 128
REASONING_CHARS = 512 * 1024
THINK, END_THINK = "<think>", "</think>"
"""Around the reasoning of models whose server does not take it out of the text."""
BLOCKS = 8
"""So many of them are left out one after the other; more are text."""
BLANKS = 256
"""So many blanks before the first word are waited through to see whether it is THINK."""


@dataclass(slots=True)
class Part:
    """One call on its way."""

    id: str = ""
    name: str = ""
    value: Any = None
    """Arguments that came as a value and not as text."""
    given: bool = False
    """Whether `value` counts."""
    beside: dict[str, Any] = field(default_factory=dict)
    """What the API wants back with the call, unread."""
    text: io.StringIO = field(default_factory=io.StringIO)
    chars: int = 0

    def add(self, piece: str) -> None:
        """More of the arguments' text; beyond the limit only counted."""
        self.chars += len(piece)
        if self.chars <= validate.ARGUMENTS_CHARS + 1:
            self.text.write(piece)

    def arguments(self) -> tuple[dict[str, Any], str]:
        if self.chars > validate.ARGUMENTS_CHARS:
            return {}, validate.too_many(self.chars)
        if self.given and not self.chars:
            return validate.given_arguments(self.value)
        return validate.arguments(self.text.getvalue())


class Gathering:
    """One reply, piece by piece.

    Args:
        sent: what was asked; its tools and ids decide about calls.
        who: the brain's name, for errors.
    """

    def __init__(self, sent: Sent, who: str) -> None:
        self._sent, self._who = sent, who
        self._text, self._chars = io.StringIO(), 0
        self._spoken = _Spoken()
        self._parts: dict[Hashable, Part] = {}
        self._reasoning, self._reasoning_chars = io.StringIO(), 0
        self.names = frozenset(tool.name for tool in sent.tools)
        self.thoughts: dict[Hashable, dict[str, list[str]]] = {}
        """Blocks of reasoning as they came, in pieces, for an API that wants them back unchanged."""
        self.slots: dict[Hashable, Any] = {}
        """What an index or id of the wire format stands for now."""
        self.notes: dict[str, None] = {}
        self.tokens = Tokens()
        self.model = ""
        self.stop = ""
        """`end`, `calls`, `length`, `refused`, "" while nobody has said."""

    @property
    def parts(self) -> dict[Hashable, Part]:
        """The calls, by whatever the wire format tells them apart by, in order."""
        return self._parts

    @property
    def reasoning(self) -> str:
        """What the model said to itself, where the API wants it back with the call's result."""
        return "" if self.thought_too_long else self._reasoning.getvalue()

    @property
    def thought_too_long(self) -> bool:
        """Whether the reasoning was longer than what is kept."""
        return self._reasoning_chars > REASONING_CHARS

    def note(self, words: str) -> None:
        """Something that a person should know; once, however often it happens."""
        self.notes[words] = None

    def decode(self, data: bytes) -> str:
        """Text of bytes that should be UTF-8; others are replaced, and that is noted."""
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.note("the reply held bytes that are no UTF-8; they were replaced")
            return data.decode("utf-8", "replace")

    def say(self, piece: str) -> str:
        """Takes a piece of text and returns what of it can be shown by now. Raises BrainError beyond TEXT_CHARS."""
        shown = self._spoken.feed(piece)
        self._chars += len(shown)
        if self._chars > TEXT_CHARS:
            raise BrainError(f"{self._who} sent more than {TEXT_CHARS:,} characters of text", not_done=NOT_USED)
        self._text.write(shown)
        return shown

    def think(self, piece: str) -> None:
        """Takes a piece of reasoning."""
        self._reasoning_chars += len(piece)
        if self._reasoning_chars <= REASONING_CHARS:
            self._reasoning.write(piece)

    def part(self, key: Hashable) -> Part:
        """The call that the wire format knows by `key`, else a new one. Raises BrainError beyond MOST_CALLS."""
        found = self._parts.get(key)
        if found is None:
            if len(self._parts) >= MOST_CALLS:
                raise BrainError(f"{self._who} wants more than {MOST_CALLS} tools in one reply", not_done=NOT_USED)
            found = self._parts[key] = Part()
        return found

    def rest(self) -> str:
        """What was held back of the text, once nothing more comes."""
        rest = self._spoken.flush()
        self._text.write(rest)
        return rest

    def reply(self) -> Reply:
        """The whole reply. `rest` was called before."""
        text = self._text.getvalue()
        if self._spoken.broken:
            self.note("the reply held halves of characters; they were replaced")
        calls = () if self.stop == "refused" else self._calls()
        if not calls and self.stop not in ("length", "refused"):
            text, calls = self._printed(text)
        stop = self.stop or "end"
        if stop in ("end", "calls"):
            stop = "calls" if calls else "end"
        return Reply(text, calls, stop, self.tokens, validate.whole(self.model)[:200], notes=tuple(self.notes))

    def _calls(self) -> tuple[ToolCall, ...]:
        taken = {call.id for said in self._sent.messages if isinstance(said, Assistant) for call in said.calls}
        made: list[ToolCall] = []
        for part in self._parts.values():
            given, fault = part.arguments()
            name = validate.whole(part.name)[: validate.NAME_CHARS]
            if not name:
                fault = "the call names no tool"
            made.append(ToolCall(self._id(part.id, taken), name, {} if fault else given, fault))
            taken.add(made[-1].id)
        return tuple(made)

    def _id(self, given: str, taken: set[str]) -> str:
        if validate.ID.fullmatch(given) and given not in taken:
            return given
        if given in taken:
            self.note("two tool calls had the same id; the later one was given another")
        number = len(taken) + 1
        while f"t-{number}" in taken:
            number += 1
        return f"t-{number}"

    def _printed(self, text: str) -> tuple[str, tuple[ToolCall, ...]]:
        """A call that the model wrote as text instead of making it."""
        found = printed.calls_in(text, self._sent)
        if found is None:
            return text, ()
        if found.problem:
            self.note(f"the model printed a tool call as text; it was not used: {found.problem}")
            return text, ()
        self.note("the model printed its tool call as text; it was read as the call that it is")
        for number, (name, given) in enumerate(found.calls):
            part = self.part(("printed", number))
            part.name, part.value, part.given = name, given, True
        return "", self._calls()


class _Spoken:
    """Text in pieces: halves of characters are joined, a leading block of reasoning is left out."""

    def __init__(self) -> None:
        self._held = ""
        self._half = ""
        self._state = "start"
        self._blocks = 0
        self.broken = False

    def feed(self, piece: str) -> str:
        if self._half or not piece.isascii():
            piece = self._half + piece
            self._half = ""
            if piece and "\ud800" <= piece[-1] <= "\udbff":
                piece, self._half = piece[:-1], piece[-1]
            piece = self._mended(piece)
        if self._state == "said":
            return piece
        self._held += piece
        while self._blocks < BLOCKS:
            if self._state == "start" and not self._opens():
                break
            if self._state == "thinking" and not self._closes():
                return ""
        if self._state == "start" and self._undecided():
            return ""
        self._state, said, self._held = "said", self._held, ""
        return said

    def flush(self) -> str:
        rest = self._held if self._state == "start" else ""
        self._held = ""
        return rest + (self._mended(self._half) if self._half else "")

    def _opens(self) -> bool:
        """Whether a block of reasoning begins here; it is then left out from here on."""
        if self._blocks:
            # The lines between a block and what follows belong to neither.
            self._held = self._held.lstrip("\r\n")
        word = self._held.lstrip()
        if not word.startswith(THINK):
            return False
        self._state, self._held = "thinking", word[len(THINK) :]
        return True

    def _closes(self) -> bool:
        """Whether the block ends here; else all but what may be the half of its end is dropped."""
        before, end, after = self._held.partition(END_THINK)
        if not end:
            self._held = before[-len(END_THINK) :]
            return False
        self._state, self._held = "start", after
        self._blocks += 1
        return True

    def _undecided(self) -> bool:
        """Whether what is there may still become a block."""
        return self._blocks < BLOCKS and THINK.startswith(self._held.lstrip()) and len(self._held) < BLANKS

    def _mended(self, piece: str) -> str:
        mended = validate.whole(piece)
        self.broken = self.broken or ("\ufffd" in mended and "\ufffd" not in piece)
        return mended
