"""The building blocks of families: `reader`, `table`, `verbs`, `custom`. `docs/judging.md` shows them in use."""

from guard.judge.assignments import leads_to_shared
from guard.judge.levels import LEVELS, R0, R1, R2
from guard.judge.options import Grammar, Option, Parsed, is_bundle_of
from guard.judge.program import Call, Program
from guard.judge.suspicion import suspicious

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from guard.judge.shell.syntax import Word

__all__ = ["Custom", "Table", "Verbs", "custom", "many", "reader", "table", "verbs", "perform"]


def perform(call: Call, parsed: Parsed) -> None:
    """Does what the given options' actions say."""
    for option in parsed.options:
        if option.action:
            act(call, option)


def act(call: Call, option: Option) -> None:
    """Does what one option's action says (`guard.judge.options` lists the actions)."""
    action, value, name = option.action, option.value, option.name
    word = value if value is not None else option.word
    rule = f"{call.name}.option{name}"
    if action == "write":
        if value is None:
            call.note(R1, rule, f"{name} writes a file", option.word)
        elif value.value not in ("-", "/dev/stdout", "/dev/stderr"):
            call.writes(value)
    elif action == "read":
        call.reads(value)
        if "files" in name:
            # The names of what is read stand in that file.
            call.flag("recursive-read")
    elif action == "exec":
        call.effect("exec", call.value(word) or "?")
        call.note(R2, rule, f"{name} runs another program", option.word, "law 1")
    elif action == "run":
        call.code(value)
    elif action == "config":
        text = call.value(word) if value is not None else None
        if text is not None:
            call.points(f"{call.name} {name}", text)
        if text is None or leads_to_shared(call.judge, text):
            call.note(R2, rule, f"{name} takes its configuration from where others can write", option.word, "law 8")
        else:
            call.flag("helper")
    elif action == "secret":
        call.effect("secret-read", name)
        call.note(R2, rule, f"{name} shows a credential", option.word, "law 4")
    elif action == "helper":
        call.flag("helper")
    elif action == "net":
        call.note(R2, rule, f"{name} sends or fetches over the network", option.word, "law 10")
    elif action in LEVELS:
        level = LEVELS[action]
        if level:
            call.note(level, rule, f"{name} makes {call.name} more than a read", option.word)


class Table(Program):
    """A program whose meaning is its options and what its operands are."""

    __slots__ = ("grammar", "operands", "level", "rule", "text", "unknown", "need", "effect", "check", "environment")

    def __init__(
        self,
        options: str = "",
        *,
        operands: str = "read",
        level: str = "R0",
        text: str = "",
        rule: str = "",
        unknown: str = "",
        plain: bool = False,
        need: str = "",
        effect: str = "",
        check: "Callable[[Call, Parsed], None] | None" = None,
        env: "tuple[str, ...]" = (),
    ) -> None:
        self.plain = plain
        self.grammar = Grammar(options)
        self.operands = operands
        """`read` (files read) · `write` (files written) · `times` (their times set) · `delete` · `none` (any operand is
        R2) · `data` (mean nothing)."""
        self.level = LEVELS[level]
        self.text = text
        self.rule = rule
        self.unknown = unknown
        """Level of an option that the grammar lacks: default R2 when the program can do harm, else R0. `short`: R2 for
        one of a letter, while a long one (a program may name each language by one) counts by what its name says."""
        self.need = need
        self.effect = effect
        self.check = check
        self.environment = env

    def judge(self, call: Call) -> None:
        parsed = self.grammar.parse(call.args)
        if parsed.options:
            perform(call, parsed)
        level = self.level
        if level:
            if (
                parsed.options
                and not parsed.operands
                and all(o.name in ("--help", "--version") for o in parsed.options)
            ):
                level = R0
            else:
                call.note(level, self.rule or f"{call.name}.run", self.text or f"{call.name} changes things")
                if self.effect:
                    for word in parsed.operands:
                        call.effect(self.effect, call.value(word) or word.shape)
        if parsed.unknown:
            self._unknown(call, parsed)
        if parsed.loose and (self.grammar.dangerous or self.level):
            call.flag("options-from-expansion")
        if self.need:
            call.need(self.need)
        if self.environment:
            call.env(*self.environment)
        operands = self.operands
        if operands == "read":
            for word in parsed.operands:
                call.reads(word)
        elif operands == "write":
            for word in parsed.operands:
                call.writes(word, level=max(self.level, R1))
        elif operands == "times":
            for word in parsed.operands:
                call.writes(word, level=max(self.level, R1), saves="times")
        elif operands == "delete":
            for word in parsed.operands:
                call.writes(word, level=max(self.level, R1), deletes=True)
        elif operands == "none" and parsed.operands:
            call.note(R2, f"{call.name}.operand", f"{call.name} does something with an operand", parsed.operands[0])
        if self.check is not None:
            self.check(call, parsed)

    def _unknown(self, call: Call, parsed: Parsed) -> None:
        grammar = self.grammar
        unknown = self.unknown or (
            "R2" if grammar.dangerous or (self.level and grammar.text) or self.operands == "none" else "R0"
        )
        words = parsed.unknown
        if unknown in ("R0", "short"):
            found = suspicious(words)
            if found is not None:
                call.note(R2, f"{call.name}.acting-option", found[1], found[0], "law 2")
            if unknown == "R0":
                return
            words = [word for word in words if not word.prefix.startswith("--")]
        for word in words:
            shown = word.shape
            if shown in ("--help", "--version"):
                continue
            call.note(
                R2 if unknown == "short" else LEVELS[unknown],
                f"{call.name}.unknown-option",
                f"{shown} is not a known option",
                word,
                "law 2",
            )


