"""The lister of patterns against the bash that commands get, and what it says of what only bash can tell."""

from __future__ import annotations

import os
import random
import subprocess

import pytest

from guard.hands import listing as lister
from guard.hands.listing import escaped, listing

BASH = ["/bin/bash", "--noprofile", "--norc", "-p"]
PLAIN = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
PIECES = (
    *"aabbcxyzAZ019._-!^**??[][]-", "\\*", "\\?", "\\[", "\\]", "\\-", "\\!", "\\\\",
    "[a-c]", "[!a]", "[^a]", "[]x]", "[^]x]", "[a-]", "[-a]", "[z-a]", "[[:alpha:]]", "[![:digit:]_]", "[[:upper:]x]",
    "[a\\-c]", "[\\]]", "[\\!a]", "[.]", "[a-cx-z]", "[!!]", "[^^]", "[?]", "[*]", "[é]", "é", "\\.", "[[:punct:]]",
    "[é-ü]", "[Z-a]", "[--0]", "[[:nonsense:]a]", "[[=a=]]", "[[.a.]]", "[[]", "[[a]", "[:alpha:]", "[a-[:digit:]]",
)  # fmt: skip
LETTERS = "aabbcxyzAZ019._-!^*?[]\\éüß"


def bash_lists(folder, patterns, given=""):
    """What bash makes of each pattern, by a script in which each stands as a word; `given` stands before them."""
    text = given + "".join(f"printf '%s\\0' {pattern}; printf '\\n\\0'\n" for pattern in patterns)
    done = subprocess.run([*BASH, "-c", text], cwd=folder, env=PLAIN, capture_output=True, timeout=60, check=True)
    groups = os.fsdecode(done.stdout).split("\n\0")
    return [tuple(group.split("\0")[:-1]) for group in groups[:-1]]


def compared(folder, monkeypatch, patterns):
    """Patterns that were listed whole and otherwise than bash does, and how many were whole."""
    monkeypatch.chdir(folder)
    wrong, whole = [], 0
    for pattern, told in zip(patterns, bash_lists(folder, patterns), strict=True):
        found = listing(pattern, 10_000)
        whole += found.whole
        if found.whole and found.names != told:
            wrong.append((pattern, found.names, told))
    return wrong, whole


def made(folder, names):
    for name in names:
        place = os.path.join(os.fsencode(folder), name if isinstance(name, bytes) else os.fsencode(name))
        if not os.path.lexists(place):
            with open(place, "wb"):
                pass


@pytest.mark.parametrize("seed", range(4))
def test_every_pattern_lists_what_bash_lists(seed, tmp_path, monkeypatch):
    source = random.Random(seed)
    names = {"".join(source.choices(LETTERS, k=source.randint(1, 4))) for _ in range(160)} - {".", ".."}
    made(tmp_path, names)
    made(tmp_path, [b"a\xffb", b"\xc3", b"z\xe9"])
    patterns = ["".join(source.choices(PIECES, k=source.randint(1, 4))) for _ in range(1_500)]
    wrong, whole = compared(tmp_path, monkeypatch, patterns)
    assert not wrong, wrong[:40]
    assert whole > 1_000


@pytest.mark.parametrize("seed", range(3))
def test_patterns_of_folders_list_what_bash_lists(seed, tmp_path, monkeypatch):
    source = random.Random(seed)
    for first in ("ab", "b", ".h", "x y", "é", "[a]", "c*"):
        for second in ("ab", "c", ".d"):
            os.makedirs(tmp_path / first / second)
            made(tmp_path / first / second, ["a", "bb", ".c"])
    made(tmp_path, ["f", "ax"])
    os.symlink("ab", tmp_path / "link")
    os.symlink("nowhere", tmp_path / "dangling")
    os.symlink("loop", tmp_path / "loop")
    parts = ("*", "?", "a*", "[!a]*", "[^a]*", "ab", ".*h", ".[!.]*", "..", ".", "*b", "l[a-z]nk", "\\[a\\]",
             "[[:alpha:]]*", "dangl*", "loop", "loo?", "c\\*", "x\\ y", "f", "", "[a", "b]", "*.*", "\\a*")  # fmt: skip
    patterns = []
    for _ in range(700):
        pieces = source.choices(parts, k=source.randint(1, 4))
        prefix = source.choice(("", "", "./", "../" + escaped(tmp_path.name) + "/", escaped(str(tmp_path)) + "/"))
        patterns.append(prefix + source.choice(("/", "/", "/", "//")).join(pieces) or "*")
    patterns = [pattern for pattern in patterns if not pattern.startswith("/") or pattern.startswith(str(tmp_path))]
    wrong, whole = compared(tmp_path, monkeypatch, patterns)
    assert not wrong, wrong[:40]
    assert whole > 400


@pytest.mark.parametrize(
    "pattern", ["[[=a=]]", "[[.a.]]b", "[[:nonsense:]]", "a[a-[:digit:]]", "x*\\", "[a\\", "[[:alpha:]b"]
)
def test_what_only_bash_can_tell_is_not_told(pattern, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["a", "b", "ab"])
    assert not listing(pattern, 100).whole


def test_what_hangs_on_the_version_of_bash_is_not_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [listing(pattern, 100).whole for pattern in (".*", ".?", ".[.]", ".[!.]*", ".h*")] == [
        False, False, False, True, True,
    ]  # fmt: skip


def test_a_letter_that_a_locale_has_to_tell_is_not_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["ä", "b"])
    assert listing("[[:alpha:]]", 100) == (("b", "ä"), False, True)
    assert listing("?", 100) == (("b", "ä"), True, True)


def test_more_names_than_asked_for_are_no_whole_listing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made(tmp_path, ["xa", "xb", "xc"])
    assert [listing("x*", most).whole for most in (2, 3)] == [False, True]
    monkeypatch.setattr(lister, "MOST_SEEN", 2)
    assert not listing("x*", 3).whole


@pytest.mark.parametrize("pattern", ["closed/*", "*/x"])
def test_a_folder_that_is_closed_to_us_is_no_empty_one(pattern, tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    monkeypatch.chdir(tmp_path)
    assert listing(pattern, 9) == ((pattern,), True, False)

    def refuses(path):
        raise PermissionError(13, "Permission denied", path)

    real = os.scandir
    monkeypatch.setattr(lister.os, "scandir", lambda path: refuses(path) if "closed" in path else real(path))
    monkeypatch.setattr(lister.os, "lstat", refuses)
    assert not listing(pattern, 9).whole


@pytest.mark.parametrize("text", ["a*b", "[a]", "\\", "?", "a[!b]^-:.=", "plain"])
def test_a_text_that_is_escaped_lists_itself(text):
    assert listing(escaped(text), 9) == ((text,), True, False)
