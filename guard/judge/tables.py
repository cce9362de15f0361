"""Long lists of words, written as text: one blank between two words."""


def names(text: str) -> "frozenset[str]":
    """The words of a text, for `in`."""
    return frozenset(text.split())


def starts(text: str) -> "tuple[str, ...]":
    """The words of a text, for `str.startswith` and for `in` where order or length matters."""
    return tuple(text.split())
