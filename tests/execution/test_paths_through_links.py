"""A path is what the kernel opens, not what its text looks like: for law 6, for stamps and for the way back."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

import execution
from acting import approving
from guard.bound import Consent
from guard.clock import RandomIds, SystemClock
from guard.errors import SnapshotImpossible
from guard.hands.liveness import ProcLiveness
from guard.hands.targets.local import LocalTarget
from guard.ledger.answers import ToApprove
from guard.ledger.store import open_ledger
from guard.redact import Redactor
from guard.types import Level, Mode, Policy, Request, Status

CONSENT = Consent(how="tty", rendered_sha256="0" * 64)


@pytest.fixture
def lab(tmp_path):
    """A guard in lab mode whose own files are in `nest/a/oh`, and a folder to work in."""
    own = tmp_path / "nest" / "a" / "oh"
    (own / "config").mkdir(parents=True)
    (own / "config" / "config.toml").write_text("mode = 'lab'\n")
    work = tmp_path / "work"
    work.mkdir()
    redactor = Redactor()
    ledger = open_ledger(
        clock=SystemClock(),
        ids=RandomIds(),
        redact=redactor.text,
        liveness=ProcLiveness(),
        path=str(tmp_path / "state"),
    )
    policy = Policy(mode=Mode.LAB, own_paths=(str(own),), own_private=(str(own),))
    return execution.Guard(LocalTarget(), ledger, redactor, SystemClock(), policy, hidden=(str(tmp_path / "state"),))


@pytest.fixture
def place(tmp_path, lab):
    return tmp_path


def judged(lab, place, command, folder="work"):
    return execution.assess(Request(command, cwd=str(place / folder)), lab)


def is_law_six(assessment):
    return (assessment.decision.verdict, assessment.decision.forceable) == ("refuse", False) and any(
        reason.source == "law 6" for reason in assessment.reasons
    )


SPELLINGS = {
    "up behind a link": "l/../config.toml",
    "up behind a link twice": "l/./..//config.toml",
    "below a link": "up/a/oh/config/config.toml",
    "below a link, up and down": "up/a/../a/oh/config/config.toml",
    "a link itself": "straight",
    "a pattern with a link in it": "u*/a/oh/config/config.toml",
}
CHANGES = ("echo x > {}", "echo x >> {}", "rm {}", "cp f {}", "mv f {}", "touch {}", "tee {} < f", "sed -i s/a/b/ {}")


@pytest.mark.parametrize(("spelled", "change"), list(itertools.product(SPELLINGS.values(), CHANGES)))
def test_own_files_are_refused_however_links_lead_there(lab, place, spelled, change):
    inner = place / "nest" / "a" / "oh" / "config" / "sub"
    inner.mkdir()
    os.symlink(inner, place / "work" / "l")
    os.symlink(place / "nest", place / "work" / "up")
    os.symlink(inner.parent / "config.toml", place / "work" / "straight")
    assert is_law_six(judged(lab, place, change.format(spelled)))


@pytest.mark.parametrize(
    "command",
    [
        "cp -r fake/oh {0}/nest/a/",
        "cp -r fake/oh {0}/nest/a",
        "cp -rt {0}/nest/a fake/oh",
        "cp -r fake/a {0}/nest/",
        "mv fake/oh {0}/nest/a/",
        "mv {0}/nest/a {0}/nest/b",
        "mv {0}/nest elsewhere",
        "sudo mv {0}/nest/a {0}/nest/b",
        "rm -r {0}/nest",
        "rmdir {0}/nest/a",
        "chmod -R 777 {0}/nest",
        "chown -R nobody {0}/nest/a",
        "find n/ -name x -delete",
        "ln -sfn /tmp {0}/nest/a/oh",
        "ln -s {0}/nest q2; echo x >> q2/a/oh/config/config.toml",
        "ln -s ../nest q2 && rm q2/a/oh/config/config.toml",
        "cp -s {0}/nest/a q2; echo x > q2/oh/x",
        "ln -s {0}/nest q2; cd q2; echo x > a/oh/config/config.toml",
        'for f in ./n/a/oh/c*; do sed -i s/a/b/ "$f"; done',
    ],
)
def test_what_stands_above_own_files_is_theirs_too(lab, place, command):
    os.symlink(place / "nest", place / "work" / "n")
    (place / "work" / "fake" / "oh").mkdir(parents=True)
    assert is_law_six(judged(lab, place, command.format(place)))


@pytest.mark.parametrize(
    "command",
    [
        "mkdir -p {0}/nest/a", "touch {0}/nest", "cp f {0}/nest/", "mv f {0}/nest/a/", "cp -r fake/oh {0}/nest/",
        "rm {0}/nest/a/other", "ln -s {0}/nest q2", "echo x > {0}/nest/a/x", "chmod 755 {0}/nest/x",
        "install -m 644 f {0}/nest/a/", "echo x > l/../f", "ln -s f g; echo x > h",
    ],
)  # fmt: skip
def test_neighbours_of_own_files_are_nobodys_business(lab, place, command):
    os.symlink(place / "work", place / "work" / "l")
    (place / "nest" / "a" / "other").write_text("x")
    assert not any(reason.source == "law 6" for reason in judged(lab, place, command.format(place)).reasons)


@pytest.mark.parametrize("command", ["tar xf a.tar -C {0}/nest", "cp -a fake/. {0}/nest", "cp -r fake/* {0}/nest/a"])
def test_what_is_not_told_is_no_small_change_above_own_files(lab, place, command):
    (place / "work" / "fake").mkdir()
    assessment = judged(lab, place, command.format(place))
    assert assessment.level >= Level.R2 and assessment.decision.verdict != "run"


@pytest.mark.parametrize(
    "command", ['for f in $(ls app); do sed -i s/a/b/ "$f"; done', 'x=$(cat f); rm "$x"', 'touch "$1"']
)
def test_name_of_which_nothing_is_told_waits_for_a_person_and_is_not_said_to_be_ours(lab, place, command):
    assessment = judged(lab, place, command)
    assert (assessment.level, assessment.decision.verdict) == (Level.R2, "needs_stamp")
    assert not any(reason.source == "law 6" for reason in assessment.reasons)


def test_own_places_that_are_named_by_a_link_are_found(lab, place):
    os.symlink(place / "nest", place / "alias")
    policy = lab.policy.replace(own_paths=(str(place / "alias" / "a" / "oh"),))
    guard = execution.Guard(lab.target, lab.ledger, lab.redactor, lab.clock, policy, hidden=lab.hidden)
    os.symlink(place / "nest" / "a", place / "work" / "k")
    assert is_law_six(execution.assess(Request("echo x > k/oh/config/config.toml", cwd=str(place / "work")), guard))


def test_home_is_followed(lab, place, monkeypatch):
    monkeypatch.setenv("HOME", str(place / "work"))
    os.symlink(place / "nest" / "a", place / "work" / "k")
    assert is_law_six(judged(lab, place, "echo x > ~/k/oh/config/config.toml"))
    assert is_law_six(judged(lab, place, "echo x > ~/k*/oh/config/config.toml"))


def test_folder_named_by_a_link_is_judged_where_it_leads(lab, place):
    os.symlink(place / "nest" / "a" / "oh" / "config", place / "work" / "k")
    assert is_law_six(judged(lab, place, "echo x > ../config/config.toml", folder="work/k"))


def test_critical_file_behind_a_link_and_up_is_critical(lab, place):
    os.symlink("/etc/ssl", place / "work" / "ks")
    assert judged(lab, place, "rm ks/../passwd").level >= Level.R2
    assert judged(lab, place, "mv ks/../passwd old").level >= Level.R2
    assert judged(lab, place, "rm ks").level == Level.R1, "only the link goes"
    assert judged(lab, place, "cat ks/../shadow").level >= Level.R2


def _behind(place: Path) -> Path:
    """`work/k` leads to `work/kk/sub`, so the kernel reads `k/../x` as `kk/x`."""
    work = place / "work"
    (work / "kk" / "sub").mkdir(parents=True)
    os.symlink("kk/sub", work / "k")
    return work


def test_stamp_binds_the_script_that_would_run(lab, place):
    work = _behind(place)
    (work / "s.sh").write_text("echo named\n")
    (work / "kk" / "s.sh").write_text("echo meant\n")
    request = Request("bash k/../s.sh", cwd=str(work))
    assessment = execution.assess(request, lab)
    binding = approving.bind(request, assessment, lab)
    lab.ledger.answers.approve([ToApprove(request, assessment, binding)], CONSENT)
    (work / "kk" / "s.sh").write_text("echo another\n")
    outcome = execution.run(request, lab).outcome
    assert outcome.status == Status.NEEDS_STAMP
    assert "changed since approval" in outcome.notes[0] and "s.sh" in outcome.notes[0]


def test_way_back_is_of_the_file_that_was_written(lab, place):
    work = _behind(place)
    (work / "t").write_text("beside\n")
    (work / "kk" / "t").write_text("before\n")
    request = Request("echo new > k/../t", cwd=str(work))
    outcome = execution.run(request, lab).outcome
    assert outcome.status == Status.SUCCEEDED, outcome
    assert ((work / "t").read_text(), (work / "kk" / "t").read_text()) == ("beside\n", "new\n")
    plan = execution.plan_rollback(outcome.execution, lab)
    asked = Request(execution.rollback_request(plan), cwd=str(work))
    execution.apply_rollback(plan, asked, lab, consent="tty")
    assert ((work / "t").read_text(), (work / "kk" / "t").read_text()) == ("beside\n", "before\n")


def test_way_back_reaches_what_is_below_the_home(lab, place, monkeypatch):
    home = place / "elsewhere"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (home / "notes").write_text("before\n")
    outcome = execution.run(Request("echo new > ~/notes", cwd=str(place / "work")), lab).outcome
    assert outcome.status == Status.SUCCEEDED, outcome
    assert (home / "notes").read_text() == "new\n"
    plan = execution.plan_rollback(outcome.execution, lab)
    asked = Request(execution.rollback_request(plan), cwd=str(place / "work"))
    execution.apply_rollback(plan, asked, lab, consent="tty")
    assert (home / "notes").read_text() == "before\n"


def test_kernel_files_are_not_saved_through_a_link(lab, place):
    from guard.hands.capture import capture
    from guard.types import PlanItem

    os.symlink("/proc/self", place / "work" / "p")
    with pytest.raises(SnapshotImpossible, match="kernel"):
        capture([PlanItem("file", f"{place}/work/p/../version")])
