"""Programs that pack files and unpack them. Source: GNU tar, gzip, Info-ZIP, GNU cpio and 7-Zip manuals."""

from guard.judge.families import credentials
from guard.judge.landing import note_put
from guard.judge.levels import R1, R2
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
        "cpio -t < a"),
    "R1": ("gzip f", "tar -cf a.tar d", "tar xzf a.tgz -C d", "unzip a.zip -d d", "tar -C /srv -xf a.tar",
        "7z x a.7z -od", "unrar x a.rar d/", "7z a a.7z d", "ar r lib.a x.o", "cpio -p d < names",),
    "R2": ("tar -cf a.tar -I x d", "tar --to-command=x -xf a", "tar --checkpoint-action=exec=x -cf a b",
        "tar -xf a -C /", "tar tf a.tar --use-compress-program=x", "tar xzf a.tgz", "unzip a.zip",
        "tar -C a -C b -xf c", "7z x a.7z", "unrar x a.rar", "ar x lib.a", "cpio -i < a", "unzip a -d ~",
        "tar xf a -C /etc/",),
    "R3": ("zip -m a.zip f", "tar --remove-files -cf a.tar d"),
}  # fmt: skip


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


PROGRAMS: dict[str, Program] = {
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
}  # fmt: skip
