"""`opsagent install`: what it shows, writes and takes out, for each host and scope."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib

import pytest

from cli import opsagent
from cli.hooks import hosts, mcp_entry
from cli.install import doctor, entries, jsonc, switches
from tests.hosts import versions

HOSTS = ("claude-code", "codex", "gemini")
JSON_BEFORE = '{\n    // mine\n    "theme": "dark", // dark\n    "permissions": {"allow": ["Bash(git status)"]}\n}'
TOML_BEFORE = '# mine\nmodel = "x" # good\n\n[mcp_servers.other]\ncommand = "y"'
BEFORE = {
    "claude-code": {".claude.json": '{"numStartups": 3, "mcpServers": {}}', ".claude/settings.json": JSON_BEFORE},
    "codex": {".codex/config.toml": TOML_BEFORE},
    "gemini": {".gemini/settings.json": JSON_BEFORE},
}


class Home:
    """A home with a project in it, and what `opsagent install` does there."""

    def __init__(self, folder, capsys):
        self.path, self.capsys = folder / "home", capsys
        self.project = self.path / "work"
        self.project.mkdir(parents=True)

    def fill(self, files):
        for name, text in files.items():
            place = self.path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(text.encode())
        return self.files()

    def files(self):
        return {str(p.relative_to(self.path)): p.read_bytes() for p in self.path.rglob("*") if p.is_file()}

    def install(self, *words):
        code = opsagent.main(["install", *words])
        out, err = self.capsys.readouterr()
        return code, out, err

    def place(self):
        environ = dict(os.environ)
        return entries.Place("/opt/opsagent", "/opt/opsx", str(self.path), str(self.project), environ)


@pytest.fixture
def home(tmp_path, monkeypatch, capsys):
    home = Home(tmp_path, capsys)
    monkeypatch.setenv("HOME", str(home.path))
    monkeypatch.chdir(home.project)
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("cli.actor.is_below_an_agent", lambda: False)
    return home


def parsed(home, name):
    text = (home.path / name).read_text()
    return tomllib.loads(text) if name.endswith(".toml") else jsonc.value_of(text)


@pytest.mark.parametrize("host", HOSTS)
def test_without_write_nothing_is_written(home, host):
    before = home.fill(BEFORE[host])
    code, out, err = home.install(host, "--hook")
    assert code == 0 and home.files() == before
    assert "+++ " in out and "opsagent" in out and "nothing was changed" in err


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.guarantee("G-INSTALL-TAKEN-BACK")
def test_removing_leaves_every_file_byte_identical(home, host, scope):
    before = home.fill(BEFORE[host])
    assert home.install(host, "--hook", "--scope", scope, "--write")[0] == 0
    assert home.files() != before
    assert home.install(host, "--scope", scope, "--remove")[0] == 0
    assert home.files() == before


@pytest.mark.parametrize("host", HOSTS)
def test_files_that_were_not_there_are_gone_again(home, host):
    home.install(host, "--hook", "--write")
    assert home.files()
    home.install(host, "--remove")
    assert home.files() == {}


@pytest.mark.parametrize("host", HOSTS)
def test_what_others_changed_meanwhile_stays(home, host):
    home.fill(BEFORE[host])
    home.install(host, "--hook", "--write")
    changed = {}
    for name in BEFORE[host]:
        path = home.path / name
        if name.endswith(".toml"):
            path.write_text(path.read_text() + '\n[projects."/x"]\ntrust_level = "trusted"\n')
            changed[name] = {**tomllib.loads(TOML_BEFORE), "projects": {"/x": {"trust_level": "trusted"}}}
        else:
            path.write_text(jsonc.with_member(path.read_text(), ("new",), [1]))
            changed[name] = {**jsonc.value_of(BEFORE[host][name]), "new": [1]}
    assert home.install(host, "--remove")[0] == 0
    assert {name: parsed(home, name) for name in changed} == changed
    assert not any(b"opsx" in text or b"opsagent" in text for text in home.files().values())


@pytest.mark.parametrize("host", HOSTS)
def test_installing_again_changes_options_and_nothing_else(home, host):
    before = home.fill(BEFORE[host])
    home.install(host, "--hook", "--write")
    whole = home.files()
    code, out, _ = home.install(host, "--hook", "--write")
    assert code == 0 and "in place already" in out and home.files() == whole
    home.install(host, "--write")
    assert not any(b"opsx" in text for text in home.files().values())
    home.install(host, "--hook", "--write")
    assert home.files() == whole
    home.install(host, "--remove")
    assert home.files() == before


@pytest.mark.parametrize("host", HOSTS)
def test_what_was_there_is_kept_for_us_alone_until_it_is_back(home, host, tmp_path):
    home.fill(BEFORE[host])
    home.install(host, "--write")
    kept = list((tmp_path / "state" / "host-settings").iterdir())
    texts = [json.loads(path.read_text())["text"] for path in kept]
    assert set(BEFORE[host].values()) <= set(texts)
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}
    home.install(host, "--remove")
    assert list((tmp_path / "state" / "host-settings").iterdir()) == []


@pytest.mark.guarantee("G-INSTALL-ASKS")
def test_no_host_may_call_what_changes_things_without_a_question(home):
    for host in HOSTS:
        home.install(host, "--hook", "--write")
    rules = parsed(home, ".claude/settings.json")["permissions"]
    assert set(rules["ask"]) == {f"mcp__opsagent__{tool}" for tool in entries.ASKED}
    assert set(rules["allow"]) == {f"mcp__opsagent__{tool}" for tool in entries.READ_ONLY}
    server = parsed(home, ".codex/config.toml")["mcp_servers"]["opsagent"]
    assert {name: tool["approval_mode"] for name, tool in server["tools"].items()} == dict.fromkeys(
        entries.ASKED, "prompt"
    )
    assert "default_tools_approval_mode" not in server and server["required"] is True
    allow, ask = parsed(home, ".gemini/policies/opsagent.toml")["rule"]
    assert (allow["decision"], ask["decision"]) == ("allow", "ask_user") and ask["priority"] > allow["priority"]
    assert set(ask["toolName"]) == set(entries.ASKED) and set(allow["toolName"]) == set(entries.READ_ONLY)
    assert "trust" not in parsed(home, ".gemini/settings.json")["mcpServers"]["opsagent"]
    for host in HOSTS:
        assert list(switches.warnings(hosts.HOSTS[host], home.place())) == []


def test_the_tools_are_those_of_the_server_with_their_hints(tmp_path):
    from tests.mcp.talk import Peer

    with Peer(tmp_path / "peer", options=("edits",)) as peer:
        listed = peer.ask("tools/list")["result"]["tools"]
    by_hint = {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in listed}
    assert {name for name, reads in by_hint.items() if reads} == set(entries.READ_ONLY)
    assert {name for name, reads in by_hint.items() if not reads} == set(entries.ASKED)


@pytest.mark.parametrize("host", HOSTS)
def test_the_hook_finds_the_server_that_was_put_in(home, host):
    home.fill(BEFORE[host])
    home.install(host, "--write")
    name = mcp_entry.ops_exec_name(
        hosts.HOSTS[host], home=str(home.path), project=str(home.project), environ=os.environ
    )
    assert re.fullmatch("mcp_+opsagent_+ops_exec", name)


def test_a_link_is_not_written_through(home, tmp_path):
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text("{}")
    (home.path / ".claude").mkdir()
    (home.path / ".claude" / "settings.json").symlink_to(elsewhere)
    code, _, err = home.install("claude-code", "--write")
    assert code == 1 and "link" in err and elsewhere.read_text() == "{}"
    (home.path / ".gemini").symlink_to(tmp_path)
    code, _, err = home.install("gemini", "--write")
    assert code == 1 and not (tmp_path / "settings.json").exists()


def test_the_mode_of_a_file_stays_and_a_new_one_is_for_its_owner(home):
    home.fill(BEFORE["claude-code"])
    (home.path / ".claude" / "settings.json").chmod(0o640)
    (home.path / ".claude.json").unlink()
    home.install("claude-code", "--write")
    assert stat.S_IMODE((home.path / ".claude" / "settings.json").stat().st_mode) == 0o640
    assert stat.S_IMODE((home.path / ".claude.json").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("host", "name", "text"),
    [
        ("claude-code", ".claude.json", '{"a": 1,}'),
        ("claude-code", ".claude.json", '{"mcpServers": {"opsagent": {"command": "/bin/evil"}}}'),
        ("gemini", ".gemini/settings.json", '{"hooks": {"BeforeTool": {}}}'),
        ("codex", ".codex/config.toml", '[mcp_servers.opsagent]\ncommand = "mine"\n'),
        ("codex", ".codex/config.toml", "hooks = {}\n"),
        ("codex", ".codex/config.toml", "model = \n"),
        ("gemini", ".gemini/policies/opsagent.toml", "# somebody else's\n"),
    ],
)
def test_what_cannot_be_changed_safely_is_left_and_named(home, host, name, text):
    home.fill({name: text})
    code, _, err = home.install(host, "--hook", "--write")
    assert code == 1 and name in err and "not changed" in err
    assert (home.path / name).read_text() == text


def test_a_table_of_somebody_else_between_the_marks_is_not_lost(home):
    home.install("codex", "--write")
    path = home.path / ".codex" / "config.toml"
    path.write_text(
        path.read_text().replace("[mcp_servers.opsagent.tools.ops_exec]", "[mine]\n\n\\g".replace("\\g", "[x]"))
    )
    before = path.read_text()
    code, _, err = home.install("codex", "--remove")
    assert code == 1 and "[mine]" in err and path.read_text() == before


def test_an_agent_may_look_but_not_write(home, monkeypatch):
    monkeypatch.setattr("cli.actor.is_below_an_agent", lambda: True)
    assert home.install("claude-code")[0] == 0
    for option in ("--write", "--remove"):
        code, _, err = home.install("claude-code", option)
        assert code == 4 and "a person does that" in err
    assert home.files() == {}


@pytest.mark.parametrize(
    "words",
    [(), ("vim",), ("claude-code", "codex"), ("claude-code", "--scope", "all"), ("codex", "--write", "--remove"),
     ("doctor",), ("doctor", "codex", "--write")],
)  # fmt: skip
def test_what_is_not_understood_is_a_usage_error(home, words):
    assert home.install(*words)[0] == 2 and home.files() == {}


def test_moved_folders_of_the_hosts_are_found(home, monkeypatch, tmp_path):
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    home.install("claude-code", "--write")
    home.install("codex", "--write")
    assert sorted(path.name for path in (tmp_path / "CLAUDE_CONFIG_DIR").iterdir()) == [".claude.json", "settings.json"]
    assert (tmp_path / "CODEX_HOME" / "config.toml").exists() and home.files() == {}


WEAK = [
    ("claude-code", ".claude/settings.json", '{"disableAllHooks": true}', "switches the hook off"),
    ("claude-code", "work/.claude/settings.local.json", '{"permissions": {"allow": ["mcp__opsagent"]}}', "every tool"),
    ("claude-code", ".claude/settings.json", '{"permissions": {"allow": ["mcp__opsagent__ops_exec"]}}', "changes"),
    ("claude-code", ".claude/settings.json", '{"permissions": {"defaultMode": "bypassPermissions"}}', "asks nobody"),
    ("claude-code", ".claude/settings.json", '{"disabledMcpjsonServers": ["opsagent"]}', "switches the server off"),
    ("claude-code", ".claude.json", '{"mcpServers": {"opsagent": {"command": "opsagent-mcp"}}}', "alwaysLoad"),
    ("codex", ".codex/config.toml", "features.hooks = false", "switches the hook off"),
    ("codex", ".codex/config.toml", 'sandbox_mode = "danger-full-access"', "nothing but the hook"),
    (
        "codex", ".codex/config.toml",
        '[mcp_servers.opsagent]\ncommand = "opsagent-mcp"\ndefault_tools_approval_mode = "approve"\nrequired = true\n',
        "ops_exec is called without a question",
    ),
    ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}}', "switches the hook off"),
    ("gemini", ".gemini/settings.json", '{"hooksConfig": {"disabled": ["opsagent"]}}', "names the hook"),
    ("gemini", ".gemini/settings.json", '{"mcp": {"excluded": ["opsagent"]}}', "switches the server off"),
    ("gemini", ".gemini/settings.json", '{"mcp": {"allowed": ["x"]}}', "so it is off"),
    (
        "gemini", ".gemini/settings.json", '{"mcpServers": {"o": {"command": "opsagent-mcp", "trust": true}}}',
        "every tool is called without a question",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("host", "name", "text", "said"), WEAK)
def test_a_setting_that_weakens_is_named(home, host, name, text, said):
    home.fill({name: text})
    assert any(said in sentence for sentence in switches.warnings(hosts.HOSTS[host], home.place()))


def test_a_settings_file_that_cannot_be_read_is_named(home):
    home.fill({".claude/settings.json": "{", ".codex/config.toml": "x", ".gemini/settings.json": "[1"})
    for host in HOSTS:
        assert len(list(switches.unreadable(hosts.HOSTS[host], home.place()))) == 1


def test_the_versions_of_the_doctor_are_those_that_were_run():
    pins = {"claude-code": versions.CLAUDE_CODE, "codex": versions.CODEX, "gemini": versions.GEMINI}
    assert {host: pin.rpartition("@")[2] for host, pin in pins.items()} == doctor.SEEN
