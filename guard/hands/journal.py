"""The head of the log in the machine's own log: journald, else syslog.

What was sent there cannot be changed by whoever writes our log, so a log that was cut or written anew is found out. One
datagram each, never waited for. Source: systemd, "Native Journal Protocol"; syslog(3) and RFC 3164 for /dev/log.
"""

from __future__ import annotations

import os
import time

from guard.errors import CannotRun
from guard.hands.environment import PATH

JOURNAL = "/run/systemd/journal/socket"
SYSLOG = "/dev/log"
IDENTIFIER = "opsagent"
MESSAGE_ID = "5b0a3c9d3f7e4d1e9a3f5c61d0c2e847"
"""Made once for these messages (`systemd-id128 new`), so that they are found whatever they are called."""

_NOTICE = 5
_AUTHPRIV = 10
READ_S = 60.0
MOST_READ = 200_000
"""Heads that are read back, the newest first."""
MOST_NEWEST = 1000
NEWEST_S = 3.0
"""For the newest of one state folder alone, which a writer waits for; other folders of this machine send too."""


class SystemLog:
    """Sends heads. Implements `guard.ports.HeadSink`."""

    def __init__(self, journal: str = JOURNAL, syslog: str = SYSLOG) -> None:
        self._places = ((journal, _journal_message), (syslog, _syslog_message))

    def send(self, state: str, seq: int, sha256: str) -> str:
        """Sends one head to the first place that takes it; why none did, "" when one did. Never raises nor waits."""
        import socket  # 3 ms that a process which only reads need not pay

        faults = []
        for path, message in self._places:
            try:
                with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                    sender.setblocking(False)
                    sender.sendto(message(state, seq, sha256), path)
            except OSError as error:
                faults.append(f"{path}: {error.strerror or error}")
            else:
                return ""
        return "; ".join(faults)

    def newest(self, state: str) -> int:
        """The newest entry of which the journal has a head; 0 when it has none, or cannot say in a few seconds."""
        try:
            return max(heads_sent(state, most=MOST_NEWEST, wait_s=NEWEST_S), default=0)
        except CannotRun:
            return 0


def heads_sent(
    state: str, program: str = "journalctl", *, most: int = MOST_READ, wait_s: float = READ_S
) -> dict[int, str]:
    """What the journal holds of this state folder: number of an entry → hash of its line.

    Only messages that the kernel says came from our uid or root's count.

    Raises:
        CannotRun: there is no journal, or it cannot be read.
    """
    import json
    import shutil
    import subprocess

    found = shutil.which(program, path=PATH) if "/" not in program else program
    if found is None:
        raise CannotRun("there is no journalctl here, so nothing can be compared", hint="opsx audit verify")
    fields = "OPSAGENT_STATE,OPSAGENT_SEQ,OPSAGENT_SHA256,_UID"
    argv = [found, "--quiet", "--no-pager", "--reverse", "-o", "json", f"--output-fields={fields}"]
    argv += ["-n", str(most), f"MESSAGE_ID={MESSAGE_ID}"]
    try:
        done = subprocess.run(argv, capture_output=True, timeout=wait_s, check=False, env={"PATH": PATH}, cwd="/")
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRun(f"the journal cannot be read: {error}", hint="opsx audit verify") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-200:]
        raise CannotRun(f"the journal cannot be read: {said}", hint="opsx audit verify")
    heads: dict[int, str] = {}
    for line in done.stdout.split(b"\n"):
        try:
            entry = json.loads(line)
            seq, sha256 = int(entry["OPSAGENT_SEQ"]), str(entry["OPSAGENT_SHA256"])
            is_ours = entry["OPSAGENT_STATE"] == state and int(entry["_UID"]) in (0, os.geteuid())
        except (ValueError, KeyError, TypeError):
            continue
        if is_ours:
            heads.setdefault(seq, sha256)
    return heads


def _journal_message(state: str, seq: int, sha256: str) -> bytes:
    fields = {
        "MESSAGE": f"log of {state}: entry {seq} is {sha256}",
        "MESSAGE_ID": MESSAGE_ID,
        "PRIORITY": str(_NOTICE),
        "SYSLOG_FACILITY": str(_AUTHPRIV),
        "SYSLOG_IDENTIFIER": IDENTIFIER,
        "OPSAGENT_STATE": state,
        "OPSAGENT_SEQ": str(seq),
        "OPSAGENT_SHA256": sha256,
    }
    return b"".join(_journal_field(name, value) for name, value in fields.items())


def _journal_field(name: str, value: str) -> bytes:
    data = value.encode("utf-8", "surrogateescape")
    if b"\n" not in data:
        return name.encode("ascii") + b"=" + data + b"\n"
    return name.encode("ascii") + b"\n" + len(data).to_bytes(8, "little") + data + b"\n"


def _syslog_message(state: str, seq: int, sha256: str) -> bytes:
    at = time.strftime("%b %e %H:%M:%S")
    text = f"<{_AUTHPRIV * 8 + _NOTICE}>{at} {IDENTIFIER}[{os.getpid()}]: log of {state!a}: entry {seq} is {sha256}"
    return text.encode("ascii", "replace")
