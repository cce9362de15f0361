"""Programs that read text and print it. Source: the GNU coreutils and util-linux manuals."""

from guard.judge import paths
from guard.judge.families import credentials
from guard.judge.levels import R1, R2
from guard.judge.options import Grammar, Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, perform, reader, table, verbs
from guard.judge.shell.syntax import Word
from guard.judge.tables import names
from guard.judge.touches import INCOMPLETE

EXAMPLES = {
    "R0": ("cat /etc/os-release", "head -n 5 f", "head -5 f", "tail -f /var/log/syslog", "wc -l f",
        "sort -k2,2n -t: /etc/passwd", "sort --parallel=2 f", "uniq -c", "uniq -c in", "cut -d: -f1 /etc/passwd",
        "tr a-z A-Z", "column -t", "diff -u a b", "cmp a b", "comm -12 a b", "paste -sd,", "jq .a f.json",
        "md5sum f", "sha256sum -c sums", "base64 -d f", "xxd f | head", "od -c f", "strings f", "nl f", "tac f",
        "rev f", "fold -w 80 f", "file f", "stat f", "ls -la /srv", "less +F f", "seq 1 3", "sleep 1", "date +%s",
        "date -d yesterday", "ls *.log", "cat a b 2>/dev/null", "yq . f.yml", "hexdump -C f", "readlink -f x",
        "basename /a/b", "tree -L 2",),
    "R1": ("sort -o out in", "sort -uo f f", "uniq in out", "cat a > b", "tee out", "ls | tee -a out",
        "yq -i .a=1 f.yml", "xxd -r f out", "shuf -o out f", "tree -o out", "iconv -f a -t b -o out f", "fmt f > g",),
    "R2": ("split f", "split -b 1M f part_", "csplit f 10",
        "sort --compress-program=x f", "sort --compress-prog x f", "date -s 12:00", "date 010203042026",
        "cat /dev/sda", "cat ~/.ssh/id_rsa", "cat /etc/shadow", "head -c 10 /dev/mem", "tail -n1 .env",
        "cat /proc/1/environ", "cat *.pem", "tee /etc/passwd", "tee ~/.bashrc", "less -o x f; sort $X --comp",
        "man -P x ls", "grep x ~/.aws/credentials", "cat < /etc/shadow", "hostname web1", "xargs cat /etc/shadow",
        "base64 ~/.ssh/id_ed25519",),
    "R3": ("tee /dev/sda", "cat x > /dev/nvme0n1", "split f /dev/sda"),
}  # fmt: skip


def _diff(call: Call, parsed: Parsed) -> None:
    if parsed.has("-r"):
        call.flag("recursive-read")
        credentials(call, parsed.operands)


def _listing(call: Call, parsed: Parsed) -> None:
    """tree shows a file's lines as if they were names."""
    if parsed.has("--fromfile"):
        for word in parsed.operands:
            call.reads(word)


def _uniq(call: Call, parsed: Parsed) -> None:
    operands = parsed.operands
    if operands:
        call.reads(operands[0])
    if len(operands) > 1:
        call.writes(operands[1])


def _tee(call: Call, parsed: Parsed) -> None:
    for word in parsed.operands:
        if word.value != "-":
            call.writes(word)
            if (word.value or "").startswith(("/dev/stdout", "/dev/fd/")):
                call.note(R1, "tee.stream", "writes to what a descriptor stands for", word)


def _date(call: Call, parsed: Parsed) -> None:
    if parsed.has("--rfc-3339") and (parsed.value("--rfc-3339") or call.word) is not None:
        form = parsed.value("--rfc-3339")
        if form is None or (form.value or "") not in ("date", "seconds", "ns", "s", "sec", "d"):
            call.opaque("a form that the text does not tell", form)
    for word in parsed.operands:
        value = word.value
        if value is not None and value.startswith("+"):
            continue
        if value is None and word.prefix.startswith("+"):
            continue
        if value is None and word.quoted:
            call.flag("options-from-expansion")
            continue
        call.note(R2, "date.set", "sets the clock", word)


def _hostname(call: Call, parsed: Parsed) -> None:
    for word in parsed.operands:
        call.note(R2, "hostname.set", "sets the host's name", word)


