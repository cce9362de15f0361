"""Programs that read text and print it. Source: the GNU coreutils and util-linux manuals."""

from guard.judge.engine import R1, R2, Call, Program
from guard.judge.options import Parsed
from guard.judge.rules import custom, many, reader, table

EXAMPLES = {
    "R0": ("cat /etc/os-release", "head -n 5 f", "head -5 f", "tail -f /var/log/syslog", "wc -l f",
        "sort -k2,2n -t: /etc/passwd", "sort --parallel=2 f", "uniq -c", "uniq -c in", "cut -d: -f1 /etc/passwd",
        "tr a-z A-Z", "column -t", "diff -u a b", "cmp a b", "comm -12 a b", "paste -sd,", "jq .a f.json",
        "md5sum f", "sha256sum -c sums", "base64 -d f", "xxd f | head", "od -c f", "strings f", "nl f", "tac f",
        "rev f", "fold -w 80 f", "file f", "stat f", "ls -la /srv", "less +F f", "seq 1 3", "sleep 1", "date +%s",
        "date -d yesterday", "ls *.log", "cat a b 2>/dev/null", "yq . f.yml", "hexdump -C f", "readlink -f x",
        "basename /a/b", "tree -L 2",),
    "R1": ("sort -o out in", "sort -uo f f", "uniq in out", "cat a > b", "tee out", "ls | tee -a out", "split f",
        "yq -i .a=1 f.yml", "xxd -r f out", "shuf -o out f", "tree -o out", "iconv -f a -t b -o out f", "fmt f > g",),
    "R2": ("sort --compress-program=x f", "sort --compress-prog x f", "date -s 12:00", "date 010203042026",
        "cat /dev/sda", "cat ~/.ssh/id_rsa", "cat /etc/shadow", "head -c 10 /dev/mem", "tail -n1 .env",
        "cat /proc/1/environ", "cat *.pem", "tee /etc/passwd", "tee ~/.bashrc", "less -o x f; sort $X --comp",
        "man -P x ls", "grep x ~/.aws/credentials", "cat < /etc/shadow", "hostname web1", "xargs cat /etc/shadow",
        "base64 ~/.ssh/id_ed25519",),
    "R3": ("tee /dev/sda", "cat x > /dev/nvme0n1", "split f /dev/sda"),
}  # fmt: skip


def _diff(call: Call, parsed: Parsed) -> None:
    if parsed.has("-r"):
        call.flag("recursive-read")


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


def _date(call: Call, parsed: Parsed) -> None:
    for word in parsed.operands:
        value = word.value
        if value is not None and value.startswith("+"):
            continue
        if value is None and word.prefix.startswith("+"):
            continue
        if value is None and word.quoted:
            call.flag("options-from-expansion")
            continue
        if parsed.has("-j"):
            continue
        call.note(R2, "date.set", "sets the clock", word)


def _hostname(call: Call, parsed: Parsed) -> None:
    for word in parsed.operands:
        call.note(R2, "hostname.set", "sets the host's name", word)


def _split(call: Call, parsed: Parsed) -> None:
    operands = parsed.operands
    if operands:
        call.reads(operands[0])
    if len(operands) > 1:
        call.writes(operands[1])
    else:
        call.note(R1, f"{call.name}.write", "writes its pieces into the current folder")


def _xxd(call: Call, parsed: Parsed) -> None:
    operands = parsed.operands
    if operands:
        call.reads(operands[0])
    if len(operands) > 1:
        call.writes(operands[1])


def _jq(call: Call, parsed: Parsed) -> None:
    for word in parsed.operands[1:]:
        call.reads(word)


def _yq(call: Call, parsed: Parsed) -> None:
    inplace = parsed.has("-i")
    for word in parsed.operands[1:]:
        (call.writes if inplace else call.reads)(word)
    if inplace and len(parsed.operands) < 2:
        call.note(R1, "yq.in-place", "edits files in place")


def _man(call: Call, parsed: Parsed) -> None:
    call.flag("helper")


def _mktemp(call: Call, parsed: Parsed) -> None:
    if not parsed.has("-u"):
        call.note(R1, "mktemp.create", "creates a temporary file")


def _less(call: Call, parsed: Parsed) -> None:
    call.flag("helper")
    for word in parsed.operands:
        if word.value is not None and word.value.startswith("+"):
            if word.value[1:2] not in ("F", "G", "/", "?", "") and not word.value[1:].isdigit():
                call.note(R2, "less.command", "runs a command from inside the pager", word)
            continue
        call.reads(word)


