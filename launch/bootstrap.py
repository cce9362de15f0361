"""Makes the environment that the lock describes, once, and starts the program in it.

Run as `python -I -X utf8 bootstrap.py UV PROGRAM [ARG...]` by setup.sh with any Python 3.11 or newer and uv's path
or an empty word; standard library only.
Two first runs at once are safe (flock), a run that is killed leaves the old environment as it was: the new one is built
beside it, gets `.ready` last, and is then renamed into place. The project itself is not installed; start.py puts it on
the path.

Writes: `.venv` in a writable checkout, else `opsagent/KEY/venv` in the user's cache folder; nothing else.
Network: whatever the user's uv or pip is configured to use. Words go to stderr, stdout stays the program's.
"""

import configparser
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import start  # noqa: E402  (the folder is put on the path above; -I keeps it out)

ROOT = HERE.parent
# Seconds for which a failed renewal is not tried again while an older environment still works.
RETRY_AFTER_S = 300
# Seconds between two signs of life while an installer works in silence.
BEAT_S = 10
# What pip and uv are told that people have set up in pip's own way: a mirror, a folder of wheels, no index at all.
PIP_SOURCES = ("index-url", "extra-index-url", "find-links", "no-index")

# Imported once in a new environment before it counts as ready: libraries with machine code, by their name in a lock.
NATIVE = {
    "tree-sitter": "tree_sitter",
    "tree-sitter-bash": "tree_sitter_bash",
    "pydantic-core": "pydantic_core",
    "rpds-py": "rpds",
    "cryptography": "cryptography.hazmat.bindings._rust",
}


