"""What becomes of the machine when a unit of systemd, or a script of System V, starts or is asked for over the bus.

A target such as `poweroff.target` is the verb of the same name in another spelling. Lexical: what a unit is really made
of on this machine only the facts could tell. Source: systemd.special(7), systemctl(1), org.freedesktop.login1(5).
"""

from guard.judge.levels import R0, R2, R3
from guard.judge.paths import glob_match
from guard.judge.tables import names, starts

_SUFFIXES = starts("""
    .service .target .socket .device .mount .automount .swap .path .timer .slice .scope
""")
_OFF = names("""
    poweroff halt runlevel0 exit shutdown factory-reset systemd-poweroff systemd-halt systemd-exit
    systemd-factory-reset systemd-factory-reset-request sendsigs
""")
"""Nothing runs any more, and nobody can reach it to change that."""
_AWAY = names("""
    reboot kexec soft-reboot ctrl-alt-del rescue emergency single runlevel1 runlevel2 runlevel3 runlevel4 runlevel5
    runlevel6 default multi-user graphical sleep suspend hibernate hybrid-sleep suspend-then-hibernate umount final
    systemd-reboot systemd-kexec systemd-soft-reboot systemd-suspend systemd-hibernate systemd-hybrid-sleep
    systemd-suspend-then-hibernate system-update system-update-pre initrd-switch-root initrd-cleanup
    initrd-udevadm-cleanup-db debug-shell killprocs umountfs umountroot umountnfs apt-daily-upgrade dnf-automatic
    dnf-automatic-install packagekit-offline-update fwupd-offline-update
""")
"""It goes away for a time or leaves the state it is in; a shell is opened, packages come."""
_MOUNTS = (".mount", ".automount", ".swap")
_METHODS_OFF = names("poweroff poweroffwithflags halt haltwithflags")
"""Methods of login1's and systemd's managers that do not come back; `Exit` is one of systemd's alone."""
_ARGUMENTS_OFF = names("poweroff halt")
"""First argument of ScheduleShutdown."""
_STARTING = names("start restart reload-or-restart force-reload isolate set-default add-wants add-requires")
_WITH_NOW = names("enable reenable")


def is_pattern(unit: str) -> bool:
    """Whether systemctl(1) itself takes the name for a pattern: it does, whatever quotes the shell took off."""
    return any(char in unit for char in "*?[")


def starts_what(unit: str) -> int:
    """Level of starting the unit, beyond what starting an ordinary one is (then R0).

    Args:
        unit: as systemctl(1) takes it: with or without its suffix, a path for a mount, or a pattern, which counts as
            the worst that it can name.
    """
    low = unit.lower()
    if is_pattern(low):
        # A pattern that names nothing but a kind (`*.service`) means the running ones.
        told = low.partition("*")[0] or not low.endswith(_SUFFIXES) or low.endswith(".target")
        return R3 if told and any(_can_name(low, name) for name in _OFF) else R2
    if low.startswith("/") or low.endswith(_MOUNTS):
        return R2
    name = low
    for suffix in _SUFFIXES:
        if low.endswith(suffix):
            name = low[: -len(suffix)]
            break
    return R3 if name in _OFF else R2 if name in _AWAY else R0


def _can_name(pattern: str, name: str) -> bool:
    return any(glob_match(pattern, f"{name}{suffix}") for suffix in ("", ".target", ".service"))


def begins(verb: str, *, now: bool) -> bool:
    """Whether a verb of systemctl(1) starts what it names, here or at every start of the machine; `now`: `--now`."""
    return verb in _STARTING or (now and verb in _WITH_NOW)


def over_the_bus(words: "list[str]") -> int:
    """Level of a call over the bus by what its words say, beyond what a call is (then R0): methods, and units in them.

    Args:
        words: of busctl(1), dbus-send(1), gdbus(1) or qdbus(1), in any order; `string:x` and quotes are taken off.
    """
    texts = [word.partition(":")[2] if word.startswith(("string:", "objpath:")) else word for word in words]
    texts = [text.strip("'\"").lower() for text in texts]
    called = {text.rpartition(".")[2] for text in texts}
    plans = "scheduleshutdown" in called and not _ARGUMENTS_OFF.isdisjoint(texts)
    leaves = "exit" in called and any("systemd1" in text for text in texts)
    level = R3 if plans or leaves or called & _METHODS_OFF else R0
    for text in texts:
        if text.endswith((".target", ".service")):
            level = max(level, starts_what(text))
    return level
