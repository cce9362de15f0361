"""Who moves, replaces, hides or merges into a folder does it to the critical files in it.

And files that mean something by being there at all.
"""

from __future__ import annotations

import pytest

import core
from guard.judge.landing import taken_away
from guard.types import Facts, Level

UNUSABLE = (
    "/", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib64", "/usr/bin", "/usr/lib", "/boot", "/dev", "/run",
    "/lib/x86_64-linux-gnu", "/usr/lib/systemd",
)  # fmt: skip
LEANED_ON = ("/var", "/root", "/home", "/home/ann", "/var/lib", "/usr/local", "/usr/share", "~", "~ann", "/tmp")
ORDINARY = ("/srv", "/opt/app", "/srv/app/x", "/home/ann/notes", "~/notes", "/var/www", "/mnt/x", "x", "/tmp/x")
MOVES = (
    "mv {} /x", "mv -t /x {}", "mv {}/ /x/", "mv /srv/../{} /x", "mv /.//{} /x", "sudo mv {} /x", "mv a {} /x",
    "d={}; mv $d /x", "mv -n '{}' /x", "busybox mv {} /x", "bash -c 'mv {} /x'", "trash {}", "rmdir {}",
    "mv --exchange a {}", "mv --exchange {} a", "mv -T a {}", "rename a b {}", "for d in {}; do mv $d /x; done",
)  # fmt: skip


def level_of(command, **kinds):
    facts = Facts(kinds, dict.fromkeys(kinds.values(), "dir"))
    return core.check(command, cwd="/srv/app", facts=facts).level


@pytest.mark.parametrize("move", MOVES)
def test_what_the_system_cannot_run_without_is_not_moved_unforced(move):
    odd = {place: level_of(move.format(place)) for place in UNUSABLE}
    assert {place: level for place, level in odd.items() if level != Level.R3} == {}


@pytest.mark.parametrize("move", MOVES)
def test_folder_with_critical_files_is_no_small_thing_to_move(move):
    places = [place for place in LEANED_ON if place[0] != "~" or ("/{}" not in move and "'" not in move)]
    low = {place: level_of(move.format(place)) for place in places}
    assert {place: level for place, level in low.items() if level < Level.R2} == {}


@pytest.mark.parametrize("place", ORDINARY)
def test_ordinary_folder_is_moved_as_before(place):
    assert level_of(f"mv {place} /srv/y") == Level.R1


@pytest.mark.parametrize("pattern", ["/*", "/e*", "/[e]tc", "/lib*", "/u?r", "/usr/*", "/{etc,opt}"])
def test_pattern_that_can_name_such_a_folder_counts_as_it(pattern):
    assert level_of(f"mv {pattern} /x") == Level.R3


@pytest.mark.parametrize("pattern", ["/home/*", "/va[r]", "/hom?"])
def test_pattern_that_can_name_homes_counts_as_them(pattern):
    assert taken_away(pattern) == 2


@pytest.mark.parametrize("pattern", ["/srv/*", "/var/www/*", "*.conf", "/opt/?"])
def test_pattern_in_an_ordinary_place_does_not(pattern):
    assert taken_away(pattern) == 0


@pytest.mark.parametrize("command", ["cd / && mv etc x", "cd /usr && mv bin x", "cd /srv && mv ../usr x"])
def test_folder_is_known_from_where_the_text_is(command):
    assert level_of(command) == Level.R3


@pytest.mark.parametrize(
    "command",
    [
        "rm /bin", "unlink /lib64", "rm /lib64/ld-linux-x86-64.so.2", "mv /lib/x86_64-linux-gnu/libc.so.6 /x",
        "ln -sfn x /bin", "ln -sfT x /lib", "ln --symbolic --force --no-dereference x /usr/sbin",
        "cp -rT --remove-destination x /bin", "install -T x /sbin", "mount --bind x /etc", "mount -t tmpfs x /usr",
        "mount -t overlay -o lowerdir=/a x /bin/", "chmod -R 000 /", "chmod -R 755 /usr", "chown -R bob /etc",
        "chgrp --recursive g /lib", "setfacl -R -m u:x:r /boot", "chattr -R +i /etc",
    ],
)  # fmt: skip
def test_what_leaves_the_system_unusable_is_refused(command):
    assert level_of(command) == Level.R3


