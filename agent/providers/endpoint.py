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

    def __post_init__(self) -> None:
        """An address with a user's name would send a password in place of the key. Raises ValueError."""
        if "@" in self.base_url.partition("://")[2].partition("/")[0]:
            raise ValueError(f"the address of {self.name} holds a user's name")

    @property
    def secure(self) -> bool:
        """Whether what is sent there is encrypted."""
        return self.base_url.lower().startswith("https://")

    @property
    def here(self) -> bool:
        """Whether it is this machine; then no proxy is asked, and a key on plain http is nobody else's to read."""
        import ipaddress

        try:
            address = ipaddress.ip_address(self.host)
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")
        return address.is_loopback or address.is_unspecified

    @property
    def host(self) -> str:
        """Without port and brackets, in small letters."""
        rest = self.base_url.partition("://")[2].partition("/")[0].lower()
        if rest.startswith("["):
            return rest[1:].partition("]")[0]
        return rest.partition(":")[0]