class SetupError(Exception):
    """The environment could not be made; `hint` says what a person can do."""

    def __init__(self, code: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def say(text: str) -> None:
    """One line to stderr."""
    sys.stderr.write(f"opsagent: {text}\n")
    sys.stderr.flush()


class Place:
    """Where one environment lives: `venv`, the one being built beside it, the lock file, the note of a failure."""

    def __init__(self, venv: Path) -> None:
        self.venv = venv
        self.new = venv.with_name(venv.name + ".new")
        self.old = venv.with_name(venv.name + ".old")
        self.flock = venv.with_name(venv.name + ".lock")
        self.failed = venv.with_name(venv.name + ".failed")


def choose_place(root: Path, name: str, lock: bytes) -> Place:
    """`root/name` when the checkout can be written, else a folder in the cache named by the lock's digest.

    Raises:
        SetupError: neither can be written.
    """
    if os.access(root, os.W_OK) and _writable_by_a_file(root):
        return Place(root / name)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    home = os.environ.get("HOME", "")
    base = Path(cache) if cache.startswith("/") else Path(home) / ".cache"
    if not base.is_absolute():
        raise SetupError(
            "setup.place",
            f"the checkout {str(root)!r} cannot be written and HOME is not set, so there is no place for libraries",
            "set HOME or XDG_CACHE_HOME to a folder of yours",
        )
    key = lock.split(b"\n", 1)[0].split()[-1].decode("ascii")
    folder = base / "opsagent" / key
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(
            "setup.place",
            f"neither the checkout {str(root)!r} nor the cache folder can be written: {error}",
            "make one of them writable, or set XDG_CACHE_HOME to a folder of yours",
        ) from error
    return Place(folder / name.removeprefix("."))


def _writable_by_a_file(folder: Path) -> bool:
    """False on what access(2) does not see: a full disk, a quota, an immutable folder, root on some network mounts."""
    probe = folder / f".venv.probe-{os.getpid()}"
    try:
        probe.mkdir()
        probe.rmdir()
    except OSError:
        return False
    return True


def environment_for_tools() -> dict[str, str]:
    """The caller's environment with what would bend a new environment taken out, and patience made short."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON") and key != "VIRTUAL_ENV"}
    # pip refuses --target and the like beside --python; a user's defaults for them are for other installs.
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_USER", "PIP_ROOT", "PIP_REQUIRE_VIRTUALENV"):
        env.pop(name, None)
    env.setdefault("PIP_RETRIES", "1")
    env.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    env.setdefault("UV_HTTP_RETRIES", "1")
    return env


def pip_is_configured() -> bool:
    """True if the user told pip, and not uv, where packages come from: then pip goes first."""
    if any(name.startswith(("UV_INDEX", "UV_DEFAULT_INDEX", "UV_FIND_LINKS", "UV_NO_INDEX")) for name in os.environ):
        return False
    if any("PIP_" + source.upper().replace("-", "_") in os.environ for source in PIP_SOURCES):
        return True
    home = Path(os.environ.get("HOME") or "/nonexistent")
    xdg = os.environ.get("XDG_CONFIG_HOME") or str(home / ".config")
    files = [
        os.environ.get("PIP_CONFIG_FILE", ""),
        "/etc/pip.conf",
        "/etc/xdg/pip/pip.conf",
        f"{home}/.pip/pip.conf",
        f"{xdg}/pip/pip.conf",
    ]
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read([file for file in files if file], encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError, OSError):
        return True
    return any(parser.has_option(section, source) for section in parser.sections() for source in PIP_SOURCES)


def run_tool(argv: list[str], env: dict[str, str], cwd: str) -> None:
    """Runs one installer, shows that it lives, and keeps its words for the case that it fails.

    Raises:
        SetupError: it ended with anything but 0; the message carries the end of what it said.
    """
    started = time.monotonic()
    done = threading.Event()

    def beat() -> None:
        while not done.wait(BEAT_S):
            say(f"still setting up ({time.monotonic() - started:.0f} s)")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        done_tool = subprocess.run(
            argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        raise SetupError(
            "setup.tool", f"{argv[0]} could not be started: {error}", "check that it is executable"
        ) from error
    finally:
        done.set()
        thread.join()
    if done_tool.returncode != 0:
        words = done_tool.stdout.decode("utf-8", "replace").strip().splitlines()[-12:]
        raise SetupError(
            "setup.install",
            f"{shlex.join(argv[:4])} … ended with {done_tool.returncode}:\n  " + "\n  ".join(words or ["(no words)"]),
            "if this machine has no network, set PIP_INDEX_URL or PIP_FIND_LINKS to a mirror or a folder of wheels",
        )


def current_folder() -> str:
    """The caller's folder, so that a relative PIP_FIND_LINKS means what it says, or / if it is gone."""
    try:
        return os.getcwd()
    except OSError:
        return "/"


def build_with_uv(uv: str, new: Path, requirements: Path, env: dict[str, str]) -> None:
    """An environment at `new` by uv, hashes required, wheels only.

    From /: uv reads settings from the current folder and those above it.
    """
    run_tool([uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(new)], env, "/")
    install = [uv, "pip", "install", "--python", str(new / "bin" / "python"), "--compile-bytecode"]
    run_tool([*install, "--require-hashes", "--only-binary", ":all:", "-r", str(requirements)], env, "/")


def build_with_pip(new: Path, requirements: Path, env: dict[str, str]) -> None:
    """An environment at `new` by the standard library's venv and its pip, hashes required, wheels only."""
    from importlib.util import find_spec

    if find_spec("venv") is None or find_spec("ensurepip") is None:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise SetupError(
            "setup.venv",
            f"{sys.executable} (Python {version}) has no module to make environments with, and uv is not installed",
            venv_package(version),
        )
    run_tool([sys.executable, "-I", "-m", "venv", str(new)], env, current_folder())
    install = [str(new / "bin" / "python"), "-I", "-m", "pip", "install", "--no-input", "--require-hashes"]
    run_tool([*install, "--only-binary", ":all:", "-r", str(requirements)], env, current_folder())


def venv_package(version: str, os_release: Path = Path("/etc/os-release")) -> str:
    """The command that brings the venv module on this distribution, by the ids of os-release(5)."""
    ids: set[str] = set()
    try:
        for line in os_release.read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition("=")
            if name in ("ID", "ID_LIKE"):
                ids.update(value.strip().strip("'\"").split())
    except OSError:
        pass
    if ids & {"debian", "ubuntu"}:
        return f"apt-get install python3-venv   (or python{version}-venv, when python{version} is not the system's own)"
    if ids & {"fedora", "rhel", "centos"}:
        return f"dnf install python{version} python{version}-pip"
    if ids & {"suse", "opensuse"}:
        return f"zypper install python{version.replace('.', '')}"
    if "alpine" in ids:
        return "apk add python3 py3-pip"
    if "arch" in ids:
        return "pacman -S python"
    return "install your distribution's venv package for Python, or uv"


def library_folders(new: Path, lock: bytes) -> list[str]:
    """The environment's purelib and platlib relative to it, after its libraries with machine code were imported once.

    Raises:
        SetupError: a library does not load here (another C library or processor than its wheel was made for).
    """
    code = "import sysconfig, os, sys; p = sysconfig.get_paths(); print(p['purelib']); print(p['platlib'])"
    python = str(new / "bin" / "python")
    found = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if found.returncode != 0:
        raise SetupError(
            "setup.python", f"the new environment's Python does not run: {found.stderr[-500:]}", "try again"
        )
    folders = list(dict.fromkeys(found.stdout.split("\n")[:2]))
    locked = {line.split(b"==")[0].decode() for line in lock.split(b"\n") if b"==" in line}
    imports = "; ".join(f"import {module}" for name, module in NATIVE.items() if name in locked)
    load = f"import sys; sys.path += {folders!r}; {imports}"
    loaded = subprocess.run([python, "-I", "-S", "-c", load], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if loaded.returncode != 0:
        last = (loaded.stderr.strip().splitlines() or ["no words"])[-1]
        raise SetupError("setup.load", f"a library does not load here: {last}", "report this with `uname -a`")
    return [os.path.relpath(folder, new) for folder in folders]


def settle(place: Place) -> None:
    """Scripts of the new environment name the place where it was built; let them name where it will be."""
    for script in (place.new / "bin").iterdir():
        if script.is_symlink() or not script.is_file():
            continue
        data = script.read_bytes()
        if b"\0" not in data[:1024] and str(place.new).encode() in data:
            script.write_bytes(data.replace(str(place.new).encode(), str(place.venv).encode()))


def build(place: Place, requirements: Path, lock: bytes, uv: str) -> None:
    """Builds beside, marks ready, renames into place; an older environment stays until then.

    Raises:
        SetupError: neither uv nor pip could do it; the older environment is untouched, nothing half-made is left.
    """
    for leftover in (place.new, place.old):
        shutil.rmtree(leftover, ignore_errors=True)
    started = time.monotonic()
    try:
        folders = install(place, requirements, lock, uv)
        settle(place)
        mark_ready(place, folders, lock)
    except BaseException:
        shutil.rmtree(place.new, ignore_errors=True)
        raise
    if place.venv.exists() or place.venv.is_symlink():
        os.rename(place.venv, place.old)
    os.rename(place.new, place.venv)
    if place.old.is_symlink():
        place.old.unlink()
    shutil.rmtree(place.old, ignore_errors=True)
    place.failed.unlink(missing_ok=True)
    say(f"ready after {time.monotonic() - started:.0f} s")


def install(place: Place, requirements: Path, lock: bytes, uv: str) -> list[str]:
    """Fills `place.new` with uv or pip, the other one if the first fails; returns its library folders.

    Raises:
        SetupError: both failed; the one that tells more.
    """
    ways = [("pip", "")] if not uv else [("uv", uv), ("pip", "")]
    if uv and pip_is_configured():
        ways.reverse()
    env = environment_for_tools()
    count = sum(1 for line in lock.split(b"\n") if b"==" in line and not line.startswith(b"#"))
    failures: list[SetupError] = []
    for name, tool in ways:
        say(
            f"setting up once: Python {sys.version.split()[0]}, at most {count} libraries, with {name}, in {place.venv}"
        )
        shutil.rmtree(place.new, ignore_errors=True)
        try:
            if tool:
                build_with_uv(tool, place.new, requirements, env)
            else:
                build_with_pip(place.new, requirements, env)
            return library_folders(place.new, lock)
        except SetupError as error:
            failures.append(error)
            if len(failures) < len(ways):
                say(f"{name} could not do it: {error}")
    raise failures[-1] if failures[-1].code != "setup.venv" else failures[0]


def mark_ready(place: Place, folders: list[str], lock: bytes) -> None:
    """Writes `.ready`, the last file of an environment; start.py reads it (format there)."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    head = "\n".join([start.READY_FORMAT, version, *folders]) + "\n\n"
    with open(place.new / start.READY, "wb") as file:
        file.write(head.encode() + lock)
        file.flush()
        os.fsync(file.fileno())


def failed_lately(place: Place, lock: bytes) -> bool:
    """True if renewing for this lock failed less than RETRY_AFTER_S ago."""
    try:
        age = time.time() - place.failed.stat().st_mtime
        return 0 <= age < RETRY_AFTER_S and place.failed.read_bytes() == lock
    except OSError:
        return False


def python_fits(venv: Path) -> bool:
    """True if `venv` is complete and its Python still runs with the version that it was made for."""
    ready = start.read_ready(str(venv))
    if ready is None:
        return False
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        found = subprocess.run([venv / "bin" / "python", "-I", "-S", "-c", code], capture_output=True, text=True)
    except OSError:
        return False
    return found.stdout.strip() == ready[0][0]


def prepare(place: Place, requirements: Path, lock: bytes, uv: str) -> bool:
    """Makes sure that the environment fits the lock; False if only an older one could be had, which was said.

    Raises:
        SetupError: there is no environment at all to go on with.
    """
    with open(place.flock, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another start is setting up; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            say(f"this file system has no locks ({error}); going on without")
        ready = start.read_ready(str(place.venv))
        usable = python_fits(place.venv)
        if usable and ready is not None and ready[1] == lock:
            return True
        why: object = "tried less than 5 minutes ago"
        if not usable or not failed_lately(place, lock):
            try:
                build(place, requirements, lock, uv)
                return True
            except (SetupError, OSError) as error:
                if not usable:
                    raise
                place.failed.write_bytes(lock)
                why = error
        say(f"WARNING: going on with OLD libraries, the lock's could not be installed: {why}")
        return False


def refuse_for_root(place: Place) -> None:
    """Ends the program when root would run, or install into, what somebody else can change."""
    if os.geteuid() != 0:
        return
    paths = [str(HERE), str(ROOT), os.path.realpath(place.venv.parent)]
    if place.venv.exists():
        paths += [os.path.realpath(place.venv), str(place.venv / "bin")]
    part = start.foreign_part(paths)
    if part is None:
        # Set-up is the rare moment at which looking at everything is affordable.
        for folder, _, files in os.walk(ROOT / "launch"):
            part = start.foreign_part([os.path.join(folder, name) for name in files])
            if part is not None:
                break
    if part is not None:
        start.refuse_foreign(part)


def main(argv: list[str]) -> int:
    """Prepares, then becomes the program. Returns only when that failed, or for `test-environment`."""
    uv, program, *rest = argv
    for_tests = program == "test-environment"
    requirements = ROOT / ("requirements-test.lock" if for_tests else "requirements.lock")
    try:
        lock = start.read_lock(str(requirements))
        place = choose_place(ROOT, ".venv-test" if for_tests else ".venv", lock)
        refuse_for_root(place)
        fresh = prepare(place, requirements, lock, uv)
    except SetupError as error:
        sys.stderr.write(f"error[{error.code}]: {error}\nnothing was run\nhint: {error.hint}\n")
        return 7
    except OSError as error:
        sys.stderr.write(
            f"error[setup.disk]: {error}\nnothing was run\nhint: free space, or check the folder's owner\n"
        )
        return 7
    except KeyboardInterrupt:
        sys.stderr.write("error[setup.interrupted]: set-up was stopped\nnothing was run\nhint: start it again\n")
        return 130
    python = str(place.venv / "bin" / "python")
    if for_tests:
        print(python)
        return 0
    sys.stdout.flush()
    marks = [] if fresh else ["--old"]
    entry = str(HERE / "start.py")
    os.execv(python, [python, "-I", "-S", "-X", "utf8", entry, *marks, program, str(place.venv), *rest])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
