"""sed and awk: small languages, read far enough to know whether a script writes a file or runs a program."""

from guard.judge.levels import R1, R2
from guard.judge.options import Grammar, Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, perform
from guard.judge.shell.syntax import Word

EXAMPLES = {
    "R0": ("sed -n '1,5p' f", "sed 's/a/b/g' f", "sed -e 's|/w|x|' -e '/foo/d' f", "sed '/^#/d; s/ *$//' f",
        "sed '$!N;P;D' f", "awk '{print $1}' f", "awk -F: '$3 > 100 {print $1}' /etc/passwd",
        "awk 'BEGIN {x = 1 > 0; print x}'", "awk '{print (a > b)}' f", "awk '/a|b/ {n++} END {print n}' f",
        "awk '{printf \"%s|%s\\n\", $1, $2}' f", "awk '$1 ~ \"x|y\" || $2 {print}' f", "sed -n '/a/,/b/{p;}' f",
        "awk '{gsub(/\\|/, \">\"); print}' f", "sed = f", "sed 'y/abc/def/' f", "sed '1i\\ hello' f",
        "sed -n '$=' f", "awk 'NR % 2 == 0' f", "sed 5q f", "sed -ne '/x/{=;p}' f",
        "awk '{ s += $1 / 2; t = s / 3 } END { print s }' f", "gawk 'BEGIN{print length(\"a>b\")}'",),
    "R1": ("sed -i 's/a/b/' f", "sed -n 'w out' f", "sed 's/a/b/w out' f", "sed --in-place=.bak s/a/b/ f",
        "awk '{print > \"out\"}' f", "sed -ni p f"),
    "R2": ("sed '1e id' f", "sed e f", "sed 's/a/id/e' f", "sed -f x f", "awk '{system($1)}' f",
        "awk '{print | \"sort\"}' f", "awk '{\"date\" | getline d}' f", "awk -f x f", "awk -i inplace '{print}' f",
        "awk '{print > $1}' f", "sed -i s/a/b/ /etc/ssh/sshd_config", "awk '@load \"x\"'", "awk \"$X\" f",
        "sed -n '/x/{p;w /etc/passwd' f", "awk 'BEGIN{@f()}'", "sed \"$X\" f", "awk '{print |& \"x\"}'",
        "sed 'R /etc/shadow' f", "awk 'BEGIN{while((getline l < \"/etc/shadow\")>0) print l}'",),
    "R3": ("sed -n 'w /dev/sda' f", "awk 'BEGIN{system(\"rm -rf /srv\")}'",
        "awk 'BEGIN { print \"x\" > \"/dev/sda\" }'"),
}  # fmt: skip

_SED = Grammar(
    "-n,--quiet,--silent --debug -e,--expression: -f,--file: --follow-symlinks -i,--in-place? -I? "
    "-l,--line-length: --posix -E,-r,--regexp-extended "
    "-s,--separate --sandbox -u,--unbuffered -z,--null-data --help --version -a"
)  # fmt: skip


