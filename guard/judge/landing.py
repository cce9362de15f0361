"""What comes about when something is put into a folder: a harmless name here can be that of a critical file there.

Lexical, as `paths` is. What a folder is that the text does not tell, the facts know.
"""

from guard.judge import paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_KNOWN = (*paths.CRITICAL_FILES, *paths.CRITICAL_PREFIXES)
_IN_HOMES = {name for name in paths.CRITICAL_NAMES if name.startswith(".")} | {
    inside.split("/")[1] for inside in paths.CRITICAL_INSIDE if inside.startswith("/.")
}
_HOMES = ("home", "users")


def last_name(path: str) -> str:
    """The name that a source has where it is put; "" for what lies in a folder, and for nothing."""
    name = path.rstrip("/").rpartition("/")[2]
    return "" if name in (".", "..") else name


def holds_critical(folder: str) -> bool:
    """Whether critical files have known places below the folder."""
    return bool(_children(folder))


def critical_put(folder: str, names: "Iterable[str]") -> str:
    """Which critical file, or folder of such, comes about when these names are put into the folder; "" for none.

    Args:
        names: last names; a shell pattern stands for what it can name, "" for names that nobody knows.
    """
    children = _children(folder)
    for name in names:
        place = f"{folder.rstrip('/')}/{name}"
        if not name or any(char in name for char in "*?["):
            # A pattern that does not begin with a dot names nothing hidden (bash(1), "Pathname Expansion").
            hidden = name[:1] in ("", ".", "[")
            if any((hidden or child[0] != ".") and paths.glob_match(name.lower() or "*", child) for child in children):
                return place
        elif paths.critical(place) or paths.critical(f"{place}/") or holds_critical(place):
            return place
    return ""


def _children(folder: str) -> "set[str]":
    """Names in the folder that are critical, or lead to what is."""
    low = folder.lower().rstrip("/") + "/"
    parts = low.split("/")
    last = f"/{parts[-2]}/"
    found = {place[len(low) :].partition("/")[0] for place in _KNOWN if place.startswith(low)}
    for inside in paths.CRITICAL_INSIDE:
        if inside.startswith(last) and len(inside) > len(last):
            found.add(inside[len(last) :].partition("/")[0])
    is_home = low == "/root/" or (low.startswith("~") and len(parts) == 2)
    if is_home or (len(parts) == 4 and parts[1] in _HOMES):
        found |= _IN_HOMES
    return found
