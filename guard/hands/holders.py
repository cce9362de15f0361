"""Who has files open below a folder. Looks at /proc and changes nothing."""

from __future__ import annotations

import contextlib
import os


def holders(folder: str) -> str:
    """Names one other process that has a file or its current folder there, in words; "" for none, or without /proc."""
    try:
        pids = [name for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]
    except OSError:
        return ""
    below = folder.rstrip("/") + "/"
    for pid in pids:
        for place in _places(pid):
            if place == folder or place.startswith(below):
                return f"process {pid} has {place} open"
    return ""


def _places(pid: str) -> list[str]:
    """Where the links of a process lead; what ends or closes meanwhile is left out."""
    links = [f"/proc/{pid}/cwd"]
    with contextlib.suppress(OSError):
        links += [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
    found = []
    for link in links:
        with contextlib.suppress(OSError):
            found.append(os.readlink(link))
    return found