PLAIN = reader()
DATA = custom(lambda call: None, plain=True)
"""Words that only mean themselves: `echo --force` deletes nothing."""
PROGRAMS: dict[str, Program] = {
    **many(
        "cat head wc tac rev nl fold fmt expand unexpand cut paste join comm cmp od hexdump hd column colrm col "
        "md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum md5 shasum zcat bzcat "
        "xzcat zstdcat lz4cat gzcat zmore "
        "look ptx_ tsort factor c++filt "
        "mdcat jless gron ccze lolcat figlet toilet hexyl " "wdiff zdiff zcmp b3sum xxhsum crc32 tokei pr", PLAIN,),
    **many("colordiff diffstat", reader("-p:!ok -o:!write", plain=False, unknown="R0")),
    "diff3": reader("--diff-program:!exec", unknown="R0"),
    **many("cloc scc sloccount", reader(
            "--out:!write --report-file:!write --sql:!write --extract-with:!exec -o,--output:!write "
            "--config:!config --diff-list-file:!write --counted:!write --ignored:!write --found:!write "
            "--categorized:!write --write-lang-def:!write --unicode:!ok", plain=False, operands="data", unknown="R0")),
    "highlight": reader("-o,--output:!write -O,--out-format: -d,--outdir:!write --plug-in:!exec --config-file:!exec "
        "--data-dir:!exec -S,--syntax: -s,--style: -i,--input:!read -c,--style-outfile:!write", plain=False,
        unknown="R0"),
    **many("cowsay cowthink", reader("-f:!exec -l -e: -T: -W: -n -b -d -g -p -s -t -w -y", operands="data",
            plain=False, unknown="R0")),
    **many("nm strings objdump readelf size addr2line", reader("--plugin:!exec -w", unknown="R0")),
    "fx": table("", operands="data", level="R2", text="runs what it is given as JavaScript"),
    "sdiff": reader("-o,--output:!write --diff-program:!exec", unknown="R0"),
    "xmllint": reader("single --output:,-output:,-o:!write --shell,-shell!exec --noout,-noout --xpath,-xpath: "
        "--format,-format --schema,-schema: --c14n --valid -", unknown="R0"),
    "tidy": reader("single -m,-modify!R1 -o,-output:!write -f,-file:!write -q -quiet -e -errors -xml -i -indent "
        "-asxml -h -config:", unknown="R0"),
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
    "diff": reader("-l,--paginate!helper -r,--recursive", unknown="R0", check=_diff),
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
    "file": reader("-C,--compile!R1 -m,--magic-file: -f,--files-from:!read -z,--uncompress -Z -S", operands="data",
        unknown="R0"),
    "tree": reader("-o:!write -R!R1 -H: -L: -I: -P: --filelimit: --charset: -T: --timefmt: --sort? --fromfile "
        "--gitfile: --infofile: --filesfrom: --prune --noreport --matchdirs --dirsfirst --metafirst --gitignore",
        operands="data", unknown="R0"),
    "du": reader("--files0-from:!read -X,--exclude-from:!read", operands="data", unknown="R0", check=None),
    "column": reader(""),
    "tee": table("-a,--append -i,--ignore-interrupts -p --output-error? --help --version", operands="data",
        check=_tee, plain=True),
    **many("split csplit", table(
            "-a,--suffix-length: -b,--bytes: -C,--line-bytes: -d,--numeric-suffixes? -x,--hex-suffixes? "
            "--additional-suffix: -e,--elide-empty-files "
            "--filter:!exec -l,--lines: -n,--number: -t,--separator: -u,--unbuffered --verbose "
            "-f,--prefix:!write -k -s,--quiet -z --suffix-format: " "--suppress-matched --help --version",
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
    "jq": reader("-n,--null-input -r,--raw-output -j,--join-output -a,--ascii-output -C -M -c,--compact-output -e "
        "-s,--slurp -R,--raw-input -S,--sort-keys --tab --arg: "
        "--argjson: --slurpfile: --rawfile: --args --jsonargs -f,--from-file:!read -L: --seq --stream "
        "--indent: -h -V -0 --raw-output0", operands="data", check=_jq),
    "yq": reader("-i,--inplace,--in-place -P,--prettyPrint -r,--raw-output,--unwrapScalar? -o,--output-format: "
        "-p,--input-format: -y,-Y -j -s,--split-exp:!R1 -n,--null-input -N -e,--exit-status -C -M "
        "-I,--indent: " "-c -S --arg: --from-file: -V --version -h --help -v --no-colors --no-doc", operands="data",
        check=_yq, unknown="R0", plain=False),
    **many("less more most zless pg", reader(
            "-o,--log-file:!write -O,--LOG-FILE:!write -k,--lesskey-file:!exec --lesskey-src:!exec "
            "--lesskey-content:!exec -t,--tag: -T,--tag-file: -p: -P: -x: -y: -z: -b: -h: -j: -[0-9]",
            operands="data", check=_less, plain=False, unknown="R0")),
    "man": reader("-P,--pager:!exec -H,--html?!exec -X? -T? -Z -t -C,--config-file:!config -M,--manpath:!config -k "
        "-f -a -w -W -K -l -S: -s: -L: -m: -e: -E: -p: -r: -R: -u --help --version", operands="data", check=_man,
        plain=False, unknown="R0"),
    **many("info tldr cheat", reader("-o,--output:!write --restore:!R2 --dribble:!write -u,--update!R1",
            operands="data", plain=False, unknown="R0")),
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
        "-F: -l -B: -V: -x: -D:", operands="data", level="R1", text="changes files as a patch says"),
    "mlr": table("", operands="data", level="R2", text="its language can write files and run programs"),
    "sponge": table("-a", operands="write", level="R1"),
    **many("csvlook csvcut csvgrep csvstat csvsort csvjson in2csv xsv datamash", reader(
            "-I!R1 --split:!R1 --prepipe:!exec --prepipex:!exec -o,--output:!write", unknown="R0", plain=False)),
    "vis": PLAIN,
    "unvis": PLAIN,
    "rlog": PLAIN,
}  # fmt: skip
