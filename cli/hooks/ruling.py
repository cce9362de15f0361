"""What a host is told about one tool call: the judge's decision, turned into something that the host can carry out.

A read runs through `opsx exec`, so that it is enforced and recorded and the host shell's aliases and functions do not
count. What needs a person goes to `ops_exec`, or to the host's own question; what cannot be undone is refused.
"""

import os

from cli.hooks import hosts, places
from cli.hooks.hosts import Answer, Host
from guard.errors import BadCommand, StateError, UsageError
from guard.lines import lines_of
from guard.quoting import joined, quoted
from guard.types import NO_ENFORCEMENT, Actor, Level, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from cli.hooks.frame import Frame
    from guard.types import Assessment, Enforcement, Policy

FILE_PROGRAMS = frozenset(
    ("mkdir", "touch", "rm", "rmdir", "mv", "cp", "ln", "sed", "tee", "install", "truncate", "cd", "test")
)
"""Programs whose small changes to files are told by the paths that they name."""
GIT_CHANGES = frozenset(("git.add", "git.commit", "git.stash", "git.branch.create", "git.restore.staged", "git.switch"))
"""Changes to the repository of the current folder."""
OWN_VERBS = frozenset(("check", "explain", "exec", "executions", "list", "show", "audit"))
"""Verbs of opsx that are an agent's too. They run as they are: inside a sandbox they could not see their own state."""
_GLOBS = frozenset("*?[{")
_NO_SNAPSHOT = "If you allow it here, no snapshot will exist and opsagent keeps no record of it."
_NOT_HELD = (
    "If you allow it here, nothing holds it to a read, no snapshot will exist and opsagent keeps no record of it."
)


class Place:
    """Where the hook runs: what it has to know beside the call itself."""

    __slots__ = ("opsx", "policy", "enforcement", "home", "environ", "process_cwd", "terminal")

    def __init__(
        self,
        *,
        opsx: str,
        policy: "Policy",
        enforcement: "Enforcement",
        home: str,
        environ: "Mapping[str, str]",
        process_cwd: str,
        terminal: bool = True,
    ) -> None:
        self.opsx = opsx
        """Absolute path of the launcher that the host is to run instead."""
        self.policy = policy
        self.enforcement = enforcement
        self.home = home
        self.environ = environ
        self.process_cwd = process_cwd
        """Where the host started the hook."""
        self.terminal = terminal
        """The host has a controlling terminal, so somebody may be there."""


def rule(frame: "Frame", host: Host, place: Place) -> Answer:
    """The answer to one call. Touches files only to follow links and to read settings.

    Raises:
        UsageError: the frame is not one of a call that is about to be made.
    """
    if frame.event != host.event:
        raise UsageError(
            f"the hook is installed at {frame.event or 'no event'}; it belongs to {host.event}",
            hint=f"opsx hook {host.name} --settings",
        )
    kind = host.kind_of(frame.tool, frame.input)
    if kind == hosts.FILES:
        return _files(frame, host, place)
    if kind in (hosts.SHELL, hosts.OTHER_SHELL):
        return _Shell(frame, host, place).answer(rewrites=kind == hosts.SHELL)
    return Answer("pass")


# -- shell commands -------------------------------------------------------------------------------------------


