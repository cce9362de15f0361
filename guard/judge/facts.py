"""Which read-only questions a command raises, and what their answers add. Answers raise a level, never lower it."""

from guard.judge import landing, paths
from guard.judge.apart import OWN_NETWORK, network_question
from guard.judge.levels import R1, R2, R3
from guard.judge.values import spellings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from guard.judge.engine import Judge
    from guard.judge.program import Ran
    from guard.types import Facts

MAX_QUESTIONS = 4_096
"""So many paths are asked about at the most; a command that names more is not looked at in full."""
_ASKED = ("read", "secret-read", "write", "delete")
_LONGEST = 4_096
"""PATH_MAX of Linux: a longer word is no file name."""
_MAKE_ONLY = frozenset(("mkdir", "touch", "mkfifo", "mktemp"))
"""What they do to a folder that is there already changes nothing in it."""
_PUT_INTO = frozenset(("cp", "mv", "install", "ln", "gcp", "gmv"))
"""What they put into a folder has the last name of what is put there."""
_VALUE_OPTIONS = frozenset(("-m", "-o", "-g", "-S", "--mode", "--owner", "--group", "--suffix"))
_OTHER_SHELLS = frozenset(
    [
        "sh",
        "dash",
        "ash",
        "zsh",
        "ksh",
        "ksh93",
        "mksh",
        "lksh",
        "pdksh",
        "rbash",
        "yash",
        "posh",
        "fish",
        "csh",
        "tcsh",
        "busybox",
        "toybox",
        "su",
        "script",
    ]
)
"""Patterns in their texts have other rules than bash's, and each has its own."""
_NAMING = frozenset(("read", "mapfile", "readarray", "getopts"))
_BASH_OPTIONS = ("-O", "+O", "-o", "+o", "-f", "+f", "--posix", "--rcfile", "--init-file")
_RECURSIVE = frozenset(("chmod", "chown", "chgrp", "setfacl", "chattr", "chcon", "restorecon"))


def questions(judge: "Judge") -> "tuple[str, ...]":
    """Paths whose real path and kind would matter: absolute ones and those below a home (`~`), with `..` as written.

    What the command reads, writes or removes comes first, then every word of the commands that change something:
    any of them may be a link to what nobody below a person may change.
    """
    asked: dict[str, None] = {}
    for kind, name in judge.effects:
        if kind in _ASKED and name.startswith(("/", "~")):
            asked[name] = None
    for ran in judge.ran:
        if ran.name == "nsenter" and (place := network_question(ran)):
            asked.update(dict.fromkeys((place, OWN_NETWORK)))
        if ran.away:
            continue
        _patterns(judge, ran)
        if ran.level < R1:
            continue
        named = [place for value in _values(ran) for place in judge.places(value)]
        asked.update(dict.fromkeys(place for place in named if place.startswith(("/", "~"))))
        if _links(ran):
            asked.update(dict.fromkeys(_link_targets(judge, ran)))
        if len(asked) >= MAX_QUESTIONS:
            break
    return tuple(asked)[:MAX_QUESTIONS]


def patterns(judge: "Judge") -> "dict[str, tuple[str, ...]]":
    """The names among the questions that bash makes of what lies in a folder → the patterns that it lists for them.

    In a pattern a backslash takes the meaning of what is behind it; one that cannot be told is "".
    """
    questions(judge)
    otherwise = lists_otherwise(judge)
    return {
        name: tuple("" if one is None or otherwise else one for one in found) for name, found in judge.patterns.items()
    }


def lists_otherwise(judge: "Judge") -> bool:
    """Whether patterns may list something else than what bash makes of them by itself: in another locale, with other
    options, or in another shell."""
    if judge.lists_otherwise & 2 or not _OTHER_SHELLS.isdisjoint(judge.programs):
        return True
    if judge.lists_otherwise and judge.texts:
        return True
    for ran in judge.ran:
        values = [word.value or "" for word in ran.words[1:]] if ran.name in _NAMING or ran.name == "bash" else ()
        starts = _BASH_OPTIONS if ran.name == "bash" else ("LC_", "LANG")
        if any(value.startswith(starts) for value in values):
            return True
    return False


def _patterns(judge: "Judge", ran: "Ran") -> None:
    """Remembers what bash lists for a command's words, and for what stands behind `name=` in them."""
    for word in ran.words[1:]:
        for value, pattern in (spellings_of(judge, word) or ()) if word.globs else ():
            judge.listed_places(value, pattern)
            if "=" in value:
                judge.listed_places(value.partition("=")[2], None if pattern is None else pattern.partition("=")[2])


