"""A person's own rules: TOML text in, rules and complaints out. Pure; each rule's examples are tried before it counts.

A file is used whole or not at all: whoever wrote it can then rely on every line of it, or is told. The form is in
docs/rules.md.
"""

import hashlib

from guard.errors import UsageError
from guard.judge.own_rules import NEVER_LOWERED, OWN_PROGRAMS, REST
from guard.types import LEVELS, Level, Policy, UserRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_BYTES = 256 * 1024
MOST_RULES = 500
MOST_EXAMPLES = 50
MOST_TEXT = 200
_KEYS = frozenset(("id", "program", "words", "level", "text", "match", "skip"))
_ID = frozenset("abcdefghijklmnopqrstuvwxyz0123456789.-")


class BadRules(UsageError):
    """A rules file is not in the form of docs/rules.md, or one of its examples does not hold."""

    code = "usage.rules-file"

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"{file}: {what}", not_done="only reads run until it can be used", hint="docs/rules.md")


class Read:
    """One rules file as it was read: its rules with their examples, before anything was tried."""

    __slots__ = ("file", "digest", "rules", "examples")

    def __init__(
        self,
        file: str,
        digest: str,
        rules: "tuple[UserRule, ...]",
        examples: "dict[str, tuple[tuple[str, ...], tuple[str, ...]]]",
    ) -> None:
        self.file = file
        self.digest = digest
        """SHA-256 of the file's bytes, 64 hex digits; what a person trusts."""
        self.rules = rules
        self.examples = examples
        """Rule id → (commands that it must meet, commands that it must not meet)."""

    @property
    def lowers(self) -> bool:
        return any(rule.lowers for rule in self.rules)


def digest_of(data: bytes) -> str:
    """What a person trusts: SHA-256 of the file's bytes, 64 hex digits."""
    return hashlib.sha256(data).hexdigest()


