"""Assignments: whether a variable is one that changes what programs do, or points a client elsewhere (laws 2 and 8)."""

from guard.judge import paths
from guard.judge.families import PROGRAMS
from guard.judge.levels import R2
from guard.judge.shell.scanning import NUMBER
from guard.judge.shellwords import NAMING
from guard.judge.values import values_of
from guard.judge.variables import (
    AMBIENT_PATHS,
    AMBIENT_VARIABLES,
    DANGEROUS_PREFIXES,
    DANGEROUS_VARIABLES,
    HARMLESS_VARIABLES,
    PAGER_VARIABLES,
    POINTING,
    WITH_FILES,
    ZONES,
    dangerous,
    obeyed,
)
from guard.pointers import add_outside, add_pointer, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from guard.judge.engine import Judge
    from guard.judge.shell.syntax import Assign, Declare, Script, Word
    from guard.types import Span


_LOOKS = frozenset("FRSXMKi-")
"""Letters of less that only say how something is shown (less(1))."""


def _only_shows(name: str, value: str) -> bool:
    if name in ("LESS", "SYSTEMD_LESS") and _LOOKS.issuperset(value):
        return True
    return name in PAGER_VARIABLES and value in ("cat", "", "/bin/cat", "/usr/bin/cat")


_SAME_LOCALE = ("C.UTF-8", "C.utf8")
"""What a command has by itself (`guard.hands.environment`)."""


def note_assignment(judge: "Judge", assign: "Assign", *, passed: bool = False) -> None:
    """`NAME=value`, before a command, by itself or in a declaration; `passed`: programs get it."""
    name = assign.name
    if name in HARMLESS_VARIABLES and name not in WITH_FILES:
        return
    plain = assign.value is not None and not (assign.appends or assign.elements or assign.subscript is not None)
    note_variable(judge, name, assign.value if plain else None, assign.span, passed=passed)


def note_variable(judge: "Judge", name: str, word: "Word | None", span: "Span", *, passed: bool) -> None:
    """A variable that gets a value, however it is written; `word` None: a value that the text does not tell."""
    value = word.value if word is not None else None
    if name.startswith("OPSAGENT_"):
        judge.own_touched = name
        judge.note(R2, "own.variable", f"sets {name}, which opsagent itself obeys", span, "law 6")
    elif name == "PS4":
        if value is None or "$" in value or "`" in value:
            judge.note(R2, "shell.variable", "sets PS4, which bash expands for each traced command", span, "law 2")
    elif value is not None and _only_shows(name, value):
        return
    elif name in AMBIENT_VARIABLES:
        note_pointer(judge, name, values_of(judge, word) if word is not None else None, span)
    elif name in WITH_FILES or name.startswith("LC_"):
        if name not in ("TZ", "LANGUAGE") and value not in _SAME_LOCALE:
            # What stands before a command counts for the patterns in the texts that the command runs, if any.
            judge.lists_otherwise |= 1 if passed else 2
        _note_files(judge, name, values_of(judge, word) if word is not None else None, span)
    elif name in HARMLESS_VARIABLES:
        return
    elif dangerous(name) or (passed and obeyed(name)):
        note_change(judge, name, span)
        if name in POINTING and value is not None:
            add_pointer(judge.ambient, name, value)
    elif passed:
        # What it means to the program nobody knows here; that it can do no harm the sandbox sees to (law 8).
        judge.flags.add("helper")
        judge.plain = False


def _note_files(judge: "Judge", name: str, values: "Sequence[str] | None", span: "Span") -> None:
    """A locale, a language, a time zone: a name, or with a slash a place of files with formats and rules."""
    if values is None:
        judge.flags.add("helper")
        judge.plain = False
    elif any(_names_files(name, value) for value in values):
        what = f"sets {name} to files of formats and rules that are not the system's"
        judge.note(R2, "shell.variable", what, span, "setlocale(3)")


def _names_files(name: str, value: str) -> bool:
    if name != "TZ":
        return "/" in value
    # `Area/City` lies among the system's zones (tzset(3)).
    return ".." in value or (value.lstrip(":").startswith("/") and not value.startswith(ZONES))