class _Shell:
    """One command of the host's shell tool."""

    __slots__ = ("frame", "host", "place", "command", "cwd")

    def __init__(self, frame: "Frame", host: Host, place: Place) -> None:
        command = frame.input.get("command")
        if not isinstance(command, str):
            raise UsageError("the shell tool's command is not a text")
        self.frame = frame
        self.host = host
        self.place = place
        self.command = command
        folder = frame.input.get(host.folder_key) if host.folder_key else None
        self.cwd = os.path.normpath(os.path.join(frame.cwd, folder)) if isinstance(folder, str) else frame.cwd

    def answer(self, *, rewrites: bool) -> Answer:
        words = _lone_words(self.command)
        own = words is not None and words[0] in ("opsx", self.place.opsx) and words[1:2] and words[1] in OWN_VERBS
        try:
            text = joined(["opsx", *words[1:]]) if own and words else self.command
            found = self._judged(text, self.place.enforcement)
        except BadCommand as error:
            return Answer("deny", _said(f"opsagent: {error.message}. Nothing was run."))
        verdict = found.decision.verdict
        if verdict == Verdict.REFUSE:
            return Answer("deny", _refused(found))
        if self._changes_hook_settings(found):
            return Answer("deny", _WATCHED)
        if own and words:
            return Answer("allow", command=joined([self.place.opsx, *words[1:]])) if rewrites else Answer("pass")
        if verdict == Verdict.RUN:
            return self._run(found, words, rewrites)
        if found.level == Level.R1 and rewrites:
            deferred = self._project_write(found)
            if deferred is not None:
                return deferred
        return self._ask_a_person(found)

    def _judged(self, text: str, enforcement: "Enforcement") -> "Assessment":
        from cli import surroundings

        return surroundings.judged(
            text, cwd=self.cwd, actor=Actor.HOOK, enforcement=enforcement, policy=self.place.policy
        )

    def _run(self, found: "Assessment", words: "list[str] | None", rewrites: bool) -> Answer:
        if rewrites:
            forbidden = self._own_rule_of_the_host()
            if forbidden is not None:
                return forbidden
            moves = _lone_cd(words, self.command)
            if moves:
                # The host follows its shell's folder, so this runs there; `builtin` passes by aliases and functions.
                return Answer("allow", command=moves)
            return Answer("allow", command=f"{quoted(self.place.opsx)} exec --passthrough -- {_literal(self.command)}")
        # Nothing can be enforced or recorded here: only what may run where nothing is enforced, and no name that the
        # shell expands.
        if self._judged(self.command, NO_ENFORCEMENT).decision.code == "plain-reader" and not _GLOBS & {*self.command}:
            return Answer("allow")
        return self._ask_a_person(found)

    def _own_rule_of_the_host(self) -> "Answer | None":
        """What a person's rule in the host's settings says, which would not meet the rewritten command."""
        if self.host is not hosts.CLAUDE_CODE:
            return None
        from cli.hooks.host_rules import said_by_a_person

        project = _named_project(self.host, self.place)
        said = said_by_a_person(self.command, home=self.place.home, project=project, environ=self.place.environ)
        return Answer(said, "a rule in the host's own settings") if said else None

    def _ask_a_person(self, found: "Assessment") -> Answer:
        from cli.hooks.mcp_entry import ops_exec_name

        said = f"opsagent: {found.level.name}, {_why(found)}."
        tool = ops_exec_name(
            self.host, home=self.place.home, project=_named_project(self.host, self.place),
            environ=self.place.environ,
        )  # fmt: skip
        if tool:
            return Answer(
                "deny",
                f"{said} Not run. Call {tool} with this command: it asks a person, saves what would change and keeps "
                "a record.",
            )
        if self.host.asks and (self.place.terminal or self.host.asks_headless):
            return Answer("ask", f"{said} {_NO_SNAPSHOT if found.level else _NOT_HELD}")
        return Answer(
            "deny",
            f"{said} Not run: the host cannot ask here. Run `opsx exec -- …` with the same command: it waits "
            "for a person and saves what would change.",
        )

    def _project_write(self, found: "Assessment") -> "Answer | None":
        """What the settings say about a small change that stays in the project; None when it is not one."""
        if not _stays_in(found, self.command, self._project(), self.cwd):
            return None
        from cli.hooks.settings import DEFER, project_writes

        value, problem = project_writes()
        if value == DEFER:
            return Answer("pass")
        return None if not problem else _with_problem(self._ask_a_person(found), problem)

    def _project(self) -> str:
        named = _named_project(self.host, self.place)
        return places.project_folder(named, self.frame.cwd, self.place.home)

    def _changes_hook_settings(self, found: "Assessment") -> bool:
        if found.level == Level.R0:
            return False
        for effect in found.effects:
            if effect.kind in ("write", "delete") and effect.object.startswith(("/", "~")):
                for path in places.readings(effect.object, self.cwd, self.place.home):
                    if places.hook_settings(path, self.place.environ):
                        return True
        if found.opaque:
            low = self.command.lower()
            return any(name[1:] in low for name in places.SETTINGS)
        return False


def _lone_words(command: str) -> "list[str] | None":
    """The words of a text that is one simple command of literal words and nothing else; None for any other."""
    start = command.lstrip()
    if not start.startswith("cd") and "opsx" not in start:
        return None  # asked only for these: the text is not read twice for nothing
    from guard.judge.shell.parse import parse
    from guard.judge.shell.syntax import Simple

    try:
        script = parse(command.encode("utf-8"))
    except UnicodeEncodeError:
        return None
    only = script.items[0] if len(script.items) == 1 else None
    if not isinstance(only, Simple) or only.assigns or only.redirects or not only.words or "&" in command:
        return None
    values = [word.value for word in only.words if word.value is not None and not word.globs and not word.splits]
    return values if len(values) == len(only.words) else None


