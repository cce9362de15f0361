"""The table `[mcp]` of the configuration files: what a person lets an MCP host do. The strictest counts."""

from guard.types import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

ELICIT, HOST = "elicit", "host"
KEYS = ("approval", "share_outputs", "edits")


class McpSettings(Value):
    """What all files say together."""

    __slots__ = ("approval", "share_outputs", "edits")
    approval: str
    """`elicit`: only the host's form or a terminal approves · `host`: the host's own prompt on `ops_approve` counts."""
    share_outputs: bool
    """Whether a client may read the saved outputs of other clients' runs."""
    edits: bool
    """Whether `edit` and `write` are among the tools: most hosts have such tools, and each listed tool costs a model
    its place."""

    def __init__(self, approval: str = ELICIT, share_outputs: bool = False, edits: bool = False) -> None:
        self.approval = approval
        self.share_outputs = share_outputs
        self.edits = edits


class Found:
    """Collects what files say. A loosening counts when one says it, none says otherwise, and all could be used."""

    def __init__(self) -> None:
        self._approvals: set[str] = set()
        self._said: dict[str, set[bool]] = {"share_outputs": set(), "edits": set()}
        self.is_whole = True
        """False when there is a file that nobody could use: it may have said no."""

    def checked(self, table: "object", fail: "Callable[[str], Exception]") -> "Callable[[], None]":
        """Checks one file's table; what comes back makes it count. Raises what `fail` makes."""
        if not isinstance(table, dict):
            raise fail("[mcp] must be a table")
        values: dict[str, Any] = table
        unknown = sorted(values.keys() - set(KEYS))
        if unknown:
            raise fail(f"[mcp] has no setting {unknown[0]!r}; there are {', '.join(KEYS)}")
        if values.get("approval", ELICIT) not in (ELICIT, HOST):
            raise fail(f"[mcp] approval must be {ELICIT} or {HOST}")
        switches = {key: values[key] for key in self._said if key in values}
        for key, value in switches.items():
            if not isinstance(value, bool):
                raise fail(f"[mcp] {key} must be true or false")

        def count() -> None:
            if "approval" in values:
                self._approvals.add(values["approval"])
            for key, value in switches.items():
                self._said[key].add(value)

        return count

    @property
    def value(self) -> "McpSettings | None":
        """What holds; None where nothing is loosened."""
        if not self.is_whole:
            return None
        on = {key: said == {True} for key, said in self._said.items()}
        found = McpSettings(HOST if self._approvals == {HOST} else ELICIT, on["share_outputs"], on["edits"])
        return None if found == McpSettings() else found
