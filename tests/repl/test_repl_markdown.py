"""Markdown as it comes in: what is whole leaves, and looks as it should at any width."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.utils import get_cwidth

from agent.repl.blocks import BLANK, CODE, CODE_CLOSE, CODE_OPEN, HEADING, ITEM, PARAGRAPH, QUOTE, RULE, TABLE, cut
from agent.repl.lines import cut as cut_line
from agent.repl.lines import fitting, text_of, width, wrap
from agent.repl.markdown import inline, rendered
from guard import render
from tests.repl.conversation import golden

PAGE = """# A heading that is long enough to be broken when the window is narrow, 标题很长的时候也要换行显示
Some **strong** and *soft* and `code` words, and [a link](https://example.com/x).
- one
  goes on
  - nested 项目
- two with a very long text that has to go on in the next row, below its own words and not below its mark
12. twelve
> quoted words
---
| name | 数量 | remark |
|:---|---:|---|
| short | 1 | x |
| 很长的中文名称 | 12345 | a remark that does not fit into a narrow window and goes on below itself |
```python
def f(x):
\treturn "一二三" + x

```
the end
"""


@pytest.mark.parametrize("columns", [30, 80, 120])
def test_page_looks_as_on_paper(columns):
    rows = [text_of(line) for line in rendered(cut(PAGE, final=True).blocks, columns)]
    assert all(render.width(row) <= columns for row in rows)
    golden(f"markdown-{columns}.txt", "\n".join(rows) + "\n")


def test_kinds_of_blocks():
    kinds = [block.kind for block in cut(PAGE, final=True).blocks]
    code = [CODE_OPEN, CODE, CODE, CODE, CODE_CLOSE]
    assert kinds == [HEADING, PARAGRAPH, ITEM, PARAGRAPH, ITEM, ITEM, ITEM, QUOTE, RULE, TABLE, *code, PARAGRAPH]


@pytest.mark.parametrize(
    ("text", "kinds", "rest"),
    [
        ("words", [], "words"),
        ("words\nmore", [PARAGRAPH], "more"),
        ("words\n\n", [PARAGRAPH, BLANK], ""),
        ("words\n- item\n  on\n", [PARAGRAPH, ITEM, PARAGRAPH], ""),
        ("| a |\n", [], "| a |\n"),
        ("| a |\nx", [], "| a |\nx"),
        ("```\nline\nhalf", [CODE_OPEN, CODE], "half"),
        ("# head\ntail", [HEADING], "tail"),
    ],
)
def test_only_what_is_whole_leaves(text, kinds, rest):
    found = cut(text)
    assert ([block.kind for block in found.blocks], found.rest) == (kinds, rest)


def test_code_goes_on_inside_its_fence():
    first = cut("````\na\n")
    second = cut("```\nb\n````\nx", first.fence)
    assert [(block.kind, block.text) for block in second.blocks] == [(CODE, "```"), (CODE, "b"), (CODE_CLOSE, "")]
    assert (second.rest, second.fence) == ("x", "")


def test_endless_line_does_not_wait_for_its_end():
    assert cut("x" * 50_000).rest == "" and cut("word " * 10_000).rest == ""
    assert len(cut("| x |\n" * 2_000).blocks) >= 4


def test_lines_of_a_paragraph_stay_lines_with_their_indentation():
    text = "4 ok:\n  ok  / is 50% full\n  ok  内存\n"
    assert [text_of(row) for row in rendered(cut(text).blocks, 80)] == ["4 ok:", "  ok  / is 50% full", "  ok  内存"]


def test_unpaired_marks_stand_as_they_came():
    for text in ("2 * 3 * 4", "a ** b", "`x", "[a](", "snake_case_name", "*"):
        assert text_of(inline(text)) == text


def test_marks_become_styles_and_go():
    assert inline("**a** *b* `c` [d](e)") == [
        *(("md.strong", "a"), ("", " "), ("md.em", "b"), ("", " "), ("md.code", "c"), ("", " ")),
        *(("md.link", "d"), ("", " (e)")),
    ]


@pytest.mark.parametrize("text", ["`" * 60_000, "**" * 30_000, "[" * 60_000, "*a" * 30_000, "[a](" * 15_000])
def test_endless_line_is_not_searched_for_pairs(text):
    assert inline(text) == [("", text)], "looking for pairs would take time with the square of its length"


def test_words_of_a_model_cannot_drive_the_terminal():
    rows = rendered(cut("\x1b[2J\x1b]52;c;x\x07 \u202e\n```\n\x1b[31m\n```\n| \x1b |\n", final=True).blocks, 80)
    assert not any(ord(char) < 32 or char in "\x7f\x9b\u202e" for row in rows for char in text_of(row))
    assert "⟨ESC⟩[2J" in text_of(rows[0])


@given(st.text(max_size=200), st.integers(20, 90))
def test_any_text_fits_any_window(text, columns):
    for row in rendered(cut(text, final=True).blocks, columns):
        assert width(row) <= columns and "\n" not in text_of(row)


@given(st.text(alphabet="ab 磁盘\u0301é", max_size=80), st.integers(10, 40))
def test_wrapping_loses_nothing_but_blanks(text, columns):
    rows = wrap([("x", text)], columns)
    assert "".join(map(text_of, rows)).replace(" ", "") == text.replace(" ", "")
    assert all(width(row) <= columns for row in rows)


@given(st.text(alphabet="a磁b ", max_size=30), st.integers(0, 40))
def test_cut_line_fits_and_says_that_it_was_cut(text, columns):
    line = cut_line((("x", text),), columns)
    if render.width(text) <= columns:
        assert text_of(line) == text
    elif columns >= render.width(render.CLIPPED):
        assert width(line) <= columns and text_of(line).endswith(render.CLIPPED)
    assert render.width(text[: fitting(text, columns)]) <= columns


def test_terminal_library_and_renderer_agree_about_widths():
    """What `render.visible` leaves as it is takes the columns that prompt_toolkit's table says, or rows would shift.

    Trigrams and hexagrams became wide with Unicode 16, which the two tables may not have at the same time.
    """
    wrong = []
    for code in (*range(0x20, 0x3000), *range(0x3000, 0xFB00, 7), *range(0x1F300, 0x1FA00)):
        char = chr(code)
        if 0xD800 <= code <= 0xDFFF or render.visible_line(f"a{char}b") != f"a{char}b":
            continue
        if render.width(char) != get_cwidth(char) and not unicodedata.name(char, "").split()[0].endswith("GRAM"):
            wrong.append(f"U+{code:04X}")
    assert wrong == []
