"""How one message is measured and made shorter, for `agent.compaction`. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agent.messages import Assistant, Result, ToolCall, User
from capabilities.bounded import cut_text

if TYPE_CHECKING:
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


class Item:
    """A message and its measure."""

    __slots__ = ("chars", "message", "tokens")

    def __init__(self, message: Message) -> None:
        self.message = message
        self.chars, self.tokens = measure(message)

    def shrink(self, message: Message) -> bool:
        """Takes another message in place of this one if it is shorter in characters and no longer in tokens."""
        chars, tokens = measure(message)
        if chars >= self.chars or tokens > self.tokens:
            return False
        self.message, self.chars, self.tokens = message, chars, tokens
        return True


def measure(message: Message) -> tuple[int, int]:
    """Characters and estimated tokens that a message takes in a request."""
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
    return chars, int((chars - beyond) / CHARS_A_TOKEN) + beyond + 1


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
