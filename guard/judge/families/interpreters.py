"""Interpreters, compilers, build tools: they run code that is not read here, so R2 unless it is plainly harmless."""

from guard.judge.assignments import leads_to_shared
from guard.judge.levels import R1, R2, R3
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, reader, table
from guard.judge.shell.syntax import Word
from guard.judge.tables import names, starts

EXAMPLES = {
    "R0": ("python3 --version", "python3 -V", "node -v", "perl -v", "ruby --version", "make -n", "make --version",
        "gcc --version", "java -version", "php -v", "python3 -m json.tool f", "java -version", "go version",
        "rustc --version"),
    "R1": ("gcc a.c", "gcc -o x a.c"),
    "R2": ("python3 x.py", "python3 -c 'import os; os.system(\"id\")'", "perl -e 'print 1'", "node x.js",
        "ruby -e 'puts 1'", "make", "make install", "php -r 'x();'", "python3", "python3 -m http.server",
        "java -jar x.jar", "lua x.lua", "echo 'print(1)' | python3", "perl -pi -e s/a/b/ f", "gdb -p 1",
        "nosuchprogram", "./configure", "cmake ."),
    "R3": ("python3 -c 'import os; os.system(\"rm -rf /srv\")'", "perl -e 'system(\"rm -rf /srv\")'",
        "python3 -c 'import shutil; shutil.rmtree(\"/srv\")'", "ruby -e '`rm -rf /srv`'",
        "node -e 'require(\"child_process\").execSync(\"rm -rf /srv\")'"),
}  # fmt: skip

_GONE = starts("""
    rmtree( rm_rf rm_r( remove_tree rmSync( fs.rm( rmdirSync( unlinkSync FileUtils.remove os.RemoveAll removedirs(
""")
_VERSION = frozenset(("--version", "-version", "-V", "-v", "--help", "-h", "-help", "-VV"))


def code_text(call: Call, text: str, word: "Word | None") -> None:
    """Code in another language: strings in it that are shell commands still show the worst."""
    if any(item in text for item in _GONE):
        call.note(R3, "interpreter.remove-tree", "the code removes folders with everything in them", word)
    at = 0
    strings: list[str] = []
    while at < len(text) and len(strings) < 200:
        char = text[at]
        if char in "'\"`":
            stop = at + 1
            while stop < len(text) and text[stop] != char:
                stop += 2 if text[stop] == "\\" else 1
            strings.append(text[at + 1 : stop])
            at = stop + 1
        elif text.startswith(("qx", "%x"), at) and at + 2 < len(text) and not text[at + 2].isalnum():
            closing = {"(": ")", "{": "}", "[": "]", "<": ">"}.get(text[at + 2], text[at + 2])
            stop = text.find(closing, at + 3)
            stop = len(text) if stop < 0 else stop
            strings.append(text[at + 3 : stop])
            at = stop + 1
        else:
            at += 1
    # `["rm", "-rf", "/x"]`: the strings in a row are a command, too.
    candidates = [item for item in strings if " " in item]
    for index, item in enumerate(strings):
        if item in (
            "rm",
            "mkfs",
            "dd",
            "shred",
            "/bin/rm",
            "sh",
            "bash",
            "kubectl",
            "docker",
            "git",
            "aws",
            "terraform",
            "wipefs",
        ):
            candidates.append(" ".join(strings[index : index + 6]))
    for item in candidates[:40]:
        probe = type(call.judge)()
        probe.depth = call.judge.depth + 1
        probe.text(item)
        if probe.level >= R3:
            call.note(R3, "interpreter.command", "the code runs a command that cannot be undone", word)
            return


