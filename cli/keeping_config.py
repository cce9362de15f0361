"""`[pending]`, `[approve]`, `[log]` and `[sessions]` of the configuration files, as a `guard.keeping.Keeping`.

A setting that makes approvals stricter is never lost by a fault elsewhere: a file that cannot be used but speaks of a
signer, or a list of signers that cannot be trusted, leaves a signer whose signature nobody can make.
"""

import os

from guard.errors import GuardError
from guard.keeping import Keeping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Fail = Callable[[str], Exception]
    """Makes the error for a file from what is wrong with it."""

ALLOWED_SIGNERS = "allowed_signers"
"""Beside the config.toml that names the signer, unless it names another file."""

NOBODY = "(nobody)"
"""The signer when it is not known who it is to be: no principal can be written so (ssh-keygen(1))."""

KEYS = {
    "pending": ("notify",),
    "approve": ("signer", "allowed_signers", "key"),
    "log": ("keep_days", "keep_mb"),
    "sessions": ("keep_days",),
}
MOST_WORDS = 64
MOST_DAYS = 36_500
LEAST_MB = 32
"""Two segments: one that is full and the one that is written."""
MOST_MB = 1_000_000


class Found:
    """Collects what files say. Of several the first signer counts, the last notice, and the limit that keeps more."""

    def __init__(self, read: "Callable[[str], bytes]") -> None:
        """Args: read: gives a file's bytes when nobody else could have written it, and raises otherwise."""
        self._read = read
        self.value = Keeping()
        self.problems: list[str] = []
        self._signer_from = ""
        self._limits: dict[str, int] = {}

    def checked(self, table: "dict[str, Any]", path: str, fail: "Fail") -> "Callable[[], None]":
        """Checks the four tables of one file; what comes back makes them count. Raises what `fail` makes."""
        pending, approve, log, sessions = (_table(table, name, fail) for name in KEYS)
        notify = pending.get("notify", [])
        if not _are_words(notify):
            raise fail(
                f"[pending] notify must be a list of 1 to {MOST_WORDS} texts: a program's full path and its words"
            )
        signer = approve.get("signer", "")
        if not isinstance(signer, str) or (signer and not _is_principal(signer)):
            raise fail("[approve] signer must be a principal of the allowed_signers file, such as alice@example.org")
        places = {key: approve.get(key, "") for key in ("allowed_signers", "key")}
        for key, place in places.items():
            if not isinstance(place, str) or (place and not os.path.isabs(place)):
                raise fail(f"[approve] {key} must be an absolute path")
        if not signer and any(places.values()):
            raise fail("[approve] names no signer: set signer too")
        days, size = log.get("keep_days", 0), log.get("keep_mb", 0)
        if type(days) is not int or not 0 <= days <= MOST_DAYS:
            raise fail(f"[log] keep_days must be a whole number up to {MOST_DAYS:,}; 0 keeps everything")
        if type(size) is not int or (size and not LEAST_MB <= size <= MOST_MB):
            raise fail(f"[log] keep_mb must be {LEAST_MB} to {MOST_MB:,}; 0 keeps everything")

        limits = {name: log[name] for name in KEYS["log"] if name in log}
        if "keep_days" in sessions:
            age = sessions["keep_days"]
            if type(age) is not int or not 0 <= age <= MOST_DAYS:
                raise fail(f"[sessions] keep_days must be a whole number up to {MOST_DAYS:,}; 0 keeps all of them")
            limits["session_days"] = age

        def count() -> None:
            if signer:
                self._sign(signer, places["allowed_signers"], places["key"], path)
            for name, limit in limits.items():
                # Of several limits the one that keeps more: what is gone is gone for good.
                known = self._limits.setdefault(name, limit)
                self._limits[name] = max(known, limit) if known and limit else 0
            self.value = self.value.replace(notify=tuple(notify) or self.value.notify, **self._limits)

        return count

    def unusable(self, path: str) -> None:
        """A file that is not used: no conversation goes, since it may say so, and if it speaks of a signer, approvals
        need a signature that nobody can make."""
        self._limits["session_days"] = 0
        self.value = self.value.replace(session_days=0)
        try:
            # O_NONBLOCK: it may be unusable because it is a FIFO, and opening one must not hang.
            with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
                speaks = b"signer" in (file.read(1 << 20) or b"")
        except OSError:
            speaks = False
        if speaks and not self._signer_from:
            self.problems.append(f"{path}: it speaks of a signer, so no approval counts until it can be used")
            self.value = self.value.replace(signer=NOBODY, allowed_signers="", signing_key="")
            self._signer_from = path

    def _sign(self, signer: str, place: str, key: str, path: str) -> None:
        if self._signer_from:
            if signer != self.value.signer:
                self.problems.append(f"{path}: its signer does not count; {self._signer_from} names one already")
            elif key:
                self.value = self.value.replace(signing_key=key)  # whose key it is, is the user's own affair
            return
        place = place or os.path.join(os.path.dirname(path), ALLOWED_SIGNERS)
        allowed = ""
        try:
            allowed = self._read(place).decode()
        except (OSError, ValueError, GuardError) as error:
            said = error.message if isinstance(error, GuardError) else f"{place}: {error}"
            self.problems.append(f"{said}; no approval counts until it can be used")
        self.value = self.value.replace(signer=signer, allowed_signers=allowed, signing_key=key)
        self._signer_from = path


def _table(whole: "dict[str, Any]", name: str, fail: "Fail") -> "dict[str, Any]":
    table = whole.get(name, {})
    if not isinstance(table, dict):
        raise fail(f"[{name}] must be a table")
    unknown = sorted(table.keys() - set(KEYS[name]))
    if unknown:
        raise fail(f"[{name}] has no setting {unknown[0]!r}; there are {', '.join(KEYS[name])}")
    return table


def _are_words(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= MOST_WORDS
        and all(isinstance(word, str) and "\0" not in word for word in value)
        and (not value or os.path.isabs(value[0]))
    )


def _is_principal(text: str) -> bool:
    """One principal, literally: no blank, no list, no pattern."""
    return text.isascii() and text.isprintable() and not set(text) & set(" ,*?!\"'()#") and not text.startswith("-")
