"""What bash itself does: cd, echo, test, set, eval, exec, trap …. Source: bash(1)."""

from guard.judge.levels import R2, R3
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, table
from guard.judge.shellwords import LISTING_MODES, STRANGE_MODES
from guard.judge.variables import dangerous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.shell.syntax import Word

EXAMPLES = {
    "R0": ("cd /srv && ls", "echo hi", "[ -d /srv ]", "printf '%s\\n' a b", "set -euo pipefail", "type ls",
        "command -v git", "exec 2>&1", "eval 'ls -l'", "while read -r line; do echo \"$line\"; done", "trap - EXIT",
        "hash -r", "alias", "history", "umask 022; ls", "builtin echo hi",),
    "R2": ('eval "$X"', "source ./env.sh", ". /tmp/x", "trap 'rm x' EXIT", "alias ls='rm x'", "hash -p /tmp/x ls",
        "enable -f x y", "exec sh", "set -k", "set -o keyword", "shopt -so histexpand", "compgen -bC ls a",
        "printf -v PATH x", "read PATH", "set -o emacs; history -w /etc/passwd",),
    "R3": ("eval 'rm -rf /srv'", "trap 'rm -rf /srv' EXIT", "exec rm -rf /srv", "history -c", "command rm -r x",
        "builtin eval 'rm -r x'"),
}  # fmt: skip


def _cd(call: Call) -> None:
    judge = call.judge
    operands = [word for word in call.args if word.value not in ("-L", "-P", "-e", "-@", "--")]
    if not operands:
        judge.cwds.append("~")
        return
    back = operands[0].value == "-"
    if not back or len(judge.cwds) < 2:  # where a text has been is on the list already
        call.enters(None if back else operands[0])


def _eval(call: Call) -> None:
    words = list(call.args)
    if words and words[0].value == "--":
        words.pop(0)
    parts = [call.value(word) for word in words]
    if any(part is None for part in parts):
        call.opaque("eval of a text that is not literal", None, "shell.eval")
        shape = " ".join(word.shape for word in words)
        call.judge.text(shape, call.span)
        return
    text = " ".join(part for part in parts if part is not None)
    if text.strip():
        call.judge.text(text, call.span)


def _source(call: Call) -> None:
    call.note(R2, "shell.source", "runs a file that is not read here", None, "law 2")
    if call.args:
        call.reads(call.args[0])


def _exec(call: Call) -> None:
    words = list(call.args)
    while words and words[0].value is not None and words[0].value.startswith("-"):
        flag = words.pop(0).value or ""
        if flag == "--":
            break
        if "a" in flag and words:
            words.pop(0)
    if words:
        call.argv(words, stdin=call.stdin)


def _trap(call: Call) -> None:
    words = [word for word in call.args if word.value != "--"]
    if not words or words[0].value in ("-p", "-l", "-lp"):
        return
    if words[0].value in ("-", "") or (len(words) == 1 and words[0].value is not None and words[0].value.isalnum()):
        return
    call.note(R2, "shell.trap", "runs code later, when a signal or the exit comes", words[0], "law 2")
    call.code(words[0])


def _alias(call: Call) -> None:
    for word in call.args:
        if word.value is None or "=" in word.value:
            call.note(R2, "shell.alias", "gives a word another meaning", word, "law 2")
            if word.value is not None:
                call.judge.text(word.value.partition("=")[2] or ":", word.span)


def _hash(call: Call) -> None:
    for word in call.args:
        if word.value is None or (word.value.startswith("-") and word.value not in ("-r", "-l", "-t", "-lt")):
            call.note(R2, "shell.hash", "makes a name mean another file", word, "law 2")


def _enable(call: Call) -> None:
    if any(word.value is None or not word.value.startswith("-") or set(word.value) - set("-aps") for word in call.args):
        call.note(R2, "shell.enable", "loads or switches off builtins", None, "law 2")


def _sets(call: Call, name: str, word: "Word") -> None:
    if dangerous(name) and name.isidentifier():
        call.note(R2, "shell.variable", f"sets {name}, which changes what programs do", word, "law 2")


def _subscript(call: Call, value: str, word: "Word") -> None:
    """A name with a subscript, given as data: bash works the subscript out, and runs what stands in it."""
    inner = value.partition("[")[2].rstrip("]")
    if "[" not in value or inner in ("@", "*") or inner.isdigit():
        return
    call.flag("evaluates")
    if "$" in value or "`" in value:
        call.note(R2, "shell.subscript", "bash runs what stands in the subscript", word, "law 2")
        call.hidden(value, word)


