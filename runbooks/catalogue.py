"""The runbooks by rank, and the modules behind them, loaded when a question needs them."""

from guard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from runbooks.model import Runbook

OVERVIEW = "overview"
OVERVIEW_MEMBERS = ("disk", "memory", "oom", "cpu", "io", "services", "logs")
"""What an overview looks at, in the order of a first look: what stops a machine soonest comes first."""

RANKED = (
    "disk",
    "memory",
    "oom",
    "cpu",
    "io",
    "services",
    "logs",
    "processes",
    "net",
    "ports",
    "time",
    "reboot",
    "dns",
    "logins",
    "timers",
    "containers",
    "certs",
    "bigfiles",
    "updates",
)
"""All runbooks but the overview. When time runs short, the first ones have finished."""


class UnknownRunbook(UsageError):
    """There is no runbook of that name."""

    code = "usage.runbook"


def members_of(id: str) -> "tuple[str, ...]":
    """The runbooks that run for `id`: itself, or the members of the overview. Raises UnknownRunbook."""
    if id == OVERVIEW:
        return OVERVIEW_MEMBERS
    if id not in RANKED:
        raise UnknownRunbook(
            f"there is no runbook {ascii(id)[:60]}", hint=f"the runbooks are {', '.join((OVERVIEW, *RANKED))}"
        )
    return (id,)


def load(id: str) -> "Runbook":
    """The module of one runbook. Raises UnknownRunbook."""
    if id not in RANKED:
        members_of(id)
        raise UnknownRunbook(f"{id} has no module of its own", hint=f"its members are {', '.join(members_of(id))}")
    from importlib import import_module

    module: Runbook = import_module(f"runbooks.library.{id}")
    return module
