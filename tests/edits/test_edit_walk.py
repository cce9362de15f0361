"""The walk of a file change, with the real hands and a real state folder: approved, saved, begun, replaced, ended."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import execution
from acting import edit
from guard.bound import Consent
from guard.errors import ApprovalChanged, CannotEdit, CwdGone, Frozen, NotApproved, UnknownTarget
from guard.hands.capture import secret_by_mask
from guard.ledger.answers import ToApprove
from guard.types import Actor, Level, Policy, Request, RequestKind, Status
from tests.edits.world import answered, approve, changed, guard_at, kept_one, kinds
from tests.snapshot.test_snapshot_crash import in_child

CJK = "服务器配置 = 生产\n".encode()
CONTENTS = [
    b"plain\n",
    b"",
    b"no line end",
    b"\xef\xbb\xbfwith a mark\r\nand CRLF\r\n",
    CJK,
    b"latin-1: caf\xe9\n",
    bytes(range(1, 256)) * 16,
    b"one line of a megabyte " * 45_000,
]


@pytest.fixture
def guard(tmp_path):
    return guard_at(tmp_path)


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


def ask(work, **more):
    return Request("", cwd=str(work), **more)


# ── the walk ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.guarantee("G-EDIT-EXACT")
@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
def test_what_was_approved_is_written_byte_for_byte_and_taken_back_byte_for_byte(guard, work, content):
    before = b"before \xff\r\n"
    (work / "f").write_bytes(before)
    done = answered(guard, work, "f", content)
    assert (done.status, done.exit_code, done.recorded) == (Status.SUCCEEDED, 0, True), done
    assert (work / "f").read_bytes() == content
    back = rolled_back(done.execution, guard)
    assert back.status == Status.SUCCEEDED and (work / "f").read_bytes() == before


def rolled_back(of, guard):
    plan = execution.plan_rollback(of, guard)
    request = Request(execution.rollback_request(plan), cwd="/", actor=Actor.PERSON)
    return execution.apply_rollback(plan, request, guard, consent="tty")


@pytest.mark.guarantee("G-NO-STAMP")
def test_without_a_stamp_nothing_is_changed_and_the_request_waits_with_its_content(guard, work):
    (work / "f").write_bytes(b"before\n")
    ran = changed(guard, work, "f", CJK).ran
    kept = kept_one(guard)
    assert (ran.outcome.status, ran.outcome.request_id, ran.assessment.level) == ("needs_stamp", kept.id, Level.R1)
    assert (kept.kind, kept.request().kind) == (RequestKind.FILE_CHANGE, RequestKind.FILE_CHANGE)
    assert guard.ledger.content(kept) == CJK
    stored = Path(guard.ledger.folder.path, "requests", f"{kept.id}.content")
    assert (stored.read_bytes(), stored.stat().st_mode & 0o777) == (CJK, 0o600)
    assert (work / "f").read_bytes() == b"before\n"
    assert changed(guard, work, "f", CJK).ran.outcome.request_id == kept.id


def test_the_record_names_the_change_and_its_order_is_the_promise(guard, work):
    (work / "f").write_bytes(b"before\n")
    done = answered(guard, work, "f", b"after\n")
    order = kinds(guard)
    assert order.index("snapshot") < order.index("started") < order.index("ended")
    shown = guard.ledger.show(done.execution)
    (started,) = [entry for entry in shown.entries if entry["kind"] == "started"]
    assert (started["request_kind"], started["stamp"]) == ("file-change", done.stamp)
    assert str(work / "f") in started["command"] and started["effects"] == [["write", str(work / "f")]]
    assert shown.execution.snapshot == done.snapshot
    assert not list(Path(guard.ledger.folder.path, "requests").iterdir())


@pytest.mark.guarantee("G-ONE-USE")
def test_a_stamp_is_good_for_one_change(guard, work):
    (work / "f").write_bytes(b"before\n")
    assert answered(guard, work, "f", b"after\n").status == Status.SUCCEEDED
    (work / "f").write_bytes(b"before\n")
    (work / "f").chmod(0o644)
    again = changed(guard, work, "f", b"after\n").ran.outcome
    assert again.status == Status.NEEDS_STAMP and (work / "f").read_bytes() == b"before\n"
    assert any("used" in note for note in again.notes)


def test_a_new_file_is_made_and_its_absence_comes_back(guard, work):
    done = answered(guard, work, "new", b"made\n")
    assert done.status == Status.SUCCEEDED
    info = (work / "new").stat()
    umask = os.umask(0)
    os.umask(umask)
    assert (info.st_mode & 0o7777, info.st_uid) == (0o666 & ~umask, os.geteuid())
    assert rolled_back(done.execution, guard).status == Status.SUCCEEDED and not (work / "new").exists()


def test_a_new_file_takes_group_and_list_from_its_folder_as_any_program_would(guard, work):
    if subprocess.run(["setfacl", "-d", "-m", "u:65534:rwx,m::rx", work], capture_output=True).returncode:
        subprocess.run(["chmod", "g+s", work], check=True)
    (work / "by-a-program").write_bytes(b"")
    assert answered(guard, work, "by-us", b"made\n").status == Status.SUCCEEDED

    def looks(name):
        info = (work / name).stat()
        return (
            info.st_mode,
            info.st_uid,
            info.st_gid,
            {n: os.getxattr(work / name, n) for n in os.listxattr(work / name)},
        )

    assert looks("by-us") == looks("by-a-program")


def test_mode_owner_and_attributes_stay(guard, work):
    (work / "f").write_bytes(b"before\n")
    (work / "f").chmod(0o4750)
    if os.geteuid() == 0:
        os.chown(work / "f", 12, 34)
        os.chmod(work / "f", 0o4750)
    os.setxattr(work / "f", "user.note", b"kept")
    before = (work / "f").stat()
    assert answered(guard, work, "f", b"after\n").status == Status.SUCCEEDED
    after = (work / "f").stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert os.getxattr(work / "f", "user.note") == b"kept" and after.st_ino != before.st_ino


# ── what a stamp holds fast ──────────────────────────────────────────────────────────────────────────────────────


def other_content(work):
    (work / "f").write_bytes(b"by hand\n")


def other_mode(work):
    (work / "f").chmod(0o600)


def gone(work):
    (work / "f").unlink()


def other_attribute(work):
    os.setxattr(work / "f", "user.note", b"new")


def another_name(work):
    os.link(work / "f", work / "other")


def other_folder(work):
    work.rename(work.with_name("old"))
    work.mkdir()
    (work / "f").write_bytes(b"before\n")


CHANGES = [other_content, other_mode, gone, other_attribute, another_name, other_folder]


@pytest.mark.guarantee("G-EXACT")
@pytest.mark.parametrize("meanwhile", CHANGES)
def test_what_changed_since_the_approval_is_named_and_nothing_is_written(guard, work, meanwhile):
    (work / "f").write_bytes(b"before\n")
    approve(guard, work, "f", b"after\n")
    meanwhile(work)
    outcome = changed(guard, work, "f", b"after\n").ran.outcome
    assert outcome.status == Status.NEEDS_STAMP
    assert any("changed since approval" in note for note in outcome.notes), outcome.notes
    assert not (work / "f").exists() or (work / "f").read_bytes() != b"after\n"


@pytest.mark.parametrize("meanwhile", CHANGES)
def test_what_changes_in_the_last_moment_is_seen_before_the_begin_and_the_stamp_stands(guard, work, meanwhile):
    (work / "f").write_bytes(b"before\n")
    stamp = approve(guard, work, "f", b"after\n")

    def checkpoint(name):
        if name == "saved":
            meanwhile(work)

    with pytest.raises(ApprovalChanged):
        changed(guard, work, "f", b"after\n", checkpoint=checkpoint)
    assert guard.ledger.stamps.show(stamp.id).state == "live" and "started" not in kinds(guard)
    assert not (work / "f").exists() or (work / "f").read_bytes() != b"after\n"


@pytest.mark.guarantee("G-EDIT-EXACT")
@pytest.mark.parametrize("moment", ["begun", "created", "complete", "checked"])
@pytest.mark.parametrize("is_new", [False, True])
def test_a_second_writer_loses_nothing_whenever_it_writes(guard, work, moment, is_new):
    file = work / "f"
    if not is_new:
        file.write_bytes(b"before\n")
    approve(guard, work, "f", b"after\n")

    def checkpoint(name):
        if name == moment:
            file.write_bytes(b"by somebody else\n")

    outcome = changed(guard, work, "f", b"after\n", checkpoint=checkpoint).ran.outcome
    assert outcome.status == Status.FAILED and "nothing was written" in outcome.notes
    assert file.read_bytes() == b"by somebody else\n"
    assert sorted(os.listdir(work)) == ["f"]


@pytest.mark.parametrize("moment", ["created", "complete", "checked"])
def test_a_file_that_is_replaced_or_removed_meanwhile_stays_as_it_is_then(guard, work, tmp_path, moment):
    secret = tmp_path / "outside"
    secret.write_bytes(b"outside\n")
    for swap in (lambda f: f.symlink_to(secret), lambda f: os.link(secret, f), lambda f: f.mkdir(), lambda f: None):
        for entry in work.iterdir():
            entry.rmdir() if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        file = work / "f"
        file.write_bytes(b"before\n")
        approve(guard, work, "f", b"after\n")

        def checkpoint(name, file=file, swap=swap):
            if name == moment:
                file.unlink()
                swap(file)

        outcome = changed(guard, work, "f", b"after\n", checkpoint=checkpoint).ran.outcome
        assert outcome.status == Status.FAILED, outcome
        assert secret.read_bytes() == b"outside\n"
        assert not file.is_file() or file.read_bytes() != b"after\n"
        assert [name for name in os.listdir(work) if name != "f"] == []


def test_the_same_bytes_as_a_command_are_not_approved_with_a_file_change(guard, work):
    (work / "f").write_bytes(b"before\n")
    stamp = approve(guard, work, "f", b"after\n")
    command = Request(stamp.command, cwd=str(work))
    assert execution.run(command, guard).outcome.status != Status.SUCCEEDED
    assert guard.ledger.stamps.show(stamp.id).state == "live"
    with pytest.raises(ValueError, match="no command"):
        execution.run(command.replace(kind=RequestKind.FILE_CHANGE), guard)


# ── links and unfit files ────────────────────────────────────────────────────────────────────────────────────────


def test_a_link_is_followed_said_and_bound(guard, work):
    (work / "real").write_bytes(b"before\n")
    (work / "link").symlink_to("real")
    looked = changed(guard, work, "link", b"after\n").edit
    assert (looked.change.path, looked.change.asked) == (str(work / "real"), str(work / "link"))
    assert answered(guard, work, "link", b"after\n").status == Status.SUCCEEDED
    assert (work / "link").is_symlink() and (work / "real").read_bytes() == b"after\n"


def test_a_link_that_leads_elsewhere_by_now_is_another_change(guard, work):
    for name in ("one", "two"):
        (work / name).write_bytes(b"before\n")
    (work / "link").symlink_to("one")
    approve(guard, work, "link", b"after\n")
    (work / "link").unlink()
    (work / "link").symlink_to("two")
    assert changed(guard, work, "link", b"after\n").ran.outcome.status == Status.NEEDS_STAMP
    assert [(work / name).read_bytes() for name in ("one", "two")] == [b"before\n"] * 2


def make(work, kind):
    file = work / "f"
    if kind == "fifo":
        os.mkfifo(file)
    elif kind == "socket":
        import socket

        with socket.socket(socket.AF_UNIX) as made:
            folder = os.getcwd()
            os.chdir(work)
            try:
                made.bind("f")
            finally:
                os.chdir(folder)
    elif kind == "folder":
        file.mkdir()
    elif kind == "binary":
        file.write_bytes(b"\x7fELF\0\1")
    elif kind == "big":
        with file.open("wb") as sparse:
            sparse.truncate(4 * 1024 * 1024 + 1)
    elif kind == "loop":
        file.symlink_to("f")


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("fifo", "is a FIFO"),
        ("socket", "is a socket"),
        ("folder", "is a folder"),
        ("binary", "is no text"),
        ("big", "4,194,305 bytes long"),
        ("loop", "too many links"),
    ],
)
def test_what_is_no_text_file_is_refused_in_words(guard, work, kind, why):
    make(work, kind)
    with pytest.raises(CannotEdit, match=why) as caught:
        changed(guard, work, "f", b"after\n")
    assert caught.value.not_done == "nothing was changed"
    assert guard.ledger.pending() == []


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/dev/null", "is a device"),
        ("/proc/sys/kernel/hostname", "part of the running kernel"),
        ("missing/f", "does not exist"),
        ("f/below", "is no folder"),
        ("f/", "no path of a file"),
        ("/", "no path of a file"),
        ("nul\0", "no path of a file"),
    ],
)
def test_paths_under_which_nothing_can_be_written_are_refused_in_words(guard, work, path, why):
    (work / "f").write_bytes(b"")
    with pytest.raises(CannotEdit, match=why):
        changed(guard, work, path, b"after\n")


def test_what_is_there_already_or_too_long_or_binary_is_no_change(guard, work):
    (work / "f").write_bytes(b"same\n")
    for content, why in ((b"same\n", "exactly that already"), (b"a\0b", "NUL"), (b"x" * (4 << 20 | 1), "the most is")):
        with pytest.raises(CannotEdit, match=why):
            changed(guard, work, "f", content)


def test_a_malformed_request_is_an_error(guard, work):
    (work / "f").write_bytes(b"")
    with pytest.raises(UnknownTarget):
        execution.change_file(ask(work, target="web-1"), "f", lambda old: b"x", guard)
    with pytest.raises(CwdGone):
        execution.change_file(ask(work / "gone"), "f", lambda old: b"x", guard)


def test_a_folder_that_others_can_write_is_refused(guard, work):
    (work / "open").mkdir()
    (work / "open").chmod(0o777)
    with pytest.raises(CannotEdit, match="can be written by everybody"):
        changed(guard, work, "open/f", b"after\n")


def test_a_file_of_somebody_else_is_refused_to_an_ordinary_user(guard, work, monkeypatch):
    file = work / "f"
    file.write_bytes(b"before\n")
    foreign = "/etc/hostname"
    if os.geteuid() == 0:
        os.chown(work, 4321, 4321)
        os.chown(file, 4321, 4321)
        assert answered(guard, work, "f", b"after\n").status == Status.SUCCEEDED
        assert ((work / "f").stat().st_uid, file.read_bytes()) == (4321, b"after\n")
        return
    with pytest.raises(CannotEdit, match=r"belongs to|cannot be written") as caught:
        changed(guard, work, foreign, b"after\n")
    assert "root" in caught.value.hint


def test_other_names_of_the_file_are_said_and_keep_the_old_content(guard, work):
    (work / "f").write_bytes(b"before\n")
    os.link(work / "f", work / "other")
    ran = changed(guard, work, "f", b"after\n").ran
    assert ran.assessment.level == Level.R2 and ran.assessment.reversible == "partial"
    assert any("another name" in reason.text for reason in ran.assessment.reasons)
    assert answered(guard, work, "f", b"after\n").status == Status.SUCCEEDED
    assert (work / "other").read_bytes() == b"before\n"


# ── stops ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("policy", [Policy(mode="read-only"), "frozen", "own"])
def test_a_stop_and_law_6_refuse_before_the_file_is_read(tmp_path, work, policy):
    guard = guard_at(tmp_path, policy if isinstance(policy, Policy) else Policy())
    if policy == "frozen":
        guard.ledger.answers.freeze("look first", actor="person")
    elif policy == "own":
        guard = guard_at(tmp_path, Policy(own_paths=(str(work),), own_private=(str(work),)))
    (work / "f").write_bytes(b"before\n")

    def never(content):
        raise AssertionError("the file was read")

    done = execution.change_file(ask(work), "f", never, guard)
    assert (done.ran.outcome.status, done.ran.outcome.request_id, done.edit) == (Status.REFUSED, None, None)
    assert guard.ledger.pending() == [] and (work / "f").read_bytes() == b"before\n"


@pytest.mark.guarantee("G-FREEZE")
def test_a_freeze_between_approval_and_begin_stops_it(guard, work):
    (work / "f").write_bytes(b"before\n")
    stamp = approve(guard, work, "f", b"after\n")

    def checkpoint(name):
        if name == "saved":
            guard.ledger.answers.freeze("stop", actor="agent")

    with pytest.raises(Frozen):
        changed(guard, work, "f", b"after\n", checkpoint=checkpoint)
    assert (work / "f").read_bytes() == b"before\n" and guard.ledger.stamps.show(stamp.id).state == "live"


def test_a_revoked_stamp_writes_nothing(guard, work):
    (work / "f").write_bytes(b"before\n")
    stamp = approve(guard, work, "f", b"after\n")

    def checkpoint(name):
        if name == "saved":
            guard.ledger.answers.revoke(stamp.id)

    with pytest.raises(NotApproved):
        changed(guard, work, "f", b"after\n", checkpoint=checkpoint)
    assert (work / "f").read_bytes() == b"before\n"


def test_a_lab_writes_an_ordinary_file_at_once_with_snapshot_and_record(tmp_path, work):
    guard = guard_at(tmp_path, Policy(mode="lab"))
    (work / "f").write_bytes(b"before\n")
    outcome = changed(guard, work, "f", b"after\n").ran.outcome
    assert (outcome.status, outcome.stamp, bool(outcome.snapshot)) == (Status.SUCCEEDED, None, True)
    assert (work / "f").read_bytes() == b"after\n"


def test_a_denial_is_told_when_the_same_is_asked_again(guard, work):
    (work / "f").write_bytes(b"before\n")
    changed(guard, work, "f", b"after\n")
    kept = kept_one(guard)
    guard.ledger.answers.deny(kept.request(), request_id=kept.id, reason="not in production")
    assert not list(Path(guard.ledger.folder.path, "requests").iterdir())
    again = changed(guard, work, "f", b"something else\n").ran.outcome
    assert any("you denied this" in note and "not in production" in note for note in again.notes)


# ── crashes and sick disks ───────────────────────────────────────────────────────────────────────────────────────

MOMENTS = ["saved", "begun", "created", "filled", "complete", "checked", "renamed", "done", "surveyed"]


@pytest.mark.guarantee("G-BEGIN")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("is_new", [False, True])
def test_killed_at_any_moment_the_file_is_whole_and_the_run_is_told_truly(guard, work, tmp_path, moment, is_new):
    file = work / "f"
    if not is_new:
        file.write_bytes(b"before\n")
    stamp = approve(guard, work, "f", b"after\n")

    def killed():
        def checkpoint(name):
            if name == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        changed(guard_at(tmp_path), work, "f", b"after\n", checkpoint=checkpoint)

    assert in_child(killed) == -signal.SIGKILL
    has_swapped = MOMENTS.index(moment) >= MOMENTS.index("renamed")
    if has_swapped:
        assert file.read_bytes() == b"after\n"
    else:
        assert (not file.exists()) if is_new else file.read_bytes() == b"before\n"
    unknown = guard.ledger.executions(status=Status.UNKNOWN).executions
    if moment == "saved":
        assert unknown == () and guard.ledger.stamps.show(stamp.id).state == "live"
        return
    assert len(unknown) == 1 and guard.ledger.stamps.show(stamp.id).state == "used"
    # Nothing that touches it runs before a person looked; a yes to what showed it says that they did.
    if not has_swapped:
        approve(guard, work, "f", b"after\n")
        blocked = changed(guard, work, "f", b"after\n").ran.outcome
        assert blocked.status == Status.UNKNOWN and any(unknown[0].id in note for note in blocked.notes)
        guard.ledger.answers.resolve(unknown[0].id, "not_done")
        assert changed(guard, work, "f", b"after\n").ran.outcome.status == Status.SUCCEEDED
        assert os.listdir(work) == ["f"], "what the killed run left half-made goes with the next one"
    assert file.read_bytes() == b"after\n"


def test_a_full_disk_leaves_the_file_as_it_was_and_says_so(guard, work):
    (work / "f").write_bytes(b"before\n")
    approve(guard, work, "f", b"after\n")

    def checkpoint(name):
        if name == "filled":
            raise OSError(28, "No space left on device")

    outcome = changed(guard, work, "f", b"after\n", checkpoint=checkpoint).ran.outcome
    assert outcome.status == Status.FAILED and any("no space left" in note for note in outcome.notes)
    assert (work / "f").read_bytes() == b"before\n" and os.listdir(work) == ["f"]
    assert guard.ledger.executions().executions[0].status == Status.FAILED


def test_what_cannot_be_saved_is_not_written_and_the_stamp_stands(guard, work, monkeypatch):
    from guard.errors import SnapshotImpossible
    from guard.ledger.packs import Snapshots

    (work / "f").write_bytes(b"before\n")
    stamp = approve(guard, work, "f", b"after\n")

    def full(*arguments, **more):
        raise SnapshotImpossible("no space for a snapshot")

    monkeypatch.setattr(Snapshots, "save", full)
    outcome = changed(guard, work, "f", b"after\n").ran.outcome
    assert outcome.status == Status.SNAPSHOT_FAILED and outcome.notes == ("no space for a snapshot",)
    assert (work / "f").read_bytes() == b"before\n" and guard.ledger.stamps.show(stamp.id).state == "live"


def test_a_state_folder_that_cannot_be_used_keeps_and_writes_nothing(tmp_path, work):
    (work / "f").write_bytes(b"before\n")
    (tmp_path / "state").write_text("not a folder")
    outcome = changed(guard_at(tmp_path), work, "f", b"after\n").ran.outcome
    assert outcome.status == Status.NEEDS_STAMP and outcome.request_id is None
    assert any("could not be kept" in note for note in outcome.notes)
    assert (work / "f").read_bytes() == b"before\n"


# ── credentials ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_with_credentials_is_never_shown_or_hashed_plainly(guard, work):
    (work / ".env").write_bytes(b"PIN=1234\n")
    done = changed(guard, work, ".env", b"PIN=9876\n")
    assert done.ran.assessment.level == Level.R2 and done.edit.is_secret
    from guard.filechange import sha256_of

    assert sha256_of(b"PIN=1234\n") not in kept_one(guard).command
    assert not any("1234" in line for line in edit.words_of(done.edit, str))
    assert answered(guard, work, ".env", b"PIN=9876\n").status == Status.SUCCEEDED
    assert rolled_back(guard.ledger.executions().executions[0].id, guard).status == Status.SUCCEEDED
    assert (work / ".env").read_bytes() == b"PIN=1234\n"


def test_an_edit_of_credentials_is_refused_before_it_tells_anything(guard, work):
    (work / ".env").write_bytes(b"PIN=1234\n")

    def never(content):
        raise AssertionError("the file was read")

    with pytest.raises(CannotEdit, match="holds credentials"):
        execution.change_file(ask(work), ".env", never, guard, tells=True)


def test_a_secret_that_no_snapshot_copies_has_no_way_back(guard, work, monkeypatch):
    (work / "f").write_bytes(b"before\n")
    real = str(work / "f")
    monkeypatch.setattr("guard.hands.capture.secret_by_mask", lambda: lambda path: path == real)
    assert secret_by_mask() is not None
    ran = changed(guard, work, "f", b"after\n").ran
    assert (ran.assessment.level, ran.assessment.reversible) == (Level.R2, "no")
    assert answered(guard, work, "f", b"after\n").status == Status.SUCCEEDED
    manifest = guard.ledger.snapshots.load(guard.ledger.snapshots.ids()[0])
    assert [node.path for node in manifest.hash_only] == [real]


def test_a_kept_content_that_was_tampered_with_is_approved_by_nobody(guard, work):
    from guard.errors import StateDamaged

    (work / "f").write_bytes(b"before\n")
    changed(guard, work, "f", b"after\n")
    kept = kept_one(guard)
    stored = Path(guard.ledger.folder.path, "requests", f"{kept.id}.content")
    stored.write_bytes(b"other\n")
    with pytest.raises(StateDamaged):
        guard.ledger.content(kept)
    stored.unlink()
    with pytest.raises(StateDamaged):
        guard.ledger.content(kept)


def test_a_binding_is_of_the_change_that_it_names(guard, work):
    (work / "f").write_bytes(b"before\n")
    one = changed(guard, work, "f", b"one\n").edit
    other = changed(guard, work, "f", b"other\n").edit
    with pytest.raises(ValueError, match="another request"):
        guard.ledger.answers.approve(
            [ToApprove(one.request, one.assessment, edit.binding_of(other, guard))], Consent("tty", "0" * 64)
        )
