"""Whether everything above R0 is stopped here, for a request that is above R0. Reads the state folder; writes nothing.

The log says it: the note in the folder is only its fast answer, and a note that is gone ends no stop. A log of which
entries may be gone cannot say that there is no stop, so it is one itself until a person has looked.

On the hot path (`opsx check`, `opsx hook`): no hash is computed and no record decoded while the log is small. What a
writer finds out by hashes as well (`guard.ledger.log`) is not asked here.
"""

import errno
import os
import stat

from guard.ledger.location import frozen_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LIGHT_BYTES = 8 * 1024 * 1024
"""A log up to this size is gone through as bytes, in about 5 ms; a longer one through its index."""

LOOK = "look: opsx audit verify"
LOST = f"the head of the log is lost, so its last entries may be gone too; {LOOK}, then go on: opsx thaw"
"""Why everything is stopped when nothing says how long the log was."""

_SLOT_BYTES = 256
_KINDS = (b'"kind":"frozen"', b'"kind":"thawed"')
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


def stop_of(path: str) -> str:
    """Why nothing above R0 may begin with the state folder `path`; "" when it may. Never raises.

    The stop's own note; else what is wrong with the log; else the reason in the log's last word about a stop.
    """
    return frozen_note(path) or fault_of(path) or _said_by_log(path)


def fault_of(path: str) -> str:
    """Why the log cannot say whether there is a stop: it was cut, it cannot be read, or its head is lost. Never raises.

    A folder without a log is a beginning (docs/formats.md, "What is missing").
    """
    return cut_of(path) or lost_of(path)


def cut_of(path: str) -> str:
    """Why nothing can be recorded any more: the log is shorter than its head says, or cannot be read. Never raises."""
    try:
        sizes = _sizes(path)
        slots = _slots(path)
        if not any(sizes.values()) and (None in slots or (sizes and not slots)):
            return f"the log is empty, and its head cannot be read; {LOOK}"
        seq, segment, end = max((place for place in slots if place), default=(0, 0, 0))
        if seq and sizes.get(segment, -1) < end:
            return f"the log is shorter than its head says: entry {seq} is cut off; {LOOK}"
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"the log cannot be read: {error.strerror}"
    return ""


def lost_of(path: str) -> str:
    """`LOST` when the log has entries, and its head cannot be read, or the newer slot of it cannot. Never raises.

    A crash tears the slot that is being written, after what it names was durable: the log is longer than the other slot
    says then. One that ends right there lost what the slot that cannot be read was of.
    """
    try:
        sizes = _sizes(path)
        slots = _slots(path)
    except OSError:
        return ""
    known = [place for place in slots if place]
    if not any(sizes.values()):
        return ""
    if not known:
        return LOST
    _, segment, end = max(known)
    at_end = max(sizes) == segment and sizes[segment] == end
    return LOST if at_end and len(known) < len(slots) else ""


def _slots(path: str) -> "list[tuple[int, int, int] | None]":
    """Number, segment and end of the entry that each slot of the head names, None for one that cannot be read.

    Empty slots are left out; none at all when there is no head. Raises OSError.
    """
    try:
        data = _read(os.path.join(path, "log", "head"))
    except FileNotFoundError:
        return []
    slots = (data[at : at + _SLOT_BYTES] for at in range(0, len(data), _SLOT_BYTES))
    return [_place(slot) for slot in slots if slot.strip(b"\0")]


def _place(slot: bytes) -> "tuple[int, int, int] | None":
    fields = {}
    for part in slot.strip().strip(b"{}").split(b","):
        name, _, value = part.partition(b":")
        fields[name] = value
    numbers = [fields.get(name, b"") for name in (b'"seq"', b'"segment"', b'"end"')]
    if fields.get(b'"format"') != b"1" or not all(number.isdigit() for number in numbers):
        return None
    seq, segment, end = map(int, numbers)
    return seq, segment, end


def _sizes(path: str) -> dict[int, int]:
    """Bytes of each segment, by its number. Raises FileNotFoundError: there is no log; OSError."""
    folder = os.path.join(path, "log")
    sizes = {}
    for name in os.listdir(folder):
        if name.endswith(".jsonl") and name[:-6].isdigit():
            info = os.lstat(os.path.join(folder, name))
            if not stat.S_ISREG(info.st_mode):
                raise OSError(errno.EINVAL, f"{name} is not a regular file")
            sizes[int(name[:-6])] = info.st_size
    return sizes


def _said_by_log(path: str) -> str:
    """The reason of the stop that the log ends with, "" when there is none or it was ended."""
    try:
        sizes = _sizes(path)
        if sum(sizes.values()) > LIGHT_BYTES:
            return _said_by_index(path)
        for number in sorted(sizes, reverse=True):
            data = _read(os.path.join(path, "log", f"{number:06d}.jsonl"))
            whole = data.rfind(b"\n") + 1
            stopped, ended = (data.rfind(kind, 0, whole) for kind in _KINDS)
            if stopped > ended:
                return _reason(data[data.rfind(b"\n", 0, stopped) + 1 : data.index(b"\n", stopped)])
            if ended >= 0:
                return ""
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"the log cannot be read: {error.strerror}"
    return ""


def _said_by_index(path: str) -> str:
    from guard.errors import StateError
    from guard.ledger.index import last_of
    from guard.ledger.state import StateFolder

    try:
        (last,) = last_of(StateFolder(path), [("frozen", "thawed")])
    except StateError as error:
        return error.message
    if last is None or last["kind"] != "frozen":
        return ""
    return str(last.get("reason") or "no reason was given")


def _reason(line: bytes) -> str:
    from guard.ledger.carried import record_of
    from guard.ledger.formats import Malformed, decoded_entry

    try:
        return str(record_of(decoded_entry(line + b"\n")).get("reason") or "no reason was given")
    except Malformed:
        return "the entry of the stop cannot be read"


def _read(path: str) -> bytes:
    return b"".join(_parts(path))


def _parts(path: str) -> "Iterator[bytes]":
    fd = os.open(path, _FLAGS)
    try:
        while part := os.read(fd, 1 << 20):
            yield part
    finally:
        os.close(fd)
