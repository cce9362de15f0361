"""Every tool once: name, JSON Schema, hints, handler. The loop, MCP and the JSON commands all take them from here."""
