"""A conversation's brain that is one provider: no retries, nobody to switch to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agent.providers.base import Provider, Reply, Sent
    from guard.ports import Cancel


class OneBrain:
    """`agent.loop.Brain` over one provider."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider

    @property
    def name(self) -> str:
        return self._provider.name

    @property
    def model(self) -> str:
        return self._provider.model

    def reply(self, sent: Sent, *, cancel: Cancel, wrote: Callable[[], bool]) -> Iterator[str | Reply]:
        """What the provider says; its errors pass."""
        return self._provider.stream(sent, cancel=cancel)

    def close(self) -> None:
        self._provider.close()
