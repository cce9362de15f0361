"""What a change does beyond each command by itself: what a pipe kills, what lands in a folder, what outlasts its end.

Worked out as `guard.judge.cutting` is, without I/O.
"""

from itertools import pairwise

from guard.judge import cutpaths
from guard.judge.levels import R0

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from guard.judge.engine import Judge
    from guard.judge.program import Ran
    from guard.judge.shell.syntax import Node

_PORT = (":22", "22/tcp", ":ssh", "ssh/tcp")
"""How programs that list sockets name the port (lsof(8), fuser(1), ss(8))."""
_UNPACKERS = frozenset(("tar", "bsdtar", "cpio", "unzip", "7z", "7za"))
_DETACHERS = frozenset(("at", "batch", "screen", "tmux", "daemonize", "daemon", "dtach", "abduco", "start-stop-daemon"))
_STAYS_WITH_IT = frozenset(("--wait", "--pty", "-t", "--pipe", "-P", "--scope", "--shell", "-S"))
"""Options with which systemd-run ends when its command does."""


def looks_for_ssh(text: str) -> bool:
    """Whether a word names the ssh server, or the port at which it listens."""
    return "ssh" in text or text.endswith(_PORT)


def from_a_pipe(kill: "Ran", judge: "Judge") -> bool:
    """`pgrep sshd | xargs kill`: whether the processes are those that the pipe tells, which looked for the
    ssh server."""
    if not kill.depth or all(word.value is not None for word in kill.words):
        return False
    return any(
        ran.pipe and ran.pipe == kill.pipe and any(looks_for_ssh(word.value or "") for word in ran.words)
        for ran in judge.ran
    )


def unpacked_over(judge: "Judge") -> "Iterator[str]":
    """Folders with what decides who comes in, into which an archive is unpacked whose names nobody knows."""
    for ran in judge.ran:
        if ran.name not in _UNPACKERS or ran.level == R0 or ran.away:
            continue
        words = [word.value or "" for word in ran.words[1:]]
        folders = [
            after or word.partition("=")[2]
            for word, after in pairwise((*words, ""))
            if word in ("-C", "-D", "-d", "--directory") or word.startswith("--directory=")
        ]
        if ran.name != "cpio" and folders:
            continue  # its effects tell
        if ran.name.endswith("tar") and not any("x" in word or word == "--get" for word in words[:2]):
            continue
        for place in judge.places(folders[-1] if folders else "."):
            if cutpaths.is_above(place):
                yield place


def _has_background(nodes: "Iterable[Node]") -> bool:
    return any(
        getattr(node, "kind", "") == "background"
        or any(_has_background(getattr(node, name, ())) for name in ("items", "stages", "body", "inside"))
        for node in nodes
    )


def goes_on(judge: "Judge") -> bool:
    """Whether a part of it may run when the command has ended: in the background, by a timer, in another terminal."""
    if any(_has_background(script.items) for script in judge.scripts):
        return True
    for ran in judge.ran:
        words = {word.value or "" for word in ran.words[1:]}
        if ran.level > R0 and ran.name in _DETACHERS:
            return True
        if ran.name == "setsid" and not words.isdisjoint(("-f", "--fork")):
            return True
        if ran.name == "systemd-run" and words.isdisjoint(_STAYS_WITH_IT):
            return True
    return False
