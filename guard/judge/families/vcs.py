"""git and its companions. Source: git(1) and the manual page of each subcommand."""

from guard.judge.families.gitkin import dry, grep, named_files, setting
from guard.judge.levels import R1, R2, R3
from guard.judge.options import Grammar
from guard.judge.program import Call, Program
from guard.judge.rules import custom, verbs
from guard.judge.shell.syntax import Word
from guard.judge.tables import names, starts

EXAMPLES = {
    "R0": ("git status", "git log --oneline -5", "git diff HEAD~1", "git -C /srv/app status -s", "git show HEAD",
        "git branch", "git branch -a", "git branch --show-current", "git tag -l 'v*'", "git tag", "git remote -v",
        "git remote get-url origin", "git stash list", "git rev-parse HEAD", "git ls-files", "git blame f",
        "git config --get user.name", "git config -l", "git --no-pager log", "git grep foo", "git reflog",
        "git describe --tags", "git shortlog -sn", "git worktree list", "git submodule status",
        "git ls-remote origin", "git fetch --dry-run", "git branch --list 'x*'", "git push --dry-run",
        "git -c color.ui=false diff", "git clean -n",),
    "R1": ("git add .", "git commit -m x", "git stash", "git checkout -b x", "git switch main", "git branch x",
        "git tag v1", "git fetch", "git init", "git config user.name x",),
    "R2": ("git pull", "git push", "git merge x", "git clone https://x/y", "git -c core.pager=x log",
        "git -c core.fsmonitor=x status", "git --exec-path=/x status", "git ls-remote --upload-pack=x y",
        "git diff --ext-diff", "git grep -Ox foo", "git grep --open-files-in-pager=x foo", "git bisect run x",
        "git submodule update --init", "git config core.pager x", "git foo", "git difftool", "git $X",
        "git archive --remote=x HEAD", "git --git-dir=/tmp/x status", "git config --global alias.x '!id'",
        "git branch -d x", "git rebase -x id",),
    "R3": ("git push --force", "git push -f", "git push origin +main", "git push origin :x",
        "git push --delete origin x", "git push --mirror", "git reset --hard", "git clean -fd", "git clean -f",
        "git checkout -- f", "git checkout .", "git restore f", "git branch -D x", "git stash drop",
        "git stash clear", "git filter-branch --all", "git reflog expire --all", "git gc --prune=now",
        "git rebase main", "git commit --amend", "git tag -d v1", "git push --force-with-lease",
        "git worktree remove -f x", "git checkout -f main", "git update-ref -d x",
        "git switch --discard-changes x", "git rm -rf x",),
}  # fmt: skip

_OPTIONS = (
    "-C: -c: --exec-path?!R2 --html-path --man-path --info-path -p,--paginate!helper -P,--no-pager "
    "--no-replace-objects --no-lazy-fetch --no-optional-locks "
    "--no-advice --bare --git-dir:!config --work-tree:!config --namespace: --super-prefix: "
    "--config-env:!R2 --literal-pathspecs --glob-pathspecs "
    "--noglob-pathspecs --icase-pathspecs --list-cmds: --attr-source: -h,--help -v,--version"
)  # fmt: skip
_DANGER = (
    "--output:!write --ext-diff!R2 --textconv!helper -O?!R2 --open-files-in-pager?!R2 "
    "--upload-pack:!R2 --receive-pack:!R2 --exec:!R2 --remote:!R2 --lost-found!R1 --in-place!R1 "
    "--trim-empty --no-index"
)


def _words(rest: "list[Word]") -> "tuple[set[str], list[str], bool]":
    """Options as given (bundles split), operands, and whether something is not literal."""
    options: set[str] = set()
    operands: list[str] = []
    dynamic = False
    over = False
    for word in rest:
        value = word.value
        if value is None:
            dynamic = True
            operands.append(word.shape)
        elif value == "--":
            over = True
            operands.append("--")
        elif not over and value.startswith("--"):
            options.add(value.partition("=")[0])
        elif not over and value.startswith("-") and len(value) > 1:
            options.add(value[:2])
            options.update("-" + char for char in value[1:] if char.isalpha())
        else:
            operands.append(value)
    return options, operands, dynamic


def _has(options: "set[str]", *names: str) -> bool:
    """One of these options, long ones also by an unambiguous beginning."""
    for name in names:
        if name in options:
            return True
        if name.startswith("--"):
            for option in options:
                if option.startswith("--") and len(option) > 4 and name.startswith(option):
                    return True
    return False