def apply(judge: "Judge", facts: "Facts") -> None:
    """Adds what links and file kinds tell: a link to a secret is a secret, a plain-looking device is a device."""
    judge.told = facts.real_paths
    own = tuple(facts.real_paths.get(path, path) for path in judge.own_paths)
    private = tuple(facts.real_paths.get(path, path) for path in judge.own_private)
    for kind, name in list(judge.effects):
        if kind in ("read", "write", "delete"):
            for real in _reals(facts, name):
                _one(judge, facts, kind, name, real, own, private)
    _above(judge, facts, own)
    _landing(judge, facts)
    _unanswered(judge, facts)


def _unanswered(judge: "Judge", facts: "Facts") -> None:
    """What could not be looked up may be anything: a change that names it asks, a read needs its keys masked."""
    missing = sorted(facts.unanswered)
    if not missing and len(facts.real_paths) < MAX_QUESTIONS:
        return
    if all(ran.level < R1 or ran.away for ran in judge.ran) and not any(
        kind in ("write", "delete") for kind, _ in judge.effects
    ):
        judge.flags.add("unseen-read")
        return
    text = "it names too many paths to look at them all"
    if missing:
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        text = f"where {missing[0]}{more} leads could not be looked up"
    judge.note(R2, "path.not-looked-up", text, (0, 0), "law 7")


def _landing(judge: "Judge", facts: "Facts") -> None:
    """What is put into a folder that is there lies in it by its own last name."""
    for ran in judge.ran:
        if ran.level < R1 or ran.away or ran.name in _MAKE_ONLY:
            continue
        for kind, name in judge.effects[ran.first_effect : ran.end_effect]:
            for real in _reals(facts, name) if kind == "write" else ():
                if facts.kinds.get(real) == "dir" and (put := landing.critical_put(real, _put_names(judge, ran, name))):
                    judge.note(R2, "path.critical-put", f"puts a critical file into a folder ({put})", (0, 0), "law 7")


def _put_names(judge: "Judge", ran: "Ran", goal: str) -> "list[str]":
    """The last names of what a command puts into a folder; "" where its text does not tell them."""
    if ran.name not in _PUT_INTO or any(word.value is None or word.appended for word in ran.words[1:]):
        return [""]
    if _has(ran, "T", "--no-target-directory"):
        return [""]  # a tree becomes the folder, or is merged into it
    return [landing.last_name(value) for value in _values(ran) if goal not in judge.places(value)] or [""]


def _one(
    judge: "Judge",
    facts: "Facts",
    kind: str,
    name: str,
    real: str,
    own: "tuple[str, ...]",
    private: "tuple[str, ...]",
) -> None:
    what = facts.kinds.get(real, "")
    span = (0, 0)
    if kind == "read":
        if real != name and paths.secret(real):
            judge.note(R2, "path.secret-link", f"{name} leads to {real}, which holds credentials", span, "law 4")
        if real != name and private and paths.own(real, private):
            judge.note(R2, "own.read", f"{name} leads to opsagent's own {real}", span, "law 6")
        if what in ("device", "fifo") and paths.device(real) not in ("harmless", "stream"):
            judge.note(R2, "path.device", f"{name} is a {what} ({real})", span, "law 4")
        return
    if what == "device" and paths.device(real) not in ("harmless", "stream"):
        judge.note(R3, "path.device-write", f"{name} is a device ({real})", span, "law 1")
    # What goes by another name than it has there is a link itself, and only that goes.
    elif real != name and (kind != "delete" or landing.last_name(real) == landing.last_name(name)):
        if kind == "delete":
            landing.note_places(judge, [real], f"{name} leads elsewhere: moves or removes", span)
        if paths.critical(real):
            judge.note(R2, "path.critical-link", f"{name} leads to {real}, a critical file", span, "law 7")
    if real != name and paths.own(real, own):
        _touched(judge, real, f"{name} leads to opsagent's own {real}")


# ── what stands above opsagent's own files, or leads to them through a link ──────────────────────────────────────


def _above(judge: "Judge", facts: "Facts", own: "tuple[str, ...]") -> None:
    if not own:
        return
    holder: dict[int, Ran] = {}
    for ran in judge.ran:
        # Those that it carries stand behind it, so the last one is the command itself.
        holder.update(dict.fromkeys(range(ran.first_effect, ran.end_effect), ran))
    for at, (kind, name) in enumerate(judge.effects):
        if kind not in ("write", "delete"):
            continue
        by = holder.get(at)
        if by is not None and by.away:
            continue
        for real in _reals(facts, name):
            if not paths.above(real, own):
                continue
            if kind == "delete":
                _touched(judge, real, f"removes or moves {real}, which holds opsagent's own files")
            elif by is not None and by.name not in _MAKE_ONLY:
                _put(judge, facts, by, name, real, own)
    changing = [ran for ran in judge.ran if ran.level >= R1 and not ran.away]
    for ran in changing:
        _words(judge, facts, ran, own)
        if _links(ran) and (len(changing) > 1 or _writes_beside(judge, ran)):
            for place in (*_link_targets(judge, ran), *(one for value in _values(ran) for one in judge.places(value))):
                for real in _reals(facts, place):
                    if paths.own(real, own) or paths.above(real, own):
                        _touched(judge, real, f"makes a link to {real} and goes on: opsagent's own files lie there")
                        return


