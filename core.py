"""The guard's face for thinking: judges a command, and answers what was asked, approved and done.

Nothing here runs a command, prints, or asks; what acts is in `execution`. `check` is on the hot path: at
import this module loads the value types and nothing else.
"""

from guard.errors import BadCommand, NeedsTerminal, UnknownTarget
from guard.types import BUILTIN, LOCAL, MAX_COMMAND_BYTES, NO_ENFORCEMENT, NO_FACTS, Actor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from guard.filechange import FileChange
    from guard.ports import Store
    from guard.types import Assessment, Enforcement, Facts, Policy

NONE = NO_ENFORCEMENT
"""Nothing is enforced: the assumption of a caller that has not measured."""


def require_command(command: str) -> None:
    """Accepts a text that bash can be given, and nothing else.

    Raises:
        BadCommand: empty or blank, longer than 65,536 bytes, holds a NUL, or is not valid UTF-8 (an undecodable
            byte arrives from argv as a lone surrogate, PEP 383).
    """
    if "\0" in command:
        raise BadCommand(
            f"the command holds a NUL at character {command.index(chr(0)) + 1}",
            hint="bash cannot be given a NUL; write the bytes to a file, or use printf '\\0' inside the command",
        )
    try:
        size_bytes = len(command) if command.isascii() else len(command.encode())
    except UnicodeEncodeError as error:
        raise BadCommand(
            f"the command is not valid UTF-8 at character {error.start + 1}",
            hint="pass the text as UTF-8; spell other bytes as $'\\xNN' inside the command",
        ) from None
    if size_bytes > MAX_COMMAND_BYTES:
        raise BadCommand(
            f"the command is {size_bytes:,} bytes long; the limit is {MAX_COMMAND_BYTES:,}",
            hint="put the script into a file and run the file",
        )
    if not command.strip():
        raise BadCommand("the command is empty", hint="opsx check -- CMD")


def require_target(target: str) -> None:
    """Accepts the name of a target that exists.

    Raises:
        UnknownTarget: anything but `local`; a mistyped name never falls back to this machine.
    """
    if target != LOCAL:
        shown = target if target.isascii() and target.isprintable() else ascii(target)
        raise UnknownTarget(
            f"there is no target {shown!r}" if target else "the target is empty",
            hint="this version runs on `local` only; leave --target out, or say --target local",
        )


def require_unattended(assessment: "Assessment") -> None:
    """Accepts a command that waits for nobody. What is not known to wait is accepted.

    Raises:
        NeedsTerminal: an editor, a shell without a command and the like; it would fail, or hang, after a person's yes.
    """
    from guard.judge.classify import Judged
    from guard.judge.interactive import waits_for_a_person

    program, spelling = waits_for_a_person(assessment) if isinstance(assessment, Judged) else ("", "")
    if program:
        raise NeedsTerminal(
            f"{program} waits for somebody at a terminal, and a guarded run has none",
            not_done="nothing was run or kept",
            hint=spelling,
        )


def check(
    command: str,
    *,
    target: str = LOCAL,
    cwd: "str | None" = None,
    actor: str = Actor.AGENT,
    facts: "Facts" = NO_FACTS,
    enforcement: "Enforcement" = NONE,
    policy: "Policy" = BUILTIN,
) -> "Assessment":
    """Judges one command: how risky it is, why, and what should happen with it. A pure function of its arguments.

    Args:
        command: the exact text that bash would get, 1..65,536 bytes of UTF-8, no NUL.
        cwd: absolute folder that relative paths are read against; None leaves them relative.
        facts: answers to read-only questions; they raise a level, never lower it.
        enforcement: what the kernel enforces where it would run (`guard.hands.sandbox.measure`).
    Returns:
        An `Assessment`: `level` and `decision` are there at once, the rest at first access.
    Raises:
        BadCommand, UnknownTarget: the request itself is malformed.
    """
    require_command(command)
    require_target(target)
    from guard.judge import classify

    return classify.check(
        command, target=target, cwd=cwd, actor=actor, facts=facts, enforcement=enforcement, policy=policy
    )


def check_file_change(
    change: "FileChange",
    *,
    unkept: bool = False,
    other_names: int = 0,
    too_long: bool = False,
    target: str = LOCAL,
    actor: str = Actor.AGENT,
    facts: "Facts" = NO_FACTS,
    policy: "Policy" = BUILTIN,
) -> "Assessment":
    """Judges a change of one file as `tee` to the same path would be judged, or higher. A pure function.

    Args:
        unkept: what the file holds now is a secret that no snapshot copies.
        other_names: hard links beside this one.
        too_long: its difference is longer than a person is shown.
    Raises:
        UnknownTarget: the request itself is malformed.
    """
    require_target(target)
    from guard.judge import filechange

    return filechange.check(
        change.text,
        change.path,
        asked=change.asked,
        unkept=unkept,
        other_names=other_names,
        too_long=too_long,
        target=target,
        actor=actor,
        facts=facts,
        policy=policy,
    )


def explain(assessment: "Assessment", clean: "Callable[[str], str]" = str) -> str:
    """An assessment in plain words for a person, at most 80 columns wide.

    Args:
        clean: takes secrets out of texts (`guard.redact`); each is cleaned before it is cut into rows.
    """
    from guard.judge import explain as words
    from guard.redact import MASK

    return words.explain(assessment, clean, MASK)


def policy_version() -> str:
    """The version of the judge's knowledge, grammar included; a stamp is bound to it."""
    from guard.judge import policy

    return policy.POLICY_VERSION


def pending(ledger: "Store") -> "list[Any]":
    """The requests that wait for a person, oldest first.

    Raises:
        StateError: the state folder cannot be read.
    """
    return list(ledger.pending())


def audit(ledger: "Store", tail: int = 20) -> "Iterator[Mapping[str, Any]]":
    """The last `tail` entries of the log, oldest first, as they were written (already redacted).

    Raises:
        StateError: the state folder cannot be read, or an entry is damaged.
    """
    return iter(ledger.audit(tail))
