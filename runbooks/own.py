"""Runbooks that a person wrote as TOML: commands to read, patterns or paths to find numbers, limits, sentences. Pure.

A file is data: it names commands (which the guard judges like any other; only reads run), and says how to read their
output. It cannot run code, and a mistake in it is an error that names the place.
"""

import re

from guard.errors import UsageError
from guard.types import Value
from runbooks.model import Command, Finding, Severity, Threshold, Words
from runbooks.reading import not_checked, number_of, why_not

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from runbooks.model import Answers, Where

MOST_COMMANDS, MOST_FINDINGS, MOST_PHRASES, MOST_MATCHES = 12, 24, 40, 50
MOST_TEXT = 64 * 1024
"""So much of an output is searched."""
_ID = re.compile(r"[a-z][a-z0-9-]{0,39}")
_SEVERITIES = (Severity.OK, Severity.NOTE, Severity.WARN, Severity.CRIT)
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d*)\]")


class BadRunbook(UsageError):
    """A runbook file is not in the form of docs/runbooks.md."""

    code = "usage.runbook-file"

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"{file}: {what}", not_done="this runbook is not used", hint="docs/runbooks.md, “Your own”")


class Rule(Value):
    """How one kind of finding is read from one command's output."""

    __slots__ = ("command", "id", "pattern", "path", "severity", "limits", "missing", "subject", "next", "text")
    command: str
    id: str
    pattern: "re.Pattern[str] | None"
    path: "tuple[str | int | None, ...] | None"
    """Names, positions, and None for "each"."""
    severity: str
    """What each match means, where no number is compared; "" otherwise."""
    limits: "Threshold | None"
    missing: str
    """What no match means: `ok` or `not_checked`."""
    subject: str
    next: str
    text: Words

    def __init__(
        self,
        command: str,
        id: str,
        pattern: "re.Pattern[str] | None",
        path: "tuple[str | int | None, ...] | None",
        severity: str,
        limits: "Threshold | None",
        missing: str,
        subject: str,
        next: str,
        text: Words,
    ) -> None:
        self.command = command
        self.id = id
        self.pattern = pattern
        self.path = path
        self.severity = severity
        self.limits = limits
        self.missing = missing
        self.subject = subject
        self.next = next
        self.text = text


class OwnRunbook:
    """One file's runbook; the same shape as a module of `runbooks.library`."""

    __slots__ = ("ID", "TITLE", "ABOUT", "file", "phrases", "asked", "rules")

    def __init__(
        self,
        id: str,
        title: Words,
        about: Words,
        file: str,
        phrases: "tuple[str, ...]",
        asked: "tuple[Command, ...]",
        rules: "tuple[Rule, ...]",
    ) -> None:
        self.ID = id
        self.TITLE = title
        self.ABOUT = about
        self.file = file
        self.phrases = phrases
        self.asked = asked
        self.rules = rules

    def commands(self, have: "Answers", where: "Where") -> "list[Command]":
        """All commands at once."""
        return [command for command in self.asked if command.key not in have]

    def read(self, have: "Answers", where: "Where") -> "list[Finding]":
        """The findings of each rule."""
        findings: list[Finding] = []
        for rule in self.rules:
            findings += self._of(rule, have)
        return findings

    def _of(self, rule: Rule, have: "Answers") -> "list[Finding]":
        answer = have.get(rule.command)
        program = next(command.argv[0] for command in self.asked if command.key == rule.command)
        what = Words(f"{self.TITLE.en} ({rule.id})", f"{self.TITLE.zh}（{rule.id}）")
        why = why_not(answer, program)
        if why is not None or answer is None:
            return [not_checked(self.ID, what, why or Words("it was not run", "没有运行"), answer)]
        found = list(_matches(rule, answer.stdout[:MOST_TEXT]))[:MOST_MATCHES]
        if not found:
            if rule.missing == Severity.OK:
                text = Words(f"{what.en}: nothing found.", f"{what.zh}：没有发现。")
                return [Finding(f"{self.ID}.{rule.id}", Severity.OK, text, runbook=self.ID, answer=answer)]
            why = Words("its output holds nothing that the rule looks for", "输出中没有规则要找的内容")
            return [not_checked(self.ID, what, why, answer)]
        return [self._finding(rule, values, have) for values in found]

    def _finding(self, rule: Rule, values: "dict[str, str]", have: "Answers") -> Finding:
        answer = have[rule.command]
        number = number_of(values.get("number", "").replace(",", ""))
        severity = rule.severity
        if rule.limits is not None:
            if number is None:
                why = Words(f"{values.get('number', '')!r} is no number", f"{values.get('number', '')!r} 不是数字")
                return not_checked(
                    self.ID, Words(f"{self.TITLE.en} ({rule.id})", f"{self.TITLE.zh}（{rule.id}）"), why, answer
                )
            severity = rule.limits.severity(number)
        text = Words(_filled(rule.text.en, values), _filled(rule.text.zh, values))
        return Finding(
            f"{self.ID}.{rule.id}",
            severity,
            text,
            runbook=self.ID,
            subject=_filled(rule.subject, values),
            number=number,
            unit=rule.limits.unit if rule.limits else "",
            threshold=rule.limits,
            next=rule.next if severity in (Severity.WARN, Severity.CRIT) else "",
            answer=answer,
        )


