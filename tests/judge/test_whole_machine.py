"""What ends or changes the whole machine has one level in every spelling: verb, unit, run level, call over the bus."""

from __future__ import annotations

import pytest

import core
from guard.judge.units import over_the_bus, starts_what
from guard.types import Level

OFF = ("poweroff", "halt", "shutdown", "exit", "factory-reset", "runlevel0")
AWAY = (
    "reboot", "kexec", "soft-reboot", "rescue", "emergency", "suspend", "hibernate", "hybrid-sleep", "sleep", "umount",
    "suspend-then-hibernate", "ctrl-alt-del", "runlevel1", "runlevel6", "initrd-switch-root", "multi-user", "final",
)  # fmt: skip
SPELLINGS = (
    "systemctl start {}.target", "systemctl start {}", "systemctl start -- {}.target", "systemctl isolate {}",
    "systemctl --no-block start {}.target", "systemctl start {}.target --no-block", "systemctl restart {}.target",
    "systemctl reload-or-restart {}.target", "systemctl start nginx {}.target", "systemctl set-default {}.target",
    "systemctl enable --now {}.target", "systemctl start '{}.targe[t]'", "systemctl add-wants basic.target {}.target",
    "u={}; systemctl start $u.target", "sudo systemctl -q start {}.target", "service {} start", "rc-service {} start",
    "for u in {}.target; do systemctl start $u; done", "systemctl start {}.target || true", "systemctl --user start {}",
)  # fmt: skip


def level_of(command):
    return core.check(command, cwd="/srv/app").level


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_unit_that_ends_everything_is_as_high_as_the_verb(spelling):
    assert {name: level_of(spelling.format(name)) for name in OFF} == dict.fromkeys(OFF, level_of("poweroff"))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_unit_that_takes_the_machine_away_is_as_high_as_the_verb(spelling):
    low = {name: level_of(spelling.format(name)) for name in AWAY}
    assert {name: level for name, level in low.items() if level < level_of("reboot")} == {}


@pytest.mark.parametrize(
    "name", ["poweroff", "halt", "exit", "reboot", "kexec", "suspend", "hibernate", "hybrid-sleep", "soft-reboot"]
)
def test_service_behind_a_target_counts_as_the_target(name):
    assert starts_what(f"systemd-{name}.service") == starts_what(f"systemd-{name}") == starts_what(f"{name}.target")


@pytest.mark.parametrize(
    "unit", ["nginx", "nginx.service", "app.target", "docker.socket", "app@one", "getty@tty1.service", "power-meter",
             "haltung.service", "backup.timer"],
)  # fmt: skip
def test_ordinary_unit_that_starts_is_an_ordinary_start(unit):
    assert level_of(f"systemctl start {unit}") == Level.R1


@pytest.mark.parametrize("verb", ["start", "restart", "try-restart", "reload", "try-reload-or-restart"])
@pytest.mark.parametrize("pattern", ["*", "[s]sh", "ss?.service", "*.service", "app-*", "ngin[xy]"])
def test_pattern_that_systemd_reads_is_no_unit_that_the_text_names(verb, pattern):
    quoted = level_of(f"systemctl {verb} '{pattern}'")
    assert quoted >= Level.R2
    assert quoted >= level_of(f"systemctl {verb} {pattern}")
    assert level_of(f"service '{pattern}' restart") >= Level.R2
    assert level_of(f"systemctl {verb} \\{pattern}") >= Level.R2


@pytest.mark.parametrize("pattern", ["*", "*.target", "power*", "pow?roff.target", "hal[t]", "shut*"])
def test_pattern_that_can_name_what_ends_everything_counts_as_that(pattern):
    assert level_of(f"systemctl start '{pattern}'") == Level.R3


@pytest.mark.parametrize("pattern", ["*", "nginx*"])
def test_pattern_in_a_read_stays_a_read(pattern):
    assert level_of(f"systemctl status '{pattern}'") == Level.R0


@pytest.mark.parametrize("unit", ["srv.mount", "srv.automount", "swapfile.swap", "/srv"])
def test_mount_that_a_unit_makes_is_as_high_as_mount(unit):
    assert level_of(f"systemctl start {unit}") == level_of(f"systemctl restart {unit}") == level_of("mount /dev/x /srv")


