"""The private folder is limited in sum: a run that fills it, or the file system that it is on, is ended and says so."""

from __future__ import annotations

import os

from guard.hands.sandbox import scratch


def test_a_run_that_writes_too_much_in_sum_is_ended(run, monkeypatch):
    monkeypatch.setattr(scratch, "MOST_BYTES", 4 << 20)
    result = run('for i in {1..8}; do head -c 1M /dev/zero > "$TMPDIR/$i"; done; echo written; sleep 60', timeout_s=50)
    assert result.stdout.text == "written\n"
    assert not result.timed_out
    assert result.exit_code in (143, 137)
    assert any(note.startswith("ended: it wrote 8 MiB") for note in result.notes)


def test_a_run_that_makes_too_many_files_is_ended(run, monkeypatch):
    monkeypatch.setattr(scratch, "MOST_ENTRIES", 50)
    result = run('mkdir "$TMPDIR/d"; for i in {1..60}; do : > "$TMPDIR/d/$i"; done; sleep 60', timeout_s=50)
    assert any("more than 50 files" in note for note in result.notes)


def test_a_full_file_system_ends_the_run_that_filled_it_and_no_other(tmp_path, monkeypatch):
    free = [1 << 30]
    monkeypatch.setattr(scratch, "_free_bytes", lambda folder: free[0])
    filling = scratch.overrun_of(str(tmp_path))
    assert filling() == ""
    free[0] = 5 << 20
    assert filling() == "only 5 MiB are left where its private folder is"
    assert scratch.overrun_of(str(tmp_path))() == ""  # it was full before this one began


def test_a_hole_counts_as_what_it_takes_on_disk(tmp_path):
    with open(tmp_path / "sparse", "wb") as file:
        file.truncate(100 << 20)
    used, entries = scratch._size_of(str(tmp_path))
    assert used < 1 << 20
    assert entries == len(os.listdir(tmp_path)) or entries >= 1


def test_without_a_private_folder_nothing_is_asked():
    assert scratch.overrun_of(None) is None
