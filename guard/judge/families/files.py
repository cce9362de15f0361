"""Programs that create, move, change and remove files. Source: the GNU coreutils manual."""

from guard.judge.families import credentials
from guard.judge.landing import critical_put, holds_critical, is_there, last_name, note_taken, put_whole, taken_away
from guard.judge.levels import R1, R2, R3
from guard.judge.options import Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, table
from guard.judge.shell.syntax import Word
from guard.judge.tables import names
from guard.judge.touches import INCOMPLETE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = {
    "R0": ("touch --version", "mkdir --help"),
    "R1": ("touch a", "mkdir -p a/b", "cp a b", "mv a b", "rm a", "ln -s a b", "rmdir a", "mkfifo p", "rm -f a b",
        "unlink a", "install -m 644 a b", "cp -r a b", "cp a.conf /etc/", "cp *.jpg ~/",
        "cp .bashrc /srv/bashrc.old", "mv x d", "cp -T a b",),
    "R2": ("cp a /etc/passwd", "mv a ~/.ssh/authorized_keys", "rm /etc/fstab", "cp x /usr/bin/ls", "rm $X",
        "cp x/passwd /etc", "mv .bashrc ~/", "cp -r d/. /etc", "cp d/* /etc/", "cp -t /etc passwd",
        "ln -s /x/hosts /etc", "mv hooks .git", "install -m 4755 a b", "install -m u+s a b",
        "install --mode=6755 a b", "rm *", "ln -sf /x /etc/localtime", "mv x ~/.config", "cp -r x ~/.ssh",
        "ln -s /srv/x .git", "mv /home x", "cp -rT d /etc", "touch /etc/nologin",),
    "R3": ("rm -rf a", "rm -r a", "rm -fR a", "rm --recursive a", "rm --rec a", "shred f",
        "dd if=/dev/zero of=/dev/sda", "truncate -s 0 f", "rm a -rf", "srm f", "rm -- -x -r; rm -r -- x",
        "cp x /dev/sda", "mv /dev/null /dev/sda", "wipe f", "truncate --size=0 f", "rm -rf $X",
        "mv /etc x", "rm /bin", "ln -sfn x /lib"),
}  # fmt: skip


def _rm(call: Call, parsed: Parsed) -> None:
    recursive = parsed.has("-r") or any(
        "r" in (word.value or "").lower() for word in parsed.unknown if not (word.value or "--").startswith("--")
    )
    if recursive:
        call.note(R3, "files.rm.recursive", "removes folders with everything in them", None, "rm(1)")
    level = R3 if recursive else R1
    for word in parsed.operands:
        if word.globs or word.value is None:
            level = max(level, R2)
        if not recursive and word.value is not None and word.globs:
            call.note(R2, "files.rm.glob", "removes whatever the pattern meets", word, "rm(1)")
        call.writes(word, deletes=True, level=level)
    if not parsed.operands:
        call.note(level, "files.rm.none", "removes files")
    if parsed.loose and not recursive:
        call.flag("options-from-expansion")


def _copy(call: Call, parsed: Parsed) -> None:
    """cp, mv, install, ln: the last operand (or -t) is written."""
    operands = parsed.operands
    target = parsed.value("-t")
    name = call.name
    call.note(R1, f"files.{name}", f"{name} changes files")
    if name == "install" and parsed.has("-d"):
        for word in operands:
            call.writes(word)
            _sets_mode(call, word)
        return
    if parsed.has("-b") or parsed.has("--backup") or parsed.has("-S"):
        call.judge.flags.add(INCOMPLETE)  # what was there is kept under a name that hangs on what else is there
    sources = operands if target is not None else operands[:-1]
    goal = target if target is not None else (operands[-1] if operands else None)
    if goal is not None and (len(operands) > 1 or target is not None):
        several = target is not None or len(sources) > 1
        children = (
            [] if parsed.has("-T") or parsed.has("--parents") else _children(call, goal, sources, is_folder=several)
        )
        call.writes(goal, saves="" if children else "file")
        call.judge.plan.extend(("file", child) for child in children)
        if not parsed.has("-T"):
            _put(call, goal, sources, is_folder=several)
        if parsed.has("--parents"):
            put_whole(call, goal, sources)
        if not several and _takes_folders(name, parsed):
            _becomes(call, goal, exactly=parsed.has("-T"))
        if not several and _replaces(name, parsed):
            note_taken(call, goal, "puts something else in the place of")
    for word in sources:
        if name in ("mv", "rename"):
            call.writes(word, deletes=True)
        elif name in ("cp", "install"):
            call.reads(word)
            credentials(call, (word,))
    mode = parsed.value("-m")
    if mode is not None and _sets_ids(call.value(mode)):
        call.note(R2, "files.set-id", "makes a program that runs with its owner's rights", mode, "chmod(1)")
        call.effect("privilege", goal.value or goal.shape if goal is not None else "?")
    if len(operands) == 1 and target is None and name == "ln":
        call.writes(operands[0])