def _names(call: Call) -> None:
    """read, mapfile, getopts, let …: they assign names."""
    for word in call.args:
        value = word.value
        if value is None:
            if call.name in ("read", "mapfile", "readarray", "let", "unset", "wait", "local", "getopts"):
                call.flag("evaluates")
            continue
        _sets(call, value.split("[")[0].split("=")[0], word)
        if call.name != "let" and value.isascii() and value[:1].isalpha():
            _subscript(call, value, word)
    if call.name == "let":
        for word in call.args:
            value = word.value or ""
            if "$(" in value or "`" in value or "[" in value:
                call.note(R2, "shell.subscript", "bash evaluates the text again", word, "law 2")
                call.hidden(value, word)
    if call.name in ("mapfile", "readarray"):
        for index, word in enumerate(call.args):
            if word.value is not None and word.value.startswith("-") and "C" in word.value:
                call.note(R2, "shell.callback", "runs code for the lines it reads", word, "law 2")
                attached = word.value.partition("C")[2]
                if attached:
                    call.judge.text(attached, word.span)
                else:
                    call.code(call.args[index + 1] if index + 1 < len(call.args) else None)


def _printf(call: Call) -> None:
    args = call.args
    if not args:
        return
    first = args[0].value
    if first is None:
        if args[0].splits:
            call.flag("options-from-expansion", "evaluates")
        return
    if not first.startswith("-v"):
        return
    word = args[1] if first == "-v" and len(args) > 1 else args[0]
    target = word.value if first == "-v" else first[2:]
    if target is None:
        call.opaque("a variable name that the text does not tell", word, "shell.dynamic-name")
        return
    _sets(call, target.split("[")[0], word)
    if "[" in target and not target.partition("[")[2].rstrip("]").isdigit():
        call.note(R2, "shell.subscript", "bash runs what stands in the subscript", word, "law 2")
        call.hidden(target, word)


def _test(call: Call) -> None:
    for index, word in enumerate(call.args):
        if word.value in ("-v", "-R") and index + 1 < len(call.args):
            follower = call.args[index + 1].value
            if follower is None:
                call.flag("evaluates")
            else:
                _subscript(call, follower, word)


_MODE_LETTERS = frozenset("abefhmnprtuvxBCEPT")


def _set(call: Call) -> None:
    """`set`: options until the first operand; `-k` and history expansion make another text of the one that is read."""
    words = list(call.args)
    while words:
        word = words.pop(0)
        value = word.value
        if value is None:
            if not word.quoted and not word.prefix.strip("-+"):
                # It may be options, and it may be nothing, so that the next word is one.
                call.flag("options-from-expansion")
                continue
            return
        if value in ("--", "-") or value[:1] not in ("-", "+") or len(value) < 2:
            return
        letters = value[1:]
        if value[0] == "-" and set(letters) - _MODE_LETTERS - {"o"}:
            call.note(R2, "shell.mode", f"{value} gives words another meaning", word, "law 2")
        if "f" in letters:
            call.judge.lists_otherwise |= 2
        mode = words.pop(0) if "o" in letters and words else None
        if mode is not None:
            _mode(call, mode)
        if value[0] == "-" and ("a" in letters or (mode is not None and mode.value == "allexport")):
            # From here on programs get every variable, whatever it means to them.
            call.flag("helper")


def _mode(call: Call, word: "Word") -> None:
    if word.value is None:
        call.opaque("a mode that the text does not tell", word, "shell.mode")
    elif word.value in LISTING_MODES:
        call.judge.lists_otherwise |= 2
    elif word.value in STRANGE_MODES:
        call.note(R2, "shell.mode", f"{word.value} gives words another meaning", word, "law 2")


def _shopt(call: Call) -> None:
    options = [word for word in call.args if word.value is None or word.value.startswith("-")]
    if any("u" in (word.value or "u") for word in options) and any(word.value in LISTING_MODES for word in call.args):
        call.judge.lists_otherwise |= 2
    if all(word.value is not None and "s" not in word.value for word in options):
        return
    for word in call.args:
        if word.value is None or not word.value.startswith("-"):
            _mode(call, word)


def _history(call: Call) -> None:
    for word in call.args:
        value = word.value
        if value is None or (value.startswith("-") and not value[1:].isdigit()):
            call.note(
                R3 if value is not None and "c" in value else R2,
                "shell.history",
                "changes the history or runs from it",
                word,
            )


