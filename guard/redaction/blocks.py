# ruff: noqa: E501 - one expression is one line
"""Finds secrets that fill several lines: private keys, vaults, `data:` of Kubernetes secrets, inline credentials.

A block may begin in one piece of a stream and end in another, so what is open at the end is handed on as a `State`.
"""

from __future__ import annotations

import binascii

from guard.redaction.lazy import Pattern
from guard.redaction.values import MASK

State = tuple[str, bool, int]
"""(kind of block that is open or "", whether its mask was already written, indent of its key)."""
CLOSED: State = ("", False, 0)
Cuts = list[tuple[int, int, str]]
"""(start, end, replacement)."""

GATES = (
    "PRIVATE KEY",
    "OpenVPN ",
    "SSH2 ENCRYPTED",
    "$ANSIBLE_VAULT",
    "data:",
    "Data:",
    'ata": {',
    "<auth-user-pass>",
    "Private-Lines",
)
_START = Pattern(
    r"(?P<pem>-{4,5} ?BEGIN (?:(?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?|OpenVPN (?:Static key|tls-crypt-v2)[^-\n]{0,32}"
    r"|SSH2 ENCRYPTED PRIVATE KEY) ?-{4,5})"
    r"|(?P<vault>\$ANSIBLE_VAULT;[^\n]{1,80})"
    r"|(?P<data>^[ \t]*(?:- )?[\"']?(?:data|binaryData)[\"']?:[ \t]*\{?[ \t]*$)"
    r"|(?P<strings>^[ \t]*[\"']?stringData[\"']?:[ \t]*\{?[ \t]*$)"
    r"|(?P<login><auth-user-pass>)"
    r"|(?P<putty>^Private-Lines:[ \t]*\d+[ \t]*$)",
    8,
)
_END_PEM = Pattern(r"-{4,5} ?END [A-Za-z0-9 -]{1,60}-{4,5}")
_BODY = Pattern(r"[A-Za-z0-9+/=]+\Z")
_RUN = Pattern(r"[A-Za-z0-9+/=]{24,}")
_LAST = Pattern(r"[A-Za-z0-9+/]{1,64}={0,2}[\"',\\]{0,3}\s*$")
_HEADER = Pattern(r"(?:Proc-Type|DEK-Info|Comment|Version|Hash|Charset|X-[\w-]+|Subject)\s*:", 2)
_HEX = Pattern(r"[0-9a-fA-F]{2,}\Z")
_ENTRY = Pattern(r"[ \t]*(?:- )?[\"']?[\w.\-/]{1,253}[\"']?:[ \t]*[\"']?([^\"'\n]+?)[\"']?,?[ \t]*$")
_TRIM = " \t\r\"'\\,+|>#;*"


def blocks(t: str, begin: int, state: State, cuts: Cuts) -> State:
    """Adds what must be cut in `t[begin:]` and returns the block that is open at its end. Linear in the text."""
    at = begin
    kind, masked, indent = state
    while True:
        if kind:
            at, kind, masked = _inside(t, at, kind, masked, indent, cuts)
            if kind:
                return kind, masked, indent
        match = _START.re.search(t, at)
        if not match:
            return CLOSED
        kind, masked, at = match.lastgroup or "", False, match.end()
        eol = t.find("\n", at)
        eol = len(t) if eol < 0 else eol
        indent = 0
        if kind == "pem":
            close = _END_PEM.re.search(t, at, eol)
            stop = close.start() if close else eol
            if t[at:stop].strip(_TRIM + "n"):
                quote = -1 if close else t.find('"', at, eol)
                stop = quote if quote > at else stop
                cuts.append((at, stop, MASK))
                masked = True
            if close:
                kind, at = "", close.end()
                continue
        elif kind in ("data", "strings"):
            line = match[0]
            indent = len(line) - len(line.lstrip())
        elif kind == "login":
            at = match.end()
        if eol == len(t):
            return kind, masked, indent
        at = eol + 1


