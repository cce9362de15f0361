"""What a person's configuration says about approvals and records: who is told, who signs, how long they stay. Pure.

A frozen value that a shell loads with the policy; the ledger and the hands are given it and read no file themselves.
"""

from guard.types import Value

SESSION_DAYS = 365
"""How long a conversation stays after it was used last, where nobody says otherwise."""


class Keeping(Value):
    """The tables `[pending]`, `[approve]`, `[log]` and `[sessions]` of all configuration files together."""

    __slots__ = ("notify", "signer", "allowed_signers", "signing_key", "keep_days", "keep_mb", "session_days")
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
    session_days: int
    """Conversations that were not used for longer go when another is opened; 0: none ever goes by itself."""

    def __init__(
        self,
        notify: "tuple[str, ...]" = (),
        signer: str = "",
        allowed_signers: str = "",
        signing_key: str = "",
        keep_days: int = 0,
        keep_mb: int = 0,
        session_days: int = SESSION_DAYS,
    ) -> None:
        self.notify = notify
        self.signer = signer
        self.allowed_signers = allowed_signers
        self.signing_key = signing_key
        self.keep_days = keep_days
        self.keep_mb = keep_mb
        self.session_days = session_days

    def as_fields(self) -> "dict[str, object]":
        """The constructor's arguments as JSON holds them, for a process beside this one."""
        return {name: getattr(self, name) for name in self.__slots__}


FOREVER = Keeping()
"""What holds where nobody configured anything: no notice, no signature, and nothing of the log ever goes."""