def _command(call: Call) -> None:
    words = list(call.args)
    while words:
        value = words[0].value
        if value is None or not value.startswith("-"):
            break
        words.pop(0)
        if value == "--":
            break
        if "v" in value or "V" in value:
            # Names are looked up and nothing runs; but what looks like a command with options was meant as one.
            if not any((word.value or "").startswith("-") for word in words[1:]):
                return
            words = words[1:] if words[0].value == "--" else words
            break
    if words:
        call.argv(words, stdin=call.stdin)


def _builtin(call: Call) -> None:
    words = [word for word in call.args if word.value != "--"]
    if words:
        call.argv(words, stdin=call.stdin)


_COMPLETE_LETTERS = frozenset("abcdefgjksuvoAGXPSWpDEIr")
_BIND_LETTERS = frozenset("lpPsSvVX")
_TAKES_VALUE = frozenset("oAGXPSWCF")


def _complete(call: Call) -> None:
    allowed = _BIND_LETTERS if call.name == "bind" else _COMPLETE_LETTERS
    words = list(call.args)
    while words:
        word = words.pop(0)
        value = word.value
        if value is None or "$" in value or "`" in value:
            call.note(R2, "shell.complete", "runs code, now or at the next completion", word, "law 2")
            if value is not None:
                call.hidden(value, word)
        elif value.startswith("-") and len(value) > 1:
            for at, letter in enumerate(value[1:], 2):
                if letter not in allowed:
                    call.note(R2, "shell.complete", "runs code, now or at the next completion", word, "law 2")
                if letter in _TAKES_VALUE and call.name != "bind":
                    if letter == "C" and value[at:]:
                        call.judge.text(value[at:], word.span)
                    elif letter == "C" and words:
                        call.code(words[0])
                    break
        elif call.name == "bind":
            call.note(R2, "shell.bind", "gives keys another meaning", word, "law 2")


def _export(call: Call) -> None:
    """Only reached when a wrapper or builtin names it as data (`command export X=1`)."""
    for word in call.args:
        name = (word.value or "").split("=")[0]
        if word.value is None:
            call.opaque("a variable name that the text does not tell", word, "shell.dynamic-name")
        elif dangerous(name.split("[")[0].rstrip("+")) or (call.name == "export" and value_is_function(word.value)):
            call.note(R2, "shell.variable", f"sets {name}, which changes what programs do", word, "law 2")


def value_is_function(value: str) -> bool:
    return value.startswith("-") and ("f" in value or "n" in value)


DATA = custom(lambda call: None, plain=True)


def _jobs(call: Call) -> None:
    """`jobs -x` runs the command that follows, with job numbers put in."""
    words = list(call.args)
    while words and (words[0].value is None or words[0].value.startswith("-")):
        flag = words.pop(0).value
        if flag is None:
            call.opaque("an option that the text does not tell")
        elif "x" in flag:
            call.argv(words)
            if not words:
                call.opaque("an action without a command")
            return


PROGRAMS: dict[str, Program] = {
    **many(": true false exit return break continue shift type pwd times ulimit umask caller dirs unalias "
        "logout help echo", DATA),
    "jobs": custom(lambda call: _jobs(call), plain=True),
    **many("unset wait local", custom(lambda call: _names(call), plain=True)),
    "printf": custom(_printf, plain=True),
    **many("test [", custom(_test, plain=True)),
    **many("cd pushd popd", custom(_cd, plain=True)),
    "set": custom(_set, plain=True),
    "shopt": custom(_shopt, plain=True),
    "eval": custom(_eval),
    **many("source .", custom(_source)),
    "exec": custom(_exec, plain=True),
    "command": custom(_command, plain=True),
    "builtin": custom(_builtin, plain=True),
    "trap": custom(_trap),
    "alias": custom(_alias, plain=True),
    "hash": custom(_hash, plain=True),
    "enable": custom(_enable),
    **many("read mapfile readarray getopts let", custom(_names, plain=True)),
    **many("export declare typeset readonly", custom(_export, plain=True)),
    "history": custom(_history, plain=True),
    **many("complete compopt bind compgen", custom(_complete)),
    **many("fg bg", DATA),
    "disown": table("", operands="data", level="R1", text="lets a job outlive its shell"),
    "suspend": table("", operands="data", level="R1"),
    "fc": table("-l -n -r -e:!exec -s!exec", operands="data", level="R2", text="edits and runs old commands"),
    "coproc": custom(lambda call: call.argv(list(call.args), stdin=""), plain=False),
}  # fmt: skip
