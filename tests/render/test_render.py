# ruff: noqa: E501 - one row of a table is one line
"""The renderer: what is there is what is seen, and different texts never look alike."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard.render import CLIPPED, CONTINUED, clip, pad, visible, visible_line, width, wrap

GOLDEN = [
    ("ls -la /tmp", "ls -la /tmp"),
    ("", ""),
    ("ls ", "ls⟨1 blank⟩"),
    ("ls  -l", "ls  -l"),
    ("ls" + " " * 40 + "; rm -rf x", "ls⟨40 blanks⟩; rm -rf x"),
    ("a\tb", "a⟨TAB⟩b"),
    ("a\rb", "a⟨CR⟩b"),
    ("\x1b[31mred\x1b[0m", "⟨ESC⟩[31mred⟨ESC⟩[0m"),
    ("\x9b31m", "⟨CSI⟩31m"),
    ("nul\0", "nul⟨NUL⟩"),
    ("abc\u202edef", "abc⟨RLO⟩def"),
    ("a\u200bb", "a⟨ZWSP⟩b"),
    ("a\u00a0b", "a⟨NBSP⟩b"),
    ("a\u3000b", "a⟨U+3000⟩b"),
    ("a\u2028b", "a⟨U+2028⟩b"),
    ("bad\udcffbyte", "bad⟨byte FF⟩byte"),
    ("lone\ud800", "lone⟨U+D800⟩"),
    ("⟨ESC⟩", "⟨U+27E8⟩ESC⟨U+27E9⟩"),
    ("磁盘 /数据", "磁盘 /数据"),
    ("café naïve Ångström", "café naïve Ångström"),
    ("cafe\u0301", "cafe⟨U+0301⟩"),
    ("\u0301", "⟨U+0301⟩"),
    ("\u212bngstrom", "⟨U+212B⟩ngstrom"),
    ("привет мир", "привет мир"),
    ("rm -rf /\u0440", "rm -rf /⟨U+0440⟩"),
    ("p\u0430sswd", "p⟨U+0430⟩sswd"),
    ("ls \u2013l", "ls ⟨U+2013⟩l"),
    ("\u2215etc", "⟨U+2215⟩etc"),
    ("हिन्दी ไทย", "हिन्दी ไทย"),
    ("a\n\nb", "a\n\nb"),
    ("a\n\n\n\n\n\nb", "a\n⟨6 line feeds⟩\nb"),
    ("\U000e0041", "⟨U+E0041⟩"),
    ("\ue000", "⟨U+E000⟩"),
    ("\u3164", "⟨U+3164⟩"),
]


@pytest.mark.parametrize(("text", "shown"), GOLDEN)
def test_every_kind_is_shown_as_in_the_table(text, shown):
    assert visible(text) == shown


def test_a_line_shows_line_feeds_as_markers():
    assert visible_line("a\n\nb") == "a⟨LF⟩⟨LF⟩b"


NAMES = {
    "NUL": 0, "BEL": 7, "BS": 8, "TAB": 9, "LF": 10, "VT": 11, "FF": 12, "CR": 13, "ESC": 27, "DEL": 127, "NEL": 0x85,
    "CSI": 0x9B, "NBSP": 0xA0, "SHY": 0xAD, "ZWSP": 0x200B, "LRM": 0x200E, "RLM": 0x200F, "LRE": 0x202A, "RLE": 0x202B,
    "PDF": 0x202C, "LRO": 0x202D, "RLO": 0x202E, "LRI": 0x2066, "RLI": 0x2067, "FSI": 0x2068, "PDI": 0x2069, "BOM": 0xFEFF,
}  # fmt: skip


def read_back(shown: str) -> str:
    """The inverse of `visible`: that it exists is what injective means."""
    shown = re.sub(r"\n⟨(\d+) line feeds⟩\n", lambda m: "\n" * int(m[1]), shown)

    def one(match: re.Match[str]) -> str:
        body = match[1]
        if blanks := re.fullmatch(r"(\d+) blanks?", body):
            return " " * int(blanks[1])
        if byte := re.fullmatch(r"byte ([0-9A-F]{2})", body):
            return chr(0xDC00 + int(byte[1], 16))
        if code := re.fullmatch(r"U\+([0-9A-F]{4,6})", body):
            return chr(int(code[1], 16))
        return chr(NAMES[body])

    return re.sub(r"⟨([^⟨⟩]*)⟩", one, shown)


AWKWARD = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(" \n\t\x1b⟨⟩\u202e\u0301\u0430aeо \udcff\ud800é한글漢ⅠÅक्षิ0123+U"),
        st.integers(0xD800, 0xDFFF).map(chr),
    ),
    max_size=60,
)


@pytest.mark.guarantee("G-VISIBLE")
@settings(max_examples=400, deadline=None)
@given(AWKWARD)
def test_every_text_can_be_read_back_from_what_is_shown(text):
    assert read_back(visible(text)) == text
    assert read_back(visible_line(text)) == text
    assert read_back(visible(text, blank_run=0, line_run=0)) == text


@settings(max_examples=300, deadline=None)
@given(AWKWARD)
def test_nothing_that_a_terminal_obeys_is_left(text):
    import unicodedata

    shown = visible(text)
    assert not [c for c in shown if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]
    assert not [c for c in shown if unicodedata.category(c) == "Zs" and c != " "]
    assert not any(line.endswith(" ") for line in shown.split("\n"))


@settings(max_examples=300, deadline=None)
@given(AWKWARD)
def test_canonically_equal_texts_are_told_apart(text):
    import unicodedata

    other = unicodedata.normalize("NFD", text)
    if other != text:
        assert unicodedata.normalize("NFC", visible(other)) != unicodedata.normalize("NFC", visible(text))


@settings(max_examples=300, deadline=None)
@given(AWKWARD, st.integers(8, 50))
def test_wrapped_rows_fit_and_lose_nothing(text, columns):
    shown = visible(text)
    rows = wrap(shown, columns)
    assert all(width(row) <= columns for row in rows)
    joined = rows[0]
    for row in rows[1:]:
        joined += row[len(CONTINUED) :] if row.startswith(CONTINUED) else "\n" + row
    assert joined == shown
    assert not any(row.endswith(" ") for row in rows)


def test_rows_break_before_blanks():
    assert wrap("systemctl restart nginx", 12) == ["systemctl", "⟨+⟩ restart", "⟨+⟩ nginx"]


def test_width_counts_wide_and_combining_characters():
    assert [width("abc"), width("磁盘"), width("é"), width("e\u0301"), width("한a")] == [3, 4, 1, 1, 3]


def test_padding_and_clipping_count_columns():
    assert pad("磁盘", 6) == "磁盘  "
    assert pad("7", 3, right=True) == "  7"
    assert pad("longer", 3) == "longer"
    assert clip("磁盘使用率", 7) == "磁盘" + CLIPPED
    assert clip("short", 5) == "short"
    assert all(width(clip("磁盘使用率 of the machine", n)) <= n for n in range(30))
