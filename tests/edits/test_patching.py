"""A unified difference goes into the file exactly or not at all; against diff(1), patch(1) and git themselves."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capabilities.patching import patched
from guard.errors import CannotEdit

OLD = b"".join(b"line %d\n" % number for number in range(1, 41))
NEW = OLD.replace(b"line 3\n", b"third\n").replace(b"line 30\n", b"").replace(b"line 38\n", b"line 38\nmore\n")


def diff_of(tmp_path, old, new, *options):
    (tmp_path / "a").write_bytes(old)
    (tmp_path / "b").write_bytes(new)
    made = subprocess.run(["diff", *(options or ["-u"]), "a", "b"], cwd=tmp_path, capture_output=True)
    assert made.returncode == 1, made.stderr
    return made.stdout


@pytest.mark.parametrize("options", [["-u"], ["-U0"], ["-U9"], ["-u", "--label=x y", "--label=z"]])
def test_what_diff_says_is_put_in(tmp_path, options):
    assert patched(OLD, diff_of(tmp_path, OLD, NEW, *options)) == NEW


def test_what_git_says_is_put_in(tmp_path):
    def git(*words):
        where = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
        done = subprocess.run(["git", *where, *words], cwd=tmp_path, capture_output=True, check=True)
        return done.stdout

    git("init", "-q", ".")
    (tmp_path / "配置.conf").write_bytes(OLD)
    git("add", ".")
    git("commit", "-q", "-m", "one")
    (tmp_path / "配置.conf").write_bytes(NEW)
    assert patched(OLD, git("diff")) == NEW
    git("commit", "-q", "-a", "-m", "two")
    assert patched(OLD, git("format-patch", "-1", "--stdout")) == NEW, "a mail with a signature at its end"


TEXTS = st.lists(st.sampled_from([b"a", b"b", b"c", b"", b"- x", b"+ y", b"@@ -1 +1 @@", b"\\ n", b"\xff"]), max_size=9)


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, st.booleans(), st.booleans(), st.sampled_from(["-u", "-U0", "-U1"]))
def test_any_two_texts_come_out_as_the_second(tmp_path_factory, old, new, old_ends, new_ends, options):
    before, after = (
        b"\n".join(lines) + (b"\n" if ends and lines else b"") for lines, ends in ((old, old_ends), (new, new_ends))
    )
    if before != after:
        assert patched(before, diff_of(tmp_path_factory.mktemp("d"), before, after, options)) == after


def test_a_passage_that_has_moved_is_found_where_it_stands_once(tmp_path):
    difference = diff_of(tmp_path, OLD, NEW)
    assert patched(b"new head\n" * 7 + OLD, difference) == b"new head\n" * 7 + NEW
    with pytest.raises(CannotEdit, match="is in the file 2 times"):
        patched(b"x\n" + OLD + OLD, difference)


def test_crlf_files_take_a_difference_with_plain_line_ends(tmp_path):
    difference = diff_of(tmp_path, OLD, NEW)
    assert patched(OLD.replace(b"\n", b"\r\n"), difference) == NEW.replace(b"\n", b"\r\n")
    with pytest.raises(CannotEdit):
        patched(OLD.replace(b"\n", b"\r\n") + b"mixed\n", difference)


def test_stripped_blanks_of_kept_empty_lines_do_no_harm():
    assert patched(b"a\n\nb\n", b"@@ -1,3 +1,3 @@\n-a\n+A\n\n b\n") == b"A\n\nb\n"


@pytest.mark.parametrize(
    ("difference", "said"),
    [
        (b"", "no @@ line"),
        (b"a\nb\n", "no @@ line"),
        (b"1c1\n< a\n---\n> b\n", "no @@ line"),
        (b"@@ -1,1 +1,1 @@\n-gone\n+x\n", "is not in the file"),
        (b"@@ -1,2 +1,2 @@\n-line 1\n+x\n", "does not fit its @@ line"),
        (b"@@ -1,1 +1,1 @@\n-line 1\n+x\n+y\n", "belongs to no passage"),
        (b"@@ -1,1 +1,1 @@\n?line 1\n+x\n", "does not fit its @@ line"),
        (b"@@ -99,0 +100,1 @@\n+x\n", "keeps no line"),
        (b"@@ -0,1 +1,1 @@\n-line 1\n+x\n", "before the file"),
        (b"--- a\n+++ b\n@@ -1 +1 @@\n-line 1\n+x\n--- c\n+++ d\n@@ -2 +2 @@\n-line 2\n+y\n", "more than one file"),
        (b"--- a\n+++ /dev/null\n@@ -1 +0,0 @@\n-line 1\n", "removes the file"),
        (
            b"diff --git a/x b/x\nold mode 100644\nnew mode 100755\n@@ -1 +1 @@\n-line 1\n+x\n",
            "more than lines: old mode",
        ),
        (b"rename from a\nrename to b\n@@ -1 +1 @@\n-line 1\n+x\n", "more than lines: rename"),
        (b"Binary files a and b differ\n", "more than lines: Binary"),
        (b"@@ -40,1 +40,1 @@\n-line 40\n\\ No newline at end of file\n+x\n", "is not in the file"),
        (b"@@ -1,1 +1,1 @@\n-line 1\n+x\n\\ No newline at end of file\n", "a last line that has no end"),
        (b"@@ -999999999999 +1 @@\n+x\n", "line 1 of the difference is no @@ line"),
        (b"@@@ -1,1 -1,1 +1,1 @@@\n++x\n", "line 1 of the difference is no @@ line"),
    ],
)
def test_what_does_not_fit_or_says_more_is_refused_with_its_line(difference, said):
    with pytest.raises(CannotEdit, match=said) as failed:
        patched(OLD, difference)
    assert failed.value.not_done == "nothing was changed"