def _children(call: Call, goal: Word, sources: "Sequence[Word]", *, is_folder: bool) -> "list[str]":
    """What comes about in a goal that can only be a folder; empty where that is not sure or a name is not told."""
    folder = call.value(goal)
    names = ["" if word.value is None or word.globs or word.appended else last_name(word.value) for word in sources]
    if folder is None or not all(names):
        return []
    places = call.judge.places(folder)
    if not (is_folder or all(is_there(place) for place in places)) or any(place.startswith("*") for place in places):
        return []
    return [f"{place.rstrip('/')}/{name}" for place in places for name in names]


def _rename(call: Call, parsed: Parsed) -> None:
    for word in parsed.operands[1:]:
        note_taken(call, word, "may rename")


def _takes_folders(name: str, parsed: Parsed) -> bool:
    return name in ("mv", "gmv") or parsed.has("-R") or parsed.has("-a") or (name == "ln" and parsed.has("-s"))


def _replaces(name: str, parsed: Parsed) -> bool:
    """Whether a goal that is a folder, or a link to one, gives way to what is put there, and is not what gets it."""
    if name in ("mv", "gmv"):
        return parsed.has("-T") or parsed.has("--exchange")
    if name == "ln":
        return any(parsed.has(letter) for letter in ("-T", "-n", "-P"))
    return parsed.has("-T") and (name == "install" or parsed.has("--remove-destination"))


def _sets_mode(call: Call, folder: Word) -> None:
    """install -d gives a folder that is there its mode and owner, too."""
    value = call.value(folder)
    for place in call.judge.places(value) if value is not None else ():
        if taken_away(place) and (is_there(place) or taken_away(place) == R3):
            text = f"sets mode and owner of {place}, on which others stand"
            call.note(R2, "path.critical-parent", text, folder, "install(1)")


def _becomes(call: Call, goal: Word, *, exactly: bool) -> None:
    """A goal that is not there becomes what is moved, copied or linked: a folder, with what critical files it has.

    `exactly`: so does one that is there, since what a tree brings into it is not told.
    """
    folder = call.value(goal)
    for place in call.judge.places(folder) if folder is not None else ():
        if holds_critical(place) and (exactly or not is_there(place)):
            what = f"may become {place}, with the critical files that lie in there"
            call.note(R2, "path.critical-put", what, goal, "docs/judging.md")


def _sets_ids(mode: str | None) -> bool:
    """Whether a mode has a set-user-id or set-group-id bit, or may have."""
    if mode is None:
        return True
    if mode.isdigit():
        return len(mode.lstrip("0")) > 3 and mode.lstrip("0")[-4] not in "1"
    return "s" in mode


def _put(call: Call, goal: Word, sources: "Sequence[Word]", *, is_folder: bool) -> None:
    """What is put into a folder gets its own last name there."""
    folder = call.value(goal)
    if folder is None:
        return
    names = ["" if word.appended else last_name(word.value or call.value(word) or "") for word in sources]
    is_folder = is_folder or folder.endswith("/") or folder in (".", "..", "~")
    for place in call.judge.places(folder):
        if (is_folder or holds_critical(place)) and (put := critical_put(place, names)):
            call.note(R2, "path.critical-put", f"puts a critical file into a folder ({put})", goal, "docs/judging.md")


_DD_SETTINGS = names("""
    bs count skip seek status conv ibs obs iflag oflag cbs iseek oseek --help --version files speed
""")


def _dd(call: Call) -> None:
    for word in call.args:
        text = word.value if word.value is not None else word.prefix
        name, _, value = text.partition("=")
        if name == "of":
            if word.value is None:
                call.note(R2, "files.dd.dynamic", "writes a file that the text does not name", word)
            elif call.judge.places(value)[0].startswith("/dev/") and value not in ("/dev/null", "/dev/stdout"):
                call.note(R3, "files.dd.device", f"overwrites {value}", word, "dd(1)")
            else:
                call.writes(Word(word.span, value, (), True))
        elif name == "if":
            if word.value is not None:
                call.reads(Word(word.span, value, (), True))
        elif name not in _DD_SETTINGS:
            call.opaque("an operand that is not known", word)


