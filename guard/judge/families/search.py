"""find, grep and their kin: what walks trees and looks for things."""

from guard.judge.families import credentials
from guard.judge.levels import R1, R2, R3
from guard.judge.options import Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, reader
from guard.judge.shell.syntax import Expansion, Word
from guard.judge.shell.words import unknown
from guard.judge.tables import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from guard.judge.engine import Judge

EXAMPLES = {
    "R0": ("find . -name '*.log' -mtime +7", "find / -size +100M -print0", "find . -type f -exec grep -l x {} +",
        "find . -exec ls -l {} \\;", "find . \\( -name a -o -name b \\) -printf '%p\\n'", "grep -rn 'rm -rf' .",
        "grep -E 'a|b' f", "rg foo src", "rg -n -g '*.py' foo", "fd foo", "ag foo",
        "find . -exec sh -c 'ls -l \"$1\"' _ {} \\;", "locate x", "grep -c ^processor /proc/cpuinfo",
        "find . -newer f -ls", "git grep foo",),
    "R1": ("find . -fprint out", "find . -fls out", "find . -fprintf out %p"),
    "R2": ("rg --pre x foo", "rg --hostname-bin=x foo", "ag --pager x foo", "find . -exec foo {} \\;",
        "find . -exec chmod 777 {} +", "grep x /etc/shadow", "find . -exec sh -c 'echo {}' \\;",
        "find . -okdir foo {} \\;", "fd . -x foo", "find . -nosuch",),
    "R3": ("find . -delete", "find . -name x -exec rm -rf {} +", "find . -ok rm -r {} \\;",
        "find . -execdir rm -rf {} \\;", "fd . -x rm -rf"),
}  # fmt: skip

_FIND_VALUE = names("""
    -amin -anewer -atime -cmin -cnewer -context -ctime -fstype -gid -group -ilname -iname -inum -ipath -iregex
    -iwholename -links -lname -maxdepth -mindepth -mmin -mtime -name -newer -path -perm -printf -regex -regextype
    -samefile -size -type -uid -used -user -wholename -xtype -D -flags -Bmin -Btime -Bnewer -newerXY -xattrname
    -depth_ -f
""")
_FIND_FLAG = names("""
    -daystart -depth -d -empty -executable -false -follow -ignore_readdir_race -ls -mount -nogroup
    -noignore_readdir_race -noleaf -nouser -print -print0 -prune -quit -readable -true -warn -nowarn -writable -xdev
    -H -L -P -not -and -or -a -o ! ( ) , -help -version --help --version -E -X -x -s -O0 -O1 -O2 -O3 -xattr -sparse
    -acl
""")
_FIND_NAMES = frozenset(("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename"))
_FIND_FILE = frozenset(("-fprint", "-fprint0", "-fls"))
_FIND_ACTIONS = frozenset(("-delete", "-exec", "-execdir", "-ok", "-okdir", "-rm", "-fprint", "-fls"))
_FIND_RUN = frozenset(("-exec", "-execdir", "-ok", "-okdir"))


_UNOPENED = names("""
    ls stat echo printf basename dirname realpath readlink du test [ true false file lsattr getfacl touch chmod chown rm
    rmdir mv ln mkdir unlink : dir
""")
"""Programs that take a file's name without showing what is in it."""


def opens(call: Call, program: "str | None") -> bool:
    """Whether a program that is run for many files shows their contents: then they are read unseen, as a tree is."""
    if program is None or program in _UNOPENED:
        return False
    call.judge.flags.add("recursive-read")
    call.judge.plain = False
    return True


def find(call: Call) -> None:
    """find(1): an expression in which some words act."""
    _Find(call).read()


