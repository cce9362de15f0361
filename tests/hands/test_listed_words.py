"""Words as the judge reads them, listed as the lister does, against the arguments that bash hands on."""

from __future__ import annotations

import random

import pytest

import core
from guard.hands.listing import listing
from guard.judge.values import spellings_of
from tests.hands.test_listing import LETTERS, bash_lists, made

PIECES = (
    *"abx1-!^*?[].", "[a-c]", "[!a]", "[^a]", '"*"', "'['", '"]"', "\\*", "\\[", "\\]", '"a"', "'-'", '"!"', "'^'",
    '"[a]"', "$'*'", '"\\*"', "$v", '"$v"', "${v}", "$w", '"$w"', "{a,b}", "{\\*,x}", '"."', "\\\\", "[[:alpha:]]",
    '[":"]', '[["=a="]]',
)  # fmt: skip


def listed(text, folder):
    """The arguments of the command's last words; None where the judge or the lister says that it cannot tell."""
    judge = core.check(text, cwd=str(folder))._judge
    told = []
    for word in (word for ran in judge.ran for word in ran.words[2:]):
        if not word.globs:
            if word.value is None:
                return None
            told.append(word.value)
            continue
        spellings = spellings_of(judge, word)
        if spellings is None or len(spellings) != 1 or spellings[0][1] is None:
            return None
        found = listing(spellings[0][1], 10_000)
        if not found.whole:
            return None
        told += found.names
    return tuple(told)


@pytest.mark.parametrize("seed", range(4))
def test_quotes_variables_and_braces_in_a_pattern_mean_what_bash_takes_them_for(seed, tmp_path, monkeypatch):
    source = random.Random(seed)
    made(tmp_path, {"".join(source.choices(LETTERS, k=source.randint(1, 3))) for _ in range(150)} - {".", ".."})
    monkeypatch.chdir(tmp_path)
    value, other = source.choice(("a*", "[", "x", "!", "b?", "[ab]")), source.choice(("*", "a", "-"))
    words = ["".join(source.choices(PIECES, k=source.randint(1, 5))) for _ in range(400)]
    given = f"v='{value}'; w='{other}'; "
    ours = [listed(f"{given}printf '%s\\0' {word}", tmp_path) for word in words]
    # `printf` without an argument prints one empty one.
    theirs = bash_lists(tmp_path, words, given)
    wrong = [
        (word, own, told)
        for word, own, told in zip(words, ours, theirs, strict=True)
        if own is not None and (own or ("",)) != told
    ]
    assert not wrong, wrong[:20]
    assert sum(own is not None for own in ours) > 250
