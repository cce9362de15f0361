"""The JSON-RPC message on one line, as the MCP package's model of it."""

from __future__ import annotations

from typing import Any

from capabilities.lines import INVALID_REQUEST, Fault, object_of


def message_of(line: bytes, adapter: Any) -> Any:
    """The JSON-RPC message on one line, as the SDK's model. Raises Fault."""
    value = object_of(line)
    id = value.get("id")
    id = id if isinstance(id, str) or type(id) is int else None
    if id is None and "id" in value and "method" in value:
        # The SDK would take it for a notification and answer nothing.
        raise Fault(INVALID_REQUEST, "Invalid Request: an id is a text or a whole number")
    try:
        return adapter.validate_python(value, by_name=False)
    except (ValueError, RecursionError):
        # What carries no method is an answer to us, and what carries no id is a notification: neither is answered.
        silent = ("method" not in value and ("result" in value or "error" in value)) or (
            isinstance(value.get("method"), str) and "id" not in value
        )
        raise Fault(INVALID_REQUEST, "Invalid Request", id, silent=silent) from None
