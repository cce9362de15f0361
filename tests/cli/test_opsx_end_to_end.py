"""`opsx` as a person and a script see it: real processes, a real sandbox, a state folder of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from guard.clock import RandomIds, SystemClock
from guard.hands.liveness import ProcLiveness
from guard.ledger.store import open_ledger
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
CALL = (
    f"import sys; sys.path[:0] = [{str(ROOT)!r}]; sys.argv = ['opsx', *sys.argv[1:]]\n"
    "from cli.opsx import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture
def opsx(tmp_path):
    environment = {
        "PATH": os.defpath,
        "HOME": str(tmp_path / "home"),
        "OPSAGENT_HOME": str(tmp_path / "state"),
        "LC_ALL": "C.UTF-8",
    }

    def call(*arguments, stdin=b"", cwd=tmp_path, **more):
        return subprocess.run(
            [sys.executable, "-X", "utf8", "-c", CALL, *arguments],
            input=stdin,
            capture_output=True,
            cwd=cwd,
            env={**environment, **more},
            timeout=60,
        )

    call.environment = environment
    return call


def as_json(done):
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("command", "level", "code"),
    [
        ("ls; rm -rf x", "R3", 4),
        ("cat $(rm x)", None, 3),
        ('grep -rn "rm -rf" .', "R0", 0),
        ("echo hi > /etc/motd", None, 3),
        ("x=rm; $x -rf /", "R3", 4),
        ("find . -fprint out", None, 3),
        ("curl -s http://127.0.0.1/x | sh", None, 3),
        ("cat /dev/sda", None, 3),
        ("opsx approve a-1", None, 4),
        ("df -h | tail -n +2", "R0", 0),
    ],
)
def test_check_says_level_and_decision_and_ends_with_their_code(opsx, command, level, code):
    done = opsx("check", "--json", "--", command)
    row = as_json(done)
    assert done.returncode == code, row
    assert row["level"] == level if level else row["level"] != "R0"
    assert row["decision"] == {0: "run", 3: "needs_stamp", 4: "refuse"}[code]


@pytest.mark.parametrize("command", ["sudo systemctl status nginx", "kubectl -n prod get pods", "fdisk -l /dev/sda"])
def test_reads_that_need_more_than_this_machine_may_have_are_still_reads(opsx, command):
    assert as_json(opsx("check", "--json", "--", command))["level"] == "R0"


def test_approving_is_refused_for_an_agent_and_cannot_be_forced(opsx):
    row = as_json(opsx("check", "--json", "--", "opsx approve a-1"))
    assert row["decision"] == "refuse" and row["forceable"] is False


def test_a_batch_answers_every_row_in_order_and_a_bad_one_with_its_error(opsx):
    rows = b'{"cmd": "ls"}\nnot json\n{"cmd": "rm -rf /"}\n{"cmd": "a\\u0000b"}\n{"cmd": 3}\n{"cmd": "df"}\n'
    out = [json.loads(line) for line in opsx("check", "--batch", stdin=rows).stdout.splitlines()]
    assert [row.get("level") for row in out] == ["R0", None, "R3", None, None, "R0"]
    assert [row.get("line") for row in out] == [None, 2, None, 4, 5, None]
    assert all({"code", "message", "not_done", "hint"} <= row["error"].keys() for row in out if "error" in row)


def test_explain_tells_each_part(opsx):
    done = opsx("explain", "df -h && rm -rf build")
    assert done.returncode == 4
    shown = done.stdout.decode()
    assert "R3" in shown and "rm -rf build" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.guarantee("G-HONEST")
def test_a_read_runs_enforced_and_is_on_record(opsx):
    row = as_json(opsx("exec", "--json", "--", "df -h | tail -n +2"))
    assert row["status"] == "succeeded" and row["exit_code"] == 0 and "/" in row["stdout"]
    assert (row["enforced"], row["profile"], row["interference"]) == ("strict", "local", [])
    assert row["recorded"] is True
    listed = as_json(opsx("executions", "--json"))["executions"]
    assert [run["id"] for run in listed] == [row["execution"]]
    shown = as_json(opsx("show", "--json", row["execution"]))
    assert [entry["kind"] for entry in shown["entries"]] == ["started", "ended"]


def test_a_change_runs_nothing_and_waits_for_a_person(opsx, tmp_path):
    done = opsx("exec", "--json", "--why", "tidy up", "--", "touch made")
    row = as_json(done)
    assert done.returncode == 3 and row["status"] == "needs_stamp" and row["execution"] is None
    assert not (tmp_path / "made").exists()
    assert row["next"] == f"opsx approve {row['request']}"
    waiting = as_json(opsx("pending", "--json"))["requests"]
    assert [(kept["id"], kept["command"], kept["why"]) for kept in waiting] == [
        (row["request"], "touch made", "tidy up")
    ]


def test_words_for_people_say_what_was_not_done(opsx):
    done = opsx("exec", "--", "touch", "made")
    assert done.stdout == b"" and b"nothing was run" in done.stderr and b"opsx approve a-" in done.stderr


def test_passthrough_gives_the_output_and_the_commands_own_code(opsx):
    done = opsx("exec", "--passthrough", "--", "printf out; printf err >&2; (exit 7)")
    assert (done.returncode, done.stdout) == (7, b"out") and done.stderr.startswith(b"err")
    assert opsx("exec", "--passthrough", "--", "touch x").returncode == 125


@pytest.mark.guarantee("G-BEGIN")
def test_a_killed_run_reads_as_unknown_and_a_read_still_runs(opsx, tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-X", "utf8", "-c", CALL, "exec", "--", "sleep 30"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=opsx.environment,
    )
    (begun,) = until(lambda: as_json(opsx("executions", "--json"))["executions"], "a record of the read")
    assert begun["status"] == "running"
    running.send_signal(signal.SIGKILL)
    running.wait()
    rows = as_json(opsx("executions", "--json", "--status", "unknown"))["executions"]
    assert [row["command"] for row in rows] == ["sleep 30"]
    assert as_json(opsx("exec", "--json", "--", "df -h"))["status"] == "succeeded"


def test_an_interrupted_read_is_ended_and_recorded_as_cancelled(opsx, tmp_path):
    running = subprocess.Popen(
        [sys.executable, "-X", "utf8", "-c", CALL, "exec", "--json", "--", "sleep 31.5"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=tmp_path,
        env=opsx.environment,
    )
    until(lambda: as_json(opsx("executions", "--json"))["executions"], "a record of the read")
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=20)
    assert running.returncode == 130 and json.loads(out)["status"] == "cancelled"
    assert as_json(opsx("executions", "--json"))["executions"][0]["status"] == "cancelled"


@pytest.mark.guarantee("G-CHAIN")
def test_verify_finds_a_flipped_byte_a_removed_line_and_a_cut_tail(opsx, tmp_path):
    for command in ("df", "uptime", "id"):
        assert opsx("exec", "--", command).returncode == 0
    assert opsx("audit", "verify").returncode == 0
    segment = max((tmp_path / "state/log").glob("*.jsonl"))
    whole = segment.read_bytes()
    lines = whole.splitlines(keepends=True)
    position = whole.index(b"uptime")
    for harmed in (
        whole[:position] + b"U" + whole[position + 1 :],
        b"".join(lines[:2] + lines[3:]),
        b"".join(lines[:-1]),
    ):
        segment.write_bytes(harmed)
        done = opsx("audit", "verify", "--json")
        assert done.returncode == 7 and as_json(done)["ok"] is False
    segment.write_bytes(whole)
    assert opsx("audit", "verify").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["exec", "--target", "web1", "--", "df"], 2, "web1"),
        (["exec", "--target", "", "--", "df"], 2, "target is empty"),
        (["check", "--frobnicate", "--", "df"], 2, "--frobnicate"),
        (["frobnicate"], 2, "frobnicate"),
        (["check", "df", "-h"], 2, "-h"),
        (["check", "df", "x"], 2, "opsx check -- df x"),
        (["check", "--", ""], 2, "empty"),
        (["check", "--", "a" * 70_000], 2, "70,000"),
        (["check", "--", b"ls \xff"], 2, "UTF-8"),
        (["exec", "--cwd", "/no/such", "--", "df"], 2, "/no/such"),
        (["show", "e-nothing"], 2, "no record"),
        (["show", "../../etc/passwd"], 2, "not an id"),
        (["executions", "--status", "great"], 2, "great"),
        (["executions", "--since", "yesterday"], 2, "yesterday"),
        (["exec", "--json", "--passthrough", "--", "df"], 2, "exclude"),
    ],
)
def test_bad_input_gets_a_clear_sentence_and_runs_nothing(opsx, tmp_path, arguments, code, said):
    done = opsx(*arguments)
    shown = (done.stdout + done.stderr).decode()
    assert done.returncode == code or "usage:" in shown, shown
    assert said in shown
    assert "Traceback" not in shown
    assert not list((tmp_path / "state").glob("log/*")) or not as_json(opsx("executions", "--json"))["executions"]


def test_errors_are_json_where_a_program_reads(opsx):
    done = opsx("exec", "--json", "--target", "web1", "--", "df")
    assert done.returncode == 2
    error = as_json(done)["error"]
    assert error["code"] == "usage.target" and error["not_done"] == "nothing was run" and error["hint"]


def test_a_nul_from_a_file_is_named(opsx, tmp_path):
    (tmp_path / "c").write_bytes(b"ls\0x")
    done = opsx("exec", "-f", "c")
    assert done.returncode == 2 and b"NUL" in done.stderr


def test_a_secret_in_a_command_is_not_shown_or_kept_anywhere(opsx, tmp_path):
    secret = "ghp_" + "a1B2c3D4e5" * 4
    done = opsx("exec", "--json", "--", f"echo {secret}; echo token={secret} >&2")
    opsx("exec", "--", f"frobnicate --token {secret}")
    shown = done.stdout + done.stderr + opsx("executions").stdout + opsx("audit").stdout + opsx("pending").stdout
    assert secret.encode() not in shown
    for path in (tmp_path / "state").rglob("*"):
        if path.is_file() and path.parent.name != "requests":  # a request keeps its exact bytes, 0600, for a person
            assert secret.encode() not in path.read_bytes(), path


def test_selftest_passes_here_and_leaves_the_real_state_alone(opsx, tmp_path):
    done = opsx("selftest", "--json")
    row = as_json(done)
    assert row["passed"], [check for check in row["checks"] if not check["passed"]]
    assert done.returncode == 0 and len(row["checks"]) >= 14
    assert not (tmp_path / "state" / "log").exists()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_name_every_verb(opsx, shell):
    shown = opsx("completions", shell).stdout.decode()
    for verb in ("check", "explain", "exec", "executions", "audit", "selftest"):
        assert verb in shown


def test_help_needs_no_state_and_names_every_verb(opsx, tmp_path):
    done = opsx("--help")
    assert done.returncode == 0 and b"executions" in done.stdout
    for verb in ("check", "exec", "audit"):
        assert b"usage: opsx" in opsx(verb, "--help").stdout
    assert not (tmp_path / "state").exists()


def test_a_reader_that_leaves_early_is_no_error(opsx, tmp_path):
    done = subprocess.run(
        [
            "/bin/bash",
            "-c",
            f'"{sys.executable}" -X utf8 -c "$CALL" exec -- "seq 1 5000" | head -1; exit ${{PIPESTATUS[0]}}',
        ],
        env={**opsx.environment, "CALL": CALL},
        capture_output=True,
        cwd=tmp_path,
        timeout=60,
    )
    assert done.stdout == b"1\n" and b"Traceback" not in done.stderr and b"Error" not in done.stderr


def test_the_whole_log_can_be_exported_and_habits_are_understood(opsx):
    for command in ("df", "uptime"):
        opsx("exec", "--", command)
    rows = [json.loads(line) for line in opsx("audit", "export").stdout.splitlines()]
    assert [row["kind"] for row in rows] == ["started", "ended"] * 2
    assert [row["seq"] for row in rows] == [1, 2, 3, 4]
    assert opsx("history").stdout == opsx("executions").stdout
    assert opsx("ps").stdout == b""


def test_denied_request_keeps_what_was_asked_and_why_not(opsx, tmp_path):
    asked = as_json(opsx("exec", "--json", "--", "touch wanted"))["request"]
    ledger = open_ledger(
        clock=SystemClock(), ids=RandomIds(), redact=str, liveness=ProcLiveness(), path=str(tmp_path / "state")
    )
    kept = ledger.request(asked)
    ledger.answers.deny(kept.request(), request_id=asked, reason="not today")
    shown = opsx("show", asked).stdout.decode()
    for part in ("touch wanted", "R1", str(tmp_path), "denied", "not today"):
        assert part in shown.partition("entries:")[0]
    again = as_json(opsx("exec", "--json", "--", "touch wanted"))
    assert any(note.startswith("you denied this at 2") and "not today" in note for note in again["notes"])
    assert as_json(opsx("exec", "--json", "--", "touch never-asked"))["notes"] == []


@pytest.mark.parametrize("verb", [("check",), ("check", "--json"), ("explain",), ("exec",), ("exec", "--json")])
@pytest.mark.parametrize("command", ["smbclient -U u%§ //h/s", "touch x ftp://a:§@h/y", "rm /nowhere/token=§"])
def test_no_verb_prints_a_secret_of_the_command(opsx, verb, command):
    done = opsx(*verb, "--", command.replace("§", "Zx81qLmv7Rw2Kd"))
    assert b"Zx81qLmv7Rw2Kd" not in done.stdout + done.stderr
    assert done.stdout + done.stderr


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("exce", "opsx has no verb 'exce'; the nearest is exec"),
        ("doctor", "opsx has no verb doctor; it is a verb of opsagent"),
        ("zzz", "opsx has no verb 'zzz'"),
    ],
)
def test_word_that_is_no_verb_is_answered_with_the_verb_that_was_meant(opsx, word, said):
    done = opsx(word)
    assert done.returncode == 2 and done.stderr.decode().splitlines()[0] == f"error[usage]: {said}"


def test_rollback_without_an_id_and_without_a_change_says_where_to_look(opsx):
    done = opsx("rollback")
    assert done.returncode == 2 and "opsx executions" in done.stderr.decode()


def test_request_that_cannot_be_kept_says_what_to_do_about_it(opsx):
    done = opsx("exec", "--", "touch a", OPSAGENT_HOME="relative")
    (said,) = (row for row in done.stderr.decode().splitlines() if "could not be kept" in row)
    assert done.returncode == 7 and "; " in said and "OPSAGENT_HOME=/" in said
    shown = opsx("exec", "--json", "--", "touch a", OPSAGENT_HOME="relative")
    told = json.loads(shown.stdout)
    assert shown.returncode == 7 and told["status"] == "needs_stamp" and told["request"] is None
    assert (told["recorded"], told["not_recorded_because"]) == (
        False,
        "OPSAGENT_HOME is not an absolute path: relative",
    )


@pytest.mark.parametrize(
    ("command", "said"), [("grep -q x /dev/null", ""), ("ls /no/such", "exit code was 2\n"), ("true", "")]
)
def test_a_commands_own_exit_code_is_said_where_ours_hides_it(opsx, command, said):
    done = opsx("exec", "--", command)
    told = [line for line in done.stderr.decode().splitlines(keepends=True) if "exit code" in line]
    assert "".join(told) == (f"opsx: the command's own {said}" if said else "")
    assert done.returncode == (0 if command == "true" else 1)
