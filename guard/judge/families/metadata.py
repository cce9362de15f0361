"""Programs that change owner, mode, attributes and flags of files: what they name can be saved and put back exactly.

Source: chmod(1), chown(1), chgrp(1), setfacl(1), setfattr(1), setcap(8), chattr(1), chcon(1), restorecon(8), chacl(1).
"""

from guard.judge.landing import note_taken
from guard.judge.levels import R2, R3
from guard.judge.options import Grammar
from guard.judge.program import Call, Program
from guard.judge.touches import INCOMPLETE
from guard.judge.values import listed_of, spellings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from guard.judge.shell.syntax import Word

EXAMPLES = {
    "R0": ("chmod --version", "setfacl --help"),
    "R2": ("chmod 600 f", "chown root f", "chmod -R 755 /srv", "chgrp x f", "setfacl -m u:x:r f", "chattr +i f",
        "setcap cap_net_raw+ep f", "setfattr -n user.x -v y f", "chcon -t t f", "restorecon -R /srv", "chmod -x f"),
}  # fmt: skip

_ANY = Grammar("")
_SET_THE_SAME = frozenset(("chmod", "chown", "chgrp", "setfacl", "chattr"))
"""What they give to a whole tree is not what the system needs there; restorecon puts that back."""
_MODE_LETTERS = frozenset("rwxXstugoa,+=01234567")
"""What chmod(1) takes as a mode where it stands behind a dash."""


class Meant:
    """What the words of one command mean."""

    __slots__ = ("files", "tree", "links", "part", "complete")

    def __init__(self, files: "Sequence[Word]" = (), *, tree: bool = False, part: str = "meta") -> None:
        self.files = files
        self.tree = tree
        self.links = False
        """Links inside the tree are followed."""
        self.part = part
        self.complete = True
        """Files are named by the words alone."""


class Metadata(Program):
    """A program that changes what stands in a file's inode, and not what it holds."""

    __slots__ = ("grammar", "skip", "part", "recursive", "from_list")

    def __init__(
        self, options: str, *, skip: int = 0, part: str = "meta", recursive: str = "", lists: str = ""
    ) -> None:
        self.plain = False
        self.grammar = Grammar(options)
        self.skip = skip
        """Operands before the files: a mode, an owner."""
        self.part = part
        self.recursive = recursive
        self.from_list = lists
        """Options whose value names the files, or that change more than is saved."""

    def judge(self, call: Call) -> None:
        loose = _ANY.parse(call.args)
        untold = _ANY.parse([word for word in call.args if not _is_named(call, word)]).loose
        asks_only = not loose.operands and all(word.value in ("--help", "--version") for word in loose.unknown)
        if asks_only and loose.unknown:
            return
        call.note(R2, f"{call.name}.run", "changes who may do what with files")
        if loose.loose:
            call.flag("options-from-expansion")
        meant = self.meant(call)
        if untold or not meant.complete or meant.links:
            call.judge.flags.add(INCOMPLETE)
        for word in meant.files:
            plan_metadata(call, word, meant.part, tree=meant.tree)
            if meant.tree and call.name in _SET_THE_SAME:
                note_taken(call, word, "gives one mode or owner to everything in", least=R3)

    def meant(self, call: Call) -> Meant:
        parsed = self.grammar.parse(call.args)
        given = {option.name for option in parsed.options}
        by_option = bool(given & {"--reference", "-u", "-r", "-t", "-l"} and call.name in ("chcon", "chown", "chgrp"))
        files = parsed.operands[0 if by_option or "--reference" in given else self.skip :]
        meant = Meant(files, tree=self.recursive in given, part=self.part)
        meant.links = meant.tree and "-L" in given
        meant.complete = not parsed.unknown and not given & set(self.from_list.split())
        return meant


class _Chmod(Metadata):
    """chmod takes a mode behind a dash as well: `chmod -x f`, `chmod -Rw f`."""

    __slots__ = ()

    def meant(self, call: Call) -> Meant:
        files: list[Word] = []
        given: set[str] = set()
        has_mode = ended = False
        complete = True
        for word in call.args:
            value = word.value if word.value is not None else word.prefix
            if ended or not value.startswith("-") or value == "-":
                files.append(word)
            elif value == "--":
                ended = True
            elif value.startswith("--"):
                name = value.partition("=")[0]
                given.add(next((one for one in _CHMOD_LONG if one.startswith(name)), "?"))
                complete = complete and word.value is not None and (name != "--reference" or "=" in value)
            else:
                letters = value[1:]
                flags = letters[: len(letters) - len(letters.lstrip("RcfvHLPh"))]
                given.update(f"-{letter}" for letter in flags)
                rest = letters[len(flags) :]
                has_mode = has_mode or bool(rest)
                complete = complete and word.value is not None and _MODE_LETTERS.issuperset(rest.replace("-", ""))
        complete = complete and "?" not in given
        meant = Meant(files if has_mode or "--reference" in given else files[1:])
        meant.tree = bool(given & {"-R", "--recursive"})
        meant.links = meant.tree and "-L" in given
        meant.complete = complete
        return meant


_CHMOD_LONG = (
    "--recursive", "--reference", "--changes", "--quiet", "--silent", "--verbose", "--preserve-root",
    "--no-preserve-root", "--dereference", "--no-dereference",
)  # fmt: skip


