"""Commands that carry commands: sudo, env, xargs, find -exec is in `families.search`, ssh, docker exec in `containers`.

Each reads its own options by its real grammar and hands the rest back to the judge, so a wrapper never
lowers what it wraps.
"""

from guard.judge.assignments import note_variable
from guard.judge.levels import R1, R2
from guard.judge.options import Grammar, Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, perform
from guard.judge.shell.syntax import Word
from guard.judge.shellwords import STRANGE_MODES
from guard.judge.tables import names
from guard.judge.variables import POINTING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLES = {
    "R0": ("sudo systemctl status nginx", "sudo -n -u postgres ls /srv", "env LC_ALL=C sort f", "timeout 5 df -h",
        "timeout -s KILL 5s ls", "nice -n 10 ls", "ionice -c2 -n7 ls", "nohup ls", "stdbuf -oL grep x f",
        "time ls", "watch -n 1 df -h", "bash -c 'ls -l'", "sh -c \"df -h | tail -1\"", "su -c 'ls' bob",
        "chroot /mnt ls", "flock -n /run/lock ls", "setsid ls", "doas ls", "busybox ls", "taskset -c 0 ls",
        "sudo -l", "echo ls | bash", "chrt -b 0 ls",),
    "R1": ("nohup ls > out",),
    "R2": ("sudo -i", "sudo -e /etc/x", "env -S 'foo bar'", "env PATH=. ls", "bash x.sh", "curl -s http://x/ | sh",
        "bash -c \"$X\"", "bash --rcfile x -c ls", "sh", "su - bob", "strace -o f ls",),
    "R3": ("sudo rm -rf /srv", "env X=1 rm -r x", "timeout 5 rm -rf x", "nice rm -rf x", "bash -c 'rm -rf x'",
        "sh -c \"rm -rf $X\"", "su -c 'rm -rf /srv'", "watch 'rm -rf x'", "echo 'rm -rf /' | sh",
        "nohup nice -n 5 sudo -u root rm -rf x", "busybox rm -rf x", "systemd-run --user rm -rf x",
        "bash <<< 'rm -rf /srv'", "bash -lc 'rm -rf x'", "chroot /mnt rm -rf x",
        "timeout --signal=9 10 bash -c 'rm -rf x'", "setpriv --reuid 1 rm -rf x", "unshare -r rm -rf x",
        "nsenter -t 1 -m rm -rf x",),
}  # fmt: skip


class Wrapper(Program):
    """A program whose words after its options are another command."""

    __slots__ = ("grammar", "skip", "level", "text", "assigns", "bare", "before", "joins", "flags", "folders")

    def __init__(
        self,
        options: str,
        *,
        skip: int = 0,
        level: int = 0,
        text: str = "",
        assigns: bool = False,
        bare: int = R2,
        plain: bool = True,
        before: "Callable[[Call, Parsed], None] | None" = None,
        joins: bool = False,
        flags: "tuple[str, ...]" = (),
        folders: "tuple[str, ...]" = (),
    ) -> None:
        self.plain = plain
        self.grammar = Grammar("posix " + options)
        self.skip = skip
        """Operands of its own before the command (`timeout 5`, `chroot DIR`)."""
        self.level = level
        self.text = text
        self.assigns = assigns
        self.bare = bare
        """Level when no command follows."""
        self.before = before
        self.joins = joins
        """The words are joined and given to a shell (watch, ssh)."""
        self.flags = flags
        self.folders = folders
        """Options whose value is the folder that the command runs in."""

    def judge(self, call: Call) -> None:
        judge = call.judge
        pointing, bound = judge.pointing, judge.bound
        if "privilege" in self.flags:
            # Another user's environment is made anew: what says where clients go is not handed on.
            judge.pointing = frozenset()
            judge.bound = {item for item in bound if not item.startswith("export ")}
        self._judge(call)
        judge.pointing, judge.bound = pointing, bound

    def _judge(self, call: Call) -> None:
        parsed = self.grammar.parse(call.args)
        perform(call, parsed)
        if self.flags:
            call.flag(*self.flags)
        for word in parsed.unknown:
            call.note(R2, f"{call.name}.unknown-option", f"{word.shape} is not a known option", word, "law 2")
        if self.level:
            call.note(self.level, f"{call.name}.run", self.text or f"{call.name} changes how a program runs")
        for option in parsed.options:
            if option.name in self.folders:
                call.enters(option.value)
        words = list(call.args[parsed.rest :])
        if self.before is not None:
            self.before(call, parsed)
        while self.assigns and words and _is_assignment(words[0]):
            assigned(call, words.pop(0))
        del words[: self.skip]
        if words and words[0].value == "--":
            words.pop(0)
        if not words:
            if self.bare and not parsed.has("--help") and not parsed.has("--version"):
                call.note(self.bare, f"{call.name}.bare", f"{call.name} without a command")
            return
        if self.joins:
            joined(call, words)
        else:
            call.argv(words, stdin=call.stdin)


