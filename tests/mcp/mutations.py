"""Protocol lines with a few bytes changed, taken out or put in."""

from __future__ import annotations

import json
import random

from tests.mcp.talk import MODERN_META

SEEDS = tuple(
    json.dumps(message).encode()
    for message in (
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "ops_list", "arguments": {}}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}},
        {"jsonrpc": "2.0", "id": 5, "method": "server/discover", "params": {"_meta": MODERN_META}},
    )
)


def mutated(chance: random.Random) -> bytes:
    """One line without its end."""
    line = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(line))
        kind = chance.randrange(3)
        if kind == 0:
            line[at] = chance.randrange(256)
        elif kind == 1:
            del line[at : at + chance.randint(1, 8)]
        else:
            line[at:at] = bytes(chance.randrange(256) for _ in range(chance.randint(1, 8)))
        line = bytearray(bytes(line).replace(b"\n", b" ")) or bytearray(b" ")
    return bytes(line)
