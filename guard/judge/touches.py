"""Files that a command reads and writes, each by the rules of its path."""

from guard.judge import paths
from guard.judge.landing import may_be_critical, note_places
from guard.judge.levels import R1, R2, R3
from guard.judge.values import listed_of, spellings_of, values_of

INCOMPLETE = "names-unknown"
"""Flag: not everything that changes is in the plan, because the text does not tell its name or its folder."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge
    from guard.judge.shell.syntax import Word
    from guard.types import Span


def read_path(judge: "Judge", word: "Word", span: "Span") -> None:
    """A file whose content is read."""
    values = values_of(judge, word)
    if word.globs:
        for value, pattern in spellings_of(judge, word) or ():
            judge.listed_places(value, pattern)
    for value in values if values is not None else [word.shape]:
        for place in judge.places(value):
            kind = paths.device(place) if place.startswith(("/dev", "/proc", "/sys")) else ""
            if judge.own_touched == "" and paths.own(place, judge.own_private):
                judge.note(R2, "own.read", f"reads opsagent's own files ({place})", span, "law 6")
            if kind == "network":
                judge.note(R2, "shell.network", f"opens a network connection ({place})", span, "bash(1)")
                judge.effects.append(("network", place))
            elif kind == "device":
                judge.note(R2, "path.device", f"reads a device ({place})", span, "law 4")
            elif paths.secret(place):
                judge.note(R2, "path.secret", f"reads a file that holds credentials ({place})", span, "law 4")
                judge.effects.append(("secret-read", place))
            else:
                judge.effects.append(("read", place))
    if word.value is None or word.globs:
        judge.plain = False


def write_path(
    judge: "Judge",
    word: "Word",
    span: "Span",
    by: str,
    *,
    appends: bool = False,
    level: int = R1,
    deletes: bool = False,
    saves: str = "file",
) -> None:
    """A file that is created, changed or (with `deletes`) removed; `saves` "": what is saved of it is said apart."""
    values = values_of(judge, word)
    if word.globs and word.value is not None and saves:
        if saves == "file" and word.value[0] in "*?[":
            judge.flags.add(INCOMPLETE)  # a name that it lists may be read as an option
        saves = f"{saves}-glob"
    if values is None:
        listed = listed_of(judge, word)
        if listed is not None:
            for name in listed:
                write_path(judge, name, span, by, appends=appends, level=level, deletes=deletes, saves=saves)
            return
        shape = word.shape
        if not shape.startswith(("/", "~")) or shape.startswith("*"):
            judge.note(
                max(level, R2), "path.dynamic", f"writes a file that the text does not name ({by})", span, "law 2"
            )
            judge.effects.append(("delete" if deletes else "write", shape))
            return
        values = [shape]
        level = max(level, R2)
    elif deletes:
        note_places(judge, values, "moves or removes", span)
    lists = {} if not word.globs else {
        place: one
        for value, pattern in spellings_of(judge, word) or ()
        for place, one in judge.listed_places(value, pattern)
    }  # fmt: skip
    for value in values:
        places = judge.places(value)
        if any(place.startswith("*/") for place in places):
            # It may be any of these files, and one of them nobody knows: a copy of another one is no way back.
            judge.flags.add(INCOMPLETE)
            saves = ""
            level = max(level, R2)
            text = f"writes a file in a folder that the text does not tell ({by})"
            judge.note(R2, "path.dynamic", text, span, "law 2")
        for place in places:
            _write_place(judge, place, span, by, level, deletes, saves, lists.get(place, place))


def _write_place(
    judge: "Judge", place: str, span: "Span", by: str, level: int, deletes: bool, saves: str,
    listed: "str | None",
) -> None:  # fmt: skip
    """`listed`: the place as bash lists it, None where that cannot be told."""
    kind = paths.device(place) if place.startswith(("/dev", "/proc", "/sys")) else ""
    if kind == "harmless" and not deletes:
        if place in ("/dev/null", "/dev/full", "/dev/zero"):
            return
        judge.note(R2, "path.device", f"writes to {place}", span, "random(4)")
        return
    if kind == "stream" and not deletes:
        return
    if kind == "network":
        judge.note(R2, "shell.network", f"sends data to {place}", span, "bash(1)")
        judge.effects.append(("network", place))
        return
    if paths.own(place, judge.own_paths):
        judge.own_touched = place
        judge.note(R2, "own.write", f"changes opsagent's own files ({place})", span, "law 6")
    elif kind == "device" and place.startswith("/dev/"):
        terminal = place.startswith(("/dev/tty", "/dev/pts", "/dev/console", "/dev/log"))
        judge.note(R2 if terminal else R3, "path.device-write", f"overwrites a device ({place})", span, "law 1")
    elif place.startswith(("/proc/", "/sys/")):
        # One letter there ends everything without a word to anybody, and the text need not tell which.
        level = R3 if place == "/proc/sysrq-trigger" else R2
        judge.note(level, "path.kernel", f"changes the running kernel ({place})", span, "proc(5)")
    elif paths.critical(place) or (any(char in place for char in "*?[") and may_be_critical(place)):
        what = "removes" if deletes else "changes"
        judge.note(max(level, R2), "path.critical", f"{what} a critical file ({place})", span, "docs/judging.md")
    else:
        what = "removes" if deletes else "writes"
        judge.note(level, "path.delete" if deletes else "path.write", f"{what} {place} ({by})", span, "docs/judging.md")
    judge.effects.append(("delete" if deletes else "write", place))
    by_pattern = saves.endswith("-glob")
    if place.startswith("*/") or listed is None or (not by_pattern and any(char in place for char in "*?[")):
        judge.flags.add(INCOMPLETE)
    elif saves:
        judge.plan.append((saves, listed if by_pattern else place))
