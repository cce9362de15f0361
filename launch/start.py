"""Starts `opsagent` or `opsx` inside its environment, when that environment is the one that the lock describes.

Run as `python -I -S -X utf8 start.py PROGRAM VENV [ARG...]`; isolated, so that neither PYTHONPATH nor the current
folder nor a `.pth` file adds a module. The checkout and the environment's two library folders are all that is put on
the path. An environment that does not fit goes to `setup.sh`.

Reads: the lock, `VENV/.ready`, and for root the owner and mode of the folders on the way. Writes nothing.
Every import here is paid by every `opsx check`: os, sys and gc (built in) only.
"""

import gc
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

READY = ".ready"
# First line of `.ready`; a new meaning of the file gets a new number, and old environments are made anew.
READY_FORMAT = "opsagent environment 1"
HOOK_DEADLINE_S = 5
YOUNG_OBJECTS = 100_000
"""A one-shot makes 90,000 objects that stay, most of them code. At Python's 700 the collector walks them 130 times and
finds nothing, 7 % of the processor time; what is garbage without a cycle goes at once as ever. Costs 5 MB at worst."""


def read_ready(venv: str) -> tuple[list[str], bytes] | None:
    """The library folders of an environment and the lock it was made from, or None when it is not complete.

    `.ready` is written last: format line, Python's `major.minor`, one line per library folder relative to the
    environment, an empty line, then the lock's bytes.
    """
    try:
        with open(f"{venv}/{READY}", "rb") as file:
            head, found, lock = file.read().partition(b"\n\n")
    except OSError:
        return None
    lines = head.decode("utf-8", "replace").split("\n")
    if not found or lines[0] != READY_FORMAT or len(lines) < 3:
        return None
    return lines[1:], lock


def read_lock(path: str) -> bytes:
    """The lock's bytes; ends the program with a sentence when there is none to read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        sys.stderr.write(f"error[setup.lock]: cannot read the lock: {error}\nnothing was run\nhint: check out again\n")
        raise SystemExit(7) from error


def old_folders(venv: str) -> list[str] | None:
    """Library folders of a complete environment for this Python, whatever lock it was made from."""
    ready = read_ready(venv)
    return None if ready is None else fits(venv, ready[1])


def fits(venv: str, lock: bytes) -> list[str] | None:
    """Absolute library folders of `venv` if it was made from exactly this lock for this Python, else None."""
    ready = read_ready(venv)
    if ready is None:
        return None
    (version, *folders), made_from = ready
    # A distribution upgrade can swap the Python that the environment's link points to.
    if made_from != lock or version != f"{sys.version_info[0]}.{sys.version_info[1]}":
        return None
    return [f"{venv}/{folder}" for folder in folders]


def foreign_part(paths: list[str]) -> str | None:
    """The first of these absolute paths, or of the folders above them, that somebody other than root can change.

    A sticky folder such as /tmp is no fault when the entry below it belongs to root: others can add there, not
    replace. Group 0 may write. Links are judged as entries and then followed by the caller's own realpath.
    """
    seen = set()
    for path in paths:
        for entry in _up(path):
            if entry in seen:
                continue
            seen.add(entry)
            try:
                stat = os.lstat(entry)
            except OSError:
                continue
            kind = stat.st_mode & 0o170000
            if stat.st_uid != 0:
                return entry
            if kind == 0o120000 or (kind == 0o040000 and stat.st_mode & 0o1000):
                continue
            if stat.st_mode & 0o002 or (stat.st_mode & 0o020 and (stat.st_gid != 0 or _has_acl(entry))):
                return entry
    return None


def _up(path: str) -> "Iterator[str]":
    while True:
        yield path
        above = os.path.dirname(path)
        if above == path:
            return
        path = above


def _has_acl(path: str) -> bool:
    """True if an access list may give the group bits to somebody else than the group."""
    try:
        return bool(os.getxattr(path, "system.posix_acl_access"))
    except (OSError, AttributeError):
        return False


def refuse_foreign(part: str) -> None:
    """Ends the program with the sentence about a place that others can write."""
    sys.stderr.write(
        f"error[setup.foreign]: you are root and others can write {part!r}, and so change what root runs\n"
        "nothing was run\n"
        f"hint: chown root and chmod go-w it (and look what is in it first), or use a checkout below /opt\n"
    )
    raise SystemExit(4)


def enter(root: str, folders: list[str], pycache: str | None) -> None:
    """Puts the checkout and then the environment's library folders on the path, after the standard library."""
    sys.path += [root, *folders]
    if pycache is not None:
        sys.pycache_prefix = pycache


def main(argv: list[str]) -> int:
    """Checks, enters and runs; the exit code is the program's.

    `--old` in front is bootstrap.py's word for "could not be renewed, and I said so": the lock is not compared.
    """
    gc.set_threshold(YOUNG_OBJECTS, 10, 10)
    old = argv[0] == "--old"
    program, venv, *rest = argv[1:] if old else argv
    root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
    venv = os.path.abspath(venv)
    if program == "opsx" and rest[:1] == ["hook"]:
        # A hook that hangs would be ignored by its host, which then runs the command. What follows sets its own time.
        import _signal  # type: ignore[import-not-found]  # `signal` itself loads enum

        _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
        _signal.alarm(HOOK_DEADLINE_S)
    if os.geteuid() == 0:
        part = foreign_part([f"{root}/launch", f"{root}/cli", f"{root}/guard", f"{venv}/bin", os.path.realpath(venv)])
        if part is not None:
            refuse_foreign(part)
    folders = old_folders(venv) if old else fits(venv, read_lock(f"{root}/requirements.lock"))
    if folders is None:
        os.execv("/bin/sh", ["sh", f"{root}/launch/setup.sh", program, *rest])
    in_checkout = os.path.dirname(venv) == root
    enter(root, folders, None if in_checkout else f"{os.path.dirname(venv)}/pycache")
    sys.argv = [program, *rest]
    from cli import ending

    if program == "opsx":
        from cli.opsx import main as run
    else:
        from cli.opsagent import main as run
    return ending.run(run, rest)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
