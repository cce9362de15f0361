"""One program and one command with it, as families of programs see them: `Program`, `Call`, `Ran`, `lookup`."""

from guard.judge.levels import R0, R1, R2
from guard.judge.touches import INCOMPLETE, read_path, write_path
from guard.judge.values import literal_of
from guard.judge.variables import POINTING
from guard.pointers import add_pointer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from guard.judge.engine import Judge
    from guard.judge.shell.syntax import Assign, Redirect, Word
    from guard.types import Span


MOST_FOLDERS = 8
"""So many folders that a text may be in are followed: where it starts, and the last ones."""


class Program:
    """What is known about one program. Families make these; `judge(call)` does the work."""

    __slots__ = ("plain",)
    plain: bool
    """A system binary without helpers, own configuration or network: may run where nothing is enforced."""

    def judge(self, call: "Call") -> None:
        raise NotImplementedError


class Ran:
    """One command that the walk met, for `guard.judge.inputs`: its words and where its traces lie."""

    __slots__ = ("name", "words", "first_effect", "end_effect", "level", "pipe", "away", "span", "depth", "points")

    def __init__(self, name: str, words: "Sequence[Word]", span: "Span", judge: "Judge") -> None:
        self.name = name
        """The program's name without its folder; "" when the text does not tell it."""
        self.words = words
        self.first_effect = self.end_effect = len(judge.effects)
        """Its effects are `Judge.effects[first_effect:end_effect]`."""
        self.level = R0
        """The highest note of this command by itself."""
        self.pipe = judge.pipe
        """Number of the pipeline that it stands in, 0 for none."""
        self.away = judge.away
        """It runs on another machine or in a container."""
        self.span = judge.outer or span
        self.depth = judge.depth
        """How many commands and texts carry it."""
        self.points = judge.pointing
        """Names of what says where it goes (`Judge.ambient`), where the text gives that to this command for sure."""
        if judge.bound:
            self.points |= {name for name in POINTING & judge.bound if f"export {name}" in judge.bound}