def _truncate(call: Call, parsed: Parsed) -> None:
    # Emptied on the way to new content (`> f`) a file is edited; this does nothing but throw content away.
    call.note(R3, "files.truncate", "cuts the content of files off", None, "truncate(1)")
    for word in parsed.operands:
        call.writes(word, level=R3)


_CP = (
    "-a,--archive --attributes-only --backup? -b --copy-contents -d -f,--force -i,--interactive -H "
    "-l,--link -L,--dereference -n,--no-clobber "
    "-P,--no-dereference -p --preserve? --no-preserve: --parents -R,-r,--recursive --reflink? "
    "--remove-destination --sparse: "
    "--strip-trailing-slashes -s,--symbolic-link -S,--suffix: -t,--target-directory: "
    "-T,--no-target-directory -u,--update? -v,--verbose "
    "-x,--one-file-system -Z --context? --debug --help --version -c --no-copy --exchange -D "
    "-g,--group: -m,--mode: -o,--owner: -C,--compare --strip --strip-program:!exec "
    "-F --physical --logical --relative --symbolic --directory --keep-directory-symlink"
)  # fmt: skip

PROGRAMS: dict[str, Program] = {
    "rm": table("-f,--force -i -I --interactive? -r,-R,--recursive -d,--dir -v,--verbose --one-file-system "
        "--no-preserve-root!R3 --preserve-root? -P -W -x --help --version", operands="data", check=_rm, unknown="R2",),
    **many("unlink", table("", operands="delete", level="R1", text="removes a file")),
    "rmdir": table("-p,--parents --ignore-fail-on-non-empty -v,--verbose --help --version", operands="delete",
        level="R1", text="removes empty folders"),
    **many("trash trash-put gio-trash", table("", operands="delete", level="R1", text="moves files to the trash")),
    **many("trash-empty", table("", operands="data", level="R3", text="empties the trash")),
    **many("shred srm wipe scrub", table("", operands="delete", level="R3", text="destroys the content of files")),
    **many("cp gcp", table(_CP, operands="data", check=_copy)),
    **many("mv gmv", table(_CP, operands="data", check=_copy)),
    "install": table(_CP.replace("-d ", "").replace("-D", "-D -d"), operands="data", check=_copy),
    **many("ln link", table(_CP, operands="data", check=_copy)),
    **many("rename prename mmv vidir qmv", table("-n,--no-act,--nono -v -f -s!ok -i -o", operands="data", level="R2",
            text="renames many files", check=_rename)),
    **many("mkdir", table("-p,--parents -m,--mode: -v,--verbose -Z --context? --help --version", operands="write",
            level="R1", text="creates folders")),
    "touch": table(
        "-a -c,--no-create -d,--date: -f -h,--no-dereference -m -r,--reference: -t: --time: --help --version -A:",
        operands="times", level="R1", text="creates files or changes their times"),
    **many("mkfifo", table("-m,--mode: -Z --context? --help --version", operands="write", level="R1",
            text="creates pipes")),
    "mknod": table("-m,--mode: -Z --context?", operands="data", level="R2", text="creates a device node"),
    **many("semanage setsebool", table("", operands="data", level="R2", text="changes who may do what with files",
            effect="privilege")),
    "truncate": table("-c,--no-create -o,--io-blocks -r,--reference: -s,--size: --help --version", operands="data",
        check=_truncate),
    "fallocate": table("-c,--collapse-range!R3 -d,--dig-holes -i,--insert-range!R3 -l,--length: -n,--keep-size "
        "-o,--offset: -p,--punch-hole!R3 -v -x,--posix -z,--zero-range!R3", operands="write", level="R1"),
    "dd": custom(_dd, plain=True),
    **many("rsnapshot borg restic duplicity", table("", operands="data", level="R2", text="makes or changes backups")),
    **many("vi vim nvim nano emacs ed ex pico micro joe view vimdiff rvim helix hx kak ne mcedit gedit code subl",
        table("", operands="data", level="R2", text="an editor: interactive, and can run commands")),
}  # fmt: skip