@pytest.mark.parametrize(
    "command",
    [
        "cp -rT dd /etc", "cp -rT hh /root", "cp -aT hh ~", "cp -aT x /home/ann", "cp -rT x /", "mv -T x ~/.config",
        "rsync -a x/ /etc/", "rsync -a x/ /root", "rsync -a x/ ~/", "rsync x/passwd /etc", "rsync -a etc /",
        "rsync -aR etc/passwd /", "rsync -aR /srv/./etc/passwd /", "cp --parents etc/passwd /",
        "cp -r --parents etc/ssh /", "scp h:passwd /etc", "scp -r h:x/ /etc", "tar xf a -C /etc/", "tar xf a -C ~",
        "tar xf a -C /var/lib", "unzip a -d ~", "unzip a.zip -d /etc", "7z x a.7z -o/root", "unrar x a.rar /etc/",
        "cpio -p / < names", "wget -P /etc http://localhost/passwd", "wget -P ~ http://localhost/.bashrc",
        "wget -r -P /etc http://localhost/x/", "cd ~ && wget http://localhost/.bashrc",
        "curl --output-dir /etc -O http://localhost/passwd", "cd /etc && curl -O http://localhost/passwd?x=1",
        "curl -OJ --output-dir ~ http://localhost/x", "curl --output-dir /etc -o passwd http://localhost/x",
        "install -d -m 000 /etc", "install -d /root", "install -d /tmp", "chmod 000 /etc", "chown bob /",
        "mount --bind x /home/ann",
    ],
)  # fmt: skip
def test_what_is_brought_into_or_done_to_such_a_folder_is_no_small_change(command):
    assert level_of(command) == Level.R2


@pytest.mark.parametrize(
    "command",
    [
        "cp -rT dd /srv/y", "cp -aT x /opt/app", "rsync -a x/ /srv/y/", "rsync -a a b", "rsync a.conf /etc/",
        "cp --parents a/b /srv", "scp h:a.conf /etc", "tar xf a -C /srv", "unzip a.zip -d d", "ln -sfn v2 current",
        "ln -sfT v2 /srv/current", "wget -P /srv http://localhost/passwd", "wget http://localhost/x",
        "curl --output-dir /srv -O http://localhost/passwd", "curl -O http://localhost/x", "install -d -m 755 /srv/y",
        "install -d ~/x", "mkdir -p /etc", "install -T a b",
    ],
)  # fmt: skip
def test_ordinary_folder_gets_things_as_before(command):
    assert level_of(command) == Level.R1


@pytest.mark.parametrize(
    "command",
    ["mount -o remount,rw /", "mount /dev/sda1 /boot", "mount -t proc proc /proc", "mount /usr",
     "mount -t devtmpfs udev /dev", "chmod -R 755 /srv", "restorecon -R /etc", "chmod 755 /usr"],
)  # fmt: skip
def test_mount_and_mode_of_every_day_stay_where_they_were(command):
    assert level_of(command) == Level.R2


def test_tree_that_is_merged_into_a_link_lands_where_that_leads():
    assert level_of("cp -rT dd place", **{"/srv/app/place": "/etc"}) == Level.R2
    assert level_of("cp -rT dd place", **{"/srv/app/place": "/srv/y"}) == Level.R1


def test_folder_that_a_link_above_leads_to_is_moved_there():
    assert level_of("mv r/etc x", **{"/srv/app/r/etc": "/etc"}) == Level.R3
    assert level_of("mv r/root x", **{"/srv/app/r/root": "/root"}) == Level.R2
    assert level_of("rm current", **{"/srv/app/current": "/home/ann"}) == Level.R1


@pytest.mark.parametrize(
    "path",
    ["/etc/nologin", "/run/nologin", "/var/run/nologin", "/etc/hosts.deny", "/etc/hosts.allow", "/etc/securetty",
     "/forcefsck", "/fastboot", "/.autorelabel", "/system-update", "/etc/cron.allow", "/etc/cron.deny", "/etc/at.allow",
     "/etc/at.deny", "/etc/ld.so.preload", "/etc/environment", "/etc/pam.conf", "/etc/sudo.conf",
     "/etc/ssh/sshd_not_to_be_run", "/etc/gitconfig", "/etc/aliases"],
)  # fmt: skip
@pytest.mark.parametrize("way", ["touch {}", ": > {}", "echo x >> {}", "cp x {}", "tee {} < x", "rm {}", "ln -s x {}"])
def test_file_that_locks_out_or_runs_by_being_there_is_critical(path, way):
    assert level_of(way.format(path)) == Level.R2


@pytest.mark.parametrize(
    "command",
    [": > f", "> f", "true > f", "cat /dev/null > f", "cp /dev/null f", "dd if=/dev/null of=f", "tee f < /dev/null",
     "printf '' > f", "echo -n > f"],
)  # fmt: skip
def test_file_that_is_emptied_is_a_file_that_is_edited(command):
    assert level_of(command) == Level.R1


@pytest.mark.parametrize("command", ["patch -p1 < p", "patch -d /etc -p1 < p", "patch -i p", "patch < p"])
def test_patch_that_names_its_files_itself_cannot_be_saved(command):
    assert level_of(command) == Level.R2


@pytest.mark.parametrize("command", ["patch f < p", "patch f p", "patch -o f < p"])
def test_patch_of_a_named_file_saves_it(command):
    found = core.check(command, cwd="/srv/app")
    assert (found.level, [item.object for item in found.snapshot_plan]) == (Level.R1, ["/srv/app/f"])
