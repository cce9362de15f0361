"""Option grammars: what a program's options are called, which take a value, and what that value does.

A grammar is one string of blank-separated entries, `NAMES[:|?][!ACTION]`:

    -l                flag                              -n,--lines:      takes a value (attached or next word)
    --color?          value only when attached          -o,--output:!write   … and the value is a file it writes
    -delete!R3        flag with a level                 -[0-9]           digits as an option (`head -5`)

Bundles (`-la`), `--name=value`, unambiguous beginnings of long names and `--` are read the GNU way, unless the
grammar says `single` (one dash, long names: java, find, terraform) or `posix` (options end at the first operand).

Actions: `read` `write` (`-` means stdout) `exec` (runs what it names: R2) `run` (its value is a command line)
`config` (its own configuration by path: a helper, ambient) `R0` `R1` `R2` `R3` `secret` `net` `helper` `ok`.
"""

from guard.judge.shell.syntax import Expansion, Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

FLAG, VALUE, ATTACHED = 0, 1, 2


class Option:
    """One option that was given."""

    __slots__ = ("name", "action", "value", "word")

    def __init__(self, name: str, action: str, value: "Word | None", word: Word) -> None:
        self.name = name
        """The first of its names in the grammar."""
        self.action = action
        self.value = value
        self.word = word


class Parsed:
    """A command's words after its name, sorted."""

    __slots__ = ("options", "operands", "unknown", "loose", "rest")

    def __init__(self) -> None:
        self.options: list[Option] = []
        self.operands: list[Word] = []
        self.unknown: list[Word] = []
        """Options that the grammar does not have."""
        self.loose = False
        """An expansion stands where it could turn out to be an option."""
        self.rest = 0
        """Index of the first word after the options (with `posix`)."""

    def has(self, name: str) -> bool:
        return any(option.name == name for option in self.options)

    def value(self, name: str) -> "Word | None":
        """The last value given for an option, by its first name."""
        for option in reversed(self.options):
            if option.name == name:
                return option.value
        return None


