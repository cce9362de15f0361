"""What a text points client programs at, where it says so more than once: each name keeps all of its values. Pure."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


OUTSIDE = "(the caller's own)"
"""Value of what a command leaves as it is outside of the text, where another command of the same text sets it."""


def add_pointer(found: "dict[str, str]", name: str, text: str) -> None:
    """Adds a value under its name, a second and third one under `NAME (2)`, `NAME (3)`; the same one only once."""
    if text == OUTSIDE:
        text = f"./{text}"
    _add(found, name, text)


def add_outside(found: "dict[str, str]", name: str) -> None:
    """Adds, beside the values that the text gives to a name, the one that it has without the text."""
    _add(found, name, OUTSIDE)


def _add(found: "dict[str, str]", name: str, text: str) -> None:
    taken = [key for key in found if name_of(key) == name]
    if not any(found[key] == text for key in taken):
        found[f"{name} ({len(taken) + 1})" if taken else name] = text


def name_of(key: str) -> str:
    """The name without the number of its value."""
    name, mark, number = key.rpartition(" (")
    return name if mark and number[:-1].isdigit() and number.endswith(")") else key


def alternatives(found: "Mapping[str, str]") -> "dict[str, list[str]]":
    """Each name with all of its values, in order."""
    values: dict[str, list[str]] = {}
    for key, text in found.items():
        values.setdefault(name_of(key), []).append(text)
    return values