class _Find:
    """A find command that is being read; `at` is the next word."""

    __slots__ = ("call", "args", "at", "paths", "wanted", "started")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.args = call.args
        self.at = 0
        self.paths: list[Word] = []
        """Where it starts."""
        self.wanted: list[Word] = []
        """Names that it looks for."""
        self.started = False
        """The expression has begun."""

    def read(self) -> None:
        args = self.args
        while self.at < len(args):
            word = args[self.at]
            value = word.value
            self.at += 1
            if value is None or word.globs:
                self.untold(word)
            elif value in _FIND_FLAG:
                self.started = self.started or value not in ("-H", "-L", "-P")
            elif value in _FIND_VALUE or (value.startswith("-newer") and len(value) == 8):
                self.test(value)
            elif value in ("-delete", "-rm"):
                self.call.note(R3, "find.delete", "removes everything that it finds", word)
            elif value in _FIND_FILE or value == "-fprintf":
                self.writes(word, value)
            elif value in _FIND_RUN:
                self.runs(word, value)
            elif value == "-files0-from":
                if self.at < len(args):
                    self.call.reads(args[self.at])
                self.at += 1
            elif value.startswith("-"):
                self.started = True
                if not (value.startswith("-O") or value.lstrip("-").isdigit()):
                    self.call.note(R2, "find.unknown", f"{value} is not a known test or action", word, "law 2")
            elif not self.started:
                self.paths.append(word)

    def untold(self, word: Word) -> None:
        prefix = word.prefix
        if prefix and prefix[0] != "-":
            if not self.started:
                self.paths.append(word)
        elif prefix and word.quoted and not word.splits and not word.globs:
            self.call.opaque("a test or action that the text does not tell", word)
        else:
            self.call.flag("options-from-expansion")

    def test(self, value: str) -> None:
        """A test with a value; a value that reads like an action was hardly meant as one."""
        args, at = self.args, self.at
        self.started = True
        if at < len(args) and args[at].value in _FIND_ACTIONS:
            what = f"{value} takes {args[at].value} as its value, which was hardly meant"
            self.call.note(R3, "find.value", what, args[at])
        elif value in _FIND_NAMES and at < len(args) and (at < 2 or args[at - 2].value not in ("!", "-not")):
            self.wanted.append(args[at])
        self.at += 1

    def writes(self, word: Word, value: str) -> None:
        self.started = self.started or value != "-fprintf"
        if self.at < len(self.args):
            self.call.writes(self.args[self.at])
        elif value != "-fprintf":
            self.call.opaque("an action without its file", word)
        self.at += 2 if value == "-fprintf" else 1

    def runs(self, word: Word, value: str) -> None:
        """`-exec COMMAND ;` and its kin, `+` at the end where `{}` stands before it."""
        call, args, at = self.call, self.args, self.at
        self.started = True
        end = at
        while end < len(args) and args[end].value not in (";", "+"):
            end += 1
        if end < len(args) and args[end].value == "+" and (args[end - 1].value != "{}"):
            later = end + 1
            while later < len(args) and args[later].value != ";":
                later += 1
            end = later if later < len(args) else end
        self.at = end + 1
        inner = [_found(piece, self.paths) for piece in args[at:end]]
        if not inner:
            call.opaque("an action without a command", word)
            return
        call.judge.found = below(call.judge, args, self.paths)
        if value.endswith("dir"):
            call.enters(None)
        call.argv(inner)
        call.judge.found = None
        if opens(call, inner[0].value):
            for name in self.wanted:
                call.reads(name)
            credentials(call, self.paths)


def below(
    judge: "Judge", args: "Sequence[Word]", paths: "Sequence[Word]"
) -> "tuple[str, list[tuple[str, str]]] | None":
    """Where everything that find meets lies: its starting points with all that is in them, and what links in there
    lead to, which most programs follow. None where the text does not tell."""
    values = [word.value for word in args]
    first = next((at for at, word in enumerate(args) if (word.value or "").startswith(("-", "(", "!"))), 0)
    told = all(word.value is not None for word in args[:first])
    if not told or any(value in ("-L", "-follow", "-files0-from") for value in values):
        return None
    kind = "-tree" if _meets_no_links(values) else "-tree-links"
    # Told against the folders of now: an action of -execdir runs elsewhere.
    found = [] if paths else [(kind, place) for place in judge.places(".")]
    for word in paths:
        value = word.value or ""
        if word.globs:
            listed = judge.listed_places(value, word.patterns.get(0, value))
            if any(one is None for _, one in listed):
                return None
            found += [(f"{kind}-glob", one or "") for _, one in listed]
        else:
            found += [(kind, place) for place in judge.places(value)]
    return _prefix(paths), found


