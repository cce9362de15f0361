"""git's companions, and what its verbs share: settings, the options that take a value, and whether a dry run is one.

Source: git-clean(1), git-push(1), git-commit(1), git-rm(1), git-fetch(1), git-add(1), git-prune(1), git-grep(1).
"""

from guard.judge.levels import R2
from guard.judge.options import Grammar
from guard.judge.program import Call, Program
from guard.judge.rules import verbs
from guard.judge.shell.syntax import Word
from guard.judge.tables import starts

EXAMPLES = {
    "R0": ("git-lfs ls-files", "git clean -nd", "git push --dry-run origin main", "git grep -n O f"),
    "R1": ("git commit --dry-run --no-dry-run -m x", "git commit -m --dry-run"),
    "R2": ("git-lfs push origin", "git push -n --no-dry-run", "git grep -nOvim x"),
    "R3": ("git clean -fe -n", "git clean -nf --no-dry-run"),
}  # fmt: skip

_VERBS = {
    "clean": Grammar("-d -f,--force -i,--interactive -n,--dry-run -q,--quiet -e,--exclude: -x -X"),
    "push": Grammar(
        "-v,--verbose -q,--quiet --repo: --all --branches --mirror -d,--delete --tags -n,--dry-run --porcelain "
        "-f,--force --force-with-lease? --force-if-includes --recurse-submodules: --thin --receive-pack: --exec: "
        "-u,--set-upstream --progress --prune --no-verify --verify --follow-tags --signed? --atomic -o,--push-option: "
        "-4,--ipv4 -6,--ipv6 --no-thin --no-progress --no-recurse-submodules"
    ),
    "commit": Grammar(
        "-q,--quiet -v,--verbose -F,--file: --author: --date: -m,--message: -c,--reedit-message: -C,--reuse-message: "
        "--fixup: --squash: --reset-author --trailer: -s,--signoff -t,--template: -e,--edit --cleanup: --status "
        "-S,--gpg-sign? -a,--all -i,--include -p,--patch -o,--only --interactive -n,--no-verify --dry-run --short "
        "--branch --ahead-behind --porcelain --long -z,--null --amend --no-post-rewrite -u,--untracked-files? "
        "--pathspec-from-file: --pathspec-file-nul --allow-empty --allow-empty-message --no-edit --no-gpg-sign"
    ),
    "rm": Grammar(
        "-n,--dry-run -q,--quiet --cached -f,--force -r --ignore-unmatch --sparse --pathspec-from-file: "
        "--pathspec-file-nul"
    ),
    "fetch": Grammar(
        "-v,--verbose -q,--quiet --all --set-upstream -a,--append --atomic --upload-pack: -f,--force -m,--multiple "
        "-t,--tags -n,--no-tags -j,--jobs: --prefetch -p,--prune -P,--prune-tags --recurse-submodules? --dry-run "
        "--porcelain --write-fetch-head --refmap: --depth: --deepen: --shallow-since: --shallow-exclude: --unshallow "
        "--update-shallow -o,--server-option: -4,--ipv4 -6,--ipv6 --negotiation-tip: --negotiate-only --filter: "
        "--auto-maintenance --auto-gc --show-forced-updates -k,--keep -u,--update-head-ok --progress "
        "--submodule-prefix: --recurse-submodules-default:"
    ),
    "add": Grammar(
        "-n,--dry-run -v,--verbose -i,--interactive -p,--patch -e,--edit -f,--force -u,--update --renormalize "
        "-N,--intent-to-add -A,--all --ignore-removal --refresh --ignore-errors --ignore-missing --sparse --chmod: "
        "--pathspec-from-file: --pathspec-file-nul"
    ),
    "prune": Grammar("-n,--dry-run -v,--verbose --progress --expire: --exclude-promisor-objects"),
}


_HARMLESS_SETTINGS = starts("""
    color. advice. log. status. column. user. core.quotepath core.abbrev safe.directory diff.renames pager.
    core.pager blame. i18n. core.fileMode init.defaultbranch gc.auto core.precomposeunicode diff.mnemonicprefix
    core.quotePath
""")


def setting(call: Call, value: "str | None", word: Word) -> None:
    """`-c name=value`: only settings that name no program are known harmless."""
    name, _, setting = (value or "").partition("=")
    low = name.lower()
    if value is not None and low.startswith(_HARMLESS_SETTINGS):
        if low.startswith(("pager.", "core.pager")):
            if setting.lower() in ("cat", "false", "", "off", "0"):
                return
        else:
            return
    call.note(R2, "git.setting", f"the setting {name or '?'} can make git run another program", word, "law 8")


def dry(verb: str, rest: "list[Word]") -> bool:
    """Whether the verb's dry run is asked for, by its own grammar, and no later option takes it back.

    A value is no option (`-m --dry-run`, `-e -n`), and an unread bundle or expansion asks for nothing.
    """
    grammar = _VERBS[verb]
    parsed = grammar.parse(rest)
    name = "--dry-run" if verb in ("commit", "fetch") else "-n"
    if parsed.loose or any((word.value or word.prefix or "-").startswith("--no-d") for word in parsed.unknown):
        return False
    return parsed.has(name)


_GREP = Grammar(
    "-O,--open-files-in-pager?!exec -f:!read -e: -A,--after-context: -B,--before-context: -C,--context: "
    "-m,--max-count: --max-depth: --threads: --color? --cached --untracked --no-index --recurse-submodules "
    "--parent-basename: -a,--text -I -i,--ignore-case -r,--recursive --no-recursive --textconv --no-textconv "
    "-w,--word-regexp -v,--invert-match -E,--extended-regexp -G,--basic-regexp -P,--perl-regexp -F,--fixed-strings "
    "-n,--line-number --column -l,--files-with-matches,--name-only -L,--files-without-match -z,--null "
    "-o,--only-matching -c,--count --break --heading -p,--show-function -W,--function-context -q,--quiet --and --or "
    "--not --all-match -h -H --full-name -[0-9]"
)


def grep(call: Call, verb: str, rest: "list[Word]") -> None:
    """git grep: a pager to be opened hides in bundles, patterns come from files, `--no-index` reads any file."""
    parsed = _GREP.parse(rest)
    for option in parsed.options:
        if option.action == "exec":
            call.note(R2, "git.grep.pager", "opens what it finds in another program", option.word, "git-grep(1)")
        elif option.action == "read":
            call.reads(option.value)
    for word in parsed.unknown:
        text = word.value if word.value is not None else word.prefix
        if not text.startswith("--") and "O" in text:
            call.note(R2, "git.grep.pager", "an option that is not read can open a program", word, "git-grep(1)")
    files = parsed.operands if parsed.has("-e") or parsed.has("-f") else parsed.operands[1:]
    for word in files:
        call.reads(word)


def named_files(call: Call, rest: "list[Word]") -> None:
    """Operands of verbs that show content: each may be a file, and one after `--` surely is."""
    for word in rest:
        value = word.value
        if value is not None and value and not value.startswith("-") and (word.globs or "." in value):
            call.reads(word)


PROGRAMS: dict[str, Program] = {
    "git-lfs": verbs("", "R0 ls-files|status|env|version|locks"),
}
