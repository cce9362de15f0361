"""Commands that wait for somebody at a terminal, and the spelling that does not.

A guarded run has no terminal and reads nothing, so such a command would fail or hang after a person approved it.
What is fed (a pipe, a redirection, a here-document) waits for nobody. Only what is sure is listed.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from guard.judge.classify import Judged

_EDIT = "change the file by: opsx edit FILE --old TEXT --new TEXT"
_BATCH = "top -b -n 1"
_SAY_COMMAND = "say the command that it shall run"
_SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh", "fish"))


def _letters(words: "Sequence[str]") -> str:
    """All letters of short options."""
    return "".join(word[1:] for word in words if word.startswith("-") and not word.startswith("--"))


def _any(words: "Sequence[str]", *options: str) -> bool:
    return any(word == option or word.startswith(f"{option}=") for word in words for option in options)


def _operands(words: "Sequence[str]") -> "list[str]":
    return [word for word in words if not word.startswith("-")]


def _from_verb(words: "Sequence[str]") -> "tuple[str, Sequence[str]]":
    """The verb of a program that has verbs, and the words behind it."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _BEFORE_VERBS else 1
    return (words[at], words[at + 1 :]) if at < len(words) else ("", ())


_BEFORE_VERBS = frozenset(
    (
        "-c",
        "-C",
        "-n",
        "-H",
        "-l",
        "--context",
        "--namespace",
        "--kubeconfig",
        "--cluster",
        "--user",
        "--host",
        "--server",
    )
)
"""Options in front of a verb that take the next word, for git, kubectl, docker and systemctl."""


def _editor(words: "Sequence[str]") -> str:
    silent = "s" in _letters(words) and ("e" in _letters(words) or "E" in _letters(words))
    return "" if silent or _any(words, "--version", "--help", "--batch", "-batch", "--headless") else _EDIT


def _top(words: "Sequence[str]") -> str:
    return "" if "b" in _letters(words) or _any(words, "-h", "-v", "--help", "--version") else _BATCH


def _full_screen(words: "Sequence[str]") -> str:
    return "" if _any(words, "-h", "--help", "-V", "-v", "--version") else f"ps aux --sort=-%cpu, or {_BATCH}"


def _crontab(words: "Sequence[str]") -> str:
    return "crontab FILE, with the whole table in it" if "e" in _letters(words) else ""


def _visudo(words: "Sequence[str]") -> str:
    if "c" in _letters(words) or _any(words, "--check", "--version", "--help"):
        return ""
    return "write the file by opsx edit, and look at it by: visudo -c -f FILE"


def _passwd(words: "Sequence[str]") -> str:
    quiet = set(_letters(words)) & set("dleSuinwxh") or _any(
        words, "--delete", "--lock", "--unlock", "--expire", "--status", "--stdin", "--help"
    )
    return "" if quiet else "chpasswd < FILE, with USER:PASSWORD in it"


def _git(words: "Sequence[str]") -> str:
    verb, rest = _from_verb(words)
    if verb == "rebase" and ("i" in _letters(rest) or _any(rest, "--interactive")):
        return "git rebase without -i, or git -c sequence.editor=… by hand"
    if verb in _PATCHED and _any(rest, "-p", "--patch", "-i", "--interactive"):
        return f"git {verb} with the paths that you mean"
    return ""


_PATCHED = frozenset(("add", "checkout", "restore", "reset", "stash", "clean"))


def _systemctl(words: "Sequence[str]") -> str:
    if _from_verb(words)[0] != "edit" or _any(words, "--stdin"):
        return ""
    return "opsx write /etc/systemd/system/UNIT.d/override.conf -f FILE, then systemctl daemon-reload"


def _kubectl(words: "Sequence[str]") -> str:
    if _from_verb(words)[0] == "edit":
        return "kubectl patch KIND NAME -p …, or kubectl apply -f FILE"
    return _terminal_of("kubectl", words)


def _docker(words: "Sequence[str]") -> str:
    return _terminal_of("docker", words)