def prints(judge: "Judge", args: "Sequence[Word]") -> "tuple[str, list[tuple[str, str]]] | None":
    """What find hands on with a zero byte behind each name (`-print0`), as `below` says it; None for anything else."""
    values = [word.value for word in args]
    others = _FIND_ACTIONS | {"-print", "-ls", "-printf", "-fprint0", "-fprintf", "-H", "-L", "-P", None}
    if values.count("-print0") != 1 or not others.isdisjoint(values):
        return None
    first = next((at for at, value in enumerate(values) if (value or "").startswith(("-", "(", "!"))), 0)
    paths = args[:first]
    # A name that begins with a dash could be read as an option.
    return None if any((word.value or "")[:1] in "*?[" for word in paths) else below(judge, args, paths)


def _meets_no_links(values: "list[str | None]") -> bool:
    """Whether the expression as a whole asks for files or folders alone."""
    if any(value in ("-o", "-or", ",", "!", "-not", "(") for value in values):
        return False
    return any(value == "-type" and values[at + 1 : at + 2] in (["f"], ["d"]) for at, value in enumerate(values))


def _found(word: Word, paths: "list[Word]") -> Word:
    """`{}` inside an action: some path below the starting points, which never looks like an option."""
    text = word.value
    if text is None or "{}" not in text:
        return word
    parts: list[str | Expansion] = []
    for index, piece in enumerate(text.split("{}")):
        if index:
            parts.extend((_prefix(paths), Expansion("param", "", True)))
        if piece:
            parts.append(piece)
    merged: list[str | Expansion] = []
    for part in parts:
        if isinstance(part, str) and merged and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return Word(word.span, None, tuple(merged), True, False, False, appended=True)


def _prefix(paths: "Sequence[Word]") -> str:
    """What a path that is found begins with, as far as it is certain."""
    root = paths[0].value if len(paths) == 1 and paths[0].value is not None and not paths[0].globs else None
    root = root or "."
    return f"{root.rstrip('/')}/" if root != "/" else "/"


def _grep(call: Call, parsed: Parsed) -> None:
    operands = parsed.operands
    if not (parsed.has("-e") or parsed.has("-f")):
        operands = operands[1:]
    for word in operands:
        call.reads(word)
    if parsed.has("-r") or parsed.has("-R"):
        call.judge.flags.add("recursive-read")
        call.judge.plain = False
        credentials(call, operands)


def _ripgrep(call: Call, parsed: Parsed) -> None:
    operands = (
        parsed.operands if (parsed.has("-e") or parsed.has("-f") or parsed.has("--files")) else parsed.operands[1:]
    )
    for word in operands:
        call.reads(word)
    credentials(call, operands)
    call.flag("recursive-read", "helper")


def _ag(call: Call, parsed: Parsed) -> None:
    # Which word is the pattern hangs on options that the list leaves open, so each may be a file.
    for word in parsed.operands:
        call.reads(word)
    credentials(call, parsed.operands)
    call.flag("recursive-read", "helper")


def _fd(call: Call) -> None:
    args = list(call.args)
    call.flag("helper")
    for at, word in enumerate(args):
        if word.value in ("-x", "--exec", "-X", "--exec-batch"):
            end = at + 1
            while end < len(args) and args[end].value != ";":
                end += 1
            inner = [_found(piece, []) for piece in args[at + 1 : end]]
            if inner:
                call.argv([*inner, unknown(call.span, appended=True, prefix="./")])
            else:
                call.opaque("an action without a command", word)
            return
        value = word.value or ""
        if value.startswith("--ex") and not value.startswith(("--exclude", "--extension", "--exact")):
            call.opaque("runs a command for what it finds", word)
            return
        if value.startswith("-") and not value.startswith("--"):
            # A bundle: everything behind a letter that takes a value is that value.
            for index, char in enumerate(value[1:], 1):
                if char in "xX":
                    text = value[index + 1 :].lstrip("=")
                    head = [Word(word.span, text, (), True)] if text else []
                    inner = [*head, *(_found(piece, []) for piece in args[at + 1 :])]
                    call.opaque("runs a command for what it finds", word)
                    call.argv([*inner, unknown(call.span, appended=True, prefix="./")] if inner else [])
                    return
                if char in "tedEcjSoCT":
                    break