def runbook_of(data: "dict[str, Any]", file: str) -> OwnRunbook:
    """The runbook in a parsed TOML file.

    Raises:
        BadRunbook: a key that is not known or missing, or a value that does not fit; names which.
    """
    top = _Table(data, file, "")
    id = top.text("id")
    if not _ID.fullmatch(id):
        raise BadRunbook(file, f"id {id!r} is not lower-case letters, digits and dashes, 40 at most")
    title = top.words("title")
    about = top.words("about", default=title)
    phrases = tuple(top.texts("phrases", most=MOST_PHRASES))
    asked = [_command(table) for table in top.tables("command", most=MOST_COMMANDS)]
    keys = [command.key for command in asked]
    if len(set(keys)) != len(keys):
        raise BadRunbook(file, "two commands have the same key")
    rules = [_rule(table, keys) for table in top.tables("finding", most=MOST_FINDINGS)]
    top.nothing_else()
    return OwnRunbook(id, title, about, file, phrases, tuple(asked), tuple(rules))


def _command(table: "_Table") -> Command:
    key = table.text("key")
    argv = table.texts("argv", most=64)
    if any("\0" in word for word in argv) or not argv[0]:
        raise BadRunbook(table.file, f"{table.name}.argv is not a command")
    timeout_s = table.number("timeout_s", 5.0)
    if timeout_s is None or not 0.1 <= timeout_s <= 8:
        raise BadRunbook(table.file, f"{table.name}.timeout_s is not from 0.1 to 8")
    table.nothing_else()
    return Command(key, argv, timeout_s)


def _rule(table: "_Table", keys: "list[str]") -> Rule:
    command = table.text("command", default=keys[0] if len(keys) == 1 else None)
    if command not in keys:
        raise BadRunbook(table.file, f"{table.name}.command {command!r} is no command's key")
    id = table.text("id", default="value")
    if not _ID.fullmatch(id):
        raise BadRunbook(table.file, f"{table.name}.id {id!r} is not lower-case letters, digits and dashes")
    pattern, path = table.text("pattern", default=""), table.text("path", default="")
    if bool(pattern) == bool(path):
        raise BadRunbook(table.file, f"{table.name} needs a pattern or a path, and not both")
    warn, crit = table.number("warn", None), table.number("crit", None)
    severity = table.text("severity", default="")
    numeric = warn is not None or crit is not None
    if numeric == bool(severity) or (severity and severity not in _SEVERITIES):
        raise BadRunbook(table.file, f"{table.name} needs limits (warn, crit) or a severity ({', '.join(_SEVERITIES)})")
    compiled = _compiled(pattern, table) if pattern else None
    if numeric and compiled is not None and "number" not in compiled.groupindex:
        raise BadRunbook(table.file, f"{table.name}.pattern has no group (?P<number>…) to compare")
    limits = None
    unit, below = table.text("unit", default=""), table.flag("below")
    if numeric:
        limits = Threshold(warn, crit, unit, below=below, source=table.file)
    missing = table.text("missing", default=Severity.NOT_CHECKED)
    if missing not in (Severity.OK, Severity.NOT_CHECKED):
        raise BadRunbook(table.file, f"{table.name}.missing is not ok or not_checked")
    text = Words(table.text("en"), table.text("zh", default=table.text("en")))
    subject, look = table.text("subject", default="{subject}"), table.text("next", default="")
    table.nothing_else()
    return Rule(
        command, id, compiled, _path(path, table) if path else None, severity, limits, missing, subject, look, text
    )


