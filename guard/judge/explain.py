"""An assessment in plain words for a person, at most 80 columns wide.

The command stands there as it is, with each part's level below it. Foreign text goes through `guard.render`.
"""

from guard.judge.classify import Judged
from guard.render import CLOSE, OPEN, visible, visible_line, width
from guard.types import Level, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from guard.judge.program import Ran
    from guard.types import Assessment

WIDTH = 80
"""Columns. Rows are cut by what they take on a terminal: two columns for wide characters."""
INDENT = "  "
ALL_ROWS = 40
"""A command of more rows is shown by its first rows and by those that are more than a read."""
MOST_REASONS = 60
MOST_CHAINS = 8

_MEANING = {
    Level.R0: "a read: changes nothing that lasts",
    Level.R1: "small and reversible",
    Level.R2: "high risk, sensitive, or not understood",
    Level.R3: "cannot be undone",
}
_VERDICT = {
    Verdict.RUN: "It runs",
    Verdict.NEEDS_STAMP: "It needs a person's approval",
    Verdict.REFUSE: "It is refused",
}
MOST_SAVED = 20
_EFFECTS = {
    "write": "writes", "delete": "removes", "network": "talks to", "service": "acts on the service",
    "package": "acts on the package", "process": "acts on the process", "privilege": "changes rights:",
    "secret-read": "can show the credential", "secret": "handles a credential", "exec": "runs",
    "user": "acts on the user",
}  # fmt: skip


def explain(assessment: "Assessment", clean: "Callable[[str], str]" = str, mask: str = "[REDACTED]") -> str:
    """The command with its levels in place, the decision, every reason with its source, and what would only read.

    No trailing newline. Rows are at most 80 columns wide.

    Args:
        clean: takes secrets out of each text, before anything is cut or wrapped: half a secret is none that it knows.
        mask: what it puts in their place.
    """

    def said(text: str) -> str:
        return visible_line(clean(text))

    rows = list(_marked(assessment, clean, mask))
    decision = assessment.decision
    rows.append("")
    rows += wrapped(f"{assessment.level.name}: {_MEANING[assessment.level]}", "", "    ")
    rows += wrapped(f"{_VERDICT[decision.verdict]}: {said(decision.text)}.", "", "    ")
    if isinstance(assessment, Judged):
        chains = list(_chains(assessment.ran))
        if chains:
            rows += ["", "What carries what:"]
            for chain in chains[:MOST_CHAINS]:
                rows += wrapped(" > ".join(said(name) for name in chain), INDENT, "      ")
            if len(chains) > MOST_CHAINS:
                rows.append(f"{INDENT}and {len(chains) - MOST_CHAINS} more")
    rows += _reasons(assessment, clean)
    changes = [effect for effect in assessment.effects if effect.kind != "read"]
    if changes:
        rows += ["", "What it will do:"]
        for effect in changes[:MOST_REASONS]:
            does = _EFFECTS.get(effect.kind, effect.kind)
            rows += wrapped(f"{does} {said(effect.object)}".rstrip(), INDENT, "      ")
        if len(changes) > MOST_REASONS:
            rows.append(f"{INDENT}and {len(changes) - MOST_REASONS} more")
    if assessment.level > Level.R0:
        rows += ["", *_way_back(assessment, said)]
        if isinstance(assessment, Judged):
            from guard.judge.nearest import nearest

            look = nearest(assessment)
            if look:
                rows += wrapped(f"To look first: {said(look)}", "", "    ")
    return "\n".join(rows)


def _way_back(assessment: "Assessment", said: "Callable[[str], str]") -> "Iterator[str]":
    """What a rollback could do, as the screen of an approval says it: never more than what is saved, never less."""
    plan = assessment.snapshot_plan
    if not plan:
        by_hand = assessment.level == Level.R1
        yield "Nothing is saved first; it goes back by hand." if by_hand else "There is no known way back."
        return
    yield from wrapped(
        "It can be put back. Saved first:"
        if assessment.reversible == "yes"
        else "It can be put back in part: only what is saved first, if it runs.",
        "",
        "    ",
    )
    for item in plan[:MOST_SAVED]:
        what = f"the state of {said(item.object)}" if item.kind in ("service", "state") else said(item.object)
        yield from wrapped(what, INDENT, "      ")
    if len(plan) > MOST_SAVED:
        yield f"{INDENT}and {len(plan) - MOST_SAVED} more"


