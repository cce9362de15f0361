"""The real lock and the real program: a fresh copy of the checkout, and the wheel in somebody's environment."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.checkouts import ROOT, base_python, make_wheel, uv_binary

LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv*", "__pycache__", ".*_cache", "outputs", ".hypothesis", "tests", "benchmarks"
)


def run(*command: str | Path, **options: object) -> subprocess.CompletedProcess[str]:
    """Runs one step; a failure shows what it said."""
    done = subprocess.run(
        [str(part) for part in command],
        **{"capture_output": True, "text": True, "stdin": subprocess.DEVNULL, **options},
    )
    assert done.returncode == 0, (
        f"{command[:3]} ended with {done.returncode}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    )
    return done


@pytest.fixture(scope="session")
def wheelhouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The lock's wheels, downloaded once for all workers of this run, with the hashes checked."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    folder = shared / "wheelhouse"
    with open(shared / "wheelhouse.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            download = [sys.executable, "-m", "pip", "download", "--no-input", "--quiet", "--require-hashes"]
            run(*download, "--only-binary", ":all:", "-r", ROOT / "requirements.lock", "-d", folder)
            (folder / "done").touch()
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """This checkout as a clone would be: sources only."""
    return Path(shutil.copytree(ROOT, tmp_path / "opsagent", ignore=LEFT_OUT, symlinks=True))


@pytest.fixture
def offline(tmp_path: Path, wheelhouse: Path) -> dict[str, str]:
    """An empty home and a machine on which only the wheelhouse is reached."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").symlink_to(base_python())
    return {
        "PATH": f"{tools}:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(tmp_path / "home"),
        "OPSAGENT_HOME": str(tmp_path / "state"),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheelhouse),
        "PIP_CONFIG_FILE": os.devnull,
    }


def test_fresh_checkout_answers_and_judges(copy, offline):
    env = {**offline, "UV_NO_INDEX": "1", "UV_OFFLINE": "1", "UV_FIND_LINKS": offline["PIP_FIND_LINKS"]}
    Path(env["PATH"].split(":")[0], "uv").symlink_to(uv_binary())
    first = run(copy / "opsagent", "--version", env=env, cwd="/")
    assert "with uv" in first.stderr and first.stdout.strip()
    judged = run(copy / "opsx", "check", "ls", env=env, cwd="/")
    assert "R0" in judged.stdout and judged.stderr == ""


def test_wheel_runs_anywhere_beside_packages_of_the_same_names(copy, offline, tmp_path):
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path / "dist", cwd=copy)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    # Somebody else's top-level packages with our names must neither break us nor be broken.
    for name in ("core", "cli", "guard", "agent"):
        make_wheel(tmp_path / "others", name, "1.0", "raise RuntimeError('not ours')\n")
    environment = tmp_path / "environment"
    env = {**offline, "UV_NO_INDEX": "1", "UV_OFFLINE": "1", "PYTHONPATH": str(tmp_path / "trap")}
    run(uv_binary(), "venv", "--quiet", "--python", base_python(), environment, env=env, cwd="/")
    links = ["--find-links", offline["PIP_FIND_LINKS"], "--find-links", tmp_path / "others"]
    install = [uv_binary(), "pip", "install", "--quiet", "--python", environment / "bin" / "python", *links]
    run(*install, wheel, "core", "cli", "guard", "agent", env=env, cwd="/")

    (tmp_path / "trap" / "cli").mkdir(parents=True)
    (tmp_path / "trap" / "core.py").write_text("raise RuntimeError('from PYTHONPATH')\n")
    for program, option in (("opsx", "--version"), ("opsagent", "--version"), ("opsagent-mcp", "--help")):
        assert run(environment / "bin" / program, option, env=env, cwd=tmp_path / "trap").stdout.strip()
    judged = run(environment / "bin" / "opsx", "check", "ls", env=env, cwd=tmp_path / "trap")
    assert "R0" in judged.stdout


def test_editable_wheel_leaves_no_copy_of_the_program(copy, tmp_path):
    from hatchling.builders.wheel import WheelBuilder

    (built,) = WheelBuilder(str(copy)).build(directory=str(tmp_path / "dist"), versions=["editable"])
    listing = run(sys.executable, "-m", "zipfile", "-l", built).stdout
    assert "_app" not in listing and ".pth" in listing
