"""The machine's real time and random ids, behind the ports `Clock` and `Ids`. Reads two kernel clocks, nothing else."""

from __future__ import annotations

import secrets
import time

ID_ALPHABET = "23456789abcdefghjkmnpqrstwxyz"
"""Digits and letters that stay apart when read aloud or copied by hand: no 0 o, 1 i l, u v."""

ID_LENGTHS = {"a": 6}
"""Requests are typed by people and live for a day, so their ids are short (29 bits)."""

ID_LENGTH = 11
"""All other ids: 53 bits, so that a million records share one with a chance below 1 in 10,000."""

_BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# macOS has no CLOCK_BOOTTIME; its CLOCK_MONOTONIC goes on while the machine sleeps (clock_gettime(3) there).


class SystemClock:
    """The kernel's clocks."""

    def utc(self) -> str:
        """Now as RFC 3339, UTC, milliseconds, `Z`."""
        return utc_text(time.time_ns() // 1_000_000)

    def boot_s(self) -> float:
        """Seconds since boot, suspended time included."""
        return time.clock_gettime(_BOOT_CLOCK)


class RandomIds:
    """Ids from the kernel's random source: `e-7k2m4p9qrst`."""

    def new(self, prefix: str) -> str:
        """A fresh id with this one-letter prefix."""
        length = ID_LENGTHS.get(prefix, ID_LENGTH)
        return prefix + "-" + "".join(secrets.choice(ID_ALPHABET) for _ in range(length))


def utc_text(epoch_ms: int) -> str:
    """Milliseconds since 1970 as `2026-12-01T04:36:03.120Z`."""
    seconds, milliseconds = divmod(epoch_ms, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{milliseconds:03d}Z"
