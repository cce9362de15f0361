"""Chooses the runbooks that a question is about, and sees whether it asks for a change. Pure.

No model: phrases with weights in both languages (`runbooks.phrases`), at most three runbooks, and the words that
decided. A question that nothing fits gets the overview and is told what can be checked.
"""

from guard.types import Value
from runbooks.catalogue import OVERVIEW, RANKED
from runbooks.changes import Change, change_in
from runbooks.phrases import ENOUGH, LAST, PHRASES, STRONG
from runbooks.words import Question, compiled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST = 3
"""So many runbooks at most: an answer about everything is the overview's job."""

MOST_CHARACTERS = 4000
"""So much of a question is read; a longer text is a log or a file, not a question."""


class Chosen(Value):
    """One runbook and the words of the question that chose it."""

    __slots__ = ("id", "because")
    id: str
    because: "tuple[str, ...]"

    def __init__(self, id: str, because: "Iterable[str]" = ()) -> None:
        self.id = id
        self.because = tuple(because)


class Plan(Value):
    """What to run for a question."""

    __slots__ = ("chosen", "left_out", "matched", "change", "lang")
    chosen: "tuple[Chosen, ...]"
    """One to three, in the catalogue's order."""
    left_out: "tuple[str, ...]"
    """Runbooks that fit too, beyond the three."""
    matched: bool
    """False: nothing fitted, and the overview stands in."""
    change: "Change | None"
    """What the question wants changed, which this brain never does."""
    lang: str
    """`en` or `zh`: the language of the question."""

    def __init__(
        self,
        chosen: "Iterable[Chosen]",
        left_out: "Iterable[str]" = (),
        matched: bool = True,
        change: "Change | None" = None,
        lang: str = "en",
    ) -> None:
        self.chosen = tuple(chosen)
        self.left_out = tuple(left_out)
        self.matched = matched
        self.change = change
        self.lang = lang


def plan(text: str, *, known: "Sequence[str]" = RANKED, own: "Mapping[str, Sequence[str]] | None" = None) -> Plan:
    """The runbooks for a question, in any mix of English and Chinese.

    Args:
        text: the question; only its first MOST_CHARACTERS are looked at.
        known: the built-in runbooks that may be chosen.
        own: phrases of the user's runbooks by id; each of them decides alone.
    """
    question = Question(text[:MOST_CHARACTERS])
    change = change_in(question)
    scores, because, last = {}, {}, {}
    known = (*known, *(own or {}))
    for id in (OVERVIEW, *known):
        table = [(STRONG, ";".join(own[id]))] if own and id in own else PHRASES[id]
        score, words, last_words = _score(id, table, question)
        scores[id], because[id] = score, words
        if last_words:
            last[id] = last_words
    chosen = [id for id in known if scores[id] >= ENOUGH]
    if not chosen and scores[OVERVIEW] >= ENOUGH:
        chosen = [OVERVIEW]
    if not chosen and last:
        chosen = [id for id in known if id in last] or [OVERVIEW]
        because.update(last)
    matched = bool(chosen)
    best = sorted(chosen, key=lambda id: (-scores[id], known.index(id) if id in known else -1))
    kept = [id for id in (OVERVIEW, *known) if id in best[:MOST]] or [OVERVIEW]
    return Plan(
        (Chosen(id, because[id]) for id in kept),
        (id for id in known if id in best[MOST:]),
        matched,
        change,
        question.lang,
    )


def _score(id: str, table: "list[tuple[int, str]]", question: Question) -> "tuple[int, list[str], list[str]]":
    """The score, the words that made it, and the words of last-resort phrases."""
    score, words, last_words = 0, [], []
    for weight, phrases in compiled(id if id in PHRASES else f"own:{table[0][1]}", table):
        for phrase in phrases:
            found = phrase.found_in(question)
            if found is None:
                continue
            if weight == LAST:
                last_words.append(found)
            else:
                score += weight
                words.append(found)
    return score, _distinct(words), _distinct(last_words)


def _distinct(words: "list[str]") -> "list[str]":
    """Each matched text once, without those that lie within another."""
    kept: list[str] = []
    for word in sorted(dict.fromkeys(words), key=len, reverse=True):
        if not any(word in other for other in kept):
            kept.append(word)
    return kept[:3]
