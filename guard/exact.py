"""Commands whose argv is known exactly: one program with literal words, whose output may go on into other reads.

A profile with one right more (`observe`, `netadm`, `block`) is for that one program. What the judge takes for exact,
the hands start without a shell; what stands behind the first `|` runs without the right. Pure, and on the hot path.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAMS: "dict[str, frozenset[str]]" = {
    "observe": frozenset(("ss", "netstat", "lsof", "fuser")),
    "netadm": frozenset(
        ("iptables", "ip6tables", "iptables-legacy", "iptables-nft", "iptables-save", "ip6tables-save", "nft")
    ),
    "block": frozenset(
        ("fdisk", "sfdisk", "sgdisk", "blkid", "wipefs", "blockdev", "dumpe2fs", "e2freefrag", "tune2fs", "hdparm",
         "parted", "mdadm", "cryptsetup", "sg_inq", "nvme")
    ),
}  # fmt: skip
"""Profile → the programs that may have its right. Scripts are left out, and what needs more than the profile gives:
smartctl sends raw commands, the LVM tools write locks and ask the device mapper."""
FIRST_WORDS = {"nvme": frozenset(("list", "list-subsys", "id-ctrl", "id-ns", "version", "help"))}
"""Program → the verbs that the profile suffices for; the kernel lets nobody but CAP_SYS_ADMIN ask for a health log."""

_LVM = "it takes locks and asks the device mapper, which answers only to who may also change it (CAP_SYS_ADMIN)"
BEYOND = {
    "smartctl": "it sends raw commands to the disk, and who may do that may also overwrite it (CAP_SYS_RAWIO)",
    "sdparm": "it sends raw commands to the disk, and who may do that may also overwrite it (CAP_SYS_RAWIO)",
    "nvme": "the kernel answers it only to who may also change the disk (CAP_SYS_ADMIN)",
    **dict.fromkeys(
        (
            "pvs",
            "vgs",
            "lvs",
            "pvdisplay",
            "vgdisplay",
            "lvdisplay",
            "pvscan",
            "vgscan",
            "lvscan",
            "lvmdiskscan",
            "dmsetup",
        ),
        _LVM,
    ),
}
"""Program → why no profile can give it what it reads with. A filter sees the number of a raw command's request and not
the command, which lies in memory that its sender can change after it was looked at."""

_LITERAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+:,./-_=^")
"""Characters that stand for themselves outside quotes."""
_VARIABLES = ("LC_", "LANG=", "TZ=", "COLUMNS=", "NO_COLOR=", "LANGUAGE=")
"""Assignments that only change how an answer looks."""
OUT, ERROR, NOWHERE = "stdout", "stderr", "nowhere"
"""Where an output goes."""


class Exact:
    """One program as it is started, and what its output goes into."""

    __slots__ = ("argv", "sudo", "env", "stdout", "stderr", "rest")
    argv: "tuple[str, ...]"
    """Without `sudo` in front of it: for root that is the command itself."""
    sudo: bool
    env: "dict[str, str]"
    """Assignments in front of it."""
    stdout: str
    """Where it writes: `stdout`, `stderr` or `nowhere`. With `rest`, `stdout` is what `rest` reads."""
    stderr: str
    rest: str
    """The text behind the first `|`; "" when there is none."""

    def __init__(
        self, argv: "tuple[str, ...]", sudo: bool, env: "dict[str, str]", places: "dict[str, str]", rest: str
    ) -> None:
        self.argv = argv
        self.sudo = sudo
        self.env = env
        self.stdout = places["1"]
        self.stderr = places["2"]
        self.rest = rest

    @property
    def program(self) -> str:
        """The program's name without its folder."""
        return self.argv[0].rpartition("/")[2]


def profile_for(program: str) -> str:
    """The profile that a program's reads may need, "" for every other program."""
    for profile, programs in PROGRAMS.items():
        if program in programs:
            return profile
    return ""


