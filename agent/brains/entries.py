"""One brain's entry in the configuration, checked. Pure: what the entry names (keys, files) is not opened here.

A key never stands in an entry: it names where the key is. Whatever looks like a secret is refused, with what to do
instead; the words of that refusal hold nothing of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from guard.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

OPENAI, ANTHROPIC = "openai", "anthropic"
KINDS = (OPENAI, ANTHROPIC)
"""Wire formats: chat completions, and messages."""
OFFLINE = "offline"
SCRIPT = "script:"
"""`script:FILE` plays a file instead of asking a model."""

HOMES = {OPENAI: "https://api.openai.com/v1", ANTHROPIC: "https://api.anthropic.com"}
"""Where the wire formats come from; the base_url of an entry that names none."""
MODELS = {OPENAI: "gpt-5.1", ANTHROPIC: "claude-sonnet-4-6"}
"""Asked for at those homes when nobody names a model. Elsewhere the API is asked what it has."""
TIMEOUT_S = 120.0
"""Without a byte from the API; local models can take this long to read a long conversation."""
LONGEST_S = 3_600.0
MOST_WINDOW = 100_000_000
MOST_WORDS = 64
MOST_TEXT = 4_096

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
KEYS = ("key_env", "key_command", "key_file")
"""Where a key may be: an entry names at most one of them."""
SETTINGS = (
    *("kind", "base_url", "model", *KEYS),
    *("window_tokens", "max_tokens", "price_in", "price_out", "price_cached", "stream", "ca_bundle", "timeout_s"),
)
"""What a table `[brains.NAME]` may hold, in the order of docs/brains.md."""
_SECRET_SETTINGS = ("key", "api_key", "apikey", "token", "auth_token", "secret", "password", "bearer")


class BadBrains(UsageError):
    """A brain's settings are not in the form of docs/brains.md, or there is no such brain."""

    code = "usage.brains"

    def __init__(self, message: str, *, hint: str = "docs/brains.md tells the settings; opsagent config check") -> None:
        super().__init__(message, not_done="nothing was asked of any brain", hint=hint)


@dataclass(frozen=True, slots=True)
class Entry:
    """One model behind one API, as a person configured it."""

    name: str
    kind: str
    """`openai` or `anthropic`: the wire format."""
    base_url: str
    """Without a slash at the end. The key goes there and nowhere else."""
    model: str = ""
    """"" where the API has to be asked what it has."""
    key_env: str = ""
    """The variable that holds the key."""
    key_command: tuple[str, ...] = ()
    """A program and its arguments; its first line of output is the key. No shell."""
    key_file: str = ""
    """A file whose first line is the key."""
    window_tokens: int = 0
    """The model's context window; 0: nobody said."""
    max_tokens: int = 0
    """At most this many tokens in one reply; 0: what the wire format wants by default."""
    price_in: float | None = None
    price_out: float | None = None
    """Per million tokens, in whatever currency; None: no cost is told."""
    price_cached: float | None = None
    """Of input that the API had in its cache; None: as other input."""
    stream: bool = True
    ca_bundle: str = ""
    """A PEM file that counts beside nothing else; "": SSL_CERT_FILE, then the system's."""
    timeout_s: float = TIMEOUT_S
    origin: str = ""
    """Where it was configured: a file, `environment`, or `built in`."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Of single settings that come from elsewhere: OPENAI_BASE_URL, --model."""


def require_name(name: str) -> str:
    """A name that an entry may have. Raises BadBrains."""
    if not _NAME.fullmatch(name) or name == OFFLINE:
        raise BadBrains(f"{repr(name)[:80]} is no name for a brain: small letters, digits, - _ . (not {OFFLINE!r})")
    return name