def _split(call: Call, parsed: Parsed) -> None:
    """Pieces with numbered names: as many as there turn out to be, so that not all of them can be saved as absent."""
    if any(option.name in ("--help", "--version") for option in parsed.options):
        return
    operands = parsed.operands
    if operands:
        call.reads(operands[0])
    if call.name == "csplit":
        prefix, default = parsed.value("-f"), "xx"
    else:
        prefix, default = (operands[1] if len(operands) > 1 else None), "x"
    text = default if prefix is None else call.value(prefix)
    if text is None:
        call.opaque("writes pieces under names that the text does not tell", prefix, "path.dynamic")
        return
    call.writes(Word(prefix.span if prefix is not None else call.span, f"{text}*", (), True, globs=True), level=R2)
    call.judge.flags.add(INCOMPLETE)


def _patch(call: Call, parsed: Parsed) -> None:
    if parsed.has("-o") or parsed.has("--dry-run"):
        return
    call.judge.flags.add(INCOMPLETE)  # what does not fit is left beside, and what was there may be kept there
    if parsed.operands and not parsed.has("-d"):
        call.writes(parsed.operands[0])
    else:
        text = "changes files that the patch names and the text does not: name the file, which can be saved"
        call.note(R2, "patch.names", text, None, "patch(1)")


def _xxd(call: Call, parsed: Parsed) -> None:
    operands = parsed.operands
    if operands:
        call.reads(operands[0])
    if len(operands) > 1:
        call.writes(operands[1])


_JQ = Grammar(
    "-n,--null-input -r,--raw-output -j,--join-output -a,--ascii-output -C,--color-output -M,--monochrome-output "
    "-c,--compact-output -e,--exit-status -s,--slurp -R,--raw-input -S,--sort-keys --tab --args --jsonargs "
    "-f,--from-file:!read -L,--library-path:!config --seq --stream --stream-errors --indent: -h,--help -V,--version "
    "-0 --raw-output0 --unbuffered --ascii -b,--binary --build-configuration"
)
_JQ_PAIRS = frozenset(("--arg", "--argjson", "--slurpfile", "--rawfile", "--argfile"))


