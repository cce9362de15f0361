"""What of a conversation is sent when all of it is too much: a smaller view. Pure; the conversation never changes.

A view is folded message by message: it grows until it is over a limit, is then made clearly smaller at once, and grows
again. So between two such moments each view begins with the one before, which is what a provider's cache needs, and
what is cut depends on the messages alone. In this order, oldest first, and only as far as needed:

1. long results before the last 8 messages become placeholders that name their execution and how to read them again;
2. there, long replies, arguments and attachments keep their beginning and end;
3. whole replies go with their calls and results; a note says how many, and which executions they were;
4. what the person said is cut to its beginning, its end and its rules; then it goes too, its rules stay in that note;
5. the last 8 messages are cut.

Never touched: notes (denials, unknown runs, open asks, rules) and the first question. A call and its result stay or go
together.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from agent.messages import Assistant, Note, Result, User
from agent.shortening import NOTHING, Item, Size, Sized, briefly, clipped, placeholder, rules_of, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent.messages import Message

LAST = 8
"""Messages at the end that stay whole as long as the rest can make room."""
LOW = 0.6
"""How full a view is after it was made smaller: low enough to be rare, high enough to keep what matters."""
ENOUGH = 0.8
"""From here on the next, harder step is taken."""
LONG_TEXT = 400
"""Characters that a reply, an argument or an attachment keeps in step 2."""
LONG_WORDS = 800
"""Characters that a person's words keep in step 4."""
NOW = 0.5
"""Share of a view's own length that counts as its limit when a person wants it made smaller now."""
HARDER = (8_000, 2_000, 500)
"""Characters that texts of the last messages keep in step 5, tried in this order."""
LISTED_EXECUTIONS = 40
LISTED_RULES_CHARS = 6_000