class _Setcap(Metadata):
    """setcap takes pairs: capabilities and a file, or `-r` and a file."""

    __slots__ = ()

    def meant(self, call: Call) -> Meant:
        files: list[Word] = []
        args = [word for word in call.args if word.value not in ("-q", "-v", "-f")]
        complete, at = True, 0
        while at < len(args):
            if args[at].value == "-n":
                at += 2
                continue
            complete = complete and args[at].value != "-" and at + 1 < len(args)
            files += args[at + 1 : at + 2]
            at += 2
        meant = Meant(files)
        meant.complete = complete
        return meant


class _Chattr(Metadata):
    """chattr takes modes behind a dash, too: `chattr -i f`, `chattr -R +a -d f`."""

    __slots__ = ()

    def meant(self, call: Call) -> Meant:
        files: list[Word] = []
        tree = ended = False
        complete = True
        for word in call.args:
            value = word.value if word.value is not None else word.prefix
            if ended or not value.startswith(("-", "+", "=")):
                files.append(word)
            elif value == "--":
                ended = True
            elif value[0] == "-" and set(value[1:]) <= set("RVf"):
                tree = tree or "R" in value
            else:
                # A version or a project is no flag, and nothing keeps it.
                complete = complete and word.value is not None and _FLAG_LETTERS.issuperset(value[1:])
        meant = Meant(files, tree=tree, part="flags")
        meant.complete = complete
        return meant


_FLAG_LETTERS = frozenset("aAcCdDijFmPsStTu")


def plan_metadata(call: Call, word: "Word", part: str, *, tree: bool = False) -> None:
    """Adds what a word names to what is saved before the command, as far as the text tells it."""
    judge = call.judge
    kind = f"{part}-tree" if tree else part
    if word.appended:
        if not _is_told(call, word) or judge.found is None:
            judge.flags.add(INCOMPLETE)
            call.effect("privilege", word.shape)
            return
        for more, name in judge.found[1]:
            if tree and more.startswith("-tree-links"):
                judge.flags.add(INCOMPLETE)  # a link that is met leads to a whole tree elsewhere
            ending = more if more.startswith("-tree") or not tree else f"-tree{more}"
            _plan(call, part + ending, judge.places(name))
        return
    values = spellings_of(judge, word)
    if values is None:
        listed = listed_of(judge, word)
        if listed is None:
            judge.flags.add(INCOMPLETE)
            call.effect("privilege", word.shape)
        for each in listed or ():
            plan_metadata(call, each, part, tree=tree)
        return
    for value, pattern in values:
        if not word.globs:
            _plan(call, kind, judge.places(value))
        if word.globs or any(char in value for char in "*?["):
            # A value of a variable may be a pattern or a name; a name that looks like one lists itself at least.
            told = judge.listed_places(value, pattern)
            if any(one is None for _, one in told):
                judge.flags.add(INCOMPLETE)
                call.effect("privilege", value)
            else:
                _plan(call, f"{kind}-glob", [one for _, one in told if one is not None])


def _is_named(call: Call, word: "Word") -> bool:
    """Whether a word that the text does not fix is still sure to be a name, and no option."""
    if word.appended:
        return _is_told(call, word)
    listed = listed_of(call.judge, word)
    return listed is not None and not any((name.value or "-")[0] in "-*?[" for name in listed)


def _is_told(call: Call, word: "Word") -> bool:
    """Whether a word that a wrapper adds is exactly what the wrapper found, and none of that looks like an option."""
    found = call.judge.found
    if found is None or sum(1 for part in word.parts if not isinstance(part, str)) > 1:
        return False
    prefix = "".join(part for part in word.parts if isinstance(part, str))
    return prefix == found[0] and (bool(prefix) or not any(name.startswith("-") for _, name in found[1]))


def _plan(call: Call, kind: str, places: "list[str]") -> None:
    judge = call.judge
    # It may be any of these, and one nobody knows: what another one was like brings nothing back.
    unknown = any(not place.startswith(("/", "~")) for place in places)
    if unknown:
        judge.flags.add(INCOMPLETE)
    for place in places:
        call.effect("privilege", place)
        if not unknown:
            judge.plan.append((kind, place))


_WALK = "-R,--recursive -H -L -P --preserve-root --no-preserve-root "
_CHOWN = _WALK + (
    "-c,--changes -f,--silent,--quiet -v,--verbose -h,--no-dereference --dereference --from: --reference: "
    "--help --version"
)

PROGRAMS: dict[str, Program] = {
    "chmod": _Chmod(""),
    "chown": Metadata(_CHOWN, skip=1, recursive="-R"),
    "chgrp": Metadata(_CHOWN, skip=1, recursive="-R"),
    "setfacl": Metadata(
        "-b,--remove-all -k,--remove-default -n,--no-mask --mask -d,--default -m,--modify: -M,--modify-file: "
        "-x,--remove: -X,--remove-file: --set: --set-file: --restore: --test -R,--recursive -L,--logical "
        "-P,--physical -v,--version -h,--help",
        recursive="-R", lists="--restore",
    ),
    "setfattr": Metadata(
        "-n,--name: -v,--value: -x,--remove: -h,--no-dereference --restore: --raw --version --help", lists="--restore"
    ),
    "setcap": _Setcap(""),
    "chattr": _Chattr(""),
    "chcon": Metadata(
        _WALK + "-h,--no-dereference --dereference --reference: -u,--user: -r,--role: -t,--type: -l,--range: "
        "-v,--verbose --help --version",
        skip=1, recursive="-R",
    ),
    "restorecon": Metadata(
        "-R,-r,--recursive -n -F -v -i -p -W -D -m -I -x -e: -f: -T: -0", recursive="-R", lists="-f"
    ),
    "chacl": Metadata("-b -d -R -D -B -l -r", skip=1, recursive="-r", lists="-b -B -D -l"),
}  # fmt: skip
