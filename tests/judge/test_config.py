"""Configuration comes from a person's own files, whole or not at all, and never from the current folder."""

import os

import pytest

import core
from cli import config, opsx_rules, surroundings
from cli.opsx import BY_NAME
from cli.options import parse
from guard.errors import NotPermitted, UsageError
from guard.keeping import FOREVER
from guard.ledger import location
from guard.types import Actor, Level, Mode, Verdict
from tests.judge.test_own_rules import GOOD

CONFIG = """
[policy]
mode = "lab"
peers = ["web1", "h:1"]
contexts = ["prod"]
[env]
pass = ["VAULT_ADDR", "PG*"]
[brains]
order = ["offline"]
[hook]
project_writes = "ask"
"""


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "state" / "config"
    (folder / "rules").mkdir(parents=True, mode=0o700)
    for made in (tmp_path / "state", folder, folder / "rules"):
        made.chmod(0o700)
    return folder


def _put(path, text):
    data = text if isinstance(text, bytes) else text.encode()
    path.write_bytes(data)
    path.chmod(0o600)
    return path


def _rules(*words):
    return opsx_rules.main(parse("opsx", BY_NAME["rules"], list(words)))


def test_without_files_the_built_in_policy_holds():
    assert config.load() == config.Settings()


def test_settings_are_read(place):
    _put(place / "config.toml", CONFIG)
    found = config.load()
    assert found == config.Settings(
        mode=Mode.LAB,
        peers=("web1", "h:1"),
        contexts=("prod",),
        env=("VAULT_ADDR", "PG*"),
        files=(str(place / "config.toml"),),
        keeping=FOREVER,
    )
    policy = surroundings.policy()
    assert (policy.mode, policy.peers, policy.env) == (Mode.LAB, frozenset(("web1", "h:1")), ("VAULT_ADDR", "PG*"))
    assert surroundings.policy(read_only=True).mode == Mode.READ_ONLY


def test_a_part_that_is_not_known_is_said_and_the_rest_counts(place):
    path = _put(place / "config.toml", '[polcy]\nmode = "lab"\n[policy]\nmode = "read-only"\n')
    found = config.load()
    assert (found.mode, found.files) == (Mode.READ_ONLY, (str(path),))
    assert len(found.problems) == 1 and "[polcy]" in found.problems[0] and "policy, env, brains" in found.problems[0]


def test_the_current_folder_says_nothing(tmp_path, monkeypatch):
    here = tmp_path / "here"
    (here / "config").mkdir(parents=True)
    for name in ("config.toml", "config/config.toml", ".opsagent.toml"):
        _put(here / name, CONFIG)
    monkeypatch.chdir(here)
    assert config.load() == config.Settings()


def test_the_strictest_mode_of_several_files_counts(place, tmp_path):
    _put(place / "config.toml", '[policy]\nmode = "read-only"\npeers = ["a"]')
    more = _put(tmp_path / "more.toml", '[policy]\nmode = "lab"\npeers = ["b"]')
    found = config.load(str(more))
    assert (found.mode, found.peers) == (Mode.READ_ONLY, ("a", "b"))


def test_two_places_count_where_nothing_moves_them(monkeypatch, tmp_path):
    monkeypatch.delenv(location.HOME_VARIABLE)
    monkeypatch.setattr(location, "home_of_user", lambda: str(tmp_path))
    assert config.folders() == ["/etc/opsagent", str(tmp_path / ".config/opsagent")]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[policy\n", "not TOML"),
        (b"\xff", "not TOML"),
        ('[policy]\nmode = "labs"', "mode must be one of"),
        ('[policy]\npeer = ["x"]', "no setting 'peer'"),
        ('[policy]\npeers = "x"', "peers must be a list"),
        ('[policy]\npeers = ["a b"]', "peers must be a list"),
        ("policy = 1", "must be a table"),
        ('[env]\npass = ["*"]', "no variable's name"),
        ('[env]\npass = ["A-B"]', "no variable's name"),
        ("#" * 300_000, "more than"),
    ],
)
def test_a_file_with_a_mistake_is_left_out_whole_and_named(place, capsys, text, complaint):
    _put(place / "config.toml", text)
    found = config.load()
    assert found.replace(problems=(), keeping=None, fault="") == config.Settings()
    assert len(found.problems) == 1 and complaint in found.problems[0] and "config.toml" in found.problems[0]
    surroundings.policy()
    assert complaint in capsys.readouterr().err


@pytest.fixture
def unnamed(monkeypatch):
    """What `--config` named in this process is forgotten at the test's end."""
    monkeypatch.setattr(config, "_named", "")