class Verbs(Program):
    """A program with subcommands: `git log`, `kubectl rollout status`, `systemctl restart`."""

    __slots__ = (
        "grammar", "levels", "default", "details", "need", "environment", "flags", "longest", "check", "danger", "none",
        "protocol", "anywhere", "closed",
    )  # fmt: skip

    def __init__(
        self,
        options: str,
        levels: str,
        *,
        details: "Mapping[str, Callable[[Call, str, list[Word]], None]] | None" = None,
        default: str = "R2",
        none: str = "R0",
        danger: str = "",
        need: str = "",
        flags: "tuple[str, ...]" = (),
        env: "tuple[str, ...]" = (),
        check: "Callable[[Call, str, list[Word], int], None] | None" = None,
        plain: bool = False,
        protocol: str = "",
        anywhere: bool = False,
        closed: bool = False,
    ) -> None:
        self.plain = plain
        self.anywhere = Grammar(options) if anywhere else None
        """The options before the verb may stand after it as well."""
        self.grammar = Grammar(options)
        """Options that may stand before the verb; what follows it is the verb's own."""
        self.levels: dict[str, int] = {}
        self.longest = 1
        level = R2
        for line in levels.splitlines():
            # A line without a level of its own goes on with the one before.
            head, _, rest = line.strip().partition(" ")
            if head in LEVELS:
                level = LEVELS[head]
            else:
                rest = line
            for verb in rest.split("|"):
                name = " ".join(verb.split())
                if name:
                    self.levels[name] = level
                    self.longest = max(self.longest, name.count(" ") + 1)
        self.details = details or {}
        self.default = LEVELS[default]
        self.none = LEVELS[none]
        """Level when no verb is given."""
        self.danger = Grammar(danger)
        """Options after the verb that raise it, whatever the verb is."""
        self.closed = closed
        """The lists hold the harmless options too: a short one that they lack is not known."""
        self.need = need
        self.flags = flags
        """Set when the level is R0: `helper` for programs that their own configuration can make run others."""
        self.environment = env
        self.check = check
        self.protocol = protocol

    def judge(self, call: Call) -> None:
        head, verb, rest = self.find(call)
        for word in head.unknown:
            call.note(R2, f"{call.name}.unknown-option", f"{word.shape} is not a known option", word, "law 2")
        perform(call, head)
        if self.need:
            call.need(self.need)
        if self.environment:
            call.env(*self.environment)
        if self.flags:
            call.flag(*self.flags)
        if self.protocol:
            call.peer("", 0, self.protocol)
        if not verb:
            self._without_verb(call, head, rest)
            return
        level = self.levels.get(verb, self.default)
        if rest and rest[-1].value in ("--help", "-h") and level and verb in self.levels and len(rest) == 1:
            level = R0
        if level:
            known = verb in self.levels
            what = f"{call.name} {verb}" if known else f"{call.name} {verb} is not a known read"
            call.note(level, f"{call.name}.{verb.replace(' ', '-')}" if known else f"{call.name}.unknown-verb", what)
        if self.danger.text:
            self._danger(call, rest, closed=self.closed and verb not in self.details)
        if self.anywhere is not None and rest:
            end = next((at for at, word in enumerate(rest) if word.value == "--"), len(rest))
            for option in self.anywhere.parse(rest[:end]).options:
                if option.action:
                    act(call, option)
        detail = self.details.get(verb)
        before = len(call.judge.findings)
        if detail is not None:
            detail(call, verb, rest)
        if not level and rest and len(call.judge.findings) == before and not verb.endswith(("exec", "run")):
            self._acting(call, rest)
        if self.check is not None:
            self.check(call, verb, rest, level)

    def _acting(self, call: Call, rest: "list[Word]") -> None:
        """An option of a reading verb that no table lists, but whose name says that it acts."""
        listed = self.grammar.table or {}
        more = self.danger.table or {}
        words = [word for word in rest if (word.value or "").partition("=")[0] not in listed]
        found = suspicious(
            [word for word in words if (word.value or "").partition("=")[0] not in more], single=self.grammar.single
        )
        if found is not None:
            call.note(R2, f"{call.name}.acting-option", found[1], found[0], "law 2")

    def _without_verb(self, call: Call, head: Parsed, rest: "list[Word]") -> None:
        if rest:
            call.opaque(f"{call.name} does something that the text does not tell", rest[0], "shell.dynamic-verb")
        elif self.none and not any(option.name in ("--help", "--version", "-h") for option in head.options):
            call.note(self.none, f"{call.name}.bare", f"{call.name} without a verb")

    def _danger(self, call: Call, rest: "list[Word]", *, closed: bool) -> None:
        """Only options that the danger list names count here; an abbreviation of one counts as well.

        `closed`: short ones that it does not name count too.
        """
        parsed = self.danger.parse(rest)
        for option in parsed.options:
            if option.action:
                act(call, option)
        if not closed:
            return
        listed = {**(self.grammar.table or {}), **(self.danger.table or {})}
        for word in parsed.unknown:
            value = word.value or word.prefix
            if not value.startswith("--") and not is_bundle_of(value, listed):
                call.note(R2, f"{call.name}.unknown-option", f"{word.shape} is not a known option", word, "law 2")

    def find(self, call: Call) -> "tuple[Parsed, str, list[Word]]":
        """Options before the verb, the verb (as many words as the table knows), and what follows it."""
        grammar = self.grammar
        if grammar.table is None:
            grammar.compile()
        grammar.posix = True
        head = grammar.parse(call.args)
        rest = list(call.args[head.rest :])
        if not rest:
            return head, "", rest
        name = rest[0].value
        if name is None or rest[0].globs:
            return head, "", rest
        verb, used = name, 1
        if self.longest > 1:
            path, at, best = name, 1, (name, 1)
            extra = Parsed()
            while path.count(" ") + 1 < self.longest and at < len(rest):
                more = grammar.parse(rest[at:])
                extra.options.extend(more.options)
                at += more.rest
                if at >= len(rest) or rest[at].value is None or (rest[at].value or "-").startswith("-"):
                    break
                path = f"{path} {rest[at].value}"
                at += 1
                if path in self.levels or path in self.details:
                    best = (path, at)
            verb, used = best
            if used > 1:
                head.options.extend(extra.options)
        return head, verb, rest[used:]


class Custom(Program):
    """A program that needs its own reader."""

    __slots__ = ("function",)

    def __init__(self, function: "Callable[[Call], None]", *, plain: bool = False) -> None:
        self.plain = plain
        self.function = function

    def judge(self, call: Call) -> None:
        self.function(call)


def reader(options: str = "", **more: "object") -> Table:
    """A program that only reads; options that the grammar lacks are harmless unless it lists a dangerous one."""
    more.setdefault("plain", True)
    return Table(options, **more)  # type: ignore[arg-type]


table = Table
verbs = Verbs
custom = Custom


def many(names: str, program: Program) -> "dict[str, Program]":
    """The same rule under several names."""
    return dict.fromkeys(names.split(), program)
