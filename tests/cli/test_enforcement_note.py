"""The note of what this boot's kernel enforces is a convenience: whatever stands in its place holds nothing up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cli import surroundings
from guard.hands import sandbox


@pytest.fixture
def note():
    state = Path(os.environ["OPSAGENT_HOME"])
    state.mkdir(mode=0o700, exist_ok=True)
    return state / "enforcement"


def put_text(note, text):
    note.write_text(text)
    note.chmod(0o600)


@pytest.mark.parametrize(
    "put",
    [
        lambda note: os.mkfifo(note, 0o600),
        lambda note: note.mkdir(mode=0o700),
        lambda note: note.symlink_to("/dev/zero"),
        lambda note: put_text(note, "1\tanother boot\tstrict\t5\treports\tlocal\n"),
        lambda note: put_text(note, "\0" * 9_000),
        lambda note: put_text(note, ""),
    ],
    ids=["fifo", "folder", "link", "another boot", "rubbish", "nothing"],
)
def test_what_is_no_note_of_this_boot_is_measured_anew(note, put):
    put(note)
    assert surroundings.enforcement() == sandbox.measure()
