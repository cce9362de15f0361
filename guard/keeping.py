"""What a person's configuration says about approvals and records: who is told, who signs, how long the log stays. Pure.

A frozen value that a shell loads with the policy; the ledger and the hands are given it and read no file themselves.
"""

from guard.types import Value


class Keeping(Value):
    """The tables `[pending]`, `[approve]` and `[log]` of all configuration files together."""

    __slots__ = ("notify", "signer", "allowed_signers", "signing_key", "keep_days", "keep_mb")
    notify: "tuple[str, ...]"
    """An argv that is run once for each new request; () for none."""
    signer: str
    """The principal whose signature an approval needs; "" when it needs none."""
    allowed_signers: str
    """What the trusted file of that name holds (ssh-keygen(1), ALLOWED SIGNERS)."""
    signing_key: str
    """The key file that `opsx approve` signs with; "" for a key that ssh-agent has."""
    keep_days: int
    """Segments of the log whose last entry is older than this may go; 0 for no such limit."""
    keep_mb: int
    """The oldest segments go while the log is larger than this many MiB; 0 for no such limit."""

    def __init__(
        self,
        notify: "tuple[str, ...]" = (),
        signer: str = "",
        allowed_signers: str = "",
        signing_key: str = "",
        keep_days: int = 0,
        keep_mb: int = 0,
    ) -> None:
        self.notify = notify
        self.signer = signer
        self.allowed_signers = allowed_signers
        self.signing_key = signing_key
        self.keep_days = keep_days
        self.keep_mb = keep_mb

    def as_fields(self) -> "dict[str, object]":
        """The constructor's arguments as JSON holds them, for a process beside this one."""
        return {name: getattr(self, name) for name in self.__slots__}


FOREVER = Keeping()
"""What holds where nobody configured anything: no notice, no signature, and nothing of the log ever goes."""
