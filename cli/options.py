"""Reads a verb's arguments against its declaration, and prints help from the same declaration.

Not argparse: importing that costs more than the whole of `opsx check` may (docs/dependencies.md). Options are
`--name`, `--name VALUE`, `--name=VALUE` and short `-x`, `-x VALUE`; no abbreviations, so that a script keeps its
meaning when an option is added. `--` ends the options.
"""

from guard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Option:
    """One option of a verb. `value` is the name of its argument in help, "" for a plain switch."""

    __slots__ = ("name", "short", "value", "help", "many")

    def __init__(self, name: str, help: str, *, value: str = "", short: str = "", many: bool = False) -> None:
        self.name = name
        self.help = help
        self.value = value
        self.short = short
        self.many = many
        """May be given more than once; its value is then a list."""

    @property
    def spelled(self) -> str:
        both = f"-{self.short}, --{self.name}" if self.short and self.name else f"-{self.short or '-' + self.name}"
        return f"{both} {self.value}" if self.value else both


class Verb:
    """One verb of a launcher: what it takes and where its code is."""

    __slots__ = ("name", "module", "summary", "usage", "options", "text", "codes")

    def __init__(
        self,
        name: str,
        module: str,
        summary: str,
        *,
        usage: str = "",
        options: "Iterable[Option]" = (),
        text: str = "",
        codes: str = "",
    ) -> None:
        self.name = name
        self.module = module
        """Module with a `main(parsed) -> int`, imported only when the verb is used."""
        self.summary = summary
        self.usage = usage
        self.options = tuple(options)
        self.text = text
        self.codes = codes

    @property
    def takes_command(self) -> bool:
        """Whether a command's own words can be among its arguments."""
        return "-- CMD" in self.usage


class Parsed:
    """A verb's arguments, read."""

    __slots__ = ("program", "verb", "values", "words", "ended")

    def __init__(self, program: str, verb: Verb) -> None:
        self.program = program
        self.verb = verb
        self.values: dict[str, str | bool | list[str]] = {}
        self.words: list[str] = []
        self.ended = False
        """A `--` was seen; `words` after it are the command's own."""

    def flag(self, name: str) -> bool:
        return bool(self.values.get(name))

    def value(self, name: str, default: str = "") -> str:
        got = self.values.get(name, default)
        return got if isinstance(got, str) else default

    def many(self, name: str) -> "list[str]":
        got = self.values.get(name, [])
        return got if isinstance(got, list) else []

    def whole_number(self, name: str, default: int, *, low: int, high: int) -> int:
        """A whole number between two limits. Raises UsageError."""
        text = self.value(name)
        if not text:
            return default
        if not (text.isascii() and text.isdigit() and low <= int(text[:18]) <= high):
            raise UsageError(
                f"--{name} takes a whole number from {low:,} to {high:,}, not {text!r}", hint=self.help_line()
            )
        return int(text)

    def help_line(self) -> str:
        return " ".join(part for part in (self.program, self.verb.name, "--help") if part)


CONFIG = Option("config", "read this configuration file too, after the others (docs/config.md)", value="FILE")
HELP = Option("help", "show this help", short="h")
COMMON = (CONFIG, HELP)
"""What every verb of both launchers takes."""


def parse(program: str, verb: Verb, arguments: "list[str]") -> Parsed:
    """Reads the arguments after the verb.

    Raises:
        UsageError: an option that the verb does not have, one without its value, or one given twice.
    """
    parsed = Parsed(program, verb)
    options = (*verb.options, *COMMON)
    by_name = {f"--{option.name}": option for option in options}
    by_name.update({f"-{option.short}": option for option in options if option.short})
    position = 0
    while position < len(arguments):
        word = arguments[position]
        position += 1
        if parsed.ended or not word.startswith("-") or word == "-":
            parsed.words.append(word)
            continue
        if parsed.words and word in ("-h", "--help"):
            # `opsx exec df -h`: the words are a command's, and help with exit code 0 would look as if it had run.
            raise _command_without_mark(parsed, word, arguments[position - 1 :])
        if word == "--":
            if parsed.words:
                raise UsageError(
                    f"{parsed.words[0]!r} stands before `--`; options go there, the command after it",
                    hint=parsed.help_line(),
                )
            parsed.ended = True
            continue
        name, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        option = by_name.get(name)
        if option is None:
            if parsed.words and verb.takes_command:
                raise _command_without_mark(parsed, word, arguments[position - 1 :])
            raise UsageError(
                f"{program} {verb.name}".rstrip() + f" has no option {repr(name)[1:-1]}{nearest(name, by_name)}",
                hint=parsed.help_line(),
            )
        if not option.value:
            if equals:
                raise UsageError(f"{name} takes no value", hint=parsed.help_line())
            parsed.values[option.name] = True
            continue
        if not equals:
            if position == len(arguments):
                raise UsageError(f"{name} needs its {option.value}", hint=parsed.help_line())
            value = arguments[position]
            position += 1
        _keep(parsed, option, value)
    return parsed


