"""An assessment in plain words, 80 columns wide."""

from guard.types import Level, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.types import Assessment

WIDTH = 80

_MEANING = {
    Level.R0: "a read: changes nothing that lasts",
    Level.R1: "small and reversible",
    Level.R2: "high risk, sensitive, or not understood",
    Level.R3: "cannot be undone",
}
_VERDICT = {
    Verdict.RUN: "runs",
    Verdict.NEEDS_STAMP: "needs a person's approval",
    Verdict.REFUSE: "is refused",
}


def shown(text: str) -> str:
    """Text that is not ours, so that nothing in it can act on a terminal and different texts look different."""
    out: list[str] = []
    for char in text:
        if char == "\\":
            out.append("\\\\")
        elif char == "\n":
            out.append("\\n")
        elif char == "\t":
            out.append("\\t")
        elif char.isprintable() and (char.isascii() or not char.isspace()):
            out.append(char)
        else:
            code = ord(char)
            out.append(f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")
    return "".join(out)


def wrapped(text: str, first: str, rest: str) -> "list[str]":
    """Lines of at most 80 columns; a word that is longer is cut into pieces, never lost."""
    lines: list[str] = []
    line = first
    empty = True
    for word in text.split(" "):
        while word:
            room = WIDTH - len(line) - (0 if empty else 1)
            if len(word) <= room:
                line += ("" if empty else " ") + word
                empty = False
                break
            if not empty:
                lines.append(line)
                line, empty = rest, True
                continue
            lines.append(line + word[:room])
            word = word[room:]
            line = rest
    lines.append(line)
    return lines


def explain(assessment: "Assessment") -> str:
    """Level, decision and every reason with the text that it speaks of. No trailing newline."""
    lines = wrapped(shown(assessment.command), "  ", "  ")
    decision = assessment.decision
    lines.append("")
    lines.extend(wrapped(f"{assessment.level.name}: {_MEANING[assessment.level]}", "", "    "))
    verdict = _VERDICT[decision.verdict]
    forced = " (a person can force it)" if decision.forceable else ""
    lines.extend(wrapped(f"It {verdict}{forced}: {shown(decision.text)}.", "", "    "))
    raw = assessment.command.encode("utf-8", "replace")
    if assessment.reasons:
        lines.append("")
    for reason in assessment.reasons:
        lines.extend(wrapped(f"{reason.level.name} {shown(reason.text)}", "  ", "     "))
        start, end = reason.span
        piece = raw[start:end].decode("utf-8", "replace")
        if piece and piece != assessment.command:
            lines.extend(wrapped(f"at {start}-{end}: {shown(piece)}", "     ", "     "))
        source = f", {reason.source}" if reason.source else ""
        lines.extend(wrapped(f"rule {shown(reason.rule)}{shown(source)}", "     ", "     "))
    changes = [effect for effect in assessment.effects if effect.kind != "read"]
    if changes:
        lines.append("")
        for effect in changes:
            lines.extend(wrapped(f"{effect.kind}: {shown(effect.object)}", "  ", "    "))
    if assessment.level > Level.R0:
        back = {"yes": "can be put back", "partial": "can be put back in part", "no": "no known way back"}
        lines.extend(["", back[assessment.reversible]])
    return "\n".join(lines)
