# ruff: noqa: E501, SIM905 - word lists are easier to read and to sort as text
"""Says how secret the value behind a label is: `DB_PASSWORD`, `api-key`, `secretName`, `max_tokens` …

A label is judged by its words, mostly by the last one, because the last word says what the value *is*:
a `password` is one, a `password_policy` is not. Judgements are remembered; labels repeat all the time.
"""

from __future__ import annotations

from guard.redaction.lazy import Pattern

NONE, LOW, MEDIUM, STRONG = 0, 1, 2, 3
"""STRONG: any value is a secret. MEDIUM: a value that looks made by a machine. LOW: only a long random one."""

LABEL_CHARS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."
STEMS = ("pass", "pwd", "secret", "token", "key", "cred", "auth", "cookie", "psk", "bindpw", "rootpw", "_pw")
STEMS_RARE = (
    "sessid",
    "sessionid",
    "salt",
    "mnemonic",
    "jwt",
    "passwort",
    "kennwort",
    "senha",
    "mdp",
    "pepper",
    "sas_",
)
"""Every label that `strength_of` can call secret contains one of these."""

_WORDS = Pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_TRAILING = frozenset(
    "prod production dev devel stage staging test qa uat old new current prev previous backup primary secondary ro rw"
    " default enc encrypted hash hashed digest plain plaintext value base64 b b64 data raw string text confirm confirmation"
    " again md sha bcrypt binary base".split()
)
_PASSWORDS = frozenset(
    "password passwd passphrase passcode passwort kennwort senha contrasena pw pwd psk requirepass masterauth masterpass"
    " bindpw rootpw userpw mdp mnemonic pepper passwords".split()
)
_NOT_PASS = frozenset(
    "bypass getpass compass encompass trespass surpass overpass underpass multipass onepass singlepass".split()
)
_PASS_TO = frozenset("proxy fastcgi uwsgi scgi grpc memcached ajp first second third last next num host".split())
_KEY_OF = frozenset(
    "api secret access private priv encryption encrypt decryption decrypt signing sign master account shared client auth"
    " service license licence hmac cookie session storage admin deploy subscription validation app application wep wpa"
    " wifi network preshared pre unseal root recovery consumer write ingest ingestion integration product machine data"
    " cipher crypto aes jwt webhook bot user rest management certificate secure nonce logged integrationkey join trunk"
    " token server functions function host".split()
)
_KEY_NOT = frozenset(
    "public pub primary foreign sort partition cache object routing group row range hash hot host short foreign unique"
    " composite index map dict config registry shard lookup sorting translation ssh authorized gpg keyring".split()
)
_VENDORS = frozenset(
    "dd datadog stripe sendgrid mailgun algolia google azure openai anthropic twilio mapbox newrelic honeycomb segment"
    " mixpanel rollbar bugsnag pusher cloudflare cf fastly linode vultr hetzner gemini deepseek dashscope moonshot".split()
)
_TOKEN_NOT = frozenset(
    "next page continue continuation starting nextpage unexpected invalid sync unknown stop eos bos pad max min per total"
    " prompt completion input output cached reasoning".split()
)
_SECRET_NOT = frozenset("pull tls cert certificate ca ref image mountable".split())
_known: dict[str, int] = {}


def strength_of(label: str) -> int:
    """NONE, LOW, MEDIUM or STRONG for a label of at most 128 characters as it stands in the text."""
    found = _known.get(label)
    if found is None:
        if len(_known) > 8192:
            _known.clear()
        found = _known[label] = _judge(label)
    return found


def _judge(label: str) -> int:
    words = [word.lower() for word in _WORDS.re.findall(label)]
    if words[-2:] in (["secret", "string"], ["secret", "binary"], ["secret", "value"], ["secret", "text"]):
        return STRONG
    while len(words) > 1 and (words[-1] in _TRAILING or words[-1].isdigit()):
        words.pop()
    if not words:
        return NONE
    last, joined = words[-1], "".join(words)
    before = words[:-1]
    if "public" in words or "pub" in words or "pubkey" in joined:
        return NONE
    if last in _PASSWORDS or last.endswith(("password", "passwd", "passphrase", "pwd", "passcode")):
        return STRONG
    if last.endswith("pass"):
        if last in _NOT_PASS or (before and before[-1] in _PASS_TO):
            return NONE
        return MEDIUM if joined == "pass" else STRONG
    if last.endswith("secret"):
        if before and not _SECRET_NOT.isdisjoint(before):
            return NONE
        return MEDIUM if joined == "secret" else STRONG
    if last.endswith("token") or last == "jwt":
        return NONE if before and before[-1] in _TOKEN_NOT else MEDIUM
    if last == "key" or last == "keys":
        return _key(before)
    if last.endswith("key"):
        stem = last[:-3]
        return (
            MEDIUM
            if stem in _KEY_OF or stem.endswith(("secret", "access", "api", "private", "auth", "master"))
            else NONE
        )
    if last in ("credential", "credentials", "cred", "creds", "auth", "authorization", "cookie", "sas"):
        return MEDIUM
    if last.endswith(("sessid", "sessionid")) or joined.endswith(("secretid", "accesskeyid", "sessionid")):
        return MEDIUM
    if last == "salt" and before:
        return MEDIUM
    return NONE


def _key(before: list[str]) -> int:
    if not before:
        return NONE
    nearest = before[-1]
    if nearest in _KEY_NOT:
        return NONE
    if nearest in _KEY_OF or nearest in _VENDORS or nearest.endswith(("secret", "access", "api", "private")):
        return MEDIUM
    return LOW