def _interpreter(call: Call) -> None:
    args = list(call.args)
    values = [word.value for word in args]
    if (
        args
        and all(value in _VERSION for value in values)
        and (
            call.name not in ("perl", "ruby", "python", "python3") or values != ["-v"] or call.name in ("perl", "ruby")
        )
    ):
        return
    if call.name.startswith("python") and values[:2] in (
        ["-m", "json.tool"],
        ["-m", "site"],
        ["-m", "sysconfig"],
        ["-m", "platform"],
        ["-m", "this"],
        ["-m", "calendar"],
    ):
        call.flag("helper")
        rest = [word for word in args[2:] if not (word.value or "x").startswith("-")]
        if any("generate" in (word.value or "generate") for word in args[2:]):
            call.note(R1, "interpreter.module", "writes a file")
        if values[1] == "json.tool":
            if rest:
                call.reads(rest[0])
            if len(rest) > 1:
                call.writes(rest[1])
        return
    if call.name.startswith("python") and values[:2] in (["-m", "pip"], ["-m", "pip3"]):
        call.argv([Word(args[1].span, "pip"), *args[2:]])
        return
    call.opaque(f"{call.name} runs code that is not read here", None, "interpreter.code")
    for at, word in enumerate(args):
        value = word.value if word.value is not None else word.shape
        if (
            (value.startswith("-") and not value.startswith("--") and any(char in value for char in "cerEnp"))
            or value in ("--eval", "--execute", "--print")
        ) and at + 1 < len(args):
            following = args[at + 1]
            code_text(call, call.value(following) or following.shape, following)
    if call.stdin:
        code_text(call, call.stdin, None)
    for redirect in call.redirects:
        if redirect.body is not None and redirect.body.value is not None:
            code_text(call, redirect.body.value, None)


def _make(call: Call) -> None:
    values = [word.value or "?" for word in call.args]
    if values and all(value in ("--version", "-v", "--help", "-h") for value in values):
        return
    dry = any(value in ("-n", "--dry-run", "--just-print", "--recon", "-q", "--question") for value in values)
    if dry and len(values) == 1:
        # Even a dry run evaluates $(shell …): a helper, and only where nothing can be written.
        call.flag("helper", "evaluates")
        return
    call.opaque("runs what a build file says", None, "build.run")


def _compiler(call: Call) -> None:
    values = [word.value or "?" for word in call.args]
    if values and all(
        value
        in (
            "--version",
            "-v",
            "--help",
            "-V",
            "-dumpversion",
            "-dumpmachine",
            "-version",
            "-print-search-dirs",
            "--print",
            "sysroot",
            "-vV",
        )
        for value in values
    ):
        return
    for at, word in enumerate(call.args):
        value = word.value or "?"
        if value.startswith(
            ("-fplugin", "-wrapper", "-B", "-specs", "@", "--param=plugin", "-Wl,", "-load", "-Xlinker", "-C", "?")
        ):
            call.note(R2, "build.compiler-option", f"{value} loads or runs other code", word)
        elif value == "-o" and at + 1 < len(call.args):
            call.writes(call.args[at + 1])
    call.note(R1, "build.compile", "writes what it compiles")


