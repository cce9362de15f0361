"""The walk over the tree: every simple command meets its family's rule, and what they find is gathered here.

`Judge` holds what is found (level, findings, effects, flags); `Call` is one command as a family sees it. A family never
lowers anything: all it can do is note, and the level of the whole is the highest note.
"""

from guard.judge import paths
from guard.judge.shell.parse import parse
from guard.judge.shell.syntax import (
    Assign,
    Declare,
    Expansion,
    Function,
    Group,
    Nested,
    Node,
    Opaque,
    Pipeline,
    Redirect,
    Script,
    Simple,
    Test,
    Word,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from guard.types import Span, UserRule

R0, R1, R2, R3 = 0, 1, 2, 3
LEVELS = {"R0": R0, "R1": R1, "R2": R2, "R3": R3}

MAX_NESTING = 24
"""Commands inside commands (bash -c in ssh in sudo …) beyond this are opaque."""
MAX_ALTERNATIVES = 16
"""A command is judged for each combination of literal values that its variables can have, up to this many."""
MAX_STEPS = 60_000
"""Commands judged for one text; a longer one is opaque from there on (time stays bounded)."""

HARMLESS_VARIABLES = frozenset(
    ("LC_ALL", "LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES", "TERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE",
        "GREP_COLOR", "GREP_COLORS", "LS_COLORS", "BLOCKSIZE", "BLOCK_SIZE", "POSIXLY_CORRECT", "SYSTEMD_COLORS",
        "SYSTEMD_LESS", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS", "DEBIAN_FRONTEND", "TIMEFORMAT", "OPTIND",
        "OPTARG", "REPLY", "SECONDS", "RANDOM", "AWS_DEFAULT_OUTPUT", "AWS_REGION", "AWS_DEFAULT_REGION", "CI",
        "COLORTERM", "FORCE_COLOR", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8",
        "GODEBUG", "HISTTIMEFORMAT", "HISTCONTROL", "PS1", "PS2", "PS3", "LIBVIRT_DEFAULT_URI",
        "COMPOSE_PROJECT_NAME",)
)  # fmt: skip
AMBIENT_VARIABLES = frozenset(
    ("KUBECONFIG", "AWS_PROFILE", "AWS_CONFIG_FILE", "DOCKER_CONTEXT", "DOCKER_CONFIG", "PGHOST", "PGPORT", "PGUSER",
        "PGDATABASE", "PGPASSFILE", "CLOUDSDK_CONFIG", "CLOUDSDK_CORE_PROJECT", "HELM_NAMESPACE", "TF_WORKSPACE",
        "ANSIBLE_CONFIG", "GIT_DIR", "GIT_WORK_TREE",)
)  # fmt: skip
"""Point a client at another target by literal path or name: a helper (law 8), named in `ambient`."""
DANGEROUS_VARIABLES = frozenset(
    ("PATH", "BASH_ENV", "ENV", "IFS", "PAGER", "MANPAGER", "EDITOR", "VISUAL", "LESSOPEN", "LESSCLOSE", "BROWSER",
        "SHELL", "PROMPT_COMMAND", "CDPATH", "SHELLOPTS", "BASHOPTS", "TAR_OPTIONS", "PERL5OPT", "PERL5LIB",
        "RUBYOPT", "RUBYLIB", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "NODE_OPTIONS",
        "NODE_PATH", "HOME", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "CLASSPATH", "GCONV_PATH", "HOSTALIASES",
        "LOCALDOMAIN", "RES_OPTIONS", "TMPDIR", "HISTFILE", "MAILCHECK", "MAILPATH", "GLOBIGNORE", "FCEDIT",
        "INPUTRC", "TERMINFO", "TERMCAP", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy",
        "all_proxy", "DOCKER_HOST", "SSH_ASKPASS", "RSYNC_RSH", "SUDO_ASKPASS", "XDG_CONFIG_HOME",
        "BASH_LOADABLES_PATH", "BASH_CMDS", "BASH_ALIASES", "FUNCNEST", "POSIX_PEDANTIC", "LESS", "MORE", "MANOPT",
        "GZIP", "ZIPOPT", "UNZIP", "GREP_OPTIONS", "RIPGREP_CONFIG_PATH", "MYSQL_HOME", "PSQLRC", "PSQL_PAGER",
        "SYSTEMD_PAGER", "SYSTEMD_EDITOR", "KUBE_EDITOR", "AWS_PAGER", "CC", "CXX", "MAKEFLAGS", "OPENSSL_CONF",
        "BASH_COMPAT", "PS4",
        "CURL_HOME", "WGETRC", "RUSTC_WRAPPER", "GOFLAGS", "MANPATH", "NLSPATH", "ZDOTDIR", "XAUTHORITY", "DISPLAY",)
)  # fmt: skip
DANGEROUS_PREFIXES = (
    "LD_", "DYLD_", "GIT_", "BASH_FUNC_", "MALLOC_", "OPSAGENT_", "NPM_CONFIG_", "npm_config_", "PIP_", "TF_",
    "ANSIBLE_",
    "AWS_", "AZURE_", "CLOUDSDK_", "GOOGLE_", "CARGO_", "SSH_", "KUBE", "HELM_", "PG", "MYSQL_",
)  # fmt: skip
PAGER_VARIABLES = frozenset(("PAGER", "MANPAGER", "GIT_PAGER", "SYSTEMD_PAGER", "AWS_PAGER", "PSQL_PAGER", "LESS"))
KNOWN_ENVIRONMENT = {"HOME": "~"}
"""Variables whose value at run time is known in kind: the caller's home."""

STRANGE_MODES = frozenset(
    ("keyword", "histexpand", "history", "extdebug", "compat31", "compat32", "compat40", "compat41", "compat42",
     "compat43", "compat44")
)  # fmt: skip
"""Options of bash under which a text means something else than what is read here (bash(1), set and shopt)."""
_EVALUATING = frozenset(
    ("declare", "typeset", "readonly", "export", "local", "let", "test", "[", "read", "mapfile", "readarray", "printf",
     "unset", "wait", "getopts", "builtin", "command")
)  # fmt: skip
"""Builtins whose operands bash evaluates or assigns; the reader has to see them to tell what they do."""

WRITES = frozenset((">", ">>", ">|", "&>", "&>>", "<>"))


def dangerous(name: str) -> bool:
    """Whether a variable of this name changes what programs do."""
    return name in DANGEROUS_VARIABLES or name.startswith(DANGEROUS_PREFIXES)


class Program:
    """What is known about one program. Families make these; `judge(call)` does the work."""

    __slots__ = ("plain",)
    plain: bool
    """A system binary without helpers, own configuration or network: may run where nothing is enforced."""

    def judge(self, call: "Call") -> None:
        raise NotImplementedError


class Ran:
    """One command that the walk met, for `guard.judge.inputs`: its words and where its traces lie."""

    __slots__ = ("name", "words", "first_effect", "end_effect", "level", "pipe", "away", "span", "depth")

    def __init__(self, name: str, words: "Sequence[Word]", span: "Span", judge: "Judge") -> None:
        self.name = name
        """The program's name without its folder; "" when the text does not tell it."""
        self.words = words
        self.first_effect = self.end_effect = len(judge.effects)
        """Its effects are `Judge.effects[first_effect:end_effect]`."""
        self.level = R0
        """The highest note of this command by itself."""
        self.pipe = judge.pipe
        """Number of the pipeline that it stands in, 0 for none."""
        self.away = judge.away
        """It runs on another machine or in a container."""
        self.span = judge.outer or span
        self.depth = judge.depth
        """How many commands and texts carry it."""


class Judge:
    """One text being judged. Collects; decides nothing but the level."""

    __slots__ = (
        "level", "findings", "effects", "flags", "plan", "needs", "peers", "env", "ambient", "cwds", "script",
        "depth",
        "steps", "outer", "plain", "own_paths", "own_private", "own_touched", "programs", "aliases",
        "trusted_bin", "running",
        "remote_plain", "inside", "calls", "ran", "fed", "lists", "pipe", "pipes", "away", "rules", "lowered", "bound",
    )  # fmt: skip

    def __init__(
        self,
        *,
        cwd: "str | None" = None,
        own_paths: "tuple[str, ...]" = (),
        own_private: "tuple[str, ...]" = (),
        trusted_bin: "tuple[str, ...]" = (),
        rules: "tuple[UserRule, ...]" = (),
    ) -> None:
        self.level = R0
        self.findings: list[tuple[int, str, str, Span, str]] = []
        self.effects: list[tuple[str, str]] = []
        self.flags: set[str] = set()
        """`helper` · `options-from-expansion` · `recursive-read` · `egress` · `evaluates` · `terminal` …"""
        self.plan: list[tuple[str, str]] = []
        self.needs: set[str] = set()
        self.peers: list[tuple[str, int, str]] = []
        self.env: set[str] = set()
        self.ambient: dict[str, str] = {}
        self.cwds: list[str] = [cwd] if cwd else []
        self.script: Script | None = None
        self.depth = 0
        self.steps = 0
        self.outer: Span | None = None
        """Inside a nested text: the span of the word that holds it, since inner offsets mean nothing outside."""
        self.plain = True
        self.own_paths = own_paths
        self.own_private = own_private
        self.own_touched = ""
        self.programs: list[str] = []
        self.aliases: set[str] = set()
        self.trusted_bin = trusted_bin
        self.running: list[str] = []
        """Names of the functions whose bodies are being read."""
        self.calls: dict[str, set[str]] = {}
        """Which function calls which."""
        self.inside: list[str] = []
        """Programs that run on another machine or in a container."""
        self.remote_plain = True
        """Everything that runs on another machine or in a container is a plain reader."""
        self.ran: list[Ran] = []
        """Every command that was met, in order."""
        self.fed: list[str] = []
        """Files that a redirection feeds to a command."""
        self.lists: list[Word] = []
        """Words outside of commands that bash makes lists of: heads of loops, arrays, redirections."""
        self.pipe = self.pipes = 0
        self.away = False
        self.rules = rules
        self.bound: set[str] = set()
        """Variables that have a value for sure at this point of the text; any other may still be unset."""
        self.lowered = False
        """A user's rule took a finding down, so the level has to be worked out again at the end."""

    # -- notes ------------------------------------------------------------------------------------------------

    def note(self, level: int, rule: str, text: str, span: "Span", source: str = "") -> None:
        if level > self.level:
            self.level = level
        self.findings.append((level, rule, text, self.outer or span, source))

    def opaque(self, rule: str, text: str, span: "Span") -> None:
        self.flags.add("opaque")
        self.note(R2, rule, text, span, "law 2")

    # -- texts and nodes --------------------------------------------------------------------------------------

    def text(self, source: str, span: "Span | None" = None, *, stdin: "str | None" = None) -> None:
        """Judges a text that bash (or sh) would run."""
        if self.depth >= MAX_NESTING:
            self.opaque("shell.deep", "commands inside commands, too deep to be read", span or (0, 0))
            return
        outer, script, aliases = self.outer, self.script, self.aliases
        if span is not None and outer is None:
            self.outer = span
        self.depth += 1
        bound, self.bound = self.bound, set()
        try:
            raw = source.encode("utf-8", "replace")
            self.run_script(parse(raw))
            if b"\\\n" in raw:
                # Bash joins continued lines before it reads tokens, the grammar does not: both readings count.
                self.run_script(parse(raw.replace(b"\\\n", b"")))
        finally:
            self.depth -= 1
            self.outer, self.script, self.aliases, self.bound = outer, script, aliases, bound

    def run_script(self, script: Script) -> None:
        self.script = script
        if script.evaluates:
            self.flags.add("evaluates")
            self.plain = False
        for item in script.items:
            self.node(item, None)
        if self.calls:
            self._recursion()

    def _recursion(self) -> None:
        """Functions that end up calling themselves: at best without an end, at worst a fork bomb."""
        for start in self.calls:
            seen, queue = set[str](), list(self.calls[start])
            while queue:
                name = queue.pop()
                if name == start:
                    self.note(R2, "shell.recursion", f"{start} calls itself", (0, 0), "law 2")
                    return
                if name not in seen:
                    seen.add(name)
                    queue.extend(self.calls.get(name, ()))

    def node(self, node: Node, stdin: "str | None") -> None:
        """Judges one node. `stdin`: None = nothing to read, "" = unknown bytes, else the literal text."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            if self.steps == MAX_STEPS + 1:
                self.opaque("shell.long", "more commands than are read", node.span)
            return
        kind = type(node)
        if kind is Simple:
            self.simple(node, stdin)  # type: ignore[arg-type]
            return
        for redirect in node.redirects:
            stdin = self.redirect(redirect, stdin)
        if isinstance(node, Pipeline):
            feed = stdin
            outer = self.pipe
            self.pipes += 1
            self.pipe = self.pipes
            for stage in node.stages:
                self.apart(stage, feed)
                feed = _literal_output(stage, self, feed)
            self.pipe = outer
        elif isinstance(node, Group):
            for word in node.words:
                self.expansions(word)
            if node.words and node.kind in ("for", "select"):
                self.lists.extend(word for word in node.words if word.globs or word.value is None)
                self.named(node.words)
            self.group(node, stdin)
        elif isinstance(node, Test):
            self.test(node)
        elif isinstance(node, Declare):
            self.declare(node)
        elif isinstance(node, Function):
            self.function(node)
        elif isinstance(node, Nested):
            span, self.outer = self.outer, self.outer or node.span
            for item in node.items:
                self.apart(item, stdin)
            self.outer = span
        elif isinstance(node, Opaque):
            self.opaque(node.rule, node.text, node.span)
            for inner in node.inside:
                self.node(inner, "")

    def apart(self, node: Node, stdin: "str | None") -> None:
        """Judges a node that runs in a shell of its own, or perhaps not at all: what it sets does not outlast it."""
        before = self.bound
        self.bound = set(before)
        self.node(node, stdin)
        self.bound = before

    def group(self, node: Group, stdin: "str | None") -> None:
        """Judges the parts in order, keeping track of which variables are set for sure."""
        kind = node.kind
        if kind in ("braces", "not"):
            for item in node.items:
                self.node(item, stdin)
            return
        if kind in ("if", "case", "or"):
            # Which of them run is not told; only the first always does.
            for index, item in enumerate(node.items):
                if index or kind == "case":
                    self.apart(item, stdin)
                else:
                    self.node(item, stdin)
            return
        items = node.items
        if kind == "list" and items:
            self.node(items[0], stdin)
            items = items[1:]
        before = self.bound
        self.bound = set(before)
        if node.name:
            self.bound.add(node.name)
            if dangerous(node.name):
                self.note(R2, "shell.variable", f"sets {node.name}, which changes what programs do", node.span, "law 2")
        for item in items:
            self.node(item, stdin)
        self.bound = before

    def expansions(self, word: Word) -> None:
        """Judges what bash runs while it expands a word."""
        for part in word.parts:
            if isinstance(part, Expansion) and part.runs:
                for run in part.runs:
                    self.apart(run, None)

    def named(self, words: "tuple[Word, ...]") -> None:
        """Files that a pattern gives names to: later use does not show them, so they count as read."""
        for word in words:
            if word.globs and any(paths.secret(place) for place in self.places(word.value or word.shape)):
                self.note(R2, "path.secret", f"names files that hold credentials ({word.shape})", word.span, "law 4")

    def test(self, node: Test) -> None:
        self.programs.append("test")
        for word in node.words:
            self.expansions(word)
        if node.kind == "[":
            self.lists.extend(word for word in node.words if word.globs)
        if node.kind == "[" and any(operator in (">", "<", ">>") for operator in node.operators):
            self.note(R1, "shell.test-redirect", "inside [ ] an unescaped > writes a file", node.span, "bash(1)")

    def declare(self, node: Declare) -> None:
        for assign in node.assigns:
            self.assign(assign, exported=node.keyword in ("export", "declare", "typeset", "readonly"))
        self.bound.update(assign.name for assign in node.assigns)
        if node.keyword not in ("export", "readonly"):
            self.bound.difference_update(word.value for word in node.words if word.value is not None)
        for word in node.words:
            self.expansions(word)
            value = word.value
            if value is None:
                self.opaque("shell.dynamic-name", "a variable name that the text does not tell", word.span)
            elif value.startswith("-") and node.keyword == "export" and "f" in value:
                self.note(R2, "shell.export-function", "exports a function to every bash below", word.span, "law 2")
            elif node.keyword in ("export", "declare", "typeset", "readonly") and (
                value in DANGEROUS_VARIABLES or value.startswith(DANGEROUS_PREFIXES)
            ):
                self.note(R2, "shell.variable", f"exports {value}, which changes what programs do", word.span, "law 2")

    def function(self, node: Function) -> None:
        from guard.judge.families import PROGRAMS

        name = node.name
        if name in PROGRAMS or name in BUILTINS:
            self.opaque("shell.shadow", f"defines {name} anew, so the word no longer means the program", node.span)
        self.running.append(name)
        before = self.bound
        self.bound = set(before)
        try:
            for item in node.body:
                self.node(item, "")
        finally:
            self.bound = before
            self.running.pop()

    def assign(self, assign: Assign, *, exported: bool = False) -> None:
        """Judges an assignment: what it runs, and whether the name is one that changes what programs do."""
        for word in (assign.value, assign.subscript, *assign.elements):
            if word is not None:
                self.expansions(word)
        if assign.elements:
            self.named(assign.elements)
            self.lists.extend(word for word in assign.elements if word.globs)
        name = assign.name
        if (name in HARMLESS_VARIABLES or name.islower()) and name not in DANGEROUS_VARIABLES:
            return
        value = assign.value.value if assign.value is not None else None
        if name.startswith("OPSAGENT_"):
            self.own_touched = name
            self.note(R2, "own.variable", f"sets {name}, which opsagent itself obeys", assign.span, "law 6")
        elif name == "PS4":
            if value is None or "$" in value or "`" in value:
                self.note(
                    R2, "shell.variable", "sets PS4, which bash expands for each traced command", assign.span, "law 2"
                )
        elif name in PAGER_VARIABLES and value in ("cat", "", "/bin/cat", "/usr/bin/cat"):
            return
        elif name in AMBIENT_VARIABLES and value is not None and not value.startswith(paths.SHARED_FOLDERS):
            self.flags.add("helper")
            self.plain = False
            self.ambient[name] = value
        elif name in DANGEROUS_VARIABLES or name.startswith(DANGEROUS_PREFIXES):
            self.note(R2, "shell.variable", f"sets {name}, which changes what programs do", assign.span, "law 2")

    # -- redirections -----------------------------------------------------------------------------------------

    def redirect(self, redirect: Redirect, stdin: "str | None") -> "str | None":
        """Judges a redirection; returns what stdin is afterwards."""
        op = redirect.op
        if redirect.body is not None or op in ("<<", "<<-", "<<<"):
            body = redirect.body
            if body is None:
                return "" if op != "<<<" else stdin
            self.expansions(body)
            known = self.literal(body)
            if redirect.fd not in ("", "0"):
                return stdin
            return known if known is not None else ""
        target = redirect.target
        if target is None:
            return stdin
        self.expansions(target)
        value = self.literal(target)
        if value is None:
            self.lists.append(target)
        if op in (">&", "<&") and (value is None or value.rstrip("-").isdigit() or value == "-"):
            if value is None:
                self.opaque("shell.dynamic-fd", "a descriptor that the text does not tell", redirect.span)
            return "" if op == "<&" else stdin
        if any(isinstance(part, Expansion) and part.kind == "process" for part in target.parts):
            return "" if op == "<" else stdin
        if op in WRITES or op == ">&":
            self.write_path(target, redirect.span, "redirection", appends=op in (">>", "&>>"))
            return stdin
        self.read_path(target, redirect.span)
        if value is not None and value != "/dev/null" and not self.away:
            self.fed.extend(self.places(value))
        if redirect.fd not in ("", "0"):
            return stdin
        return None if value == "/dev/null" else ""

    def literal(self, word: Word) -> "str | None":
        """The word's one possible value, with literal variables put in; None when it is not known."""
        if word.value is not None:
            return None if word.globs else word.value
        values = self.values(word)
        return values[0] if values is not None and len(values) == 1 else None

    def values(self, word: Word) -> "list[str] | None":
        """All values that the text allows for a word (at most 16), or None."""
        if word.value is not None:
            return [word.value]
        results = [""]
        for part in word.parts:
            if isinstance(part, str):
                results = [value + part for value in results]
                continue
            options = self.variable(part.name) if part.kind in ("var", "param") and part.name else None
            if options is None:
                return None
            results = [value + option for value in results for option in options]
            if len(results) > MAX_ALTERNATIVES:
                return None
        return results

    def variable(self, name: str) -> "list[str] | None":
        """Every literal value that the text gives to a variable, or None when there can be others."""
        script = self.script
        if script is None or script.wild:
            return None
        given = script.values.get(name)
        if given is None:
            known = KNOWN_ENVIRONMENT.get(name)
            if known is not None:
                return [known]
            return list(self.cwds) if name == "PWD" and len(self.cwds) == 1 else None
        values: list[str] = [] if name in self.bound else [""]
        for word in given:
            if word is None:
                return None
            value = word.value
            if value is None:
                if len(given) > 1 or any(isinstance(part, Expansion) and part.name == name for part in word.parts):
                    return None
                inner = self._inner(word, name)
                if inner is None:
                    return None
                values.extend(inner)
            else:
                values.append(value)
        return values if 0 < len(values) <= MAX_ALTERNATIVES else None

    def _inner(self, word: Word, name: str, hops: int = 0) -> "list[str] | None":
        if self.depth >= MAX_NESTING:
            return None
        self.depth += 1
        try:
            return self.values(word)
        finally:
            self.depth -= 1

    # -- paths ------------------------------------------------------------------------------------------------

    def places(self, path: str) -> "list[str]":
        """The path as written, made absolute against every folder that the text can be in."""
        return paths.places(path, self.cwds)

    def read_path(self, word: Word, span: "Span") -> None:
        """A file whose content is read."""
        values = self.values(word)
        for value in values if values is not None else [word.shape]:
            for place in self.places(value):
                kind = paths.device(place) if place.startswith(("/dev", "/proc", "/sys")) else ""
                if self.own_touched == "" and paths.own(place, self.own_private):
                    self.note(R2, "own.read", f"reads opsagent's own files ({place})", span, "law 6")
                if kind == "network":
                    self.note(R2, "shell.network", f"opens a network connection ({place})", span, "bash(1)")
                    self.effects.append(("network", place))
                elif kind == "device":
                    self.note(R2, "path.device", f"reads a device ({place})", span, "law 4")
                elif paths.secret(place):
                    self.note(R2, "path.secret", f"reads a file that holds credentials ({place})", span, "law 4")
                    self.effects.append(("secret-read", place))
                else:
                    self.effects.append(("read", place))
        if word.value is None or word.globs:
            self.plain = False

    def write_path(
        self, word: Word, span: "Span", by: str, *, appends: bool = False, level: int = R1, deletes: bool = False
    ) -> None:
        """A file that is created, changed or (with `deletes`) removed."""
        values = self.values(word)
        if values is None:
            shape = word.shape
            if not shape.startswith(("/", "~")) or shape.startswith("*"):
                self.note(
                    max(level, R2), "path.dynamic", f"writes a file that the text does not name ({by})", span, "law 2"
                )
                self.effects.append(("delete" if deletes else "write", shape))
                return
            values = [shape]
            level = max(level, R2)
        for value in values:
            for place in self.places(value):
                self._write_place(place, span, by, level, deletes)

    def _write_place(self, place: str, span: "Span", by: str, level: int, deletes: bool) -> None:
        kind = paths.device(place) if place.startswith(("/dev", "/proc", "/sys")) else ""
        if kind == "harmless" and not deletes:
            if place in ("/dev/null", "/dev/full", "/dev/zero"):
                return
            self.note(R2, "path.device", f"writes to {place}", span, "random(4)")
            return
        if kind == "stream" and not deletes:
            return
        if kind == "network":
            self.note(R2, "shell.network", f"sends data to {place}", span, "bash(1)")
            self.effects.append(("network", place))
            return
        if paths.own(place, self.own_paths):
            self.own_touched = place
            self.note(R2, "own.write", f"changes opsagent's own files ({place})", span, "law 6")
        elif kind == "device" and place.startswith("/dev/"):
            terminal = place.startswith(("/dev/tty", "/dev/pts", "/dev/console", "/dev/log"))
            self.note(R2 if terminal else R3, "path.device-write", f"overwrites a device ({place})", span, "law 1")
        elif place.startswith(("/proc/", "/sys/")):
            self.note(R2, "path.kernel", f"changes the running kernel ({place})", span, "proc(5)")
        elif paths.critical(place):
            what = "removes" if deletes else "changes"
            self.note(max(level, R2), "path.critical", f"{what} a critical file ({place})", span, "docs/judging.md")
        else:
            what = "removes" if deletes else "writes"
            self.note(
                level, "path.delete" if deletes else "path.write", f"{what} {place} ({by})", span, "docs/judging.md"
            )
        self.effects.append(("delete" if deletes else "write", place))
        if not any(char in place for char in "*?["):
            self.plan.append(("file", place))

    # -- simple commands --------------------------------------------------------------------------------------

    def simple(self, node: Simple, stdin: "str | None") -> None:
        for assign in node.assigns:
            self.assign(assign)
        words: Sequence[Word] = node.words
        dynamic = False
        for word in words:
            if word.parts:
                dynamic = True
                for part in word.parts:
                    if isinstance(part, Expansion) and part.runs:
                        for run in part.runs:
                            self.apart(run, None)
        for redirect in node.redirects:
            stdin = self.redirect(redirect, stdin)
        if not words:
            self.bound.update(assign.name for assign in node.assigns)
            return
        if dynamic:
            first = words[0].value
            for version in self.versions(words):
                if first is None and version[0].value in _EVALUATING:
                    self.opaque("shell.dynamic-command", "a builtin by a name that is put in", words[0].span)
                self.argv(version, node.span, stdin, assigns=node.assigns, redirects=node.redirects)
        else:
            self.argv(words, node.span, stdin, assigns=node.assigns, redirects=node.redirects)

    def elsewhere(self, run: "Callable[[], None]") -> None:
        """Judges what runs on another machine or in a container, where nothing of ours can be enforced.

        What the client itself needs here (its socket, its own configuration) is answered by the peer that a person
        named; what counts is whether everything inside is a plain reader.
        """
        flags, plain, programs, away = self.flags, self.plain, self.programs, self.away
        self.flags, self.plain, self.programs, self.away = set(), True, [], True
        run()
        self.away = away
        self.inside.extend(self.programs)
        self.programs = programs
        if self.flags - {"recursive-read"} or not self.plain:
            self.remote_plain = False
        self.flags |= flags
        self.plain = self.plain and plain
        self.needs -= {"bus", "net"}
        self.needs.add("remote")

    def versions(self, words: "Sequence[Word]") -> "list[list[Word]]":
        """The command with literal variables put in: one version for each combination of values."""
        versions: list[list[Word]] = [[]]
        for word in words:
            values = self.values(word) if word.value is None else None
            if values is None:
                for version in versions:
                    version.append(word)
                continue
            grown: list[list[Word]] = []
            for value in values:
                if word.splits:
                    pieces = [
                        Word(word.span, piece, (), word.quoted, False, any(char in piece for char in "*?["))
                        for piece in value.split()
                    ]
                else:
                    pieces = [Word(word.span, value, (), True)]
                grown.extend([*version, *pieces] for version in versions)
            if len(grown) > MAX_ALTERNATIVES:
                for version in versions:
                    version.append(word)
            else:
                versions = grown
        return [version for version in versions if version]

    def argv(
        self,
        words: "Sequence[Word]",
        span: "Span",
        stdin: "str | None" = None,
        *,
        assigns: "tuple[Assign, ...]" = (),
        redirects: "tuple[Redirect, ...]" = (),
    ) -> None:
        """Judges one command given as words (the first is the program)."""
        self.steps += 1
        if self.depth >= MAX_NESTING or self.steps > MAX_STEPS:
            self.opaque("shell.deep", "commands inside commands, too deep to be read", span)
            return
        first = words[0]
        name = first.value
        if name is None or first.globs or not name:
            self.plain = False
            self.opaque("shell.dynamic-command", "which program runs is not told by the text", first.span)
            self.ran.append(Ran("", words, span, self))
            if len(words) > 1 and first.splits:
                # The expansion may be empty: then the next word is the program.
                self.depth += 1
                self.argv(words[1:], span, stdin)
                self.depth -= 1
            elif name is None and first.shape.rsplit("/", 1)[-1].isalpha():
                self._named(first.shape.rsplit("/", 1)[-1], words, span, stdin, assigns, redirects)
            return
        if name in _HEADS and len(words) > 1:
            # The shell's own word where the grammar does not expect it (`time ! x`): what follows is the command.
            self.depth += 1
            self.argv(words[1:], span, stdin)
            self.depth -= 1
        if "/" in name:
            folder, _, base = name.rpartition("/")
            if folder not in paths.SYSTEM_FOLDERS and folder not in self.trusted_bin:
                self.plain = False
                self.note(
                    R2, "program.path", f"runs {name}, which is not one of the system's programs", first.span, "law 2"
                )
            name = base
        script = self.script
        if script is not None and name in script.functions:
            self.plain = False
            if self.running:
                self.calls.setdefault(self.running[-1], set()).add(name)
            return
        self._named(name, words, span, stdin, assigns, redirects)

    def _named(
        self,
        name: str,
        words: "Sequence[Word]",
        span: "Span",
        stdin: "str | None",
        assigns: "tuple[Assign, ...]" = (),
        redirects: "tuple[Redirect, ...]" = (),
    ) -> None:
        self.programs.append(name)
        program = lookup(name)
        ran = Ran(name, words, span, self)
        self.ran.append(ran)
        call = Call(self, name, words[0], words[1:], span, stdin, assigns, redirects)
        before = len(self.findings)
        unread = "opaque" in self.flags
        if program is None:
            self.plain = False
            self.flags.add("opaque")
            shown = name if len(name) < 60 else name[:57] + "…"
            self.note(
                R2, "program.unknown", f"{shown} is not known, so nothing can be said about it", words[0].span, "law 2"
            )
        else:
            if not program.plain:
                self.plain = False
            self.depth += 1
            try:
                program.judge(call)
            except Exception as error:
                # A fault in what is known of one program must neither stop the judging of the rest nor pass as a read.
                self.opaque("judge.fault", f"{name} could not be judged ({type(error).__name__})", words[0].span)
            finally:
                self.depth -= 1
        if self.rules:
            from guard.judge.own_rules import apply

            apply(self, name, words, before, ran.first_effect, unread)
        ran.end_effect = len(self.effects)
        if len(self.findings) > before:
            ran.level = max(finding[0] for finding in self.findings[before:])
            if not self.own_touched:
                self._own_objects(words, before)

    def _own_objects(self, words: "Sequence[Word]", before: int) -> None:
        """Law 6 for whatever changes something and names opsagent's own files, in any spelling of an argument."""
        new = self.findings[before:]
        worst = max(finding[0] for finding in new)
        if worst < R1:
            return
        unread = any(finding[1] in _UNREAD for finding in new)
        family = _family(words[0])
        if family in ("vcs", "forges") and not _TREE_VERBS.isdisjoint([word.value for word in words[1:]]):
            # Whatever its operands are, it changes the tree that it stands in.
            own = next((cwd for cwd in self.cwds if paths.own(cwd, self.own_paths)), "")
            if own:
                self.own_touched = own
                self.note(R2, "own.write", f"changes opsagent's own files ({own})", words[0].span, "law 6")
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
                if not unread or not any(own in value for own in (*self.own_paths, *paths.OWN)):
                    continue
            elif (
                "/" not in value
                and value[0] not in ".~"
                and (family not in _TAKE_FILES or _MODE.issuperset(value) or (word.quoted and "*" in value))
            ):
                continue  # a bare word such as a unit's name, a mode or a pattern is no file of the folder we are in
            for place in self.places(value):
                above = place.rstrip("/") + "/"
                if (
                    paths.own(place, self.own_paths)
                    or (worst == R3 and any(own.startswith(above) for own in self.own_paths))
                    or (
                        unread
                        and (any(own in value for own in self.own_paths) or any(own in value for own in paths.OWN))
                    )
                ):
                    self.own_touched = place
                    self.note(R2, "own.write", f"changes opsagent's own files ({place})", word.span, "law 6")
                    return


_HEADS = frozenset(("!", "if", "then", "elif", "else", "while", "until", "do", "{", "coproc"))
"""Reserved words that a command follows."""
_TAKE_FILES = frozenset(("files", "text"))
"""Families whose operands are files by their nature."""
_TAKE_NO_FILES = frozenset(
    ("network", "transfer", "containers", "kubernetes", "cloud", "remote", "system", "packages", "forges", "vcs",
     "gitkin")
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


def _family(word: Word) -> str:
    from guard.judge.families import PROGRAMS

    return PROGRAMS.get((word.value or "").rpartition("/")[2], "")


_UNREAD = frozenset(
    ("interpreter.code", "program.unread", "shell.script", "program.unknown", "build.run", "program.path")
)


class Call:
    """One command as its family sees it: name, words after it, and the ways to say what they do."""

    __slots__ = ("judge", "name", "word", "args", "span", "stdin", "assigns", "redirects")

    def __init__(
        self,
        judge: Judge,
        name: str,
        word: Word,
        args: "Sequence[Word]",
        span: "Span",
        stdin: "str | None" = None,
        assigns: "tuple[Assign, ...]" = (),
        redirects: "tuple[Redirect, ...]" = (),
    ) -> None:
        self.judge = judge
        self.name = name
        self.word = word
        self.args = args
        self.span = span
        self.stdin = stdin
        """None = nothing to read, "" = bytes that are not known, else the literal text."""
        self.assigns = assigns
        self.redirects = redirects

    def note(self, level: int, rule: str, text: str, word: "Word | None" = None, source: str = "") -> None:
        """Raises the level, with a reason; `word` is what it speaks of (default: the whole command)."""
        span = word.span if word is not None and word.span != (0, 0) else self.span
        self.judge.note(level, rule, text, span, source or f"{self.name}(1)")

    def opaque(self, text: str, word: "Word | None" = None, rule: str = "program.unread") -> None:
        """At least R2: this part is not understood."""
        self.judge.opaque(rule, text, word.span if word is not None and word.span != (0, 0) else self.span)

    def flag(self, *names: str) -> None:
        self.judge.flags.update(names)
        self.judge.plain = False

    def need(self, profile: str) -> None:
        """The read needs this sandbox profile (`net`, `bus`, `observe`, `netadm`, `block`, `remote`)."""
        self.judge.needs.add(profile)
        if profile != "bus":
            self.judge.plain = False

    def env(self, *names: str) -> None:
        self.judge.env.update(names)

    def effect(self, kind: str, object: str = "") -> None:
        self.judge.effects.append((kind, object))

    def value(self, word: Word) -> "str | None":
        return self.judge.literal(word)

    def reads(self, word: "Word | None") -> None:
        """Reads this file's content."""
        if word is None:
            return
        if word.appended:
            # Which files these are is told by data, so nothing but the mask keeps credentials out of them.
            self.flag("recursive-read")
        else:
            self.judge.read_path(word, word.span if word.span != (0, 0) else self.span)

    def writes(self, word: "Word | None", *, level: int = R1, deletes: bool = False, appends: bool = False) -> None:
        """Creates or changes (or removes) this file."""
        if word is not None:
            span = word.span if word.span != (0, 0) else self.span
            self.judge.write_path(word, span, self.name, level=level, deletes=deletes, appends=appends)

    def peer(self, host: str, port: int, protocol: str) -> None:
        """Talks to this host; makes the decision depend on whether a person named it (law 10)."""
        self.judge.peers.append((host, port, protocol))
        self.judge.needs.add("net")
        self.judge.plain = False

    def argv(self, words: "Sequence[Word]", *, stdin: "str | None" = None) -> None:
        """Judges the command that these words make up, as part of this one."""
        if not words:
            return
        self.judge.argv(words, self.span, stdin)

    def code(self, word: "Word | None", *, stdin: "str | None" = None) -> None:
        """Judges shell text that this command runs. Anything but a literal is opaque."""
        if word is None:
            return
        value = self.judge.literal(word)
        if value is None:
            self.opaque("runs text that is not told here", word, "shell.dynamic-code")
            # What is literal in it can still show the worst.
            shape = word.shape
            if "*" in shape and len(shape) > 3:
                self._raise_only(shape, word)
            return
        self.judge.text(value, word.span if word.span != (0, 0) else self.span, stdin=stdin)

    def hidden(self, text: str, word: Word) -> None:
        """Judges what bash would run if it expanded this data."""
        span = word.span if word.span != (0, 0) else self.span
        self.judge.text(f": <<EOF_\n{text}\nEOF_\n" if "EOF_" not in text else text, span)

    def _raise_only(self, text: str, word: Word) -> None:
        self.judge.text(text, word.span if word.span != (0, 0) else self.span)

    def script_from_stdin(self, what: str = "a shell") -> None:
        """What is read from standard input is run as shell code."""
        if self.stdin:
            self.judge.text(self.stdin, self.span)
        elif self.stdin is None:
            self.note(R2, "shell.interactive", f"{what} without a command", None, "law 2")
        else:
            self.opaque(f"{what} runs what it reads from standard input", None, "shell.stdin-code")


_LOADED: "dict[str, Program | None]" = {}


def lookup(name: str) -> "Program | None":
    """What is known about a program, loading its family when it occurs for the first time."""
    try:
        return _LOADED[name]
    except KeyError:
        pass
    from guard.judge import families

    module = families.PROGRAMS.get(name)
    if module is None and "." in name:
        module = next((m for p, m in families.PREFIXES if name.startswith(p)), None)
        if module is not None:
            table = families.load(module)
            return table.get(next(p for p, m in families.PREFIXES if name.startswith(p)))
    if module is None:
        if len(_LOADED) < 4096:
            _LOADED[name] = None
        return None
    found: Program = families.load(module)[name]
    _LOADED[name] = found
    return found


def _decoded(words: "Sequence[Word]", feed: "str | None") -> str:
    """What `base64 -d` and `rev` make of a known input; "" when it is not known."""
    name, options = words[0].value, [word.value for word in words[1:]]
    if not feed or len(feed) > 65_536:
        return ""
    if name == "rev" and not options:
        return "\n".join(line[::-1] for line in feed.split("\n"))
    if name in ("base64", "base32", "xxd"):
        from binascii import Error, a2b_base64, unhexlify

        try:
            if name == "base64" and options in (["-d"], ["--decode"], ["-D"], ["-di"], ["-d", "-i"], ["--d"]):
                return a2b_base64(feed.encode()).decode("utf-8", "replace")
            if name == "xxd" and options in (["-r", "-p"], ["-p", "-r"], ["-rp"], ["-pr"], ["-r", "-ps"]):
                return unhexlify("".join(feed.split())).decode("utf-8", "replace")
        except (Error, ValueError):
            return ""
    return ""


def _literal_output(node: Node, judge: Judge, feed: "str | None") -> str:
    """What a pipeline stage is known to print: echo, printf of literals, cat of a here-document; else ""."""
    while isinstance(node, Group) and len(node.items) == 1 and not node.redirects:
        node = node.items[0]
    if not isinstance(node, Simple) or not node.words:
        return ""
    name = node.words[0].value
    if name in ("cat", "tee") and len(node.words) == 1:
        for redirect in node.redirects:
            if redirect.body is not None:
                return judge.literal(redirect.body) or ""
        return "" if node.redirects else feed or ""
    if name in ("base64", "rev", "xxd"):
        for redirect in node.redirects:
            if redirect.body is not None:
                return _decoded(node.words, judge.literal(redirect.body))
        return _decoded(node.words, feed)
    if name not in ("echo", "printf") or node.redirects:
        return ""
    words = [judge.literal(word) for word in node.words[1:]]
    shown = [word if word is not None else "*" for word in words]
    if any(word is None for word in words):
        return ""
    if name == "echo":
        while shown and shown[0] in ("-n", "-e", "-E", "-ne", "-en"):
            shown.pop(0)
        text = " ".join(shown)
        return text + "\n" if "\\" not in text else ""
    if not shown:
        return ""
    if shown[0] in ("%s", "%s\\n", "%s\n"):
        return "\n".join(shown[1:])
    return shown[0].replace("\\n", "\n") if "%" not in shown[0] and "\\" not in shown[0].replace("\\n", "") else ""


BUILTINS = frozenset(
    ("cd", "echo", "printf", "test", "[", "true", "false", ":", "exit", "return", "break", "continue", "shift",
        "read", "set", "shopt", "eval", "exec", "source", ".", "export", "unset", "local", "declare", "type",
        "command", "builtin", "wait", "jobs", "trap", "umask", "ulimit", "pwd", "hash", "alias", "unalias", "let",
        "getopts", "kill", "time",)
)  # fmt: skip