class Grammar:
    """A compiled option grammar."""

    __slots__ = ("text", "table", "single", "posix", "digits", "longs", "dangerous", "plus")

    def __init__(self, text: str) -> None:
        self.text = text
        self.table: dict[str, tuple[str, int, str]] | None = None
        self.single = self.posix = self.digits = self.plus = False
        self.longs: tuple[str, ...] = ()
        self.dangerous = False

    def compile(self) -> "dict[str, tuple[str, int, str]]":
        table: dict[str, tuple[str, int, str]] = {}
        for entry in self.text.split():
            if entry == "single":
                self.single = True
                continue
            if entry == "posix":
                self.posix = True
                continue
            if entry == "plus":
                self.plus = True
                continue
            if entry == "-[0-9]":
                self.digits = True
                continue
            names, _, action = entry.partition("!")
            kind = FLAG
            if names.endswith(":"):
                kind, names = VALUE, names[:-1]
            elif names.endswith("?"):
                kind, names = ATTACHED, names[:-1]
            if action and action not in ("ok", "R0", "read"):
                self.dangerous = True
            first = ""
            for name in names.split(","):
                first = first or name
                table[name] = (first, kind, action)
        self.longs = tuple(name for name in table if name.startswith("--") or (self.single and len(name) > 2))
        self.table = table
        return table

    def parse(self, words: "Sequence[Word]") -> Parsed:
        """Sorts a command's words. Never raises."""
        table = self.table if self.table is not None else self.compile()
        parsed = Parsed()
        options, operands = parsed.options, parsed.operands
        count, at = len(words), 0
        while at < count:
            word = words[at]
            value = word.value
            if value is None or word.globs:
                prefix = word.prefix
                if not prefix:
                    parsed.loose = True
                elif prefix[0] == "-":
                    self._dynamic(parsed, word, prefix, words, at)
                    at += 1
                    continue
                if self.posix:
                    break
                operands.append(word)
                at += 1
                continue
            if len(value) < 2 or (value[0] != "-" and not (self.plus and value[0] == "+")):
                if self.posix:
                    break
                operands.append(word)
                at += 1
                continue
            if value == "--":
                at += 1
                if self.posix:
                    break
                operands.extend(words[at:])
                at = count
                break
            known = table.get(value)
            if known is not None:
                name, kind, action = known
                argument: Word | None = None
                if kind == VALUE:
                    at += 1
                    argument = words[at] if at < count else None
                options.append(Option(name, action, argument, word))
            elif value[1] == "-" or self.single or _is_named(value, table):
                self._long(parsed, word, value, words, at)
                if parsed.rest:
                    at += 1
                    parsed.rest = 0
            else:
                at = self._bundle(parsed, word, value, words, at)
            at += 1
        parsed.rest = at
        if self.posix:
            operands.extend(words[at:])
        return parsed

    def _long(self, parsed: Parsed, word: Word, value: str, words: "Sequence[Word]", at: int) -> None:
        """`--name`, `--name=value` and beginnings of names; sets `rest` when the next word was taken."""
        head, equals, tail = value.partition("=")
        table = self.table or {}
        known = table.get(head)
        if known is None and len(head) > 2:
            hits = {table[name] for name in self.longs if name.startswith(head)}
            if len(hits) == 1:
                known = hits.pop()
        if known is None:
            if self.digits and value[1:].isdigit():
                return
            parsed.unknown.append(word)
            return
        name, kind, action = known
        argument: Word | None = None
        if equals:
            argument = Word(word.span, tail, (), True)
        elif kind == VALUE:
            argument = words[at + 1] if at + 1 < len(words) else None
            parsed.rest = 1
        parsed.options.append(Option(name, action, argument, word))

    def _bundle(self, parsed: Parsed, word: Word, value: str, words: "Sequence[Word]", at: int) -> int:
        table = self.table or {}
        size = len(value)
        index = 1
        mark = value[0]
        while index < size:
            char = value[index]
            known = table.get(mark + char)
            if known is None:
                if self.digits and char.isdigit():
                    index += 1
                    continue
                parsed.unknown.append(word)
                return at
            name, kind, action = known
            argument: Word | None = None
            if kind != FLAG:
                if index + 1 < size:
                    argument = Word(word.span, value[index + 1 :], (), True)
                elif kind == VALUE:
                    at += 1
                    argument = words[at] if at < len(words) else None
                parsed.options.append(Option(name, action, argument, word))
                return at
            parsed.options.append(Option(name, action, None, word))
            index += 1
        return at

    def _dynamic(self, parsed: Parsed, word: Word, prefix: str, words: "Sequence[Word]", at: int) -> None:
        """An option with an expansion in it: known only when the option itself is literal and takes a value."""
        table = self.table or {}
        head, equals, tail = prefix.partition("=")
        known = table.get(head) if equals or self.single else None
        if known is None and not prefix.startswith("--") and len(prefix) >= 2:
            known = table.get(prefix[:2])
            tail = prefix[2:]
        if known is None or (known[1] == FLAG):
            parsed.unknown.append(word)
            return
        parts = word.parts[1:] if word.parts else (Expansion("glob", "", False),)
        pieces: tuple[str | Expansion, ...] = (tail, *parts) if tail else tuple(parts)
        parsed.options.append(Option(known[0], known[2], Word(word.span, None, pieces, True), word))


def _is_named(value: str, table: "dict[str, tuple[str, int, str]]") -> bool:
    """Whether it is `-name=value` of a long name with one dash, among programs that bundle all others."""
    head, equals, _ = value.partition("=")
    return bool(equals) and len(head) > 2 and head in table


def is_bundle_of(value: str, table: "dict[str, tuple[str, int, str]]") -> bool:
    """Whether a word is short options of the table, the last one perhaps with its value behind it."""
    for char in value[1:]:
        known = table.get(value[0] + char)
        if known is None or known[1] != FLAG:
            return known is not None
    return True