def _sed(call: Call) -> None:
    parsed = _SED.parse(call.args)
    for word in parsed.unknown:
        call.note(R2, "sed.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    operands = parsed.operands
    scripts: list[Word | None] = []
    for option in parsed.options:
        if option.name == "-e":
            scripts.append(option.value)
        elif option.name == "-f":
            scripts.append(None)
            if option.value is not None:
                call.reads(option.value)
            call.note(R2, "sed.script-file", "runs a script that is not read here", option.word, "law 2")
    if not scripts and operands:
        scripts.append(operands[0])
        operands = operands[1:]
    inplace = any(option.name in ("-i", "-I") for option in parsed.options)
    pieces: list[str] = []
    for script in scripts:
        if script is None:
            continue
        value = call.value(script)
        if value is None:
            _dynamic_sed(call, script)
        else:
            pieces.append(value)
    if pieces:
        _sed_script(call, "\n".join(pieces), scripts[0])
    if parsed.loose:
        call.flag("options-from-expansion")
    for word in operands:
        if inplace:
            for option in parsed.options:
                if option.name in ("-i", "-I") and option.value is not None:
                    call.makes_beside(word, option.value.shape)  # a backup (sed(1), -i SUFFIX)
            call.writes(word)
        else:
            call.reads(word)
    if inplace and not operands:
        call.note(R1, "sed.in-place", "edits files in place")


def _dynamic_sed(call: Call, word: Word) -> None:
    """A script with expansions: what they bring could be `e` or `w`."""
    call.opaque("a sed script that the text does not tell", word, "sed.dynamic")


def _sed_script(call: Call, text: str, word: "Word | None") -> None:
    at, end = 0, len(text)

    def skip_blank(index: int) -> int:
        while index < end and text[index] in " \t\n;{}":
            index += 1
        return index

    def skip_regex(index: int, mark: str) -> int:
        """After the opening mark: the index behind the closing one, or -1."""
        inside = False
        while index < end:
            char = text[index]
            if char == "\\":
                index += 2
                continue
            if char == "[" and not inside:
                inside = True
                index += 1
                if index < end and text[index] == "^":
                    index += 1
                if index < end and text[index] == "]":
                    index += 1
                continue
            if char == "[" and inside and text[index : index + 2] in ("[:", "[.", "[="):
                close = text.find(text[index + 1] + "]", index + 2)
                index = close + 2 if close > 0 else index + 1
                continue
            if char == "]" and inside:
                inside = False
            elif char == mark and not inside:
                return index + 1
            index += 1
        return -1

    def skip_plain(index: int, mark: str) -> int:
        while index < end:
            if text[index] == "\\":
                index += 2
                continue
            if text[index] == mark:
                return index + 1
            index += 1
        return -1

    def name_until_line(index: int) -> "tuple[str, int]":
        stop = text.find("\n", index)
        stop = end if stop < 0 else stop
        return text[index:stop].strip(), stop

    def writes(name: str) -> None:
        call.writes(Word(word.span if word is not None else call.span, name, (), True))

    while True:
        at = skip_blank(at)
        if at >= end:
            return
        # addresses
        while at < end:
            char = text[at]
            if char.isdigit() or char in "$,~+! \t":
                at += 1
            elif char == "/":
                at = skip_regex(at + 1, "/")
            elif char == "\\" and at + 1 < end:
                at = skip_regex(at + 2, text[at + 1])
            elif char in "IM" and at > 0 and text[at - 1] not in " \t\n;{}":
                at += 1
            else:
                break
            if at < 0:
                call.opaque("a sed script that could not be read", word, "sed.unread")
                return
        if at >= end:
            return
        char = text[at]
        at += 1
        if char == "#":
            at = name_until_line(at)[1]
        elif char in "{}" or char in "=dDgGhHnNpPxzF":
            continue
        elif char in "qQlL":
            while at < end and text[at] in " \t0123456789":
                at += 1
        elif char in "aic":
            # GNU one-liner or the classic form with a backslash: text up to an unescaped newline.
            while at < end:
                if text[at] == "\\":
                    at += 2
                    continue
                if text[at] == "\n":
                    break
                at += 1
        elif char in ":bBtT":
            while at < end and text[at] not in "\n;}":
                at += 1
        elif char == "r" or char == "R":
            name, at = name_until_line(at)
            call.reads(Word(word.span if word is not None else call.span, name, (), True))
        elif char == "w" or char == "W":
            name, at = name_until_line(at)
            writes(name)
        elif char == "e":
            command, at = name_until_line(at)
            call.note(R2, "sed.execute", "the script runs a command", word, "sed(1)")
            if command:
                call.judge.text(command, word.span if word is not None else call.span)
        elif char == "v":
            at = name_until_line(at)[1]
        elif char == "y" and at < end:
            mark = text[at]
            at = skip_plain(at + 1, mark)
            at = skip_plain(at, mark) if at > 0 else -1
        elif char == "s" and at < end:
            mark = text[at]
            at = skip_regex(at + 1, mark)
            at = skip_plain(at, mark) if at > 0 else -1
            while 0 < at < end and text[at] not in "\n;}# \t":
                flag = text[at]
                at += 1
                if flag == "e":
                    call.note(R2, "sed.execute", "the script runs what it makes of the line", word, "sed(1)")
                elif flag == "w":
                    name, at = name_until_line(at)
                    writes(name)
                elif flag not in "gpiImM0123456789":
                    call.opaque("a sed script that could not be read", word, "sed.unread")
                    return
        else:
            call.opaque("a sed script that could not be read", word, "sed.unread")
            return
        if at < 0:
            call.opaque("a sed script that could not be read", word, "sed.unread")
            return


_AWK = Grammar(
    "posix -F,--field-separator: -v,--assign: -f,--file: -e,--source: -i,--include: -l,--load: "
    "-E,--exec: -b -c -C -d,--dump-variables? -D,--debug? "
    "-g -h -L,--lint? -M -n -N -o,--pretty-print? -O -p,--profile? -P -r -s -S,--sandbox -t -V "
    "--posix --traditional --re-interval --version --help "
    "--csv -k --characters-as-bytes --non-decimal-data -W:"
)  # fmt: skip


def _awk(call: Call) -> None:
    parsed: Parsed = _AWK.parse(call.args)
    perform(call, parsed)
    operands = list(parsed.operands)
    programs: list[Word] = []
    for word in parsed.unknown:
        call.note(R2, "awk.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    for option in parsed.options:
        if option.name in ("-f", "-E", "-i", "-l"):
            call.note(R2, "awk.script-file", "runs a script that is not read here", option.word, "law 2")
        elif option.name in ("-d", "-o", "-p", "-D"):
            call.note(R1, "awk.option", f"{option.name} writes a file", option.word)
        elif option.name == "-W":
            call.opaque("an option that is not read here", option.word)
        elif option.name == "-e" and option.value is not None:
            programs.append(option.value)
        elif option.name == "-v" and option.value is not None:
            _awk_value(call, option.value)
    has_file = any(option.name in ("-f", "-e", "-E") for option in parsed.options)
    if not has_file and operands:
        programs.append(operands.pop(0))
    for word in programs:
        value = call.value(word)
        if value is None:
            call.opaque("an awk program that the text does not tell", word, "awk.dynamic")
            value = word.shape
        awk_program(call, value, word)
    for word in operands:
        value = word.value
        if value is not None and "=" in value and value.split("=", 1)[0].isidentifier():
            _awk_value(call, word)
            continue
        call.reads(word)


def _awk_value(call: Call, word: Word) -> None:
    """A value given to a variable: the program may read the file that it names."""
    value = call.value(word)
    text = (value or "").partition("=")[2]
    if text.startswith(("/", "~")):
        if text.startswith("/inet"):
            call.note(R2, "awk.network", "the program talks over the network", word, "gawk(1)")
        call.reads(Word(word.span, text, (), True))


_REGEX_BEFORE = frozenset("(,{};!&|~=<>+-*%^?:\n")


def awk_program(call: Call, text: str, word: Word) -> None:
    """Reads an awk program's tokens; notes what writes, runs or reads beyond its input."""
    at, end = 0, len(text)
    last = "\n"
    """The last token that counts: a character, `x` for an operand, or a word."""
    printing = False
    depth = 0
    strings: list[str] = []
    getline = False
    while at < end:
        char = text[at]
        if char in " \t\r":
            at += 1
            continue
        if char == "\\" and at + 1 < end and text[at + 1] == "\n":
            at += 2
            continue
        if char == "#":
            stop = text.find("\n", at)
            at = end if stop < 0 else stop
            continue
        if char == '"':
            stop = at + 1
            while stop < end and text[stop] != '"':
                stop += 2 if text[stop] == "\\" else 1
            if stop >= end:
                call.opaque("an awk program that could not be read", word, "awk.unread")
                return
            strings.append(text[at + 1 : stop])
            if text.startswith("/inet", at + 1):
                call.note(R2, "awk.network", "the program talks over the network", word, "gawk(1)")
            if getline and last == "<":
                call.reads(Word(word.span, text[at + 1 : stop], (), True))
            last = "string"
            at = stop + 1
            continue
        if char == "/" and (
            last in _REGEX_BEFORE or last in ("print", "printf", "return", "in", "case", "getline", "do", "else")
        ):
            stop = at + 1
            inside = False
            while stop < end and (text[stop] != "/" or inside):
                if text[stop] == "\\":
                    stop += 2
                    continue
                if text[stop] == "[":
                    inside = True
                elif text[stop] == "]":
                    inside = False
                elif text[stop] == "\n":
                    break
                stop += 1
            if stop >= end or text[stop] != "/":
                # Not closed outside brackets: read again without the bracket rule.
                stop = at + 1
                while stop < end and text[stop] not in "/\n":
                    stop += 2 if text[stop] == "\\" else 1
                if stop >= end or text[stop] != "/":
                    call.opaque("an awk program that could not be read", word, "awk.unread")
                    return
            last = "x"
            at = stop + 1
            continue
        if char.isalpha() or char == "_":
            stop = at
            while stop < end and (text[stop].isalnum() or text[stop] == "_"):
                stop += 1
            name = text[at:stop]
            at = stop
            if name == "system":
                _awk_system(call, text, at, word)
            elif name in ("print", "printf"):
                printing, depth = True, 0
            elif name == "getline":
                getline = True
                last = "getline"
                continue
            last = name if name in ("print", "printf", "return", "in", "case", "do", "else") else "x"
            continue
        if char == "@":
            call.note(R2, "awk.indirect", "loads an extension or calls a function by name", word, "gawk(1)")
            at += 1
            last = "@"
            continue
        if char == "|":
            if text[at + 1 : at + 2] == "|":
                at += 2
                last = "|"
                continue
            call.note(R2, "awk.pipe", "the program runs another program", word, "awk(1)")
            for value in strings[-1:]:
                call.judge.text(value, word.span if word.span != (0, 0) else call.span)
            follower = text[at + 1 :].lstrip("& \t")
            if follower.startswith('"'):
                close = follower.find('"', 1)
                if close > 0:
                    call.judge.text(follower[1:close], word.span if word.span != (0, 0) else call.span)
            at += 1
            last = "|"
            continue
        if char in "([{":
            depth += char == "("
            if char == "{":
                printing = False
        elif char in ")]":
            depth -= char == ")"
            last = "x"
            at += 1
            continue
        elif char in ";\n}":
            printing, getline = False, False
            depth = 0 if char != ";" or depth <= 0 else depth
        elif char == ">" and printing and depth <= 0:
            stop = at + (2 if text[at + 1 : at + 2] == ">" else 1)
            while stop < end and text[stop] in " \t":
                stop += 1
            close = text.find('"', stop + 1) if text[stop : stop + 1] == '"' else -1
            tail = text[close + 1 :].lstrip(" \t") if close > 0 else "x"
            if close > 0 and (not tail or tail[0] in ";}\n)#"):
                call.writes(Word(word.span, text[stop + 1 : close], (), True))
            else:
                call.note(R2, "awk.write", "writes files whose names the text does not tell", word, "awk(1)")
            at = stop
            last = ">"
            continue
        elif char == "<" and getline:
            last = "<"
            at += 1
            continue
        last = "x" if char.isdigit() or char == "." else char
        at += 1


def _awk_system(call: Call, text: str, at: int, word: Word) -> None:
    call.note(R2, "awk.system", "the program runs another program", word, "awk(1)")
    rest = text[at:].lstrip()
    if rest.startswith("("):
        rest = rest[1:].lstrip()
        if rest.startswith('"'):
            stop = 1
            while stop < len(rest) and rest[stop] != '"':
                stop += 2 if rest[stop] == "\\" else 1
            call.judge.text(rest[1:stop], word.span if word.span != (0, 0) else call.span)


PROGRAMS: dict[str, Program] = {
    **many("sed gsed", custom(_sed, plain=True)),
    **many("awk gawk mawk nawk original-awk", custom(_awk, plain=True)),
}
