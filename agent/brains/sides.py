"""On whose side the fault of a brain lies, and what a person can do about it. Pure.

A sentence begins with where to look: `here` (configuration, key, name, certificate), `on the way` (firewall, proxy),
`there` (the API, its limits, its faults).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent.brains.keys import source_of
from agent.providers.base import CUT, NAME, NO_WAY, PROXY, REFUSED, SILENT, TLS

if TYPE_CHECKING:
    from agent.brains.entries import Entry
    from agent.providers.base import BrainError

ANOTHER = "or name another brain behind it: [brains] order"


def mend(error: BrainError, entry: Entry) -> str:
    """What to do about a failed request to a brain."""
    if error.status:
        return _answered(error, entry)
    if error.cause == SILENT:
        return silent(entry)
    hint = "" if "doctor" in error.hint else error.hint
    return _unanswered(error.cause, entry) or hint or f"here: is base_url ({entry.base_url}) that of a model API?"


def silent(entry: Entry) -> str:
    """What to do where it was reached, or may have been, and said nothing in time."""
    if _is_here(entry):
        return "there: the server on this machine is slow or stuck (is it loading the model?); look at its log"
    return f"on the way or there: does `curl -sv {entry.base_url}` answer? A proxy or firewall may hold it; {ANOTHER}"


def _answered(error: BrainError, entry: Entry) -> str:
    """It answered, with an HTTP status that is none of success."""
    status = error.status
    if status in (401, 403):
        return f"here: the key ({source_of(entry)}): is it whole, for this address, allowed this model, still valid?"
    if status == 402 or "credit" in error.hint:
        return f"there, in your account: it has no credit left; {ANOTHER}"
    if status in (429, 529):
        wait = f"wait {error.retry_after_s:.0f} s" if error.retry_after_s else "wait a moment"
        return f"there: too many requests for your account or for the API; {wait}, {ANOTHER}"
    if status >= 500 or status in (408, 425):
        return f"there: nothing is wrong here; try again later, see its status page or its log, {ANOTHER}"
    if status in (404, 405):
        return f"here: base_url ({entry.base_url}; most end in /v1) or model ({entry.model or 'none'}) is not right"
    if 300 <= status < 400:
        return f"here: {error.hint}"
    return f"here: it does not take this request; is kind ({entry.kind}), base_url or model right?"


def _unanswered(cause: str, entry: Entry) -> str:
    """There was no answer: what kept it away."""
    host = urlsplit(entry.base_url).hostname or entry.base_url
    if cause == NAME:
        return f"here: is {host} spelled right in base_url, and are names looked up at all? getent hosts {host}"
    if cause == REFUSED and _is_here(entry):
        return f"here: nothing listens at {entry.base_url}; start the server, or name its port in base_url"
    if cause == REFUSED:
        return f"there, or here if {entry.base_url} is not right: the machine answers, and nothing listens at that port"
    if cause == NO_WAY:
        return (
            f"on the way: no packet of {entry.base_url} came back; a firewall, a proxy that is not set, or no network"
        )
    if cause == PROXY:
        return "on the way: the proxy; see HTTPS_PROXY, HTTP_PROXY and ALL_PROXY (NO_PROXY leaves hosts out)"
    if cause == CUT:
        return f"on the way or there: it was reached and the connection broke; try again, {ANOTHER}"
    if cause == TLS:
        return 'here: ca_bundle = "/path/ca.pem" in its entry, or SSL_CERT_FILE; and is the clock right (date)?'
    return ""


def _is_here(entry: Entry) -> bool:
    return urlsplit(entry.base_url).hostname in ("localhost", "127.0.0.1", "::1")
