"""The launchers from a first call to a warm one, on small checkouts: what is set up, what counts, what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.packaging.checkouts import Checkout, answer, make_checkout

AS_ROOT = os.geteuid() == 0
SETTING_UP = "setting up once"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return make_checkout(tmp_path)


@pytest.fixture
def quick(checkout: Checkout) -> Checkout:
    """With uv, which makes an environment in a fraction of pip's time."""
    return checkout.with_uv()


def test_first_run_sets_up_with_pip_and_the_second_starts_at_once(checkout):
    first = checkout.run("check", "two words", "", "line\nbreak", "é")
    said = answer(first)
    assert said["argv"] == ["check", "two words", "", "line\nbreak", "é"]
    assert (said["program"], said["tiny"]) == ("opsx", "1.0")
    assert SETTING_UP in first.stderr and "with pip" in first.stderr
    assert checkout.leftovers() == []

    second = checkout.run("seven", program="opsagent")
    assert answer(second)["program"] == "opsagent"
    assert (second.returncode, second.stderr) == (7, "")


def test_first_run_sets_up_with_uv_when_uv_is_there(quick):
    del quick.env["PIP_NO_INDEX"], quick.env["PIP_FIND_LINKS"]
    done = quick.run("--version")
    assert answer(done)["tiny"] == "1.0"
    assert "with uv" in done.stderr and "with pip" not in done.stderr
    assert quick.leftovers() == []


def test_pip_goes_first_when_only_pip_was_told_where_packages_are(checkout):
    (checkout.bin / "uv").write_text("#!/bin/sh\nexit 9\n")
    (checkout.bin / "uv").chmod(0o755)
    done = checkout.run()
    assert answer(done)["tiny"] == "1.0"
    assert "with uv" not in done.stderr


def test_uv_that_fails_is_said_and_pip_takes_over(checkout):
    (checkout.bin / "uv").write_text("#!/bin/sh\necho no luck >&2\nexit 9\n")
    (checkout.bin / "uv").chmod(0o755)
    checkout.env["UV_FIND_LINKS"] = str(checkout.wheels)
    done = checkout.run()
    assert answer(done)["tiny"] == "1.0"
    assert "uv could not do it" in done.stderr and "no luck" in done.stderr
    assert checkout.leftovers() == []


@pytest.mark.guarantee("G-ISOLATED")
def test_nothing_of_the_callers_surroundings_is_imported(checkout, tmp_path):
    trap = tmp_path / "trap"
    (trap / "cli").mkdir(parents=True)
    for name in ("os.py", "json.py", "tiny.py", "start.py", "sitecustomize.py", "usercustomize.py", "cli/opsx.py"):
        (trap / name).write_text("raise SystemExit('taken from the wrong place')\n")
    checkout.env |= {"PYTHONPATH": str(trap), "PYTHONSTARTUP": str(trap / "os.py"), "PYTHONHOME": str(trap)}
    for _ in ("first", "warm"):
        said = answer(checkout.run(cwd=trap))
        assert (said["isolated"], said["no_site"], said["utf8"]) == (1, 1, 1)
        assert said["cwd"] == str(trap)
        assert not any(str(trap) in entry for entry in said["path"])
        assert str(checkout.root) in said["path"] and said["added"] == []


def test_launcher_is_found_through_links_from_any_folder(quick, tmp_path):
    quick.run()
    one = tmp_path / "one"
    two = tmp_path / "two words"
    one.mkdir()
    two.mkdir()
    (one / "inner").symlink_to("../checkout/opsx")
    (two / "ox").symlink_to(one / "inner")
    quick.env["PATH"] += f":{two}"
    for launcher, cwd in (
        ("ox", "/"),
        ("./ox", two),
        ("../one/inner", two),
        (str(two / "ox"), one),
        ("./opsx", quick.root),
    ):
        done = quick.run("a", launcher=launcher, cwd=cwd)
        said = answer(done)
        assert (said["argv"], said["program"], done.stderr) == (["a"], "opsx", "")
        assert str(quick.root) in said["path"]


def test_launcher_works_in_a_folder_that_is_gone(quick, tmp_path):
    gone = tmp_path / "gone"
    script = f'mkdir "{gone}" && cd "{gone}" && rmdir "{gone}" && exec "{quick.root}/opsx" x'
    for _ in ("first", "warm"):
        done = subprocess.run(
            ["/bin/sh", "-c", script], **{**quick.options(), "env": {**quick.env, "PATH": os.defpath}}
        )
        assert answer(done)["cwd"] is None


def test_two_first_runs_at_once_make_one_environment(quick):
    runs = [quick.start(str(number)) for number in range(3)]
    words = [run.communicate(timeout=240) for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], words
    assert sum(SETTING_UP in err for _, err in words) == 1
    assert quick.leftovers() == []


def test_changed_lock_renews_the_environment(quick):
    assert answer(quick.run())["tiny"] == "1.0"
    quick.write_lock("2.0")
    renewed = quick.run()
    assert answer(renewed)["tiny"] == "2.0"
    assert SETTING_UP in renewed.stderr
    assert quick.run().stderr == ""
    assert quick.leftovers() == []


