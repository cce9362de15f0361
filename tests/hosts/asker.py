"""An MCP server with one tool, `approve`: the person at a host's permission prompt, with one answer.

    python asker.py allow|deny LOG

Each question is appended to LOG. Standard library only: it is started beside a host, outside of any environment.
"""

import json
import sys

TOOL = {
    "name": "approve",
    "description": "Asks the person.",
    "inputSchema": {
        "type": "object",
        "properties": {"tool_name": {"type": "string"}, "input": {"type": "object"}, "tool_use_id": {"type": "string"}},
    },
}


def answer(request, verdict, log):
    """The result of one request; None for a method that there is not."""
    params = request.get("params") or {}
    if request["method"] == "initialize":
        info = {"name": "asker", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if request["method"] == "tools/list":
        return {"tools": [TOOL]}
    if request["method"] == "ping":
        return {}
    if request["method"] == "tools/call":
        asked = params["arguments"]
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps(asked) + "\n")
        said = {"behavior": "allow", "updatedInput": asked["input"]}
        if verdict != "allow":
            said = {"behavior": "deny", "message": "the person said no"}
        return {"content": [{"type": "text", "text": json.dumps(said)}]}
    return None


def main(verdict, log):
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request or "method" not in request:
            continue
        result = answer(request, verdict, log)
        unknown = {"code": -32601, "message": "no such method"}
        reply = {"error": unknown} if result is None else {"result": result}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], **reply}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
