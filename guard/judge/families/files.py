"""Programs that create, move, change and remove files. Source: the GNU coreutils manual."""

from guard.judge.families import credentials
from guard.judge.landing import critical_put, holds_critical, is_there, last_name, note_put, note_taken, taken_away
from guard.judge.levels import R1, R2, R3
from guard.judge.options import Grammar, Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, perform, reader, table
from guard.judge.shell.syntax import Word
from guard.judge.tables import names
from guard.judge.touches import INCOMPLETE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

EXAMPLES = {
    "R0": ("tar -tf a.tar", "tar tzf a.tgz", "unzip -l a.zip", "zipinfo a.zip", "gzip -l a.gz", "gzip -cd a.gz",
        "cpio -t < a", "touch --version"),
    "R1": ("touch a", "mkdir -p a/b", "cp a b", "mv a b", "rm a", "ln -s a b", "rmdir a", "gzip f",
        "tar -cf a.tar d", "tar xzf a.tgz -C d", "mkfifo p", "unzip a.zip -d d",
        "rm -f a b", "unlink a", "install -m 644 a b",
        "cp -r a b", "cp a.conf /etc/", "cp *.jpg ~/", "cp .bashrc /srv/bashrc.old", "tar -C /srv -xf a.tar",
        "7z x a.7z -od", "unrar x a.rar d/",
        "7z a a.7z d", "ar r lib.a x.o", "cpio -p d < names", "mv x d",),
    "R2": ("cp a /etc/passwd", "mv a ~/.ssh/authorized_keys", "rm /etc/fstab", "cp x /usr/bin/ls",
        "tar -cf a.tar -I x d", "tar --to-command=x -xf a", "tar --checkpoint-action=exec=x -cf a b", "rm $X",
        "cp x/passwd /etc", "mv .bashrc ~/", "cp -r d/. /etc", "cp d/* /etc/", "cp -t /etc passwd",
        "ln -s /x/hosts /etc", "mv hooks .git", "install -m 4755 a b", "install -m u+s a b", "install --mode=6755 a b",
        "tar -xf a -C /", "tar tf a.tar --use-compress-program=x", "rm *", "ln -sf /x /etc/localtime",
        "tar xzf a.tgz", "unzip a.zip", "tar -C a -C b -xf c", "7z x a.7z", "unrar x a.rar", "ar x lib.a",
        "cpio -i < a", "mv x ~/.config", "cp -r x ~/.ssh", "ln -s /srv/x .git",),
    "R3": ("rm -rf a", "rm -r a", "rm -fR a", "rm --recursive a", "rm --rec a", "shred f",
        "dd if=/dev/zero of=/dev/sda", "truncate -s 0 f", "rm a -rf", "srm f", "rm -- -x -r; rm -r -- x",
        "cp x /dev/sda", "mv /dev/null /dev/sda", "wipe f", "truncate --size=0 f", "rm -rf $X",),
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


def put_whole(call: Call, goal: Word, sources: "Sequence[Word]") -> None:
    """What keeps its whole path below the folder that it is put into: `cp --parents`, `rsync -R`."""
    folder = call.value(goal)
    for word in sources if folder is not None else ():
        path = (word.value or call.value(word) or "").rpartition("/./")[2]
        note_put(call, f"{folder}/{path.rstrip('/').rpartition('/')[0]}", (last_name(path),), goal)


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


_TAR_LETTERS = "CfIFXTgNKLbHV"
"""Letters of tar whose value is the next word."""
_TAR_MODES = frozenset(("-A", "-c", "-d", "--delete", "-r", "-t", "--test-label", "-u", "-x"))
_TAR_SHOWN = frozenset(("echo", "dot", ".", "bell", "sleep", "totals", "ttyout"))
"""Checkpoint actions that run nothing."""


def _tar(call: Call) -> None:
    parsed = _TAR.parse(_dashed(call.args))
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, "tar.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    for option in parsed.options:
        if option.name == "--checkpoint-action":
            action = call.value(option.value) if option.value is not None else None
            if action is None or action.split("=", 1)[0].split("-", 1)[0] not in _TAR_SHOWN:
                call.note(R2, "tar.checkpoint", "runs a program at each checkpoint", option.word)
    if parsed.loose:
        call.flag("options-from-expansion")
    archive = parsed.value("-f")
    modes = {option.name for option in parsed.options} & _TAR_MODES
    if archive is not None and (call.value(archive) or "").find(":") > 0 and not parsed.has("--force-local"):
        call.note(R2, "tar.remote", "an archive name with a colon is on another machine, through rsh", archive)
    if modes <= {"-t", "-d", "--test-label"}:
        if not modes and not any(option.name in ("--help", "--version", "--usage") for option in parsed.options):
            call.opaque("tar without a mode")
        if "-d" in modes:
            trees(call, parsed.operands)
        call.reads(archive)
        return
    if modes == {"-x"}:
        _untar(call, parsed, archive)
        return
    if "--delete" in modes:
        call.note(R2, "files.tar.delete", "removes members of an archive")
    if archive is None or archive.value != "-":
        call.note(R1, "files.tar.create", "writes an archive")
        call.writes(archive)
    trees(call, parsed.operands)


def _dashed(args: "Sequence[Word]") -> "list[Word]":
    """The words of tar with its old style (letters without a dash, their values in order) written with dashes."""
    first = args[0].value if args else None
    if not first or first[0] == "-":
        return list(args)
    span = args[0].span
    taking = [char for char in first if char in _TAR_LETTERS]
    values = args[1 : 1 + len(taking)]
    made = [Word(span, "-" + char) for char in first if char not in _TAR_LETTERS]
    for char, value in zip(taking, values, strict=False):
        made.extend((Word(span, "-" + char), value))
    return [*made, *args[1 + len(taking) :]]


def _untar(call: Call, parsed: Parsed, archive: "Word | None") -> None:
    call.reads(archive)
    if parsed.has("-O"):
        return
    folders = [option.value for option in parsed.options if option.name == "-C"]
    folder = folders[0] if len(folders) == 1 else None
    unpacks(call, "files.tar.extract", folder)
    if parsed.has("-P"):
        call.note(R2, "files.tar.absolute", "writes wherever the archive says")


def unpacks(call: Call, rule: str, folder: "Word | None") -> None:
    """Files come out of an archive: into a folder that is saved with all that is in it, or over names that the text
    does not tell, of which nothing can be saved."""
    if folder is None:
        text = "writes files from an archive over whatever has their names: name a folder for them, which can be saved"
        call.note(R2, rule, text, None, "docs/judging.md")
        call.judge.flags.add(INCOMPLETE)
        return
    call.note(R1, rule, "writes files from an archive")
    call.writes(folder)
    note_put(call, call.value(folder) or "/", ("",), folder)


def trees(call: Call, words: "Sequence[Word]") -> None:
    """Files, or folders with all that is in them: a folder of credentials counts as its files."""
    call.judge.flags.add("recursive-read")
    call.judge.plain = False
    for word in words:
        call.reads(word)
    credentials(call, words)


_TAR = Grammar(
    "-A,--catenate,--concatenate -c,--create -d,--diff,--compare --delete -r,--append -t,--list "
    "--test-label -u,--update -x,--extract,--get "
    "-C,--directory: -f,--file: -I,--use-compress-program:!exec "
    "-F,--info-script,--new-volume-script:!exec --to-command:!exec --rsh-command:!exec "
    "--rmt-command:!exec --checkpoint-action: --checkpoint? -a,--auto-compress -j,--bzip2 -J,--xz "
    "-z,--gzip,--gunzip,--ungzip -Z,--compress --zstd --lzma --lzop --lzip "
    "-v,--verbose -p,--preserve-permissions,--same-permissions -P,--absolute-names "
    "-k,--keep-old-files -m,--touch -O,--to-stdout -h,--dereference "
    "-W,--verify -w,--interactive -X,--exclude-from:!read -T,--files-from:!R2 --exclude: "
    "-g,--listed-incremental:!write -G -N,--newer: --newer-mtime: -K: -L: -M -S,--sparse "
    "-b,--blocking-factor: -B -i -R -s --strip-components: --transform,--xform: --wildcards "
    "--no-wildcards --no-recursion --one-file-system --owner: --group: --mode: --mtime: "
    "--numeric-owner --no-same-owner --same-owner --no-same-permissions --remove-files!R3 --overwrite "
    "--overwrite-dir --unlink-first,-U --recursive-unlink!R3 --totals? --show-transformed-names "
    "--null --sort: "
    "--format: -H: --pax-option: -V,--label: --exclude-vcs --exclude-caches --acls --xattrs --selinux "
    "--index-file:!write --volno-file:!write --warning: --utc --full-time --anchored "
    "--keep-newer-files "
    "--keep-directory-symlink --skip-old-files --backup? --suffix: --occurrence? --force-local "
    "--no-auto-compress --hard-dereference --quiet -q -l -n -o --restrict --help --version --usage "
    "--record-size: --delay-directory-restore --level: --no-overwrite-dir --ignore-failed-read "
    "--include:"
)  # fmt: skip


def _ar(call: Call) -> None:
    """ar: `t` and `p` read. Its long options load code or write, wherever they stand, and `@FILE` holds more."""
    words = [word for word in call.args if (word.value or "") not in ("--thin", "--version", "--help", "--")]
    for word in words:
        value = word.value if word.value is not None else word.prefix
        if value.startswith(("--", "@")):
            call.note(R2, "ar.option", f"{word.shape} loads code, writes or holds more options", word, "ar(1)")
    first = next(((word.value or "x").lstrip("-") for word in words if not (word.value or "").startswith("--")), "")
    if first[:1] == "x":
        unpacks(call, "files.ar", None)
    elif first[:1] not in ("t", "p") and not any(word.value in ("--version", "--help") for word in call.args):
        call.note(R1, "files.ar", "writes an archive")
        # Letters may take a member's name before it (`a`, `b`, `i`, `N`).
        for word in words[1:3] if set("abiN") & set(first[1:]) else words[1:2]:
            call.writes(word)
    for word in words[1:]:
        call.reads(word)


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
    call.note(R3, "files.truncate", "cuts the content of files off", None, "truncate(1)")
    for word in parsed.operands:
        call.writes(word, level=R3)


_ENDINGS = {
    **dict.fromkeys(("gzip", "gunzip", "pigz"), ".gz"),
    **dict.fromkeys(("bzip2", "bunzip2", "pbzip2"), ".bz2"),
    **dict.fromkeys(("xz", "unxz", "pixz"), ".xz"),
    **dict.fromkeys(("zstd", "unzstd"), ".zst"),
    **dict.fromkeys(("lzma", "unlzma"), ".lzma"),
    "lz4": ".lz4",
    "lzop": ".lzo",
    "compress": ".Z",
    "uncompress": ".Z",
    "brotli": ".br",
}
"""What each puts behind a name, or takes from it."""


def _compress(call: Call, parsed: Parsed) -> None:
    if not parsed.operands and not parsed.options and call.stdin is None:
        call.note(R1, f"files.{call.name}", "has nothing to read")
    if (
        not parsed.operands
        and call.stdin is None
        and not any(parsed.has(name) for name in ("-c", "-h", "-V", "-d", "-l"))
    ):
        call.note(R1, f"files.{call.name}", "compresses what it is given")
    if parsed.has("-l") or parsed.has("-t") or parsed.has("-c") or not parsed.operands:
        for word in parsed.operands:
            call.reads(word)
        if parsed.has("-o"):
            call.note(R1, f"{call.name}.write", "writes a file")
        return
    call.note(R1, f"files.{call.name}", f"{call.name} replaces files")
    unpacks = parsed.has("-d") or "un" in call.name
    ending = _ENDINGS.get(call.name, "") if not any(parsed.has(name) for name in ("-S", "-r", "-o")) else ""
    for word in parsed.operands:
        call.writes(word)
        if not ending:
            call.judge.flags.add(INCOMPLETE)
        elif unpacks:
            call.makes_beside(word, "", instead_of=ending)
        else:
            call.makes_beside(word, ending)


def _unzip(call: Call, parsed: Parsed) -> None:
    for word in parsed.operands:
        call.reads(word)
    if any(parsed.has(name) for name in ("-l", "-t", "-Z", "-p", "-c", "-z", "-v", "-h", "--help")):
        return
    unpacks(call, "files.unzip", parsed.value("-d"))


def _cpio(call: Call, parsed: Parsed) -> None:
    archive = parsed.value("-F")
    if archive is not None and ":" in (archive.value or ":"):
        call.note(R2, "files.cpio.remote", "an archive name with a colon is on another machine, through rsh", archive)
    if parsed.has("-t") and not parsed.has("-p"):
        return
    if parsed.has("-p"):
        unpacks(call, "files.cpio", parsed.operands[0] if len(parsed.operands) == 1 else None)
    elif parsed.has("-i"):
        # Unless it is told otherwise, names from the root on are taken as they are.
        unpacks(call, "files.cpio", parsed.value("-D") if parsed.has("--no-absolute-filenames") else None)
    else:
        call.note(R1, "files.cpio", "writes an archive")
        call.writes(archive)


_ARCHIVE_READS = names("l t i h b v lb vt lt --help")
_ARCHIVE_EXTRACTS = names("x e")
_ARCHIVE_WRITES = names("a u d rn f m c s")


def _seven(call: Call) -> None:
    """7z and rar: a verb, the archive, and for what comes out of it `-oDIR` (7z) or a last word with a slash (rar)."""
    verb = call.args[0].value if call.args else None
    if not call.args or verb in _ARCHIVE_READS:
        return
    operands = [word for word in call.args[1:] if (word.value or "x")[0] != "-"]
    for word in operands[:1]:
        call.reads(word)
    if verb in _ARCHIVE_EXTRACTS:
        options = [word for word in call.args[1:] if (word.value or "").startswith("-o")]
        folder = None
        if "rar" in call.name:
            last = operands[-1] if len(operands) > 1 else None
            folder = last if last is not None and (last.value or "").endswith("/") else None
        elif len(options) == 1:
            folder = Word(options[0].span, (options[0].value or "")[2:], (), True)
        if any((word.value or "").startswith("-so") for word in call.args):
            return
        unpacks(call, f"files.{call.name}", folder if folder is not None and folder.value else None)
    elif verb in _ARCHIVE_WRITES and operands:
        call.note(R1, f"files.{call.name}", "writes an archive")
        call.writes(operands[0])
        if any((word.value or "").startswith(("-sdel", "-df", "-dr", "-m")) and len(word.value or "") < 6
               for word in call.args):  # fmt: skip
            call.note(R2, f"files.{call.name}.moves", "may remove the files that it packs")
    else:
        call.note(R2, f"files.{call.name}", "writes files in ways that are not read here")


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
    **many("tar gtar bsdtar", custom(_tar)),
    **many("gzip gunzip bzip2 bunzip2 xz unxz lzma unlzma zstd unzstd pigz lz4 lzop compress uncompress "
        "brotli pbzip2 pixz", table(
            "-c,--stdout,--to-stdout -d,--decompress,--uncompress -f,--force -k,--keep -l,--list -n,--no-name "
            "-N,--name -q,--quiet -r,--recursive -S,--suffix: -t,--test "
            "-v,--verbose -[0-9] --best --fast -T,--threads: -z,--compress -h,--help -V,--version -o:!write "
            "--rm!R1 -D: -p: --rsyncable -e,--extreme --ultra --long? -s,--small -i -m -L -H -a -0", operands="data",
            check=_compress),),
    "unzip": table("-l -t -Z -p -c -z -v -d: -o -n -j -q -qq -a -aa -x -P:!secret -C -L -X -V -K!R2 -u -f -h --help "
        "-: -B -O: -I: -U -M -b", operands="data", check=_unzip),
    "zipinfo": reader(""),
    **many("unrar rar 7z 7za 7zz 7zr", custom(_seven)),
    "zip": table("-T -TT:!exec --unzip-command:!exec -r -q -v -j -x: -i: -m!R3 -d!R1 -u -f -0 -9 -e -P:!secret -y "
        "-X -s: -sf -l -ll -@ -1 -2 -3 -4 -5 -6 -7 -8 --help -h -b: -n: -o -g -k -D -F -FF -FS -A -J -z "
        "-t: -tt: --out: -O: --symlinks --recurse-paths --encrypt --password: --exclude:", operands="data",
        level="R1", text="writes an archive"),
    "cpio": table("-t,--list -i,--extract -o,--create -p,--pass-through -v -d,--make-directories -m "
        "-u,--unconditional -F,--file: -I: -O:!write -H,--format: --rsh-command:!exec --to-stdout "
        "--no-absolute-filenames -A -B -c -0 -L --quiet -D,--directory: -E: -f -n -a --help --version",
        operands="data", check=_cpio),
    "ar": custom(lambda call: _ar(call)),
    **many("rsnapshot borg restic duplicity", table("", operands="data", level="R2", text="makes or changes backups")),
    **many("vi vim nvim nano emacs ed ex pico micro joe view vimdiff rvim helix hx kak ne mcedit gedit code subl",
        table("", operands="data", level="R2", text="an editor: interactive, and can run commands")),
}  # fmt: skip
