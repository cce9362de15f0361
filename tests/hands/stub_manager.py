"""A stub org.freedesktop.systemd1 for a real dbus-daemon: answers the listing of units, notes every other call.

Usage: python stub_manager.py SOCKET NOTES. Prints READY once it owns the name. Speaks just enough of the D-Bus
wire protocol (little endian, specification 0.38) with the standard library.
"""

from __future__ import annotations

import os
import pathlib
import socket
import struct
import sys

UNITS = (
    ("nginx.service", "A web server", "loaded", "failed", "failed"),
    ("ssh.service", "Remote shells", "loaded", "active", "running"),
)
CALL, REPLY, ERROR = 1, 2, 3


class Writer:
    def __init__(self) -> None:
        self.data = bytearray()

    def align(self, size: int) -> None:
        self.data += bytes(-len(self.data) % size)

    def u32(self, value: int) -> None:
        self.align(4)
        self.data += struct.pack("<I", value)

    def text(self, value: str) -> None:
        raw = value.encode()
        self.u32(len(raw))
        self.data += raw + b"\0"

    def signature(self, value: str) -> None:
        self.data += bytes([len(value)]) + value.encode() + b"\0"


def message(
    kind: int, serial: int, fields: dict[int, tuple[str, object]], signature: str = "", body: bytes = b""
) -> bytes:
    if signature:
        fields = {**fields, 8: ("g", signature)}
    header = Writer()
    for code, (variant, value) in fields.items():
        header.align(8)
        header.data.append(code)
        header.signature(variant)
        if variant == "u":
            header.u32(int(str(value)))
        elif variant == "g":
            header.signature(str(value))
        else:
            header.text(str(value))
    start = struct.pack("<cBBBIII", b"l", kind, 0, 1, len(body), serial, len(header.data))
    whole = start + bytes(header.data)
    return whole + bytes(-len(whole) % 8) + body


class Reader:
    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def align(self, size: int) -> None:
        self.at += -self.at % size

    def u32(self) -> int:
        self.align(4)
        self.at += 4
        return int(struct.unpack_from("<I", self.data, self.at - 4)[0])

    def text(self) -> str:
        size = self.u32()
        self.at += size + 1
        return self.data[self.at - size - 1 : self.at - 1].decode()

    def signature(self) -> str:
        size = self.data[self.at]
        self.at += size + 2
        return self.data[self.at - size - 1 : self.at - 1].decode()


class Bus:
    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
        assert self.socket.recv(512).startswith(b"OK"), "authentication failed"
        self.socket.sendall(b"BEGIN\r\n")
        self.serial = 0
        self.pending = b""

    def send(self, kind: int, fields: dict[int, tuple[str, object]], signature: str = "", body: bytes = b"") -> None:
        self.serial += 1
        self.socket.sendall(message(kind, self.serial, fields, signature, body))

    def receive(self) -> tuple[int, int, dict[int, str]]:
        while True:
            if len(self.pending) >= 16:
                body, serial, fields = struct.unpack_from("<III", self.pending, 4)
                size = 16 + fields + -fields % 8 + body
                if len(self.pending) >= size:
                    whole, self.pending = self.pending[:size], self.pending[size:]
                    return whole[1], serial, self.fields(whole, fields)
            more = self.socket.recv(65536)
            if not more:
                sys.exit(0)
            self.pending += more

    @staticmethod
    def fields(whole: bytes, size: int) -> dict[int, str]:
        reader, found = Reader(whole, 16), {}
        while reader.at < 16 + size:
            reader.align(8)
            code = whole[reader.at]
            reader.at += 1
            variant = reader.signature()
            found[code] = (
                reader.signature() if variant == "g" else str(reader.u32()) if variant == "u" else reader.text()
            )
        return found

    def call(self, member: str, signature: str = "", body: bytes = b"") -> None:
        name = "org.freedesktop.DBus"
        fields: dict[int, tuple[str, object]] = {
            1: ("o", "/org/freedesktop/DBus"),
            2: ("s", name),
            3: ("s", member),
            6: ("s", name),
        }
        self.send(CALL, fields, signature, body)


def units() -> bytes:
    inner = Writer()
    for name, text, load, active, sub in UNITS:
        inner.align(8)
        for value in (name, text, load, active, sub, "", "/org/freedesktop/systemd1/unit/" + name.replace(".", "_2e")):
            inner.text(value)
        inner.u32(0)
        inner.text("")
        inner.text("/")
    # The array's content begins at a multiple of 8, its length does not count the padding before it.
    return struct.pack("<I", len(inner.data)) + bytes(4) + bytes(inner.data)


def main() -> None:
    bus, notes = Bus(sys.argv[1]), pathlib.Path(sys.argv[2])
    bus.call("Hello")
    wanted = Writer()
    wanted.text("org.freedesktop.systemd1")
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
        back: dict[int, tuple[str, object]] = {5: ("u", serial), 6: ("s", fields[7])}
        if fields[3] in ("ListUnitsByPatterns", "ListUnitsFiltered", "ListUnits"):
            bus.send(REPLY, back, "a(ssssssouso)", units())
            continue
        with notes.open("a") as file:
            file.write(fields[3] + "\n")
        text = Writer()
        text.text("the stub answers no other call")
        bus.send(ERROR, {**back, 4: ("s", "org.freedesktop.DBus.Error.UnknownMethod")}, "s", bytes(text.data))


if __name__ == "__main__":
    main()
