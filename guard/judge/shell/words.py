"""What is known about a word: quotes, escapes, `$'…'` and braces taken off the way bash does it."""

from guard.judge.shell.syntax import Expansion, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.types import Span

SAFE = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+^!~#]}" + bytes(range(0x80, 0x100))
"""Bytes that mean themselves inside an unquoted word. `~` is kept as written: paths are read later."""

OPEN, COMMA, CLOSE = "\x01", "\x02", "\x03"
"""Unquoted brace characters while a word is being read; the text itself cannot hold control characters."""

MAX_BRACE_WORDS = 256
MAX_BRACES = 64
"""Opening braces in one word; each costs a pass over the word."""

_SIMPLE_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip


def ansi_c(text: str) -> "str | None":
    """The value of the inside of `$'…'` (bash(1), QUOTING); None when it is not plain text (NUL, bad bytes)."""
    out: list[str] = []
    raw = bytearray()

    def flush() -> bool:
        if raw:
            try:
                out.append(raw.decode())
            except UnicodeDecodeError:
                return False
            raw.clear()
        return True

    at, end = 0, len(text)
    while at < end:
        char = text[at]
        if char != "\\" or at + 1 >= end:
            raw += char.encode()
            at += 1
            continue
        code = text[at + 1]
        at += 2
        if code in _SIMPLE_ESCAPES:
            raw += _SIMPLE_ESCAPES[code].encode()
        elif code in "01234567":
            stop = at
            while stop < end and stop < at + 2 and text[stop] in "01234567":
                stop += 1
            raw.append(int(text[at - 1 : stop], 8) & 0xFF)
            at = stop
        elif code in "xuU":
            stop, most = at, {"x": 2, "u": 4, "U": 8}[code]
            while stop < end and stop < at + most and text[stop] in "0123456789abcdefABCDEF":
                stop += 1
            if stop == at:
                raw += b"\\" + code.encode()
                continue
            number = int(text[at:stop], 16)
            at = stop
            if code == "x":
                raw.append(number)
            else:
                if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
                    return None
                raw += chr(number).encode()
        elif code == "c" and at < end:
            raw.append(ord(text[at]) & 0x1F if ord(text[at]) < 128 else 0)
            at += 1
        else:
            raw += b"\\" + code.encode()
    if not flush():
        return None
    value = "".join(out)
    return None if any(char in value for char in "\0\x01\x02\x03") else value


def braces(text: str) -> "list[str] | None":
    """The words that brace expansion makes of a text with marked braces; None when there are too many."""
    if text.count(OPEN) > MAX_BRACES:
        return None
    results = [text]
    done: list[str] = []
    rounds = 0
    while results:
        rounds += 1
        if len(results) + len(done) > MAX_BRACE_WORDS or rounds > 4 * MAX_BRACE_WORDS:
            return None
        item = results.pop()
        spread = _first_brace(item)
        if spread is None:
            done.append(item.replace(OPEN, "{").replace(COMMA, ",").replace(CLOSE, "}"))
        else:
            results.extend(reversed(spread))
    return done


def _first_brace(text: str) -> "list[str] | None":
    start = text.find(OPEN)
    while start >= 0:
        depth, at = 0, start
        commas: list[int] = []
        while at < len(text):
            char = text[at]
            if char == OPEN:
                depth += 1
            elif char == CLOSE:
                depth -= 1
                if depth == 0:
                    break
            elif char == COMMA and depth == 1:
                commas.append(at)
            at += 1
        if depth == 0 and at < len(text):
            head, tail = text[:start], text[at + 1 :]
            if commas:
                edges = [start, *commas, at]
                return [head + text[a + 1 : b] + tail for a, b in zip(edges, edges[1:], strict=False)]  # noqa: RUF007
            run = _sequence(text[start + 1 : at])
            if run is not None:
                return [head + piece + tail for piece in run]
            return [head + "{" + text[start + 1 : at] + "}" + tail]
        # An opening brace that never closes is an ordinary character; a later one may still close.
        text = text[:start] + "{" + text[start + 1 :]
        start = text.find(OPEN, start)
        if start < 0:
            return [text]
    return None


def _sequence(inside: str) -> "list[str] | None":
    ends = inside.split("..")
    if len(ends) not in (2, 3):
        return None
    if all(len(end) == 1 and end.isascii() and end.isalpha() for end in ends[:2]):
        first, last = ord(ends[0]), ord(ends[1])
        if len(ends) == 3 and not ends[2].lstrip("-").isdigit():
            return None
        step = (abs(int(ends[2])) or 1) if len(ends) == 3 else 1
        codes = range(first, last + 1, step) if last >= first else range(first, last - 1, -step)
        return [chr(code) for code in codes]
    try:
        numbers = [int(end) for end in ends]
    except ValueError:
        return None
    first, last = numbers[0], numbers[1]
    step = abs(numbers[2]) if len(numbers) == 3 and numbers[2] else 1
    if abs(last - first) // step > MAX_BRACE_WORDS:
        return ["*"]
    width = max((len(end.lstrip("-")) for end in ends[:2] if end.lstrip("-").startswith("0")), default=0)
    moving = range(first, last + 1, step) if last >= first else range(first, last - 1, -step)
    return [f"{number:0{width}d}" for number in moving]


def literal(text: str, span: "Span" = (0, 0)) -> Word:
    """A word whose value is exactly this text."""
    return Word(span, text, quoted=True)


def unknown(span: "Span" = (0, 0), *, splits: bool = False, appended: bool = False, prefix: str = "") -> Word:
    """A word whose value the text does not tell."""
    hole = Expansion("param", "", not splits)
    return Word(span, None, (prefix, hole) if prefix else (hole,), splits=splits, appended=appended)
