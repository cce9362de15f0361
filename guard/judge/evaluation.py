"""Data of one text that bash evaluates in another: `x='a[$(…)]'; bash -c 'echo $((x))'`.

Within one text its reader sees to that. Here the texts that carry each other are looked at together.
"""

from guard.judge.shell.parse import parse_evaluated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge

RULE = "shell.evaluated"
_MOST_CODE, _LONGEST_CODE = 16, 4_096


def note_evaluation_across(judge: "Judge") -> None:
    """Opaque where one of several texts evaluates data and another holds data that would run something.

    What was judged as a command anyway is no such data.
    """
    if "evaluates" not in judge.flags or len(judge.scripts) < 2:
        return
    if any(finding[1] == RULE for finding in judge.findings):
        return
    code: dict[str, None] = {}
    for script in judge.scripts:
        carried = [text for carrier, text in judge.texts if carrier is script]
        code.update(dict.fromkeys(text for text in script.code if not _judged(text, carried)))
    if not code:
        return
    judge.opaque(RULE, "one text evaluates data, and another holds data that looks like code", (0, 0))
    for text in tuple(code)[:_MOST_CODE]:
        if len(text) <= _LONGEST_CODE:
            judge.run_script(parse_evaluated(text))


def _judged(text: str, commands: "list[str]") -> bool:
    """Whether all in a literal that could run something is part of a command that was judged."""
    for command in commands:
        if text in command:
            return True
        if command and command in text:
            text = text.replace(command, "")
    return not any(mark in text for mark in ("$(", "`", "${"))
