"""The values that cross the guard's modules. All are frozen by convention; the test suite enforces it.

This module is on the hot path (`opsx check` must start in a few milliseconds), so it imports nothing:
no enum (5 ms with what it pulls in), no dataclasses, no typing. Closed sets are classes of named
constants; `Level` is an ordered integer, so that "the strictest wins" is `max`.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any, ClassVar, NoReturn, Self

    from guard.keeping import Keeping

Span = tuple[int, int]
"""Byte offsets [start, end) into the UTF-8 bytes of the command."""

MAX_COMMAND_BYTES = 65_536
"""A command is at most this long: half of the kernel's MAX_ARG_STRLEN (execve(2)), which bash -c must pass."""

LOCAL = "local"
"""The only target of this version. Anything else is a usage error, never a fall back to this."""


def unreachable(value: object) -> "NoReturn":
    """Ends an exhaustive match over a closed set; reaching it is a bug in the caller."""
    raise AssertionError(f"not a member of the closed set: {value!r}")


class Level(int):
    """R0 read-only < R1 reversible < R2 high risk or unknown < R3 irreversible. `max` composes."""

    R0: "ClassVar[Level]"
    R1: "ClassVar[Level]"
    R2: "ClassVar[Level]"
    R3: "ClassVar[Level]"

    @property
    def name(self) -> str:
        return ("R0", "R1", "R2", "R3")[self]

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__


Level.R0, Level.R1, Level.R2, Level.R3 = Level(0), Level(1), Level(2), Level(3)
LEVELS = (Level.R0, Level.R1, Level.R2, Level.R3)


class Actor:
    """Who asks. The default everywhere is AGENT, the strictest."""

    PERSON = "person"
    AGENT = "agent"
    RUNBOOK = "runbook"
    HOOK = "hook"


class RequestKind:
    """What a request asks for."""

    COMMAND = "command"
    FILE_CHANGE = "file-change"
    """`Request.command` then is `guard.filechange.FileChange.text`, and no bash ever gets it."""


class Mode:
    """What a target allows at most; set per target, never called profile."""

    READ_ONLY = "read-only"
    GUARDED = "guarded"
    LAB = "lab"


class Verdict:
    """What happens with a request now."""

    RUN = "run"
    NEEDS_STAMP = "needs_stamp"
    REFUSE = "refuse"


class Status:
    """How one execution ended or why it did not begin: `status` in records and JSON."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"
    RUNNING = "running"
    NEEDS_STAMP = "needs_stamp"
    REFUSED = "refused"
    SNAPSHOT_FAILED = "snapshot_failed"


class Profile:
    """Names of the sandbox profiles; REMOTE means that it runs elsewhere, where nothing is enforced by us."""

    LOCAL = "local"
    NET = "net"
    BUS = "bus"
    OBSERVE = "observe"
    NETADM = "netadm"
    BLOCK = "block"
    REMOTE = "remote"
    NONE = "none"


class Value:
    """Base of the frozen values: equality, hash and repr from `__slots__`.

    Nothing stops an assignment at run time (a guard in `__setattr__` would cost more than the classes
    themselves); the test suite installs one, so that a write after construction fails a test.
    """

    __slots__: "tuple[str, ...]" = ()

    def _fields(self) -> "tuple[Any, ...]":
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def __repr__(self) -> str:
        inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({inner})"

    def replace(self, **changes: "Any") -> "Self":
        """A copy with some fields changed. Raises TypeError for an unknown field."""
        values = {name: getattr(self, name) for name in self.__slots__}
        unknown = changes.keys() - values.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        return type(self)(**{**values, **changes})


class Effect(Value):
    """One thing that a command does, as far as its text tells."""

    __slots__ = ("kind", "object")
    kind: str
    """read · write · delete · network · service · package · process · privilege · secret-read · opaque …"""
    object: str
    """The path, unit, package, peer …; "" when the kind says it all, "?" when it cannot be known."""

    def __init__(self, kind: str, object: str = "") -> None:
        self.kind = kind
        self.object = object


class Reason(Value):
    """Why a part of the command has its level."""

    __slots__ = ("rule", "text", "span", "level", "source")
    rule: str
    """Stable dotted id, e.g. `files.rm.recursive`."""
    text: str
    """One sentence for people."""
    span: Span
    """The bytes that it speaks of."""
    level: Level
    source: str
    """Manual page, law or incident behind the rule, e.g. `rm(1)` or `law 2`."""

    def __init__(self, rule: str, text: str, span: Span, level: Level, source: str = "") -> None:
        self.rule = rule
        self.text = text
        self.span = span
        self.level = level
        self.source = source


class Peer(Value):
    """A literal network peer that a command talks to."""

    __slots__ = ("host", "port", "protocol")
    host: str
    port: int
    """1..65535; 0 when the program's own configuration decides."""
    protocol: str
    """`https`, `http`, `dns`, `ssh`, `kubernetes` …"""

    def __init__(self, host: str, port: int, protocol: str) -> None:
        self.host = host
        self.port = port
        self.protocol = protocol