PROGRAMS: dict[str, Program] = {
    **many("python python2 python3 python3. pypy pypy3 perl ruby node nodejs deno php php-cli lua luajit "
        "tclsh wish guile sbcl clisp ghci runghc runhaskell irb erl elixir iex R Rscript julia octave "
        "gnuplot groovy scala kotlin jshell swift osascript ipython jython bpython gjs ts-node tsx "
        "phantomjs java jrunscript jjs crystal ocaml coffee m4 rlwrap ipython3 cscript wscript mono dart "
        "flutter gst", custom(_interpreter)),
    **many("make gmake ninja just task rake gulp grunt scons meson cmake ctest configure bmake dmake", custom(_make)),
    **many("gcc g++ cc c++ clang clang++ rustc javac ld gfortran tcc nasm gas as", custom(_compiler)),
    **many("gdb lldb rr valgrind perf bpftrace bpftool dtrace sysdig stap trace-cmd crash gcore pstack "
        "eu-stack jmap jcmd py-spy rbspy delve dlv uftrace ftrace execsnoop opensnoop biolatency tcplife", table(
            "--version!ok --help!ok", operands="data", level="R2", text="looks into or steers other processes")),
    "jps": reader("-J:!exec -q -m -l -v -V -h -help -? --help", operands="data", plain=False),
    "jstat": reader("single -J:!exec -t -help -options -? -h: -class -compiler -gc -gccapacity -gccause "
        "-gcmetacapacity -gcnew -gcnewcapacity -gcold -gcoldcapacity -gcutil -printcompilation -name: -snap --help",
        operands="data", plain=False),
    **many("bc dc", custom(lambda call: _calculator(call))),
    **many("pre-commit tox nox pytest jest mocha phpunit rspec cypress playwright black isort ruff flake8 "
        "mypy pylint eslint prettier rubocop golangci-lint tsc webpack vite rollup esbuild next nuxt ng "
        "vue django-admin flask rails gunicorn uvicorn uwsgi celery airflow dbt jupyter streamlit hugo "
        "jekyll mkdocs sphinx-build pdflatex latex xelatex tex pandoc convert magick ffmpeg gs inkscape "
        "libreoffice soffice sox exiftool montage mogrify optipng jpegoptim wkhtmltopdf pdftk qpdf", table(
            "--version!ok --help!ok", operands="data", level="R2",
            text="runs code or writes files in ways that are not read here")),
    **many("shellcheck shfmt hadolint yamllint", reader("-w,--write!R1 -f,--format: -x,--external-sources "
            "-a,--check-sourced -C,--color? -e,--exclude: -i,--include: --extended-analysis: --list-optional --norc "
            "--rcfile: -o,--enable: -P,--source-path: -s --shell: -S,--severity: -V,--version -v -W,--wiki-link-count: "
            "-h,--help -l,--list --list -d,--diff -n -ln,--language-dialect: -p,--posix -mn,--minify --simplify -bn,"
            "--binary-next-line -ci,--case-indent -sr,--space-redirects -kp,--keep-padding -fn,--func-next-line "
            "--indent: --filename: --apply-ignore -tojson,--to-json --find -c,--config --config-file: --config-data: "
            "--strict --no-warnings --list-files --ignore: --trusted-registry: --failure-threshold: --no-fail "
            "--no-color --require-label: --strict-labels --disable-ignore-pragma --error: --warning: --info: "
            "--style: -t,"
            "--failure-threshold: --file-path-in-report:", plain=False, operands="read")),
    "jsonlint": reader("-q,--quiet -c,--compact -s,--sort-keys -t,--indent: -v,--version -h,--help -C,--comments "
    "-V:,--validate: "
        "-e,--environment: -S -T -M -i,--in-place!R1 -W --pretty-print -p", plain=False, unknown="R2"),
    **many("pdftotext pdfinfo pdffonts pdfimages identify ffprobe mediainfo", custom(lambda call: _media(call))),
    **many("httpd nginx apache2ctl apachectl caddy haproxy varnishd named unbound dnsmasq postfix exim sshd "
        "cron crond rsyslogd ntpd prometheus alertmanager node_exporter grafana-server traefik envoy "
        "php-fpm containerd dockerd kubelet kube-apiserver etcd coredns", custom(lambda call: _server(call))),
    **many("postconf postqueue mailq doveconf dovecot named-checkconf named-checkzone unbound-checkconf "
        "promtool amtool unbound-control rndc doveadm postsuper postmap newaliases postalias varnishadm", custom(
            lambda call: _server_tool(call))),
    **many("opsx opsagent opsagent-mcp", custom(lambda call: _own(call))),
    "jar": custom(lambda call: None
        if call.args and (call.args[0].value or "").lstrip("-").startswith(("t",
        "list")) else
        call.note(R1, "files.jar", "writes or unpacks an archive")),
}  # fmt: skip


_MEDIA_OPTIONS = {
    "identify": names("-verbose -format -ping -quiet -version -list -units -precision -density -define_ -alpha"),
    "ffprobe": names("""
-v -loglevel -hide_banner -show_format -show_streams -show_entries -show_packets -show_frames -show_chapters "
"-show_programs
-show_error -of -print_format -output_format -select_streams -i -pretty -sexagesimal -unit -prefix -count_frames
-count_packets -version -h -formats -codecs -decoders -encoders -filters -protocols -buildconf -read_intervals -bitexact
-analyzeduration -probesize -show_data -show_private_data -byte_binary_prefix -show_versions -show_pixel_formats
"""),
    "mediainfo": names("-f --Full --Output --Inform --Version --Help -h --Help-Output --Language --Details"),
}


