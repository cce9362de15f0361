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


def may_be_critical(pattern: str) -> bool:
    """Whether a path with a shell pattern in it can name a critical file: `/etc/pass*`, `~/.bash*`, `/usr/*/ls`."""
    low = pattern.lower()
    parts = low.split("/")
    if low.startswith("/"):
        if any(
            _names(parts, place.split("/")) and len(parts) == place.count("/") + 1 for place in paths.CRITICAL_FILES
        ):
            return True
        if any(_names(parts, place.split("/"), begins=True) for place in paths.CRITICAL_PREFIXES):
            return True
    last = parts[-1]
    if any(_told(last, name) and paths.glob_match(last, name) for name in paths.CRITICAL_NAMES):
        return True
    for inside in paths.CRITICAL_INSIDE:
        wanted = inside.strip("/").split("/")
        ends = len(parts) - len(wanted) + (not inside.endswith("/"))
        if any(
            _told(parts[at], wanted[0])
            and all(paths.glob_match(part, name) for part, name in zip(parts[at:], wanted, strict=False))
            for at in range(ends)
        ):
            return True
    return False


def _names(parts: "list[str]", wanted: "list[str]", *, begins: bool = False) -> bool:
    """Whether a pattern's parts can name these; `begins`: the last of them is how a name begins."""
    if len(parts) < len(wanted):
        return False
    last = len(wanted) - 1
    for at, (part, name) in enumerate(zip(parts, wanted, strict=False)):
        if begins and at == last:
            literal = _literal(part)
            open_end = literal and literal != part and name.startswith(literal)
            if not (literal.startswith(name) or open_end or paths.glob_match(part, name)):
                return False
        elif not paths.glob_match(part, name):
            return False
    return True


def _literal(part: str) -> str:
    """What stands before the first character of a pattern."""
    return part[: min((at for at in map(part.find, "*?[") if at >= 0), default=len(part))]


def _told(part: str, name: str) -> bool:
    """Whether a pattern says enough of a name to mean it: what is hidden its dot, any other the first letters."""
    literal = _literal(part)
    return literal[:1] == "." if name[0] == "." else literal == part or len(literal) >= 3


def is_there(folder: str) -> bool:
    """Whether a folder exists on every machine: one right below the root, or a home."""
    low = folder.lower().rstrip("/")
    return (low[:1] in ("", "/") and low.count("/") < 2) or _is_home(f"{low}/")


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
    if _is_home(low):
        found |= _IN_HOMES
    return found


def _is_home(low: str) -> bool:
    parts = low.split("/")
    return low == "/root/" or (low.startswith("~") and len(parts) == 2) or (len(parts) == 4 and parts[1] in _HOMES)
