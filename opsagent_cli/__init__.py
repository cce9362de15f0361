"""The one public import name of the installed package; finds the rest, does nothing else.

Installed, the program lies in `opsagent_cli/_app`; in an editable install it is the checkout above this folder. That
folder goes first on `sys.path`, so that another distribution's `core` or `agent` is never taken for ours, and what
PYTHONPATH or the current folder put there goes away.
"""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
APP = os.path.join(HERE, "_app")


def app_folder() -> str:
    """The folder that holds `core.py` and its neighbours."""
    return APP if os.path.isdir(APP) else os.path.dirname(HERE)


def enter() -> None:
    """Makes the program importable and nothing else of the caller's surroundings."""
    unwanted = {"", os.curdir}
    for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep):
        if entry:
            unwanted |= {entry, os.path.abspath(entry)}
    # The environment's own folder stays, even if PYTHONPATH names it too: the dependencies lie beside this package.
    unwanted.discard(os.path.dirname(HERE))
    folder = app_folder()
    sys.path[:] = [folder, *(entry for entry in sys.path if entry not in unwanted and entry != folder)]


def opsagent() -> int:
    """Console script `opsagent`."""
    enter()
    from cli import ending
    from cli.opsagent import main

    return ending.run(main, sys.argv[1:])


def opsx() -> int:
    """Console script `opsx`."""
    enter()
    from cli import ending
    from cli.opsx import main

    return ending.run(main, sys.argv[1:])


def opsagent_mcp() -> int:
    """Console script `opsagent-mcp`: the same as `opsagent mcp`."""
    enter()
    from cli import ending
    from cli.opsagent import main

    return ending.run(main, ["mcp", *sys.argv[1:]])
