"""How messages are measured, and one of them is made shorter, for `agent.compaction`. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from agent.messages import Assistant, Result, ToolCall, User
from capabilities.bounded import cut_text

if TYPE_CHECKING:
    from collections.abc import Collection

    from agent.messages import Message

CHARS_A_TOKEN = 3.5
"""Of text in ASCII: between prose (4) and logs, paths and JSON (3). Other characters count as a token each."""
BESIDE_CHARS = 24
"""What a message costs beside its texts: role and structure on the wire."""
PLACEHOLDER_FROM = 400
"""A result up to this length is as short as its placeholder would be."""
FACTS_CHARS = 600
"""The first line of a result stays if it is a JSON object of at most this length: status, exit code, saved output."""
LONGEST_RULE = 300

_CUT_SLACK = 100
_PLACEHOLDER = re.compile(r"\[[\d,]+ characters of output left out to save room; [^\n]*\]\Z")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_RULE = re.compile(
    r"\b(?:never|always|don't|do not|dont|must|mustn't|only|avoid|forbidden|under no circumstances|without asking)\b"
    r"|不要|不得|不准|不能|不许|禁止|必须|切勿|务必|永远|绝不|别动|只能",
    re.IGNORECASE,
)


class Size(NamedTuple):
    """How much something takes in a request."""

    chars: int = 0
    tokens: int = 0
    """Estimated."""

    def plus(self, other: Size) -> Size:
        return Size(self.chars + other.chars, self.tokens + other.tokens)

    def minus(self, other: Size) -> Size:
        return Size(self.chars - other.chars, self.tokens - other.tokens)


NOTHING = Size()


class Item:
    """A message and its size."""

    __slots__ = ("message", "size")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.size = size_of(message)


class Sized:
    """Messages in order, and how much they are together."""

    __slots__ = ("items", "size")

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.size = NOTHING

    def insert(self, at: int, item: Item) -> None:
        self.items.insert(at, item)
        self.size = self.size.plus(item.size)

    def shorten(self, item: Item, message: Message) -> bool:
        """Puts a message in the place of an item's, and says whether that is shorter; else nothing changes."""
        if message is item.message:
            return False
        size = size_of(message)
        if size.chars >= item.size.chars or size.tokens > item.size.tokens:
            return False
        self.size = self.size.minus(item.size).plus(size)
        item.message, item.size = message, size
        return True

    def remove(self, gone: Collection[int]) -> None:
        """Takes items away, by their index."""
        for index in gone:
            self.size = self.size.minus(self.items[index].size)
        self.items = [item for index, item in enumerate(self.items) if index not in gone]


def size_of(message: Message) -> Size:
    """What a message takes in a request."""
    if isinstance(message, User):
        texts = [message.text, *message.attachments]
    elif isinstance(message, Assistant):
        texts = [message.text]
        for call in message.calls:
            texts += (call.id, call.name, json.dumps(call.arguments, ensure_ascii=False) if call.arguments else "{}")
    elif isinstance(message, Result):
        texts = [message.call_id, message.text]
    else:
        texts = [message.text]
    text = "".join(texts)
    beyond = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    chars = len(text) + BESIDE_CHARS * (1 if len(texts) < 3 else len(texts))
    return Size(chars, int((chars - beyond) / CHARS_A_TOKEN) + beyond + 1)


def clipped(text: str, longest: int) -> str:
    """Beginning and end in about `longest` characters. One that is a little longer stays: it is cut only once."""
    return text if len(text) <= longest + _CUT_SLACK else cut_text(text, longest)


def placeholder(result: Result) -> Result:
    """A result without its output: its first line where that is the facts, and how to see the rest again."""
    if len(result.text) <= PLACEHOLDER_FROM or _PLACEHOLDER.search(result.text):
        return result
    first = result.text.partition("\n")[0]
    facts = f"{first}\n" if first.startswith("{") and first.endswith("}") and len(first) <= FACTS_CHARS else ""
    again = f'ops_status {{"id": "{result.execution}"}} shows it' if result.execution else "look again if it matters"
    rest = len(result.text) - len(facts)
    return replace(result, text=f"{facts}[{rest:,} characters of output left out to save room; {again}]")


def briefly(message: Message, longest: int) -> Message:
    """A reply with its texts and arguments, or a person's attachments, each cut to about `longest` characters."""
    if isinstance(message, Assistant):
        calls = tuple(_brief_call(call, longest) for call in message.calls)
        return replace(message, text=clipped(message.text, longest), calls=calls)
    if isinstance(message, User) and message.attachments:
        return replace(message, attachments=tuple(clipped(text, longest) for text in message.attachments))
    return message


def rules_of(text: str) -> tuple[str, ...]:
    """The sentences in which somebody says what must or must not be done, in English or Chinese; a guess by words."""
    sentences = (" ".join(sentence.split()) for sentence in _SENTENCE_END.split(text) if _RULE.search(sentence))
    return tuple(dict.fromkeys(cut_text(sentence, LONGEST_RULE) for sentence in sentences))


def _brief_call(call: ToolCall, longest: int) -> ToolCall:
    arguments: dict[str, Any] = {name: _brief(value, longest) for name, value in call.arguments.items()}
    return call if arguments == call.arguments else replace(call, arguments=arguments)


def _brief(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return clipped(value, longest)
    if isinstance(value, (dict, list)):
        text = json.dumps(value, ensure_ascii=False)
        return value if len(text) <= longest + _CUT_SLACK else clipped(text, longest)
    return value
