"""The configuration files as a policy: what a person allowed, and where it could not be read.

Places: `/etc/opsagent`, then the user's own folder; with OPSAGENT_HOME set its `config` folder and nothing else. Never
the current folder. In each place `config.toml` and `rules/*.toml`. A file counts when it is root's or this user's and
nobody else can write it. What is there and cannot be used may forbid anything, so only reads run until it can be.

`opsx check` is on the hot path: where there is no such folder this costs one stat each.
"""

import os
import stat
import sys

from guard.errors import GuardError, StateError, UsageError
from guard.ledger import location
from guard.types import Mode, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cli.mcp_config import McpSettings
    from guard.keeping import Keeping
    from guard.types import UserRule

SYSTEM_FOLDER = "/etc/opsagent"
MOST_BYTES = 256 * 1024
MOST_FILES = 64
MOST_ENTRIES = 1_000
TABLES = ("policy", "env", "brains", "hook", "mcp", "pending", "approve", "log", "sessions")
"""What a config.toml may hold; `[brains]` is read by what talks to one (cli.brains_config)."""
TRUSTED = "trusted-rules"
"""File of the state folder with the digests of rules files that a person trusts, one a line."""

_STRICTNESS = {Mode.READ_ONLY: 2, Mode.GUARDED: 1, Mode.LAB: 0}


_NOT_USED = "only reads run until it can be used"


class BadConfig(UsageError):
    """A configuration file is not in the form of docs/rules.md, or others could have written it."""

    code = "usage.config-file"

    def __init__(self, file: str, what: str, not_done: str = _NOT_USED) -> None:
        super().__init__(f"{file}: {what}", not_done=not_done, hint="docs/rules.md")


class Settings(Value):
    """What all configuration files say together."""

    __slots__ = (
        "mode", "peers", "contexts", "trusted_bin", "env", "rules", "problems", "files", "keeping", "mcp", "fault"
    )  # fmt: skip
    mode: str
    """The strictest that a file names; `guarded` when none does."""
    peers: "tuple[str, ...]"
    contexts: "tuple[str, ...]"
    trusted_bin: "tuple[str, ...]"
    env: "tuple[str, ...]"
    rules: "tuple[UserRule, ...]"
    problems: "tuple[str, ...]"
    """One sentence for each file or part that is not used."""
    files: "tuple[str, ...]"
    """The files that were used."""
    keeping: "Keeping | None"
    """What they say about approvals and records; None when no file was looked at."""
    mcp: "McpSettings | None"
    """What an MCP host may do beyond the default; None for nothing."""
    fault: str
    """Which standing file is there and cannot be used, and why; "" when none is. See `Policy.fault`."""

    def __init__(
        self,
        mode: str = Mode.GUARDED,
        peers: "tuple[str, ...]" = (),
        contexts: "tuple[str, ...]" = (),
        trusted_bin: "tuple[str, ...]" = (),
        env: "tuple[str, ...]" = (),
        rules: "tuple[UserRule, ...]" = (),
        problems: "tuple[str, ...]" = (),
        files: "tuple[str, ...]" = (),
        keeping: "Keeping | None" = None,
        mcp: "McpSettings | None" = None,
        fault: str = "",
    ) -> None:
        self.mode = mode
        self.fault = fault
        self.peers = peers
        self.contexts = contexts
        self.trusted_bin = trusted_bin
        self.env = env
        self.rules = rules
        self.problems = problems
        self.files = files
        self.keeping = keeping
        self.mcp = mcp


def folders() -> "list[str]":
    """The folders that configuration is read from, in order."""
    try:
        own = os.path.dirname(location.config_path())
    except StateError:
        return [SYSTEM_FOLDER]  # a user without a home has no configuration of his own
    if os.environ.get(location.HOME_VARIABLE):
        return [own]
    return [SYSTEM_FOLDER, own]


_named = ""
"""The file of `--config`, for this process."""


def name_file(path: str) -> None:
    """Makes one more file count in this process, after the others: what `--config FILE` names.

    Raises:
        UsageError: "" is no file. BadConfig: it is not there, or others could have written it.
    """
    global _named
    if not path:
        raise UsageError("--config needs its FILE", hint="opsagent config path names your own")
    named = os.path.abspath(path)
    try:
        read_safely(named)
    except OSError as error:
        raise BadConfig(named, error.strerror or str(error), "nothing was run") from None
    except BadConfig as error:
        error.not_done = "nothing was run"
        raise
    _named = named