def _lone_cd(words: "list[str] | None", command: str) -> str:
    """`cd` as the host's shell may have it, "" when the text is more or other than a change of folder."""
    if words is None or words[0] != "cd" or len(words) > 3:
        return ""
    spelled = []
    for word in words[1:]:
        if word == "~" or word.startswith("~/"):
            if f"'{word}" in command or f'"{word}' in command or "\\~" in command:
                return ""  # a quoted tilde is a name; rare enough to let the sandboxed run say so
            spelled.append("~" if word == "~" else "~/" + quoted(word[2:]) if word != "~/" else word)
        elif word.startswith("~"):
            return ""
        else:
            spelled.append(quoted(word))
    return " ".join(["builtin cd", *spelled])


def _literal(text: str) -> str:
    """The text in single quotes, for any shell of the Bourne family.

    A quote in it becomes `'\\''`: zsh with RC_QUOTES reads a doubled quote as one, and no other spelling is without.
    """
    return "'" + text.replace("'", "'\\''") + "'"


def _stays_in(found: "Assessment", command: str, project: str, cwd: str) -> bool:
    """Whether everything above R0 in it is a file of the project, told by its path."""
    if not project or found.opaque or found.peers:
        return False
    if any(effect.kind not in ("read", "write", "delete") for effect in found.effects):
        return False
    written = [effect.object for effect in found.effects if effect.kind in ("write", "delete")]
    rules = {reason.rule for reason in found.reasons if reason.level == Level.R1}
    programs = found.programs  # type: ignore[attr-defined]
    if "git" in programs:
        if not rules <= GIT_CHANGES or found.ambient or not _only_git_here(command):
            return False
        written.append(cwd)
    elif not (
        all(map(_only_files, rules)) and all(program in FILE_PROGRAMS or _plain(program) for program in programs)
    ):
        return False
    return bool(written) and all(
        path.startswith("/") and _GLOBS.isdisjoint(path) and places.below(os.path.realpath(path), (project,))
        for path in written
    )


def _only_git_here(command: str) -> bool:
    """Whether every command in it is `git VERB …`: an option before the verb can name another folder."""
    from guard.judge.shell.parse import parse
    from guard.judge.shell.syntax import Group, Simple

    queue = list(parse(command.encode("utf-8")).items)
    while queue:
        item = queue.pop()
        if isinstance(item, Group) and item.kind == "list" and not item.redirects:
            queue += item.items
            continue
        if not isinstance(item, Simple) or item.assigns or item.redirects or len(item.words) < 2:
            return False
        verb = item.words[1].value
        if item.words[0].value != "git" or verb is None or not verb.isalpha():
            return False
    return True


def _only_files(rule: str) -> bool:
    return rule in ("path.write", "path.delete", "mkdir.run", "touch.run") or rule.startswith("files.")


def _plain(program: str) -> bool:
    from guard.judge.program import lookup

    known = lookup(program)
    return known is not None and known.plain


# -- file tools -----------------------------------------------------------------------------------------------

_WATCHED = (
    "opsagent: refused: this would change opsagent's own files or the settings in which the host keeps its hooks. "
    "A person does that, outside of this session."
)


def _files(frame: "Frame", host: Host, place: Place) -> Answer:
    """Watches what the host's file tools write; everything but the watched places is left to the host's rules."""
    from guard.judge import paths

    stopped = _stopped(frame, place)
    if stopped:
        return Answer("deny", _said(f"opsagent: refused: {stopped}. Nothing was written."))
    project = places.project_folder(_named_project(host, place), frame.cwd, place.home)
    critical, inside = "", True
    for path in _paths_in(frame.input):
        for real in places.readings(path, frame.cwd, place.home):
            if (
                paths.own(real, place.policy.own_paths)
                or places.below(real, place.policy.own_paths)
                or places.hook_settings(real, place.environ)
            ):
                return Answer("deny", _WATCHED)
            if not (project and places.below(real, (project,))):
                inside = False
                critical = critical or (real if paths.critical(real) else "")
    if critical:
        said = _said(f"opsagent: R2, changes a critical file ({critical}).")
        return _question(said, host, place)
    if inside and project:
        from cli.hooks.settings import DEFER, project_writes

        value, problem = project_writes()
        if value != DEFER:
            answer = _question("opsagent: R1, changes a file of the project.", host, place)
            return _with_problem(answer, problem) if problem else answer
    return Answer("pass")