def _media(call: Call) -> None:
    """Tools that look at documents and pictures; two of them write what they take out."""
    if call.name in ("identify", "ffprobe", "mediainfo"):
        known = _MEDIA_OPTIONS[call.name]
        for word in call.args:
            value = word.value or word.shape
            if value.startswith("-") and value.partition("=")[0] not in known:
                call.note(R2, "media.option", f"{value} is not a known option", word, "law 2")
            elif "://" in value or value.startswith(("|", "@")) or (
                ":" in value and value.partition(":")[0].isalnum() and "/" not in value.partition(":")[0]
                and call.name != "ffprobe" and not value.startswith("%")
            ):  # fmt: skip
                call.note(R2, "media.protocol", "the name stands for more than a file", word)
    if call.name == "pdfimages" or (call.name == "pdftotext" and not any(word.value == "-" for word in call.args)):
        call.note(R1, "media.convert", "writes files")
    for word in call.args:
        if not (word.value or "x").startswith("-"):
            call.reads(word)


def _calculator(call: Call) -> None:
    """bc and dc: bc only calculates; dc's `!` runs a command."""
    for word in call.args:
        if word.value is None or (not word.value.startswith("-")):
            call.reads(word)
    text = " ".join(word.value or "?" for word in call.args) + (call.stdin or ("?" if call.stdin == "" else ""))
    if call.name == "dc" and ("!" in text or "?" in text):
        call.note(R2, "dc.command", "dc can run a command that it reads")


_CHECKS = {
    "nginx": ("-t", "-T", "-v", "-V", "-h", "-?", "-tq", "-qt"), "apache2ctl": ("configtest", "-t", "-S", "-M", "-v",
        "-V", "status", "-D", "DUMP_VHOSTS", "DUMP_MODULES"), "apachectl": ("configtest", "-t", "-S", "-M", "-v",
        "-V", "-D", "DUMP_VHOSTS", "DUMP_MODULES"), "httpd": ("-t", "-S", "-M", "-v", "-V", "-l", "-L"),
    "haproxy": ("-c", "-v", "-vv"), "caddy": ("validate", "version", "list-modules", "environ_"), "sshd": ("-t",
        "-T", "-V"), "named": ("-v", "-V"), "php-fpm": ("-t", "-v", "-i", "-m"), "postfix": ("status",),
    "dnsmasq": ("--test", "-v", "--version"), "unbound": ("-V",), "exim": ("-bV", "-bp", "-bpc"), "etcd": (
        "--version",),
    "kubelet": ("--version",), "dockerd": ("--version", "-v"), "containerd": ("--version", "-v"), "prometheus": (
        "--version",), "node_exporter": ("--version",), "grafana-server": ("-v",), "traefik": ("version",), "envoy": (
        "--version",), "coredns": ("-version", "-plugins"),
}  # fmt: skip


def _server(call: Call) -> None:
    """A server program: testing its configuration is a read, starting it is not."""
    known = _CHECKS.get(call.name, ())
    values = [word.value or "?" for word in call.args]
    skip = False
    tested = False
    apache = call.name in ("httpd", "apachectl", "apache2ctl")
    for value in values:
        if skip:
            skip = False
            if value.startswith("?") or leads_to_shared(call.judge, value):
                call.note(R2, "server.config", "takes its configuration from where others can write", None, "law 8")
        elif apache and value[:2] in ("-C", "-c"):
            tested = False  # a directive in the command line, which can load a module
            break
        elif value in known:
            tested = True
        elif (
            (value in ("-c", "-f", "-p", "-C", "--config") and tested)
            or (call.name == "haproxy" and value == "-f")
            or (call.name in ("nginx", "httpd", "sshd") and value in ("-c", "-f"))
        ):
            skip = True
            call.flag("helper")
        elif value in ("--help", "--version", "-h"):
            tested = True
        else:
            tested = False
            break
    if not tested or skip:
        call.note(R2, "server.run", f"starts, stops or signals {call.name}")
    else:
        call.flag("helper")


