"""A file change as a value: its canonical text, its difference in lines, and how the judge grades its path."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import core
from guard.filechange import FileChange, difference, parsed, text_of
from guard.types import Facts, Level, Policy, UserRule, Verdict

HASH = "0" * 64
LINES = st.one_of(
    st.text(alphabet="ab\r\n", max_size=60),
    st.lists(st.sampled_from("abcdefgh"), max_size=12).map(lambda rows: "".join(f"{row}\n" for row in rows)),
)


def change(path, **more):
    return FileChange(path, 0o644, HASH, "1" * 64, **more)


NO_END = "\\ no line end at the end of the file"


def whole_lines(text: str) -> list[str]:
    """Lines with their ends."""
    return [line + "\n" for line in text.split("\n")[:-1]] + [rest for rest in text.split("\n")[-1:] if rest]


def applied(old: str, difference: list[str]) -> str:
    """What patch(1) makes of a text and a unified difference."""
    marked: list[str] = []
    for line in difference:
        if line == NO_END:
            marked[-1] = marked[-1][:-1]
        else:
            marked.append(line + "\n")
    source, out, at = whole_lines(old), [], 0
    for line in marked:
        if line.startswith("@@"):
            first, count = (int(part) for part in line.split()[1][1:].split(","))
            start = first - 1 if count else first
            out += source[at:start]
            at = start
            continue
        if line[0] in " -":
            assert source[at] == line[1:]
            at += 1
        if line[0] in " +":
            out.append(line[1:])
    return "".join(out + source[at:])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(LINES, LINES)
def test_a_difference_makes_the_new_text_of_the_old_one(old, new):
    lines = list(difference(old, new))
    assert bool(lines) == (old != new)
    if lines:
        assert applied(old, lines) == new


def test_the_difference_of_long_files_takes_no_quadratic_time():
    old = "".join(f"line {number}\n" for number in range(200_000))
    new = old.replace("line 100000\n", "changed\n")
    assert list(difference(old, new)) == [
        "@@ -99998,7 +99998,7 @@", " line 99997", " line 99998", " line 99999", "-line 100000", "+changed",
        " line 100001", " line 100002", " line 100003",
    ]  # fmt: skip
    lines = list(difference(old, "\n".join(f"other {number}" for number in range(200_000))))
    assert len(lines) == 400_002 and lines[-1].startswith("\\ no line end")


def test_changes_far_apart_in_a_long_file_are_shown_each_by_itself():
    old = "".join(f"line {number}\n}}\n\n" for number in range(60_000))
    new = old.replace("line 7\n", "one\n").replace("line 30000\n", "").replace("line 59990\n", "line 59990\nmore\n")
    lines = list(difference(old, new))
    assert [line for line in lines if line[0] in "+-"] == ["-line 7", "+one", "-line 30000", "+more"]
    assert sum(line.startswith("@@") for line in lines) == 3 and applied(old, lines) == new


@pytest.mark.parametrize("kinds", [1, 2, 50, 700])
def test_a_file_of_few_kinds_of_lines_takes_bounded_time_too(kinds):
    old = "".join(f"{number % kinds}\n" for number in range(100_000))
    new = "".join(f"{number * 7 % (kinds + 1)}\n" for number in range(100_000))
    lines = list(difference(old, new))
    assert applied(old, lines) == new


def test_a_carriage_return_stays_visible_as_part_of_its_line():
    assert list(difference("a\r\n", "a\n")) == ["@@ -1,1 +1,1 @@", "-a\r", "+a"]


def test_bytes_that_are_no_text_survive():
    assert text_of(b"\xff\xfe\n").encode("utf-8", "surrogateescape") == b"\xff\xfe\n"


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(min_size=1, max_size=30).map(lambda text: "/" + text), st.integers(0, 0o7777), st.booleans())
def test_the_text_of_a_change_is_read_back_as_the_same_change(path, mode, is_new):
    made = FileChange(path, mode, "" if is_new else HASH, "a" * 64)
    assert parsed(made.text) == made
    assert made.text.isascii() and len(made.text.splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ls",
        "{}",
        "[]",
        "[" * 100_000,
        change("/x").text + " ",
        change("/x").text.replace("0644", "644"),
        change("/x").text.replace(HASH, "0"),
        change("/x").text.replace('"path"', '"more":1,"path"'),
        change("/x").text.replace('"/x"', "7"),
        '{"after":"' + HASH + '","path":"/x","mode":"0644","before":null}',
    ],
)
def test_no_other_text_is_read_as_a_change(text):
    assert parsed(text) is None


PATHS = (
    "/srv/app.conf",
    "/etc/sudoers",
    "/etc/passwd",
    "/etc/ssh/sshd_config",
    "/root/.ssh/authorized_keys",
    "/root/.bashrc",
    "/boot/grub/grub.cfg",
    "/etc/cron.d/job",
    "/etc/systemd/system/x.service",
    "/usr/local/bin/tool",
    "/srv/it's $(id).txt",
    "/dev/sda",
    "/proc/sys/kernel/core_pattern",
)


@pytest.mark.parametrize("path", PATHS)
def test_a_change_has_at_least_the_level_of_a_tee_to_the_same_path(path):
    judged = core.check_file_change(change(path))
    teed = core.check(f"tee -- {shlex.quote(path)}")
    assert judged.level >= teed.level
    assert {(effect.kind, effect.object) for effect in judged.effects} >= {
        (effect.kind, effect.object) for effect in teed.effects
    }
    assert judged.decision.verdict == (Verdict.REFUSE if judged.level == Level.R3 else Verdict.NEEDS_STAMP)


@pytest.mark.parametrize(
    ("path", "more", "level", "reversible"),
    [
        ("/srv/app.conf", {}, Level.R1, "yes"),
        ("/etc/sudoers", {}, Level.R2, "partial"),
        ("/srv/app/.env", {}, Level.R2, "partial"),
        ("/etc/shadow", {"unkept": True}, Level.R2, "no"),
        ("/srv/app.conf", {"other_names": 1}, Level.R2, "partial"),
        ("/srv/app.conf", {"too_long": True}, Level.R2, "partial"),
    ],
)
def test_what_a_snapshot_cannot_bring_back_whole_is_high_risk(path, more, level, reversible):
    judged = core.check_file_change(change(path), **more)
    assert (judged.level, judged.reversible) == (level, reversible)
    assert [(item.kind, item.object) for item in judged.snapshot_plan] == [("path", path)]


def test_a_link_counts_by_its_own_name_too():
    assert core.check_file_change(change("/srv/job")).level == Level.R1
    judged = core.check_file_change(change("/srv/job", asked="/etc/cron.d/job"))
    assert judged.level == Level.R2
    assert {effect.object for effect in judged.effects} == {"/srv/job", "/etc/cron.d/job"}


@pytest.mark.guarantee("G-LAW-6")
@pytest.mark.parametrize(
    ("path", "asked"), [("/opt/ours/core.py", ""), ("/srv/x", "/opt/ours/x"), ("/home/a/.claude/settings.json", "")]
)
def test_opsagents_own_files_are_changed_by_no_agent(path, asked):
    policy = Policy(own_paths=("/opt/ours", "/home/a/.claude"))
    judged = core.check_file_change(change(path, asked=asked), policy=policy)
    assert (judged.decision.verdict, judged.decision.code, judged.decision.forceable) == ("refuse", "law-6", False)
    by_person = core.check_file_change(change(path, asked=asked), policy=policy, actor="person")
    assert by_person.decision.verdict == Verdict.NEEDS_STAMP


def test_facts_and_a_persons_own_rules_raise_it():
    facts = Facts({"/srv/x": "/etc/sudoers"}, {"/etc/sudoers": "file"})
    assert core.check_file_change(change("/srv/x"), facts=facts).level == Level.R2
    raising = UserRule("web", "tee", ["/srv/web/*"], Level.R3, "the shop", False, "rules.toml")
    lowering = UserRule("low", "tee", ["..."], Level.R0, "fine", True, "rules.toml")
    policy = Policy(rules=[raising, lowering])
    assert core.check_file_change(change("/srv/web/a"), policy=policy).level == Level.R3
    assert core.check_file_change(change("/srv/other"), policy=policy).level == Level.R1


@pytest.mark.parametrize(("policy", "code"), [(Policy(mode="read-only"), "mode"), (Policy(frozen="why"), "frozen")])
def test_a_stop_refuses_file_changes_too(policy, code):
    decision = core.check_file_change(change("/srv/x"), policy=policy).decision
    assert (decision.verdict, decision.code) == (Verdict.REFUSE, code)


def test_a_lab_lets_a_small_one_run():
    lab = Policy(mode="lab")
    assert core.check_file_change(change("/srv/x"), policy=lab).decision.verdict == Verdict.RUN
    assert core.check_file_change(change("/srv/x"), policy=lab).level == Level.R1
    assert core.check_file_change(change("/etc/sudoers"), policy=lab).decision.verdict == Verdict.NEEDS_STAMP
