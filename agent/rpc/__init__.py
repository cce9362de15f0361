"""`opsagent rpc`: JSON-RPC 2.0 on standard input and output for clients of one's own. docs/protocol.md."""
