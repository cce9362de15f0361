"""What is put into a folder has its own name there: a copy of `passwd` into /etc is a change of /etc/passwd."""

from __future__ import annotations

import pytest

import core
from guard.judge.landing import critical_put, holds_critical, may_be_critical
from guard.types import Facts, Level


def level_of(command, **kinds):
    """With facts: these places are folders, or links to others."""
    real = {place: place if target is True else target for place, target in kinds.items()}
    facts = Facts(real, dict.fromkeys(real.values(), "dir"))
    return core.check(command, cwd="/srv/app", facts=facts).level


@pytest.mark.parametrize(
    "command",
    [
        "cp x/passwd /etc",
        "mv x/shadow /etc/",
        "cp -t /etc x/passwd",
        "install x/hosts /etc",
        "ln -sf /srv/fstab /etc",
        "cp a b /srv/x/fstab /etc",
        "cp -r d/. /etc",
        "cp -a d/.. /",
        "cp d/* /etc",
        "cp d/p* /etc",
        "cp -r d/.[a-z]* ~",
        "cp d/.bashrc ~",
        "cp d/.bashrc ~root/",
        "cp d/.bashrc /home/ann",
        "mv .config ~",
        "mv hooks .git",
        "cp -r hooks ../.git",
        "cp .bashrc other ./home/",
        "cd /etc && cp /srv/passwd .",
        "find . -name passwd -exec cp {} /etc ';'",
        "ls | xargs cp -t /etc",
    ],
)
def test_critical_file_that_a_folder_gets_is_no_small_change(command):
    assert core.check(command, cwd="/srv/app").level >= Level.R2


@pytest.mark.parametrize(
    "command",
    [
        "cp a.conf /etc",
        "cp *.jpg ~",
        "cp -r site /srv/www",
        "mv a b d/",
        "cp ~/.bashrc /srv/bashrc.old",
        "ln -s /srv/app/current /srv/www/",
        "cp nginx.conf /etc/nginx/",
        "cp README .git/",
    ],
)
def test_ordinary_file_that_a_folder_gets_is_a_small_one(command):
    assert core.check(command, cwd="/srv/app").level == Level.R1


@pytest.mark.parametrize("command", ["cp .bashrc place", "mv .ssh place", "cp -r d/. place", "unzip a.zip -d place"])
def test_folder_is_known_by_what_it_really_is(command):
    assert level_of(command, **{"/srv/app/place": "/home/ann"}) >= Level.R2


def test_file_that_is_there_is_no_folder():
    facts = Facts({"/srv/app/place": "/srv/app/place"}, {"/srv/app/place": "file"})
    assert core.check("cp ~/.bashrc place", cwd="/srv/app", facts=facts).level == Level.R1


@pytest.mark.parametrize(
    "folder", ["/", "/etc", "/var/lib", "~", "~ann", "/root", "/home/ann", "/srv/x/.git", ".config"]
)
def test_folders_with_critical_files_are_known(folder):
    assert holds_critical(folder)
    assert critical_put(folder, [""])


@pytest.mark.parametrize("folder", ["/srv", "/tmp/x", "/opt/app", "~/work", "/home/ann/src"])
def test_other_folders_are_not(folder):
    assert not holds_critical(folder)
    assert critical_put(folder, ["a", "*.conf", ""]) == ""


@pytest.mark.parametrize("mode", ["4755", "2755", "06755", "u+s", "g+s", "u=rwxs", "a+xs", "$MODE"])
def test_program_with_its_owner_s_rights_is_no_small_change(mode):
    found = core.check(f"install -m {mode} a b", cwd="/srv/app")
    assert found.level == Level.R2


@pytest.mark.parametrize("mode", ["755", "0644", "1755", "u+x", "a=r"])
def test_ordinary_mode_of_an_installed_file_is_a_small_one(mode):
    assert core.check(f"install -m {mode} a b", cwd="/srv/app").level == Level.R1


@pytest.mark.parametrize(
    "command",
    ["mv x ~/.config", "mv x ~/.config/", "cp -r x ~/.local", "cp -a x /home/ann/.config", "ln -s /srv/x .git",
     "mv -T x .git", "cp -rT x ~/.config", "mv x /etc/default", "mv x '/home/ann/.config'"],
)  # fmt: skip
def test_what_is_not_there_becomes_the_folder_that_is_put_there(command):
    assert level_of(command) == Level.R2


@pytest.mark.parametrize(
    "command", ["cp x ~/.config", "mv x ~", "mv x ~/", "mv x /home/ann", "mv x y ~/.config", "mv x d", "cp -r x /opt",
                "ln -s /srv/x current", "cp -r x ~/notes"],
)  # fmt: skip
def test_a_file_or_a_folder_that_is_always_there_becomes_nothing_else(command):
    assert level_of(command) == Level.R1


@pytest.mark.parametrize(
    "pattern",
    ["/etc/pass*", "/etc/*.conf", "/etc/[p]asswd", "/etc/ssh*/x", "/etc/s?h/sshd_config", "/*/passwd", "/usr/*/ls",
     "/etc/sys*.conf", "~/.bash*", "~/.*", "~/.s*/config", "/srv/.git/ho*/x", "/home/*/.bashrc", "~/.local/b*/x",
     "/srv/cront*"],
)  # fmt: skip
def test_a_pattern_that_can_name_a_critical_file_counts_as_one(pattern):
    assert may_be_critical(pattern)
    assert level_of(f"sed -i s/a/b/ {pattern}") == Level.R2


@pytest.mark.parametrize(
    "pattern", ["/srv/*", "/srv/*.conf", "/etc/nginx/*.conf", "/var/log/*.gz", "~/*", "~/doc/*.txt", "/opt/*/etc/x",
                "/etc/nginx/sites-*/x"],
)  # fmt: skip
def test_a_pattern_that_names_ordinary_files_stays_small(pattern):
    assert not may_be_critical(pattern)
    assert level_of(f"sed -i s/a/b/ {pattern}") == Level.R1
