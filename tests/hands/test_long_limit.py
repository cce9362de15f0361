"""A time limit longer than the kernel can wait for is still a time limit."""

from __future__ import annotations

from guard.hands.process import Program, run_child


def test_a_limit_of_years_runs_to_the_end(tmp_path):
    ended = run_child(
        Program(["/bin/sh", "-c", "sleep 0.1; echo done"], {}),
        cwd=str(tmp_path),
        timeout_s=float(1 << 40),
        leave_nothing=False,
    )
    assert (ended.exit_code, ended.stdout.text, ended.timed_out) == (0, "done\n", False)
