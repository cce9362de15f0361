"""Finds values that are known to be secret, wherever they stand and in the usual disguises."""

from __future__ import annotations

import binascii

MIN_KNOWN = 8
"""Shorter values are too likely to occur by accident to be replaced wherever they stand."""


def weakness(value: str) -> str:
    """Why this value must not be replaced literally, or ""."""
    if len(value) < MIN_KNOWN:
        return f"shorter than {MIN_KNOWN} characters"
    parts = value.replace("-", " ").replace("_", " ").replace(".", " ").split()
    if (
        value.isascii()
        and len(value) <= 24
        and all((part.isalpha() and part[1:].islower()) or (part.isupper() and part.isalpha()) for part in parts)
    ):
        return "plain words"
    if value[0] in "/~" and "/" in value[1:] and value.islower():
        return "a path"
    return "" if len(set(value)) > 3 else "too few different characters"


def disguises(value: str) -> tuple[str, ...]:
    """The value as it is and as base64 (at all three offsets), URL, JSON, shell, SQL, XML and hex texts spell it."""
    raw = value.encode("utf-8", "surrogateescape")
    forms = {value}
    for line in value.splitlines():
        line = line.strip()
        if len(line) >= 16 and not line.startswith("-----") and not weakness(line):
            forms.add(line)
    for offset in range(3):
        for safe in (False, True):
            text = binascii.b2a_base64(b"\0" * offset + raw, newline=False).decode("ascii").rstrip("=")
            head = (0, 2, 3)[offset]
            whole = (offset + len(raw)) * 8 // 6
            text = text[head:whole]
            if safe:
                text = text.replace("+", "-").replace("/", "_")
            if len(text) >= 10:
                forms.add(text)
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"
    for keep in (plain, plain + b"/", plain + b"!*'()", plain + b"!*'()/", plain + b"!$&'()*+,;=:@/"):
        quoted = "".join(chr(byte) if byte in keep else f"%{byte:02X}" for byte in raw)
        forms.update(
            (quoted, quoted.lower() if quoted.lower() != value.lower() else quoted, quoted.replace("%20", "+"))
        )
        forms.add("".join(chr(byte) if byte in keep else f"%{byte:02x}" for byte in raw))
    escaped = "".join(_json(char, ascii_only=False) for char in value)
    forms.update((escaped, "".join(_json(char, ascii_only=True) for char in value), escaped.replace("/", "\\/")))
    forms.add(escaped.replace("\\", "\\\\").replace('"', '\\"'))
    forms.update(
        (value.replace("'", "'\\''"), value.replace("'", "'\"'\"'"), value.replace("'", "''"), value.replace('"', '""'))
    )
    forms.add("".join("\\" + char if char in "\"$`\\! '&|;<>()*?[]{}#~" else char for char in value))
    markup = value.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    forms.add(markup.replace('"', "&quot;"))
    forms.update(
        (
            markup,
            markup.replace('"', "&quot;").replace("'", "&#39;"),
            markup.replace('"', "&quot;").replace("'", "&#x27;"),
        )
    )
    forms.update((raw.hex(), raw.hex().upper()))
    return tuple(sorted((form for form in forms if len(form) >= MIN_KNOWN), key=len, reverse=True))


def _json(char: str, *, ascii_only: bool) -> str:
    short = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}.get(char)
    if short:
        return short
    code = ord(char)
    if code < 32 or (ascii_only and code > 126 and code < 0x10000):
        return f"\\u{code:04x}"
    if ascii_only and code >= 0x10000:
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
    return char
