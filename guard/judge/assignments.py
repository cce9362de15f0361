"""Assignments: whether a variable is one that changes what programs do, or points a client elsewhere (laws 2 and 8)."""

from guard.judge import paths
from guard.judge.levels import R2
from guard.judge.shell.scanning import NUMBER
from guard.judge.values import values_of
from guard.judge.variables import (
    AMBIENT_PATHS,
    AMBIENT_VARIABLES,
    DANGEROUS_VARIABLES,
    HARMLESS_VARIABLES,
    PAGER_VARIABLES,
    POINTING,
    dangerous,
)
from guard.pointers import add_pointer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from guard.judge.engine import Judge
    from guard.judge.shell.syntax import Assign, Script
    from guard.types import Span


def note_assignment(judge: "Judge", assign: "Assign") -> None:
    """`NAME=value`, before a command, by itself or in a declaration."""
    name = assign.name
    if (name in HARMLESS_VARIABLES or name.islower()) and name not in DANGEROUS_VARIABLES:
        return
    value = assign.value.value if assign.value is not None else None
    if name.startswith("OPSAGENT_"):
        judge.own_touched = name
        judge.note(R2, "own.variable", f"sets {name}, which opsagent itself obeys", assign.span, "law 6")
    elif name == "PS4":
        if value is None or "$" in value or "`" in value:
            judge.note(
                R2, "shell.variable", "sets PS4, which bash expands for each traced command", assign.span, "law 2"
            )
    elif name in PAGER_VARIABLES and value in ("cat", "", "/bin/cat", "/usr/bin/cat"):
        return
    elif name in AMBIENT_VARIABLES:
        told = assign.value is not None and not (assign.appends or assign.elements or assign.subscript is not None)
        values = values_of(judge, assign.value) if told and assign.value is not None else None
        note_pointer(judge, name, values, assign.span)
    elif dangerous(name):
        note_change(judge, name, assign.span)
        if name in POINTING and value is not None:
            add_pointer(judge.ambient, name, value)


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
