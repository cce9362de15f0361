"""`opsagent -p` as a process, through the real guard: figures, records, a state that cannot be written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.oneshot.process import argv, call, start


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """One question with its state folder, shared by the tests that only read it."""
    state = tmp_path_factory.mktemp("state") / "s"
    environment = {**os.environ, "OPSAGENT_HOME": str(state)}
    code, out, err = call("opsagent", "-p", "check this machine's disk and memory", "--json", env=environment)
    assert code == 0, err
    return json.loads(out), environment


def test_the_figures_are_those_of_df_and_meminfo(answered):
    got, _ = answered
    row = subprocess.run(["df", "-P", "/"], capture_output=True, text=True, check=True).stdout.splitlines()[1].split()
    space = {finding["subject"]: finding for finding in got["findings"] if finding["id"] == "disk.space"}
    assert abs(space["/"]["number"] - int(row[4].rstrip("%"))) <= 1
    assert f"of {int(row[1]) / 1024**2:.1f} GiB" in space["/"]["text"]
    total_kib = int(Path("/proc/meminfo").read_text("ascii").split()[1])
    memory = next(finding for finding in got["findings"] if finding["id"] == "memory.available")
    assert f"of {total_kib / 1024**2:.1f} GiB available" in memory["text"]


def test_every_read_is_in_the_log(answered):
    got, environment = answered
    code, out, err = call("opsx", "executions", "--json", "--limit", "100", env=environment)
    assert code == 0, err
    for id in got["executions"]:
        assert id in out
    assert {finding["execution"] for finding in got["findings"]} <= set(got["executions"])
    assert len(got["executions"]) >= 4


def test_a_state_that_cannot_be_written_is_answered_and_said():
    environment = {**os.environ, "OPSAGENT_HOME": "/proc/self/opsagent"}
    code, out, err = call("opsagent", "-p", "disk", env=environment)
    assert code == 0, err
    assert " is " in out
    assert [line for line in out.splitlines() if line.startswith("Not recorded: ")]
    code, out, _ = call("opsagent", "-p", "磁盘", env=environment)
    assert code == 0
    assert "未写入记录：" in out


def test_an_error_with_json_is_one_object_on_stdout():
    code, out, err = call("opsagent", "-p", "disk", "--json", "--target", "web1")
    assert (code, err) == (2, "")
    assert json.loads(out)["error"]["code"] == "usage.target"
    code, out, err = call("opsagent", "-p", "disk", "--bogus")
    assert (code, out) == (2, "")
    assert err.startswith("error[usage]: opsagent has no option --bogus\n")


def test_ctrl_c_ends_the_question_with_130():
    process = start("opsagent", "-p", "cpu", "--output", "stream-json")
    seen = []
    while "tool_started" not in "".join(seen):
        seen.append(process.stdout.readline())
        assert seen[-1], process.stderr.read()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    last = json.loads(out.splitlines()[-1])
    assert (process.returncode, last["type"], last["exit_code"]) == (130, "turn_completed", 130), err


def test_a_reader_that_goes_away_is_no_error():
    process = start("opsagent", "-p", "disk")
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=60)
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "streams", "code", "said"),
    [
        ((), "<&-", 2, "error[usage]: the question is empty"),
        (("-p", "disk"), "<&-", 0, ""),
        (("-p", "disk"), ">&-", 0, ""),
        (("-p", "disk"), "2>&-", 0, ""),
        (("-p", "disk"), ">/dev/full", 1, "error[internal]: No space left on device"),
    ],
)
def test_streams_that_are_closed_or_full_are_an_answer_or_an_error_in_three_parts(words, streams, code, said):
    command = ["sh", "-c", f'exec "$@" {streams}', "sh", *argv("opsagent", *words)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done
    assert done.stderr.partition("\n")[0] == said and "Traceback" not in done.stderr
