"""What comes about when something is put into a folder, or a folder is taken away.

A harmless name here can be that of a critical file there, and who moves a folder moves the critical files in it.

Lexical, as `paths` is. What a folder is that the text does not tell, the facts know.
"""

from guard.judge import paths
from guard.judge.levels import R0, R2, R3
from guard.judge.tables import names as words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from guard.judge.engine import Judge
    from guard.judge.program import Call
    from guard.judge.shell.syntax import Word
    from guard.types import Span

_KNOWN = (*paths.CRITICAL_FILES, *paths.CRITICAL_PREFIXES)
_IN_HOMES = {name for name in paths.CRITICAL_NAMES if name.startswith(".")} | {
    inside.split("/")[1] for inside in paths.CRITICAL_INSIDE if inside.startswith("/.")
}
_HOMES = ("home", "users")
_STANDS_ON = words_of("""
    / /etc /usr /bin /sbin /lib /lib32 /lib64 /libx32 /usr/bin /usr/sbin /usr/lib /usr/lib32 /usr/lib64 /usr/libexec
    /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu /lib/aarch64-linux-gnu /usr/lib/aarch64-linux-gnu /lib/systemd
    /usr/lib/systemd /boot /dev /proc /sys /run /system
""")
"""Without one of these nothing starts any more, nor what would bring it back. Source: hier(7), file-hierarchy(7)."""
_LINKED_BY_ALL = ("libc.so.", "ld-linux", "ld-musl")
"""How the names of what every program is linked with begin. Source: ld.so(8)."""
_LEANED_ON = words_of("/var /root /home /usr/local /usr/share /tmp /var/tmp /var/run /users /library /applications")
"""Without one of these people cannot log in as they did, or many services stop working."""


def last_name(path: str) -> str:
    """The name that a source has where it is put; "" for what lies in a folder, and for nothing."""
    name = path.rstrip("/").rpartition("/")[2]
    return "" if name in (".", "..") else name


def holds_critical(folder: str) -> bool:
    """Whether critical files have known places below the folder."""
    return bool(_children(folder))


def taken_away(place: str) -> int:
    """Level of moving or removing what is at an absolute path, or of something else in its place: R0 for what nobody
    stands on, R2 for parents of critical files, R3 for what the system cannot run without. It may be a pattern."""
    low = place.lower().rstrip("/") or "/"
    if low in _STANDS_ON:
        return R3
    last = low.rpartition("/")[2]
    if last.startswith(_LINKED_BY_ALL) and low.startswith(("/lib", "/usr/lib")):
        return R3
    if any(char in low for char in "*?["):
        parts = low.split("/")
        if low[0] == "/" and any(_is_one_of(parts, known) for known in _STANDS_ON):
            return R3
        if low[0] == "/" and (any(_is_one_of(parts, known) for known in _LEANED_ON) or _is_home(f"{low}/")):
            return R2
        return R0
    return R2 if low in _LEANED_ON or holds_critical(low) else R0


def _is_one_of(parts: "list[str]", known: str) -> bool:
    wanted = known.split("/")
    return len(parts) == len(wanted) and known != "/" and _names(parts, wanted)


def note_taken(call: "Call", word: "Word", what: str, least: int = R2) -> None:
    """Raises the level of a command that takes away or replaces what a word names, to `least` or not at all."""
    value = call.value(word)
    if value is not None:
        note_places(call.judge, [value], what, word.span, least)


def note_places(judge: "Judge", values: "Iterable[str]", what: str, span: "Span", least: int = R2) -> None:
    """The same for paths as the text has them, of which nothing is unknown but what a pattern lists."""
    for value in values:
        for place in judge.places(value):
            level = taken_away(place)
            if level >= least:
                stands = "which the system cannot run without" if level == R3 else "in which critical files lie"
                judge.note(level, "path.critical-parent", f"{what} {place}, {stands}", span, "docs/judging.md")


def note_put(call: "Call", folder: str, names: "Iterable[str]", word: "Word | None" = None) -> None:
    """Raises the level of a command that puts these names into a folder, where one of them is critical there.

    Args:
        folder: as the text has it. names: as of `critical_put`.
    """
    names = tuple(names)
    for place in call.judge.places(folder):
        if holds_critical(place) and (put := critical_put(place, names)):
            call.note(R2, "path.critical-put", f"puts a critical file into a folder ({put})", word, "docs/judging.md")


def put_whole(call: "Call", goal: "Word", sources: "Sequence[Word]") -> None:
    """What keeps its whole path below the folder that it is put into: `cp --parents`, `rsync -R`."""
    folder = call.value(goal)
    for word in sources if folder is not None else ():
        path = (word.value or call.value(word) or "").rpartition("/./")[2]
        note_put(call, f"{folder}/{path.rstrip('/').rpartition('/')[0]}", (last_name(path),), goal)


def put_by_name(call: "Call", goal: "Word", sources: "Sequence[Word]") -> None:
    """What lands in a folder under its last name; with a slash behind it all that a folder holds."""
    folder = call.value(goal)
    if folder is not None:
        values = [call.value(word) or "" for word in sources]
        found = ["" if value.endswith("/") else last_name(value.rpartition(":")[2]) for value in values]
        note_put(call, folder, found, goal)


def put_from(call: "Call", folder: "Word | None", addresses: "Sequence[Word]") -> None:
    """What is saved under the last names of its addresses; without any under names that nobody knows."""
    parts = [(call.value(word) or "").partition("?")[0].partition("://") for word in addresses]
    found = [last_name((part[2] or part[0]).partition("/")[2]) for part in parts] or [""]
    note_put(call, "." if folder is None else call.value(folder) or "/", found, folder)


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
