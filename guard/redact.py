"""Takes secrets out of text before it is stored, shown or sent: one Redactor for log, outputs, events and models.

Importing this costs nothing; the rules are loaded when the first text is redacted. Everything here is pure.

What it promises: values that it was told about, values behind secret labels, and values that show what they are by
their form are replaced by `[REDACTED]`; the label stays, so the text stays useful. What it cannot promise: a secret
without a label and without a form of its own (a bare word in a sentence) looks like any other word.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from guard.redaction.blocks import State

MASK = "[REDACTED]"
"""What stands in place of a secret."""

LINE_CHARS = 65_536
"""A stream holds back at most this much of a line that does not end, before it begins to write it in pieces."""
HOLD_CHARS = 16_384
"""The end of such a piece that is kept back, so that a secret which began there is seen whole: more than a 16,384 bit
RSA key in PEM form (12.7 kB), the longest secret that comes on one line."""
CONTEXT_CHARS = 1_024
"""How much of what was written last is looked at again as the left context of what follows."""
SHORTEST_PIECE = 3
"""A shorter secret is replaced where it stands, not wherever its characters occur."""
PIECE_CHARS = 262_144
_PASSES = 12
RULES_VERSION = 2
"""Grows when the rules learn to see more secrets: what was redacted by an older version is redacted again when read."""


class Redactor:
    """Replaces secrets in texts and streams. Safe to share between threads.

    Args:
        known: values that are secret wherever they stand (keys that were loaded, values of the environment), or a
            mapping of names to such values. They are also found in base64, URL, JSON, shell, XML and hex spelling, and
            when colours or quotes split them.
    """

    __slots__ = ("_forms", "_values", "_weak")

    def __init__(self, known: "Iterable[str] | Mapping[str, str]" = ()) -> None:
        self._values: set[str] = set()
        self._forms: tuple[str, ...] = ()
        self._weak: tuple[str, ...] = ()
        named = getattr(known, "items", None)
        for name, value in named() if named else (("", value) for value in known):
            self.add(value, name)

    @property
    def weak(self) -> "tuple[str, ...]":
        """What is known but not replaced literally, as sentences that do not show it: `DB_PASSWORD: plain words`."""
        return self._weak

    def known(self) -> "tuple[str, ...]":
        """The values themselves, for a process of ours that has to redact the same; never to be shown or stored."""
        return tuple(self._values)

    def add(self, value: str, name: str = "") -> None:
        """Makes one more value known. An empty one is ignored; a weak one is only listed in `weak`."""
        if not value or value in self._values:
            return
        from guard.redaction.known import disguises, weakness

        self._values.add(value)
        if reason := weakness(value):
            self._weak = (*self._weak, f"{name or f'a value of {len(value)} characters'}: {reason}")
            return
        self._forms = tuple(sorted({*self._forms, *disguises(value)}, key=len, reverse=True))

    def text(self, text: str) -> str:
        """The text with every secret replaced. Idempotent, linear in time, never raises."""
        if not text:
            return text
        from guard.redaction.blocks import CLOSED

        return _settled(text, 0, CLOSED, self._forms)[0]

    def pieces(self, text: str) -> "tuple[str, ...]":
        """The secrets that `text` would replace, as they stand there and without quotes; never to be shown or stored.

        For texts made from this one, in which a secret has lost what it is known by (`user%word` without its program).
        """
        from guard.redaction.blocks import CLOSED
        from guard.redaction.scan import cuts_of

        cuts, _ = cuts_of(text, 0, CLOSED, self._forms)
        found: dict[str, None] = {}
        for start, end, _mask in cuts:
            for piece in (text[start:end], text[start:end].strip("\"'"), text[start:end].replace("\\", "")):
                if len(piece) >= SHORTEST_PIECE and MASK not in piece:
                    found[piece] = None
        return tuple(sorted(found, key=len, reverse=True))

    def mentions(self, text: str) -> bool:
        """Whether a known value stands in `text` in a usual spelling: quick, before redacting a long text again."""
        return any(form in text for form in self._forms)

    def stream(self) -> "Stream":
        """For text that comes in pieces."""
        return Stream(self)

    def byte_stream(self) -> "ByteStream":
        """For bytes that come in pieces and need not be valid UTF-8."""
        return ByteStream(self)


class Stream:
    """Redacts text that comes in pieces: no secret survives because two pieces divide it.

    Whole lines are given back at once; the last, unfinished one is held back. Of a line longer than LINE_CHARS all but
    the last HOLD_CHARS are given back, cut where no secret is; a secret longer than that is swallowed to its end
    without being kept. So at most LINE_CHARS plus one piece of input are in memory. Not for use by two threads at once.
    """

    __slots__ = ("_buffer", "_context", "_redactor", "_state", "_swallow")

    def __init__(self, redactor: Redactor) -> None:
        from guard.redaction.blocks import CLOSED

        self._redactor = redactor
        self._buffer = ""
        self._context = ""
        self._state: State = CLOSED
        self._swallow = False

    def feed(self, text: str) -> str:
        """Takes the next piece and returns what can be shown by now, "" if nothing."""
        if len(text) <= PIECE_CHARS:
            return self._feed(text)
        return "".join(self._feed(text[at : at + PIECE_CHARS]) for at in range(0, len(text), PIECE_CHARS))

    def flush(self) -> str:
        """Ends the stream and returns the rest. The stream can be used again for another text."""
        from guard.redaction.blocks import CLOSED

        rest = self._swallowed(self._buffer) if self._swallow else self._buffer
        out = self._settle(rest) if rest else ""
        self._buffer = self._context = ""
        self._state = CLOSED
        self._swallow = False
        return out

    def _feed(self, text: str) -> str:
        if self._swallow:
            text = self._swallowed(text)
        self._buffer += text
        end = self._buffer.rfind("\n") + 1
        out = ""
        if end:
            end = self._held_line(end)
        if end:
            lines, self._buffer = self._buffer[:end], self._buffer[end:]
            out = self._settle(lines)
        while len(self._buffer) > max(LINE_CHARS, 4 * self._hold()):
            out += self._long_line()
        return out

    def _held_line(self, end: int) -> int:
        """Keeps back lines whose meaning the next line decides: `value: …` before `name: …`, a `\\`, a seed."""
        for _ in range(3):
            start = self._buffer.rfind("\n", 0, max(0, end - 1)) + 1
            line = self._buffer[start:end].rstrip()
            lower = line[:64].lower()
            bare = 16 <= len(line) <= 52 and line.isalnum() and line.isupper()
            if not (bare or line.endswith("\\") or _awaits_name(lower)) or len(line) > 4096:
                break
            end = start
        return end

    def _hold(self) -> int:
        forms = self._redactor._forms
        return max(HOLD_CHARS, 2 * len(forms[0])) if forms else HOLD_CHARS

    def _settle(self, text: str) -> str:
        begin = len(self._context)
        out, self._state = _settled(self._context + text, begin, self._state, self._redactor._forms)
        self._remember(out)
        return out[begin:]

    def _remember(self, written: str) -> None:
        tail = written[-CONTEXT_CHARS:]
        if tail.endswith("\n"):
            lines = tail.split("\n")
            tail = "\n".join(lines[-5:]) if len(lines) > 5 else tail
        self._context = tail

    def _long_line(self) -> str:
        """Writes the safe part of a line that does not end."""
        from guard.redaction.scan import cuts_of

        whole = self._context + self._buffer
        begin = len(self._context)
        cuts, _ = cuts_of(whole, begin, self._state, self._redactor._forms)
        limit = len(whole) - self._hold()
        for a, b, _mask in cuts:
            if a < limit < b:
                limit = a
                if b == len(whole) or a == begin:
                    limit = b
                    self._swallow = b == len(whole)
                break
        out: list[str] = []
        at = begin
        for a, b, mask in cuts:
            if a >= limit:
                break
            out += (whole[at:a], mask)
            at = b
        out.append(whole[at:limit])
        self._buffer = whole[limit:]
        text = "".join(out)
        self._remember(self._context + text)
        return text

    def _swallowed(self, text: str) -> str:
        """Drops the rest of a secret that was too long to hold."""
        ends = [
            at for at in (text.find(stop) for stop in ("\n", " ", "\t", '"', "'", ",", ";", "<", "-----END")) if at >= 0
        ]
        if not ends:
            return ""
        self._swallow = False
        return text[min(ends) :]


class ByteStream:
    """A Stream for bytes: bad UTF-8 passes through unchanged and never hides or splits a secret."""

    __slots__ = ("_decoder", "_stream")

    def __init__(self, redactor: Redactor) -> None:
        import codecs

        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._stream = Stream(redactor)

    def feed(self, data: bytes) -> bytes:
        """Takes the next bytes and returns what can be shown by now."""
        return self._stream.feed(self._decoder.decode(data)).encode("utf-8", "surrogateescape")

    def flush(self) -> bytes:
        """Ends the stream and returns the rest."""
        rest = self._stream.feed(self._decoder.decode(b"", True)) + self._stream.flush()
        self._decoder.reset()
        return rest.encode("utf-8", "surrogateescape")


def _awaits_name(line: str) -> bool:
    """Whether this lower-case line is a `value: …` that a `name: …` in the next line may turn into a secret."""
    at = line.find("value")
    return at >= 0 and line[at + 5 : at + 9].lstrip("\"' ")[:1] in (":", "=")


def _settled(text: str, begin: int, state: "State", forms: "tuple[str, ...]") -> "tuple[str, State]":
    """Redacts until nothing changes any more, which is what makes it idempotent.

    A change can only make another rule fit near by, so after the first pass only the surroundings of the changes are
    read again; where blocks or further changes are met, the whole text is.
    """
    from guard.redaction.scan import redacted, replaced, settled_near

    for attempt in range(_PASSES):
        cuts, out, after = redacted(text, begin, state, forms)
        if out == text or (attempt == 0 and settled_near(out, cuts, forms)):
            return out, after
        text = out
    return replaced(text, [(begin, len(text), MASK)]), state
