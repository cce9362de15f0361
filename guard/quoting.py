"""Words to bash text: the inverse of reading a command. Pure, and on the hot path."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+:,./-_")
"""Characters that mean themselves wherever they stand in a word; `=` is left out, it can make an assignment."""


def quoted(word: str) -> str:
    """The word as bash reads it back, whatever is in it."""
    if word and _PLAIN.issuperset(word):
        return word
    return "'" + word.replace("'", "'\"'\"'") + "'"


def joined(argv: "Iterable[str]") -> str:
    """An argv as one line of bash that runs exactly it."""
    return " ".join(quoted(word) for word in argv)