PROGRAMS: dict[str, Program] = {
    **many("find gfind bfs", custom(find, plain=True)),
    **many("grep egrep fgrep zgrep zegrep zfgrep rgrep bzgrep xzgrep ggrep zstdgrep", reader(
            "-e,--regexp: -f,--file:!read -i -v -w -x -c -L -l -m,--max-count: -o -q -s -b -H -h -n -T -Z -a "
            "-D: -d,--directories: -I -U -z --label: "
            "-r,--recursive -R,--dereference-recursive --include: --exclude: --exclude-from:!read "
            "--exclude-dir: -A,--after-context: "
            "-B,--before-context: -C,--context: -E -F -G -P -y -u -[0-9] --color? --colour? --binary-files: "
            "--line-buffered --help --version", operands="data", check=_grep, unknown="R0",),),
    "rg": reader("-e,--regexp: -f,--file:!read --pre:!exec --pre-glob: --hostname-bin:!exec -z,--search-zip!helper "
        "-g,--glob: --iglob: -t,--type: -T,--type-not: "
        "-A,--after-context: -B,--before-context: -C,--context: -m,--max-count: -d,--max-depth: "
        "-j,--threads: -M,--max-columns: -r,--replace: "
        "--sort: --sortr: --color: --colors: -E,--encoding: --engine: --type-add: --type-clear: "
        "--ignore-file: --files --max-filesize: -i -S -s -n -N -l -c -o -v -w -x -u -uu -uuu -U -P -F -H "
        "-I -L -a -q -p -0 -. " "--hidden --no-ignore --count --json --stats --type-list --files-with-matches "
        "--files-without-match --ignore-case --line-number --heading --no-heading --vimgrep --multiline "
        "--context-separator: "
        "--no-filename --with-filename --only-matching --passthru --pcre2 --smart-case --invert-match "
        "--word-regexp --fixed-strings --follow --trim --column --no-messages --debug --help --version "
        "--max-columns-preview --null --count-matches --no-config --no-ignore-vcs --one-file-system "
        "--crlf --text --unrestricted --case-sensitive --no-line-number --pretty --quiet --include-zero "
        "--sort-files --hyperlink-format: --no-pre --binary --line-regexp --generate: --multiline-dotall "
        "--byte-offset", operands="data", check=_ripgrep, plain=False, unknown="R2",),
    **many("ag ack ack-grep pt ugrep ug", reader(
            "--pager:!exec -p!ok --output:!exec --filter:!exec --pre: --ackrc:!exec --workers: --decompress "
            "--view:!exec --save-config:!write -Q,--query!R2 --config:!config --ignore-file: --ignore-dir: "
            "--type-set: --type-add: --type-del: --create-ackrc --passthru --passthrough "
            "-A? --after? -B? --before? -C? --context? -c,--count -D -f -F,--fixed-strings -g -G: -h,--no-filename "
            "-H,--with-filename -i,--ignore-case -I,--no-smart-case -k -l,--files-with-matches "
            "-L,--files-without-matches "
            "-m: -n,--norecurse,--line-number -o,--only-matching -r,--recurse -R -s -S,--smart-case -t -T -u -U "
            "-v,--invert-match "
            "-w,--word-regexp -W: -x -z,--search-zip -0,--null -1 -a,--all-types,--text -b -d -e: -E -P -q,--quiet -j "
            "-M -N: -O: -y -X -Y -% --match:", operands="data", plain=False, unknown="short",
            check=_ag)),
    **many("fd fdfind", custom(_fd)),
    "updatedb": custom(lambda call: call.note(R1, "updatedb.run", "writes the file name database")),
}  # fmt: skip