class PlanItem(Value):
    """One thing to save before the command runs."""

    __slots__ = ("kind", "object")
    kind: str
    """`file` (or directory) · `meta`, `times`, `flags` with endings (docs/snapshots.md) · `service` (a unit) · `state`
    (another state that is no file) · `command`"""
    object: str
    """A path; a unit; `FAMILY` or `FAMILY KEY` of a state (docs/services.md); the name of a read."""

    def __init__(self, kind: str, object: str) -> None:
        self.kind = kind
        self.object = object


class Decision(Value):
    """What to do with a request: a function of level, enforcement, egress, actor and policy."""

    __slots__ = ("verdict", "code", "text", "forceable")
    verdict: str
    """A `Verdict`."""
    code: str
    """What decided: `read` · `read-masked` · `plain-reader` · `cannot-enforce` · `privilege` · `egress` · `level` ·
    `law-6` · `mode` · `config` · `frozen`."""
    text: str
    forceable: bool
    """Only with `refuse`: a person's forced stamp can turn it into `run`."""

    def __init__(self, verdict: str, code: str, text: str, forceable: bool = False) -> None:
        self.verdict = verdict
        self.code = code
        self.text = text
        self.forceable = forceable


class Enforcement(Value):
    """What this machine's kernel enforces for R0, measured by `guard.hands.sandbox`, never assumed."""

    __slots__ = ("profiles", "mechanism", "landlock_abi", "reports")
    profiles: "frozenset[str]"
    """The profiles that hold here; empty when nothing does."""
    mechanism: str
    """`strict` (Landlock + seccomp) · `seccomp` · `userns` · `none`"""
    landlock_abi: int
    reports: bool
    """Refused operations are reported (seccomp user notification works)."""

    def __init__(
        self, profiles: "Iterable[str]" = (), mechanism: str = "none", landlock_abi: int = 0, reports: bool = False
    ) -> None:
        self.profiles = frozenset(profiles)
        self.mechanism = mechanism
        self.landlock_abi = landlock_abi
        self.reports = reports


NO_ENFORCEMENT = Enforcement()


class UserRule(Value):
    """One rule of a person's own about one program: raises a level, or lowers it where that is allowed."""

    __slots__ = ("id", "program", "words", "level", "text", "lowers", "file")
    id: str
    """`^[a-z0-9][a-z0-9.-]{0,63}$`, unique among all files."""
    program: str
    """The program's name, without a folder."""
    words: "tuple[str, ...]"
    """Patterns with `*` and `?`, one for a word. Raising: they occur in this order, others may stand between.
    Lowering: they are the whole command after the program's name; a last `...` stands for any further words."""
    level: Level
    text: str
    lowers: bool
    """Only with a person's trust in the file (`opsx rules trust`); the loader leaves it out otherwise."""
    file: str
    """Name of the file it comes from, for reasons."""

    def __init__(
        self, id: str, program: str, words: "Iterable[str]", level: Level, text: str, lowers: bool, file: str
    ) -> None:
        self.id = id
        self.program = program
        self.words = tuple(words)
        self.level = level
        self.text = text
        self.lowers = lowers
        self.file = file