def behind_verb(argv: "list[str]") -> "list[str]":
    """`--config FILE VERB …` as `VERB --config FILE …`: what holds for a whole program may stand before its verb."""
    if argv[:1] == ["--config"] and len(argv) > 2 and not argv[2].startswith("-"):
        return [argv[2], *argv[:2], *argv[3:]]
    if len(argv) > 1 and argv[0].startswith("--config=") and not argv[1].startswith("-"):
        return [argv[1], argv[0], *argv[2:]]
    return argv


def name_config(parsed: Parsed) -> None:
    """Makes the file of `--config` count in this process. Raises BadConfig."""
    path = parsed.value("config")
    if parsed.values.pop("config", None) is not None:
        from cli.config import name_file

        name_file(path)


def nearest(word: str, known: "Iterable[str]") -> str:
    """`; the nearest is X` for a word that is nearly one of the known ones, else ""."""
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), 1, 0.7)
    return f"; the nearest is {close[0]}" if close else ""


def _command_without_mark(parsed: Parsed, word: str, rest: "list[str]") -> UsageError:
    """For `opsx exec ls -l`: an option between the words of a command."""
    shown = repr(word)[1:-1][:60]
    return UsageError(
        f"{shown} stands after {parsed.words[0]!r}; put `--` before a command",
        hint=f"{parsed.program} {parsed.verb.name} -- {' '.join([*parsed.words, *rest])[:200]}",
    )


def _keep(parsed: Parsed, option: Option, value: str) -> None:
    if option.many:
        kept = parsed.values.setdefault(option.name, [])
        assert isinstance(kept, list)
        kept.append(value)
    elif option.name in parsed.values:
        raise UsageError(f"--{option.name} is given twice", hint=parsed.help_line())
    else:
        parsed.values[option.name] = value


def help_of(program: str, verb: Verb) -> str:
    """The help page of one verb."""
    lines = [f"usage: {program} {verb.name} {verb.usage}".rstrip(), "", verb.summary]
    if verb.text:
        lines += ["", verb.text.strip("\n")]
    lines += ["", "options:"]
    options = (*verb.options, *COMMON)
    width = min(28, max(len(option.spelled) for option in options) + 2)
    for option in options:
        spelled = option.spelled
        if len(spelled) + 2 > width:
            lines += [f"  {spelled}", f"  {'':{width}}{option.help}"]
        else:
            lines.append(f"  {spelled:{width}}{option.help}")
    if verb.codes:
        lines += ["", f"exit codes: {verb.codes}"]
    return "\n".join(lines) + "\n"


def fitted(page: str, columns: int) -> str:
    """The page with lines that are longer than the terminal broken between words, below where their text begins."""
    if columns < 40:
        return page
    from textwrap import wrap

    rows: list[str] = []
    for row in page.split("\n"):
        name, gap, _ = row.strip().partition("  ")
        text_at = len(row) - len(row[row.index(name) + len(name) :].lstrip()) if gap and row.startswith("  ") else 0
        indent = " " * min(text_at or len(row) - len(row.lstrip()), columns // 2)
        rows += wrap(row, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(rows)


def overview_of(program: str, promise: str, verbs: "Iterable[Verb]", tail: str = "") -> str:
    """The first help page of a launcher."""
    verbs = list(verbs)
    width = max(len(verb.name) for verb in verbs) + 2
    lines = [promise, "", f"usage: {program} VERB [options] [--] …", ""]
    lines += [f"  {verb.name:{width}}{verb.summary}" for verb in verbs]
    lines += ["", f"{program} VERB --help tells more; {program} --version, {program} --help", ""]
    return "\n".join(lines) + (f"{tail}\n" if tail else "")
