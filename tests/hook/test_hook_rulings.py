"""What a host is told: reads through opsx, changes to a person, no for what cannot be undone."""

from __future__ import annotations

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.hooks.frame import frame_of
from cli.hooks.hosts import HOSTS, answer_object
from cli.hooks.ruling import _literal, rule
from guard.errors import UsageError
from guard.types import Enforcement, Policy
from tests.hook.calls import OPSX, ROOT, World

NOTHING_HOLDS = Enforcement()


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("command", ["ls", "cat *.py | grep -n 'a b'", "cd /etc && ls", "git log -3", "ls\npwd"])
def test_read_is_sent_through_opsx(world, host, command):
    answer = world.bash(command, host)
    assert answer.decision == "allow"
    assert answer.command == f"'{OPSX}' exec --passthrough -- {_literal(command)}"


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=60))
def test_rewritten_text_reaches_opsx_byte_for_byte(text):
    done = subprocess.run(["/bin/sh", "-c", f"printf %s {_literal(text)}"], capture_output=True, timeout=60)
    assert done.stdout == text.encode()


@pytest.mark.parametrize(
    "command, becomes",
    [
        ("cd", "builtin cd"),
        ("cd /tmp", "builtin cd /tmp"),
        ("cd 'a b'", "builtin cd 'a b'"),
        ("cd -", "builtin cd -"),
        ("cd ~/x", "builtin cd ~/x"),
        ("cd ~", "builtin cd ~"),
    ],
)
def test_cd_alone_passes_in_the_hosts_own_shell(world, command, becomes):
    assert (world.bash(command).decision, world.bash(command).command) == ("allow", becomes)


@pytest.mark.parametrize(
    "command", ["cd /tmp; ls", "cd $X", "cd '~/x'", "cd ~root", "cd a*", "cd /x &", "cd /x >/dev/null"]
)
def test_more_than_a_cd_does_not_run_unguarded(world, command):
    assert "exec --passthrough" in (world.bash(command).command or "")


def test_changes_are_the_hosts_question_and_say_that_no_snapshot_will_exist(world):
    answer = world.bash("systemctl restart nginx")
    assert answer.decision == "ask"
    assert "R1" in answer.reason and "no snapshot will exist" in answer.reason


def test_changes_name_ops_exec_where_the_mcp_server_is_installed(world):
    servers = {"mcpServers": {"my guard": {"command": "/opt/ops agent/opsagent", "args": ["mcp"]}}}
    (world.project / ".mcp.json").write_text(json.dumps(servers))
    answer = world.bash("systemctl restart nginx")
    assert answer.decision == "deny" and "mcp__my_guard__ops_exec" in answer.reason


@pytest.mark.parametrize(
    "host, file, text, name",
    [
        ("claude-code", ".claude.json", '{"mcpServers": {"g": {"command": "opsagent-mcp"}}}', "mcp__g__ops_exec"),
        ("codex", ".codex/config.toml", '[mcp_servers.g]\ncommand = "/a/opsagent-mcp"\n', "mcp__g__ops_exec"),
        ("gemini", ".gemini/settings.json", '{"mcpServers": {"g": {"command": "opsagent-mcp"}}}', "mcp_g_ops_exec"),
    ],
)
def test_server_is_found_in_the_hosts_own_settings(world, host, file, text, name):
    (world.home / file).parent.mkdir(exist_ok=True)
    (world.home / file).write_text(text)
    answer = world.bash("systemctl restart nginx", host)
    assert answer.decision == "deny" and name in answer.reason


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"g": {"command": "opsagent-mcp", "disabled": true}}}',
        '{"opsagent": 1',
        '["opsagent"]',
        "opsagent",
    ],
)
def test_settings_without_our_server_name_no_tool(world, text):
    (world.home / ".claude.json").write_text(text)
    assert world.bash("systemctl restart nginx").decision == "ask"


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("command", ["rm -rf build", "ls; mkfs.ext4 /dev/sda1", "git push --force"])
def test_what_cannot_be_undone_is_refused_everywhere(world, host, command):
    answer = world.bash(command, host)
    assert answer.decision == "deny" and "R3" in answer.reason and answer.command is None


