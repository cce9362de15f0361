"""A manager of one unit for a real dbus-daemon: it runs or not, is enabled, disabled or masked, and does as told.

Usage: python -m tests.services.unit_manager SOCKET. Prints READY once it owns org.freedesktop.systemd1; other programs
(systemctl) then speak with it as with the real one.
"""

from __future__ import annotations

import struct
import sys

from tests.hands.stub_manager import CALL, ERROR, REPLY, Bus, Writer

SIGNAL = 4
MANAGER = "org.freedesktop.systemd1"
JOB = "/org/freedesktop/systemd1/job/7"
FILES = {"EnableUnitFiles": "enabled", "DisableUnitFiles": "disabled", "MaskUnitFiles": "masked",
         "UnmaskUnitFiles": "disabled"}  # fmt: skip
RUNS = {"StartUnit": "active", "RestartUnit": "active", "StopUnit": "inactive"}


class Unit:
    def __init__(self) -> None:
        self.active = "active"
        self.file = "enabled"

    def properties(self) -> dict[str, str]:
        return {
            "Id": "nginx.service",
            "LoadState": "masked" if self.file == "masked" else "loaded",
            "ActiveState": self.active,
            "UnitFileState": self.file,
        }


def all_properties(unit: Unit) -> bytes:
    inner = Writer()
    for name, value in unit.properties().items():
        inner.align(8)
        inner.text(name)
        inner.signature("s")
        inner.text(value)
    return struct.pack("<I", len(inner.data)) + bytes(4) + bytes(inner.data)


def text_body(*texts: str) -> bytes:
    body = Writer()
    for text in texts:
        body.text(text)
    return bytes(body.data)


def removed() -> bytes:
    body = Writer()
    body.u32(7)
    for text in (JOB, "nginx.service", "done"):
        body.text(text)
    return bytes(body.data)


def main() -> None:
    bus, unit = Bus(sys.argv[1]), Unit()
    bus.call("Hello")
    wanted = Writer()
    wanted.text(MANAGER)
    wanted.u32(4)
    bus.call("RequestName", "su", bytes(wanted.data))
    owned = 0
    while True:
        kind, serial, fields = bus.receive()
        if kind == REPLY:
            owned += 1
            if owned == 2:
                print("READY", flush=True)
        if kind != CALL:
            continue
        member = fields[3]
        back: dict[int, tuple[str, object]] = {5: ("u", serial), 6: ("s", fields[7])}
        files = next((state for name, state in FILES.items() if member.startswith(name)), None)
        if member == "GetAll":
            bus.send(REPLY, back, "a{sv}", all_properties(unit))
        elif member in RUNS:
            unit.active = RUNS[member]
            bus.send(REPLY, back, "o", text_body(JOB))
            path = "/org/freedesktop/systemd1"
            signal: dict[int, tuple[str, object]] = {
                1: ("o", path), 2: ("s", f"{MANAGER}.Manager"), 3: ("s", "JobRemoved")
            }  # fmt: skip
            bus.send(SIGNAL, signal, "uoss", removed())
        elif files is not None:
            unit.file = files
            with_install = member.startswith("Enable") or member.endswith("InstallInfo")
            flag = struct.pack("<I", 1) if with_install else b""
            # No changes of links to tell of: an empty array, whose elements begin at a multiple of 8.
            empty = struct.pack("<I", 0)
            body = flag + empty
            body += bytes(-len(body) % 8)
            bus.send(REPLY, back, "ba(sss)" if with_install else "a(sss)", body)
        elif member in ("Subscribe", "Unsubscribe", "Reload"):
            bus.send(REPLY, back)
        else:
            print(member, file=sys.stderr, flush=True)
            bus.send(ERROR, {**back, 4: ("s", "org.freedesktop.DBus.Error.UnknownMethod")}, "s", text_body("not known"))


if __name__ == "__main__":
    main()
