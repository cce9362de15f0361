"""Law 6 for whatever changes something and names opsagent's own files, in any spelling of an argument."""

from guard.judge import paths
from guard.judge.levels import R1, R2, R3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from guard.judge.engine import Judge
    from guard.judge.shell.syntax import Word

_TAKE_FILES = frozenset(("files", "text"))
"""Families whose operands are files by their nature."""
_TAKE_NO_FILES = frozenset(
    ("network", "firewall", "transfer", "containers", "kubernetes", "cloud", "aws", "objectstores", "remote", "system",
     "packages", "forges", "vcs", "gitkin")
)  # fmt: skip
"""Families whose operands without a dot or slash in front are hosts, URLs, units, images or names."""
_FILES_FOLLOW = frozenset(("--", "cp", "save", "export", "build", "load", "import"))
"""Words in the commands of these families after which files stand."""
_CODE = frozenset(" \t\n\"'();|&<>$`")
"""Characters of code and sentences, hardly of a file's name."""
_TREE_VERBS = frozenset(
    (
        *("reset", "checkout", "restore", "clean", "merge", "rebase", "pull", "stash", "switch", "rm", "mv", "apply"),
        *("am", "cherry-pick", "revert", "update", "up", "bisect", "sparse-checkout", "read-tree", "checkout-index"),
    )
)
"""Verbs of version control that change files of the work tree."""
_MODE = frozenset("ugoa+-=rwxXst,01234567")
"""What chmod's modes are made of."""
_UNREAD = frozenset(
    ("interpreter.code", "program.unread", "shell.script", "program.unknown", "build.run", "program.path")
)


def note_own_objects(judge: "Judge", words: "Sequence[Word]", before: int) -> None:
    """Law 6 for whatever changes something and names opsagent's own files, in any spelling of an argument."""
    new = judge.findings[before:]
    worst = max(finding[0] for finding in new)
    if worst < R1:
        return
    unread = any(finding[1] in _UNREAD for finding in new)
    family = _family(words[0])
    if family in ("vcs", "forges") and not _TREE_VERBS.isdisjoint([word.value for word in words[1:]]):
        # Whatever its operands are, it changes the tree that it stands in.
        own = next((cwd for cwd in judge.cwds if paths.own(cwd, judge.own_paths)), "")
        if own:
            judge.own_touched = own
            judge.note(R2, "own.write", f"changes opsagent's own files ({own})", words[0].span, "law 6")
            return
    bare = family in _TAKE_NO_FILES
    for word in words[1:]:
        if word.value in _FILES_FOLLOW:
            bare = False
        value = word.value if word.value is not None else word.shape
        if value.startswith("-") or ("=" in value and not value.startswith(("/", "~"))):
            value = value.partition("=")[2]
        if not value:
            continue
        named = value[0] in "/~."
        if not named and (bare or not _CODE.isdisjoint(value)):
            # A URL, a name on another machine, a text in another language: no file, unless it names one of ours.
            if not unread or not any(own in value for own in (*judge.own_paths, *paths.OWN)):
                continue
        elif (
            "/" not in value
            and value[0] not in ".~"
            and (family not in _TAKE_FILES or _MODE.issuperset(value) or (word.quoted and "*" in value))
        ):
            continue  # a bare word such as a unit's name, a mode or a pattern is no file of the folder we are in
        for place in judge.places(value):
            above = place.rstrip("/") + "/"
            if (
                paths.own(place, judge.own_paths)
                or (worst == R3 and any(own.startswith(above) for own in judge.own_paths))
                or (unread and (any(own in value for own in judge.own_paths) or any(own in value for own in paths.OWN)))
            ):
                judge.own_touched = place
                judge.note(R2, "own.write", f"changes opsagent's own files ({place})", word.span, "law 6")
                return


def _family(word: "Word") -> str:
    from guard.judge.families import PROGRAMS

    return PROGRAMS.get((word.value or "").rpartition("/")[2], "")
