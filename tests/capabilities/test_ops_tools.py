"""The guard's tools: what they answer is what the command line answers, and nothing runs that may not."""

from __future__ import annotations

import pytest

from capabilities import ops
from capabilities.jobs import Jobs
from capabilities.probe import UnknownProbe, probe_tool
from capabilities.run import bash_tool
from capabilities.shapes import check_object
from execution import assess
from guard.errors import BadCommand, CwdGone, UnknownTarget
from guard.types import Captured, Mode, Policy
from tests.capabilities.world import asked, call_in, guard_in
from tests.fakes import FakeResult


def tools(tmp_path, guard=None, jobs=None, **more):
    guard = guard or guard_in(tmp_path)
    return {tool.name: tool for tool in ops.tools(guard, call_in(tmp_path, **more), jobs or Jobs())}


def test_check_gives_the_object_of_the_command_line(tmp_path):
    guard = guard_in(tmp_path)
    got = asked(tools(tmp_path, guard)["ops_check"], command="rm -rf x; ls")
    assert got == check_object(assess(call_in(tmp_path).request("rm -rf x; ls"), guard))
    assert (got["level"], got["decision"]) == ("R3", "refuse")
    assert guard.target.asked == [] and list(guard.ledger.entries()) == []


@pytest.mark.parametrize("name", ["ops_check", "ops_exec"])
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"command": "ls", "target": "web1"}, UnknownTarget),
        ({"command": "a\0b"}, BadCommand),
        ({"command": " "}, BadCommand),
    ],
)
def test_a_malformed_request_is_refused_before_anything_is_looked_at(tmp_path, name, arguments, error):
    guard = guard_in(tmp_path)
    with pytest.raises(error):
        asked(tools(tmp_path, guard)[name], **arguments)
    assert guard.target.asked == [] and list(guard.ledger.entries()) == []


def test_a_folder_that_is_gone_runs_nothing(tmp_path):
    guard = guard_in(tmp_path)
    place = tmp_path / "gone"
    with pytest.raises(CwdGone):
        asked(tools(place, guard)["ops_exec"], command="ls")
    assert guard.target.asked == []


def test_exec_runs_a_read_and_tells_its_id_before_it_runs(tmp_path):
    begun, seen = [], []
    guard = guard_in(tmp_path)
    tool = tools(tmp_path, guard, on_begin=begun.append, on_output=lambda *piece: seen.append(piece))["ops_exec"]
    got = asked(tool, command="echo hello")
    assert (got["status"], got["stdout"], got["exit_code"]) == ("succeeded", "hello\n", 0)
    assert begun == [got["execution"]]
    assert seen == [("stdout", b"hello\n")]


@pytest.mark.parametrize("command", ["touch x", "rm -rf x", "systemctl restart nginx", "echo x > f"])
def test_a_change_without_a_stamp_runs_nothing_and_is_kept_once(tmp_path, command):
    guard = guard_in(tmp_path)
    made = tools(tmp_path, guard)
    first, second = asked(made["ops_exec"], command=command), asked(made["ops_exec"], command=command)
    assert first["status"] in ("needs_stamp", "refused") and first["execution"] is None
    assert first["request"] == second["request"] and first["next"].startswith(f"opsx approve {first['request']}")
    assert guard.target.asked == []
    listed = asked(made["ops_list"])["requests"]
    assert [(kept["id"], kept["command"]) for kept in listed] == [(first["request"], command)]
    waiting = asked(made["ops_status"], id=first["request"])
    assert (waiting["status"], waiting["request"]["command"]) == ("waiting", command)


@pytest.mark.parametrize("policy", [Policy(), Policy(mode=Mode.LAB), Policy(mode=Mode.READ_ONLY)])
@pytest.mark.parametrize("command", ["touch x", "rm -rf x", "echo $(rm x)"])
def test_bash_runs_no_change_in_any_mode_keeps_no_request_and_names_the_tool_for_it(tmp_path, command, policy):
    guard = guard_in(tmp_path, policy=policy)
    got = asked(bash_tool(guard, call_in(tmp_path)), command=command)
    assert (got["status"], got["execution"], "ops_exec" in got["next"]) == ("refused", None, True)
    assert guard.target.asked == [] and list(guard.ledger.entries()) == []


def test_a_read_only_target_refuses_a_change_and_keeps_nothing(tmp_path):
    guard = guard_in(tmp_path, policy=Policy(mode=Mode.READ_ONLY))
    got = asked(tools(tmp_path, guard)["ops_exec"], command="touch x")
    assert (got["status"], got["forceable"], got["request"]) == ("refused", False, None)
    assert asked(tools(tmp_path, guard)["ops_list"])["requests"] == []


def test_a_waiting_request_is_listed_without_its_secret(tmp_path):
    guard = guard_in(tmp_path, secrets=["correct-horse-battery-staple-7421"])
    made = tools(tmp_path, guard)
    asked(
        made["ops_exec"],
        command="touch correct-horse-battery-staple-7421",
        why="it is correct-horse-battery-staple-7421",
    )
    for answer in (asked(made["ops_list"]), asked(made["ops_audit"])):
        assert "correct-horse" not in str(answer)


