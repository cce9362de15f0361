"""Writes `requirements.lock` and `requirements-test.lock` from pyproject.toml; for developers, needs uv (`make lock`).

A lock is a pip requirements file for every supported Python and platform: exact versions, SHA-256 of every wheel, no
address of a registry. Its first line carries a digest of the rest, which names the environment of a read-only checkout.
"""

import argparse
import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Markers that are never true where opsagent runs; their entries would only be noise in the lock.
NEVER = re.compile(r"sys_platform == '(win32|emscripten)'$")


def with_header(body: str) -> str:
    """The lock's text: first line with 16 hex digits of the body's SHA-256, then the body."""
    return f"# opsagent lock 1 {hashlib.sha256(body.encode()).hexdigest()[:16]}\n{body}"


def without_foreign(text: str) -> str:
    """The compiled requirements without entries for platforms that are not supported."""
    entries = re.split(r"\n(?=[A-Za-z0-9])", text.strip())
    kept = [entry for entry in entries if not NEVER.search(entry.split("\n")[0].rstrip(" \\"))]
    return "\n".join(kept) + "\n"


def write_lock(uv: str, lock: Path, extras: list[str], constraints: list[Path], upgrade: bool) -> None:
    """One universal resolution by uv, written to `lock`, whose versions stay where they can unless `upgrade`."""
    command = [uv, "pip", "compile", str(ROOT / "pyproject.toml"), "--universal", "--python-version", "3.11"]
    command += ["--generate-hashes", "--only-binary", ":all:", "--no-header", "--no-annotate", "--no-config", "--quiet"]
    command += [part for extra in extras for part in ("--extra", extra)]
    command += [part for path in constraints for part in ("--constraint", str(path))]
    command += ["--output-file", str(lock)] + (["--upgrade"] if upgrade else [])
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    lock.write_text(with_header(without_foreign(without_comments(lock.read_text("utf-8")))), "utf-8")


def without_comments(text: str) -> str:
    """The lock without lines that uv or an earlier run put in front."""
    return "\n".join(line for line in text.split("\n") if not line.startswith("#"))


def main() -> None:
    """Writes both locks; the test lock is the run-time lock and more, never another version of the same library."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uv", default="uv")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    options = parser.parse_args()
    runtime = ROOT / "requirements.lock"
    own = ROOT / "launch" / "constraints.txt"
    write_lock(options.uv, runtime, [], [own], options.upgrade)
    write_lock(options.uv, ROOT / "requirements-test.lock", ["test"], [own, runtime], options.upgrade)


if __name__ == "__main__":
    main()