LOGIN = "org.freedesktop.login1"
SYSTEMD = "org.freedesktop.systemd1"


@pytest.mark.parametrize(
    "command",
    [
        f"busctl call {LOGIN} /org/freedesktop/login1 {LOGIN}.Manager PowerOff b false",
        f"busctl --system call {LOGIN} /org/freedesktop/login1 {LOGIN}.Manager HaltWithFlags t 0",
        f"busctl call {LOGIN} /org/freedesktop/login1 {LOGIN}.Manager ScheduleShutdown st poweroff 1",
        f"busctl call {SYSTEMD} /org/freedesktop/systemd1 {SYSTEMD}.Manager StartUnit ss poweroff.target replace",
        f"busctl call {SYSTEMD} /org/freedesktop/systemd1 {SYSTEMD}.Manager Exit",
        f"dbus-send --system --dest={LOGIN} /org/freedesktop/login1 {LOGIN}.Manager.PowerOff boolean:true",
        f"dbus-send --system --dest={SYSTEMD} /x {SYSTEMD}.Manager.StartUnit string:halt.target string:replace",
        f"gdbus call --system -d {LOGIN} -o /org/freedesktop/login1 -m {LOGIN}.Manager.PowerOff true",
        f"qdbus --system {LOGIN} /org/freedesktop/login1 {LOGIN}.Manager.PowerOff true",
        "loginctl poweroff", "loginctl halt", "init 0", "telinit 0", "telinit -t 5 0", "shutdown", "shutdown +5",
        "shutdown -h now", "shutdown -H now", "shutdown --halt", "shutdown --power", "shutdown -r -h now",
        "shutdown -rP now", "shutdown -c -P", "reboot -p", "reboot -fp", "reboot --hal", "halt", "poweroff -f",
        "halt -w -f",
    ],
)  # fmt: skip
def test_machine_that_goes_off_is_refused_in_every_spelling(command):
    assert level_of(command) == Level.R3


@pytest.mark.parametrize(
    "command",
    [
        f"busctl call {LOGIN} /org/freedesktop/login1 {LOGIN}.Manager Reboot b false",
        f"busctl call {LOGIN} /org/freedesktop/login1 {LOGIN}.Manager ScheduleShutdown st reboot 1",
        f"busctl call {SYSTEMD} /x {SYSTEMD}.Manager StartUnit ss nginx.service replace",
        f"dbus-send --system --dest={LOGIN} /x {LOGIN}.Manager.Suspend boolean:true",
        "loginctl reboot", "loginctl suspend", "init 6", "init 1", "telinit q", "shutdown -r now", "shutdown --reb",
        "shutdown -k now", "reboot", "reboot -f", "poweroff --reboot", "halt --reb",
    ],
)  # fmt: skip
def test_machine_that_comes_back_is_r2(command):
    assert level_of(command) == Level.R2


@pytest.mark.parametrize(
    "command",
    ["shutdown --help", "shutdown --show", "poweroff --help", f"busctl introspect {LOGIN} /x {LOGIN}.Manager PowerOff",
     f"busctl status {LOGIN}"],
)  # fmt: skip
def test_what_only_asks_about_it_reads(command):
    assert level_of(command) == Level.R0


def test_call_over_the_bus_is_read_by_whole_names():
    assert over_the_bus(["org.x.Manager.Off"]) == over_the_bus(["string:powerofficer"]) == 0


@pytest.mark.parametrize(
    "command",
    ["kill -s RTMIN+4 1", "kill -SIGRTMIN+3 1", "kill -RTMIN+14 1", "kill -38 1", "kill -n 47 1", "kill -9 -1",
     "killall5", "killall5 -9", "pkill -9 .", "pkill ''", "echo o > /proc/sysrq-trigger", "tee /proc/sysrq-trigger < f",
     "cp f /proc/sysrq-trigger"],
)  # fmt: skip
def test_signal_or_letter_that_ends_everything_is_no_ordinary_one(command):
    assert level_of(command) == Level.R3


@pytest.mark.parametrize(
    "command",
    ["kill -TERM 1", "kill -38 1234", "kill 1", "pkill nginx", "pkill -f 'a.*'", "killall x", "echo 1 > /proc/sys/x",
     "virsh reboot guest"],
)  # fmt: skip
def test_signal_of_every_day_stays_r2(command):
    assert level_of(command) == Level.R2