def read(data: bytes, file: str) -> Read:
    """Reads a rules file's bytes. `file` names it in complaints and reasons.

    Raises:
        BadRules: not UTF-8, not TOML, too large, an unknown key, a missing example, or a rule that may not be.
    """
    import tomllib

    if len(data) > MOST_BYTES:
        raise BadRules(file, f"it has more than {MOST_BYTES:,} bytes")
    try:
        table = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadRules(file, f"it is not TOML: {error}") from None
    unknown = sorted(table.keys() - {"raise", "lower"})
    if unknown:
        raise BadRules(file, f"unknown table {unknown[0]!r}; there are [[raise]] and [[lower]]")
    rules: list[UserRule] = []
    examples: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    for kind in ("raise", "lower"):
        entries = table.get(kind, [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            raise BadRules(file, f"write [[{kind}]], with two brackets, before each rule")
        for number, entry in enumerate(entries, 1):
            rule, match, skip = _rule(entry, kind, f"{kind} rule {number}", file)
            if rule.id in examples:
                raise BadRules(file, f"two rules are called {rule.id}")
            rules.append(rule)
            examples[rule.id] = (match, skip)
    if len(rules) > MOST_RULES:
        raise BadRules(file, f"it has more than {MOST_RULES} rules")
    return Read(file, digest_of(data), tuple(rules), examples)


def _rule(
    entry: "dict[str, Any]", kind: str, place: str, file: str
) -> "tuple[UserRule, tuple[str, ...], tuple[str, ...]]":
    unknown = sorted(entry.keys() - _KEYS)
    if unknown:
        raise BadRules(file, f"{place} has a key {unknown[0]!r} that no rule has")

    def text(key: str) -> str:
        value = entry.get(key)
        if not isinstance(value, str) or not value.strip() or len(value) > MOST_TEXT or not value.isprintable():
            raise BadRules(file, f"{place}: {key} is one line of 1 to {MOST_TEXT} characters")
        return value

    def texts(key: str, least: int) -> "tuple[str, ...]":
        value = entry.get(key, [])
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
            raise BadRules(file, f"{place}: {key} must be a list of texts")
        if not least <= len(value) <= MOST_EXAMPLES:
            raise BadRules(file, f"{place}: {key} has {least} to {MOST_EXAMPLES} entries, not {len(value)}")
        return tuple(value)

    name = text("id")
    if set(name) - _ID or len(name) > 64 or not name[0].isalnum():
        raise BadRules(file, f"{place}: the id {name!r} is not of small letters, digits, dots and dashes")
    place = f"rule {name}"
    program = text("program")
    if "/" in program or " " in program or any(char in program for char in "*?["):
        raise BadRules(file, f"{place}: program must be a name without a folder and without patterns")
    levels = {level.name: level for level in LEVELS}
    level = levels.get(text("level"))
    if level is None or (kind == "raise" and level == Level.R0) or (kind == "lower" and level > Level.R1):
        allowed = "R1, R2 or R3" if kind == "raise" else "R0 or R1"
        raise BadRules(file, f"{place}: the level is {allowed}")
    words = texts("words", 0)
    if kind == "lower":
        _may_lower(program, words, place, file)
    elif REST in words:
        raise BadRules(file, f"{place}: {REST!r} belongs to lowering rules; others may stand between anyway")
    return (
        UserRule(name, program, words, level, text("text"), kind == "lower", file),
        texts("match", 1),
        texts("skip", 1),
    )


def _may_lower(program: str, words: "tuple[str, ...]", place: str, file: str) -> None:
    from guard.judge.families import PROGRAMS

    if program in OWN_PROGRAMS:
        raise BadRules(file, f"{place}: opsagent's own programs are never lowered")
    if PROGRAMS.get(program) in NEVER_LOWERED:
        raise BadRules(file, f"{place}: {program} sends data or runs other code, which is never lowered")
    if REST in words[:-1]:
        raise BadRules(file, f"{place}: {REST!r} stands at the end only")


def failures(found: Read) -> "list[str]":
    """One sentence for each example that does not hold; empty when the file keeps its word."""
    from guard.judge.classify import check

    wrong: list[str] = []
    for rule in found.rules:
        policy = Policy(rules=(rule,))
        match, skip = found.examples[rule.id]
        for command in match:
            assessment = check(command, policy=policy)
            fired = any(reason.rule == f"user.{rule.id}" for reason in assessment.reasons)
            if not fired and not (rule.lowers and check(command).level <= rule.level):
                wrong.append(f"rule {rule.id} does not meet {command!r}")
            elif rule.lowers and assessment.level != rule.level:
                wrong.append(f"rule {rule.id}: {command!r} stays {assessment.level.name}, which it may not lower")
            elif not rule.lowers and assessment.level < rule.level:
                wrong.append(f"rule {rule.id}: {command!r} is {assessment.level.name}, not {rule.level.name}")
        for command in skip:
            if any(reason.rule == f"user.{rule.id}" for reason in check(command, policy=policy).reasons):
                wrong.append(f"rule {rule.id} meets {command!r}, which it must not")
    return wrong


def lint(found: Read) -> "list[str]":
    """Hints about rules that do nothing, or more than meant. The file is usable all the same."""
    from guard.judge.classify import check

    hints: list[str] = []
    for rule in found.rules:
        match, _ = found.examples[rule.id]
        if not rule.lowers and all(check(command).level >= rule.level for command in match):
            hints.append(f"rule {rule.id} changes nothing: its examples are {rule.level.name} without it")
        if rule.lowers and all(check(command).level <= rule.level for command in match):
            hints.append(f"rule {rule.id} changes nothing: its examples are {rule.level.name} or less without it")
        if rule.lowers and rule.words[-1:] == (REST,):
            hints.append(f"rule {rule.id} lets any further words pass; name them, if you can")
        if rule.lowers and not rule.words:
            hints.append(f"rule {rule.id} is for {rule.program} without any word")
        if not rule.words and not rule.lowers:
            hints.append(f"rule {rule.id} meets every use of {rule.program}")
    return hints


def usable(found: Read, *, trusted: bool) -> "tuple[UserRule, ...]":
    """The rules that count: lowering ones only from a file that a person trusts."""
    return tuple(rule for rule in found.rules if trusted or not rule.lowers)
