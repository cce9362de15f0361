"""How a process of ours ends: all that was promised for the end is done, and what is left is the kernel's.

Python takes itself apart before it ends, object by object. After one question to a model that is 40 ms, a sixth of the
whole, for memory that the kernel takes back anyway. Touches the process it runs in.
"""

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def run(main: "Callable[[list[str]], int]", argv: "list[str]") -> int:
    """What `main` returns, from a process that is going to end with it.

    Threads that are no daemons are waited for and whatever atexit was given from here on is done, as ever; the process
    ends after the last of these. An exception, `SystemExit` too, and output that cannot be written take Python's own
    way, which tells them.
    """
    ended: list[int] = []

    def leave() -> None:
        if not ended:
            return
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None and not stream.closed:
                    stream.flush()
        except (OSError, ValueError):
            return
        os._exit(ended[0])

    atexit.register(leave)  # the first to come is the last to go
    ended.append(main(argv))
    return ended[0]
