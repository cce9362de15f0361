"""Which proxy leads to an address, if any. Pure.

Chosen here, because the library refuses to start when any variable names a SOCKS proxy, even one that nothing would
use: desktop proxies set `http_proxy`, `https_proxy` and a SOCKS `all_proxy` together.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from agent.providers.base import BrainUnreachable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agent.providers.endpoint import Endpoint


def proxy_for(endpoint: Endpoint, proxies: Mapping[str, str]) -> str:
    """The address of the proxy to use; "" for none.

    Args:
        proxies: by scheme, `all` and `no`, as `urllib.request.getproxies` tells them.
    Raises:
        BrainUnreachable: it is of a kind that cannot be used.
    """
    scheme = "https" if endpoint.secure else "http"
    chosen = (proxies.get(scheme) or proxies.get("all") or "").strip()
    if not chosen or endpoint.here or bypassed(endpoint.host, proxies.get("no", "")):
        return ""
    if "://" not in chosen:
        chosen = f"http://{chosen}"
    kind = chosen.partition("://")[0].lower()
    if kind in ("http", "https"):
        return chosen
    found = BrainUnreachable(
        f"{endpoint.name} at {endpoint.host}: a proxy of kind {repr(kind)[:20]} cannot be used",
        not_done="nothing was sent",
        hint=f"name an http proxy in {scheme.upper()}_PROXY, or {endpoint.host} in NO_PROXY",
    )
    found.retryable = False
    raise found


def bypassed(host: str, no_proxy: str) -> bool:
    """Whether NO_PROXY names the host: itself, a domain above it, a network that it lies in, or everything.

    Source: curl's manual, "NO_PROXY": a leading dot means the same as none; ports are not compared.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = None
    for entry in no_proxy.lower().replace(",", " ").split():
        name = entry.removeprefix("*").removeprefix(".") if entry != "*" else entry
        if name == "*":
            return True
        if address is None:
            name = name.partition(":")[0]
            if name and (host == name or host.endswith(f".{name}")):
                return True
        elif _holds(name, address):
            return True
    return False


def _holds(network: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether a network, or an address with or without a port, holds the address."""
    bare = network[1:].partition("]")[0] if network.startswith("[") else network
    for text in (bare, bare.partition(":")[0]):
        try:
            return address in ipaddress.ip_network(text, strict=False)
        except (ValueError, TypeError):
            continue
    return False