def _is_assignment(word: Word) -> bool:
    return "=" in (word.prefix if word.value is None else word.value.lstrip("="))


def joined(call: Call, words: "list[Word]") -> None:
    """Words that are joined with blanks and read by a shell."""
    values = [call.value(word) for word in words]
    if all(value is not None for value in values):
        span = (words[0].span[0], words[-1].span[1]) if words[0].span != (0, 0) else call.span
        text = " ".join(value for value in values if value is not None)
        call.judge.text(text, span, stdin=call.stdin)
        return
    if (
        len(words) > 1
        and values[0] is not None
        and not any(
            word.quoted and value is not None and not plain_text(value)
            for word, value in zip(words, values, strict=True)
        )
    ):
        # Expansions among plain words: the shell reads them again, so they can be anything.
        call.argv(words, stdin=call.stdin)
    else:
        call.judge.text(" ".join(word.shape for word in words), call.span)
    call.opaque("a shell reads an expansion's value again", None, "shell.dynamic-code")


def plain_text(value: str) -> bool:
    return all(char.isalnum() or char in "_-./=:,@%+ " for char in value)


def assigned(call: Call, word: Word) -> None:
    """`NAME=value` given to env, sudo and their kin."""
    text = word.value if word.value is not None else word.prefix
    name, _, value = text.partition("=")
    told = Word(word.span, value, (), True) if word.value is not None else None
    note_variable(call.judge, name, told, word.span, passed=True)
    if name in POINTING:
        call.judge.pointing |= {name}


# -- sudo and its kin -----------------------------------------------------------------------------------------------


def _sudo(call: Call, parsed: Parsed) -> None:
    if any(option.name in ("-i", "-s") for option in parsed.options):
        rest = call.args[parsed.rest :]
        call.flag("shell")
        if parsed.has("-i"):
            call.enters(None)  # the other user's home
        if not rest:
            call.note(R2, "sudo.shell", "opens a shell of another user")


SUDO = Wrapper(
    "-A,--askpass!R2 -b,--background!R1 -B,--bell -C,--close-from: -D,--chdir: -E,--preserve-env? "
    "-e,--edit!R2 -g,--group: "
    "-H,--set-home -h,--host: -i,--login -K,--remove-timestamp -k,--reset-timestamp -l,--list "
    "-n,--non-interactive "
    "-P,--preserve-groups -p,--prompt: -R,--chroot:!R2 -r,--role: -S,--stdin -s,--shell "
    "-T,--command-timeout: -t,--type: "
    "-U,--other-user: -u,--user: -V,--version -v,--validate --help -N,--no-update",
    assigns=True, bare=0, plain=False, before=_sudo, flags=("privilege",), folders=("-D",),
)  # fmt: skip
DOAS = Wrapper("-L -n -s!R2 -a: -C: -u:", plain=False, flags=("privilege",))
PKEXEC = Wrapper("--user: --disable-internal-agent --keep-cwd", plain=False, flags=("privilege",))