def test_host_that_cannot_ask_gets_a_no_that_names_the_way(world):
    answer = world.bash("systemctl restart nginx", "codex")
    assert answer.decision == "deny" and "opsx exec" in answer.reason
    world.terminal = False
    assert world.bash("systemctl restart nginx", "gemini").decision == "deny"
    assert world.bash("systemctl restart nginx", "claude-code").decision == "ask"


@pytest.mark.parametrize("spelled", ["opsx exec -- rm x", f"'{OPSX}' exec -- rm x", "opsx exec --json 'rm x'"])
def test_own_exec_runs_as_it_is_because_it_asks_a_person_itself(world, spelled):
    answer = world.bash(spelled)
    assert answer.decision == "allow"
    assert answer.command.startswith(f"'{OPSX}' exec ") and "passthrough" not in answer.command


@pytest.mark.parametrize(
    "command", ["opsx approve a-1", "opsx exec --config x -- ls", f"'{OPSX}' approve a-1", "opsx thaw"]
)
def test_nobody_below_a_person_approves_through_the_hook(world, command):
    assert world.bash(command).decision == "deny"


@pytest.mark.parametrize(
    "command", ["opsx exec -- ls; rm -rf x", "opsx exec -- ls > x", "A=1 opsx exec -- rm x", "opsx exec -- $X"]
)
def test_only_a_lone_own_exec_is_left_alone(world, command):
    answer = world.bash(command, cwd="/")
    assert answer.decision != "allow" or "exec --passthrough -- " in answer.command


def test_where_nothing_is_enforced_a_read_that_needs_it_waits(tmp_path):
    world = World(tmp_path, NOTHING_HOLDS)
    assert world.bash("git log").decision == "ask"
    assert "exec --passthrough" in world.bash("uname -a").command


def test_shell_that_cannot_be_rewritten_runs_plain_readers_without_globs_only(world):
    other = {"description": "a tool of a later version"}
    assert world.call("Monitor", {"command": "uname -a", **other}).decision == "allow"
    for command in ("ls *", "git log", "rm x", "cat ~/.ssh/id_rsa"):
        assert world.call("Monitor", {"command": command, **other}).decision in ("ask", "deny")


def test_tools_of_other_servers_and_reads_of_files_are_the_hosts_business(world):
    for tool, given_ in (
        ("mcp__guard__ops_exec", {"command": "rm -rf /"}),
        ("Read", {"file_path": str(world.home / ".claude" / "settings.json")}),
        ("Grep", {"pattern": "x", "path": "/etc"}),
    ):
        assert world.call(tool, given_).decision == "pass"


@pytest.mark.parametrize(
    "command", ["echo hi > a", "mkdir b", "rm a", "cp a b", "sed -i s/a/b/ a", "git add . && git commit -m x"]
)
def test_project_writes_are_left_to_the_host_unless_the_setting_says_ask(world, command):
    assert world.bash(command).decision == "pass"
    world.configure('[hook]\nproject_writes = "ask"\n')
    assert world.bash(command).decision == "ask"
    world.configure('[hook]\nproject_writes = "defer"\n')
    assert world.bash(command).decision == "pass"


@pytest.mark.parametrize(
    "command",
    [
        "echo hi > ../a", "rm ../../x", "cp a /srv/x", "echo hi > a; systemctl reload nginx", "echo $X > $Y",
        "git -C /srv add .", "git $'-C' /srv add .", "git add . && touch ../x", "git --git-dir=/srv/.git commit -m x",
        "mv a ../b", "ln -s /etc/passwd ../x", "cd .. && rm x", "docker start x > a", "echo > .git/hooks/pre-commit",
    ],
)  # fmt: skip
def test_what_leaves_the_project_is_never_deferred(world, command):
    assert world.bash(command).decision == "ask"


