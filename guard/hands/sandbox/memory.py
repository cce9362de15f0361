"""What a process that waits for the supervisor's answer has in its memory."""

from __future__ import annotations

import struct

FAMILIES = {1: "AF_UNIX", 2: "AF_INET", 10: "AF_INET6", 16: "AF_NETLINK", 17: "AF_PACKET", 38: "AF_ALG", 40: "AF_VSOCK"}
"""Address families by number, as they are shown."""


def signed(value: int) -> int:
    """A register's low word as the int that the kernel takes it for."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def memory(pid: int, address: int, size: int) -> bytes | None:
    """Up to `size` bytes; None when they cannot be read."""
    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as file:
            file.seek(address)
            return file.read(size)
    except (OSError, OverflowError, ValueError):
        return None


def string(pid: int, address: int) -> str:
    """The text up to its NUL, at most 4,096 bytes."""
    # A string may end just before an unmapped page: read up to the page's end, then the next one.
    text = b""
    while len(text) < 4096 and b"\0" not in text:
        more = memory(pid, address + len(text), 4096 - ((address + len(text)) & 0xFFF))
        if not more:
            break
        text += more
    return text.partition(b"\0")[0].decode("utf-8", "replace")


def address_text(raw: bytes) -> str:
    """A socket address in words."""
    if len(raw) < 2:
        return ""
    family = struct.unpack_from("=H", raw)[0]
    if family == 1:
        name = raw[2:]
        if name[:1] == b"\0":
            return "@" + name[1:].decode("utf-8", "replace").rstrip("\0")
        return name.partition(b"\0")[0].decode("utf-8", "replace")
    if family in (2, 10) and len(raw) >= 4:
        return f"{FAMILIES[family]} port {struct.unpack_from('!H', raw, 2)[0]}"
    return FAMILIES.get(family, str(family))


def sent_bytes(pid: int, address: int, size: int, most: int) -> bytes | None:
    """A buffer that is sent, whole; None when it is longer than `most` or cannot be read."""
    data = memory(pid, address, size) if 0 < size <= most else None
    return data if data is not None and len(data) == size else None


def message_parts(pid: int, header: int, most: int) -> tuple[bytes, bytes] | None:
    """(address, data) of a struct msghdr; None for one with control data, too long, or out of reach."""
    raw = memory(pid, header, 56)
    if raw is None or len(raw) < 56:
        return None
    name, name_size, vector, count, _, control_size, _ = struct.unpack_from("=QI4xQQQQi", raw)
    if control_size or not 0 < count <= 64 or name_size > 128:
        return None
    entries = sent_bytes(pid, vector, 16 * count, 1024)
    if entries is None:
        return None
    data = b""
    for start, size in struct.iter_unpack("=QQ", entries):
        part = sent_bytes(pid, start, size, most - len(data)) if size else b""
        if part is None:
            return None
        data += part
    if not name:
        return b"", data
    address = sent_bytes(pid, name, name_size, 128)
    return None if address is None else (address, data)