def _server_tool(call: Call) -> None:
    values = [word.value or "?" for word in call.args]
    name = call.name
    if name == "postconf":
        if any((value[:1] == "-" and set(value) & set("eX#?")) or "=" in value for value in values):
            call.note(R2, "mail.postconf", "changes the mail server's settings")
    elif name in ("mailq", "named-checkconf", "named-checkzone", "unbound-checkconf", "doveconf"):
        if name == "mailq" and values:
            call.opaque("options that are not read here")
        elif name == "named-checkzone" and any(value.startswith(("-o", "-w", "-j", "-D")) for value in values):
            call.note(R1, "dns.checkzone", "writes the zone to a file")
        elif (
            name == "named-checkconf" and any("p" in value for value in values if value[:1] == "-" and "x" not in value)
        ) or (name == "doveconf" and any(value[:1] == "-" and "P" in value for value in values)):
            call.note(R2, "server.secrets", "shows keys or passwords", None, "law 4")
        for word in call.args:
            if not (word.value or "-").startswith("-"):
                call.reads(word)
    elif name == "postqueue":
        if values not in (["-p"], ["-j"]):
            call.note(R2, "mail.queue", "changes the mail queue")
    elif (
        name in ("promtool", "amtool")
        and values
        and values[0] in ("check", "--version", "query", "alert", "silence")
        and not set(values) & {"add", "expire", "update", "import"}
        and "--help" not in values[:1]
    ):
        if values[0] in ("query", "alert", "silence"):
            call.peer("", 0, name)
    elif (
        name in ("unbound-control", "rndc")
        and values
        and values[0]
        in (
            "status",
            "stats",
            "stats_noreset",
            "list_stubs",
            "list_forwards",
            "list_local_zones",
            "zonestatus",
            "get_option",
            "recursing_",
        )
    ):
        if values[0] == "stats" and name in ("unbound-control", "rndc"):
            call.note(R1, "dns.stats", "resets counters or writes a statistics file")
    elif name == "doveadm" and (
        values[:1] in (["who"], ["user"]) or values[:2] in (["log", "find"], ["log", "errors"], ["instance", "list"])
    ):
        return
    elif name == "postsuper":
        call.note(R3 if any(value.startswith("-d") for value in values) else R2, "mail.queue", "changes the mail queue")
    elif name == "dovecot" and values in (["--version"], ["-n"], ["-a"]):
        return
    else:
        call.note(R2, f"server.{name}", f"{name} changes a server")


_TRUST = starts("""
    --config --target --actor --force --no-snapshot-of --mode --policy --rules --trust --state --uses --person
""")


def _own(call: Call) -> None:
    """opsagent's own programs: an agent may look and may ask for an execution; approving is a person's (law 6)."""
    values = [word.value for word in call.args]
    verb = next((value for value in values if value is not None and not value.startswith("--json")), None)
    trust = next(
        (
            value
            for value in values[: values.index("--") if "--" in values else None]
            if value is not None and value.startswith(_TRUST)
        ),
        None,
    )
    for assign in call.assigns:
        if assign.name.startswith("OPSAGENT_"):
            trust = trust or assign.name
    judge = call.judge
    if (
        call.name == "opsx"
        and trust is None
        and None not in values[:1]
        and verb in ("check", "explain", "executions", "list", "show", "audit", "--version", "--help", "-h")
        and not (verb == "audit" and (None in values or "retain" in values))
    ):
        call.flag("helper")
        return
    if call.name == "opsx" and trust is None and verb == "exec":
        # The inner command is judged there again, by the same rules; here it counts as what it is.
        rest = list(call.args)
        while rest and rest[0].value != "--":
            rest.pop(0)
        if len(rest) == 2:
            call.code(rest[1])
        elif len(rest) > 2:
            call.argv(rest[1:])
        else:
            call.note(R2, "own.exec", "runs a command through opsx")
        call.flag("helper")
        return
    judge.own_touched = judge.own_touched or f"approval: {call.name} {verb or ''}".rstrip()
    call.note(R2, "own.approval", f"{call.name} {verb or ''}".rstrip() + " is for a person", None, "law 6")
