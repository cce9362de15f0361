"""`opsx rules`: what a person's own rules say, whether their examples hold, and which files may lower a level."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cli import config, surroundings
from cli.report import line, safe, write
from guard import userrules
from guard.errors import GuardError, NotPermitted, UsageError
from guard.ledger import location
from guard.types import Actor, Level

if TYPE_CHECKING:
    from cli.options import Parsed
    from guard.types import UserRule


def main(parsed: Parsed) -> int:
    """Dispatches to the action."""
    actions = {"list": list_all, "test": test, "lint": lint, "trust": trust}
    action = actions.get(parsed.words[0] if parsed.words else "")
    if action is None:
        raise UsageError("say what: list, test, lint or trust", hint=parsed.help_line())
    return action(parsed, parsed.words[1:])


def list_all(parsed: Parsed, words: list[str]) -> int:
    """The rules that count now, and what does not count and why."""
    if words:
        raise UsageError("list takes no words", hint=parsed.help_line())
    settings = config.load()
    if parsed.flag("json"):
        line(
            {
                "format": 1,
                "rules": [_object(rule) for rule in settings.rules],
                "files": list(settings.files),
                "problems": list(settings.problems),
            }
        )
        return 0
    if not settings.rules:
        write(f"no rules of your own; they lie in {safe(' and '.join(_folders()))}\n")
    for rule in settings.rules:
        how = "lowers to" if rule.lowers else "raises to"
        write(f"{rule.id}: {how} {rule.level.name}: {safe(' '.join((rule.program, *rule.words)))}\n")
        write(f"    {safe(rule.text)}  [{safe(rule.file)}]\n")
    for problem in settings.problems:
        write(f"not used: {safe(problem)}\n")
    return 0


def test(parsed: Parsed, words: list[str]) -> int:
    """Tries the examples of the named files, or of all."""
    results = []
    for path in _files(words):
        try:
            found = userrules.read(config.read_safely(path), path)
            wrong = userrules.failures(found)
        except (OSError, GuardError) as error:
            results.append((path, 0, [_said(error)]))
            continue
        results.append((path, sum(len(match) + len(skip) for match, skip in found.examples.values()), wrong))
    return _report(parsed, results, "examples hold", failing=True)


def lint(parsed: Parsed, words: list[str]) -> int:
    """Hints about rules that do nothing or more than meant. A file that cannot be used at all is a failure."""
    results, unusable = [], False
    for path in _files(words):
        try:
            found = userrules.read(config.read_safely(path), path)
        except (OSError, GuardError) as error:
            results.append((path, 0, [_said(error)]))
            unusable = True
            continue
        results.append((path, len(found.rules), userrules.lint(found)))
    return max(_report(parsed, results, "rules, nothing to say", failing=False), int(unusable))


def trust(parsed: Parsed, words: list[str]) -> int:
    """Lets one file lower levels, after a person has read what that means. The digest is logged first.

    Raises:
        NotPermitted: not a person at a terminal.
        BadRules: the file cannot be used, or an example does not hold.
        StateError: it could not be recorded, so it is not trusted.
    """
    if len(words) != 1:
        raise UsageError("name one rules file", hint=parsed.help_line())
    path = os.path.abspath(words[0])
    if surroundings.actor() != Actor.PERSON:
        raise NotPermitted(
            "only a person at a terminal can trust a rules file",
            not_done="the file is not trusted",
            hint=f"in a terminal of your own: opsx rules trust {path}",
        )
    if os.path.dirname(path) not in _folders():
        raise UsageError(
            f"{path} is not in a folder that rules are read from", hint=f"put it into {' or '.join(_folders())}"
        )
    found = userrules.read(config.read_safely(path), path)
    wrong = userrules.failures(found)
    if wrong:
        raise userrules.BadRules(path, wrong[0])
    lowering = [rule for rule in found.rules if rule.lowers]
    if not lowering:
        write(f"{safe(path)} lowers nothing, so it counts without trust\n")
        return 0
    from cli.ask import consented, paged

    paged(_asked(path, found.digest, lowering))
    if not consented("trust this file?"):
        write("not trusted\n")
        return 3
    # The digest was taken from the bytes that were shown; a file that changes meanwhile has another one.
    _record(path, found.digest, lowering)
    _keep(found.digest, path)
    write(f"trusted: {safe(path)}\n")
    return 0


def _asked(path: str, digest: str, lowering: list[UserRule]) -> str:
    rows = [f"{safe(path)}", f"sha256 {digest}", "", "These rules let commands pass with less asking:"]
    for rule in lowering:
        rows.append(f"  {rule.level.name}  {safe(' '.join((rule.program, *rule.words)))}")
        rows.append(f"      {safe(rule.text)}")
        if rule.level == Level.R0:
            rows.append("      runs without asking wherever the read-only sandbox holds")
    rows.append("A file that changes is no longer trusted.")
    return "\n".join(rows) + "\n"


def _record(path: str, digest: str, lowering: list[UserRule]) -> None:
    from acting.world import open_store
    from guard.redact import Redactor

    open_store(Redactor()).record(
        "rules_trusted",
        shell="opsx",
        actor=Actor.PERSON,
        file=path,
        digest=digest,
        rules=[rule.id for rule in lowering],
        consent="tty",
    )


def _keep(digest: str, path: str) -> None:
    """Adds the digest to the state folder's list; the log keeps who and when."""
    folder = location.state_path()
    known = sorted(config.trusted_digests() | {digest})
    scratch = os.path.join(folder, f"{config.TRUSTED}.{os.getpid()}")
    fd = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="ascii") as stream:
            stream.write("".join(f"{known_digest}\n" for known_digest in known))
            stream.flush()
            os.fsync(fd)
        os.rename(scratch, os.path.join(folder, config.TRUSTED))
    except OSError:
        os.unlink(scratch)
        raise


def _folders() -> list[str]:
    return [os.path.join(folder, "rules") for folder in config.folders()]


def _files(words: list[str]) -> list[str]:
    if words:
        return [os.path.abspath(word) for word in words]
    found = []
    for folder in _folders():
        if os.path.isdir(folder):
            found += [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".toml")]
    return found


def _said(error: OSError | GuardError) -> str:
    return error.message if isinstance(error, GuardError) else (error.strerror or str(error))


def _report(parsed: Parsed, results: list[tuple[str, int, list[str]]], fine: str, *, failing: bool) -> int:
    bad = any(said for _, _, said in results)
    if parsed.flag("json"):
        line(
            {
                "format": 1,
                "files": [{"file": path, "count": count, "problems": said} for path, count, said in results],
            }
        )
    else:
        if not results:
            write(f"no rules files; they lie in {safe(' and '.join(_folders()))}\n")
        for path, count, said in results:
            if not said:
                write(f"{safe(path)}: {count} {fine}\n")
            for sentence in said:
                write(f"{safe(path)}: {safe(sentence.removeprefix(path + ': '))}\n")
    return 1 if bad and failing else 0


def _object(rule: UserRule) -> dict[str, object]:
    return {
        "id": rule.id,
        "program": rule.program,
        "words": list(rule.words),
        "level": rule.level.name,
        "lowers": rule.lowers,
        "text": rule.text,
        "file": rule.file,
    }
