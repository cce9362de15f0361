"""Words that bash itself knows, as far as the walk over the tree has to tell them from programs."""

STRANGE_MODES = frozenset(
    ("keyword", "histexpand", "history", "extdebug", "compat31", "compat32", "compat40", "compat41", "compat42",
     "compat43", "compat44")
)  # fmt: skip
"""Options of bash under which a text means something else than what is read here (bash(1), set and shopt)."""
LISTING_MODES = frozenset(
    ("noglob", "posix", "dotglob", "extglob", "failglob", "globasciiranges", "globskipdots", "globstar", "nocaseglob",
     "nullglob")
)  # fmt: skip
"""Options under which a pattern lists something else (bash(1), set and shopt)."""
EVALUATING = frozenset(
    ("declare", "typeset", "readonly", "export", "local", "let", "test", "[", "read", "mapfile", "readarray", "printf",
     "unset", "wait", "getopts", "builtin", "command")
)  # fmt: skip
"""Builtins whose operands bash evaluates or assigns; the reader has to see them to tell what they do."""

NAMING = frozenset(("declare", "typeset", "local", "readonly"))
"""Builtins that make a name stand for another one with `-n` (bash(1), PARAMETERS)."""
BUILTINS = frozenset(
    ("cd", "echo", "printf", "test", "[", "true", "false", ":", "exit", "return", "break", "continue", "shift",
        "read", "set", "shopt", "eval", "exec", "source", ".", "export", "unset", "local", "declare", "type",
        "command", "builtin", "wait", "jobs", "trap", "umask", "ulimit", "pwd", "hash", "alias", "unalias", "let",
        "getopts", "kill", "time",)
)  # fmt: skip

HEADS = frozenset(("!", "if", "then", "elif", "else", "while", "until", "do", "{", "coproc"))
"""Reserved words that a command follows."""

WRITES = frozenset((">", ">>", ">|", "&>", "&>>", "<>"))
