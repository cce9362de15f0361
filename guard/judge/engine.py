"""The walk over the tree: every simple command meets its family's rule, and what they find is gathered here.

`Judge` holds what is found (level, findings, effects, flags); `Call` is one command as a family sees it. A family never
lowers anything: all it can do is note, and the level of the whole is the highest note.
"""

from guard.judge import paths
from guard.judge.assignments import note_assignment, note_computed, note_declaration
from guard.judge.levels import R0, R1, R2
from guard.judge.own_objects import note_own_objects
from guard.judge.printed import printed_by
from guard.judge.program import Call, Ran, lookup
from guard.judge.redirections import redirected
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
from guard.judge.shellwords import BUILTINS, EVALUATING, HEADS
from guard.judge.touches import INCOMPLETE
from guard.judge.values import MAX_NESTING, versions_of
from guard.judge.variables import POINTING, dangerous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from guard.types import Span, UserRule

MAX_STEPS = 60_000
"""Commands judged for one text; a longer one is opaque from there on (time stays bounded)."""


class Judge:
    """One text being judged. Collects; decides nothing but the level."""

    __slots__ = (
        "level", "findings", "effects", "flags", "plan", "needs", "peers", "env", "ambient", "cwds", "script",
        "depth",
        "steps", "outer", "plain", "own_paths", "own_private", "own_touched", "programs", "aliases",
        "trusted_bin", "running",
        "scripts", "texts",
        "remote_plain", "inside", "calls", "ran", "fed", "lists", "pipe", "pipes", "away", "rules", "lowered", "bound",
        "pointing", "loops", "found", "told", "patterns", "lists_otherwise",
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
        """`helper` · `options-from-expansion` · `recursive-read` · `unseen-read` · `egress` · `evaluates` …"""
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
        self.scripts: list[Script] = []
        """Every text that was read, in order, those in other texts too."""
        self.texts: list[tuple[Script | None, str]] = []
        """Texts in other texts that were judged as commands, each with the one that carries it."""
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
        """Variables that have a value for sure at this point of the text; any other may still be unset. `export NAME`
        stands for those that programs get for sure."""
        self.loops: dict[str, tuple[Word, ...]] = {}
        """Variables of the loops that are being read, with what they list (`values.listed_of`)."""
        self.pointing: frozenset[str] = frozenset()
        """What the text sets for the command that is being judged and that says where clients go (`POINTING`)."""
        self.found: tuple[str, list[tuple[str, str]]] | None = None
        """What a wrapper adds to the words of a command: the text before what it found, and where that is, as (ending
        of a plan item's kind, path); None: not told."""
        self.told: Mapping[str, str] = {}
        """What paths really are, where that was asked (`guard.judge.facts`)."""
        self.patterns: dict[str, dict[str | None, None]] = {}
        """Names that bash makes of what lies in a folder → the patterns that it lists for them, None for one that
        cannot be told."""
        self.lists_otherwise = 0
        """What changes what patterns list: 1 in texts that a command runs, 2 in this one."""
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
        self.texts.append((self.script, source))
        bound = self.bound
        self.bound = {item for item in bound if item.startswith("export ") or f"export {item}" in bound}
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
        self.scripts.append(script)
        if script.evaluates:
            self.flags.add("evaluates")
            self.plain = False
        note_computed(self, script)
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
            stdin = redirected(self, redirect, stdin)
        if isinstance(node, Pipeline):
            feed = stdin
            outer = self.pipe
            self.pipes += 1
            self.pipe = self.pipes
            for stage in node.stages:
                self.apart(stage, feed)
                feed = printed_by(stage, self, feed)
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
            note_declaration(self, node)
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
        loops, cwds = self.loops, list(self.cwds)
        if kind == "for" and node.name and node.words and all(word.value is not None for word in node.words):
            self.loops = {**loops, node.name: node.words}
        for item in items:
            self.node(item, stdin)
        if self.loops is not loops and self.cwds != cwds:
            self.flags.add(INCOMPLETE)  # what is listed in one folder is used in another, from the second round on
        self.loops = loops
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

    def assign(self, assign: Assign, *, passed: bool = False) -> None:
        """Judges an assignment: what it runs, and whether the name is one that changes what programs do.

        `passed`: commands get it in their environment.
        """
        for word in (assign.value, assign.subscript, *assign.elements):
            if word is not None:
                self.expansions(word)
        if assign.elements:
            self.named(assign.elements)
            self.lists.extend(word for word in assign.elements if word.globs)
        note_assignment(self, assign, passed=passed)

    # -- paths ------------------------------------------------------------------------------------------------

    def places(self, path: str) -> "list[str]":
        """The path as written, made absolute against every folder that the text can be in."""
        return paths.places(path, self.cwds)

    def listed_places(self, value: str, pattern: "str | None") -> "list[tuple[str, str | None]]":
        """`places` of a word that globs, each with the pattern that bash lists for it; these are remembered."""
        places = self.places(value)
        told: list[str | None] = [None] * len(places)
        if pattern is not None:
            found = paths.places(pattern, [paths.escaped(cwd) if cwd != "*" else cwd for cwd in self.cwds])
            if len(found) == len(places):
                told = [None if place.startswith("*/") else place for place in found]
        for place, one in zip(places, told, strict=True):
            self.patterns.setdefault(place, {})[one] = None
        return list(zip(places, told, strict=True))

    # -- simple commands --------------------------------------------------------------------------------------

    def simple(self, node: Simple, stdin: "str | None") -> None:
        words: Sequence[Word] = node.words
        for assign in node.assigns:
            self.assign(assign, passed=bool(words))
        dynamic = False
        for word in words:
            if word.parts:
                dynamic = True
                for part in word.parts:
                    if isinstance(part, Expansion) and part.runs:
                        for run in part.runs:
                            self.apart(run, None)
        for redirect in node.redirects:
            stdin = redirected(self, redirect, stdin)
        if not words:
            self.bound.update(assign.name for assign in node.assigns)
            return
        pointing = self.pointing
        if node.assigns:
            self.pointing = pointing | POINTING.intersection(assign.name for assign in node.assigns)
        if dynamic:
            first = words[0].value
            for version in versions_of(self, words):
                if first is None and version[0].value in EVALUATING:
                    self.opaque("shell.dynamic-command", "a builtin by a name that is put in", words[0].span)
                self.argv(version, node.span, stdin, assigns=node.assigns, redirects=node.redirects)
        else:
            self.argv(words, node.span, stdin, assigns=node.assigns, redirects=node.redirects)
        self.pointing = pointing

    def elsewhere(self, run: "Callable[[], None]") -> None:
        """Judges what runs on another machine or in a container, where nothing of ours can be enforced.

        What the client itself needs here (its socket, its own configuration) is answered by the peer that a person
        named; what counts is whether everything inside is a plain reader.
        """
        flags, plain, programs, away = self.flags, self.plain, self.programs, self.away
        self.flags, self.plain, self.programs, self.away = set(), True, [], True
        planned = len(self.plan)
        run()
        # Paths there are no paths here: what would be saved of them is another machine's.
        del self.plan[planned:]
        self.away = away
        self.inside.extend(self.programs)
        self.programs = programs
        if self.flags - {"recursive-read"} or not self.plain:
            self.remote_plain = False
        self.flags |= flags
        self.plain = self.plain and plain
        self.needs -= {"bus", "net"}
        self.needs.add("remote")

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
        if name in HEADS and len(words) > 1:
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
            # Not its beginning: a part of a secret is none that redaction knows.
            shown = name if len(name) < 60 else f"a program with a name of {len(name)} characters"
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
                note_own_objects(self, words, before)