def _push(call: Call, verb: str, rest: "list[Word]") -> None:
    options, operands, dynamic = _words(rest)
    if dry(verb, rest) and not _has(options, "--exec", "--receive-pack"):
        return
    call.effect("network", "git remote")
    call.note(R2, "git.push", "sends commits to another repository")
    forces = starts("--force -f --force-with-lease --force-if-includes --delete -d --mirror --prune")
    if _has(options, *forces) or any(item.startswith(("+", ":")) for item in operands):
        call.note(R3, "git.push.force", "overwrites or removes what others have", None, "git-push(1)")
    if dynamic:
        call.note(R2, "git.push.dynamic", "what is pushed is not told by the text")


def _branch(call: Call, verb: str, rest: "list[Word]") -> None:
    options, _, _ = _words(rest)
    if _has(options, "-D") or (_has(options, "-d", "--delete") and _has(options, "-f", "--force")):
        call.note(R3, "git.branch.delete", "removes a branch with unmerged work", None, "git-branch(1)")
    elif _has(options, "-d", "--delete", "-M", "-f", "--force", "-C"):
        call.note(R2, "git.branch.delete", "removes or replaces a branch")
    elif _has(
        options,
        *starts(
            "-m -c --move --copy --set-upstream-to -u --unset-upstream --edit-description --set-upstream --track -t"
        ),
    ):
        call.note(R1, "git.branch.change", "changes a branch")
    elif _names(rest) and not _has(options, *_LISTING, "-a", "-r", "--all", "--remotes", "--show-current"):
        call.note(R1, "git.branch.create", "creates a branch")