def _su(call: Call) -> None:
    parsed = Grammar(
        "-c,--command: -,-l,--login -s,--shell: -m,-p,--preserve-environment -g,--group: -G,--supp-group: -P,--pty "
        "-w,--whitelist-environment: -f,--fast -u,--user: -T,--no-pty --session-command: --help --version"
    ).parse(call.args)
    call.flag("privilege")
    if parsed.has("-") or any(word.value == "-" for word in parsed.operands):
        call.enters(None)  # the other user's home
    codes = [option for option in parsed.options if option.name in ("-c", "--session-command")]
    for option in codes:
        call.code(option.value)
    if parsed.unknown:
        call.opaque("an option that is not known", parsed.unknown[0])
    rest = [word for word in parsed.operands if word.value != "-"]
    shell = parsed.value("-s")
    if shell is not None:
        name = call.value(shell) or ""
        if name not in ("/bin/bash", "/bin/sh", "/usr/bin/bash", "bash", "sh", "/bin/dash", "/bin/zsh"):
            call.opaque("another program as shell", shell)
    if call.name == "runuser" and parsed.has("-u") and rest:
        call.argv(rest, stdin=call.stdin)
        return
    if len(rest) > 1:
        # `su bob -c x` is read above; words after the user go to the shell.
        if rest[1].value == "-c" and len(rest) > 2:
            call.code(rest[2])
        else:
            call.opaque("arguments for a shell of another user", rest[1])
    elif not codes:
        call.note(R2, "su.shell", "opens a shell of another user")


# -- environment and limits -----------------------------------------------------------------------------------------


def _env_split(call: Call, parsed: Parsed) -> None:
    for option in parsed.options:
        if option.name == "-S":
            value = call.value(option.value) if option.value is not None else None
            rest = call.args[parsed.rest :]
            call.opaque("env -S splits a text into a command", option.word, "env.split")
            if value is not None:
                words = [Word(option.word.span, piece, (), True) for piece in value.split()]
                while words and words[0].value is not None and "=" in words[0].value:
                    assigned(call, words.pop(0))
                if words:
                    call.argv([*words, *rest], stdin=call.stdin)


def _unit_folder(call: Call, parsed: Parsed) -> None:
    if not any(parsed.has(name) for name in ("--working-directory", "-d", "--scope")):
        call.enters(None)  # `/` for the system's manager, the home for a user's (systemd-run(1))


ENV = Wrapper(
    "-i,-,--ignore-environment -u,--unset: -C,--chdir: -S,--split-string: -0,--null -v,--debug --block-signal? "
    "--default-signal? --ignore-signal? --list-signal-handling --help --version -a,--argv0:",
    assigns=True, bare=0, before=_env_split, folders=("-C",),
)  # fmt: skip


# -- shells ---------------------------------------------------------------------------------------------------------

_SHELL_FLAGS = frozenset("abefhmnptuvxBCEPTlirscoODL")
_SHELL_LONG = names("--login --noprofile --norc --posix --restricted --verbose --noediting")


def _shell(call: Call) -> None:
    """bash, sh, dash, zsh, ksh, ash: `-c TEXT`, a script file, or standard input."""
    args = call.args
    at, code, stdin = _shell_options(call)
    if at < 0:
        return
    if code:
        if at >= len(args):
            call.opaque("-c without a text")
            return
        word = args[at]
        if word.appended:
            call.opaque("what is appended becomes code", word, "shell.dynamic-code")
        call.code(word, stdin=call.stdin)
        return
    if at < len(args) and not stdin:
        word = args[at]
        if word.value in ("/dev/stdin", "/dev/fd/0"):
            call.script_from_stdin(call.name)
            return
        call.effect("exec", word.shape)
        call.note(R2, "shell.script", f"runs a script that is not read here ({word.shape})", word, "law 2")
        return
    call.script_from_stdin(call.name)


def _shell_options(call: Call) -> "tuple[int, bool, bool]":
    """Index of the first word behind the options (-1: it only tells of itself), and whether -c and -s are given."""
    args = call.args
    at, code, stdin = 0, False, False
    while at < len(args):
        value = args[at].value
        if value is None:
            if not args[at].prefix.startswith("-"):
                break
            call.opaque("an option that the text does not tell", args[at])
            at += 1
        elif value in ("--", "-"):
            return at + 1, code, stdin
        elif value.startswith("--"):
            name = value.partition("=")[0]
            if name in ("--help", "--version"):
                return -1, code, stdin
            if name in ("--rcfile", "--init-file"):
                call.note(R2, "shell.rcfile", "runs a file first", args[at], "law 2")
                at += 1
            elif name not in _SHELL_LONG:
                call.opaque("an option that is not known", args[at])
            if name == "--login":
                call.flag("helper")
            at += 1
        elif value[:1] in ("-", "+") and len(value) > 1:
            code = code or ("c" in value and value[0] == "-")
            stdin = stdin or "s" in value
            at = _shell_letters(call, value[1:], at)
        else:
            break
    return at, code, stdin


