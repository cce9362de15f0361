"""Where a model is and how it is asked: one value per brain, made from its configuration. No key ever shows in it."""

from __future__ import annotations

from dataclasses import dataclass, field

IDLE_S = 120.0
"""Without a byte from the API; local models can take this long to read a long conversation."""
CONNECT_S = 10.0
WRITE_S = 30.0


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One model behind one address."""

    name: str
    """Of the brain, for messages to people."""
    base_url: str
    """http or https, without a slash at the end; the paths of the wire format are added to it."""
    model: str
    key: str = field(default="", repr=False)
    """Sent to `base_url` and nowhere else; "" for servers that want none."""
    window_tokens: int = 0
    max_tokens: int = 0
    """At most so many in one reply; 0: the wire format's default."""
    stream: bool = True
    ca_bundle: str = ""
    """A PEM file; "": SSL_CERT_FILE and SSL_CERT_DIR, then the system's."""
    idle_s: float = IDLE_S
    connect_s: float = CONNECT_S

    @property
    def secure(self) -> bool:
        """Whether what is sent there is encrypted."""
        return self.base_url.lower().startswith("https://")

    @property
    def here(self) -> bool:
        """Whether it is this machine; then no proxy is asked, and a key on plain http is nobody else's to read."""
        host = self.host
        return host in ("localhost", "::1") or host.startswith("127.") or host.endswith(".localhost")

    @property
    def host(self) -> str:
        """Without port and brackets, in small letters."""
        rest = self.base_url.partition("://")[2].partition("/")[0].rpartition("@")[2].lower()
        if rest.startswith("["):
            return rest[1:].partition("]")[0]
        return rest.partition(":")[0]