def named_file() -> str:
    """The file of `--config`, absolute; "" without one."""
    return _named


def load(extra: str = "") -> Settings:
    """Everything that the configuration says. `extra`: one more file; by default the one of `name_file`.

    Raises:
        BadConfig: `extra` cannot be used. The standing files never raise; they are in `problems`.
    """
    extra = extra or _named
    there = [folder for folder in folders() if os.path.lexists(folder)]
    if not there and not extra:
        return Settings()
    found = _Found()
    for folder in there:
        if os.path.islink(folder) or not os.path.isdir(folder):
            what = "it is a link" if os.path.islink(folder) else "it is no folder"
            found.problem(folder, BadConfig(folder, what))
            continue
        path = os.path.join(folder, "config.toml")
        try:
            found.config(path)
        except FileNotFoundError:
            pass
        except (OSError, GuardError) as error:
            found.problem(path, error)
            found.keeping.unusable(path)
            found.mcp.is_whole = False
        found.rules_in(os.path.join(folder, "rules"))
    if extra:
        try:
            found.config(extra)
        except OSError as error:
            raise BadConfig(extra, error.strerror or str(error), "nothing was run") from None
        except BadConfig as error:
            error.not_done = "nothing was run"
            raise
    return found.settings()


def complain(settings: Settings) -> None:
    """Says on stderr, each time, what of the configuration is not used."""
    if settings.problems:
        from cli.report import safe

        for problem in settings.problems:
            sys.stderr.write(f"opsagent: {safe(problem)}\n")


