"""What a person's own rules do to one command: raise freely, lower only what is merely not known or small.

A rule never touches what is irreversible, a credential, a path, text that could not be read, or opsagent's own files
(docs/rules.md). Whether a lowering rule may be here at all (a person's trust in its file) is the loader's business.
"""

from guard.judge.families import PROGRAMS
from guard.judge.levels import R0, R1, R2, R3
from guard.judge.paths import glob_match

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from guard.judge.engine import Judge
    from guard.judge.shell.syntax import Word
    from guard.types import UserRule

REST = "..."
"""As the last pattern of a lowering rule: any further words."""
NEVER_LOWERED = frozenset(
    (
        "network",
        "firewall",
        "transfer",
        "remote",
        "wrappers",
        "batches",
        "shellbuiltins",
        "interpreters",
        "scripts",
        "desktop",
    )
)
"""Families whose programs send data or run other code: what they do cannot be promised by a pattern of words."""
OWN_PROGRAMS = frozenset(("opsx", "opsagent", "opsagent-mcp"))
_UNKNOWN = (".unknown-verb", ".unknown-option", ".bare", ".operand")
"""Ends of rule names that say "not known", not "known to change something"."""


def apply(judge: "Judge", name: str, words: "Sequence[Word]", before: int, first_effect: int, was_unread: bool) -> None:
    """Applies the rules for one command whose findings are `judge.findings[before:]`."""
    lowering = raising = None
    for rule in judge.rules:
        if rule.program != name:
            continue
        if rule.lowers:
            if lowering is None and _is_whole(rule.words, words[1:]):
                lowering = rule
        elif (raising is None or rule.level > raising.level) and _occurs(rule.words, words[1:]):
            raising = rule
    if lowering is not None:
        _lower(judge, lowering, name, words, before, first_effect, was_unread)
    if raising is not None:
        span = (words[0].span[0], max(words[0].span[1], words[-1].span[1]))
        judge.note(int(raising.level), f"user.{raising.id}", raising.text, span, raising.file)


def _occurs(patterns: "tuple[str, ...]", words: "Sequence[Word]") -> bool:
    """The patterns are met in this order, with anything between. A word that is not told could be any word."""
    at = 0
    for pattern in patterns:
        while at < len(words):
            word = words[at]
            at += 1
            if word.value is None or word.globs or glob_match(pattern, word.value):
                break
        else:
            return False
    return True


def _is_whole(patterns: "tuple[str, ...]", words: "Sequence[Word]") -> bool:
    """The patterns are the whole command, word for word, and every word is literal."""
    rest = bool(patterns) and patterns[-1] == REST
    fixed = patterns[:-1] if rest else patterns
    if len(words) < len(fixed) or (len(words) > len(fixed) and not rest):
        return False
    for at, word in enumerate(words):
        value = word.value
        if value is None or word.globs or word.appended:
            return False
        pattern = fixed[at] if at < len(fixed) else "*"
        if value.startswith("-") and not pattern.startswith("-"):
            return False
        if not glob_match(pattern, value):
            return False
    return True


def _lower(
    judge: "Judge",
    rule: "UserRule",
    name: str,
    words: "Sequence[Word]",
    before: int,
    first_effect: int,
    was_unread: bool,
) -> None:
    found = judge.findings[before:]
    if name in OWN_PROGRAMS or PROGRAMS.get(name) in NEVER_LOWERED or judge.own_touched:
        return
    if any(level >= R3 for level, *_ in found):
        return
    if any(kind in ("secret-read", "network", "exec") for kind, _ in judge.effects[first_effect:]):
        return
    kept = []
    lowered = False
    for finding in found:
        level, title, text, span, source = finding
        floor = _floor(name, title, source)
        wanted = max(int(rule.level), floor)
        if wanted >= level:
            kept.append(finding)
            continue
        lowered = True
        kept.append((wanted, f"user.{rule.id}", f"{rule.text} (built in: {text})", span, rule.file))
    if not lowered:
        return
    judge.findings[before:] = kept
    judge.lowered = True
    judge.flags.add("helper")
    judge.plain = False
    if not was_unread and not any(source == "law 2" for *_, source in kept):
        judge.flags.discard("opaque")


def _floor(name: str, title: str, source: str) -> int:
    """How far a finding can be taken down: to a read when it only says "not known", to R1 when it says "changes"."""
    if title == "program.unknown" or (title.startswith(f"{name}.") and title.endswith(_UNKNOWN)):
        return R0
    if title.startswith(f"{name}.") and not source.startswith("law"):
        return R1
    return R2