def _inside(t: str, at: int, kind: str, masked: bool, indent: int, cuts: Cuts) -> tuple[int, str, bool]:
    """Walks the lines of an open block from `at`; returns where it stopped, the kind if still open, whether masked."""
    size = len(t)
    while at < size:
        eol = t.find("\n", at)
        end = size if eol < 0 else eol
        line = t[at:end]
        after = min(size, end + 1)
        if kind == "yaml":
            body = line.strip()
            if body and (len(line) - len(line.lstrip()) <= indent or body.startswith(("-----BEGIN", "$ANSIBLE_VAULT"))):
                return at, "", masked
            if body and body != MASK:
                first = at + len(line) - len(line.lstrip())
                cuts.append((first, first + len(body), MASK))
        elif kind in ("data", "strings"):
            body = line.strip()
            if body and (len(line) - len(line.lstrip()) <= indent or body[0] == "}"):
                return at, "", masked
            match = _ENTRY.re.match(line)
            if (
                match
                and match[1] != MASK
                and (_base64_secret(match[1]) if kind == "data" else match[1][0] not in "$<{|>")
            ):
                cuts.append((at + match.start(1), at + match.end(1), MASK))
        elif kind == "login":
            if "</auth-user-pass>" in line:
                return after, "", masked
            if line.strip() and line.strip() != MASK:
                cuts.append((at, end, MASK))
        else:
            closed, masked = _key_line(line, at, end, after, kind, masked, cuts)
            if closed:
                return (after if closed == 2 else at), "", masked
        at = after
    return size, kind, masked


def _key_line(line: str, at: int, end: int, after: int, kind: str, masked: bool, cuts: Cuts) -> tuple[int, bool]:
    """One line of a key or vault. Returns (0 open, 1 closed before this line, 2 closed with it; masked)."""
    body = line.strip(_TRIM)
    if not body:
        return 0, masked
    if kind == "pem" and (close := _END_PEM.re.search(line)):
        if body[:4] != "----" and (run := _RUN.re.search(line, 0, close.start())):
            cuts.append((at + run.start(), at + close.start(), MASK))
        return 2, masked
    if kind == "pem" and (start := _START.re.search(line)):
        # The key before was cut off; what begins here is another block.
        cuts.extend((at + run.start(), at + run.end(), MASK) for run in _RUN.re.finditer(line, 0, start.start()))
        return 1, masked
    if body == MASK.strip(_TRIM):
        if masked:
            cuts.append((at, after, ""))
        return 0, True
    whole = (_HEX if kind == "vault" else _BODY).re.match(body)
    if body.endswith("\\n") and not whole:
        whole = _BODY.re.match(body[:-2])
    if whole:
        cuts.append((at, after, "") if masked else (at + len(line) - len(line.lstrip()), end, MASK))
        return 0, True
    if kind != "pem":
        return 1, masked
    runs = list(_RUN.re.finditer(line))
    if runs:
        cuts.extend((at + run.start(), at + run.end(), MASK) for run in runs)
        return 0, masked
    if _HEADER.re.match(body) or MASK in line:
        return 0, masked
    if last := _LAST.re.search(line[-80:]):
        base = at + max(0, len(line) - 80)
        cuts.append((base + last.start(), base + last.start() + len(last[0].rstrip(_TRIM + "\n")), MASK))
    return 2, masked


def _base64_secret(value: str) -> bool:
    """True for base64 that hides text, or long random bytes; false for words that happen to be valid base64."""
    if (
        len(value) < 8
        or len(value) % 4
        or not _BODY.re.match(value)
        or value.startswith("LS0tLS1CRUdJTiBDRVJUSUZJQ0FUR")
    ):
        return False
    try:
        raw = binascii.a2b_base64(value[:4096])
    except ValueError:
        return False
    if value.endswith("="):
        return True
    try:
        if raw.decode("utf-8").strip().isprintable():
            return True
    except UnicodeDecodeError:
        pass
    return (
        len(value) >= 24
        and any(c.isdigit() for c in value)
        and any(c.isupper() for c in value)
        and any(c.islower() for c in value)
    )