def test_touched_lock_with_the_same_content_renews_nothing(quick):
    quick.run()
    os.utime(quick.root / "requirements.lock")
    assert quick.run().stderr == ""


def test_offline_with_an_old_environment_goes_on_and_says_so_every_time(quick):
    quick.run()
    quick.write_lock("2.0", available=False)
    tried = quick.run("x")
    assert answer(tried)["tiny"] == "1.0"
    assert SETTING_UP in tried.stderr and "WARNING: going on with OLD libraries" in tried.stderr
    again = quick.run("x")
    assert answer(again)["argv"] == ["x"]
    assert SETTING_UP not in again.stderr and "WARNING: going on with OLD libraries" in again.stderr

    quick.write_lock("2.0")
    (quick.root / ".venv.failed").unlink()
    assert answer(quick.run())["tiny"] == "2.0"


def test_offline_first_run_says_what_failed_and_leaves_nothing(quick):
    quick.write_lock("2.0", available=False)
    done = quick.run()
    assert (done.returncode, done.stdout) == (7, "")
    assert "error[setup.install]" in done.stderr and "nothing was run" in done.stderr and "hint: " in done.stderr
    assert not (quick.root / ".venv").exists() and quick.leftovers() == []


@pytest.mark.guarantee("G-LOCKED")
def test_wheel_with_another_hash_is_not_installed(quick):
    lock = quick.root / "requirements.lock"
    lock.write_text(lock.read_text().replace("sha256:", "sha256:0000")[:-5] + "\n")
    done = quick.run()
    assert (done.returncode, done.stdout) == (7, "")
    assert not (quick.root / ".venv").exists()


@pytest.mark.guarantee("G-LOCKED")
@pytest.mark.parametrize("with_uv", [True, False])
def test_lock_without_hashes_installs_nothing(checkout, with_uv):
    if with_uv:
        checkout.with_uv()
    (checkout.root / "requirements.lock").write_text("# opsagent lock 1 0000\ntiny==1.0\n")
    done = checkout.run()
    assert (done.returncode, done.stdout) == (7, "")
    assert "error[setup.install]" in done.stderr and not (checkout.root / ".venv").exists()


@pytest.mark.guarantee("G-LOCKED")
def test_set_up_that_was_killed_is_taken_up_cleanly(quick):
    (quick.root / ".venv.new" / "bin").mkdir(parents=True)
    (quick.root / ".venv.new" / "bin" / "python").write_text("half")
    (quick.root / ".venv" / "bin").mkdir(parents=True)
    (quick.root / ".venv.old" / "lib").mkdir(parents=True)
    assert answer(quick.run())["tiny"] == "1.0"
    assert quick.leftovers() == []


def test_environment_whose_python_is_gone_is_made_again(quick):
    quick.run()
    python = quick.root / ".venv" / "bin" / "python"
    python.unlink()
    python.symlink_to("/nonexistent/python3")
    assert SETTING_UP in quick.run().stderr
    assert quick.run().stderr == ""


def test_environment_of_another_python_version_is_made_again(quick):
    quick.run()
    ready = quick.root / ".venv" / ".ready"
    lines = ready.read_text().split("\n")
    lines[1] = "3.9"
    ready.write_text("\n".join(lines))
    assert SETTING_UP in quick.run().stderr


def test_scripts_of_the_environment_name_its_final_place(checkout):
    checkout.run()
    text = (checkout.root / ".venv" / "bin" / "pip").read_text()
    assert f"{checkout.root}/.venv/bin/python" in text and ".venv.new" not in text


def run_on_read_only(checkout: Checkout, *args: str) -> subprocess.CompletedProcess[str]:
    """Root ignores modes, so for root the checkout is mounted read-only in a mount namespace of its own."""
    if not AS_ROOT:
        for folder in (checkout.root, checkout.root / "launch", checkout.root / "cli"):
            folder.chmod(0o555)
        return checkout.run(*args)
    root = checkout.root
    script = f'mount --bind "{root}" "{root}" && mount -o remount,bind,ro "{root}" && exec "{root}/opsx" "$@"'
    return subprocess.run(["unshare", "-m", "/bin/sh", "-c", script, "sh", *args], **checkout.options())


def test_read_only_checkout_has_its_environment_in_the_cache(quick):
    first = run_on_read_only(quick, "a")
    said = answer(first)
    assert SETTING_UP in first.stderr
    assert str(said["executable"]).startswith(f"{quick.home}/.cache/opsagent/")
    assert str(said["pycache"]).startswith(f"{quick.home}/.cache/opsagent/")
    second = run_on_read_only(quick, "b")
    assert (answer(second)["argv"], second.stderr) == (["b"], "")
    assert list(quick.root.glob(".venv*")) == []
    quick.root.chmod(0o755)


def test_read_only_checkout_without_a_home_says_what_is_missing(quick):
    del quick.env["HOME"]
    done = run_on_read_only(quick)
    assert done.returncode == 7 and "error[setup.place]" in done.stderr and "XDG_CACHE_HOME" in done.stderr
    quick.root.chmod(0o755)