def _put(judge: "Judge", facts: "Facts", by: "Ran", name: str, real: str, own: "tuple[str, ...]") -> None:
    """Something is put into a folder that holds opsagent's own files further below."""
    if by.name in _PUT_INTO and not _has(by, "T", "--no-target-directory"):
        values = _values(by)
        sources = [value for value in values if name not in judge.places(value)]
        last = [value.rstrip("/").rpartition("/")[2] for value in sources]
        told = all(word.value is not None and not word.globs and not word.appended for word in by.words[1:])
        if told and sources and not {"", ".", ".."} & set(last):
            for one in last:
                landed = f"{real.rstrip('/')}/{one}"
                landed = facts.real_paths.get(landed, landed)
                if paths.own(landed, own) or paths.above(landed, own):
                    _touched(judge, landed, f"replaces {landed}, where opsagent's own files are")
            return
    text = f"what is put into {real} is not told by the text, and opsagent's own files lie below it"
    judge.note(R2, "own.above", text, (0, 0), "law 6")


def _words(judge: "Judge", facts: "Facts", ran: "Ran", own: "tuple[str, ...]") -> None:
    """Any word of a changing command that leads to our own files by a link, or above them where it takes all."""
    takes_all = ran.level >= R3 or (ran.name in _RECURSIVE and _has(ran, "R", "--recursive"))
    for value in _values(ran):
        for place in judge.places(value):
            for real in _reals(facts, place):
                if real != place and paths.own(real, own):
                    _touched(judge, real, f"{place} leads to opsagent's own {real}")
                elif takes_all and paths.above(real, own):
                    _touched(judge, real, f"changes all that is in {real}, which holds opsagent's own files")


def _writes_beside(judge: "Judge", ran: "Ran") -> bool:
    effects = enumerate(judge.effects)
    return any(
        kind in ("write", "delete", "exec") and not ran.first_effect <= at < ran.end_effect for at, (kind, _) in effects
    )


def _touched(judge: "Judge", place: str, text: str) -> None:
    judge.own_touched = judge.own_touched or place
    judge.note(R2, "own.write", text, (0, 0), "law 6")


# ── words and answers ────────────────────────────────────────────────────────────────────────────────────────────


def _values(ran: "Ran") -> "list[str]":
    """The texts of a command's words that can be paths: operands, and what stands behind `--option=`."""
    found = []
    skips = ended = False
    for word in ran.words[1:]:
        value = word.value if word.value is not None else word.shape
        if skips:
            skips = False
            continue
        if value == "--":
            ended = True
            continue
        if value.startswith("-") and not ended:
            skips = ran.name in _PUT_INTO and value in _VALUE_OPTIONS
            value = value.partition("=")[2]
        if value and len(value) <= _LONGEST and "\n" not in value and "://" not in value:
            found.append(value)
    return found


def _has(ran: "Ran", letter: str, long: str) -> bool:
    values = [word.value or "" for word in ran.words[1:]]
    return any(
        (value.startswith("-") and not value.startswith("--") and letter in value) or value == long for value in values
    )


def _links(ran: "Ran") -> bool:
    if ran.name == "ln":
        return True
    return ran.name in ("cp", "gcp") and (_has(ran, "s", "--symbolic-link") or _has(ran, "l", "--link"))


def _link_targets(judge: "Judge", ran: "Ran") -> "list[str]":
    """What a link says, read from the folder that the link is in."""
    values = _values(ran)
    found = []
    for link in values:
        for place in judge.places(link):
            folder = place.rpartition("/")[0]
            found += [f"{folder}/{value}" for value in values if not value.startswith(("/", "~")) and value != link]
    return [place for place in found if place.startswith(("/", "~"))][:MAX_QUESTIONS]


def _reals(facts: "Facts", name: str) -> "list[str]":
    """What a name leads to; for a pattern also what it lists. A name of which nothing is told (`*`) is no pattern."""
    found = [facts.real_paths.get(name, name), *facts.listed.get(name, ())]
    if name.strip("*?") and any(char in name for char in "*?["):
        found += [real for key, real in facts.real_paths.items() if key != name and paths.glob_match(name, key)]
    return found
