"""From an entry to a provider that can be asked: its key fetched, its model known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.brains.choice import Without
from agent.brains.entries import ANTHROPIC
from agent.brains.keys import key_of
from agent.providers.base import RequestRefused
from agent.providers.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.brains.choice import Link
    from agent.brains.entries import Entry
    from agent.providers.api import Api
    from agent.providers.base import Provider
    from guard.ports import Cancel
    from guard.redact import Redactor

LISTED = 12
"""Names of models that an error shows."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes providers; what it needs of the world is given to it."""

    environ: Mapping[str, str]
    redactor: Redactor
    """Learns each key that is fetched."""

    def provider(self, link: Link, *, cancel: Cancel) -> Provider:
        """A provider for one link of a chain, its model known.

        Raises:
            BrainError: no key, or the API does not say which model to ask for.
            BadScript: the file of a scripted brain cannot be used.
            Cancelled: `cancel` was set.
        """
        if isinstance(link, Without):
            from agent.providers.scripted import open_script

            return open_script(link.script)
        api = self.api(link, cancel=cancel)
        if not api.model:
            try:
                api.model = sole_model(api.models(cancel=cancel), link)
            except BaseException:
                api.close()
                raise
        return api

    def api(self, entry: Entry, *, cancel: Cancel | None = None) -> Api:
        """The entry's API; nothing is sent yet. Raises KeyRefused, Cancelled."""
        key = key_of(entry, self.environ, cancel=cancel)
        endpoint = Endpoint(
            name=entry.name,
            base_url=entry.base_url,
            model=entry.model,
            key=key,
            window_tokens=entry.window_tokens,
            max_tokens=entry.max_tokens,
            stream=entry.stream,
            ca_bundle=entry.ca_bundle,
            idle_s=entry.timeout_s,
        )
        if entry.kind == ANTHROPIC:
            from agent.providers.anthropic import Anthropic

            return Anthropic(endpoint, self.redactor)
        from agent.providers.openai import OpenAI

        return OpenAI(endpoint, self.redactor)


def sole_model(models: tuple[str, ...], entry: Entry) -> str:
    """The model of a server that has one.

    Raises:
        RequestRefused: it has none or several; names them.
    """
    if len(models) == 1:
        return models[0]
    shown = ", ".join(models[:LISTED]) + (f" and {len(models) - LISTED} more" if len(models) > LISTED else "")
    raise RequestRefused(
        f"brain {entry.name} names no model, and its API has {shown or 'none'}",
        not_done="nothing was asked",
        hint=f"--model MODEL, or {entry.kind.upper()}_MODEL"
        if entry.name == entry.kind
        else f'--model MODEL, or model = "…" in [brains.{entry.name}]',
    )
