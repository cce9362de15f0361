"""`opsagent doctor`: every part has a line, what is wrong has a way to mend it, and the exit code says which it is."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli import opsagent
from tests.model_server import Call, ModelServer, Say


def doctor(capsys, *arguments):
    code = opsagent.main(["doctor", "--json", *arguments])
    got = json.loads(capsys.readouterr().out)
    assert got["ok"] == (code == 0)
    return got["checks"], code


def states(checks, name):
    return [check["state"] for check in checks if check["name"] == name]


def test_a_machine_without_a_model_is_well_and_told_how_to_have_one(capsys):
    checks, code = doctor(capsys)
    assert code == 0
    for name in ("program", "records", "configuration", "sandbox", "privileges", "brains"):
        assert states(checks, name)[-1:] in (["ok"], ["warn"]), name
    assert "OPENAI_API_KEY" in checks[-1]["mend"]


def test_words_for_people_have_the_same_lines(capsys):
    assert opsagent.main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("ok    program ") and "→ for a model" in out


def test_a_brain_that_cannot_be_reached_makes_it_one(capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_MODEL", "m")
    checks, code = doctor(capsys)
    assert (code, states(checks, "brain openai"), states(checks, "brain offline")) == (1, ["bad"], ["ok"])


def test_online_asks_each_brain_to_use_a_tool(capsys, monkeypatch):
    with ModelServer(Say(calls=[Call("say", {"word": "ping"})])) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        monkeypatch.setenv("OPENAI_MODEL", "mock-1")
        checks, code = doctor(capsys, "--online")
    assert (code, states(checks, "tools of openai")) == (0, ["ok"])


def test_a_configuration_that_is_not_used_is_told(capsys, tmp_path):
    folder = tmp_path / "state" / "config"
    folder.mkdir(parents=True)
    for made in (tmp_path / "state", folder):
        made.chmod(0o700)
    (folder / "config.toml").write_text('[polcy]\nmode = "lab"\n[brains.x]\nkey = "y"\n')
    (folder / "config.toml").chmod(0o600)
    checks, code = doctor(capsys)
    assert states(checks, "configuration") == ["warn"] and states(checks, "brains") == ["bad"] and code == 1
    assert "key_env" in checks[-1]["mend"]


def test_records_that_cannot_be_written_are_bad(capsys, monkeypatch):
    monkeypatch.setenv("OPSAGENT_HOME", "/proc/self/opsagent")
    checks, code = doctor(capsys)
    assert (code, states(checks, "records")) == (1, ["bad"])


@pytest.mark.parametrize("lost", ["format", "key", "the right to write"])
def test_records_that_lost_what_is_needed_to_write_are_bad_and_the_way_on_is_told(capsys, tmp_path, monkeypatch, lost):
    from cli import opsx

    assert opsx.main(["exec", "--", "true"]) == 0
    capsys.readouterr()
    state = tmp_path / "state"
    if lost == "the right to write":
        real = os.access
        monkeypatch.setattr(os, "access", lambda path, *more, **how: path != str(state) and real(path, *more, **how))
    else:
        (state / lost).unlink()
    checks, code = doctor(capsys)
    assert (code, states(checks, "records")) == (1, ["bad"])
    [told] = [check for check in checks if check["name"] == "records"]
    assert "reads run unrecorded, changes do not run" in told["detail"]
    wanted = {"format": "echo 1 > ", "key": "head -c 32 /dev/urandom > "}.get(lost, "read-only")
    assert wanted in told["mend"]


def test_a_stop_of_all_changes_is_told(capsys):
    from cli import opsx

    assert opsx.main(["freeze", "--reason", "maintenance"]) == 0
    capsys.readouterr()
    checks, code = doctor(capsys)
    assert code == 0 and "warn" in states(checks, "records")
    assert any("maintenance" in check["detail"] and check["mend"] == "opsx thaw" for check in checks)


def test_a_secret_that_is_too_plain_is_named_and_not_shown(capsys, monkeypatch):
    monkeypatch.setenv("DB_PASSWORD", "kiwi")
    checks, _ = doctor(capsys)
    (found,) = [check for check in checks if check["name"] == "secrets"]
    assert found["state"] == "warn" and "DB_PASSWORD" in found["detail"] and "kiwi" not in json.dumps(checks)


@pytest.mark.parametrize(("text", "said"), [('{"command": "opsx hook claude-code"}', "asks opsx"), ("{}", "no hook")])
def test_hosts_in_this_home_are_looked_at(capsys, text, said):
    settings = Path(os.environ["HOME"]) / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(text)
    checks, _ = doctor(capsys)
    (found,) = [check for check in checks if check["name"] == "hook claude-code"]
    assert said in found["detail"]


def test_a_word_is_a_usage_error(capsys):
    assert opsagent.main(["doctor", "x"]) == 2
