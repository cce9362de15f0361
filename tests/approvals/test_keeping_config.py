"""`[pending]`, `[approve]` and `[log]` in the configuration: strict, and never weaker by a fault elsewhere."""

from __future__ import annotations

import os

import pytest

from cli import config, surroundings
from cli.keeping_config import NOBODY
from guard.keeping import FOREVER

SIGNERS = "alice@example.org ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDummyDummyDummyDummyDummyDummyDummyDummyDum\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    place = tmp_path / "state" / "config"
    place.mkdir(parents=True, mode=0o700)
    os.chmod(tmp_path / "state", 0o700)
    monkeypatch.setenv("OPSAGENT_HOME", str(tmp_path / "state"))
    return place


def written(folder, text, signers=SIGNERS):
    (folder / "config.toml").write_text(text)
    os.chmod(folder / "config.toml", 0o600)
    if signers is not None:
        (folder / "allowed_signers").write_text(signers)
        os.chmod(folder / "allowed_signers", 0o600)
    return config.load()


def test_everything_that_can_be_said_arrives_in_the_policy(folder):
    written(
        folder,
        '[pending]\nnotify = ["/usr/bin/notify-send", "opsagent"]\n'
        '[approve]\nsigner = "alice@example.org"\nkey = "/home/alice/.ssh/id_ed25519"\n'
        "[log]\nkeep_days = 90\nkeep_mb = 512\n[sessions]\nkeep_days = 30\n",
    )
    keeping = surroundings.policy().keeping
    assert keeping.notify == ("/usr/bin/notify-send", "opsagent")
    assert (keeping.signer, keeping.allowed_signers) == ("alice@example.org", SIGNERS)
    assert keeping.signing_key == "/home/alice/.ssh/id_ed25519"
    assert (keeping.keep_days, keeping.keep_mb, keeping.session_days) == (90, 512, 30)


def test_nothing_said_keeps_everything_and_asks_for_no_signature(folder):
    settings = written(folder, "[policy]\nmode = 'guarded'\n")
    assert settings.keeping == FOREVER
    assert settings.problems == ()


def test_a_file_that_cannot_be_used_may_say_that_conversations_stay_so_none_goes(folder):
    keeping = written(folder, "[sessions]\nkeep_days = 0\n[policy]\nmode = 'lax'\n").keeping
    assert keeping is not None and keeping.session_days == 0
    other = folder / "more.toml"
    other.write_text("[sessions]\nkeep_days = 7\n")
    os.chmod(other, 0o600)
    assert config.load(str(other)).keeping.session_days == 0


def test_of_several_ages_the_longer_one_counts(folder):
    written(folder, "[sessions]\nkeep_days = 60\n[log]\nkeep_days = 9\n")
    other = folder / "more.toml"
    for days, counts in ((7, 60), (90, 90), (0, 0)):
        other.write_text(f"[sessions]\nkeep_days = {days}\n")
        os.chmod(other, 0o600)
        keeping = config.load(str(other)).keeping
        assert (keeping.session_days, keeping.keep_days) == (counts, 9)


@pytest.mark.parametrize(
    "text",
    [
        "[sessions]\nkeep_days = -1",
        "[sessions]\nkeep_days = true",
        "[sessions]\nkeep = 3",
        "[pending]\nnotify = 'notify-send'",
        "[pending]\nnotify = ['notify-send']",
        "[pending]\nnotify = [7]",
        "[pending]\nnotifi = ['/bin/true']",
        "[approve]\nkey = '/k'",
        "[approve]\nsigner = 'alice, bob'",
        "[approve]\nsigner = '*'",
        "[approve]\nsigner = 'a'\nkey = 'id_ed25519'",
        "[approve]\nsigner = true",
        "[log]\nkeep_days = -1",
        "[log]\nkeep_days = true",
        "[log]\nkeep_days = 1.5",
        "[log]\nkeep_mb = 1",
        "[log]\nkeep_gb = 1",
        "log = 7",
    ],
)
def test_setting_of_another_form_is_named_and_the_file_is_not_used(folder, text):
    settings = written(folder, text)
    assert len(settings.problems) >= 1
    assert str(folder / "config.toml") in settings.problems[0]
    assert settings.files == ()


def test_signer_without_a_list_that_can_be_trusted_is_one_that_nobody_can_be(folder):
    settings = written(folder, "[approve]\nsigner = 'alice'", signers=None)
    assert (settings.keeping.signer, settings.keeping.allowed_signers) == ("alice", "")
    assert "no approval counts" in settings.problems[0]
    (folder / "allowed_signers").write_text(SIGNERS)
    os.chmod(folder / "allowed_signers", 0o666)
    settings = config.load()
    assert (settings.keeping.signer, settings.keeping.allowed_signers) == ("alice", "")
    assert "can be written by others" in settings.problems[0]


@pytest.mark.parametrize("text", ["[approve]\nsigner = 'alice'\n[policy]\nmode = 'none'", "[approve]\nsigner = 'alice"])
def test_fault_elsewhere_in_the_file_does_not_switch_signatures_off(folder, text):
    settings = written(folder, text)
    assert settings.keeping.signer == NOBODY
    assert any("no approval counts" in problem for problem in settings.problems)


def test_first_signer_counts_and_the_limit_that_keeps_more(folder, tmp_path, monkeypatch):
    system = tmp_path / "etc"
    system.mkdir(mode=0o755)
    (system / "allowed_signers").write_text(SIGNERS)
    (system / "config.toml").write_text("[approve]\nsigner='alice@example.org'\n[log]\nkeep_days=30\nkeep_mb=64\n")
    monkeypatch.setattr(config, "folders", lambda: [str(system), str(folder)])
    settings = written(folder, "[approve]\nsigner='mallory'\n[log]\nkeep_days=90\nkeep_mb=0\n")
    assert (settings.keeping.signer, settings.keeping.keep_days, settings.keeping.keep_mb) == (
        "alice@example.org",
        90,
        0,
    )
    assert any("names one already" in problem for problem in settings.problems)
    settings = written(folder, "[approve]\nsigner='alice@example.org'\nkey='/home/a/key'\n")
    assert settings.keeping.signing_key == "/home/a/key"
    assert settings.problems == ()
