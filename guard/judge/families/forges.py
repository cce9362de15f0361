"""Command lines of forges, and version control beside git. Source: the manual of each."""

from guard.judge.levels import R2, R3
from guard.judge.options import Grammar
from guard.judge.program import Call, Program
from guard.judge.rules import many, verbs
from guard.judge.shell.syntax import Word

EXAMPLES = {
    "R0": ("gh pr list", "gh run view 1 --log", "gh api repos/o/r", "glab mr list", "svn info", "hg status",
        "hg log -Gvl 5 -T x", "svn ls -vN u", "tig log"),
    "R2": ("gh pr merge 1", "gh auth token", "gh auth status -t", "gh api graphql", "svn commit",
        "svn log -z", "hg log -Z", "hg push", "lazygit"),
    "R3": ("gh repo delete o/r", "gh api -X DELETE repos/o/r", "svn revert f", "hg strip 1"),
}  # fmt: skip


def _auth(call: Call, verb: str, rest: "list[Word]") -> None:
    if any(
        (word.value or "-t")[:1] == "-" and (word.value or "-t")[:2] != "--" and "t" in (word.value or "-t")
        for word in rest
    ):
        call.note(R2, "forge.token", "shows a token", None, "law 4")


def _api(call: Call, verb: str, rest: "list[Word]") -> None:
    """`gh api PATH` asks with GET unless fields, a body or another method are given."""
    parsed = _API.parse(rest)
    method = parsed.value("-X")
    gone = method is not None and (method.value or "").upper() == "DELETE"
    paths = parsed.operands
    if (
        gone
        or parsed.unknown
        or any(option.action for option in parsed.options)
        or (method is not None and (method.value or "").upper() not in ("GET", "HEAD"))
        or len(paths) != 1
        or call.value(paths[0]) is None
        or "graphql" in (paths[0].value or "graphql")
        or "://" in (paths[0].value or "")
    ):
        call.note(R3 if gone else R2, "forge.api", "changes something, or sends what the text does not tell")


_API = Grammar(
    "-X,--method: -H,--header: -q,--jq: -t,--template: -i,--include --paginate --slurp --silent --cache: "
    "--hostname: -p,--preview: --verbose -f,--raw-field:!net -F,--field:!net --input:!net"
)


_FORGE = """R0 pr list|pr view|pr status|pr diff|pr checks|issue list|issue view|issue status|repo view|
        repo list|run list|
        run view|run watch|workflow list|workflow view|release list|release view|gist list|gist view|auth status|
        label list|search repos|search issues|search prs|search code|search commits|status|cache list|secret list|
        variable list|ssh-key list|gpg-key list|org list|project list|project view|ruleset list|ruleset view|mr list|
        mr view|mr diff|ci list|ci status|ci view|ci trace|pipeline list|version|help|config list|config get|
        alias list|extension list
R1 pr checkout|issue comment|pr comment|pr review|issue create|pr create|repo clone|gist clone|issue reopen|
        pr reopen|pr ready|repo fork
R0 api
R2 auth token|auth login|workflow run|pr merge|pr close|issue close|run rerun|run cancel|release create|
        release upload
R3 repo delete|release delete|issue delete|gist delete|secret delete|variable delete|repo archive|run delete|
        cache delete|ssh-key delete|label delete|project delete|release delete-asset"""  # fmt: skip


PROGRAMS: dict[str, Program] = {
    **many("gh glab", verbs("-R,--repo: --hostname: -h,--help --version", _FORGE, flags=("helper", "egress"),
            danger="-w,--web!R1 --show-token!secret", details={"api": _api, "auth status": _auth})),
    **many("svn hg bzr", verbs(
            "-R: --cwd:!config --repository:!config -q -v --config:!R2 --config-option:!R2 --debugger!R2 --version "
            "-h --help --username: "
            "--password:!secret --non-interactive",
            """R0 status|st|log|diff|info|list|ls|cat|blame|annotate|proplist|propget|heads|branches|tags|
                parents|identify|id|
        summary|manifest|files|paths|root|version|help
        R3 strip|revert|purge""", flags=("helper",),
            danger="--cwd:!config --repository:!config --diff-cmd:!exec --diff3-cmd:!exec --editor-cmd:!exec "
            "--extcmd:!exec -o:!write --output:!write "
            "--config:!R2 --config-option:!R2 --config-dir:!config --config-file:!R2 --debugger!R2 -r,--rev: -l: -p -v "
            "-q -g -a -m -n -c: -d -u -A -B -S -I: -X: -F: -R: -U: -x: -h -i -b -w -L: -T: -f -G -M -C -W -E: -N "
            "-k: -P: -0 -K -t:",
            closed=True)),
    "tig": verbs("-v,--version -h,--help", "R0 status|log|show|blame|grep|refs|stash|reflog", none="R0",
        flags=("helper",)),
    **many("lazygit gitk", verbs("-v,--version", "R0 --version", none="R2", flags=("helper",))),
}  # fmt: skip
