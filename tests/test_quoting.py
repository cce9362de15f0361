"""What is quoted comes back from a real bash, byte for byte."""

from __future__ import annotations

import subprocess

from hypothesis import given, settings
from hypothesis import strategies as st

from guard.quoting import joined, quoted

words = st.text(st.characters(blacklist_characters="\0", blacklist_categories=("Cs",)), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(words, min_size=1, max_size=6))
def test_bash_gets_back_exactly_the_words_that_were_quoted(argv):
    shown = subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-c", "printf '%s\\0' " + joined(argv)], capture_output=True, check=True
    )
    assert shown.stdout == b"".join(word.encode() + b"\0" for word in argv)


def test_a_word_with_an_equals_sign_never_becomes_an_assignment():
    assert quoted("PATH=/tmp") == "'PATH=/tmp'"


def test_plain_words_stay_readable():
    assert joined(["df", "-h", "/var/log"]) == "df -h /var/log"