# -- the command, marked --------------------------------------------------------------------------------------------


def _marked(assessment: "Assessment", clean: "Callable[[str], str]", mask: str) -> "Iterator[str]":
    """The command's rows; below each the levels of its parts, `R2` and dashes to the part's end."""
    text, levels = _cleaned(assessment.command, _levels(assessment, assessment.command), clean, mask)
    rows = list(_rows(text, levels))
    everything = len(rows) <= ALL_ROWS
    left_out = 0
    for number, (row, marks) in enumerate(rows):
        if not everything and number >= ALL_ROWS // 2 and not any(mark in marks for mark in "123"):
            left_out += 1
            continue
        if left_out:
            yield f"{INDENT}{OPEN}{left_out} rows that only read{CLOSE}"
            left_out = 0
        yield INDENT + row
        if marks.strip():
            yield INDENT + _labelled(marks)
    if left_out:
        yield f"{INDENT}{OPEN}{left_out} rows that only read{CLOSE}"


def _cleaned(text: str, levels: "list[int]", clean: "Callable[[str], str]", mask: str) -> "tuple[str, list[int]]":
    """The text without its secrets, and the levels of what is left; a mask has the worst of what it stands for."""
    pieces = clean(text).split(mask)
    at = len(pieces[0])
    shown, kept = pieces[0], levels[:at]
    for number, piece in enumerate(pieces[1:], 2):
        # What is between two masks stands in the text as it is; the last piece ends it.
        start = text.find(piece, at) if number < len(pieces) else len(text) - len(piece)
        start = max(at, start)
        kept += [max(levels[at:start], default=-1)] * len(mask)
        kept += levels[start : start + len(piece)]
        shown += mask + piece
        at = start + len(piece)
    return shown, kept


def _levels(assessment: "Assessment", text: str) -> "list[int]":
    """For each character the level of the worst part that it belongs to; -1 for none (operators, blanks)."""
    spans: list[tuple[int, int, int]] = []
    if isinstance(assessment, Judged):
        spans += ((*ran.span, ran.level) for ran in assessment.ran)
    spans += ((*reason.span, int(reason.level)) for reason in assessment.reasons if reason.level)
    if not text.isascii():
        offsets = [0]
        for char in text:
            offsets.append(offsets[-1] + len(char.encode("utf-8", "replace")))
        chars = {offset: index for index, offset in enumerate(offsets)}
        spans = [(chars.get(start, 0), chars.get(end, 0), level) for start, end, level in spans]
    levels = [-1] * len(text)
    # Painted from the lowest to the highest, so that the worst stays on top.
    for start, end, level in sorted(set(spans), key=lambda span: span[2]):
        levels[start:end] = [level] * (min(end, len(text)) - start) if end > start else levels[start:end]
    return levels


def _rows(text: str, levels: "Sequence[int]") -> "Iterator[tuple[str, str]]":
    """(what is shown, one mark for each of its columns) in rows that fit; lines of the command begin new rows."""
    shown = visible(text, line_run=0)
    room = WIDTH - len(INDENT)
    row, marks, used = "", "", 0
    for piece, start, end in _pieces(shown, text):
        if piece == "\n":
            yield row, marks
            row, marks, used = "", "", 0
            continue
        columns = width(piece)
        if used + columns > room and row:
            yield row, marks
            row, marks, used = "", "", 0
        level = max(levels[start:end], default=-1)
        row += piece
        marks += ("0123"[level] if level >= 0 else " ") * columns
        used += columns
    yield row, marks