def entry_of(name: str, table: object, *, redact: Callable[[str], str], origin: str = "") -> Entry:
    """The entry that a table `[brains.NAME]` describes.

    Args:
        redact: takes secrets out of a text; what it changes is refused.
    Raises:
        BadBrains: an unknown or malformed setting, or a key in the file; names which and what to write instead.
    """
    require_name(name)
    where = f"[brains.{name}]"
    if not isinstance(table, dict):
        raise BadBrains(f"{where} must be a table")
    for setting in table:
        if setting.lower().replace("-", "_") in _SECRET_SETTINGS:
            raise _key_in_file(where, setting)
        if setting not in SETTINGS:
            raise BadBrains(f"{where} has no setting {repr(setting)[:80]}; there are {', '.join(SETTINGS)}")
    _require_no_secret(where, table, redact)
    kind = table.get("kind", name if name in KINDS else None)
    if kind not in KINDS:
        raise BadBrains(f"{where} kind must be one of {', '.join(KINDS)}")
    sources = [setting for setting in KEYS if setting in table]
    if len(sources) > 1:
        raise BadBrains(f"{where} names one place for the key, not {' and '.join(sources)}")
    base_url = base_url_of(kind, _text(where, table, "base_url", HOMES[kind]), f"{where} base_url")
    at_home = base_url == HOMES[kind]
    key_env = _text(where, table, "key_env", f"{kind.upper()}_API_KEY" if at_home and not sources else "")
    if key_env and not _VARIABLE.fullmatch(key_env):
        raise BadBrains(
            f"{where} key_env must be the name of a variable",
            hint=f'put the key into a variable and name it: key_env = "{kind.upper()}_API_KEY"',
        )
    return Entry(
        name=name,
        kind=kind,
        base_url=base_url,
        model=_text(where, table, "model", MODELS[kind] if at_home else ""),
        key_env=key_env,
        key_command=_words(where, table, "key_command"),
        key_file=_path(where, table, "key_file"),
        window_tokens=int(_number(where, table, "window_tokens", 0, low=1, high=MOST_WINDOW, whole=True)),
        max_tokens=int(_number(where, table, "max_tokens", 0, low=1, high=MOST_WINDOW, whole=True)),
        price_in=_price(where, table, "price_in"),
        price_out=_price(where, table, "price_out"),
        price_cached=_price(where, table, "price_cached"),
        stream=_flag(where, table, "stream"),
        ca_bundle=_path(where, table, "ca_bundle"),
        timeout_s=_number(where, table, "timeout_s", TIMEOUT_S, low=1, high=LONGEST_S),
        origin=origin,
    )


def base_url_of(kind: str, text: str, what: str) -> str:
    """An http or https address without a slash at its end, as its wire format counts it.

    Anthropic's paths begin with the version, so that an address which ends with it means the same as one without.

    Raises:
        BadBrains: another scheme, no host, a question mark, a fragment, or a user's name in it.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise BadBrains(f"{what} is no address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or not text.isprintable():
        raise BadBrains(f"{what} must be an address such as https://api.example.org/v1")
    if parts.query or parts.fragment or " " in text:
        raise BadBrains(f"{what} must end with its path, without ? and #")
    if parts.username is not None or parts.password is not None:
        raise BadBrains(
            f"{what} holds a user's name or password",
            hint="leave them out of the address; the key comes from key_env, key_command or key_file",
        )
    address = text.rstrip("/")
    return address.removesuffix("/v1") if kind == ANTHROPIC else address


def _key_in_file(where: str, setting: str) -> BadBrains:
    return BadBrains(
        f"{where} {setting}: a key does not belong in a configuration file",
        hint='name where it is: key_env = "VARIABLE", key_command = ["pass", "show", "NAME"] or key_file = "PATH" '
        "(and change the key: it has been on disk)",
    )


def _require_no_secret(where: str, table: dict[str, Any], redact: Callable[[str], str]) -> None:
    for setting, value in table.items():
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and redact(text) != text:
                raise _key_in_file(where, setting)


def _text(where: str, table: dict[str, Any], setting: str, default: str = "") -> str:
    value = table.get(setting, default)
    if (
        not isinstance(value, str)
        or not value.isprintable()
        or len(value) > MOST_TEXT
        or (setting in table and not value)
    ):
        raise BadBrains(f"{where} {setting} must be a text of one line")
    return value


def _path(where: str, table: dict[str, Any], setting: str) -> str:
    value = _text(where, table, setting)
    if value and not value.startswith(("/", "~/")):
        raise BadBrains(f"{where} {setting} must be a whole path: /… or ~/…")
    return value


def _words(where: str, table: dict[str, Any], setting: str) -> tuple[str, ...]:
    value = table.get(setting, [])
    if isinstance(value, str):
        raise BadBrains(
            f"{where} {setting} must be a list of words: no shell reads it",
            hint=f'{setting} = ["pass", "show", "NAME"]',
        )
    fits = isinstance(value, list) and all(isinstance(word, str) and "\0" not in word for word in value)
    if not fits or len(value) > MOST_WORDS or (setting in table and (not value or not value[0])):
        raise BadBrains(
            f"{where} {setting} must be a list of 1 to {MOST_WORDS} words, of which the first names a program"
        )
    return tuple(value)


def _number(
    where: str, table: dict[str, Any], setting: str, default: float, *, low: float, high: float, whole: bool = False
) -> float:
    value = table.get(setting, default)
    kinds = (int,) if whole else (int, float)
    if setting in table and (isinstance(value, bool) or not isinstance(value, kinds) or not low <= value <= high):
        raise BadBrains(f"{where} {setting} must be a {'whole ' if whole else ''}number from {low:g} to {high:,.0f}")
    return float(value)


def _price(where: str, table: dict[str, Any], setting: str) -> float | None:
    return None if setting not in table else _number(where, table, setting, 0.0, low=0, high=1_000_000)


def _flag(where: str, table: dict[str, Any], setting: str) -> bool:
    value = table.get(setting, True)
    if not isinstance(value, bool):
        raise BadBrains(f"{where} {setting} must be true or false")
    return value