def read_safely(path: str) -> bytes:
    """A file's bytes, if nobody but root and this user could have written it.

    Raises:
        BadConfig: a link, no regular file, foreign, open to others, or too long.
        OSError: it cannot be read.
    """
    name = os.path.basename(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if os.path.islink(path):
            raise BadConfig(path, "it is a link") from error
        raise
    with os.fdopen(fd, "rb") as stream:
        here = os.fstat(fd)
        if not stat.S_ISREG(here.st_mode):
            raise BadConfig(path, "it is no regular file")
        for what, which in ((here, name), (os.stat(os.path.dirname(os.path.abspath(path))), "its folder")):
            unsafe = _unsafe(what, which)
            if unsafe:
                raise BadConfig(path, unsafe)
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise BadConfig(path, f"it has more than {MOST_BYTES:,} bytes")
    return data


def _unsafe(here: os.stat_result, name: str) -> str:
    """Why others could have written this, or ""."""
    if here.st_uid not in (0, os.geteuid()):
        return f"{name} belongs to another user"
    if here.st_mode & 0o022:
        return f"{name} can be written by others"
    return ""


def trusted_digests() -> "frozenset[str]":
    """Digests of the rules files that a person trusts on this machine."""
    try:
        data = read_safely(os.path.join(location.state_path(), TRUSTED))
    except (OSError, GuardError):
        return frozenset()
    return frozenset(line.split(" ")[0] for line in data.decode("ascii", "replace").splitlines())


class _Found:
    """Collects what the files say."""

    def __init__(self) -> None:
        self.modes: list[str] = []
        self.lists: dict[str, dict[str, None]] = {"peers": {}, "contexts": {}, "trusted_bin": {}, "pass": {}}
        self.own: list[UserRule] = []
        self.problems: list[str] = []
        self.files: list[str] = []
        self.fault = ""
        self.digests: frozenset[str] | None = None
        from cli import keeping_config, mcp_config

        self.keeping = keeping_config.Found(read_safely)
        self.mcp = mcp_config.Found()

    def problem(self, path: str, error: "OSError | GuardError") -> None:
        what = error.message if isinstance(error, GuardError) else f"{path}: {error.strerror or error}"
        self.fault = self.fault or what
        self.problems.append(f"{what}; {_NOT_USED}")

    def config(self, path: str) -> None:
        data = read_safely(path)
        import tomllib

        try:
            table = tomllib.loads(data.decode())
        except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
            raise BadConfig(path, f"it is not TOML: {error}") from None
        policy = _table(table, "policy", ("mode", "peers", "contexts", "trusted_bin"), path)
        env = _table(table, "env", ("pass",), path)
        mode = policy.get("mode")
        if mode is not None and mode not in _STRICTNESS:
            raise BadConfig(path, f"[policy] mode must be one of {', '.join(_STRICTNESS)}")
        lists = {key: _texts(policy, key, path) for key in ("peers", "contexts", "trusted_bin")}
        lists["pass"] = _texts(env, "pass", path)
        for name in lists["pass"]:
            if not name.replace("*", "a").replace("_", "a").isalnum() or name == "*":
                raise BadConfig(path, f"[env] pass: {name!r} is no variable's name or shape such as 'PG*'")
        keep = self.keeping.checked(table, path, lambda what: BadConfig(path, what))
        mcp = self.mcp.checked(table.get("mcp", {}), lambda what: BadConfig(path, what))
        # Only now does any of it count: a file is used whole or not at all.
        keep()
        mcp()
        if mode is not None:
            self.modes.append(mode)
        for key, values in lists.items():
            self.lists[key].update(dict.fromkeys(values))
        # Said, but the rest of the file counts: a newer version's table must not cost a signer or a strict mode.
        self.problems += [
            f"{path}: [{repr(name)[1:-1][:60]}] is no part of it and says nothing; there are {', '.join(TABLES)}"
            for name in table
            if name not in TABLES
        ]
        self.files.append(path)

    def rules_in(self, folder: str) -> None:
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(".toml"))
        except OSError as error:
            if os.path.lexists(folder):
                self.problem(folder, error)
            return
        if len(names) > MOST_FILES:
            self.problem(folder, BadConfig(folder, f"it has more than {MOST_FILES} files"))
        for name in names[:MOST_FILES]:
            path = os.path.join(folder, name)
            try:
                self._rules(path)
            except (OSError, GuardError) as error:
                self.problem(path, error)

    def _rules(self, path: str) -> None:
        from guard import userrules

        found = userrules.read(read_safely(path), path)
        wrong = userrules.failures(found)
        if wrong:
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            raise userrules.BadRules(path, wrong[0] + more)
        if self.digests is None:
            self.digests = trusted_digests()
        trusted = found.digest in self.digests
        if found.lowers and not trusted:
            self.problems.append(
                f"{path}: its [[lower]] rules do not count before a person says: opsx rules trust {path}"
            )
        taken = {rule.id for rule in self.own}
        for rule in userrules.usable(found, trusted=trusted):
            if rule.id in taken:
                raise userrules.BadRules(path, f"another file has a rule {rule.id}")
        self.own.extend(userrules.usable(found, trusted=trusted))
        self.files.append(path)

    def settings(self) -> Settings:
        bins = []
        for folder in self.lists["trusted_bin"]:
            why = _untrusted(folder)
            if why:
                self.problems.append(f"trusted_bin {folder}: {why}; it does not count")
            else:
                bins.append(folder.rstrip("/"))
        return Settings(
            mode=max(self.modes, key=lambda mode: _STRICTNESS[mode]) if self.modes else Mode.GUARDED,
            peers=tuple(self.lists["peers"]),
            contexts=tuple(self.lists["contexts"]),
            trusted_bin=tuple(bins),
            env=tuple(self.lists["pass"]),
            rules=tuple(self.own),
            problems=(*self.problems, *self.keeping.problems),
            files=tuple(self.files),
            keeping=self.keeping.value,
            mcp=self.mcp.value,
            fault=self.fault,
        )


def _untrusted(folder: str) -> str:
    """Why programs of a folder cannot be trusted by their names, or ""."""
    if not folder.startswith("/") or os.path.normpath(folder) != folder.rstrip("/"):
        return "it is no plain absolute path"
    try:
        here = os.lstat(folder)
    except OSError as error:
        return error.strerror or "it cannot be looked at"
    if not stat.S_ISDIR(here.st_mode):
        return "it is no folder"
    return _unsafe(here, "it")


def _table(whole: "dict[str, Any]", name: str, keys: "tuple[str, ...]", path: str) -> "dict[str, Any]":
    table = whole.get(name, {})
    if not isinstance(table, dict):
        raise BadConfig(path, f"[{name}] must be a table")
    unknown = sorted(table.keys() - set(keys))
    if unknown:
        raise BadConfig(path, f"[{name}] has no setting {unknown[0]!r}; there are {', '.join(keys)}")
    return table


def _texts(table: "dict[str, Any]", key: str, path: str) -> "tuple[str, ...]":
    values = table.get(key, [])
    if (
        not isinstance(values, list)
        or len(values) > MOST_ENTRIES
        or not all(isinstance(value, str) and value and value.isprintable() and " " not in value for value in values)
    ):
        raise BadConfig(path, f"{key} must be a list of at most {MOST_ENTRIES:,} texts without blanks")
    return tuple(values)
