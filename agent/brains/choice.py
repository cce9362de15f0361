"""Which brains a conversation has, in order: from the configuration, the environment and what a person named. Pure.

A person's own entry wins over the environment: a variable fills only what the entry does not say, so that no variable
leads an entry's key to another address. Without any configuration a variable that holds a key is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agent.brains.entries import (
    ANTHROPIC,
    HOMES,
    KEYS,
    KINDS,
    OFFLINE,
    OPENAI,
    SCRIPT,
    BadBrains,
    Entry,
    base_url_of,
    entry_of,
    require_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_ENTRIES = 64
ENVIRONMENT, BUILT_IN = "environment", "built in"
STANDARD = (ANTHROPIC, OPENAI)
"""Brains that work without configuration, in the order in which their keys are looked for."""


@dataclass(frozen=True, slots=True)
class Without:
    """A link of a chain that asks no model: `offline`, or `script:FILE`."""

    name: str

    @property
    def script(self) -> str:
        """The file that is played; "" for the runbooks."""
        return self.name.removeprefix(SCRIPT) if self.name.startswith(SCRIPT) else ""


RUNBOOKS = Without(OFFLINE)
Link = Entry | Without


@dataclass(frozen=True, slots=True)
class Configured:
    """What configuration files say about brains."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """As they stand there, by name; checked."""
    order: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    """Files, by name of the table; `order` for the order."""

    def then(self, later: Configured) -> Configured:
        """Both; a later table replaces an earlier one of its name whole, and a later order the earlier one."""
        return Configured({**self.tables, **later.tables}, later.order or self.order, {**self.origins, **later.origins})


NOTHING = Configured()


def configured(brains: object, *, redact: Callable[[str], str], origin: str) -> Configured:
    """What the table `[brains]` of one file says.

    Raises:
        BadBrains: an unknown or malformed setting, or a key in the file.
    """
    if not isinstance(brains, dict):
        raise BadBrains("[brains] must be a table")
    tables = {}
    order: tuple[str, ...] = ()
    for name, value in brains.items():
        if name == "order":
            order = _order(value)
            continue
        if not isinstance(value, dict):
            raise BadBrains(f"[brains] has no setting {repr(name)[:80]}; there are order, and a table for each brain")
        entry_of(name, value, redact=redact)
        tables[name] = value
    if len(tables) > MOST_ENTRIES:
        raise BadBrains(f"[brains] holds {len(tables)} brains; there is room for {MOST_ENTRIES}")
    origins = dict.fromkeys(tables, origin)
    if order:
        origins["order"] = origin
    return Configured(tables, order, origins)


def _order(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(name, str) and name for name in value):
        raise BadBrains('[brains] order must be a list of names such as ["anthropic", "local", "offline"]')
    if len(set(value)) != len(value):
        raise BadBrains("[brains] order names a brain twice")
    if OFFLINE in value[:-1]:
        raise BadBrains(f"[brains] order: {OFFLINE!r} always answers, so it stands last")
    for name in value:
        if name != OFFLINE and not name.startswith(SCRIPT):
            require_name(name)
    return tuple(value)


def entries(known: Configured, environ: Mapping[str, str], *, redact: Callable[[str], str]) -> dict[str, Entry]:
    """Every brain that can be named: the configured ones, then the standard ones.

    Raises:
        BadBrains: an address in the environment is none.
    """
    names = [*known.tables, *(kind for kind in STANDARD if kind not in known.tables)]
    return {name: entry(name, known, environ, redact=redact) for name in names}


def entry(name: str, known: Configured, environ: Mapping[str, str], *, redact: Callable[[str], str]) -> Entry:
    """One brain by its name.

    Raises:
        BadBrains: there is none of that name, or an address in the environment is none.
    """
    if name not in known.tables and name not in KINDS:
        there = ", ".join([*known.tables, *(kind for kind in STANDARD if kind not in known.tables), OFFLINE])
        raise BadBrains(
            f"there is no brain {repr(name)[:80]}",
            hint=f"there are {there} and script:FILE; docs/brains.md tells how to add one",
        )
    found = entry_of(name, known.tables.get(name, {}), redact=redact, origin=known.origins.get(name, BUILT_IN))
    return _filled(found, known.tables.get(name, {}), environ) if name in KINDS else found


def _filled(found: Entry, table: Mapping[str, Any], environ: Mapping[str, str]) -> Entry:
    """A standard brain with what the environment says and its table does not."""
    prefix = found.kind.upper()
    origins = {}
    own_key = any(setting in table for setting in KEYS)
    if "base_url" not in table and not own_key and (address := environ.get(f"{prefix}_BASE_URL", "").strip()):
        origins["base_url"] = f"{prefix}_BASE_URL"
        base_url = base_url_of(found.kind, address, f"{prefix}_BASE_URL")
        elsewhere = base_url != HOMES[found.kind]
        model = "" if elsewhere and "model" not in table else found.model
        found = replace(found, base_url=base_url, model=model)
    if "model" not in table and (model := environ.get(f"{prefix}_MODEL", "").strip()):
        origins["model"] = f"{prefix}_MODEL"
        found = replace(found, model=model)
    if environ.get(found.key_env, "").strip():
        origins["key_env"] = found.key_env
    elif "base_url" in origins:
        found = replace(found, key_env="")  # a server of one's own may want no key
    origin = found.origin if table or not origins else ENVIRONMENT
    return replace(found, origin=origin, origins=origins)


def chain(
    known: Configured,
    environ: Mapping[str, str],
    *,
    redact: Callable[[str], str],
    named: str = "",
    model: str = "",
) -> tuple[Link, ...]:
    """The brains of a conversation, first choice first.

    Args:
        named: the one that a person named; it stands alone then. "": the order of the configuration, else the standard
            brain whose key or address is in the environment, else the runbooks.
        model: asked for in place of the first brain's own.
    Raises:
        BadBrains: a name that no brain has, or a model where none is asked.
    """
    links: list[Link]
    if named:
        links = [_link(named, known, environ, redact)]
    elif known.order:
        try:
            links = [_link(name, known, environ, redact) for name in known.order]
        except BadBrains as error:
            raise BadBrains(
                f"{known.origins.get('order', '')}: [brains] order: {error.message}", hint=error.hint
            ) from None
    else:
        ready = [kind for kind in STANDARD if _is_set(kind, known, environ)]
        links = [_link(kind, known, environ, redact) for kind in ready[:1]]
    if model:
        first = links[0] if links else RUNBOOKS
        if not isinstance(first, Entry):
            raise BadBrains(
                f"--model names a model, and {first.name} asks none",
                hint="--brain NAME --model MODEL; or set OPENAI_API_KEY, OPENAI_BASE_URL or ANTHROPIC_API_KEY",
            )
        links[0] = replace(first, model=model, origins={**first.origins, "model": "--model"})
    if not named and (not links or links[-1] != RUNBOOKS):
        links.append(RUNBOOKS)
    return tuple(links)


def _link(name: str, known: Configured, environ: Mapping[str, str], redact: Callable[[str], str]) -> Link:
    if name == OFFLINE:
        return RUNBOOKS
    if name.startswith(SCRIPT):
        if name == SCRIPT:
            raise BadBrains("script: needs a file", hint="--brain script:FILE")
        return Without(name)
    return entry(name, known, environ, redact=redact)


def _is_set(kind: str, known: Configured, environ: Mapping[str, str]) -> bool:
    """Whether a standard brain was set up: by a table, a key, or an address of a server that may need no key."""
    if kind in known.tables:
        return True
    return any(environ.get(f"{kind.upper()}_{what}", "").strip() for what in ("API_KEY", "BASE_URL"))