class Policy(Value):
    """What configuration adds to the built-in judgement. Loaded by the shell, never by the judge."""

    __slots__ = (
        "mode",
        "peers",
        "contexts",
        "trusted_bin",
        "frozen",
        "person_peers",
        "own_paths",
        "own_private",
        "is_root",
        "env",
        "rules",
        "keeping",
        "fault",
    )
    mode: str
    """A `Mode`."""
    peers: "frozenset[str]"
    """`host` or `host:port` that reads may talk to."""
    contexts: "frozenset[str]"
    """Kube contexts, cloud profiles … that reads may use."""
    trusted_bin: "tuple[str, ...]"
    """Folders beside the system's own whose programs are known by name."""
    frozen: str
    """Why everything above R0 is stopped; "" when it is not."""
    person_peers: "frozenset[str]"
    """Peers that a person named in this session."""
    own_paths: "tuple[str, ...]"
    """Absolute paths of opsagent's own code, state and configuration here; no agent's command may change them."""
    own_private: "tuple[str, ...]"
    """Those of them that no agent's command may read either: state and configuration."""
    is_root: bool
    """It runs as effective uid 0, where `sudo CMD` is CMD and can be held by a sandbox."""
    env: "tuple[str, ...]"
    """Names or shapes (`PG*`) of environment variables that configuration passes to commands."""
    rules: "tuple[UserRule, ...]"
    """A person's own rules, in the order of their files."""
    keeping: "Keeping | None"
    """What configuration says about approvals and records; the judge does not look at it."""
    fault: str
    """Which file of the configuration is there and cannot be used, and why; "" when none is. It may forbid anything."""

    def __init__(
        self,
        mode: str = Mode.GUARDED,
        peers: "Iterable[str]" = (),
        contexts: "Iterable[str]" = (),
        trusted_bin: "Iterable[str]" = (),
        frozen: str = "",
        person_peers: "Iterable[str]" = (),
        own_paths: "Iterable[str]" = (),
        own_private: "Iterable[str]" = (),
        is_root: bool = False,
        env: "Iterable[str]" = (),
        rules: "Iterable[UserRule]" = (),
        keeping: "Keeping | None" = None,
        fault: str = "",
    ) -> None:
        self.mode = mode
        self.peers = frozenset(peers)
        self.contexts = frozenset(contexts)
        self.trusted_bin = tuple(trusted_bin)
        self.frozen = frozen
        self.person_peers = frozenset(person_peers)
        self.own_paths = tuple(own_paths)
        self.own_private = tuple(own_private)
        self.is_root = is_root
        self.env = tuple(env)
        self.rules = tuple(rules)
        self.keeping = keeping
        self.fault = fault


BUILTIN = Policy()


class Facts(Value):
    """Frozen answers to the read-only questions that a command raises. They raise a level, never lower it."""

    __slots__ = ("real_paths", "kinds", "unanswered", "listed")
    real_paths: "Mapping[str, str]"
    """Path as written (absolute) → path after following links."""
    kinds: "Mapping[str, str]"
    """Real path → `file` · `dir` · `device` · `fifo` · `socket` · `absent`."""
    unanswered: "frozenset[str]"
    """Names that were asked about and of which nothing could be told: what they are is unknown, not harmless."""
    listed: "Mapping[str, tuple[str, ...]]"
    """Pattern as written (absolute) → real paths of what bash makes of it."""

    def __init__(
        self,
        real_paths: "Mapping[str, str] | None" = None,
        kinds: "Mapping[str, str] | None" = None,
        unanswered: "Iterable[str]" = (),
        listed: "Mapping[str, tuple[str, ...]] | None" = None,
    ) -> None:
        self.real_paths = real_paths or {}
        self.kinds = kinds or {}
        self.unanswered = frozenset(unanswered)
        self.listed = listed or {}

    def __hash__(self) -> int:
        told = (self.real_paths, self.kinds, self.listed)
        return hash((*(tuple(sorted(answers.items())) for answers in told), self.unanswered))


