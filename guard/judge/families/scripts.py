"""sed and awk: small languages, read far enough to know whether a script writes a file or runs a program."""

from guard.judge.awk import read_awk
from guard.judge.levels import R1, R2
from guard.judge.options import Grammar, Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, perform
from guard.judge.sed import read_sed
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
        read_sed(call, "\n".join(pieces), scripts[0])
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
        read_awk(call, value, word)
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


PROGRAMS: dict[str, Program] = {
    **many("sed gsed", custom(_sed, plain=True)),
    **many("awk gawk mawk nawk original-awk", custom(_awk, plain=True)),
}
