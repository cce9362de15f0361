"""What a request is on this machine now, so that a stamp can hold it fast. Reads files and looks at folders, no more.

What is named here and cannot be held (a folder of includes, a pipe, another machine) is listed as not bound; nothing is
left out silently. The same request binds to the same digest until something that it depends on changes.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from typing import TYPE_CHECKING

from guard.bound import Binding, canonical
from guard.errors import CannotRun
from guard.hands.ambient import POINTERS, ambient_of
from guard.hands.environment import PASSED, PATH, build_environment
from guard.hands.listing import escaped, listing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from guard.types import Assessment, Policy, Request

SYSTEM_FOLDERS = (
    "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/snap/bin",
    "/opt/homebrew/bin", "/opt/homebrew/sbin",
)  # fmt: skip
"""A program in these is held by identity, size and time of change; one elsewhere by its content too."""

HASHED_FILE_BYTES = 128 * 1024 * 1024
"""A larger file is held by identity, size and times: hashing it would take longer than a person waits."""
HASHED_BYTES = 512 * 1024 * 1024
"""All files together."""
MOST_APART = 400
"""Inputs that are named one by one when they change; the rest is bound as one."""
MOST_LISTED = 100_000
"""Names of one glob."""
PATIENCE_S = 20.0
"""A dead network mount never answers; nothing is run then."""
_MARK = "=sha256:"
"""Before the hash of a variable's value; no value of use begins so."""

_NAMES_ONLY = frozenset(
    (
        *("rm", "rmdir", "unlink", "shred", "mv", "cp", "ln", "ls", "chmod", "chown", "chgrp", "touch", "mkdir", "du"),
        *("stat", "file", "truncate", "tar", "zip", "gzip", "gunzip", "bzip2", "xz", "zstd", "rsync", "find", "wc"),
        *("setfacl", "chattr", "restorecon", "sudo", "env", "nice", "timeout", "nohup", "time", "echo", "printf"),
    )
)
"""Programs for which a listed file is an object. With any other beside them, what the listed files hold is bound."""


def bind(
    request: Request,
    assessment: Assessment,
    *,
    plan_digest: str,
    policy_version: str,
    policy: Policy,
    environ: Mapping[str, str] | None = None,
) -> Binding:
    """The binding of a request as everything is now.

    Args:
        plan_digest: `SnapshotPlan.digest`, or "" when nothing is saved.
        policy_version: `core.policy_version()`.
        environ: the environment that the command's own is built from; default: this process's. For a kept request:
            what `asked_environment` gave when it was made.
    Raises:
        CannotRun: the folder is gone, or a file system did not answer within 20 s.
    """
    found: list[Binding] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            found.append(_bound(request, assessment, plan_digest, policy_version, policy, environ))
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True, name="binding")
    thread.start()
    thread.join(PATIENCE_S)
    if failed:
        raise failed[0]
    if not found:
        raise CannotRun(
            f"what the command depends on could not be read within {PATIENCE_S:g} s: a file system does not answer",
            hint="mount | grep nfs; then ask again",
        )
    return found[0]


def asked_environment(
    assessment: Assessment, policy: Policy, environ: Mapping[str, str] | None = None
) -> dict[str, str]:
    """What a kept request has to remember of its asker's environment: names, and values only of what points somewhere.

    `bind` with this as `environ` gives what it would give in the asker's own process.
    """
    source = os.environ if environ is None else environ
    child = build_environment(_asked(assessment, policy), source)
    kept = {name: source.get(name, "") for name in ("HOME", "USER") if source.get(name)}
    for name in child.passed:
        kept[name] = source[name] if name in POINTERS else _mark(source[name]) if name in PASSED else "set"
    return kept


def _mark(value: str) -> str:
    """What stands for a value that may hold a password, such as a proxy's; a mark stands for itself."""
    if value.startswith(_MARK):
        return value
    return _MARK + hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def _asked(assessment: Assessment, policy: Policy) -> tuple[str, ...]:
    return (*assessment.env, *getattr(policy, "env", ()))


def _bound(
    request: Request,
    assessment: Assessment,
    plan_digest: str,
    policy_version: str,
    policy: Policy,
    environ: Mapping[str, str] | None,
) -> Binding:
    child = build_environment(_asked(assessment, policy), environ)
    try:
        folder = os.stat(request.cwd)
    except OSError as error:
        raise CannotRun(f"the folder {request.cwd} cannot be entered: {error.strerror}") from None
    inputs = _Inputs(request.cwd, child.env)
    for item in getattr(assessment, "inputs", ()):
        inputs.add(item.kind, item.object)
    inputs.finish()
    ambient, untold = ambient_of(inputs.programs, dict(assessment.ambient), child.env, request.cwd)
    rules = [repr(rule) for rule in getattr(policy, "rules", ())]
    fields: dict[str, object] = {
        "command": request.command,
        "target": request.target,
        "folder": [request.cwd, folder.st_dev, folder.st_ino],
        "user": os.geteuid(),
        "level": assessment.level.name,
        "policy": [policy_version, hashlib.sha256(canonical(rules)).hexdigest()] if rules else [policy_version],
        "snapshot plan": plan_digest,
    }
    fields.update({f"ambient {name}": text for name, text in sorted(ambient.items())})
    # Which proxy is asked and which authorities count decides who reads what is sent.
    fields.update({f"variable {name}": _mark(child.env[name]) if name in PASSED else True for name in child.passed})
    fields.update(inputs.fields)
    return Binding(fields, tuple(dict.fromkeys((*inputs.unbound, *untold))), dict(sorted(ambient.items())))


