"""Which machines a person named in their own words, so that reads may ask them without an approval. Pure."""

from __future__ import annotations

import re

MOST = 20
"""Of one turn's words: more than that is a list that somebody pasted."""

_URL = re.compile(
    r"(?<![\w.+-])(https?)://(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)(?::(\d{1,5}))?"
    r"(?![\w:@%.-]*@)"  # what stands before an @ is a user, not a machine
    r"(?=[/?#\s,;)\]}>\"'。，；）】》]|[.!]?(?:\s|$)|$)",
    re.IGNORECASE,
)


def named_peers(text: str) -> frozenset[str]:
    """`host:port` of each http or https address that stands in full in the words; nothing when there are too many.

    A bare name is none: too much looks like one (`app.py`, `node.js`). An address with a user in it is none either.
    """
    found = set()
    for scheme, host, port in _URL.findall(text):
        found.add(f"{host.lower().strip('[]')}:{int(port) if port else 443 if scheme.lower() == 'https' else 80}")
    return frozenset(found) if len(found) <= MOST else frozenset()
