"""A process ends at once, after everything that was promised for its end."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from tests.sources import ROOT


def ended(body: str, *, stdout=subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    """A process whose `main(argv)` has this body."""
    code = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import atexit, os, threading, time\n"
        "from cli import ending\n"
        "class Left:\n"
        "    def __del__(self):\n"
        "        os.write(1, b'taken apart ')\n"
        "left = Left()\n"
        f"def main(argv):\n{textwrap.indent(body, '    ')}\n"
        "sys.exit(ending.run(main, ['7']))\n"
    )
    return subprocess.run(
        [sys.executable, "-I", "-c", code], stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=60
    )


def test_nothing_is_taken_apart_and_everything_written_arrives():
    done = ended("sys.stdout.write('an answer'); sys.stderr.write('a word'); return int(argv[0])")
    assert (done.returncode, done.stdout, done.stderr) == (7, "an answer", "a word")


def test_what_was_registered_runs_first():
    done = ended("atexit.register(lambda: print('first registered'))\natexit.register(lambda: print('last'))\nreturn 0")
    assert (done.returncode, done.stdout) == (0, "last\nfirst registered\n")


def test_a_thread_that_works_is_waited_for():
    done = ended(
        "go = threading.Event()\n"
        "threading.Thread(target=lambda: (go.wait(30), print('written'))).start()\n"
        "threading.Timer(0.2, go.set).start()\n"
        "return 3"
    )
    assert (done.returncode, done.stdout) == (3, "written\n")


@pytest.mark.parametrize(("how", "code"), [("sys.exit(5)", 5), ("sys.exit('why')", 1), ("return 1 / 0", 1)])
def test_an_exception_takes_pythons_way(how, code):
    done = ended(how)
    assert done.returncode == code
    assert "why" in done.stderr or "ZeroDivisionError" in done.stderr or code == 5
    assert done.stdout == "taken apart "


def test_output_that_cannot_be_written_is_told():
    with open("/dev/full", "w") as full:
        done = ended("sys.stdout.write('lost'); return 0", stdout=full)
    assert done.returncode == 120 and "No space left" in done.stderr


def test_a_closed_stream_is_no_fault():
    done = ended("sys.stdout.close(); return 4")
    assert (done.returncode, done.stderr) == (4, "")


def test_a_forked_child_ends_in_its_own_way():
    done = ended(
        "pid = os.fork()\nif not pid:\n    sys.exit(9)\nreturn os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
    )
    assert (done.returncode, done.stdout) == (9, "taken apart ")
