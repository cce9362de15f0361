"""Shell texts for properties, fuzzing and comparisons with other readers: the corpus, and seeded pieces."""

import contextlib
import json
import os
import random
import select
import shutil
import signal
import subprocess
from pathlib import Path

from guard.judge.shell.syntax import Word

ROWS = [
    json.loads(line)
    for path in sorted((Path(__file__).parent / "corpus").glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
COMMANDS = [row["cmd"] for row in ROWS]

LIMIT_S = 20.0
"""A text that takes longer has failed; nothing measures time by it."""

BASH = shutil.which("bash") or "/bin/bash"
STUBS = ("kk", "ls", "df", "cat", "id", "stat", "head", "sort", "rm", "touch", "mv", "tee", "cut", "wc")
"""Programs that only write down how they were called, in `Recorder`."""

SHAPES = (
    "x=a; ls {b,c}$x",
    "x=a; xb=c; ls $x{b,_}",
    "x=a; ls \"$x\"{b,c}",
    "ls {a,$}x",
    "ls {1..3}{a,}",
    "ls -l /srv", "df -h | head -n 3", "cat a b; id", "stat 'a b' \"c d\"", "ls a\\ b $'c\\td'", "cat <<E\nhi\nE",
    "ls; df",
    'cat <<"E"\n$(kk)\nE\nid', "echo \"$(id -u)\"", "x=$(stat a); echo \"$x\"", "for i in 1 2; do ls $i; done",
    "{ ls; df; }",
    "(id; ls)", "if id; then ls; fi", "ls {a,b}{1,2}", "id > /dev/null 2>&1", "case a in a) ls;; *) df;; esac",
    "ls # rm x", "echo 'rm x' \"kk y\"", "echo a\\;rm b", "cat <(id) <(df)", "ls && df || id", "! ls a",
    "head -n 1 <<< \"a $(id)\"",
    "echo ${x:-$(id)} ${y:+b}", "[[ -n $(id) ]] && ls", "echo $((1 + 2))", "f() { ls x; }; f",
    "while false; do rm x; done",
    "echo `id` \"`df`\"", "ls \"a'b\" 'c\"d'", "LC_ALL=C sort a", "printf '%s\\n' \"$(cut -c 1 <<< x)\"",
    "ls \\\n -l", "wc -l < /dev/null",
)  # fmt: skip
"""Texts of which every program is a stub or part of bash."""
PIECES = (
    "$(", ")", "`", '"', "'", "\\", "\n", "${", "}", "((", "))", "<(", "|", "&", ";", "<<E\n", "E\n", "rm", " ",
    "x=", "[[",
    "]]", "{", "a,b", "$", "case", "in", "esac", "do", "done", "if", "then", "fi", "é", "\x07", "\\\n", "<<<", ">",
    ">>", "<&", "&>",
    "#", "!", "*", "?", "[", "]", "=", "+=", "~", "$'", '$"', "${!", "@P}", ":-", "%%", "##", "for", "while",
    "function", "coproc",
    "time", "select", "until", "elif", "else", "return", "ls", "cat", "sudo", "bash -c", "eval", "find . -exec",
    "xargs", "sed",
    "awk", "git", "kubectl", "psql -c", "-", "--", "/", "/etc/shadow", "../", "0", "65536", "\t", "\r", "\u202e",
    "\u00a0", "\U0001f600",
)  # fmt: skip
BYTES = "".join(chr(code) for code in range(32, 127)) + "\n\t\\'\"$`;&|<>(){}[]#!*?~= "


def mutated(text: str, chance: random.Random, most: int = 1) -> str:
    """The text with up to `most` single characters put in, taken out or replaced."""
    for _ in range(chance.randint(1, most)):
        at = chance.randrange(len(text) + 1)
        char = chance.choice(BYTES)
        kind = chance.randrange(3)
        text = text[:at] + (char if kind < 2 else "") + text[at + (kind > 0) :]
    return text


def generated(chance: random.Random) -> str:
    """One text of pieces, of a mutated real command, or of arbitrary characters."""
    kind = chance.randrange(4)
    if kind == 0:
        return "".join(chance.choices(PIECES, k=chance.randint(1, 40)))
    if kind == 1:
        return " ".join(chance.choices(PIECES, k=chance.randint(1, 30)))
    if kind == 2:
        return mutated(chance.choice(COMMANDS), chance, 4)
    one, two = chance.choice(COMMANDS), chance.choice(COMMANDS)
    return one[: chance.randrange(len(one) + 1)] + chance.choice(PIECES) + two[chance.randrange(len(two) + 1) :]


class Recorder:
    """Runs texts in a real bash whose PATH holds nothing but the stubs, and tells how these were called."""

    def __init__(self, folder: Path, *, real: tuple[str, ...] = ()) -> None:
        """Args: real: programs of the system that are on PATH as they are."""
        self.bin, self.work, self.logs = folder / "bin", folder / "work", folder / "logs"
        for made in (self.bin, self.work, self.logs):
            made.mkdir()
        for name in real:
            (self.bin / name).symlink_to(shutil.which(name) or name)
        self.runs = 0
        stub = self.bin / STUBS[0]
        stub.write_text(f'#!{BASH}\nprintf \'%s\\0\' "${{0##*/}}" "$@" $\'\\x1e\' >> "$RECORD"\n')
        stub.chmod(0o755)
        for name in STUBS[1:]:
            os.link(stub, self.bin / name)

    def run(self, text: str) -> tuple[list[list[str]], list[str]]:
        """(each call as argv, names of the files that were made in the current folder)."""
        self.runs += 1
        log, work = self.logs / str(self.runs), self.work / str(self.runs)
        log.write_bytes(b"")
        work.mkdir()
        # Process substitutions and jobs may end after their bash: all of them hold this pipe, and its end is theirs.
        all_gone, held = os.pipe()
        with subprocess.Popen(
            [BASH, "--noprofile", "--norc", "-p", "-c", text],
            env={"PATH": str(self.bin), "LC_ALL": "C.UTF-8", "RECORD": str(log)},
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(held,),
            start_new_session=True,
        ) as process:
            os.close(held)
            try:
                process.wait(LIMIT_S)
                assert select.select([all_gone], [], [], LIMIT_S)[0], f"something of {text!r} goes on"
            finally:
                os.close(all_gone)
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        calls = log.read_bytes().decode("utf-8", "surrogateescape").split("\x1e\0")[:-1]
        return [call.split("\0")[:-1] for call in calls], sorted(path.name for path in work.iterdir())


def fits(words: "list[Word] | tuple[Word, ...]", argv: list[str]) -> bool:
    """Whether what was read can become this argv: literal words are equal, any other is any number of words."""
    if not words:
        return not argv
    word = words[0]
    if word.value is not None and not word.globs and not (word.value.startswith("~") and not word.quoted):
        return bool(argv) and argv[0] == word.value and fits(words[1:], argv[1:])
    return any(fits(words[1:], argv[skip:]) for skip in range(len(argv) + 1))
