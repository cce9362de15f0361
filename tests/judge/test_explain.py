"""Explanations: plain words within 80 columns, and nothing of ours is acted on by a terminal."""

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from guard.judge.classify import check
from guard.judge.explain import explain, shown


def test_an_explanation_names_level_decision_reason_place_and_source():
    text = explain(check("ls; rm -rf /srv/x"))
    for part in ("R3", "cannot be undone", "refused", "a person can force it", "files.rm.recursive",
        "rm -rf /srv/x", "rm(1)", "no known way back"):  # fmt: skip
        assert part in text


def test_a_read_is_explained_without_alarm():
    text = explain(check("df -h"))
    assert "R0" in text and "changes nothing that lasts" in text and "It runs" in text


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(min_size=1, max_size=120))
def test_lines_fit_in_80_columns_and_hold_no_control_characters(command):
    for line in explain(check(command)).split("\n"):
        assert len(line) <= 80
        assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for char in line)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(max_size=40), st.text(max_size=40))
def test_different_texts_never_look_alike(one, two):
    assert (shown(one) == shown(two)) == (one == two)