_LISTING = ("--list", "-l", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at")
"""Options that make branch and tag list; --sort and --format alone do not, when a name follows."""


def _names(rest: "list[Word]") -> "list[Word]":
    """Operands of branch and tag, without the values of --sort, --format, --color and --column."""
    names: list[Word] = []
    skip = False
    for word in rest:
        value = word.value or word.shape
        if skip:
            skip = False
        elif value in ("--sort", "--format"):
            skip = True
        elif not value.startswith("-"):
            names.append(word)
    return names


def _tag(call: Call, verb: str, rest: "list[Word]") -> None:
    options, _, _ = _words(rest)
    if _has(options, "-d", "--delete", "-f", "--force"):
        call.note(R3, "git.tag.delete", "removes or moves a tag", None, "git-tag(1)")
    elif (_names(rest) and not _has(options, *_LISTING, "-n", "-v", "--verify")) or _has(
        options, "-a", "-s", "-m", "-u", "-F"
    ):
        call.note(R1, "git.tag.create", "creates a tag")
    elif _has(options, "-v", "--verify"):
        call.note(R1, "git.tag.verify", "runs the program that checks signatures")


def _checkout(call: Call, verb: str, rest: "list[Word]") -> None:
    options, operands, _ = _words(rest)
    discards = (
        _has(options, *starts("-f --force --discard-changes --ours --theirs -p --patch -B -C --pathspec-from-file"))
        or "--" in operands
    )
    paths = [item for item in operands if item not in ("-",)]
    if (
        verb == "checkout"
        and not discards
        and (
            any(item == "." or item.startswith(("./", ":")) or item.endswith("/") or "*" in item for item in paths)
            or (len(paths) > 1 and not _has(options, "-b", "--orphan", "--track", "-t"))
            or (
                paths
                and "." in paths[-1].rsplit("/", 1)[-1][1:]
                and not _has(options, "-b", "--orphan")
                and not paths[-1].lstrip("v")[:1].isdigit()
            )
        )
    ):
        discards = True
    if discards:
        call.note(R3, f"git.{verb}.discard", "throws away changes that are not committed", None, f"git-{verb}(1)")
    else:
        call.note(R1, f"git.{verb}", "changes which commit is checked out")


def _restore(call: Call, verb: str, rest: "list[Word]") -> None:
    options, _, _ = _words(rest)
    if _has(options, "--staged", "-S") and not _has(options, "--worktree", "-W"):
        call.note(R1, "git.restore.staged", "takes files out of the index")
    else:
        call.note(R3, "git.restore", "throws away changes that are not committed", None, "git-restore(1)")


def _reset(call: Call, verb: str, rest: "list[Word]") -> None:
    options, _, dynamic = _words(rest)
    if _has(options, "--hard", "--merge", "--keep") or dynamic:
        call.note(R3, "git.reset.hard", "throws away changes that are not committed", None, "git-reset(1)")
    else:
        call.note(R2, "git.reset", "moves the branch or the index")


def _clean(call: Call, verb: str, rest: "list[Word]") -> None:
    if not dry(verb, rest):
        call.note(R3, "git.clean", "removes files that git does not know", None, "git-clean(1)")


def _stash(call: Call, verb: str, rest: "list[Word]") -> None:
    what = next((word.value for word in rest if word.value is not None and not word.value.startswith("-")), "push")
    if what in ("list", "show"):
        return
    if what in ("drop", "clear"):
        call.note(R3, "git.stash.drop", "throws stashed work away", None, "git-stash(1)")
    elif what in ("pop", "apply", "branch"):
        call.note(R2, "git.stash.pop", "puts stashed work back, maybe with conflicts")
    else:
        call.note(R1, "git.stash", "puts the working tree's changes aside")


def _remote(call: Call, verb: str, rest: "list[Word]") -> None:
    what = next((word.value for word in rest if word.value is not None and not word.value.startswith("-")), "")
    if what in ("", "get-url", "show"):
        if what == "show":
            call.flag("egress")
        return
    call.note(R2, "git.remote", "changes where the repository fetches from and pushes to")


def _config(call: Call, verb: str, rest: "list[Word]") -> None:
    options, operands, dynamic = _words(rest)
    if _has(
        options,
        *starts("--get --get-all --get-regexp -l --list --get-urlmatch --get-color --get-colorbool --name-only"),
    ) and not _has(options, "--add", "--unset", "--edit", "-e"):
        return
    if operands[:1] in (["list"], ["get"]):
        return
    if (
        len(operands) == 1
        and not options
        - {"--global", "--local", "--system", "--show-origin", "--show-scope", "--type", "--bool", "--int", "-z"}
        and not dynamic
    ):
        return
    name = (operands[1] if operands[:1] == ["set"] and len(operands) > 1 else operands[0] if operands else "").lower()
    harmless = name.startswith(
        starts(
            "user. color. advice. push.default pull.rebase branch. init.defaultbranch core.autocrlf merge.conflictstyle"
        )
    )
    call.note(
        R1 if harmless and not _has(options, "--system", "--edit", "-e", "-f", "--file") else R2,
        "git.config",
        "changes git's settings, which can name programs to run",
    )


def _submodule(call: Call, verb: str, rest: "list[Word]") -> None:
    what = next((word.value for word in rest if word.value is not None and not word.value.startswith("-")), "status")
    if what in ("status", "summary"):
        return
    if what == "foreach":
        call.note(R2, "git.submodule.foreach", "runs a command in each submodule")
        words = [word for word in rest if word.value not in ("foreach", "--recursive", "--quiet", "-q")]
        for word in words[:1]:
            call.code(word)
        return
    call.note(R3 if what == "deinit" else R2, "git.submodule", "changes submodules")


def _worktree(call: Call, verb: str, rest: "list[Word]") -> None:
    options, operands, _ = _words(rest)
    what = operands[0] if operands else ""
    if what == "list":
        return
    call.note(
        R3
        if what == "remove" and _has(options, "-f", "--force")
        else R2
        if what in ("remove", "prune", "move")
        else R1,
        "git.worktree",
        "changes worktrees",
    )


def _reflog(call: Call, verb: str, rest: "list[Word]") -> None:
    what = next((word.value for word in rest if word.value is not None and not word.value.startswith("-")), "show")
    if what in ("expire", "delete", "drop"):
        call.note(R3, "git.reflog", "removes what lost commits are found by", None, "git-reflog(1)")
    elif what == "write":
        call.note(R2, "git.reflog.write", "writes the reference log")


def _commit(call: Call, verb: str, rest: "list[Word]") -> None:
    if dry(verb, rest):
        return
    if _has({option for option in _words(rest)[0] if option.startswith("--")}, "--amend"):
        call.note(R3, "git.commit.amend", "rewrites the last commit", None, "git-commit(1)")
    else:
        call.note(R1, "git.commit", "records a commit (hooks of the repository run)")


def _fetch(call: Call, verb: str, rest: "list[Word]") -> None:
    if dry(verb, rest):
        call.flag("helper", "egress")
        return
    options, operands, _ = _words(rest)
    forced = _has(options, "--force", "-f", "--prune", "-p", "--prune-tags", "-P") or any(
        item.startswith("+") for item in operands
    )
    call.note(R2 if forced else R1, "git.fetch", "brings commits from another repository")
    if any("::" in item for item in operands):
        call.note(R2, "git.transport", "a remote helper runs a program", None, "gitremote-helpers(7)")


def _lsremote(call: Call, verb: str, rest: "list[Word]") -> None:
    call.flag("egress")
    for word in rest:
        if word.value is not None and ("::" in word.value or word.value.startswith("ext:")):
            call.note(R2, "git.transport", "a remote helper runs a program", word, "gitremote-helpers(7)")


def _gc(call: Call, verb: str, rest: "list[Word]") -> None:
    aggressive = any((word.value or "").startswith("--prune") for word in rest) or verb == "prune"
    if verb == "prune" and dry(verb, rest):
        return
    text = "removes objects that nothing refers to" if aggressive else "repacks the repository"
    call.note(R3 if aggressive else R2, f"git.{verb}", text)


def _rm(call: Call, verb: str, rest: "list[Word]") -> None:
    options, _, _ = _words(rest)
    if dry(verb, rest):
        return
    call.note(
        R3 if _has(options, "-r", "-f", "--force") and not _has(options, "--cached") else R2,
        "git.rm",
        "removes files from tree and index",
    )


def _rebase(call: Call, verb: str, rest: "list[Word]") -> None:
    options, _, _ = _words(rest)
    if _has(options, "--abort", "--quit", "--continue", "--skip", "--edit-todo", "--show-current-patch"):
        call.note(R2, "git.rebase.step", "goes on with or ends a rebase")
        return
    if _has(options, "-x", "--exec"):
        call.note(R2, "git.rebase.exec", "runs a command for each commit")
        if (
            "-x" in options
            and all((word.value or "").startswith("-x") or word.value is not None for word in rest)
            and len(rest) <= 2
        ):
            return
    call.note(R3, "git.rebase", "rewrites commits", None, "git-rebase(1)")


def _bisect(call: Call, verb: str, rest: "list[Word]") -> None:
    what = next((word.value for word in rest if word.value is not None), "")
    if what in ("log", "terms"):
        return
    if what != "run":
        call.note(R1, "git.bisect", "moves through commits")
    else:
        call.note(R2, "git.bisect", "runs a command for each commit")
        call.argv(list(rest[1:]))


def _notes(call: Call, verb: str, rest: "list[Word]") -> None:
    what = next((word.value for word in rest if word.value is not None and not word.value.startswith("-")), "list")
    if what in ("list", "show", "get-ref"):
        return
    call.note(R2, f"git.{verb}", f"git {verb} {what}")


def _symbolic(call: Call, verb: str, rest: "list[Word]") -> None:
    options, operands, _ = _words(rest)
    if verb == "update-ref":
        call.note(R3 if _has(options, "-d", "--stdin") else R2, "git.update-ref", "moves or removes a reference")
    elif len(operands) > 1 or _has(options, "-d", "--delete", "-m"):
        call.note(R2, "git.symbolic-ref", "changes a symbolic reference")


def _hashobject(call: Call, verb: str, rest: "list[Word]") -> None:
    if not rest or any((word.value or "-w").startswith("-w") or word.value == "--stdin-paths" for word in rest):
        call.note(R1, "git.hash-object", "writes an object")
    for word in rest:
        if not (word.value or "x").startswith("-"):
            call.reads(word)


def _archive(call: Call, verb: str, rest: "list[Word]") -> None:
    for at, word in enumerate(rest):
        if word.value in ("-o", "--output") and at + 1 < len(rest):
            call.writes(rest[at + 1])
        elif word.value is not None and word.value.startswith("-o") and len(word.value) > 2:
            call.writes(Word(word.span, word.value[2:], (), True))


def _check(call: Call, verb: str, rest: "list[Word]", level: int) -> None:
    if level == 0 and verb == "help" and any((word.value or "-w").startswith(("-w", "--w")) for word in rest):
        call.note(R2, "git.help-web", "opens a browser")
    if level == 0 and verb not in ("version", "help"):
        call.flag("helper")
        for word in rest:
            value = word.value
            if value is None or value.startswith("-"):
                value = (value or "").partition("=")[2]
            elif ":" in value and verb in ("show", "cat-file", "diff", "blame", "grep"):
                value = value.partition(":")[2]
            elif not (value.startswith(("/", "~", "../")) or (verb == "diff" and call.value(word))):
                continue
            if value and (
                verb in ("show", "cat-file", "blame", "grep", "diff", "config") or value.startswith(("/", "~"))
            ):
                call.reads(Word(word.span, value, (), True))
        if verb in _SHOWING:
            named_files(call, rest)
        if any((word.value is None or word.globs) and not word.prefix for word in rest):
            call.flag("options-from-expansion")


_SHOWING = names("log diff show blame annotate whatchanged diff-files diff-index diff-tree")


def _dry(call: Call, verb: str, rest: "list[Word]") -> None:
    if not dry(verb, rest):
        call.note(R1, f"git.{verb}", "changes the index")


def _stdout(call: Call, verb: str, rest: "list[Word]") -> None:
    options, _, _ = _words(rest)
    if not _has(options, "--stdout") or _has(options, "-o", "--output-directory"):
        call.note(R1, f"git.{verb}", "writes patch files")


def _git(call: Call) -> None:
    head = _HEAD.parse(call.args)
    for option in head.options:
        if option.name == "-c":
            setting(call, call.value(option.value) if option.value is not None else None, option.word)
    GIT.judge(call)


_HEAD = Grammar("posix " + _OPTIONS)


GIT = verbs(
    _OPTIONS,
    """R0 status|log|diff|show|rev-parse|rev-list|ls-files|ls-tree|blame|annotate|describe|shortlog|cat-file|
        for-each-ref|show-ref|show-branch|merge-base|name-rev|grep|count-objects|check-ignore|check-attr|
        check-ref-format|diff-tree|diff-index|diff-files|whatchanged|cherry|var|version|help|range-diff|
        verify-commit|verify-tag|fsck|get-tar-commit-id|stripspace|patch-id|column|interpret-trailers|check-mailmap|
        verify-pack|show-index|archive|branch|tag|remote|config|stash|submodule|worktree|reflog|notes|bisect|push|
        fetch|ls-remote|clean|commit|rm|restore|checkout|switch|reset|rebase|symbolic-ref|update-ref|hash-object|gc|
        prune|bundle|request-pull|replace|lfs|maintenance|sparse-checkout|rerere|bugreport|diagnose|for-each-repo|add|format-patch
    R1 merge-tree|unpack-file|init|mv|merge-file|write-tree|commit-tree|mktree|mktag|stage|checkout-index|
        read-tree|update-index
    R2 clone|pull|merge|cherry-pick|revert|am|apply|difftool|mergetool|repack|pack-refs|daemon|send-email|imap-send|
        svn|p4|cvsimport|fast-import|fast-export|instaweb|gui|citool|credential|credential-store|shell|upload-pack|
        receive-pack|http-backend|prune-packed
    R3 filter-branch|filter-repo|quiltimport""",
    danger=_DANGER, check=_check, none="R0",
    details={"add": _dry, "grep": grep, "format-patch": _stdout, "push": _push, "branch": _branch, "tag": _tag,
        "checkout": _checkout, "switch": _checkout,
        "restore": _restore, "reset": _reset, "clean": _clean, "stash": _stash, "remote": _remote, "config": _config,
        "submodule": _submodule, "worktree": _worktree, "reflog": _reflog, "commit": _commit, "fetch": _fetch,
        "ls-remote": _lsremote, "gc": _gc, "prune": _gc, "rm": _rm, "rebase": _rebase, "bisect": _bisect,
        "notes": _notes, "symbolic-ref": _symbolic, "update-ref": _symbolic, "hash-object": _hashobject,
        "archive": _archive, **dict.fromkeys(("bundle", "replace", "lfs", "maintenance", "sparse-checkout", "rerere"),
            lambda call, verb, rest: _second(call, verb, rest)), **dict.fromkeys(("bugreport", "diagnose",
                "for-each-repo", "request-pull"), lambda call, verb, rest: call.note(R2, f"git.{verb}",
                f"git {verb}")),},
)  # fmt: skip


_SECOND_READS = {
    "bundle": names("verify list-heads"),
    "replace": frozenset(("",)),
    "lfs": names("ls-files status env version locks"),
    "sparse-checkout": names("list"),
    "rerere": names("status diff remaining"),
}
"""Verbs whose second word says whether they read, with those that do."""


def _second(call: Call, verb: str, rest: "list[Word]") -> None:
    what = next((word.value for word in rest if word.value is not None and not word.value.startswith("-")), "")
    if what not in _SECOND_READS.get(verb, ()):
        call.note(R2, f"git.{verb}", f"git {verb} {what}".rstrip())


PROGRAMS: dict[str, Program] = {"git": custom(_git)}
