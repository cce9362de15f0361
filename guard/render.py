# ruff: noqa: E501 - tables of characters
"""Shows text that is not ours so that what is there is what is seen: the one renderer for commands, paths and output.

Controls, escapes, direction marks, invisible and odd blanks, look-alikes and invalid bytes become markers like `⟨ESC⟩`
or `⟨U+202E⟩`; long runs of blanks are counted. CJK and ordinary accented letters are shown as they are. `visible` is
injective: different texts never render alike, because a literal bracket of a marker is itself shown as a marker. Pure.
Sources: Unicode UAX #9 (bidi), UAX #15 (NFC), UAX #11 (width), UTS #39 (confusables).
"""

OPEN, CLOSE = "⟨", "⟩"
CONTINUED = "⟨+⟩"
"""Begins every row that continues a line in `wrap`; text cannot contain it."""
CLIPPED = "⟨…⟩"
"""Ends a text that `clip` cut."""
BLANK_RUN = 16
"""From this many blanks in a row on, they are counted instead of drawn: enough for indentation, too few to hide behind."""
LINE_RUN = 4
"""From this many line feeds in a row on, they are counted."""

_NAMES = {
    0: "NUL", 7: "BEL", 8: "BS", 9: "TAB", 11: "VT", 12: "FF", 13: "CR", 27: "ESC", 127: "DEL", 0x85: "NEL", 0x9B: "CSI",
    0xA0: "NBSP", 0xAD: "SHY", 0x200B: "ZWSP", 0x200E: "LRM", 0x200F: "RLM", 0x202A: "LRE", 0x202B: "RLE", 0x202C: "PDF",
    0x202D: "LRO", 0x202E: "RLO", 0x2066: "LRI", 0x2067: "RLI", 0x2068: "FSI", 0x2069: "PDI", 0xFEFF: "BOM",
}  # fmt: skip
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\ufffc\ufffd\u17b4\u17b5")
_LOOK_LIKE_ASCII = frozenset(
    "\u2010\u2011\u2012\u2013\u2212\ufe63\u02d7\u2044\u2215\u29f8\u2236\u02d0\ua789\u05c3\u01c3\u2223\u2024\u0131\u0251\u0261\u2018\u2019\u02bc\u02b9\u2032\u00b4\u02cb\u201a\u2016\u01c0\u2217\u204e\u223c\u02dc\u2039\u203a\u02c2\u02c3"
)
"""Signs outside ASCII that cannot be told from an ASCII sign that means something to a shell."""
_TWINS = frozenset("аеорсухіјѕһԁԛԝѵԍАВЕКМНОРСТУХЅІЈԌԚԜΑΒΕΖΗΙΚΜΝΟΡΤΥΧονκρ")
"""Cyrillic and Greek letters drawn like Latin ones. Shown as they are only inside words of their own script."""
_MARKED_SCRIPTS = (
    (0x0591, 0x05C7),
    (0x0610, 0x06ED),
    (0x0900, 0x0DFF),
    (0x0E31, 0x0ECD),
    (0x0F18, 0x0FBC),
    (0x1000, 0x109D),
    (0x1780, 0x17D3),
)
"""Blocks whose writing needs combining marks, so that these are shown behind a letter of the same block."""


def visible(text: str, *, blank_run: int = BLANK_RUN, line_run: int = LINE_RUN, keep: str = "\n") -> str:
    """The text as it may be shown to a person who decides about it. Injective for fixed settings.

    Args:
        blank_run: from how many spaces on they are counted; 0 draws all but those at the end of a line.
        line_run: from how many line feeds on they are counted; 0 draws all.
        keep: controls that are drawn as they are: "\\n" for text of several lines, "" for one line.
    """
    if text.isascii() and text.isprintable() and "  " not in text and text[-1:] != " ":
        return text
    out: list[str] = []
    at, size = 0, len(text)
    twins = _twin_places(text) if not text.isascii() else frozenset()
    while at < size:
        char = text[at]
        if char == " " or (char == "\n" and "\n" in keep):
            end = at + 1
            while end < size and text[end] == char:
                end += 1
            out.append(_run(char, end - at, end == size or text[end] == "\n", blank_run, line_run))
            at = end
            continue
        if " " < char < "\x7f" or (char in keep and char in "\t"):
            out.append(char)
        elif at in twins or not _plain(char, text[at - 1] if at else ""):
            out.append(marker(char))
        else:
            out.append(char)
        at += 1
    return "".join(out)


