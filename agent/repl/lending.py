"""Lends the terminal to a program that asks a person on it by itself, such as ssh-keygen for a passphrase.

While it is lent the screen is taken away and no key is read here: what is typed reaches that program alone.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING

from prompt_toolkit.application import in_terminal
from prompt_toolkit.application.current import set_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from prompt_toolkit.application import Application


@contextlib.contextmanager
def lent(app: Application[Any], loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Holds the terminal of a running application. For other threads than the loop's."""
    taken, back = threading.Event(), asyncio.Event()

    async def lend() -> None:
        try:
            with set_app(app):
                async with in_terminal():
                    taken.set()
                    await back.wait()
        finally:
            taken.set()  # a terminal that went away is nobody's to wait for

    lending = asyncio.run_coroutine_threadsafe(lend(), loop)
    taken.wait()
    try:
        yield
    finally:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and the loan with it
            loop.call_soon_threadsafe(back.set)
            lending.result()
