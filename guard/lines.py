"""Lines as programs and the kernel write them. Pure."""


def lines_of(text: str) -> "list[str]":
    """The lines of a text. Only LF ends one.

    `str.splitlines` has ten more ends (U+2028, U+0085, form feed …). A name, a comment or a log message may hold them,
    and whoever picks it could then write lines of their own into what is read here.
    """
    lines = text.split("\n")
    return lines if lines[-1] else lines[:-1]