def _pieces(shown: str, text: str) -> "Iterator[tuple[str, int, int]]":
    """Pairs what is shown with the characters of the text that it stands for."""
    at = place = 0
    while place < len(shown):
        end = place + 1
        count = 1
        if shown[place] == OPEN:
            end = shown.index(CLOSE, place) + 1
            inner = shown[place + 1 : end - 1].split(" ")
            if len(inner) == 2 and inner[1].startswith("blank") and inner[0].isdigit():
                count = int(inner[0])
        yield shown[place:end], at, at + count
        at += count
        place = end


def _labelled(marks: str) -> str:
    """`000000  22222` → `R0----  R2---`."""
    out: list[str] = []
    at = 0
    while at < len(marks):
        end = at
        while end < len(marks) and marks[end] == marks[at]:
            end += 1
        mark, size = marks[at], end - at
        if mark == " ":
            out.append(" " * size)
        else:
            out.append((f"R{mark}" + "-" * size)[:size] if size > 1 else mark)
        at = end
    return "".join(out).rstrip()


# -- words ----------------------------------------------------------------------------------------------------------


def _chains(ran: "Sequence[Ran]") -> "Iterator[tuple[str, ...]]":
    """Each command that is carried by others, from the outermost to itself; each chain once."""
    seen: set[tuple[str, ...]] = set()
    path: list[Ran] = []
    for index, one in enumerate(ran):
        while path and (path[-1].depth >= one.depth or not _within(one, path[-1])):
            path.pop()
        path.append(one)
        following = ran[index + 1] if index + 1 < len(ran) else None
        is_last = following is None or following.depth <= one.depth or not _within(following, one)
        chain = tuple(part.name or "?" for part in path)
        if is_last and len(chain) > 1 and chain not in seen:
            seen.add(chain)
            yield chain


def _within(inner: "Ran", outer: "Ran") -> bool:
    return outer.span[0] <= inner.span[0] and inner.span[1] <= outer.span[1]


def _reasons(assessment: "Assessment", clean: "Callable[[str], str]") -> "list[str]":
    reasons = assessment.reasons
    if not reasons:
        return []
    rows = ["", "Why:"]
    raw = assessment.command.encode("utf-8", "replace")
    for reason in reasons[:MOST_REASONS]:
        rows += wrapped(f"{reason.level.name} {visible_line(clean(reason.text))}", INDENT, "     ")
        start, end = reason.span
        piece = raw[start:end].decode("utf-8", "replace")
        if piece and piece != assessment.command:
            rows += wrapped(f"at {start}-{end}: {visible_line(_short(clean(piece)))}", "     ", "     ")
        source = f", {reason.source}" if reason.source else ""
        rows += wrapped(f"rule {visible_line(reason.rule)}{visible_line(source)}", "     ", "     ")
    if len(reasons) > MOST_REASONS:
        rows.append(f"{INDENT}and {len(reasons) - MOST_REASONS} more")
    return rows


def _short(piece: str) -> str:
    """Enough of a part to find it; the whole stands above."""
    return piece if len(piece) <= 200 else f"{piece[:120]} … {piece[-60:]}"


def wrapped(text: str, first: str, rest: str) -> "list[str]":
    """Rows of at most 80 columns; a word that is longer is cut into pieces, never lost. `text` is visible already."""
    rows: list[str] = []
    row, used, empty = first, width(first), True
    for word in text.split(" "):
        while word:
            gap = 0 if empty else 1
            if used + gap + width(word) <= WIDTH:
                row += " " * gap + word
                used += gap + width(word)
                empty = False
                break
            if not empty:
                rows.append(row)
                row, used, empty = rest, width(rest), True
                continue
            cut = _fitting(word, WIDTH - used)
            rows.append(row + word[:cut])
            word = word[cut:]
            row, used = rest, width(rest)
    rows.append(row)
    return rows


def _fitting(word: str, room: int) -> int:
    used = 0
    for index, char in enumerate(word):
        used += width(char)
        if used > room:
            return max(1, index)
    return len(word)
