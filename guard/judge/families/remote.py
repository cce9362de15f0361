"""What runs commands elsewhere or later: ssh, terminals that are driven, at. Source: ssh(1), tmux(1), at(1)."""

from guard.judge.levels import R1, R2
from guard.judge.options import Grammar, Parsed
from guard.judge.program import Call, Program
from guard.judge.rules import custom, many, perform
from guard.judge.shell.syntax import Word
from guard.judge.tables import names
from guard.judge.wrappers import Wrapper, joined

EXAMPLES = {
    "R0": ("ssh web1 uptime", "ssh -p 22 root@web1 'df -h && free'",),
    "R2": ("ssh web1", "ssh -o ProxyCommand=x web1 ls", "script -c 'ls' out", "at now < f", "expect -c 'spawn sh'",),
    "R3": ("ssh h rm -rf /srv", "ssh h 'rm -rf /srv'", "echo 'rm -rf x' | at now",),
}  # fmt: skip

_SSH = Grammar(
    "posix -4 -6 -A!R2 -a -C -f -G -g!R2 -K!R2 -k -M!R2 -N!R2 -n -q -s -T -t -V -v -X!R2 -x -Y!R2 -y "
    "-B: -b: -c: -D:!R2 -E:!write -e: -F:!R2 -I:!R2 -i: -J: -L:!R2 -l: -m: -O:!R2 -o: -P: -p: -Q: "
    "-R:!R2 -S:!R2 -W:!R2 -w:!R2"
)  # fmt: skip


_SSH_SAFE = names("""
    batchmode connecttimeout connectionattempts serveraliveinterval serveralivecountmax loglevel port user
    stricthostkeychecking identitiesonly preferredauthentications numberofpasswordprompts tcpkeepalive addressfamily
    compression passwordauthentication pubkeyauthentication requesttty identityfile forwardagent userknownhostsfile
    globalknownhostsfile hostkeyalgorithms kexalgorithms ciphers macs forwardx11
""")  # fmt: skip


def ssh_option(call: Call, word: "Word | None") -> None:
    """`-o Name=value`: only those that name no program and no file to write are known harmless."""
    value = call.value(word) if word is not None else None
    if value is None or word is None:
        call.opaque("an ssh setting that the text does not tell", word)
        return
    name, _, setting = value.replace(" ", "=", 1).partition("=")
    name, setting = name.strip().lower(), setting.strip().lower()
    if name not in _SSH_SAFE or (name in ("forwardagent", "forwardx11") and setting != "no"):
        call.note(
            R2, "ssh.setting", f"the setting {name} can run programs or change how ssh is protected", word, "law 8"
        )


def _ssh(call: Call) -> None:
    parsed = _SSH.parse(call.args)
    perform(call, parsed)
    words = list(call.args[parsed.rest :])
    for word in parsed.unknown:
        call.note(R2, "ssh.unknown-option", f"{word.shape} is not a known option", word, "law 2")
    for option in parsed.options:
        if option.name == "-o":
            ssh_option(call, option.value)
    if not words:
        if not any(option.name in ("-V", "-Q") for option in parsed.options):
            call.note(R2, "ssh.bare", "ssh without a host")
        return
    host = call.value(words[0])
    if host is None or host.startswith("-"):
        call.opaque("a host that the text does not tell", words[0])
        host = "?"
    call.env("SSH_AUTH_SOCK")
    call.judge.needs.add("remote")
    call.judge.peers.append((host.rpartition("@")[2], _port(call, parsed), "ssh"))
    if parsed.has("-G"):
        call.flag("helper")
        return
    _jumps(call, parsed)
    rest = words[1:]
    # Options may follow the host: `ssh host -p 22 ls`.
    more = _SSH.parse(rest)
    if more.options or more.unknown:
        perform(call, more)
        _jumps(call, more)
        for option in more.options:
            if option.name == "-o":
                ssh_option(call, option.value)
        for word in more.unknown:
            call.note(R2, "ssh.unknown-option", f"{word.shape} is not a known option", word, "law 2")
        rest = rest[more.rest :]
    if not rest:
        call.note(R2, "ssh.shell", "opens a shell on another machine")
        return
    call.judge.elsewhere(lambda: joined(call, rest))


def _jumps(call: Call, parsed: Parsed) -> None:
    """Every machine on the way is a peer as much as the last one."""
    for option in parsed.options:
        if option.name != "-J":
            continue
        value = call.value(option.value) if option.value is not None else None
        if value is None:
            call.opaque("a way that the text does not tell", option.word)
            return
        for hop in value.split(","):
            place = hop.removeprefix("ssh://").rpartition("@")[2].rstrip("/")
            host, colon, port = place.rpartition(":") if not place.endswith("]") else (place, "", "")
            call.judge.peers.append((host if colon else place, int(port) if port.isdigit() else 22, "ssh"))


def _port(call: Call, parsed: Parsed) -> int:
    word = parsed.value("-p")
    value = call.value(word) if word is not None else None
    return int(value) if value is not None and value.isdigit() and len(value) < 6 else 22


def _script(call: Call) -> None:
    parsed = Grammar(
        "-a,--append -c,--command: -E,--echo: -e,--return -f,--flush --force -I,--log-in: -B,--log-io: -O,--log-out: "
        "-T,--log-timing: -m,--logging-format: -o,--output-limit: -q,--quiet -t,--timing? -h,--help -V,--version"
    ).parse(call.args)
    call.note(R2, "terminal.drive", "drives a terminal, from which an approval could be typed", None, "law 6")
    for option in parsed.options:
        if option.name == "-c":
            call.code(option.value)
    for word in parsed.operands:
        call.writes(word, level=R1)


def _terminal(call: Call) -> None:
    call.note(R2, "terminal.drive", "drives a terminal, from which an approval could be typed", None, "law 6")
    for word in call.args:
        if word.value is not None and " " in word.value:
            call.judge.text(word.value, word.span if word.span != (0, 0) else call.span)


def _at(call: Call) -> None:
    letters = {char for word in call.args if (word.value or "-")[:1] == "-" for char in (word.value or "-d")[1:]}
    if call.name == "atrm" or letters & set("dr"):
        call.note(R2, "at.remove", "removes a job that waits")
        return
    if call.name == "atq" or any(word.value in ("-l", "-V", "-c") for word in call.args):
        return
    call.note(R2, "at.run", "runs commands later, when nobody looks", None, "law 1")
    if call.stdin:
        call.judge.text(call.stdin, call.span)
    elif not any(word.value == "-f" for word in call.args):
        call.opaque("the commands come from standard input", None, "shell.stdin-code")


PROGRAMS: dict[str, Program] = {
    **many("ssh autossh slogin", custom(_ssh)),
    "sshpass": Wrapper("-p:!secret -f:!read -d: -e -P: -v -h -V", plain=False),
    "ssh-agent": Wrapper("-a: -c -s -d -D -k!R1 -E: -O: -P: -t:", level=R1, plain=False),
    "script": custom(_script),
    **many("tmux screen expect zellij byobu dtach abduco minicom unbuffer", custom(_terminal)),
    **many("at batch atq atrm", custom(_at)),
}  # fmt: skip
