"""What an option's name gives away: `--exec`, `--output-file`, `--delete` on a verb that otherwise reads.

Tables say which verbs read; no table lists every option of every verb. So a long option that is not listed is judged by
the words in its name, and raises a read to R2 when one of them says that it runs, writes, sends, changes or reveals.
It only ever raises.
"""

from guard.judge.shell.syntax import Word
from guard.judge.tables import names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

ACTING = names("""
    exec execute run command cmd eval script shell editor edit pager browser hook hooks plugin plugins preload write
    save savefile store delete remove rm purge prune clear clean cleanup reset drop destroy kill terminate wipe
    erase fix repair apply install uninstall reinstall update upgrade downgrade set unset add create enable disable
    force overwrite upload push post put publish listen serve daemon daemonize bootstrap rotate vacuum flush mount
    unmount commit inplace rename move copy logfile outfile outdir password passphrase token showkeys decrypt reveal
    unmask secrets restart reload stop attach detach export dumpfile mkdir compile rebuild regenerate initialize
    init restore rollback revert undo scrub trim resize migrate register unregister submit approve deny accept
    reject sign unlock lock refresh activate deactivate promote demote scale drain cordon edit-in-place rsh
sendmail mailto
    askpass
""")
"""Words of option names that say that something happens, taken from the manuals of the programs in the tables."""
HARMLESS = names("""
    no dry not without skip ignore exclude only omit hide show list is has print check verify display with include
    last
""")
"""First words that turn the meaning round: `--no-restore`, `--dry-run`, `--skip-install`, `--list-plugins`."""
PATHS = names("""
    output out output-file output-dir output-directory log-file log-dir log-path file-output
""")
"""Name a place to write when their value looks like a path (elsewhere `--output json` is a format)."""
FORMATS = names("""
    json yaml yml text txt table wide name csv tsv xml html plain raw tree pretty short long full verbose compact
    none default ndjson jsonl json-pretty cat export github sarif dot md markdown
""")


def acts(name: str) -> bool:
    """Whether a long option's name (without dashes) says that it does more than read."""
    words = name.replace("_", "-").split("-")
    if words[0] in HARMLESS:
        return False
    return not ACTING.isdisjoint(words)


def suspicious(words: "Sequence[Word]", *, single: bool = False) -> "tuple[Word, str] | None":
    """The first option among these words that its name gives away, and why; None when there is none.

    `single`: long names may have one dash (terraform, java). Words after `--` are operands.
    """
    for at, word in enumerate(words):
        value = word.value if word.value is not None else word.prefix
        if value == "--":
            return None
        if not value.startswith("--") and not (single and value.startswith("-") and len(value) > 3):
            continue
        name, equals, given = value.lstrip("-").partition("=")
        if name in PATHS:
            if not equals and at + 1 < len(words):
                given = words[at + 1].value or "/"
            if given and ("/" in given or ("." in given and not given.startswith(".") and given not in FORMATS)):
                return word, f"--{name} writes a file"
        elif acts(name):
            return word, f"--{name} says that it does more than read"
    return None
