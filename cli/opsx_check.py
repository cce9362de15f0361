"""`opsx check` and `opsx explain`: judge and say so. On the hot path: imports as little as it can."""

import sys

import core
from capabilities.shapes import check_object, clean_for
from cli.command_text import command_of
from cli.json_text import json_line
from cli.options import Parsed
from guard.types import Policy, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from guard.types import Assessment, Enforcement

_OWN_WORDS = ("read", "read-masked", "plain-reader", "level", "cannot-enforce", "privilege", "mode")
"""Decision codes whose text holds nothing foreign."""
_CODES = {Verdict.RUN: 0, Verdict.NEEDS_STAMP: 3, Verdict.REFUSE: 4}


def main(parsed: Parsed) -> int:
    """Judges what the arguments name; nothing runs."""
    from cli import surroundings

    core.require_target(parsed.value("target", "local"))
    policy = surroundings.policy(read_only=parsed.flag("read-only"))
    enforcement = surroundings.enforcement()
    if parsed.flag("batch"):
        return _batch(parsed, policy, enforcement)
    if parsed.flag("lines"):
        from guard.errors import UsageError

        raise UsageError("--lines goes with --batch", hint=parsed.help_line())
    command = command_of(parsed)
    assessment = surroundings.judged(
        command,
        cwd=surroundings.cwd(parsed.value("cwd")),
        actor=surroundings.actor(),
        enforcement=enforcement,
        policy=policy,
    )
    if parsed.verb.name == "explain":
        from cli.report import write

        write(core.explain(assessment, clean_for(assessment)) + "\n")
    elif parsed.flag("json"):
        sys.stdout.write(json_line(check_object(assessment)) + "\n")
    else:
        _in_words(assessment)
    return _CODES[assessment.decision.verdict]


def _in_words(assessment: "Assessment") -> None:
    """Two to six lines: the level, the decision, and the reasons that made it."""
    from cli.report import safe, write

    decision = assessment.decision
    word = {Verdict.RUN: "would run", Verdict.NEEDS_STAMP: "needs approval", Verdict.REFUSE: "refused"}
    # Words of ours need no renderer, whose import would cost more than the judgement.
    text = decision.text if decision.code in _OWN_WORDS else safe(decision.text)
    lines = [f"{assessment.level.name}  {word[decision.verdict]}: {text}"]
    worst = [reason for reason in assessment.reasons if reason.level == assessment.level]
    clean = clean_for(assessment)
    told = dict.fromkeys(f"    {safe(clean(reason.text))}  [{reason.rule}]" for reason in worst if reason.level)
    lines += list(told)[:5]
    write("\n".join(lines) + "\n")


def _batch(parsed: Parsed, policy: Policy, enforcement: "Enforcement") -> int:
    """JSONL (or lines) in, one object a row out, in order; a bad row gets its error and the rest go on."""
    import json

    from cli import surroundings
    from guard.errors import GuardError, UsageError

    if parsed.words or parsed.value("file"):
        raise UsageError("--batch reads its rows from standard input", hint=parsed.help_line())
    actor, cwd = surroundings.actor(), surroundings.cwd(parsed.value("cwd"))
    out = sys.stdout
    for number, raw in enumerate(sys.stdin.buffer, 1):
        try:
            text = raw.removesuffix(b"\n").decode("utf-8", "surrogateescape")
            command = text if parsed.flag("lines") else _command_in(text, json)
            assessment = surroundings.judged(command, cwd=cwd, actor=actor, enforcement=enforcement, policy=policy)
            row = check_object(assessment)
        except GuardError as failure:
            row = {"line": number, "error": failure.as_json()}
        out.write(json_line(row) + "\n")
    out.flush()
    return 0


def _command_in(text: str, json: "Any") -> str:
    from guard.errors import UsageError

    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError("the row is not JSON", hint='write {"cmd": "…"}, or use --lines') from None
    if not isinstance(row, dict) or not isinstance(row.get("cmd"), str):
        raise UsageError('the row has no text under "cmd"', hint='write {"cmd": "…"}')
    command: str = row["cmd"]
    return command
