"""Small checkouts with a lock of one tiny wheel, for tests of the launchers; no network, no real home."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from launch.lock import with_header

ROOT = Path(__file__).resolve().parent.parent.parent
# What launchers and installers need beside Python and uv; everything else of the machine stays out of PATH.
TOOLS = ("readlink", "sh", "cat", "sleep", "unshare", "mount")
PROGRAM = """
import json, os, sys
import tiny
def main(argv):
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = None
    print(json.dumps({"program": sys.argv[0], "argv": argv, "path": sys.path, "tiny": tiny.VERSION, "cwd": cwd,
        "isolated": sys.flags.isolated, "no_site": sys.flags.no_site, "utf8": sys.flags.utf8_mode,
        "executable": sys.executable, "pycache": sys.pycache_prefix,
        "added": sorted(name for name in os.environ if name.startswith("OPSAGENT"))}))
    return 7 if argv[:1] == ["seven"] else 0
"""


def make_wheel(folder: Path, name: str, version: str, source: str) -> str:
    """Writes a wheel of one module `name`; returns its SHA-256 in hex."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(text)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def base_python() -> str:
    """The Python below the one that runs the tests: what a machine has before there is any environment."""
    return os.path.realpath(sys.executable)


def uv_binary() -> str:
    """The uv of the test extras."""
    beside = Path(sys.executable).with_name("uv")
    assert beside.exists(), (
        "uv is one of the test extras; make the environment again: sh launch/setup.sh test-environment"
    )
    return str(beside)


@dataclass
class Checkout:
    """A copy of the launchers with a stub program, a wheelhouse and a PATH of its own."""

    root: Path
    wheels: Path
    bin: Path
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def run(self, *args: str, program: str = "opsx", launcher: Path | str | None = None, **options: object):
        """Runs a launcher as a person would; text in, text out."""
        command = [str(launcher or self.root / program), *args]
        return subprocess.run(command, **{**self.options(), **options})  # type: ignore[call-overload]

    def start(self, *args: str) -> subprocess.Popen[str]:
        """Starts a launcher without waiting."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            [str(self.root / "opsx"), *args],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
        )

    def options(self) -> dict[str, object]:
        return {
            "env": self.env,
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "timeout": 240,
        }

    def write_lock(self, version: str, *, available: bool = True) -> None:
        """Locks the tiny wheel at `version`; without `available` its wheel is nowhere to be had."""
        folder = self.wheels if available else self.wheels.with_name("elsewhere")
        digest = make_wheel(folder, "tiny", version, f"VERSION = {version!r}\n")
        text = with_header(f"tiny=={version} \\\n    --hash=sha256:{digest}\n")
        (self.root / "requirements.lock").write_text(text)

    def with_uv(self) -> Checkout:
        """Puts uv on PATH, told to use the wheelhouse only."""
        (self.bin / "uv").symlink_to(uv_binary())
        self.env |= {"UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(self.wheels)}
        return self

    def leftovers(self) -> list[str]:
        """Names in the checkout that a set-up may have left, the environment and its lock file apart."""
        return sorted(p.name for p in self.root.glob(".venv*") if p.name not in (".venv", ".venv.lock"))


def make_checkout(folder: Path) -> Checkout:
    """A checkout in `folder/checkout` with Python on PATH, and pip (not uv) told to use the wheelhouse only."""
    root = folder / "checkout"
    (root / "cli").mkdir(parents=True)
    for name in ("opsagent", "opsx"):
        shutil.copy2(ROOT / name, root / name)
    shutil.copytree(ROOT / "launch", root / "launch", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("opsagent.py", "opsx.py"):
        (root / "cli" / name).write_text(PROGRAM)
    shutil.copy(ROOT / "cli" / "ending.py", root / "cli")
    binaries = folder / "bin"
    binaries.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        if found:
            (binaries / tool).symlink_to(found)
    (binaries / "python3").symlink_to(base_python())
    home = folder / "own-home"
    home.mkdir()
    wheels = folder / "wheels"
    env = {
        "PATH": str(binaries),
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_CONFIG_FILE": os.devnull,
    }
    checkout = Checkout(root, wheels, binaries, home, env)
    checkout.write_lock("1.0")
    return checkout


def answer(done: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """What the stub program said; the launcher's words are in the failure if it said nothing."""
    assert done.returncode in (0, 7) and done.stdout.startswith("{"), f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    found: dict[str, object] = json.loads(done.stdout)
    return found
