"""How a command reaches `check`, `explain`, `exec` and `approve` (docs/cli.md, "command text").

After `--`, one word is bash text and several words are an argv, shell-quoted one by one. Without `--`, exactly one
word means the same as after it. `-f FILE` and `-` read the text from a file or from standard input, byte for byte.
"""

from guard.errors import BadCommand, UsageError
from guard.quoting import joined
from guard.types import MAX_COMMAND_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from cli.options import Parsed


def command_of(parsed: "Parsed") -> str:
    """The command that the arguments name, exactly.

    Raises:
        UsageError: none, or more than one way of saying it.
        BadCommand: a file or standard input that is too long or not UTF-8.
    """
    path = parsed.value("file")
    if path:
        if parsed.words:
            raise UsageError("the command comes from --file and from the command line", hint=parsed.help_line())
        return _from_file(path)
    if not parsed.words:
        raise UsageError("no command was given", hint=f"{parsed.program} {parsed.verb.name} -- CMD")
    if parsed.words == ["-"] and not parsed.ended:
        return _from_file("-")
    if len(parsed.words) == 1:
        return parsed.words[0]
    if not parsed.ended:
        raise UsageError(
            f"{len(parsed.words)} words were given without `--`; which of them the shell has split is not known here",
            hint=f"{parsed.program} {parsed.verb.name} -- {joined(parsed.words)[:200]}",
        )
    return joined(parsed.words)


def _from_file(path: str) -> str:
    import os

    try:
        fd = 0 if path == "-" else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            data = b""
            while len(data) <= MAX_COMMAND_BYTES + 1:
                block = os.read(fd, MAX_COMMAND_BYTES + 2 - len(data))
                if not block:
                    break
                data += block
        finally:
            if fd:
                os.close(fd)
    except OSError as error:
        raise UsageError(f"cannot read the command from {path!r}: {error.strerror}") from None
    if len(data) > MAX_COMMAND_BYTES + 1:
        raise BadCommand(
            f"the command is longer than {MAX_COMMAND_BYTES:,} bytes",
            hint="put the script into a file and run the file",
        )
    # One final newline is the file's, not the command's; bash reads both alike.
    return data.removesuffix(b"\n").decode("utf-8", "surrogateescape")
