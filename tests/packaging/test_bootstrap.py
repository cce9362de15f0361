"""What bootstrap.py decides by itself: places, installers, sentences for what a distribution lacks."""

from __future__ import annotations

import importlib.util
import os
import sys

import pytest

from launch import bootstrap
from tests.packaging.checkouts import ROOT

LOCK = (ROOT / "requirements.lock").read_bytes()


@pytest.mark.parametrize(
    ("os_release", "words"),
    [
        ('ID=ubuntu\nID_LIKE=debian\nNAME="Ubuntu"\n', "apt-get install python3-venv"),
        ("ID=debian\n", "python3.12-venv"),
        ('ID="rhel"\nID_LIKE="fedora"\n', "dnf install python3.12"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "zypper install python312"),
        ("ID=alpine\n", "apk add python3"),
        ("ID=arch\n", "pacman -S python"),
        ("ID=unheard-of\n", "venv package"),
        ("", "venv package"),
    ],
)
def test_missing_venv_module_names_the_distributions_package(tmp_path, os_release, words):
    file = tmp_path / "os-release"
    file.write_text(os_release)
    assert words in bootstrap.venv_package("3.12", file)
    assert "venv package" in bootstrap.venv_package("3.12", tmp_path / "absent")


@pytest.mark.parametrize("module", ["venv", "ensurepip"])
def test_python_without_the_venv_module_is_a_sentence_before_anything_is_made(tmp_path, monkeypatch, module):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else real(name))
    with pytest.raises(bootstrap.SetupError) as caught:
        bootstrap.build_with_pip(tmp_path / "new", tmp_path / "lock", {})
    assert caught.value.code == "setup.venv"
    assert sys.executable in str(caught.value) and "uv is not installed" in str(caught.value)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("settings", "config", "expected"),
    [
        ({}, "", False),
        ({"PIP_INDEX_URL": "x"}, "", True),
        ({"PIP_FIND_LINKS": "x"}, "", True),
        ({"PIP_NO_INDEX": "1"}, "", True),
        ({"PIP_INDEX_URL": "x", "UV_DEFAULT_INDEX": "x"}, "", False),
        ({"PIP_CERT": "x"}, "[global]\ncert = x\n", False),
        ({}, "[global]\nindex-url = x\n", True),
        ({}, "[install]\nfind-links = x\n", True),
        ({}, "no ini file", True),
    ],
)
def test_pip_goes_first_only_where_pip_alone_was_configured(tmp_path, monkeypatch, settings, config, expected):
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")):
            monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text(config)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    assert bootstrap.pip_is_configured() is expected


def test_installers_get_the_users_settings_but_nothing_that_bends_an_environment(monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "mirror")
    monkeypatch.setenv("PIP_RETRIES", "9")
    for name in ("PIP_TARGET", "PIP_USER", "PYTHONPATH", "VIRTUAL_ENV"):
        monkeypatch.setenv(name, "x")
    env = bootstrap.environment_for_tools()
    assert (env["PIP_INDEX_URL"], env["PIP_RETRIES"]) == ("mirror", "9")
    assert not {"PIP_TARGET", "PIP_USER", "PYTHONPATH", "VIRTUAL_ENV"} & set(env)


def test_writable_checkout_keeps_its_environment_inside(tmp_path):
    place = bootstrap.choose_place(tmp_path, ".venv", LOCK)
    assert place.venv == tmp_path / ".venv"
    assert list(tmp_path.glob(".venv*")) == []


def test_cache_place_is_named_by_the_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(bootstrap, "_writable_by_a_file", lambda folder: False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    place = bootstrap.choose_place(tmp_path, ".venv", LOCK)
    key = LOCK.split(b"\n")[0].split()[-1].decode()
    assert place.venv == tmp_path / "home" / ".cache" / "opsagent" / key / "venv"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert bootstrap.choose_place(tmp_path, ".venv", LOCK).venv.is_relative_to(tmp_path / "cache")


def test_failed_renewal_is_tried_again_for_another_lock_or_after_a_while(tmp_path, monkeypatch):
    place = bootstrap.Place(tmp_path / ".venv")
    assert not bootstrap.failed_lately(place, b"one")
    place.failed.write_bytes(b"one")
    now = place.failed.stat().st_mtime
    monkeypatch.setattr(bootstrap.time, "time", lambda: now + 1)
    assert bootstrap.failed_lately(place, b"one")
    assert not bootstrap.failed_lately(place, b"two")
    monkeypatch.setattr(bootstrap.time, "time", lambda: now + bootstrap.RETRY_AFTER_S)
    assert not bootstrap.failed_lately(place, b"one")
    monkeypatch.setattr(bootstrap.time, "time", lambda: now - 5)
    assert not bootstrap.failed_lately(place, b"one")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError, bootstrap.SetupError("x", "y", "z")])
def test_set_up_that_is_stopped_leaves_nothing_half_made(tmp_path, monkeypatch, stop):
    place = bootstrap.Place(tmp_path / ".venv")
    place.venv.mkdir()

    def stopped(place, *rest):
        (place.new / "bin").mkdir(parents=True)
        raise stop

    monkeypatch.setattr(bootstrap, "install", stopped)
    with pytest.raises(stop if isinstance(stop, type) else bootstrap.SetupError):
        bootstrap.build(place, tmp_path / "lock", b"", "")
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".venv")] == [".venv"]


def test_installed_program_drops_pythonpath_and_keeps_its_own_libraries(tmp_path, monkeypatch):
    import opsagent_cli

    libraries = os.path.dirname(opsagent_cli.HERE)
    monkeypatch.chdir(libraries)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}::{libraries}:relative")
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), "/lib/python3.11", libraries, os.path.abspath("relative")])
    monkeypatch.setattr(opsagent_cli, "APP", str(tmp_path / "_app"))
    (tmp_path / "_app").mkdir()
    opsagent_cli.enter()
    assert sys.path == [str(tmp_path / "_app"), "/lib/python3.11", libraries]