def _terminal_of(program: str, words: "Sequence[str]") -> str:
    verb, rest = _from_verb(words)
    if verb == "attach":
        return f"{program} logs shows what it says"
    if verb not in ("exec", "run"):
        return ""
    ends = [at for at, word in enumerate(rest) if word == "--" or not word.startswith("-")]
    own = rest[: rest.index("--")] if "--" in rest else rest[: ends[0] if ends else len(rest)]
    both = {"i", "t"} <= set(_letters(own)) or (_any(own, "--tty") and _any(own, "--stdin", "--interactive", "-i"))
    # kubectl only warns and goes on; a shell then ends at once, and nothing was done.
    inside = rest[len(own) :][1:] if "--" in rest else rest[len(own) + 1 :]
    if not both or (program == "kubectl" and (len(inside) != 1 or inside[0].rpartition("/")[2] not in _SHELLS)):
        return ""
    return f"{program} {verb} without -t, with the command behind it"


def _mysql(words: "Sequence[str]") -> str:
    given = "e" in _letters(words) or _any(words, "--execute", "--version", "-V", "--help", "-?", "--print-defaults")
    return "" if given else "mysql -e 'SELECT …'"


def _psql(words: "Sequence[str]") -> str:
    given = set(_letters(words)) & set("cflV") or _any(words, "--command", "--file", "--list", "--version", "--help")
    return "" if given else "psql -c 'SELECT …'"


def _shell(words: "Sequence[str]") -> str:
    return "" if [word for word in words if word not in ("-l", "-i", "--login")] else _SAY_COMMAND


def _sudo(words: "Sequence[str]") -> str:
    if _any(words, "-e", "--edit"):
        return _EDIT
    shell = _any(words, "-i", "-s", "--login", "--shell")
    return f"sudo COMMAND: {_SAY_COMMAND}" if shell and not _operands(words) else ""


def _partitions(words: "Sequence[str]") -> str:
    read = set(_letters(words)) & set("lsxVvh") or _any(words, "--list", "--list-details", "--version", "--help")
    return "" if read or not _operands(words) else "sfdisk DEVICE < FILE, with the table in it"


def _always(hint: str) -> "Callable[[Sequence[str]], str]":
    return lambda words: "" if _any(words, "--help", "--version", "-V") else hint


_RULES: "dict[str, Callable[[Sequence[str]], str]]" = {
    **dict.fromkeys(("vi", "vim", "nvim", "view", "vimdiff", "emacs", "nano", "micro", "joe", "mcedit"), _editor),
    **dict.fromkeys(("htop", "btop", "atop", "nmon", "glances", "bashtop"), _full_screen),
    **dict.fromkeys(("vipw", "vigr", "sudoedit"), _always(_EDIT)),
    **dict.fromkeys(("mc", "ranger", "minicom", "nmtui", "dselect", "alsamixer"), _always(_SAY_COMMAND)),
    **dict.fromkeys(_SHELLS, _shell),
    **dict.fromkeys(("docker", "podman", "nerdctl"), _docker),
    **dict.fromkeys(("kubectl", "oc"), _kubectl),
    **dict.fromkeys(("mysql", "mariadb"), _mysql),
    **dict.fromkeys(("fdisk", "gdisk"), _partitions),
    "top": _top, "crontab": _crontab, "visudo": _visudo, "passwd": _passwd, "git": _git, "systemctl": _systemctl,
    "psql": _psql, "sudo": _sudo, "cfdisk": _always("sfdisk DEVICE < FILE, with the table in it"),
}  # fmt: skip
"""Program → what it is spelled like without a terminal, "" when it needs none as it stands."""


def waits_for_a_person(judged: "Judged") -> "tuple[str, str]":
    """The first program of a command that would wait for somebody, and the spelling that does not; two "" for none."""
    if "<" in judged.command:
        return "", ""
    for ran in judged.ran:
        rule = _RULES.get(ran.name)
        if rule is None or ran.pipe or ran.away:
            continue
        values = [word.value for word in ran.words[1:]]
        if None in values:
            continue  # what the text does not tell is not judged here
        hint = rule([value for value in values if value is not None])
        if hint:
            return ran.name, hint
    return "", ""