def _shell_letters(call: Call, letters: str, at: int) -> int:
    """Judges a bundle of a shell's options; returns the index behind it and the mode that it takes."""
    args = call.args
    if set(letters) - _SHELL_FLAGS:
        call.opaque("an option that is not known", args[at])
    if "l" in letters or "i" in letters:
        call.flag("helper")
    at += 1
    if "o" in letters or "O" in letters:
        mode = args[at].value if at < len(args) else ""
        if mode is None or mode in STRANGE_MODES:
            call.opaque("a mode that gives words another meaning", args[at])
        at += 1
    return at


# -- locks, busybox, tracers --------------------------------------------------------------------------------------


def _flock(call: Call) -> None:
    parsed = Grammar(
        "posix -c,--command: -E,--conflict-exit-code: -F,--no-fork -e,-x,--exclusive -n,--nb,--nonblock "
        "-o,--close -s,--shared "
        "-u,--unlock -w,--wait,--timeout: --verbose -h,--help -V,--version --fcntl"
    ).parse(call.args)  # fmt: skip
    words = list(call.args[parsed.rest :])
    for option in parsed.options:
        if option.name == "-c":
            call.code(option.value)
    if words and (words[0].value or "x").isdigit() and len(words) == 1:
        return
    if words:
        # The lock file is created when it is not there; where nothing lasts that is no change, but no plain read.
        lock = call.value(words[0])
        if lock is None or not (lock.startswith(_LOCK_FOLDERS) or lock in ("/", ".", "..")):
            call.writes(words[0])
    words = words[1:]
    if words and words[0].value in ("-c", "--command") and len(words) > 1:
        call.code(words[1])
    elif words:
        call.argv(words, stdin=call.stdin)


_LOCK_FOLDERS = ("/run/", "/var/run/", "/var/lock/", "/run/lock", "/tmp/", "/var/tmp/", "/dev/shm/", "/proc/")  # noqa: S108
"""Where lock files live by convention: cleared by themselves, so that one more does not last."""


def _busybox(call: Call) -> None:
    words = list(call.args)
    if not words or words[0].value in ("--help", "--list", "--list-full"):
        return
    if words[0].value is not None and words[0].value.startswith("-"):
        call.opaque("an option that is not known", words[0])
        return
    call.argv(words, stdin=call.stdin)


TIME = Wrapper(
    "-p -a,--append -f,--format: -o,--output:!write -v,--verbose -q,--quiet --portability --help -V,--version -l -h",
    bare=0,
)
WATCH = Wrapper(
    "-b,--beep -c,--color -C,--no-color -d,--differences? -e,--errexit -g,--chgexit -n,--interval: "
    "-p,--precise -q,--equexit: "
    "-r,--no-rerun -t,--no-title -w,--no-wrap -x,--exec -h,--help -v,--version -s,--shotsdir:!write", joins=True,
)  # fmt: skip