def test_python_that_is_too_old_or_broken_is_passed_over(quick):
    for name, code in (("python3.14", 127), ("python3.13", 4), ("python3.12", 1)):
        (quick.bin / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (quick.bin / name).chmod(0o755)
    assert answer(quick.run())["tiny"] == "1.0"


@pytest.mark.parametrize(("fake", "words"), [(None, "no Python was found"), (4, "python3 is older than 3.11")])
def test_machine_without_a_fitting_python_is_told_which_package_brings_one(checkout, fake, words):
    (checkout.bin / "python3").unlink()
    if fake is not None:
        (checkout.bin / "python3").write_text(f"#!/bin/sh\nexit {fake}\n")
        (checkout.bin / "python3").chmod(0o755)
    done = checkout.run()
    assert (done.returncode, done.stdout) == (7, "")
    assert done.stderr.startswith("error[setup.python]: ") and words in done.stderr
    assert "nothing was run\nhint: " in done.stderr
    assert list(checkout.root.glob(".venv*")) == []


def test_damaged_environment_record_is_made_again(quick):
    quick.run()
    for damage in (b"", b"opsagent environment 1\n", b"\xff\xfe\n\n", b"opsagent environment 0\n3.11\nlib\n\n"):
        (quick.root / ".venv" / ".ready").write_bytes(damage)
        done = quick.run()
        assert answer(done)["tiny"] == "1.0" and SETTING_UP in done.stderr


def test_missing_lock_is_a_sentence(quick):
    quick.run()
    (quick.root / "requirements.lock").unlink()
    done = quick.run()
    assert (done.returncode, done.stdout) == (7, "")
    assert "error[setup.lock]" in done.stderr and "Traceback" not in done.stderr


def loosen(checkout: Checkout, how: str) -> None:
    """Lets somebody else than root change what root would run, in one of the ways it happens."""
    root = checkout.root
    if how == "checkout of another user":
        for path in (root, *root.rglob("*")):
            os.chown(path, 12345, 12345, follow_symlinks=False)
    elif how == "launcher folder of another user":
        os.chown(root / "launch", 12345, 0)
    elif how == "parent that all can write":
        root.parent.chmod(0o777)
    elif how == "parent of another user":
        os.chown(root.parent, 12345, 0)
    elif how == "checkout that a group can write":
        os.chown(root, 0, 12345)
        root.chmod(0o775)
    elif how == "environment that all can write":
        (root / ".venv").chmod(0o777)
    elif how == "environment of another user":
        os.chown(root / ".venv", 12345, 12345)


WAYS = [
    "checkout of another user",
    "launcher folder of another user",
    "parent that all can write",
    "parent of another user",
    "checkout that a group can write",
]


@pytest.mark.guarantee("G-ROOT-OWN")
@pytest.mark.parametrize("how", WAYS)
def test_root_runs_nothing_that_others_can_change(quick, how):
    if not AS_ROOT:
        # An ordinary user may run what others can write; only root's word is at stake here.
        quick.root.chmod(0o777)
        assert answer(quick.run())["tiny"] == "1.0"
        return
    loosen(quick, how)
    done = quick.run()
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith("error[setup.foreign]: you are root and ") and "nothing was run" in done.stderr
    assert not (quick.root / ".venv").exists()


@pytest.mark.guarantee("G-ROOT-OWN")
def test_root_runs_nothing_once_it_was_set_up_and_then_opened_to_others(quick):
    assert answer(quick.run())["tiny"] == "1.0"
    if not AS_ROOT:
        (quick.root / ".venv").chmod(0o777)
        assert answer(quick.run())["tiny"] == "1.0"
        return
    kept = quick.root.with_name("kept")
    shutil.copytree(quick.root, kept, symlinks=True)
    for how in ("environment that all can write", "environment of another user", *WAYS):
        loosen(quick, how)
        done = quick.run()
        assert (done.returncode, done.stdout) == (4, ""), how
        assert "error[setup.foreign]" in done.stderr
        quick.root.parent.chmod(0o700)
        os.chown(quick.root.parent, 0, 0)
        shutil.rmtree(quick.root)
        shutil.copytree(kept, quick.root, symlinks=True)
        assert answer(quick.run())["tiny"] == "1.0", how


@pytest.mark.guarantee("G-ROOT-OWN")
def test_root_does_not_even_start_a_python_of_somebody_else(quick, tmp_path):
    quick.run()
    python = quick.root / ".venv" / "bin" / "python"
    python.unlink()
    python.write_text(f"#!/bin/sh\n: >{tmp_path}/was-run\n")
    python.chmod(0o755)
    if AS_ROOT:
        os.chown(python, 12345, 0)
        done = quick.run()
        assert done.returncode == 4 and "error[setup.foreign]" in done.stderr
        assert not (tmp_path / "was-run").exists()
    else:
        assert quick.run().returncode == 0 and (tmp_path / "was-run").exists()


def test_sticky_parent_is_no_fault(quick):
    quick.root.parent.chmod(0o1777)
    for _ in ("first", "warm"):
        assert answer(quick.run())["tiny"] == "1.0"