def note_declaration(judge: "Judge", node: "Declare") -> None:
    """`export`, `declare` and their kin."""
    exports = node.keyword == "export" or any(
        (word.value or "")[:1] == "-" and "x" in (word.value or "") for word in node.words
    )
    for assign in node.assigns:
        judge.assign(assign, passed=exports)
        judge.lists_otherwise |= 2 * (judge.lists_otherwise & 1)
    names = {assign.name for assign in node.assigns}
    judge.bound |= names
    if node.keyword not in ("export", "readonly"):
        judge.bound.difference_update(word.value for word in node.words if word.value is not None)
    for word in node.words:
        judge.expansions(word)
        value = word.value
        if value is not None and value.startswith(("-", "+")) and "n" in value and node.keyword in NAMING:
            judge.opaque("shell.nameref", "gives a name that stands for another one", word.span)
        if value is None:
            judge.opaque("shell.dynamic-name", "a variable name that the text does not tell", word.span)
        elif value.startswith("-") and node.keyword == "export" and "f" in value:
            judge.note(R2, "shell.export-function", "exports a function to every bash below", word.span, "law 2")
        elif value.startswith("-") and node.keyword == "export" and "n" in value:
            exports = False
            judge.bound -= {f"export {other.value}" for other in node.words}
        elif node.keyword in ("export", "declare", "typeset", "readonly"):
            if value in DANGEROUS_VARIABLES or value.startswith(DANGEROUS_PREFIXES) or (exports and obeyed(value)):
                judge.note(R2, "shell.variable", f"exports {value}, which changes what programs do", word.span, "law 2")
            if exports and value in judge.bound:
                names.add(value)
    if exports:
        judge.bound |= {f"export {name}" for name in names}


def note_pointer(judge: "Judge", name: str, values: "Sequence[str] | None", span: "Span") -> None:
    """A variable that points a client at another target, with every value that it can have; None: not told."""
    if values is None:
        judge.note(R2, "shell.variable", f"sets {name} to what the text does not tell", span, "law 8")
        return
    for value in values:
        if leads_to_shared(judge, value, is_path=name in AMBIENT_PATHS):
            judge.note(R2, "shell.variable", f"sets {name} to where others can write", span, "law 8")
        add_pointer(judge.ambient, name, value)
    judge.flags.add("helper")
    judge.plain = False


def note_change(judge: "Judge", name: str, span: "Span") -> None:
    """A variable that changes what programs do."""
    judge.note(R2, "shell.variable", f"sets {name}, which changes what programs do", span, "law 2")


def note_computed(judge: "Judge", script: "Script") -> None:
    """Names that arithmetic gives a number to: a number is the name of a file or folder as well."""
    for name, given in script.values.items():
        if dangerous(name) and any(word is NUMBER for word in given):
            note_change(judge, name, (0, 0))


def leads_to_shared(judge: "Judge", value: str, *, is_path: bool = True) -> bool:
    """Whether a path, or one of a list of paths, lies where everybody can write.

    A relative one does when the text itself goes to such a folder first.
    """
    parts = value.split(":")
    if any(paths.shared(part) for part in parts):
        return True
    return is_path and any(
        paths.shared(paths.normal(part, cwd))
        for cwd in judge.cwds[1:]
        for part in parts
        if not part.startswith(("/", "~"))
    )


def note_outside(judge: "Judge") -> None:
    """Where some of the clients of a text get no pointer that others of them get, they go where they always go."""
    for name in dict.fromkeys(map(name_of, judge.ambient)):
        program = name.partition(" ")[0]
        if name in POINTING:
            modules = next((found for start, found in _OBEY if name.startswith(start)), ())
        elif name.endswith(" context"):
            modules = (program,)
        else:
            modules = ()
        for ran in judge.ran:
            obeys = PROGRAMS.get(ran.name) in modules if modules else ran.name == program
            if obeys and not ran.away and name not in ran.points:
                add_outside(judge.ambient, name)
                break


_OBEY = (
    ("KUBE", ("kubernetes",)),
    ("HELM", ("kubernetes",)),
    ("AWS", ("aws", "objectstores", "infrastructure")),
    ("CLOUDSDK", ("cloud", "objectstores")),
    ("DOCKER", ("containers",)),
    ("PG", ("data",)),
    ("TF_", ("infrastructure",)),
    ("ANSIBLE", ("infrastructure",)),
    ("GIT", ("vcs", "gitkin", "forges")),
)
"""Families of the clients that obey the variables that begin so."""