def test_a_file_that_was_named_counts_after_the_others_in_this_process(place, tmp_path, unnamed):
    _put(place / "config.toml", '[policy]\nmode = "read-only"\npeers = ["a"]')
    config.name_file(str(_put(tmp_path / "more.toml", '[policy]\nmode = "lab"\npeers = ["b"]')))
    assert (config.load().mode, config.load().peers) == (Mode.READ_ONLY, ("a", "b"))
    assert surroundings.policy().peers == frozenset(("a", "b"))


def test_a_file_that_was_named_has_to_be_there_and_ours(tmp_path, unnamed):
    with pytest.raises(config.BadConfig, match="No such file"):
        config.name_file(str(tmp_path / "none.toml"))
    _put(tmp_path / "more.toml", "").chmod(0o666)
    with pytest.raises(config.BadConfig, match="written by others"):
        config.name_file(str(tmp_path / "more.toml"))


def test_what_others_could_have_written_is_left_out(place, tmp_path):
    file = _put(place / "config.toml", CONFIG)
    file.chmod(0o666)
    assert "written by others" in config.load().problems[0]
    file.chmod(0o600)
    place.chmod(0o777)
    assert "its folder can be written" in config.load().problems[0]
    place.chmod(0o700)
    file.rename(tmp_path / "elsewhere.toml")
    file.symlink_to(tmp_path / "elsewhere.toml")
    assert "it is a link" in config.load().problems[0]
    file.unlink()
    os.mkfifo(file)
    assert "no regular file" in config.load().problems[0]


def _removed(place, tmp_path):
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "gone")


def _a_file(place, tmp_path):
    place.rename(tmp_path / "elsewhere")
    place.write_text("")


def _linked_rules(place, tmp_path):
    (place / "rules").rmdir()
    (place / "rules").symlink_to("gone")


UNUSABLE = {
    "a mistake in another table": lambda place, _: _put(place / "config.toml", CONFIG + "\n[log]\nkeep = 'x'\n"),
    "no TOML": lambda place, _: _put(place / "config.toml", CONFIG + "\n[["),
    "a mode that nobody knows": lambda place, _: _put(place / "config.toml", '[policy]\nmode = "read-onyl"'),
    "others can write it": lambda place, _: _put(place / "config.toml", CONFIG).chmod(0o666),
    "a link that leads nowhere": lambda place, _: (place / "config.toml").symlink_to("gone"),
    "a folder in its place": lambda place, _: (place / "config.toml").mkdir(),
    "its folder is a link that leads nowhere": _removed,
    "its folder is a file": _a_file,
    "rules that are no TOML": lambda place, _: _put(place / "rules" / "a.toml", "[["),
    "rules whose example does not hold": lambda place, _: _put(
        place / "rules" / "a.toml", GOOD.replace(b"systemctl restart nginx", b"systemctl restart payments2")
    ),
    "rules that others can write": lambda place, _: _put(place / "rules" / "a.toml", GOOD).chmod(0o666),
    "a link in the rules' place": _linked_rules,
    "a link among the rules": lambda place, _: (place / "rules" / "b.toml").symlink_to("gone"),
    "more rules than are read": lambda place, _: [_put(place / "rules" / f"{n}.toml", "") for n in range(65)],
}


@pytest.mark.guarantee("G-CONFIG")
@pytest.mark.parametrize("why", UNUSABLE)
def test_what_is_there_and_cannot_be_used_leaves_reads_only(place, tmp_path, capsys, why):
    """It may have said anything: a stricter mode, a signer, a raised level."""
    UNUSABLE[why](place, tmp_path)
    policy = surroundings.policy()
    assert capsys.readouterr().err.count("only reads run until it can be used") >= 1
    for command in ("touch a1", "systemctl restart nginx", "apt-get install -y x", "rm -rf /srv/x"):
        for actor in (Actor.PERSON, Actor.AGENT):
            decision = core.check(command, actor=actor, policy=policy).decision
            assert (decision.verdict, decision.code, decision.forceable) == (Verdict.REFUSE, "config", False)
    assert core.check("cat /etc/hostname", policy=policy).level == Level.R0
    assert core.check("cat /etc/hostname", policy=policy).decision.verdict != Verdict.REFUSE


def test_what_is_not_there_is_no_fault(place):
    (place / "rules").rmdir()
    assert surroundings.policy().fault == ""
    place.rmdir()
    assert surroundings.policy().fault == ""


def test_a_linked_configuration_folder_is_left_out(place, tmp_path):
    _put(place / "config.toml", CONFIG)
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    found = config.load()
    assert found.mode == Mode.GUARDED and "it is a link" in found.problems[0]