def read_exact(text: str) -> "Exact | None":
    """What bash would make of the text, when that is one of `PROGRAMS` with literal words; None for anything else.

    Understood: quotes, redirections to /dev/null and between the two outputs, assignments that only change how the
    answer looks, `sudo` without options in front, and pipelines.
    """
    words: list[str] = []
    places = {"1": OUT, "2": ERROR}
    at, end, rest = 0, len(text), ""
    while at < end:
        character = text[at]
        if character in " \t":
            at += 1
            continue
        if character == "|":
            rest = text[at + 1 :].strip()
            if not _is_plain_pipeline(rest):
                return None
            break
        after = _redirection(text, at, places)
        if after is None:
            word = _word(text, at)
            if word is None:
                return None
            value, after = word
            words.append(value)
        at = after
    return _made(words, places, rest)


def _made(words: "Sequence[str]", places: "dict[str, str]", rest: str) -> "Exact | None":
    first = 0
    env = {}
    while first < len(words) and words[first].startswith(_VARIABLES) and "=" in words[first]:
        name, _, value = words[first].partition("=")
        env[name] = value
        first += 1
    assigned = first
    while first + 1 < len(words) and words[first] == "sudo" and words[first + 1][:1] not in ("-", ""):
        first += 1
    argv = tuple(words[first:])
    exact = Exact(argv, first > assigned, env, places, rest) if argv else None
    if exact is None or not profile_for(exact.program):
        return None
    verbs = FIRST_WORDS.get(exact.program)
    return exact if verbs is None or exact.argv[1:2] == () or exact.argv[1] in verbs else None


def _word(text: str, at: int) -> "tuple[str, int] | None":
    value, end = [], len(text)
    start = at
    while at < end:
        character = text[at]
        if character in _LITERAL:
            value.append(character)
            at += 1
        elif character in "'\"":
            close = text.find(character, at + 1)
            inside = text[at + 1 : close]
            if close < 0 or "\n" in inside or "\r" in inside or (character == '"' and set("$`\\") & set(inside)):
                return None
            value.append(inside)
            at = close + 1
        elif character in " \t|":
            break
        else:
            return None
    # Quotes in front of `=` make it a word that is no assignment; nobody writes that, so it is not understood.
    return ("".join(value), at) if at > start else None


_TARGETS = (("/dev/null", NOWHERE), ("&1", "1"), ("&2", "2"))


def _redirection(text: str, at: int, places: "dict[str, str]") -> "int | None":
    """Follows one redirection; the place behind it, or None when there is none that is understood here."""
    sources, place = "1", at
    if text.startswith("&>", at):
        sources, place = "12", at + 1
    elif text[at] in "12" and text.startswith(">", at + 1):
        sources, place = text[at], at + 1
    if not text.startswith(">", place):
        return None
    place += 2 if text.startswith(">>", place) else 1
    while text.startswith((" ", "\t"), place):
        place += 1
    for written, means in _TARGETS:
        behind = place + len(written)
        if text.startswith(written, place) and text[behind : behind + 1] in ("", " ", "\t", "|"):
            if written[0] == "&" and sources == "12":
                return None
            for source in sources:
                places[source] = places.get(means, means)
            return behind
    return None


def _is_plain_pipeline(text: str) -> bool:
    """Whether the text is commands joined by `|` alone, so that all of them together read what flows in."""
    at, end, quote, last = 0, len(text), "", "|"
    while at < end:
        character, following = text[at], text[at + 1 : at + 2]
        if character in "\n\r":
            return False
        if quote == "'":
            quote = "" if character == "'" else quote
        elif character == "\\":
            if following in ("", "\n", "\r"):
                return False
            last = "\\"
            at += 1
        elif character == "`" or (character == "$" and not (quote and following in ('"', " ", "|", ")"))):
            return False
        elif quote:
            quote = "" if character == '"' else quote
        elif character in "'\"":
            quote = last = character
        elif character in ";(){}<#!" or (character == "&" and last != ">" and following != ">"):
            return False
        elif character == "|":
            if last in "|>":
                return False
            last = "|"
        elif character not in " \t":
            last = character
        at += 1
    return not quote and last not in "|>"