def _stopped(frame: "Frame", place: Place) -> str:
    """Why no change at all may begin here (a stop, a mode, a fault of the configuration), "" when one may."""
    from cli import surroundings

    # As a person's, so that nothing but such a reason refuses so small a change.
    found = surroundings.judged(
        "touch f", cwd=frame.cwd, actor=Actor.PERSON, enforcement=NO_ENFORCEMENT, policy=place.policy.replace(rules=())
    )
    return found.decision.text if found.decision.verdict == Verdict.REFUSE else ""


def _question(said: str, host: Host, place: Place) -> Answer:
    if host.asks and (place.terminal or host.asks_headless):
        return Answer("ask", f"{said} {_NO_SNAPSHOT}")
    return Answer("deny", f"{said} Not done: the host cannot ask here.")


_MOST_VALUES = 10_000
_PATCH_MARKS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def _paths_in(given: "object") -> "list[str]":
    """Every text among a tool's arguments that names a file: by its key, or in a patch by its marks."""
    found: list[str] = []
    queue: list[tuple[str, object]] = [("", given)]
    for _ in range(_MOST_VALUES):
        if not queue:
            return found
        key, value = queue.pop()
        if isinstance(value, dict):
            queue += value.items()
        elif isinstance(value, list):
            queue += [(key, item) for item in value]
        elif isinstance(value, str):
            low = key.lower()
            if "path" in low or "file" in low or low in ("source", "destination", "target", "from", "to"):
                if "\0" in value:
                    raise UsageError("a path holds a NUL")
                found.append(value)
            if "*** " in value:
                for line in lines_of(value):
                    line = line.strip()
                    found += [line[len(mark) :] for mark in _PATCH_MARKS if line.startswith(mark)]
    raise UsageError("the tool's input holds more values than are looked at")


# -- words ----------------------------------------------------------------------------------------------------


def _named_project(host: Host, place: Place) -> str:
    """The folder that the host's person opened; where the host was started when it does not say."""
    return place.environ.get(host.project_variable, "") or place.process_cwd


def _with_problem(answer: Answer, problem: str) -> Answer:
    return Answer(answer.decision, f"{answer.reason} (hook.project_writes counts as ask: {_said(problem)})")


def _refused(found: "Assessment") -> str:
    said = f"opsagent: refused: {found.level.name}, {_why(found)}. Nothing was run."
    return f"{said} Only a person can force it: opsx approve --force." if found.decision.forceable else said


def _why(found: "Assessment") -> str:
    """The decision and its first reasons, redacted and with everything invisible made visible."""
    worst = [reason.text for reason in found.reasons if reason.level == found.level > Level.R0]
    reasons = "; ".join(_clipped(text) for text in dict.fromkeys(worst[:3]))
    return _said(f"{found.decision.text}: {reasons}" if reasons else found.decision.text)


def _clipped(text: str) -> str:
    return text if len(text) <= 200 else text[:199] + "…"


def _said(text: str) -> str:
    from cli.report import safe

    return safe(text).replace("\n", " ")


def surroundings_of(environ: "Mapping[str, str]") -> Place:
    """The place of this process. Reads what the kernel enforces from the state folder's note, or measures it once."""
    from cli import surroundings
    from guard.ledger import location

    home = environ.get("HOME", "")
    if not home.startswith("/"):
        try:
            home = location.home_of_user()
        except StateError:
            home = "/"
    return Place(
        opsx=surroundings_opsx(),
        policy=surroundings.policy(),
        enforcement=surroundings.enforcement(),
        home=home,
        environ=environ,
        process_cwd=os.getcwd(),
        terminal=_has_terminal(),
    )


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def surroundings_opsx() -> str:
    """Absolute path of the `opsx` launcher of this very installation.

    Raises:
        UsageError: there is none, so no command could be sent through it.
    """
    import sys

    from cli import surroundings

    beside_code = os.path.join(surroundings.home_of_this_code(), "opsx")
    for path in (beside_code, os.path.join(os.path.dirname(sys.executable), "opsx")):
        if os.access(path, os.X_OK):
            return path
    raise UsageError("the opsx launcher of this installation cannot be found", hint="install it again")
