"""The runbooks by rank, and the modules behind them, loaded when a question needs them."""

from guard.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from runbooks.model import Runbook
    from runbooks.own import OwnRunbook

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
    "updates",
    "bigfiles",
)
"""All runbooks but the overview. When time runs short, the first ones have finished; the longest search is last."""


class UnknownRunbook(UsageError):
    """There is no runbook of that name."""

    code = "usage.runbook"


def members_of(id: str) -> "tuple[str, ...]":
    """The runbooks that run for `id`: itself, or the members of the overview. Raises UnknownRunbook."""
    if id == OVERVIEW:
        return OVERVIEW_MEMBERS
    if id not in RANKED:
        raise UnknownRunbook(
            f"there is no runbook {repr(id)[:60]}", hint=f"the runbooks are {', '.join((OVERVIEW, *RANKED))}"
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


class Books:
    """The runbooks that a question may choose from: the built-in ones and those of the user."""

    __slots__ = ("own",)

    def __init__(self, own: "Iterable[OwnRunbook]" = ()) -> None:
        self.own: dict[str, OwnRunbook] = {}
        for book in own:
            if book.ID == OVERVIEW or book.ID in RANKED or book.ID in self.own:
                raise UnknownRunbook(f"two runbooks are named {book.ID}", hint=f"rename the one in {book.file}")
            self.own[book.ID] = book

    @property
    def known(self) -> "tuple[str, ...]":
        """All ids but the overview, in rank order; the user's own come last."""
        return (*RANKED, *self.own)

    def load(self, id: str) -> "Runbook":
        """One runbook. Raises UnknownRunbook."""
        return self.own[id] if id in self.own else load(id)

    def members_of(self, id: str) -> "tuple[str, ...]":
        """The runbooks that run for `id`. Raises UnknownRunbook."""
        return (id,) if id in self.own else members_of(id)


BUILT_IN = Books()