def test_status_pages_what_a_job_printed_and_then_tells_its_end(tmp_path):
    mine = Jobs(1)

    def work(job):
        job.began("e-1")
        job.transcript.feed("stdout", b"abc")
        return {"status": "succeeded", "exit_code": 0, "stdout": "abc"}

    job = mine.start("ops_exec", work)
    assert job.wait(60)
    mine.keep(job)
    got = asked(tools(tmp_path, jobs=mine)["ops_status"], id="e-1", offset=1)
    assert (got["status"], got["exit_code"], got["output"], got["next_offset"], got["more"]) == (
        "succeeded",
        0,
        "bc",
        3,
        False,
    )
    assert "stdout" not in got


def test_status_of_a_job_that_broke_says_so(tmp_path):
    mine = Jobs(1)
    job = mine.start("ops_exec", lambda job: 1 // 0)
    assert job.wait(60)
    mine.keep(job)
    got = asked(tools(tmp_path, jobs=mine)["ops_status"], id=job.id)
    assert (got["status"], got["error"]["code"]) == ("failed", "internal")


def test_status_of_what_another_client_ran_has_no_output(tmp_path):
    guard = guard_in(tmp_path)
    ran = asked(tools(tmp_path, guard)["ops_exec"], command="echo only-mine")
    got = asked(tools(tmp_path, guard)["ops_status"], id=ran["execution"])
    assert (got["status"], got["stdout_bytes"], "output" in got, "stdout" in got) == ("succeeded", 10, False, False)


@pytest.mark.parametrize("id", ["e-nothing", "a-nothing", "x"])
def test_status_of_nothing_is_an_error(tmp_path, id):
    with pytest.raises(ops.NoSuchRecord):
        asked(tools(tmp_path)["ops_status"], id=id)


def test_executions_come_newest_first_and_by_status(tmp_path):
    guard = guard_in(tmp_path)
    made = tools(tmp_path, guard)
    ids = [asked(made["ops_exec"], command=f"echo {number}")["execution"] for number in range(3)]
    failed = asked(made["ops_exec"], command="ls /no/such/place")["execution"]
    listed = asked(made["ops_executions"])["executions"]
    assert [run["id"] for run in listed] == [failed, *reversed(ids)]
    assert [run["id"] for run in asked(made["ops_executions"], status="failed")["executions"]] == [failed]
    assert [run["id"] for run in asked(made["ops_executions"], limit=1)["executions"]] == [failed]


def test_audit_gives_the_end_of_the_log(tmp_path):
    guard = guard_in(tmp_path)
    made = tools(tmp_path, guard)
    asked(made["ops_exec"], command="echo x")
    asked(made["ops_exec"], command="touch x")
    assert [entry["kind"] for entry in asked(made["ops_audit"], tail=2)["entries"]] == ["ended", "requested"]


def test_probe_tells_ok_missing_broken_and_a_silent_program_apart(tmp_path, monkeypatch):
    places = {"bash": "/bin/bash", "git": "/usr/bin/git", "ss": "/usr/bin/ss", "ip": "/usr/sbin/ip"}
    monkeypatch.setattr("capabilities.probe.shutil.which", lambda name, path: places.get(name))
    monkeypatch.setattr("capabilities.probe.AT_ONCE", 1)
    guard = guard_in(
        tmp_path,
        FakeResult(stdout=Captured("GNU bash, version 5\nmore\n", 24)),
        FakeResult(exit_code=127, stderr=Captured("libgit.so: not found\n", 20)),
        FakeResult(exit_code=None, timed_out=True),
    )
    found = {}
    for name in ("bash", "git", "ss", "docker"):
        found[name] = asked(probe_tool(guard, call_in(tmp_path)), what=name)["items"][0]
    assert {name: item["status"] for name, item in found.items()} == {
        "bash": "ok", "git": "broken", "ss": "timeout", "docker": "missing",
    }  # fmt: skip
    assert found["bash"]["detail"] == "GNU bash, version 5"
    assert "127" in found["git"]["hint"] and found["git"]["detail"] == "libgit.so: not found"
    assert all(item["hint"] for name, item in found.items() if name != "bash")
    assert all(item["execution"] for name, item in found.items() if name != "docker")


def test_probe_of_all_has_machine_guard_and_programs(tmp_path, monkeypatch):
    monkeypatch.setattr("capabilities.probe.shutil.which", lambda name, path: None)
    items = {item["name"]: item for item in asked(probe_tool(guard_in(tmp_path), call_in(tmp_path)))["items"]}
    assert {"system", "kernel", "processors", "sandbox", "records", "bash", "kubectl"} <= set(items)
    assert items["records"]["status"] == "ok" and items["kubectl"]["status"] == "missing"
    with pytest.raises(UnknownProbe):
        asked(probe_tool(guard_in(tmp_path), call_in(tmp_path)), what="nothing")
