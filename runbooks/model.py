"""The values of a runbook: commands to ask, their answers, thresholds and findings. Pure.

A runbook is a module with `ID`, `TITLE`, `ABOUT`, `commands(have, where)` and `read(have, where)`. `commands` is
called again with what is known so far until it asks nothing new, so that a later command can depend on an
earlier answer; `read` then turns the answers into findings. Neither touches the machine, which is what makes a
recorded answer a test.
"""

from guard.types import Interference, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Protocol

    class Ask(Protocol):
        """Runs one read-only command through the guard. Returns an object with the fields of `Answer`."""

        def __call__(self, argv: Sequence[str], timeout_s: float, /) -> Any: ...

    class Runbook(Protocol):
        """What a module in `runbooks.library` offers."""

        ID: str
        TITLE: "Words"
        ABOUT: "Words"

        def commands(self, have: "Answers", where: "Where") -> "list[Command]": ...

        def read(self, have: "Answers", where: "Where") -> "list[Finding]": ...


class Severity:
    """How bad a finding is."""

    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    CRIT = "crit"
    NOT_CHECKED = "not_checked"


WORST_FIRST = (Severity.CRIT, Severity.WARN, Severity.NOTE, Severity.NOT_CHECKED, Severity.OK)


class Words(Value):
    """One text in both languages."""

    __slots__ = ("en", "zh")
    en: str
    zh: str

    def __init__(self, en: str, zh: str) -> None:
        self.en = en
        self.zh = zh

    def of(self, lang: str) -> str:
        """The text in `en` or `zh`."""
        return self.zh if lang == "zh" else self.en


class Threshold(Value):
    """When a number becomes a warning or critical, and who says so."""

    __slots__ = ("warn", "crit", "unit", "below", "source")
    warn: "float | None"
    crit: "float | None"
    unit: str
    below: bool
    """The small number is the bad one (memory that is left, days that are left)."""
    source: str

    def __init__(
        self, warn: "float | None", crit: "float | None", unit: str, *, below: bool = False, source: str
    ) -> None:
        self.warn = warn
        self.crit = crit
        self.unit = unit
        self.below = below
        self.source = source

    def severity(self, number: float) -> str:
        """OK, WARN or CRIT. "Above" includes the threshold itself (85 % is a warning at 85), "below" does not."""
        for limit, severity in ((self.crit, Severity.CRIT), (self.warn, Severity.WARN)):
            if limit is not None and (number < limit if self.below else number >= limit):
                return severity
        return Severity.OK

    def crossed(self, severity: str) -> "float | None":
        """The limit to name beside a finding: the one that was crossed, else the first that would be."""
        return self.crit if severity == Severity.CRIT else self.warn

    def as_json(self) -> "dict[str, Any]":
        return {"warn": self.warn, "crit": self.crit, "when": "below" if self.below else "above"}


class Command(Value):
    """One read that a runbook needs. `key` names its answer within the runbook."""

    __slots__ = ("key", "argv", "timeout_s")
    key: str
    argv: "tuple[str, ...]"
    timeout_s: float
    """At most 8 s; the runner shortens it to what is left of the whole."""

    def __init__(self, key: str, argv: "Iterable[str]", timeout_s: float = 8.0) -> None:
        self.key = key
        self.argv = tuple(argv)
        self.timeout_s = timeout_s


class Answer(Value):
    """What came of one command."""

    __slots__ = ("exit_code", "stdout", "stderr", "status", "execution", "interference", "recorded", "reason", "at")
    exit_code: "int | None"
    """None when it did not end or was never started."""
    stdout: str
    stderr: str
    status: str
    """A `guard.types.Status`."""
    execution: "str | None"
    interference: "tuple[Interference, ...] | None"
    """What the sandbox refused; None when the kernel cannot tell."""
    recorded: bool
    reason: str
    """Why it did not run, or why it was not recorded; "" when both went well."""
    at: str
    """RFC 3339, UTC: when the answer came."""

    def __init__(
        self,
        exit_code: "int | None" = 0,
        stdout: str = "",
        stderr: str = "",
        status: str = "succeeded",
        execution: "str | None" = None,
        interference: "Iterable[Interference] | None" = None,
        recorded: bool = True,
        reason: str = "",
        at: str = "",
    ) -> None:
        self.exit_code = exit_code
        self.stdout = stdout
        self.stderr = stderr
        self.status = status
        self.execution = execution
        self.interference = None if interference is None else tuple(interference)
        self.recorded = recorded
        self.reason = reason
        self.at = at

    @property
    def ended(self) -> bool:
        """The command ran to its end, whatever its exit code."""
        return self.exit_code is not None and self.status in ("succeeded", "failed")


