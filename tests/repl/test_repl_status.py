"""The status line: what is urgent stands first and is never cut, whatever the window."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agent.repl.lines import text_of, width
from agent.repl.status import Status, short_brain, status_line, words

FULL = Status(
    brain="anthropic",
    model="a-model",
    host="web-1",
    user="root",
    root=True,
    mode="guarded",
    frozen=True,
    context=0.42,
    tokens=12_345,
    cost=0.5,
    unknown=2,
    detached=1,
    busy="working 12 s",
    goal="goal 2/6",
)


def test_line_says_all_of_it():
    assert words(FULL) == (
        "2 UNKNOWN: /executions · 1 detached · FROZEN: /thaw · working 12 s · goal 2/6 · root@web-1 · guarded · "
        "anthropic a-model · context 42% · 12.3k tokens · 0.50"
    )


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_line_fills_its_row_and_no_more(columns):
    line = status_line(replace(FULL, host="网页-1"), columns)
    assert width(line) == columns and text_of(line).startswith(" 2 UNKNOWN")


def test_what_is_urgent_is_red_and_in_words():
    styles = {text.strip(): style for style, text in status_line(FULL, 300)}
    assert styles["2 UNKNOWN: /executions"] == styles["FROZEN: /thaw"] == styles["root@web-1"] == "status-danger"
    calm = dict.fromkeys(style for style, _ in status_line(Status(brain="x", host="h", user="u"), 80))
    assert list(calm) == ["status"]


def test_names_cannot_drive_the_terminal():
    assert "\x1b" not in words(replace(FULL, host="\x1b[2J", brain="\x07"))


def test_hint_stands_first():
    assert words(replace(FULL, hint="Ctrl-C again leaves")).startswith("Ctrl-C again leaves · 2 UNKNOWN")


def test_what_was_written_is_shown_while_the_dock_covers_it():
    assert "kept for later: yes⟨LF⟩and so on" in words(replace(FULL, written="yes\nand so on"))
    assert "…" in words(replace(FULL, written="x" * 100))


def test_script_is_named_by_its_file():
    assert short_brain("script:/a/b/c.toml") == "script:c.toml" and short_brain("local") == "local"


def test_a_change_that_is_taken_back_soon_stands_before_all_else_but_the_hint():
    waits = "back in 45 s: opsx confirm e-7 over a NEW connection"
    assert words(replace(FULL, waits=waits)).startswith(f"{waits} · 2 UNKNOWN")
    styles = {text.strip(): style for style, text in status_line(replace(FULL, waits=waits), 300)}
    assert styles[waits] == "status-danger"