def test_link_out_of_the_project_does_not_count_as_inside(world, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (world.project / "way-out").symlink_to(tmp_path / "elsewhere")
    assert world.bash("echo hi > way-out/x").decision == "ask"


@pytest.mark.parametrize("project", ["/", "/etc", "/usr/local", "/home", "HOME"])
def test_no_project_is_as_wide_as_a_system_or_a_home(world, project):
    folder = str(world.home) if project == "HOME" else project
    world.environ["CLAUDE_PROJECT_DIR"] = folder
    assert world.bash("touch x", cwd=folder).decision == "ask"


@pytest.mark.parametrize(
    "text", ["hook = 1", "[hook]\nproject_writes = true", "[hook", "[hook]\nproject_writes = 'no'"]
)
def test_setting_that_cannot_be_read_counts_as_ask_and_says_so(world, text):
    world.configure(text)
    answer = world.bash("touch x")
    assert answer.decision == "ask" and "counts as ask" in answer.reason


def test_setting_that_others_can_write_counts_as_ask(world):
    world.configure('[hook]\nproject_writes = "defer"\n').chmod(0o666)
    assert world.bash("touch x").decision == "ask"


WATCHED = [
    ".claude/settings.json", ".claude/settings.local.json", ".claude/../.claude/settings.json", ".CLAUDE/Settings.json",
    "~/.claude/settings.json", "~/.codex/hooks.json", "~/.gemini/settings.json", " ~/.claude.json ",
    "/etc/claude-code/x.json",
    "/opt/ops agent/cli/opsx.py", "STATE/log/1.jsonl", "STATE/config/config.toml", "link/settings.json",
]  # fmt: skip


@pytest.mark.parametrize("path", WATCHED)
@pytest.mark.parametrize(
    "host, tool, key",
    [
        ("claude-code", "Write", "file_path"),
        ("claude-code", "NotebookEdit", "notebook_path"),
        ("gemini", "replace", "file_path"),
    ],
)
def test_file_tools_do_not_write_what_guards_them(world, path, host, tool, key):
    (world.home / ".claude").mkdir()
    (world.project / "link").symlink_to(world.home / ".claude")
    answer = world.call(tool, {key: path.replace("STATE", str(world.state)), "content": "{}"}, host)
    assert answer.decision == "deny" and "hooks" in answer.reason


@pytest.mark.parametrize("mark", ["Add File", "Update File", "Delete File", "Move to"])
def test_patch_is_watched_for_every_file_in_it(world, mark):
    patch = f"*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** {mark}: .codex/config.toml\n*** End Patch"
    assert world.call("apply_patch", {"command": patch}, "codex").decision == "deny"
    harmless = patch.replace(".codex/config.toml", "b")
    assert world.call("apply_patch", {"command": harmless}, "codex").decision == "pass"


def test_file_tools_ask_for_critical_files_outside_the_project_only(world):
    assert world.call("Write", {"file_path": "/etc/sudoers", "content": ""}).decision == "ask"
    assert world.call("Write", {"file_path": str(world.home / ".bashrc"), "content": ""}).decision == "ask"
    assert world.call("Write", {"file_path": "notes.md", "content": ""}).decision == "pass"


@pytest.mark.parametrize(
    "command",
    [
        "echo {} > .claude/settings.json", "cp a ~/.claude/settings.json", "mv a .claude",
        "tee .gemini/settings.json < a",
        "python3 -c 'open(\".claude/settings.json\", \"w\")'", "ln -sf a link/settings.json",
    ],
)  # fmt: skip
def test_commands_do_not_write_what_guards_them(world, command):
    (world.home / ".claude").mkdir()
    (world.project / "link").symlink_to(world.home / ".claude")
    assert world.bash(command).decision == "deny"


def test_reading_the_hosts_settings_is_a_read(world):
    assert world.bash("cat .claude/settings.json").decision == "allow"


@pytest.mark.parametrize(
    "rule_, fits",
    [("Bash(ls *)", True), ("Bash(ls:*)", True), ("Bash", True), ("Bash(curl *)", False), ("Read(ls)", False)],
)
def test_persons_own_deny_rule_of_the_host_holds_for_a_read(world, rule_, fits):
    (world.home / ".claude").mkdir()
    (world.home / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"deny": [rule_]}}))
    assert world.bash("pwd; ls -l").decision == ("deny" if fits else "allow")
    (world.home / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"ask": [rule_]}}))
    assert world.bash("pwd; ls -l").decision == ("ask" if fits else "allow")