NO_FACTS = Facts()


class Request(Value):
    """A command (or a file change) on a target in a cwd for an actor, as a shell hands it to the guard."""

    __slots__ = (
        "command",
        "target",
        "cwd",
        "actor",
        "why",
        "shell",
        "client",
        "call_id",
        "session",
        "kind",
        "read_before",
    )
    command: str
    """The exact text that bash gets: valid UTF-8, no NUL, 1..65,536 bytes. Bound byte for byte."""
    target: str
    cwd: str
    """Absolute path."""
    actor: str
    why: str
    """The asker's own words; shown after the facts, never believed."""
    shell: str
    """The way in: `opsx`, `oneshot`, `repl`, `rpc`, `acp`, `mcp`, `hook`, `selftest`."""
    client: str
    """Name and version of the program that speaks to us, or ""."""
    call_id: str
    """The host's tool-use or request id, or ""."""
    session: str
    kind: str
    """A `RequestKind`."""
    read_before: str
    """What of others' words the asker had read, in words; "" for nothing. Shown to who approves, part of no binding."""

    def __init__(
        self,
        command: str,
        *,
        target: str = LOCAL,
        cwd: str,
        actor: str = Actor.AGENT,
        why: str = "",
        shell: str = "opsx",
        client: str = "",
        call_id: str = "",
        session: str = "",
        kind: str = RequestKind.COMMAND,
        read_before: str = "",
    ) -> None:
        self.command = command
        self.target = target
        self.cwd = cwd
        self.actor = actor
        self.why = why
        self.shell = shell
        self.client = client
        self.call_id = call_id
        self.session = session
        self.kind = kind
        self.read_before = read_before


class Interference(Value):
    """One operation that the sandbox refused while a command ran."""

    __slots__ = ("operation", "path")
    operation: str
    """The system call's name, e.g. `openat`."""
    path: str
    """What it named, as the process wrote it; "" when it names no path."""

    def __init__(self, operation: str, path: str = "") -> None:
        self.operation = operation
        self.path = path


class Captured(Value):
    """One stream of a finished command, held as head and tail in bounded memory."""

    __slots__ = ("text", "size_bytes", "truncated", "undecodable_bytes")
    text: str
    """Decoded as UTF-8 with U+FFFD for bad bytes; head, a line that says what was cut, tail."""
    size_bytes: int
    """How much the command wrote in all."""
    truncated: bool
    undecodable_bytes: int

    def __init__(
        self, text: str = "", size_bytes: int = 0, truncated: bool = False, undecodable_bytes: int = 0
    ) -> None:
        self.text = text
        self.size_bytes = size_bytes
        self.truncated = truncated
        self.undecodable_bytes = undecodable_bytes