def _compiled(pattern: str, table: "_Table") -> "re.Pattern[str]":
    try:
        return re.compile(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadRunbook(table.file, f"{table.name}.pattern: {error}") from None


def _path(path: str, table: "_Table") -> "tuple[str | int | None, ...]":
    steps: list[str | int | None] = []
    at = 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise BadRunbook(table.file, f"{table.name}.path: {path[at:]!r} is not .name, [0] or []")
        name, position = step.groups()
        steps.append(name if name is not None else int(position) if position else None)
        at = step.end()
    return tuple(steps)


def _matches(rule: Rule, output: str) -> "Iterator[dict[str, str]]":
    if rule.pattern is not None:
        for match in rule.pattern.finditer(output):
            yield {name: value or "" for name, value in match.groupdict().items()}
        return
    import json

    try:
        document = json.loads(output)
    except (ValueError, RecursionError):
        return
    for value, where in _walk(document, rule.path or (), ""):
        if isinstance(value, (str, int, float)):
            shown = str(value).lower() if isinstance(value, bool) else str(value)
            yield {"number": shown, "value": shown, "subject": where}


def _walk(value: "Any", steps: "tuple[str | int | None, ...]", where: str) -> "Iterator[tuple[Any, str]]":
    """The values at a path, each with the names and positions that an "each" step took."""
    if not steps:
        yield value, where
        return
    step, rest = steps[0], steps[1:]
    if isinstance(step, str):
        if isinstance(value, dict) and step in value:
            yield from _walk(value[step], rest, where)
    elif isinstance(step, int):
        if isinstance(value, list) and step < len(value):
            yield from _walk(value[step], rest, where)
    elif isinstance(value, list):
        for position, each in enumerate(value):
            yield from _walk(each, rest, f"{where}/{position}".lstrip("/"))
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _walk(each, rest, f"{where}/{name}".lstrip("/"))


def _filled(text: str, values: "dict[str, str]") -> str:
    """The text with `{name}` replaced; names that are not known become nothing. Nothing else is interpreted."""
    return re.sub(r"\{([A-Za-z_][A-Za-z0-9_]*)\}", lambda match: values.get(match.group(1), ""), text)


class _Table:
    """One table of the file, which knows its place in it and which of its keys were taken."""

    def __init__(self, data: "Any", file: str, name: str) -> None:
        if not isinstance(data, dict):
            raise BadRunbook(file, f"{name or 'the file'} is not a table")
        self.data, self.file, self.name = data, file, name
        self._taken: set[str] = set()

    def _place(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def _take(self, key: str) -> "Any":
        self._taken.add(key)
        return self.data.get(key)

    def text(self, key: str, *, default: "str | None" = None) -> str:
        value = self._take(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str) or (default is None and not value.strip()) or len(value) > 2000:
            raise BadRunbook(self.file, f"{self._place(key)} is not a text")
        return value

    def words(self, key: str, *, default: "Words | None" = None) -> Words:
        value = self._take(key)
        if value is None and default is not None:
            return default
        if isinstance(value, str) and value.strip():
            return Words(value, value)
        if isinstance(value, dict) and isinstance(value.get("en"), str) and value["en"].strip():
            other = value.get("zh", value["en"])
            if isinstance(other, str) and set(value) <= {"en", "zh"}:
                return Words(value["en"], other)
        raise BadRunbook(self.file, f"{self._place(key)} is neither a text nor {{en, zh}}")

    def texts(self, key: str, *, most: int) -> "list[str]":
        value = self._take(key)
        if not isinstance(value, list) or not 0 < len(value) <= most or not all(isinstance(one, str) for one in value):
            raise BadRunbook(self.file, f"{self._place(key)} is not a list of 1 to {most} texts")
        return list(value)

    def number(self, key: str, default: "float | None") -> "float | None":
        value = self._take(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value - value != 0:
            raise BadRunbook(self.file, f"{self._place(key)} is not a number")
        return float(value)

    def flag(self, key: str) -> bool:
        value = self._take(key)
        if value not in (None, True, False):
            raise BadRunbook(self.file, f"{self._place(key)} is not true or false")
        return bool(value)

    def tables(self, key: str, *, most: int) -> "list[_Table]":
        value = self._take(key)
        if not isinstance(value, list) or not 0 < len(value) <= most:
            raise BadRunbook(self.file, f"it needs 1 to {most} [[{key}]] tables")
        return [_Table(one, self.file, f"{key}[{position}]") for position, one in enumerate(value)]

    def nothing_else(self) -> None:
        unknown = sorted(set(self.data) - self._taken)
        if unknown:
            raise BadRunbook(self.file, f"{self._place(unknown[0])} is not a key that it may have")