def visible_line(text: str) -> str:
    """The text on one line: line feeds are markers too."""
    return visible(text, keep="")


def marker(char: str) -> str:
    """How one character is shown that must not be drawn: `⟨ESC⟩`, `⟨U+202E⟩`, `⟨byte FF⟩` for an undecodable byte."""
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:
        return f"{OPEN}byte {code - 0xDC00:02X}{CLOSE}"
    if code == 10:
        return f"{OPEN}LF{CLOSE}"
    return f"{OPEN}{_NAMES.get(code) or f'U+{code:04X}'}{CLOSE}"


def width(text: str) -> int:
    """Columns that already visible text takes on a terminal: two for wide characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(_columns(char) for char in text)


def wrap(text: str, columns: int) -> list[str]:
    """Rows of at most `columns` (at least 8) for visible text; a row that continues a line begins with CONTINUED.

    Nothing is dropped: `"".join` of the rows without their marks, and a line feed before every row without one, is the text.
    """
    columns = max(8, columns)
    rows = []
    for line in text.split("\n"):
        first = True
        while True:
            room = columns - (0 if first else len(CONTINUED))
            end = _fit(line, room)
            if end < len(line):
                blank = end
                while blank > 0 and line[blank] != " ":
                    blank -= 1
                while blank > 0 and line[blank - 1] == " ":
                    blank -= 1
                if blank > end // 2:
                    end = blank
            rows.append(line[:end] if first else CONTINUED + line[:end])
            line = line[end:]
            first = False
            if not line:
                break
    return rows


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """Visible text filled with blanks to `columns`, behind it or (`right`) before it; longer text stays as it is."""
    fill = " " * max(0, columns - width(text))
    return fill + text if right else text + fill


def clip(text: str, columns: int) -> str:
    """Visible text cut to `columns`; a cut is shown by CLIPPED at the end, if there is room for that."""
    if width(text) <= columns:
        return text
    room = columns - len(CLIPPED)
    if room < 0:
        return CLIPPED[: max(0, columns)]
    end = _fit(text, room)
    return text[: end if width(text[:end]) <= room else 0] + CLIPPED


def _run(char: str, count: int, at_end: bool, blank_run: int, line_run: int) -> str:
    if char == "\n":
        if line_run and count >= line_run:
            return f"\n{OPEN}{count} line feeds{CLOSE}\n"
        return char * count
    if at_end or (blank_run and count >= blank_run):
        return f"{OPEN}{count} blank{'s' if count > 1 else ''}{CLOSE}"
    return char * count


def _plain(char: str, before: str) -> bool:
    """Whether a character beyond ASCII can be drawn as it is, behind `before`."""
    import unicodedata

    code = ord(char)
    category = unicodedata.category(char)
    if category[0] in "CZ" or char in _BLANK_LETTERS or char in _LOOK_LIKE_ASCII or char in (OPEN, CLOSE):
        return False
    if category[0] == "M":
        if not any(
            first <= code <= last and before and first - 0x40 <= ord(before) <= last for first, last in _MARKED_SCRIPTS
        ):
            return False
        return unicodedata.normalize("NFC", before + char) == before + char and unicodedata.category(before)[0] in "LM"
    if 0x1100 <= code <= 0x11FF or 0xA960 <= code <= 0xA97F or 0xD7B0 <= code <= 0xD7FF or 0x1D400 <= code <= 0x1D7FF:
        return False
    return unicodedata.normalize("NFC", char) == char


def _twin_places(text: str) -> "frozenset[int]":
    """Where letters stand that are drawn like Latin ones, in words made of nothing else that would give them away."""
    places: list[int] = []
    at, size = 0, len(text)
    while at < size:
        if not text[at].isalnum():
            at += 1
            continue
        end = at
        while end < size and text[end].isalnum():
            end += 1
        word = text[at:end]
        if (not word.isascii() and all(char.isascii() or char in _TWINS for char in word)) or (
            not word.isascii() and any("a" <= char.lower() <= "z" for char in word)
        ):
            places += (at + index for index, char in enumerate(word) if char in _TWINS)
        at = end
    return frozenset(places)


def _columns(char: str) -> int:
    import unicodedata

    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _fit(text: str, columns: int) -> int:
    """How many characters of the text fit; at least one of a text that is not empty."""
    used = 0
    for index, char in enumerate(text):
        used += 1 if char < "\x7f" else _columns(char)
        if used > columns and index:
            return index
    return len(text)