PROGRAMS: dict[str, Program] = {
    "sudo": SUDO,
    "sudoedit": custom(lambda call: call.note(R2, "sudo.edit", "edits files as another user"), plain=False),
    "doas": DOAS,
    "pkexec": PKEXEC,
    **many("gosu su-exec", Wrapper("", skip=1, plain=False)),
    "fakeroot": Wrapper("-l,--lib: --faked: -s:!write -i: -u,--unknown-is-real -b: -h -v", plain=False),
    **many("su runuser", custom(_su)),
    "env": ENV,
    "timeout": Wrapper(
        "-k,--kill-after: -s,--signal: -f,--foreground --foreground --preserve-status -v,--verbose -p "
        "--help --version", skip=1,),
    "gtimeout": Wrapper("-k,--kill-after: -s,--signal: --foreground --preserve-status -v,--verbose", skip=1),
    "nice": Wrapper("-n,--adjustment: -[0-9] --help --version", bare=0),
    "ionice": Wrapper(
        "-c,--class: -n,--classdata: -p,--pid:!R1 -P,--pgid:!R1 -t,--ignore -u,--uid:!R1 -h,--help -V,--version",
        bare=0),
    "chrt": Wrapper(
        "-a,--all-tasks -b,--batch -d,--deadline -f,--fifo!R1 -i,--idle -m,--max -o,--other -p,--pid!R1 -r,--rr!R1 "
        "-R,--reset-on-fork -T,--sched-runtime: -P,--sched-period: -D,--sched-deadline: -v,--verbose -h -V", skip=1,
        bare=0,),
    "taskset": Wrapper("-a,--all-tasks -c,--cpu-list -p,--pid!R1 -h,--help -V,--version", skip=1, bare=0),
    "numactl": Wrapper("-a,--all -i,--interleave: -m,--membind: -N,--cpunodebind: -C,--physcpubind: -l,--localalloc "
        "-p,--preferred: -s,--show " "-H,--hardware -b,--balancing", bare=0,),
    "nohup": Wrapper("--help --version", bare=0),
    "setsid": Wrapper("-c,--ctty -f,--fork!R1 -w,--wait -h,--help -V,--version"),
    "stdbuf": Wrapper("-i,--input: -o,--output: -e,--error: --help --version"),
    "time": TIME,
    "gtime": TIME,
    "setarch": custom(lambda call: _setarch(call), plain=True),
    **many("linux64 linux32", Wrapper("-R", bare=0)),
    "prlimit": Wrapper("-p,--pid:!R1 -o,--output: --noheadings --raw --verbose -c,--core? -d,--data? -n,--nofile? "
        "-u,--nproc? -v,--as? -s,--stack? -t,--cpu? " "-f,--fsize? -l,--memlock? -m,--rss? -h,--help -V,--version",
        bare=0,),
    "softlimit": Wrapper("-a: -c: -d: -f: -l: -m: -o: -p: -r: -s: -t:", level=R2),
    "catchsegv": Wrapper(""),
    "cgexec": Wrapper("-g: --sticky", level=R1),
    "setpriv": Wrapper(
        "-d,--dump --clear-groups --groups: --inh-caps: --ambient-caps: --bounding-set: --init-groups "
        "--keep-groups --list-caps "
        "--no-new-privs --reuid: --regid: --ruid: --euid: --rgid: --egid: --pdeathsig: --reset-env "
        "--securebits: --selinux-label: " "--apparmor-profile: -h -V", plain=False, bare=0,),
    "capsh": Wrapper("", level=R2, plain=False),
    "chroot": Wrapper("--groups: --userspec: --skip-chdir --help --version", skip=1, plain=False),
    "unshare": Wrapper(
        "-m,--mount? -u,--uts? -i,--ipc? -n,--net? -p,--pid? -U,--user? -C,--cgroup? -T,--time? -f,--fork "
        "-r,--map-root-user -c,--map-current-user "
        "--mount-proc? --map-user: --map-group: --map-auto --propagation: --setgroups: -R,--root: "
        "-w,--wd: -S,--setuid: -G,--setgid: --kill-child? " "--keep-caps -h -V", level=R2,
        text="starts a program in other namespaces", plain=False, folders=("-w",),),
    "nsenter": Wrapper("-a,--all -t,--target: -m,--mount? -u,--uts? -i,--ipc? -n,--net? -p,--pid? -C,--cgroup? "
        "-U,--user? -T,--time? -S,--setuid: "
        "-G,--setgid: --preserve-credentials -r,--root? -w,--wd? -F,--no-fork -Z,--follow-context "
        "-W,--wdns: -e,--env -h -V", level=R2, text="enters another namespace", plain=False, folders=("-w", "-W"),),
    "systemd-run": Wrapper(
        "--user --system --scope -u,--unit: -p,--property: --description: --slice: --slice-inherit "
        "-r,--remain-after-exit --send-sighup "
        "--service-type: --uid: --gid: --nice: --working-directory: -d,--same-dir -E,--setenv: -t,--pty "
        "-P,--pipe -S,--shell -q,--quiet --wait "
        "-G,--collect --no-block --on-active: --on-boot: --on-startup: --on-unit-active: "
        "--on-unit-inactive: --on-calendar: --on-clock-change "
        "--on-timezone-change --path-property: --socket-property: --timer-property: -M,--machine: "
        "-H,--host: --no-ask-password -h,--help --version " "--expand-environment:", level=R2,
        text="starts a unit outside of this command's reach", plain=False, folders=("--working-directory",),
        before=_unit_folder,),
    "systemd-inhibit": Wrapper("--what: --who: --why: --mode: --list --no-pager --no-legend", level=R1, plain=False),
    "firejail": Wrapper("", level=R2, plain=False),
    "bwrap": Wrapper("", level=R2, plain=False),
    "dbus-run-session": Wrapper("--config-file:!R2 --dbus-daemon:!exec", level=R1, plain=False),
    "xvfb-run": Wrapper("-a -e: -f: -n: -p: -s: -w:", level=R1, plain=False),
    "watch": WATCH,
    "viddy": WATCH,
    **many("bash sh dash zsh ksh ash mksh rbash rzsh yash posh ksh93", custom(_shell, plain=True)),
    **many("fish csh tcsh pwsh powershell nu elvish xonsh", custom(lambda call: _foreign_shell(call))),
    "flock": custom(_flock),
    **many("busybox toybox", custom(_busybox, plain=True)),
    **many("strace ltrace", Wrapper(
            "-c -C -d -D -f -F -ff -h -i -k -n -N -q -qq -r -t -tt -ttt -T -v -V -w -x -xx -y -yy -z -Z -a: "
            "-b: -e: -E: -I: -o:!write -O: " "-p:!R2 -P: -s: -S: -u: -U: -X: --trace: --output:!write", level=R2,
            text="traces a program and can slow or stop it", plain=False,),),
    "dumb-init": Wrapper("-c,--single-child -r,--rewrite: -v,--verbose", plain=False),
    "tini": Wrapper("-s -v -g -w -p: -e:", plain=False),
    "entr": Wrapper("-a -c -d -n -p -r -s -z", plain=False, level=R2),
    "direnv": Wrapper("", level=R2, plain=False),
    "cpulimit": Wrapper(
        "-l,--limit: -i,--include-children -z,--lazy -v -f,--foreground -b,--background -m -p,--pid:!R1 -e,--exe:!R1",
        plain=False),
    "choom": Wrapper("-n,--adjust:!R1 -p,--pid:", bare=0),
    "torsocks": Wrapper("", level=R2, plain=False),
    "proxychains": Wrapper("-q -f:", level=R2, plain=False),
    "chronic": Wrapper("-v -e"),
    "faketime": Wrapper("-f -m -p: --exclude-monotonic", skip=1, level=R1, plain=False),
}  # fmt: skip


_SETARCH = Wrapper(
    "-R -3 -B -F -I -L -S -T -X -Z -v --list -h -V --3gb --4gb --addr-no-randomize --uname-2.6 --verbose", bare=0
)
_ARCHES = names("""
    x86_64 i386 i486 i586 i686 athlon linux32 linux64 aarch64 arm64 armv8l armv7l ppc ppc32 ppc64 ppc64le s390 s390x
    mips mips64 sparc sparc64 uname26 riscv64
""")


def _setarch(call: Call) -> None:
    """The architecture in front is optional, so it is taken off only when it is one."""
    args = list(call.args)
    if args and args[0].value in _ARCHES:
        args = args[1:]
    _SETARCH.judge(Call(call.judge, call.name, call.word, args, call.span, call.stdin))


def _foreign_shell(call: Call) -> None:
    if len(call.args) == 1 and call.args[0].value in ("--version", "-v", "--help"):
        return
    call.opaque(f"{call.name} runs code in a language that is not read here", None, "shell.foreign")
    for index, word in enumerate(call.args):
        if (
            word.value is not None
            and word.value.lower() in ("-c", "-command", "--command")
            and index + 1 < len(call.args)
        ):
            call.code(call.args[index + 1])