def test_secret_does_not_reach_the_hosts_question_and_nothing_hides_in_it(world):
    secret = "ghp_" + "a1B2" * 9
    answer = world.bash(f"rm '/srv/{secret}' '/srv/\u202egnp.x'", cwd="/")
    assert secret not in answer.reason and "\u202e" not in answer.reason and answer.decision in ("ask", "deny")


@pytest.mark.parametrize("command", ["a\0b", "", "x" * 70_000, "\ud800"])
def test_what_bash_cannot_be_given_is_denied(world, command):
    assert world.bash(command).decision == "deny"


def test_wrong_event_is_a_fault(world):
    from cli.hooks.frame import Frame

    with pytest.raises(UsageError, match="PreToolUse"):
        rule(Frame("PostToolUse", "Bash", {"command": "ls"}, "/"), HOSTS["claude-code"], world.place())


@pytest.mark.parametrize(
    "row", [json.loads(line) for line in (ROOT / "tests/hook/frames.jsonl").read_text().splitlines()]
)
def test_recorded_frames_get_the_answer_that_their_host_understands(world, row):
    host, case = HOSTS[row["host"]], row["case"]
    text = json.dumps(row["frame"]).replace("/home/dev/work", str(world.project))
    frame = frame_of(text.encode())
    told = answer_object(host, rule(frame, host, world.place()), frame.input)
    if case == "mcp":
        assert told is None
        return
    if host.name == "gemini":
        decision, why, changed = (
            told["decision"],
            told.get("reason"),
            told.get("hookSpecificOutput", {}).get("tool_input"),
        )
    else:
        inner = told["hookSpecificOutput"]
        assert inner["hookEventName"] == "PreToolUse"
        decision, why = inner["permissionDecision"], inner.get("permissionDecisionReason")
        changed = inner.get("updatedInput")
    if case == "read":
        assert decision == "allow" and changed["command"].endswith("exec --passthrough -- 'ls'")
        # Codex takes nothing but the command; the others lose what is not given back.
        kept = {"command"} if host.name == "codex" else set(frame.input)
        assert set(changed) == kept
    elif case == "outside":
        assert decision == ("deny" if host.name == "codex" else "ask") and why and changed is None
    else:
        assert decision == "deny" and why and changed is None


def test_codex_never_hears_ask_or_a_bare_allow(world):
    """It takes both for a failed hook, and runs the command."""
    for tool, given_ in (
        ("Bash", {"command": "rm ../x"}),
        ("Monitor", {"command": "uname"}),
        ("Bash", {"command": "echo hi > x"}),
        ("Write", {"file_path": "/etc/sudoers"}),
    ):
        told = answer_object(HOSTS["codex"], world.call(tool, given_, "codex"), given_)
        assert told is None or told["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_actor_is_the_hook(world, monkeypatch):
    import core

    seen = []
    real = core.check
    monkeypatch.setattr(core, "check", lambda *a, **k: seen.append(k["actor"]) or real(*a, **k))
    world.bash("ls")
    assert seen == ["hook"]


@pytest.mark.parametrize(
    ("tool", "given"), [("Bash", {"command": "touch x"}), ("Write", {"file_path": "notes.md", "content": ""})]
)
def test_what_stops_all_changes_holds_here_too(world, tool, given):
    place = world.place()
    frame = frame_of(
        json.dumps(
            {"hook_event_name": "PreToolUse", "cwd": str(world.project), "tool_name": tool, "tool_input": given}
        ).encode()
    )
    stopped = (Policy(frozen="an incident"), Policy(mode="read-only"), Policy(fault="config.toml: it is not TOML"))
    for place.policy in stopped:
        assert rule(frame, HOSTS["claude-code"], place).decision == "deny"
    for place.policy in (Policy(), Policy(mode="lab")):
        assert rule(frame, HOSTS["claude-code"], place).decision != "deny"
