"""Names that only bash makes of a pattern, in lab mode: whatever it leads to is looked at, or a person is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CALL = (
    f"import sys; sys.path[:0] = [{str(ROOT)!r}]; sys.argv = ['opsx', *sys.argv[1:]]\n"
    "from cli.opsx import main; sys.exit(main(sys.argv[1:]))"
)
NEEDS_STAMP, REFUSED = 3, 4


@pytest.fixture
def opsx(tmp_path):
    """`opsx` in lab mode, in a folder with innocent names that lead to opsagent's own places."""
    state, place = tmp_path / "state", tmp_path / "place"
    (state / "config").mkdir(parents=True, mode=0o700)
    state.chmod(0o700)
    (state / "config" / "config.toml").write_text('[policy]\nmode = "lab"\n')
    (state / "config" / "config.toml").chmod(0o600)
    place.mkdir()
    (place / "vnk").symlink_to(ROOT / "guard" / "errors.py")
    (place / "cnk").symlink_to(state / "config" / "config.toml")
    (place / "\u00e9nk").symlink_to(state / "config" / "config.toml")
    (place / "!nk").symlink_to(state / "config" / "config.toml")
    (place / "snk").symlink_to(state)
    (place / "f1").write_text("a\n")

    def call(*arguments):
        return subprocess.run(
            [sys.executable, "-X", "utf8", "-c", CALL, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=place,
            env={"PATH": os.defpath, "HOME": str(tmp_path), "OPSAGENT_HOME": str(state), "LC_ALL": "C.UTF-8"},
            timeout=60,
        )

    call.place, call.state = place, state
    return call


def test_lab_mode_runs_a_small_change_through_a_pattern(opsx):
    done = opsx("exec", "--", "tee -a f[^z] < /dev/null && touch g[[:digit:]]")
    assert done.returncode == 0, done.stderr
    assert (opsx.place / "g[[:digit:]]").exists()


@pytest.mark.parametrize(
    "command",
    [
        "tee -a v[^z]k", "tee -a c[^z]k", "tee -a v[[:alpha:]]k", "tee -a [[:alpha:]]nk", "tee -a ~+/cnk",
        "tee -a ~+/c[^z]k", "tee -a [\\!]nk", "tee -a [\"!\"]nk", 'x="c[^z]k"; tee -a $x', 'x=$PWD; tee -a "$x"/c[^z]k',
        "for f in c[^z]k; do tee -a \"$f\"; done", "dd if=/dev/null of=c[^z]k", "echo >> c[^z]k", "tee -a {c,d}[^z]k",
        "tee -a ./*/../c[!z]k", "tee -a ?nk",
    ],
)  # fmt: skip
def test_what_bash_makes_of_a_pattern_is_not_ours_to_change(opsx, command):
    done = opsx("exec", "--", command)
    assert done.returncode == REFUSED, (done.stdout, done.stderr)


@pytest.mark.parametrize(
    "command",
    [
        "cd s[^z]k && touch frozenx", "cd s[^z]k && touch frozen*", "tee -a ~-/cnk", "tee -a ~1/cnk",
        "tee -a [[=c=]]nk", "cd \"$UNKNOWN\" && touch frozenx",
        "shopt -s nocaseglob; tee -a CN[K]", "export LC_ALL=C; tee -a ??nk", "bash -O nocaseglob -c 'tee -a CN[K]'",
        "sh -c 'tee -a c[^n]k'",
    ],
)  # fmt: skip
def test_what_cannot_be_listed_exactly_asks(opsx, command):
    before = (opsx.state / "config" / "config.toml").read_bytes()
    done = opsx("exec", "--", command)
    assert done.returncode in (NEEDS_STAMP, REFUSED), (done.stdout, done.stderr)
    assert not list(opsx.state.glob("frozen*"))
    assert (opsx.state / "config" / "config.toml").read_bytes() == before


def test_a_change_below_the_folder_that_the_shell_knows_is_saved_where_it_is(opsx):
    done = opsx("exec", "--json", "--", "sed -i s/a/b/ ~+/f1")
    assert json.loads(done.stdout)["snapshot_plan"] == [{"kind": "file", "object": f"{opsx.place}/f1"}]
    assert (opsx.place / "f1").read_text() == "b\n"


def test_a_folder_that_only_bash_knows_gives_no_way_back_to_another_file(opsx):
    (opsx.place / "sair").mkdir()
    (opsx.place / "sair" / "f1").write_text("a\n")
    done = opsx("check", "--json", "--", "cd s[a-z]ir && sed -i s/a/b/ f1")
    row = json.loads(done.stdout)
    assert (row["level"], row["snapshot_plan"], row["reversible"]) == ("R2", [], "no")