@dataclass(frozen=True, slots=True)
class Limits:
    """How much may be sent."""

    chars: int = 60_000
    """Of all messages together."""
    window_tokens: int = 0
    """The model's context window; 0 when nobody said."""
    taken_tokens: int = 8_000
    """Of the window, for the system prompt, the tools and the reply."""

    @property
    def tokens(self) -> int:
        """What of the window is left for messages, a tenth less since tokens are estimated; 0: no limit.

        A quarter of a window that is nearly all taken: better a short view than none.
        """
        return max(
            self.window_tokens * 9 // 10 - self.taken_tokens, self.window_tokens // 4, min(1, self.window_tokens)
        )

    def tightened(self) -> Limits:
        """Half of it, for when an API says that it was too much all the same."""
        return replace(self, chars=self.chars // 2, window_tokens=self.window_tokens // 2)


@dataclass(frozen=True, slots=True)
class View:
    """What is sent."""

    messages: tuple[Message, ...]
    notes: tuple[str, ...] = ()
    """Sentences for people: that something is left out, or that it does not fit whatever is left out."""
    fits: bool = True


def view(messages: Sequence[Message], *, limits: Limits = Limits()) -> View:
    """The messages, or a smaller view of them that is within the limits, or says that it cannot be.

    The view of a view that fits is that view.
    """
    fold = _Fold(limits)
    for message in messages:
        fold.take(message)
    return fold.view()


class Compactor:
    """`view` for a conversation that grows: looks only at what is new since the last time. For one thread.

    Called with the conversation's messages it gives what is sent, as `agent.conversation.Conversation` takes it.
    """

    def __init__(self, limits: Limits = Limits()) -> None:
        self._limits = limits
        self._fold = _Fold(limits)
        self._last: Message | None = None
        self.latest = View(())
        """What was given last, with its notes."""

    @property
    def limits(self) -> Limits:
        """How much may be sent; another value makes the next view from the beginning."""
        return self._limits

    @limits.setter
    def limits(self, limits: Limits) -> None:
        if limits != self._limits:
            self._limits = limits
            self._last = None
            self._fold = _Fold(limits)

    def __call__(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        taken = self._fold.taken
        if taken and (taken > len(messages) or messages[taken - 1] is not self._last):
            taken, self._fold = 0, _Fold(self._limits)
        for message in messages[taken:]:
            self._fold.take(message)
            self._last = message
        self.latest = self._fold.view()
        return self.latest.messages

    def compact(self, messages: Sequence[Message]) -> View:
        """The view made much smaller at once, although there is room; it grows again from there. The last messages stay
        whole. Not while a call waits for its result."""
        self(messages)
        tried = deepcopy(self._fold)
        if tried.compact_now() < self._fold.chars:  # the note of what is left out can be longer than that
            self._fold = tried
        self.latest = self._fold.view()
        return self.latest

    def chars(self, messages: Sequence[Message]) -> int:
        """How many characters a request would hold, as far as views were made; nothing is made smaller for it."""
        latest, taken = self.latest.messages, self._fold.taken
        if taken > len(messages):
            latest, taken = (), 0
        return sum(size_of(message).chars for message in (*latest, *messages[taken:]))


@dataclass(slots=True)
class _LeftOut:
    """What is no longer in a view at all."""

    replies: int = 0
    calls: int = 0
    questions: int = 0
    executions: dict[str, None] = field(default_factory=dict)
    rules: dict[str, None] = field(default_factory=dict)

    def count(self, message: Message) -> None:
        """Takes note of one more."""
        if isinstance(message, Assistant):
            self.replies += 1
            self.calls += len(message.calls)
        elif isinstance(message, User):
            self.questions += 1
            self.rules.update(dict.fromkeys(rules_of(message.text)))
        elif isinstance(message, Result) and message.execution:
            self.executions.pop(message.execution, None)  # the newest stands last
            self.executions[message.execution] = None

    def note(self) -> Note:
        """What takes their place."""
        parts = [
            f"To save room the oldest part of this conversation is left out here: {self.replies} of your replies, "
            f"{self.calls} tool calls, {self.questions} messages of the person. The log has every run: ops_executions."
        ]
        if self.executions:
            newest = list(self.executions)[-LISTED_EXECUTIONS:]
            more = f" and {len(self.executions) - len(newest)} before" if len(newest) < len(self.executions) else ""
            parts.append(f"Executions in it: {', '.join(newest)}{more}.")
        if self.rules:
            rules = "\n".join(f"- {rule}" for rule in self.rules)
            parts.append(f"What the person ruled in it, and what still holds:\n{clipped(rules, LISTED_RULES_CHARS)}")
        return Note("\n".join(parts))


class _Fold:
    """A view while it is being made."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sized = Sized()
        self._open: set[str] = set()
        self._left_out = _LeftOut()
        self._left_out_item: Item | None = None
        self._changed = False
        self._tried_at = 0.0
        self.taken = 0
        """How many messages it has seen."""

    def take(self, message: Message) -> None:
        """Adds the next message. What was sent before is made smaller only where no call waits for its result."""
        self.taken += 1
        self._sized.insert(len(self._sized.items), Item(message))
        if isinstance(message, Assistant):
            self._open.update(call.id for call in message.calls)
        elif isinstance(message, Result):
            self._open.discard(message.call_id)
        # What could not be made small enough is not tried again for every message.
        if not self._open and self._full() > max(1.0, self._tried_at * 1.1):
            self._compact()

    @property
    def chars(self) -> int:
        return self._sized.size.chars

    def compact_now(self) -> int:
        """Takes the steps that spare the last messages, as if the limit were half of what is there; what is left."""
        limits, size = self._limits, self._sized.size
        self._limits = Limits(chars=max(1, int(size.chars * NOW)))
        for step in self._steps():
            step()
            if self._full() <= ENOUGH:
                break
        self._limits = limits
        return self.chars

    def view(self) -> View:
        """The view as it stands."""
        if self._full() > 1.0:
            self._compact()
        notes = []
        if self._changed:
            notes.append("the oldest part of this conversation is sent shortened; its file has all of it")
        fits = self._full() <= 1.0
        if not fits:
            size, tokens = self._sized.size, self._limits.tokens
            of_window = f", about {size.tokens:,} of {tokens:,} tokens" if tokens else ""
            notes.append(
                f"what has to be sent is too long: {size.chars:,} of {self._limits.chars:,} characters{of_window}"
            )
        return View(tuple(item.message for item in self._sized.items), tuple(notes), fits)

    def _full(self, saved: Size = NOTHING) -> float:
        """How full it is, 1.0 at the limit; or would be if so much were saved."""
        chars, tokens = self._sized.size.chars - saved.chars, self._sized.size.tokens - saved.tokens
        return max(chars / max(1, self._limits.chars), tokens / self._limits.tokens if self._limits.tokens else 0.0)

    # ── making it smaller ────────────────────────────────────────────────────────────────────────────────────────

    def _steps(self) -> tuple[Callable[[], None], ...]:
        return (
            self._results_to_placeholders,
            self._texts_cut,
            self._replies_left_out,
            self._words_cut,
            self._words_left_out,
        )

    def _compact(self) -> None:
        for step in self._steps():
            step()
            if self._full() <= ENOUGH:
                break
        for longest in HARDER:
            if self._full() <= 1.0:
                break
            self._last_ones_cut(longest)
        self._tried_at = self._full() if self._full() > 1.0 else 0.0

    def _older(self) -> list[Item]:
        """What comes before the last messages."""
        return self._sized.items[:-LAST]

    def _first_question(self) -> Item | None:
        return next((item for item in self._sized.items if isinstance(item.message, User)), None)

    def _shorten(self, item: Item, message: Message) -> None:
        self._changed |= self._sized.shorten(item, message)

    def _results_to_placeholders(self) -> None:
        for item in self._older():
            if self._full() <= LOW:
                return
            if isinstance(item.message, Result):
                self._shorten(item, placeholder(item.message))

    def _texts_cut(self) -> None:
        for item in self._older():
            if self._full() <= LOW:
                return
            self._shorten(item, briefly(item.message, LONG_TEXT))

    def _replies_left_out(self) -> None:
        """Leaves out whole replies, each with its calls and their results."""
        older = self._older()
        gone: list[int] = []
        saved = NOTHING
        for index, item in enumerate(older):
            if not isinstance(item.message, Assistant):
                continue
            group = self._group_at(index)
            waits = any(call.id in self._open for call in item.message.calls)
            if waits or group.stop > len(older) or self._full(saved) <= LOW:
                break
            gone += group
            for at in group:
                saved = saved.plus(self._sized.items[at].size)
        self._leave_out(gone)

    def _group_at(self, index: int) -> range:
        """A reply with the results behind it."""
        items = self._sized.items
        stop = index + 1
        while stop < len(items) and isinstance(items[stop].message, Result):
            stop += 1
        return range(index, stop)

    def _words_cut(self) -> None:
        first = self._first_question()
        for item in self._older():
            if self._full() <= LOW:
                return
            message = item.message
            if isinstance(message, User) and item is not first and clipped(message.text, LONG_WORDS) != message.text:
                rules = clipped("\n".join(rules_of(message.text)), LONG_WORDS)
                text = f"{clipped(message.text, LONG_WORDS)}\n{rules}".rstrip("\n")
                self._shorten(item, replace(message, text=text))

    def _words_left_out(self) -> None:
        first = self._first_question()
        gone: list[int] = []
        saved = NOTHING
        for index, item in enumerate(self._older()):
            if self._full(saved) <= LOW:
                break
            if isinstance(item.message, User) and item is not first:
                gone.append(index)
                saved = saved.plus(item.size)
        self._leave_out(gone)

    def _last_ones_cut(self, longest: int) -> None:
        """Cuts whatever is left, results first; the first question's words stay."""
        results = [item for item in self._sized.items if isinstance(item.message, Result)]
        others = [item for item in self._sized.items if isinstance(item.message, (Assistant, User))]
        first = self._first_question()
        for item in (*results, *others):
            if self._full() <= 1.0:
                return
            short = briefly(item.message, longest)
            if isinstance(short, Result) or (isinstance(short, User) and item is not first):
                short = replace(short, text=clipped(short.text, longest))
            self._shorten(item, short)

    def _leave_out(self, gone: Sequence[int]) -> None:
        """Takes messages out of the view and counts them in the one note that speaks of them."""
        if not gone:
            return
        items = self._sized.items
        for index in gone:
            self._left_out.count(items[index].message)
        before = [index for index, item in enumerate(items) if item is self._left_out_item]
        self._sized.remove({*gone, *before})
        self._changed = True
        self._left_out_item = Item(self._left_out.note())
        first = self._first_question()
        at = next((index + 1 for index, item in enumerate(self._sized.items) if item is first), 0)
        self._sized.insert(at, self._left_out_item)
