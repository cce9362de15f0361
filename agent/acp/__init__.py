"""`opsagent acp`: the Agent Client Protocol, version 1, on standard input and output. docs/editors.md."""
