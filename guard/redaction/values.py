# ruff: noqa: E501, SIM905 - word lists are easier to read and to sort as text
"""Decides whether a value behind a secret-like label is a secret, a placeholder, a reference or plain talk."""

from __future__ import annotations

from guard.redaction.labels import LOW, STRONG
from guard.redaction.lazy import Pattern

MASK = "[REDACTED]"

_SAFE = frozenset(
    "true false null none nil yes no on off enabled disabled required optional scram-sha-256 md5 trust peer files all auto"
    " default unset empty loaded failed failure success prompt string str int integer bool boolean active inactive"
    " set present absent missing expired changed reset updated locked unlocked ok invalid valid incorrect correct wrong"
    " unknown never always must should will can cannot may is was not for from to and or the a an in of with by at"
    " hidden masked redacted removed omitted unlimited undefined object function symbol sensitive"
    " encrypted plaintext bcrypt sha256 sha512 argon2 argon2id scram ldap pam sss systemd compat publickey keyboard"
    " keyboard-interactive basic bearer digest negotiate ntlm identified using based generated mismatch denied accepted"
    " rejected error authentication n/a any sensitive-value known prohibit-password without-password".split()
)
_REFERENCE = Pattern(
    r"\$\{|\$\(|\$[A-Z_][A-Z0-9_]*$|\{\{|<[^<>]{0,80}>?$|%\(|%[A-Z_]+%$|!(?:Ref|Sub|GetAtt|ImportValue|secret|env_var)\b"
    r"|(?:os\.environ|os\.getenv|process\.env|ENV\[|env\(|getenv\(|System\.getenv|var\.|local\.|data\.|module\.|vault:|ref\+"
    r"|op://|arn:aws|projects/|secretsmanager:|ssm:|file:|@Microsoft\.KeyVault|env://|kubernetes\.io)"
    r"|_?[a-z]\w{0,40}[._]\w{1,40}\("  # a call in a program
    r"|\((?:hidden|redacted|none|sensitive|unset|empty)",
)
_PATH = Pattern(
    r"(?:~|\.{1,2}|/(?:run|etc|var|home|root|opt|usr|tmp|srv|mnt|proc|dev|data|secrets?|vault|app|apps|config|certs?|ssl|sys"
    r"|boot|lib|bin|sbin|media|Users|private|Library|keys?|workspace|code|github)|[A-Za-z]:)[/\\][\w ./\\:@+-]*$"
)
_FILE = Pattern(
    r"[\w./~-]+\.(?:pem|key|crt|cer|pub|json|ya?ml|txt|conf|cfg|ini|p12|pfx|jks|env|service|socket|target|go|py|c|h|js|ts|sh)$"
)
_NUMBER = Pattern(
    r"[-+]?[\d.,:/]+\s*(?:[a-zA-Z]{0,2}|%|ms|sec|secs|seconds|min|minutes|hours?|days?|bytes?|[KMGT]i?B)$"
)
_FLAG_NUMBER = frozenset(
    "min max num count total require required has have use uses is allow allowed enable enabled disable disabled ask no not"
    " show verify check validate change force need needs last failed fail minimum maximum".split()
)
_FIRST_WORD = Pattern(r"[A-Z]?[a-z]+|[A-Z]+")
_TIME = Pattern(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d)?")


def is_secret(value: str, strength: int, label: str = "", *, prose: bool = False) -> bool:
    """True when this value must not be shown.

    Args:
        prose: the value stands unquoted in running text, where a lower-case word is talk, not a password.
    """
    if len(value) > 4096:
        return True  # also what keeps the time linear: a long value is read once
    bare = value.replace(MASK, "") if MASK in value else value
    if bare != value and not bare.strip("'\"\\ ,;.:}])*"):
        return False  # nothing left but our own marks
    lower = value.lower()
    if lower in _SAFE or lower.rstrip(".,;:!?)") in _SAFE or not set(value) - set("*xX.•-_?#= …"):
        return False
    first = value[0]
    if " " in value and all(word.rstrip(",;") in _SAFE for word in lower.split()):
        return False
    if _REFERENCE.re.match(value):
        return False
    if (first in "/~." or value[1:2] == ":") and _PATH.re.match(value):
        return False
    if strength == STRONG:
        if value.isdigit() or value.isalpha():
            match = _FIRST_WORD.re.search(label)
            if len(value) < 5 and value.isdigit() and match and match[0].lower() in _FLAG_NUMBER:
                return False
            return not (prose and value.isalpha() and value.islower() and value.isascii())
        return True
    if _NUMBER.re.match(value) or _FILE.re.match(value) or _TIME.re.match(value):
        return False
    if value.startswith(("http://", "https://", "unix://", "tcp://", "/")) and not _looks_random(value[1:], 24):
        return False
    return _looks_random(value, 20 if strength == LOW else 6)


def _looks_random(value: str, least: int) -> bool:
    """True for what people do not write by hand: digits among letters, or a long mix of cases."""
    if len(value) < least:
        return False
    digits = letters = upper = lower = other = 0
    for char in value[:256]:
        if char.isdigit():
            digits += 1
        elif char.isalpha():
            letters += 1
            if char.isupper():
                upper += 1
            elif char.islower():
                lower += 1
        else:
            other += 1
    if least >= 20:
        return digits >= 2 and letters >= 4 and other * 4 < len(value)
    if digits and letters:
        return True
    return len(value) >= 16 and bool(upper and lower) and other * 6 < len(value)
