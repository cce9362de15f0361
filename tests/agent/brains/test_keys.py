"""Keys: from where they come, and that nothing shows one."""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import replace

import pytest

from agent.brains import keys
from agent.brains.entries import entry_of
from agent.providers.base import KeyRefused
from capabilities.jobs import Cancelled
from guard.hands.cancel import CancelToken
from guard.redact import Redactor

BASE = entry_of("local", {"kind": "openai", "base_url": "http://127.0.0.1:1/v1"}, redact=Redactor().text)
SECRET = "a-key-of-this-test-0123456789"


def from_program(code, cancel=None):
    return keys.key_of(replace(BASE, key_command=(sys.executable, "-c", code)), {}, cancel=cancel)


def test_an_entry_without_a_place_has_no_key():
    assert keys.key_of(BASE, {"OPENAI_API_KEY": SECRET}) == ""


def test_a_variable_gives_the_key():
    entry = replace(BASE, key_env="THE_KEY")
    assert keys.key_of(entry, {"THE_KEY": f" {SECRET}\n"}) == SECRET
    with pytest.raises(KeyRefused, match="THE_KEY is not set"):
        keys.key_of(entry, {"THE_KEY": ""})


def test_a_program_gives_the_first_line_and_no_shell_reads_its_words(tmp_path):
    assert from_program(f"print({SECRET!r}); print('login: x')") == SECRET
    trap = tmp_path / "made"
    entry = replace(BASE, key_command=("/bin/echo", f"$(touch {trap});touch {trap}".replace(" ", "")))
    assert keys.key_of(entry, {}).startswith("$(touch")
    assert not trap.exists()


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (f"import sys; print({SECRET!r}); print({SECRET!r}, file=sys.stderr); sys.exit(3)", "ended with 3"),
        ("pass", "gave no key"),
        (f"print('the key is {SECRET}')", "is no key"),
        ("print('schlüssel')", "is no key"),
        (f"print({SECRET!r} * 10_000)", "key"),
    ],
)
def test_a_program_that_gives_no_key_is_said_without_its_output(code, said, capfd):
    with pytest.raises(KeyRefused) as raised:
        from_program(code)
    assert said in raised.value.message
    out, err = capfd.readouterr()
    assert SECRET not in f"{raised.value.message}{raised.value.hint}{out}{err}"


def test_a_program_that_is_not_there_is_an_error_that_names_it():
    with pytest.raises(KeyRefused, match="/no/such cannot be started"):
        keys.key_of(replace(BASE, key_command=("/no/such",)), {})


def test_a_program_that_hangs_is_ended_with_what_it_started(tmp_path):
    note = tmp_path / "pid"
    code = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        f"open({str(note)!r}, 'w').write(str(child.pid)); time.sleep(60)"
    )
    cancel = CancelToken()
    threading.Thread(target=lambda: (_wait_for(note), cancel.set()), daemon=True).start()
    with pytest.raises(Cancelled):
        from_program(code, cancel)
    _wait_until_gone(int(note.read_text()))
    cancel.close()


def test_a_program_has_a_time_limit(monkeypatch):
    monkeypatch.setattr(keys, "COMMAND_S", 0.2)
    with pytest.raises(KeyRefused, match="did not end within"):
        from_program("import time; time.sleep(60)")


def _wait_for(path):
    while not (path.exists() and path.read_text()):
        pass


def _wait_until_gone(pid):
    for _ in range(2_000_000):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as file:
                if file.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except OSError:
            return
    raise AssertionError(f"{pid} is still there")


def test_a_file_gives_the_key_when_others_cannot_write_it(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    entry = replace(BASE, key_file=str(path))
    assert keys.key_of(entry, {}) == SECRET
    path.chmod(0o622)
    with pytest.raises(KeyRefused, match="written by others"):
        keys.key_of(entry, {})
    path.chmod(0o600)
    os.unlink(path)
    with pytest.raises(KeyRefused, match="No such file"):
        keys.key_of(entry, {})
    os.mkfifo(path)
    with pytest.raises(KeyRefused, match="no regular file"):
        keys.key_of(entry, {})


def test_a_home_folder_may_stand_as_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "key").write_text(SECRET)
    (tmp_path / "key").chmod(0o600)
    assert keys.key_of(replace(BASE, key_file="~/key"), {}) == SECRET


def test_where_a_key_is_can_be_said():
    assert keys.source_of(BASE) == "no key"
    assert keys.source_of(replace(BASE, key_env="A")) == "the variable A"
    assert keys.source_of(replace(BASE, key_command=("/usr/bin/pass", "x"))) == "the program pass"