def test_a_trusted_folder_must_be_closed_to_others(place, tmp_path):
    closed, opened = tmp_path / "closed", tmp_path / "opened"
    closed.mkdir(mode=0o755)
    opened.mkdir()
    opened.chmod(0o777)
    _put(place / "config.toml", f'[policy]\ntrusted_bin = ["{closed}/", "{opened}", "bin", "/nosuch"]')
    found = config.load()
    assert found.trusted_bin == (str(closed),)
    assert len(found.problems) == 3


def test_a_named_file_that_cannot_be_used_is_an_error(tmp_path):
    with pytest.raises(config.BadConfig):
        config.load(str(tmp_path / "none.toml"))


def test_rules_count_and_lower_only_with_trust(place, monkeypatch, capsys):
    file = _put(place / "rules" / "mine.toml", GOOD)
    found = config.load()
    assert [rule.id for rule in found.rules] == ["site.payments"]
    assert "opsx rules trust" in found.problems[0]
    monkeypatch.setattr(surroundings, "actor", lambda: Actor.PERSON)
    monkeypatch.setattr("cli.ask.consented", lambda question: False)
    assert _rules("trust", str(file)) == 3
    assert len(config.load().rules) == 1
    monkeypatch.setattr("cli.ask.consented", lambda question: True)
    assert _rules("trust", str(file)) == 0
    shown = capsys.readouterr().out
    assert "deployctl status *" in shown and "sha256" in shown
    found = config.load()
    assert [rule.lowers for rule in found.rules] == [False, True] and found.problems == ()
    _put(file, GOOD + b"# changed\n")
    assert [rule.lowers for rule in config.load().rules] == [False]


def test_trust_is_on_record_before_it_counts(place, monkeypatch):
    from acting.world import open_store
    from guard.redact import Redactor

    file = _put(place / "rules" / "mine.toml", GOOD)
    monkeypatch.setattr(surroundings, "actor", lambda: Actor.PERSON)
    monkeypatch.setattr("cli.ask.consented", lambda question: True)
    _rules("trust", str(file))
    entry = next(entry for entry in open_store(Redactor()).entries() if entry["kind"] == "rules_trusted")
    assert entry["file"] == str(file) and len(str(entry["digest"])) == 64 and entry["actor"] == "person"
    assert entry["rules"] == ["site.deploy-status"]


def test_nobody_but_a_person_trusts(place, monkeypatch):
    file = _put(place / "rules" / "mine.toml", GOOD)
    monkeypatch.setattr(surroundings, "actor", lambda: Actor.AGENT)
    with pytest.raises(NotPermitted):
        _rules("trust", str(file))
    assert config.trusted_digests() == frozenset()


def test_only_files_where_rules_are_read_can_be_trusted(place, tmp_path, monkeypatch):
    file = _put(tmp_path / "mine.toml", GOOD)
    monkeypatch.setattr(surroundings, "actor", lambda: Actor.PERSON)
    with pytest.raises(UsageError, match="not in a folder"):
        _rules("trust", str(file))


def test_a_rules_file_whose_example_does_not_hold_is_left_out_and_the_rest_stays(place):
    _put(place / "rules" / "bad.toml", GOOD.replace(b"systemctl restart nginx", b"systemctl restart payments2"))
    _put(place / "rules" / "good.toml", GOOD.replace(b"site.", b"other."))
    found = config.load()
    assert [rule.id for rule in found.rules] == ["other.payments"]
    assert any("bad.toml" in problem and "must not" in problem for problem in found.problems)


def test_two_files_with_the_same_rule_do_not_both_count(place):
    _put(place / "rules" / "a.toml", GOOD)
    _put(place / "rules" / "b.toml", GOOD)
    found = config.load()
    assert len(found.rules) == 1 and any("another file has a rule" in problem for problem in found.problems)


def test_the_verbs_say_what_counts_and_what_does_not_hold(place, capsys):
    file = _put(place / "rules" / "mine.toml", GOOD)
    assert _rules("list") == 0 and "raises to R3" in capsys.readouterr().out
    assert _rules("list", "--json") == 0 and '"site.payments"' in capsys.readouterr().out
    assert _rules("test") == 0 and "9 examples hold" in capsys.readouterr().out
    assert _rules("lint") == 0 and "nothing to say" in capsys.readouterr().out
    _put(file, GOOD.replace(b"systemctl restart nginx", b"systemctl restart payments2"))
    assert _rules("test") == 1 and "must not" in capsys.readouterr().out
    _put(file, b"x = 1")
    assert _rules("test", str(file)) == 1 and "unknown table" in capsys.readouterr().out
    assert _rules("lint", str(file)) == 1
    with pytest.raises(UsageError):
        _rules("wipe")
