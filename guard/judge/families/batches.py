"""xargs and parallel: a command for each of many inputs. Source: xargs(1), parallel(1)."""

from guard.judge import paths
from guard.judge.families.search import opens, prints
from guard.judge.levels import R2
from guard.judge.options import Grammar
from guard.judge.program import Call, Program
from guard.judge.rules import custom, perform
from guard.judge.shell.syntax import Expansion, Word
from guard.judge.shell.words import unknown
from guard.judge.variables import DANGEROUS_PREFIXES, DANGEROUS_VARIABLES
from guard.judge.wrappers import plain_text

EXAMPLES = {
    "R0": ("xargs -n1 echo", "ls | xargs -I{} stat {}", "find . -name x | xargs -0 grep -l foo",
        "parallel echo ::: a b",),
    "R2": ("xargs -I{} sh -c 'echo {}'", "find . | xargs -a f rm", "parallel < jobs",),
    "R3": ("xargs rm -rf", "parallel rm -rf ::: a b", "find . | xargs -I % sh -c 'rm -rf %'",
        "xargs -n 1 -P 4 sudo rm -rf",),
}  # fmt: skip

_XARGS = Grammar(
    "posix -0,--null -a,--arg-file:!read -d,--delimiter: -E: -e,--eof? -I: -i,--replace? -J: -L: -l,--max-lines? "
    "-n,--max-args: -o,--open-tty -P,--max-procs: -p,--interactive --process-slot-var: -r,--no-run-if-empty -R: "
    "-s,--max-chars: -S: --show-limits -t,--verbose -x,--exit --help --version"
)


def _xargs(call: Call) -> None:
    parsed = _XARGS.parse(call.args)
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, "xargs.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    for option in parsed.options:
        if option.name == "--process-slot-var":
            variable = call.value(option.value) if option.value is not None else None
            if variable is None or variable in DANGEROUS_VARIABLES or variable.startswith(DANGEROUS_PREFIXES):
                call.note(R2, "shell.variable", "sets a variable that changes what programs do", option.word, "law 2")
    words = list(call.args[parsed.rest :])
    if not words:
        return
    holder = ""
    for option in parsed.options:
        if option.name in ("-I", "-J") or option.name in ("-i", "--replace"):
            holder = (call.value(option.value) or "{}") if option.value is not None else "{}"
    if holder:
        words = [_filled(word, holder) for word in words]
    given = {option.name for option in parsed.options}
    found = _given(call, given, bool(holder))
    if found is None and not holder and "-0" in given and not given & {"-a", "-d", "-E", "-e"}:
        found = _found_before(call)
    if not holder:
        prefix = found[0] if found is not None else ""
        words.append(unknown(words[-1].span, splits=True, appended=True, prefix=prefix))
    call.judge.found = found
    call.argv(words, stdin=None)
    call.judge.found = None
    if opens(call, words[0].value) and call.stdin and len(call.stdin) < 4096:
        for piece in call.stdin.split():
            if paths.secret(paths.normal(piece)):
                call.reads(Word(call.span, piece, (), True))


def _given(call: Call, options: "set[str]", by_line: bool) -> "tuple[str, list[tuple[str, str]]] | None":
    """The names that xargs reads, where the text holds them and no option or quoting makes other words of them."""
    text = call.stdin
    if not text or options & {"-0", "-a", "-d", "-E", "-e"} or any(char in text for char in "'\"\\"):
        return None
    names = [line.strip() for line in text.split("\n")] if by_line else text.split()
    return "", [("", name) for name in names if name]


def _found_before(call: Call) -> "tuple[str, list[tuple[str, str]]] | None":
    """What a find right before it in the pipeline hands on with -print0, where that is all that comes."""
    ran = call.judge.ran
    own = next((at for at in reversed(range(len(ran))) if ran[at].words[0] is call.word), 0)
    pipe = ran[own].pipe
    # Pipelines are numbered as they begin: what has this number or a later one stands in this one, too.
    before = [each for each in ran[:own] if each.pipe >= pipe]
    if not pipe or len(before) != 1 or before[0].name not in ("find", "gfind") or before[0].depth != ran[own].depth:
        return None
    return prints(call.judge, before[0].words[1:])


def _filled(word: Word, holder: str) -> Word:
    """A word with the replacement string as a hole."""
    text = word.value
    if text is None or holder not in text:
        return word
    parts: list[str | Expansion] = []
    for index, piece in enumerate(text.split(holder)):
        if index:
            parts.append(Expansion("param", "", True))
        if piece:
            parts.append(piece)
    return Word(word.span, None, tuple(parts), True, False, False, appended=True)


_PARALLEL = Grammar(
    "posix -0,--null -j,--jobs,-P,--max-procs: -k,--keep-order -n,--max-args: -N: -L: -l? -m -X -I: "
    "-i? -d,--delimiter: -a,--arg-file:!read "
    "-C,--colsep: -q,--quote -t,--verbose -v --bar --eta --progress --dry-run,--dryrun --halt: "
    "--timeout: --retries: --delay: "
    "--tag --line-buffer,--lb --no-run-if-empty,-r -u,--ungroup --group --will-cite --pipe --block: "
    "--load: --memfree: --nice: "
    "--citation!R2 --joblog:!write --results:!write --resume --tmpdir: -S,--sshlogin:!R2 "
    "--sshloginfile:!R2 --env: --wd,--workdir: "
    "--transferfile:!R2 --return:!R2 --cleanup!R2 --tmux!R2 --shuf --max-lines: --help --version "
    "--plain --silent --xargs --trim: --tagstring:"
)  # fmt: skip


def _parallel(call: Call) -> None:
    parsed = _PARALLEL.parse(call.args)
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, "parallel.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    words = list(call.args[parsed.rest :])
    command: list[Word] = []
    inputs: list[list[Word]] = []
    for word in words:
        if word.value in (":::", ":::+", "::::", "::::+"):
            inputs.append([])
        elif inputs:
            inputs[-1].append(word)
        else:
            command.append(word)
    if parsed.has("--wd"):
        call.enters(parsed.value("--wd"))
    if not command:
        if inputs:
            for word in inputs[0]:
                call.code(word)
        else:
            call.opaque("parallel runs the lines it reads", None, "shell.stdin-code")
            if call.stdin:
                call.judge.text(call.stdin, call.span)
        return
    text = " ".join(word.shape for word in command)
    if any(word.value is None for word in command):
        call.opaque("a shell reads an expansion's value again", None, "shell.dynamic-code")
    filled = text.replace("{}", "X").replace("{.}", "X").replace("{/}", "X").replace("{1}", "X").replace("{2}", "X")
    known = [word for group in inputs for word in group]
    if known and all(word.value is not None and plain_text(word.value) for word in known):
        filled = filled if filled != text else f"{text} {known[0].value}"
        call.judge.text(filled, call.span)
        call.argv([_filled(word, "{}") for word in command])
        return
    if len(command) == 1 and any(char in text for char in " ;|&"):
        call.opaque("a shell reads the input lines again", None, "shell.dynamic-code")
        call.judge.text(filled, call.span)
        return
    # GNU parallel quotes what it puts in, so the input is data to the command.
    call.argv([_filled(word, "{}") for word in command] + [unknown(call.span, splits=True, appended=True)])


PROGRAMS: dict[str, Program] = {
    "xargs": custom(_xargs, plain=True),
    "parallel": custom(_parallel),
}  # fmt: skip