class Where(Value):
    """The machine and the moment, as far as a runbook may know them without asking."""

    __slots__ = ("host", "euid", "now_s", "light", "words", "numbers", "paths", "beside", "groups", "pid")
    host: str
    euid: int
    now_s: float
    """Unix time when the question was taken."""
    light: bool
    """Part of an overview: leave out what needs a second sample."""
    words: "tuple[str, ...]"
    """The question's Latin words in lower case (a service's name may be among them)."""
    numbers: "tuple[int, ...]"
    """The question's whole numbers (a port may be among them)."""
    paths: "tuple[str, ...]"
    """The question's absolute paths."""
    beside: int
    """How many other runbooks run at the same time: a search that could go on for long shares its time with them."""
    groups: str
    """`/proc/self/cgroup` of the program that asks; "" when it is not known. A read has a control group of its
    own, made for it and gone after it, whose limits say nothing about the machine."""
    pid: int
    """The program that asks, which is no finding about the machine; 0 when it is not known."""

    def __init__(
        self,
        host: str,
        euid: int,
        now_s: float,
        light: bool = False,
        words: "Iterable[str]" = (),
        numbers: "Iterable[int]" = (),
        paths: "Iterable[str]" = (),
        beside: int = 0,
        groups: str = "",
        pid: int = 0,
    ) -> None:
        self.host = host
        self.euid = euid
        self.now_s = now_s
        self.light = light
        self.words = tuple(words)
        self.numbers = tuple(numbers)
        self.paths = tuple(paths)
        self.beside = beside
        self.groups = groups
        self.pid = pid


class Finding(Value):
    """One thing that a check found, as a sentence with its number."""

    __slots__ = (
        "runbook",
        "id",
        "severity",
        "subject",
        "number",
        "unit",
        "threshold",
        "text",
        "next",
        "execution",
        "at",
        "needs_root",
    )
    runbook: str
    id: str
    """Stable and dotted, e.g. `disk.space`."""
    severity: str
    subject: str
    """The mount, unit, process … that it is about. With NOT_CHECKED: what was not checked."""
    number: "float | None"
    unit: str
    """`%`, `GiB`, `/h`, `days` …; "" without a number or for a plain count."""
    threshold: "Threshold | None"
    text: Words
    """One sentence. With NOT_CHECKED: why."""
    next: str
    """The command to look at next, when this finding is the worst; "" when there is none."""
    execution: "str | None"
    at: str
    needs_root: bool

    def __init__(
        self,
        id: str,
        severity: str,
        text: Words,
        *,
        runbook: str = "",
        subject: str = "",
        number: "float | None" = None,
        unit: str = "",
        threshold: "Threshold | None" = None,
        next: str = "",
        execution: "str | None" = None,
        at: str = "",
        needs_root: bool = False,
        answer: "Answer | None" = None,
    ) -> None:
        """`answer` gives `execution` and `at`."""
        if answer is not None:
            execution, at = answer.execution, answer.at
        self.runbook = runbook or id.partition(".")[0]
        self.id = id
        self.severity = severity
        self.subject = subject
        self.number = number
        self.unit = unit
        self.threshold = threshold
        self.text = text
        self.next = next
        self.execution = execution
        self.at = at
        self.needs_root = needs_root


def worst_first(findings: "Iterable[Finding]") -> "list[Finding]":
    """Sorted by severity; findings of one severity keep their order."""
    return sorted(findings, key=lambda finding: WORST_FIRST.index(finding.severity))


class Answers:
    """The answers of one runbook so far, by key."""

    __slots__ = ("_by_key",)

    def __init__(self, by_key: "Mapping[str, Answer] | None" = None) -> None:
        self._by_key = dict(by_key or {})

    def __contains__(self, key: str) -> bool:
        return key in self._by_key

    def __getitem__(self, key: str) -> Answer:
        return self._by_key[key]

    def get(self, key: str) -> "Answer | None":
        return self._by_key.get(key)

    def keys(self) -> "list[str]":
        return list(self._by_key)

    def add(self, key: str, answer: Answer) -> None:
        self._by_key[key] = answer