def _jq(call: Call) -> None:
    """jq: options that take two words (a name, then a text or a file) stand apart from the grammar."""
    words: list[Word] = []
    at, data = 0, 0
    while at < len(call.args):
        word = call.args[at]
        if word.value in _JQ_PAIRS:
            if word.value in ("--slurpfile", "--rawfile", "--argfile") and at + 2 < len(call.args):
                call.reads(call.args[at + 2])
            at += 3
            continue
        words.append(word)
        if not data and word.value in ("--args", "--jsonargs"):
            data = len(words)
        at += 1
    parsed = _JQ.parse(words)
    perform(call, parsed)
    for word in parsed.unknown:
        call.note(R2, "jq.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    if parsed.loose:
        call.flag("options-from-expansion")
    files = parsed.operands if parsed.has("-f") else parsed.operands[1:]
    # Behind --args words are texts; a file may still stand before it.
    before = {id(word) for word in words[:data]}
    for word in files:
        if not data or id(word) in before:
            call.reads(word)


def _yq(call: Call, parsed: Parsed) -> None:
    inplace = parsed.has("-i")
    for word in parsed.operands[:2]:
        # load("f") and its kin read any file.
        text = call.value(word) or word.shape
        for piece in text.split('"')[1::2] if "load" in text else ():
            call.reads(Word(word.span, piece, (), True))
    if any(word.value in ("shell-completion", "completion") for word in parsed.operands[:1]):
        return
    for word in parsed.operands[1:]:
        (call.writes if inplace else call.reads)(word)
    if inplace and len(parsed.operands) < 2:
        call.note(R1, "yq.in-place", "edits files in place")


def _colordiff(call: Call, parsed: Parsed) -> None:
    # Its configuration may name the program that compares (colordiff(1), diff_cmd).
    call.flag("helper")


def _man(call: Call, parsed: Parsed) -> None:
    """man and info: a name with a slash is a file that is shown, and with `-l` (man) every name is one."""
    if call.name == "man":
        call.flag("helper")
    for word in parsed.operands:
        if parsed.has("-l") or "/" in (word.value or word.shape):
            call.reads(word)


def _mktemp(call: Call, parsed: Parsed) -> None:
    if not parsed.has("-u"):
        call.note(R1, "mktemp.create", "creates a temporary file")


def _less(call: Call, parsed: Parsed) -> None:
    call.flag("helper")
    if call.name not in ("less", "zless"):
        # Where a letter takes no value, what stands behind it is a file.
        for option in parsed.options:
            call.reads(option.value)
    for word in parsed.operands:
        if word.value is not None and word.value.startswith("+"):
            given = word.value[1:]
            if not (
                given in ("", "F", "G", "g", "p", "+F", "+G")
                or given.isdigit()
                or (given[0] in "/?" and "\n" not in given)
            ):
                call.note(R2, "less.command", "runs a command from inside the pager", word)
            continue
        call.reads(word)


def _urls(call: Call, parsed: Parsed) -> None:
    """A file operand that is an address is fetched."""
    for word in (*parsed.operands, *(option.value for option in parsed.options if option.value is not None)):
        if "://" in (word.value or word.shape):
            call.note(R2, f"{call.name}.fetch", "fetches from an address", word, "law 10")


def _response_file(call: Call, parsed: Parsed) -> None:
    """binutils take options from `@FILE`."""
    for word in parsed.operands:
        if (word.value or "").startswith("@"):
            call.note(R2, f"{call.name}.options-file", "takes options from a file that is not read here", word, "law 2")


_MILLER_READS = names("""
altkv bar bootstrap bottom cat count count-distinct count-similar cut decimate fill-down fill-empty format-values
fraction
gap grep group-by group-like gsub having-fields head histogram json-parse json-stringify join label latin1-to-utf8
least-frequent merge-fields most-frequent nest nothing regularize rename reorder repeat reshape sec2gmt sec2gmtdate
seqgen
sort sort-within-records sparsify split-join split-lines split-words ssub stats1 stats2 step sub summary tac
template top
utf8-to-latin1 unflatten flatten uniq unspace unsparsify
""")


def _miller(call: Call) -> None:
    """mlr: a chain of verbs; put, filter, tee and split have a language or files of their own."""
    words = list(call.args)
    at = 0
    while at < len(words) and (words[at].value or "x").startswith("-"):
        option = words[at].value
        if option in ("-I", "-n", "-s", "--from", "--mfrom", "--ofmt", "--nr-progress-mod", "--load", "--mload") or (
            option or ""
        ).startswith("--prepipe"):
            if option == "--from" and at + 1 < len(words):
                call.reads(words[at + 1])
                at += 2
                continue
            call.note(R2, "mlr.option", f"{option} writes in place, runs a program or a script", words[at])
        at += 2 if option in ("--ifs", "--ofs", "--fs", "--ips", "--ops", "--ps", "--irs", "--ors", "--rs") else 1
    rest = words[at:]
    if not rest:
        return
    heads = [rest[0], *(rest[i + 1] for i, word in enumerate(rest[:-1]) if word.value == "then")]
    for word in heads:
        if word.value not in _MILLER_READS and word.value not in ("help", "version", "--version", "--help"):
            call.note(R2, "mlr.verb", f"{word.shape} can write files or run programs", word)
    for word in rest[1:]:
        if word.value is not None and ("/" in word.value or paths.secret(paths.normal(word.value))):
            call.reads(word)


_DIFF = (
    "-l,--paginate!helper -r,--recursive -q,--brief -s,--report-identical-files -c -C: --context? -u -U: --unified? "
    "-e,--ed -n,--rcs -y,--side-by-side -W,--width: --left-column --suppress-common-lines -p,--show-c-function "
    "-F,--show-function-line: -L,--label: -t,--expand-tabs -T,--initial-tab --tabsize: --suppress-blank-empty "
    "--no-dereference -N,--new-file --unidirectional-new-file -P --ignore-file-name-case --no-ignore-file-name-case "
    "-x,--exclude: -X,--exclude-from:!read -S,--starting-file: --from-file:!read --to-file:!read -i,--ignore-case "
    "-E,--ignore-tab-expansion -Z,--ignore-trailing-space -b,--ignore-space-change -w,--ignore-all-space "
    "-B,--ignore-blank-lines -I,--ignore-matching-lines: -a,--text --strip-trailing-cr -D,--ifdef: --line-format: "
    "--old-group-format: --new-group-format: --unchanged-group-format: --changed-group-format: --old-line-format: "
    "--new-line-format: --unchanged-line-format: -d,--minimal --horizon-lines: -H,--speed-large-files --color? "
    "--palette: --normal -h --help -v,--version -[0-9] --binary"
)
_BINUTILS = (
    "--plugin:!exec --debuginfod!net -A,--print-file-name,--arch-specific -B -C,--demangle? "
    "-D,--dynamic,--disassemble-all,--use-dynamic -E -F,--file-offsets -G,--stabs -H,--help -I -L -M: "
    "-P,--portability,--process-links -R,--relocated-dump -S,--print-size,--source -T,--dynamic-syms "
    "-U -V,--version -W? -X -a,--all,--debug-syms,--archive-headers,--addresses -b -c,--archive-index "
    "-d,--disassemble? -e --headers --debugging --exe:!read -f,--file-headers,--functions "
    "-g,--extern-only,--section-groups "
    "-h,--file-header,--section-headers,--sections -i,--info,--inlines,--pretty-print -j -l,--line-numbers,"
    "--program-headers,--segments -m -n,--numeric-sort,--notes -o -p,--no-sort,--private-headers -r,--reverse-sort,"
    "--reloc,--relocs -s,--print-armap,--full-contents,--symbols,--syms,--basenames -t --radix: "
    "-u,--undefined-only,--unwind -v,--version-info -w? -x --all-headers --hex-dump: -z,--disassemble-zeroes,"
    "--decompress -[0-9] --size-sort --defined-only --synthetic --special-syms --with-symbol-versions --no-demangle "
    "--no-weak --recurse-limit --no-recurse-limit --ifunc-chars: --just-symbols --format: --quiet --target: --unicode: "
    "--line-numbers --common --totals --bytes: --encoding: --include-all-whitespace --output-separator: --data "
    "--section: --adjust-vma: --architecture: --ctf? --ctf-parent: --ctf-strings: --ctf-symbols: --debugging-tags "
    "--disassembler-color: --disassembler-options: --dwarf? --debug-dump? --dwarf-check --dwarf-depth: --dwarf-start: "
    "--dynamic-reloc --endian: --file-start-context --include: --insn-width: --no-addresses --show-raw-insn "
    "--no-show-raw-insn --prefix-addresses --prefix-strip: --prefix: --private: --sframe? --show-all-symbols "
    "--source-comment? --start-address: --stop-address: --visualize-jumps? --wide --dyn-syms --lto-syms --sym-base: "
    "--enable-checks --histogram --lint --section-details --string-dump: --silent-truncation -q -k -y"
)

PLAIN = reader()
DATA = custom(lambda call: None, plain=True)
"""Words that only mean themselves: `echo --force` deletes nothing."""
PROGRAMS: dict[str, Program] = {
    **many(
        "cat head tac rev nl fold fmt expand unexpand cut paste join comm cmp od hexdump hd column col "
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum md5 shasum look tsort factor ccze "
        "lolcat figlet toilet hexyl zdiff zcmp b3sum xxhsum crc32 "
        "pr", PLAIN),
    **many("zcat gzcat bzcat xzcat zstdcat lz4cat", reader(
            "-o:!write --output-dir-flat:!write --output-dir-mirror:!write --trace:!write --train!R1 --train-cover?!R1 "
            "--train-fastcover?!R1 --train-legacy?!R1 --rm!R3 -c,--stdout,--to-stdout -d,--decompress,--uncompress "
            "-z,--compress -f,--force -h,--help -H -k,--keep -l,--list -L,--license -m -n,--no-name -N,--name "
            "-q,--quiet "
            "-r,--recursive -s,--small -S,--suffix: -t,--test -v,--verbose -V,--version -[0-9] --fast --best "
            "-T,--threads: "
            "-M,--memory: -D:!read -C --no-sparse --sparse --single-stream --ignore-check --format: -F: --files?!read "
            "--files0?!read -Q,--no-warn --robot --info-memory --long? --no-check --check --no-progress --progress "
            "--no-dictID --filelist:!read --synchronous --rsyncable --ascii -a --no-frame-crc --memlimit-decompress: "
            "--exclude-compressed --lzma --xz --gzip --lz4 --zstd")),
    "wc": reader("-c,--bytes -m,--chars -l,--lines -L,--max-line-length -w,--words --total: --files0-from:!read"),
    "colrm": table("", operands="none", level="R1", text="takes columns out of a text"),
    **many("tokei c++filt jless", reader("", plain=False)),
    **many("gron mdcat", reader("", plain=False, check=lambda call, parsed: _urls(call, parsed))),
    "wdiff": reader("-a,--auto-pager!exec -t,--terminal -l,--less-mode -1 -2 -3 -d,--diff-input -i -n -p -s "
        "-y: -z: -w: -x: -h -v -C -K -o,--output:!write", unknown="R2"),
    "colordiff": reader(f"{_DIFF} --difftype: --fakeexitcode --no-banner", plain=False, check=_colordiff),
    "diffstat": reader("-b -c -C -d -D: -e:!write -E -f: -h -k -K -l -m -n: -N: -o:!write -p: -q -r: -R -s -S: -t -T "
        "-u "
        "-v -V -w:", plain=False),
    "diff3": reader("--diff-program:!exec -A,--show-all -e,--ed -E,--show-overlap -m,--merge -T,--initial-tab "
        "-x,--overlap-only -X -3,--easy-only -i -L,--label: -a,--text --strip-trailing-cr --help -v,--version"),
    **many("cloc scc sloccount", reader(
            "--by-file --by-file-by-lang --diff --git --exclude-dir: --exclude-ext: --exclude-lang: --include-lang: "
            "--include-ext: --json --yaml --csv --xml --md --quiet --progress-rate: --vcs: --fullpath --hide-rate "
            "--sum-reports --max-file-size: --not-match-d: --not-match-f: --match-d: --match-f: --follow-links "
            "--skip-uniqueness "
            "--processes: --show-lang --show-ext --timeout: --list-file:!read --percent: --no-complexity -f,--format: "
            "-s,--sort: -w,--wide -i: -x: -l,--languages --no-cocomo --no-size -v --version -h --help --3 "
            "--summary-cutoff: "
            "--out:!write --report-file:!write --sql:!write -o,--output:!write", plain=False, operands="data",
            unknown="R2", check=lambda call, parsed: call.flag("helper"))),
    "highlight": table("", level="R1", text="writes what it colours, and a style sheet beside it"),
    **many("cowsay cowthink", reader("-f:!exec -l -e: -T: -W: -n -b -d -g -p -s -t -w -y -h -r -C:", operands="data",
            plain=False)),
    **many("nm strings objdump readelf size addr2line", reader(_BINUTILS, check=_response_file)),
    "fx": table("", operands="data", level="R2", text="runs what it is given as JavaScript"),
    "sdiff": reader("-o,--output:!write --diff-program:!exec -i,--ignore-case -E,--ignore-tab-expansion "
        "-Z,--ignore-trailing-space -b,--ignore-space-change -W,--ignore-all-space -B,--ignore-blank-lines "
        "-I,--ignore-matching-lines: --strip-trailing-cr -a,--text -w,--width: -l,--left-column "
        "-s,--suppress-common-lines -t,--expand-tabs --tabsize: -d,--minimal -H,--speed-large-files --help "
        "-v,--version"),
    "xmllint": reader("single --output,-output,-o:!write --shell,-shell!exec --noout,-noout --xpath,-xpath: "
        "--format,-format --pretty: --schema,-schema: --relaxng: --dtdvalid: --schematron: --c14n --c14n11 --exc-c14n "
        "--valid --postvalid --html --xmlout --recover --nonet --noent --nowarning --noblanks --nocdata --nodefdtd "
        "--huge --encode: --stream --sax --timing --version --debug --copy --dropdtd --nsclean --path: --oldxml10 "
        "--xinclude --quiet --repeat --compress -", plain=False, unknown="R2",
        check=lambda call, parsed: _urls(call, parsed)),
    "tidy": reader("single -m,-modify!R1 -o,-output:!write -f,-file:!write -q,-quiet -e,-errors -xml -i,-indent "
        "-asxml -asxhtml -ashtml -h,-help -v,-version,--version -config:!config -w,-wrap: -c,-clean -b,-bare "
        "-n,-numeric -u,-upper -utf8 -raw -ascii -latin1 -omit -g,-gdoc --show-warnings: --show-errors: --show-info: "
        "--tidy-mark: --quiet: --wrap: --indent: --doctype: --drop-empty-elements: -help-config -show-config",
        unknown="R2"),
    "pygmentize": reader("-o:!write -l: -f: -O: -P: -x!exec -g -N: -S: -L -a: -s -v -h -F:", plain=False),
    "bat": reader("--pager:!exec -l,--language: -p,--plain -n,--number --style: -r,--line-range: --color: "
        "-A,--show-all --theme: -H: -P --paging: --list-languages --list-themes -f -d --diff --tabs: "
        "--wrap: -m: --map-syntax: --file-name: --config-file --config-dir --cache-dir -s -u -E -h -V "
        "--decorations: --terminal-width: --italic-text: --help --version --force-colorization "
        "--squeeze-blank --no-pager --no-paging --diagnostic", plain=False, unknown="R2"),
    "batcat": reader("--pager:!exec -l,--language: -p,--plain -n,--number --style: -r,--line-range: --color: "
        "-A,--show-all --theme: -H: -P --paging:", plain=False, unknown="R2"),
    "tail": reader("-f,--follow? -F -n,--lines: -c,--bytes: -q,--quiet -v,--verbose -s,--sleep-interval: --pid: "
        "--retry -z -[0-9]"),
    "diff": reader(_DIFF, check=_diff),
    "sort": reader("-b,--ignore-leading-blanks -d,--dictionary-order -f,--ignore-case -g,--general-numeric-sort "
        "-i,--ignore-nonprinting -M,--month-sort "
        "-h,--human-numeric-sort -n,--numeric-sort -R,--random-sort --random-source:!read -r,--reverse "
        "--sort: -V,--version-sort "
        "--batch-size: -c,--check? -C --debug --files0-from:!read -k,--key: -m,--merge -o,--output:!write "
        "-s,--stable " "-S,--buffer-size: -t,--field-separator: -T,--temporary-directory: --parallel: -u,--unique "
        "-z,--zero-terminated -[0-9] " "--compress-program:!exec --help --version", unknown="R2",),
    "uniq": reader("-c,--count -d,--repeated -D,--all-repeated? -f,--skip-fields: --group? -i,--ignore-case "
        "-s,--skip-chars: -u,--unique " "-z,--zero-terminated -w,--check-chars: -[0-9] --help --version",
        operands="data", check=_uniq, unknown="R2",),
    **many("tr seq sleep yes basename dirname expr usleep printenv getopt envsubst", DATA),
    **many("nproc tty tput getconf infocmp cal ncal logname", reader("", operands="data")),
    **many("ls dir vdir lsd exa eza stat file readlink realpath pathchk tree du df namei getfacl getfattr "
        "mountpoint findmnt " "cksum which whereis locate plocate whatis apropos", reader("", operands="data")),
    "ls": reader("", operands="data"),
    "file": reader("-C,--compile!R1 -m,--magic-file: -f,--files-from:!read -z,--uncompress -Z -S -s,--special-files "
        "-b,--brief -i,--mime -L,--dereference -k,--keep-going -p,--preserve-date -r,--raw -0,--print0 "
        "-N,--no-pad -n,--no-buffer -F,--separator: -e,--exclude: --exclude-quiet: -P,--parameter: -v,--version "
        "-d,--debug -h,--no-dereference -l,--list -E -I --mime-type --mime-encoding --extension --apple "
        "-c,--checking-printout --uncompress-noreport --help", operands="data", check=lambda call,
            parsed: [call.reads(word) for word in parsed.operands] and None
        if parsed.has("-s") else None),
    "tree": reader("-o:!write -R!R1 -H: -L: -I: -P: --filelimit: --charset: -T: --timefmt: --sort? --fromfile "
        "--gitfile: --infofile: --filesfrom: --prune --noreport --matchdirs --dirsfirst --metafirst --gitignore "
        "-a -d -l -f -x -p -u -g -s -h -D -F -q -N -Q -r -t -c -U -v -i -A -S -n -C -X -J --du --si --inodes --device "
        "--ignore-case --info --nolinks --houtro:!read --hintro:!read --compress: --opt-toggle --help --version",
        operands="data", check=lambda call, parsed: _listing(call, parsed)),
    "du": reader("--files0-from:!read -X,--exclude-from:!read", operands="data", unknown="R0", check=None),
    "column": reader(""),
    "tee": table("-a,--append -i,--ignore-interrupts -p --output-error? --help --version", operands="data",
        check=_tee, plain=True),
    **many("split csplit", table(
            "-a,--suffix-length: -b,--bytes: -C,--line-bytes: -d,--numeric-suffixes? -x,--hex-suffixes? "
            "--additional-suffix: -e,--elide-empty-files "
            "--filter:!exec -l,--lines: -n,--number: -t,--separator: -u,--unbuffered --verbose "
            "-f,--prefix: -k -s,--quiet -z --suffix-format: " "--suppress-matched --help --version",
            operands="data", check=_split, plain=True)),
    "shuf": reader("-e,--echo -i,--input-range: -n,--head-count: -o,--output:!write --random-source:!read "
        "-r,--repeat -z --help --version", unknown="R2"),
    "iconv": reader(
        "-f,--from-code: -t,--to-code: -l,--list -c -o,--output:!write -s,--silent --verbose --help --version",
        unknown="R2"),
    "recode": table("-l -q -h --list", operands="data", level="R1"),
    **many("base64 base32 basenc", reader(
            "-d,--decode -D -i,--ignore-garbage -w,--wrap: -b: -o,--output:!write --base64 --base64url "
            "--base32 --base16 --base2msbf --z85 --help --version", check=None)),
    "xxd": reader("single -a,-autoskip -b,-bits -c,-cols: -C,-capitalize -d -E,-EBCDIC -e -g,-groupsize: -h,-help "
        "-i,-include -l,-len: -n,-name: " "-o: -p,-ps,-postscript,-plain -r,-revert -R: -s,-seek: -u -v,-version",
        operands="data", check=_xxd, unknown="R2"),
    "jq": custom(_jq, plain=True),
    "yq": reader("-i,--inplace,--in-place -P,--prettyPrint -r,--raw-output,--unwrapScalar? -o,--output-format: "
        "-p,--input-format: -y,-Y -j -s,--split-exp:!R1 -n,--null-input -N -e,--exit-status -C -M "
        "-I,--indent: -c -S --arg: --from-file: -V --version -h --help -v --no-colors --no-doc --verbose --colors "
        "-a,--ascii-output --expression: -f,--front-matter: --header-preprocess? --string-interpolation? "
        "--csv-auto-parse? --tsv-auto-parse? --csv-separator: --tsv-separator: --lua-prefix: --lua-suffix: "
        "--lua-unquoted --lua-globals --properties-separator: --properties-array-brackets "
        "--xml-attribute-prefix: --xml-content-name: --xml-directive-name: --xml-proc-inst-prefix: --xml-raw-token? "
        "--xml-keep-namespace? --xml-skip-comments --xml-skip-directives --xml-skip-proc-inst --xml-strict-mode "
        "--shell-key-separator: --security-disable-env-ops --security-disable-file-ops --yaml-output "
        "--yaml-roundtrip --width: --indentless-lists --explicit-start --explicit-end --yaml-output-grammar-version: "
        "--slurp -0,--nul-output", operands="data", check=_yq, plain=False),
    **many("less more most zless zmore pg", reader(
            "-o,--log-file:!write -O,--LOG-FILE:!write -k,--lesskey-file:!exec --lesskey-src:!exec "
            "--save-marks!R1 "
            "--lesskey-content:!exec --lesskey-context:!exec -t,--tag: -T,--tag-file: -p,--pattern: -P,--prompt: "
            "-x,--tabs: -y,--max-forw-scroll: -z,--window: -b,--buffers: -h,--max-back-scroll: -j,--jump-target: "
            "-[0-9] -? --help -a,--search-skip-screen -A,--SEARCH-SKIP-SCREEN -B,--auto-buffers -c,--clear-screen -C "
            "-d,--dumb -D,--color: -e,--quit-at-eof -E,--QUIT-AT-EOF -f,--force -F,--quit-if-one-screen "
            "-g,--hilite-search -G,--HILITE-SEARCH -i,--ignore-case -I,--IGNORE-CASE -J,--status-column "
            "-K,--quit-on-intr -L,--no-lessopen -m,--long-prompt -M,--LONG-PROMPT -n,--line-numbers "
            "-N,--LINE-NUMBERS -q,--quiet,--silent -Q,--QUIET,--SILENT -r,--raw-control-chars "
            "-R,--RAW-CONTROL-CHARS -s,--squeeze-blank-lines -S,--chop-long-lines -u,--underline-special "
            "-U,--UNDERLINE-SPECIAL -V,--version -w,--hilite-unread -W,--HILITE-UNREAD -X,--no-init -~,--tilde -l -v "
            "--follow-name --mouse --MOUSE --no-keypad --no-histdups --use-backslash --use-color --wheel-lines: "
            "--rscroll: --incsearch --line-num-width: --status-line --status-col-width: --file-size --header: --intr: "
            "--no-search-headers --no-search-header-lines --no-search-header-columns --redraw-on-quit "
            "--search-options: --exit-follow-on-close --form-feed --modelines: --proc-backspace --PROC-BACKSPACE "
            "--proc-tab --PROC-TAB --proc-return --PROC-RETURN --no-poll --show-preproc-errors --no-number-headers "
            "--match-shift: --shift: --max-back-scroll:", operands="data", check=_less, plain=False)),
    "man": reader("-P,--pager:!exec -H,--html?!exec -X? -T? -Z -t -C,--config-file:!config -M,--manpath:!config -k "
        "-f -a -w -W -K -l,--local-file -S: -s: -L: -m: -e: -E: -p,--preprocessor:!R2 -r,--prompt:!R2 -R,--recode: "
        "-u,--update!R1 "
        "-c,--catman!R1 --help --version -d,--debug -D,--default --warnings? --whatis --apropos --global-apropos "
        "--where,--path,--location --where-cat --locale: --systems: --sections: --extension: "
        "-i,--ignore-case -I,--match-case --regex --wildcard --names-only --all --no-subpages -7,--ascii --encoding: "
        "--no-hyphenation,--nh --no-justification,--nj --troff --troff-device? --gxditview? --ditroff -? --usage",
        operands="data", check=_man, plain=False),
    "info": reader("-o,--output:!write --restore:!R2 --dribble:!write --init-file:!config --debug: -k,--apropos: "
    "-n,--node: "
        "-f,--file: -a,--all -w,--where,--location --usage -O,--show-options --subnodes --index-search: --vi-keys "
        "-d: -h --help --version --strict-node-location --raw-escapes --no-raw-escapes --speech-friendly",
        operands="data", plain=False, unknown="R2", check=_man),
    "tldr": reader("-u,--update!R1 -c,--clear-cache!R2 -p,--platform: -L,--language: -l,--list -r,--raw -m,--markdown "
        "-s,--search: -f,--render:!read -q -v,--version -h,--help --color: --linux --osx --short-options "
        "--long-options",
        operands="data", plain=False, unknown="R2"),
    "cheat": reader("-c,--colorize -d,--directories -l,--list -p,--path: -r,--regex -s,--search: -t,--tag: -T,--tags "
        "-v,--version -h --help -a,--all", operands="data", plain=False, unknown="R2"),
    "date": reader("-d,--date: --debug -f,--file:!read -I,--iso-8601? -R,--rfc-email --rfc-3339: --resolution "
        "-r,--reference: -s,--set:!R2 -u,--utc,--universal " "-j -v: --help --version", operands="data", check=_date,
        unknown="R2"),
    **many("hostname dnsdomainname domainname nisdomainname ypdomainname", reader(
            "-a,--alias -A,--all-fqdns -b,--boot!R2 -d,--domain -f,--fqdn,--long -F,--file:!R2 "
            "-i,--ip-address -I,--all-ip-addresses -s,--short -y,--yp,--nis -h -V --help --version -v",
            operands="data", check=_hostname, unknown="R2")),
    "mktemp": table("-d,--directory -u,--dry-run -q,--quiet --suffix: -p,--tmpdir? -t --help --version",
        operands="data", check=_mktemp),
    **many("dos2unix unix2dos mac2unix", table("", operands="write", level="R1")),
    "patch": table(
        "--dry-run -p: -i,--input:!read -d: -R -N -o,--output:!write -b -s -f -t -r: -u -c -e -n -E -Z -T "
        "-F: -l -B: -V: -x: -D:", operands="data", level="R1", text="changes files as a patch says", check=_patch),
    "mlr": custom(lambda call: _miller(call)),
    "sponge": table("-a", operands="write", level="R1"),
    **many("csvlook csvcut csvgrep csvstat csvsort csvjson in2csv", reader(
            "--write-sheets:!R1 --use-sheet-names -d,--delimiter: -t,--tabs -q,--quotechar: -u,--quoting: "
            "-b,--no-doublequote -p,--escapechar: -z,--maxfieldsize: -e,--encoding: -L,--locale: -S,--skipinitialspace "
            "--blanks --null-value: --date-format: --datetime-format: -H,--no-header-row -K,--skip-lines: "
            "-v,--verbose -l,--linenumbers --zero -V,--version -h,--help -I,--no-inference -y,--snifflimit: --add-bom "
            "-n,--names -c,--columns: -C,--not-columns: -x,--delete-empty-rows -r --regex: --reverse -m,--match: -f "
            "--file:!read --format: -i --invert-match -a,--any-match -k,--key: -s --schema:!read --sheet: --csv --json "
            "--indent: --lat: --lon: --type --geometry: --crs: --no-bbox --stream --nulls --non-nulls --unique --min "
            "--max --sum --mean --median --stdev --len --max-precision: --freq --freq-count: --count "
            "--decimal-format: -G,--no-grouping-separator --max-rows: --max-columns: --max-column-width: "
            "--no-number-ellipsis --reset-dimensions --encoding-xls: --ignore-case", plain=False)),
    "datamash": reader("", operands="data", plain=False),
    "xsv": verbs("-h,--help --version --list",
        """R0 headers|select|slice|search|count|frequency|stats|table|sort|flatten|sample|join|cat|fmt|input|fixlengths|
        reverse|help
        R1 split|partition|index""", danger="-o,--output:!write"),
    "vis": PLAIN,
    "unvis": PLAIN,
    "rlog": PLAIN,
}  # fmt: skip
