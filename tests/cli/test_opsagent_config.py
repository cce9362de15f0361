"""`opsagent config`: every setting with its value and where it was said, and never a secret."""

from __future__ import annotations

import json

import pytest

from cli import opsagent

SECRET = "sk-" + "proj-4f8Kd02mZqL7xW1nVb9TcYh3RjE6uPgA"
TEXT = """\
[policy]
mode = "read-only"
peers = ["web1"]

[brains]
order = ["near", "anthropic"]

[brains.near]
kind = "openai"
base_url = "http://127.0.0.1:8000/v1"
model = "qwen3"
price_in = 0.5
key_env = "NEAR_KEY"

[log]
keep_days = 90
"""


@pytest.fixture
def file(tmp_path):
    folder = tmp_path / "state" / "config"
    folder.mkdir(parents=True)
    for made in (tmp_path / "state", folder):
        made.chmod(0o700)
    path = folder / "config.toml"
    path.write_text(TEXT)
    path.chmod(0o600)
    return path


def config(capsys, *arguments):
    code = opsagent.main(["config", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def rows(capsys):
    code, out, _ = config(capsys, "show", "--json")
    assert code == 0
    return {row["name"]: row for row in json.loads(out)["settings"]}


def test_every_setting_names_its_file_and_line(capsys, file):
    got = rows(capsys)
    for name, number in {
        "policy.mode": 2,
        "policy.peers": 3,
        "brains.order": 6,
        "brains.near.base_url": 10,
        "brains.near.price_in": 12,
        "log.keep_days": 16,
    }.items():
        assert got[name]["origin"] == [f"{file}:{number}"], name
    assert got["policy.mode"]["value"] == "read-only"
    assert got["hook.project_writes"]["value"] == "defer" and got["mcp.approval"]["value"] == "elicit"
    assert got["brains.order"]["value"] == ["near", "anthropic", "offline"]
    assert got["policy.contexts"] == {"name": "policy.contexts", "value": [], "origin": ["built in"]}
    assert got["brains.anthropic.base_url"]["origin"] == ["built in"]


def test_the_environment_is_an_origin_and_its_key_is_not_shown(capsys, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_MODEL", "m")
    got = rows(capsys)
    assert got["brains.openai.base_url"] == {
        "name": "brains.openai.base_url",
        "value": "http://127.0.0.1:1/v1",
        "origin": ["OPENAI_BASE_URL"],
    }
    assert got["brains.openai.model"]["origin"] == ["OPENAI_MODEL"]
    assert got["brains.order"] == {"name": "brains.order", "value": ["openai", "offline"], "origin": ["environment"]}
    assert SECRET not in json.dumps(got)
    assert "which is set" in got["brains.openai.(key)"]["value"]
    _, out, _ = config(capsys, "show", "--origin")
    assert 'brains.openai.model = "m"   # OPENAI_MODEL' in out.splitlines()
    assert SECRET not in out


def test_without_anything_the_built_in_settings_are_shown(capsys):
    got = rows(capsys)
    assert {tuple(row["origin"]) for row in got.values()} == {("built in",)}
    assert got["brains.order"]["value"] == ["offline"]


def test_names_of_variables_that_pass_are_no_secret(capsys, file):
    assert "env.pass = []\n" in config(capsys, "show")[1]
    file.write_text(TEXT + '\n[env]\npass = ["ANSIBLE_CONFIG"]\n')
    shown = config(capsys, "show", "--origin")[1]
    assert f'env.pass = ["ANSIBLE_CONFIG"]   # {file}:' in shown


def test_path_names_the_users_own_file(capsys, tmp_path, file):
    assert config(capsys, "path") == (0, f"{file}\n", "")
    code, out, _ = config(capsys, "path", "--json")
    assert code == 0 and json.loads(out)["files"] == [{"path": str(file), "there": True}]


def test_check_is_content_with_a_good_file(capsys, file):
    assert config(capsys, "check") == (0, f"ok  {file}\n", "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[brains.near]\nkey = "x"\n', "a key does not belong in a configuration file"),
        ('[brains.near]\nkind = "openai"\nmodle = "x"\n', "modle"),
        ('[brains]\norder = ["nobody"]\n', "there is no brain 'nobody'"),
        ('[polcy]\nmode = "lab"\n', "[polcy]"),
        ("[brains\n", "not TOML"),
        (f'[brains.near]\nkind = "openai"\nmodel = "{SECRET}"\n', "a key does not belong"),
    ],
)
def test_check_says_what_is_wrong_and_ends_with_two(capsys, file, text, said):
    file.write_text(text)
    code, out, err = config(capsys, "check", "--json")
    got = json.loads(out)
    assert code == 2 and got["ok"] is False and err == ""
    assert len(got["problems"]) == 1
    assert said in got["problems"][0] and str(file) in got["problems"][0]
    assert SECRET not in out
    code, out, err = config(capsys, "check")
    assert code == 2 and said in err and SECRET not in err


@pytest.mark.parametrize("text", ['[brains.near]\nkey = "x"\n', '[policy]\nmode = "lax"\n'])
def test_check_calls_nothing_ok_where_something_is_wrong(capsys, file, text):
    file.write_text(text)
    code, out, err = config(capsys, "check")
    assert code == 2 and err and "ok" not in out.split()


def test_a_brain_that_cannot_be_read_leaves_the_rest_of_show(capsys, file):
    file.write_text('[policy]\nmode = "lab"\n[brains.near]\nkey = "x"\n')
    code, out, err = config(capsys, "show")
    assert code == 0 and 'policy.mode = "lab"' in out and "a key does not belong" in err


@pytest.mark.parametrize("words", [[], ["shw"], ["show", "x"]])
def test_other_words_are_a_usage_error(capsys, words):
    code, _, err = config(capsys, *words)
    assert code == 2 and "show, path or check" in err