class Call:
    """One command as its family sees it: name, words after it, and the ways to say what they do."""

    __slots__ = ("judge", "name", "word", "args", "span", "stdin", "assigns", "redirects")

    def __init__(
        self,
        judge: "Judge",
        name: str,
        word: "Word",
        args: "Sequence[Word]",
        span: "Span",
        stdin: "str | None" = None,
        assigns: "tuple[Assign, ...]" = (),
        redirects: "tuple[Redirect, ...]" = (),
    ) -> None:
        self.judge = judge
        self.name = name
        self.word = word
        self.args = args
        self.span = span
        self.stdin = stdin
        """None = nothing to read, "" = bytes that are not known, else the literal text."""
        self.assigns = assigns
        self.redirects = redirects

    def note(self, level: int, rule: str, text: str, word: "Word | None" = None, source: str = "") -> None:
        """Raises the level, with a reason; `word` is what it speaks of (default: the whole command)."""
        span = word.span if word is not None and word.span != (0, 0) else self.span
        self.judge.note(level, rule, text, span, source or f"{self.name}(1)")

    def opaque(self, text: str, word: "Word | None" = None, rule: str = "program.unread") -> None:
        """At least R2: this part is not understood."""
        self.judge.opaque(rule, text, word.span if word is not None and word.span != (0, 0) else self.span)

    def flag(self, *names: str) -> None:
        self.judge.flags.update(names)
        self.judge.plain = False

    def need(self, profile: str) -> None:
        """The read needs this sandbox profile (`net`, `bus`, `observe`, `netadm`, `block`, `remote`)."""
        self.judge.needs.add(profile)
        # What is plain otherwise asks a daemon, or looks at processes, as plainly.
        if profile not in ("bus", "observe"):
            self.judge.plain = False

    def env(self, *names: str) -> None:
        self.judge.env.update(names)

    def effect(self, kind: str, object: str = "") -> None:
        self.judge.effects.append((kind, object))

    def value(self, word: "Word") -> "str | None":
        return literal_of(self.judge, word)

    def enters(self, folder: "Word | None") -> None:
        """What follows may run in this folder; None: in one that the text does not tell."""
        judge = self.judge
        value = None if folder is None else self.value(folder)
        judge.cwds.extend(["*"] if value is None else dict.fromkeys(judge.places(value)))
        if len(judge.cwds) > MOST_FOLDERS:
            del judge.cwds[1 : 1 - MOST_FOLDERS]

    def reads(self, word: "Word | None") -> None:
        """Reads this file's content."""
        if word is None:
            return
        if word.appended:
            # Which files these are is told by data, so nothing but the mask keeps credentials out of them.
            self.flag("recursive-read")
        else:
            read_path(self.judge, word, word.span if word.span != (0, 0) else self.span)

    def writes(
        self,
        word: "Word | None",
        *,
        level: int = R1,
        deletes: bool = False,
        appends: bool = False,
        saves: str = "file",
    ) -> None:
        """Creates or changes (or removes) this file; `saves` is the kind of its plan item, "" for none."""
        if word is not None:
            span = word.span if word.span != (0, 0) else self.span
            write_path(self.judge, word, span, self.name, level=level, deletes=deletes, appends=appends, saves=saves)

    def makes_beside(self, word: "Word", ending: str, *, instead_of: str = "") -> None:
        """Makes another file, named as this one and `ending`, in place of its own ending where one is given."""
        judge = self.judge
        name = self.value(word)
        if name is None or "/" in ending or "*" in ending or not name.endswith(instead_of):
            judge.flags.add(INCOMPLETE)
        else:
            whole = name[: len(name) - len(instead_of)] + ending
            places = judge.places(whole)
            if any(place.startswith("*/") for place in places):
                judge.flags.add(INCOMPLETE)
            else:
                judge.plan.extend(("file", place) for place in places)

    def peer(self, host: str, port: int, protocol: str) -> None:
        """Talks to this host; makes the decision depend on whether a person named it (law 10)."""
        self.judge.peers.append((host, port, protocol))
        self.judge.needs.add("net")
        self.judge.plain = False

    def points(self, name: str, text: str) -> None:
        """Says itself where it goes (law 10): a context, a configuration by path."""
        add_pointer(self.judge.ambient, name, text)
        for ran in reversed(self.judge.ran):
            if ran.words[0] is self.word:
                ran.points |= {name}
                return

    def argv(self, words: "Sequence[Word]", *, stdin: "str | None" = None) -> None:
        """Judges the command that these words make up, as part of this one."""
        if not words:
            return
        self.judge.argv(words, self.span, stdin)

    def code(self, word: "Word | None", *, stdin: "str | None" = None) -> None:
        """Judges shell text that this command runs. Anything but a literal is opaque."""
        if word is None:
            return
        value = literal_of(self.judge, word)
        if value is None:
            self.opaque("runs text that is not told here", word, "shell.dynamic-code")
            # What is literal in it can still show the worst.
            shape = word.shape
            if "*" in shape and len(shape) > 3:
                self._raise_only(shape, word)
            return
        self.judge.text(value, word.span if word.span != (0, 0) else self.span, stdin=stdin)

    def hidden(self, text: str, word: "Word") -> None:
        """Judges what bash would run if it expanded this data."""
        span = word.span if word.span != (0, 0) else self.span
        self.judge.text(f": <<EOF_\n{text}\nEOF_\n" if "EOF_" not in text else text, span)

    def _raise_only(self, text: str, word: "Word") -> None:
        self.judge.text(text, word.span if word.span != (0, 0) else self.span)

    def script_from_stdin(self, what: str = "a shell") -> None:
        """What is read from standard input is run as shell code."""
        if self.stdin:
            self.judge.text(self.stdin, self.span)
        elif self.stdin is None:
            self.note(R2, "shell.interactive", f"{what} without a command", None, "law 2")
        else:
            self.opaque(f"{what} runs what it reads from standard input", None, "shell.stdin-code")


_LOADED: "dict[str, Program | None]" = {}


def lookup(name: str) -> "Program | None":
    """What is known about a program, loading its family when it occurs for the first time."""
    try:
        return _LOADED[name]
    except KeyError:
        pass
    from guard.judge import families

    module = families.PROGRAMS.get(name)
    if module is None and "." in name:
        module = next((m for p, m in families.PREFIXES if name.startswith(p)), None)
        if module is not None:
            table = families.load(module)
            return table.get(next(p for p, m in families.PREFIXES if name.startswith(p)))
    if module is None:
        if len(_LOADED) < 4096:
            _LOADED[name] = None
        return None
    found: Program = families.load(module)[name]
    _LOADED[name] = found
    return found