class _Inputs:
    """Resolves what the judge names: programs, files, globs."""

    def __init__(self, cwd: str, env: Mapping[str, str]) -> None:
        self._cwd = cwd
        self._home = env.get("HOME", "/")
        self._path = env.get("PATH", PATH)
        self._left = HASHED_BYTES
        self._globs: list[str] = []
        self._rest: dict[str, object] = {}
        self._known: dict[str, object] = {}
        self.programs: list[str] = []
        self.fields: dict[str, object] = {}
        self.unbound: list[str] = []

    def add(self, kind: str, name: str) -> None:
        if kind == "program":
            self.programs.append(name)
            self._put(f"program {name}", self._program(name))
        elif kind == "file":
            self._put(f"file {name}", self._file(self._placed(name)))
        elif kind == "glob":
            self._globs.append(name)
        else:
            self.unbound.append(name)

    def finish(self) -> None:
        """The globs come last: whether what they list is fed to a program depends on all of the programs."""
        with_content = any(os.path.basename(name) not in _NAMES_ONLY for name in self.programs)
        for pattern in dict.fromkeys(self._globs):
            self._put(f"listing {pattern}", self._glob(pattern, with_content))
        if self._rest:
            self.fields["further files"] = hashlib.sha256(canonical(self._rest)).hexdigest()

    def _put(self, name: str, value: object) -> None:
        if len(self.fields) < MOST_APART or name in self.fields:
            self.fields[name] = value
        else:
            self._rest[name] = value

    def _placed(self, name: str) -> str:
        if name == "~" or name.startswith("~/"):
            name = self._home + name[1:]
        # Nothing is taken out of it: the kernel follows a link before it goes up from there.
        return os.path.join(self._cwd, name)

    def _program(self, name: str) -> object:
        place = self._placed(name) if "/" in name or name.startswith("~") else self._in_path(name)
        if not place:
            return ["absent"]
        real = os.path.realpath(place)
        try:
            info = os.stat(real)
        except OSError:
            return ["absent", place]
        identity = [place, real, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns]
        if os.path.dirname(place) in SYSTEM_FOLDERS and _is_system(real):
            return identity
        return [*identity, self._file(real)]

    def _in_path(self, name: str) -> str:
        for folder in self._path.split(":"):
            place = os.path.join(folder, name)
            if folder and os.path.isfile(place) and os.access(place, os.X_OK):
                return place
        return ""

    def _file(self, path: str) -> object:
        """A file as it is: where it really lies, and its content."""
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def _read(self, path: str) -> object:
        real = os.path.realpath(path)
        try:
            # Not blocking: opening a FIFO for reading would wait for its writer.
            fd = os.open(real, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except (FileNotFoundError, NotADirectoryError):
            return ["absent"]
        except OSError as error:
            return self._unread(path, real, error.strerror or "it cannot be read")
        try:
            info = os.fstat(fd)
            if stat.S_ISDIR(info.st_mode):
                self.unbound.append(f"what lies in {path}")
                return [real, "folder", info.st_dev, info.st_ino]
            if not stat.S_ISREG(info.st_mode):
                self.unbound.append(f"what {path} says when it is read: it is no regular file")
                return [real, "special", info.st_rdev]
            if info.st_size > HASHED_FILE_BYTES or info.st_size > self._left:
                self.unbound.append(f"each byte of {path}: it is large, and held by size and times")
                return [real, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns]
            return [real, *self._hashed(fd)]
        except OSError as error:
            return self._unread(path, real, error.strerror or "it cannot be read")
        finally:
            os.close(fd)

    def _hashed(self, fd: int) -> list[object]:
        digest, size = hashlib.sha256(), 0
        while block := os.read(fd, 1 << 20):
            digest.update(block)
            size += len(block)
            if size > HASHED_FILE_BYTES:
                break  # it grows while it is read; the end that was seen is bound, and will differ
        self._left -= size
        return [size, digest.hexdigest()]

    def _unread(self, path: str, real: str, why: str) -> object:
        self.unbound.append(f"what {path} holds: {why}")
        try:
            info = os.stat(real)
        except OSError:
            return [real, "unreadable"]
        return [real, info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns]

    def _glob(self, pattern: str, with_content: bool) -> object:
        found = listing(self._placed_pattern(pattern), MOST_LISTED)
        if not found.whole:
            self.unbound.append(f"{pattern}: what it lists")
            return ["not listed"]
        if not with_content:
            return [len(found.names), hashlib.sha256(canonical(list(found.names))).hexdigest()]
        contents = [[name, self._file(name) if not os.path.isdir(name) else "folder"] for name in found.names]
        return [len(found.names), hashlib.sha256(canonical(contents)).hexdigest()]

    def _placed_pattern(self, pattern: str) -> str:
        if pattern.startswith("~/"):
            pattern = escaped(self._home) + pattern[1:]
        return os.path.join(escaped(self._cwd), pattern)


def _is_system(real: str) -> bool:
    """Whether the program's real file is root's and nobody else can change it."""
    try:
        info = os.stat(real)
    except OSError:
        return False
    return info.st_uid == 0 and not info.st_mode & 0o022
