"""The environment that a command gets: an allow list, fixed values, and what its family asks for by name."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import pwd
import re
import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin"
"""The system's own folders; on macOS, Homebrew's come after them."""

FIXED = {
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_PAGER": "cat",
    "SYSTEMD_PAGER": "",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "NO_COLOR": "1",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Nothing pages, asks, colours, or refreshes git's index on the side."""

PASSED = (
    "TZ",
    "http_proxy", "https_proxy", "ftp_proxy", "no_proxy", "all_proxy",
    "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "ALL_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
)  # fmt: skip
"""Passed when set: the way out of the network, and whom to trust there."""

DEFAULT_PLACES = {
    "KUBECONFIG": ".kube/config",
    "AWS_CONFIG_FILE": ".aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": ".aws/credentials",
    "AZURE_CONFIG_DIR": ".azure",
    "DOCKER_CONFIG": ".docker",
    "PGPASSFILE": ".pgpass",
}
"""Where a family looks by itself. Naming the place when the family asks for it changes nothing for the program,
and tells the sandbox which masked path this run needs."""

_SECRET_NAME = re.compile(
    r"(?i)(pass(word|wd|phrase)?|secret|token|credential|api_?key|access_?key|private_?key|_key$|_pw$|auth)"
)
_NEVER = re.compile(
    r"(?i)^(LD_.*|BASH_.*|ENV|SHELLOPTS|BASHOPTS|PROMPT_COMMAND|PS4|IFS|PYTHON.*|PERL5.*|RUBYOPT|NODE_OPTIONS|OPSAGENT_.*)$"
)


class ChildEnvironment(NamedTuple):
    """What a command gets, and what the redactor has to know about it."""

    env: dict[str, str]
    passed: tuple[str, ...]
    """Names taken from our own environment, sorted; what a stamp binds."""
    secrets: tuple[str, ...]
    """Values in it that look secret."""


def build_environment(asked: Iterable[str] = (), source: Mapping[str, str] | None = None) -> ChildEnvironment:
    """Builds the environment of one command.

    Args:
        asked: names, or shapes such as `PG*`, that its programs' families and the configuration ask for.
            Loader and shell variables are never passed, whoever asks.
        source: our own environment.
    Effects: reads the passwd entry.
    """
    source = os.environ if source is None else source
    env = dict(FIXED)
    env |= _identity(source)
    env["PATH"] = PATH + (":/opt/homebrew/bin:/opt/homebrew/sbin" if sys.platform == "darwin" else "")
    shapes = tuple(asked)
    passed = []
    for name, value in source.items():
        if name in FIXED or name in env or _NEVER.match(name):
            continue
        if name in PASSED or any(fnmatch.fnmatchcase(name, shape) for shape in shapes):
            env[name] = value
            passed.append(name)
    for name, place in DEFAULT_PLACES.items():
        if name not in env and any(fnmatch.fnmatchcase(name, shape) for shape in shapes):
            path = f"{env['HOME']}/{place}"
            if os.path.exists(path):
                env[name] = path
    return ChildEnvironment(env, tuple(sorted(passed)), _secrets({name: env[name] for name in passed}))


def looks_secret(name: str) -> bool:
    """Whether a variable of this name usually holds a credential."""
    return _SECRET_NAME.search(name) is not None


def home() -> str:
    """The home that a command's `~` stands for."""
    return _identity(os.environ)["HOME"]


def _identity(source: Mapping[str, str]) -> dict[str, str]:
    name, home = source.get("USER", ""), ""
    with contextlib.suppress(KeyError):
        entry = pwd.getpwuid(os.geteuid())
        name, home = entry.pw_name, entry.pw_dir
    return {"HOME": source.get("HOME") or home or "/", "USER": name, "LOGNAME": name}


def _secrets(passed: Mapping[str, str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for name, value in passed.items():
        if not value:
            continue
        if "://" in value:
            with contextlib.suppress(ValueError):
                password = urlsplit(value).password
                if password:
                    found[password] = None
        elif looks_secret(name) and not value.startswith("/"):
            found[value] = None
    return tuple(found)