class Outcome(Value):
    """What became of one request: what `opsx exec --json` says, less the assessment."""

    __slots__ = (
        "status",
        "execution",
        "exit_code",
        "stdout",
        "stderr",
        "output_file",
        "snapshot",
        "stamp",
        "request_id",
        "profile",
        "enforced",
        "interference",
        "unlimited",
        "masked",
        "recorded",
        "not_recorded_because",
        "duration_ms",
        "at",
        "decision",
        "notes",
    )

    def __init__(
        self,
        status: str,
        *,
        execution: "str | None" = None,
        exit_code: "int | None" = None,
        stdout: "Captured | None" = None,
        stderr: "Captured | None" = None,
        output_file: "str | None" = None,
        snapshot: "str | None" = None,
        stamp: "str | None" = None,
        request_id: "str | None" = None,
        profile: str = Profile.NONE,
        enforced: str = "none",
        interference: "tuple[Interference, ...] | None" = None,
        unlimited: "tuple[str, ...]" = (),
        masked: "tuple[str, ...]" = (),
        recorded: bool = False,
        not_recorded_because: str = "",
        duration_ms: int = 0,
        at: str = "",
        decision: "Decision | None" = None,
        notes: "tuple[str, ...]" = (),
    ) -> None:
        self.status = status
        """A `Status`."""
        self.execution = execution
        """`e-…`, or None when nothing was started."""
        self.exit_code = exit_code
        """0..255; 128 + N for a death by signal N; None when it did not end."""
        self.stdout = stdout or Captured()
        self.stderr = stderr or Captured()
        self.output_file = output_file
        self.snapshot = snapshot
        self.stamp = stamp
        self.request_id = request_id
        """`a-…` when a person can approve it."""
        self.profile = profile
        self.enforced = enforced
        self.interference = interference
        """None when the kernel cannot tell; never a pretended empty tuple."""
        self.unlimited = unlimited
        self.masked = masked
        self.recorded = recorded
        self.not_recorded_because = not_recorded_because
        self.duration_ms = duration_ms
        self.at = at
        """RFC 3339, UTC, `Z`, milliseconds: when it began (or was decided)."""
        self.decision = decision
        self.notes = notes
        """Sentences for people: what was degraded, killed, masked."""


class Assessment:
    """Level, decision and why, for one command: a pure function of text and facts.

    `level` and `decision` are there at once. The rest is worked out from the frozen tree at first access,
    with the same result whenever that is and without I/O (`guard.judge.classify` owns the subclass that does it).
    """

    __slots__ = ()
    command: str
    level: Level
    decision: Decision
    profile: str
    """The sandbox profile that its reads need."""
    ports: "tuple[int, ...]"
    """TCP ports for `net`; empty elsewhere."""
    peers: "tuple[Peer, ...]"
    reasons: "tuple[Reason, ...]"
    effects: "tuple[Effect, ...]"
    opaque: "tuple[Reason, ...]"
    """The parts that could not be read."""
    snapshot_plan: "tuple[PlanItem, ...]"
    inputs: "tuple[PlanItem, ...]"
    """What it takes from the machine besides its text, for a stamp to bind; in the order of the text, each once.

    `program`: a name to look up on PATH, or an absolute path when it was written as one.
    `file`: a file that it runs, or feeds to an interpreter or client (scripts, `-f FILE`, `< FILE`, manifests);
    absolute when the folder is known, `~` for the caller's home. It is what the text names: it may turn out to be
    absent (bind that), or a folder (then it cannot be bound and belongs to the `unbound`).
    `glob`: an unquoted pattern that bash expands, absolute when the folder is known.
    `unbound`: a sentence part, `NAME: why`, about what cannot be bound: include trees, make, URLs, words that are told
    only when it runs.
    """
    reversible: str
    """`yes` · `partial` · `no`"""
    ambient: "Mapping[str, str]"
    """What client programs point at: `kubernetes`, `aws`, `docker` …"""
    env: "tuple[str, ...]"
    """Names of environment variables that its programs' families need (KUBECONFIG, AWS_PROFILE …)."""
    questions: "tuple[str, ...]"
    """Paths as written whose real path and kind would matter (`Facts`)."""
    target: str

    def __iter__(self) -> "Iterator[str]":
        raise TypeError("an assessment is not a sequence")


class Recorded(Value):
    """Whether something reached the log; a sick state folder is an answer here, not an exception."""

    __slots__ = ("ok", "because")
    ok: bool
    because: str
    """Why not, as a sentence without a full stop; "" when it did."""

    def __init__(self, ok: bool, because: str = "") -> None:
        self.ok = ok
        self.because = because


class Begun(Value):
    """A read that is about to start, and whether its begin is in the log."""

    __slots__ = ("execution", "recorded")
    execution: str
    """`e-…`; an id even when nothing could be recorded."""
    recorded: Recorded

    def __init__(self, execution: str, recorded: Recorded) -> None:
        self.execution = execution
        self.recorded = recorded
