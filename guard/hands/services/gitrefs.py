"""Where a repository's references point, and what HEAD is. Source: git-for-each-ref(1), git-update-ref(1).

The objects stay in the repository until git collects them, two weeks at least, so a reference can be put back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

_REF = re.compile(r"^(refs/[^ ]+) ([0-9a-f]{40,64}) ([^ ]*)$")


def _git(key: str) -> str:
    return f"git -C {quoted(key)}"


def _reads(key: str) -> tuple[Read, ...]:
    form = quoted("%(refname) %(objectname) %(symref)")
    return (
        Read("refs", f"{_git(key)} for-each-ref --format={form}"),
        Read("branch", f"{_git(key)} symbolic-ref -q HEAD", good=frozenset((0, 1))),
        Read("commit", f"{_git(key)} rev-parse -q --verify HEAD", good=frozenset((0, 1))),
        Read("changed", f"{_git(key)} status --porcelain --untracked-files=no"),
    )


def _parse(key: str, said: Mapping[str, Said]) -> State:
    refs, links = {}, {}
    for line in said["refs"].lines():
        found = _REF.match(line)
        if found is None:
            raise Unreadable("git gave a reference of no known form")
        if found[3]:
            links[found[1]] = found[3]
        else:
            refs[found[1]] = found[2]
    return {
        "refs": refs,
        "links": links,
        "branch": said["branch"].out.removesuffix("\n"),
        "head": said["commit"].out.removesuffix("\n"),
        "changed": sorted(said["changed"].lines()),
    }


def _way_back(key: str, before: State, now: State) -> WayBack:
    old, new = before["refs"], now["refs"]
    git = _git(key)
    # Where nothing was and is uncommitted, the work tree follows; else only the references move, as `reset --soft`.
    follows = not before["changed"] and not now["changed"] and bool(before["head"])
    here = now["branch"] if follows else ""
    first = [f"update {name} {old[name]} {new[name]}" for name in old if name in new and old[name] != new[name]]
    first += [f"create {name} {old[name]}" for name in old if name not in new]
    last = [line for line in first if here and line.split(" ")[1] == here]
    first = [line for line in first if line not in last]
    gone = [name for name in new if name not in old]
    made = [name for name in old if name not in new]
    astride = [name for name in gone if any(_exclude(name, one) for one in made)]
    last += [f"delete {name} {new[name]}" for name in gone if name not in astride]
    commands = [_instead(git, astride, first, now) if astride else _transaction(git, first)] if first else []
    if before["branch"] == now["branch"] and before["branch"]:
        if last and here in old and old[here] != new.get(here):
            commands.append(Inverse(f"{git} reset -q --keep {old[here]}"))
            last = [line for line in last if line.split(" ")[1] != here]
    elif (before["branch"], before["head"]) != (now["branch"], now["head"]):
        commands.append(Inverse(f"{git} {_switch(before, follows=follows)}"))
    commands += [_transaction(git, last)] if last else []
    commands += [
        Inverse(f"{git} symbolic-ref {quoted(name)} {quoted(to)}")
        for name, to in before["links"].items()
        if now["links"].get(name) != to
    ]
    lost = [f"{name} is a link that was not there" for name in now["links"] if name not in before["links"]]
    return WayBack(tuple(commands), tuple(lost))


def _switch(before: State, *, follows: bool) -> str:
    """Where HEAD goes."""
    branch, head = before["branch"], before["head"]
    if follows:
        return (
            f"checkout -q {quoted(branch.removeprefix('refs/heads/'))} --" if branch else f"checkout -q --detach {head}"
        )
    return f"symbolic-ref HEAD {quoted(branch)}" if branch else f"update-ref --no-deref HEAD {head}"


def _exclude(one: str, other: str) -> bool:
    """Whether there is no repository that has both: a reference is a file, or the folder of others."""
    return one.startswith(f"{other}/") or other.startswith(f"{one}/")


def _instead(git: str, astride: list[str], lines: list[str], now: State) -> Inverse:
    """Makes references in the place of those that exclude them, which are there again when it fails.

    No transaction of git takes both. HEAD stands alone meanwhile when its branch is one of them.
    """
    away, again = [], []
    if now["branch"] in astride:
        away.append(f"{git} update-ref --no-deref HEAD {now['head']}")
        again.append(f"{git} symbolic-ref HEAD {quoted(now['branch'])}")
    for name in astride:
        away.append(f"{git} update-ref -d {quoted(name)} {now['refs'][name]}")
        again.insert(0, f"{git} update-ref {quoted(name)} {now['refs'][name]}")
    steps = " && ".join([*away, f"{git} update-ref --stdin"])
    return Inverse(f"{{ {steps}; }} || {{ {'; '.join(again)}; false; }}", "\n".join(lines) + "\n")


def _transaction(git: str, lines: list[str]) -> Inverse:
    """All of it or nothing, and each line names the value that it expects."""
    return Inverse(f"{git} update-ref --stdin", "\n".join(lines) + "\n")


FAMILY = Family(
    "git",
    "git",
    _reads,
    _parse,
    _way_back,
    stays="what was not committed, in the index and in the work tree",
    in_order=True,
)
