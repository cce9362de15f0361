"""A scripted model server on the loopback interface, in four wire formats: the tests' stand-in for a model API.

    with ModelServer(Say("hello"), Say(calls=[Call("bash", {"command": "ls"})])) as server:
        ... server.openai_url (chat completions and responses), server.anthropic_url, server.gemini_url ...
    server.requests[0].headers["authorization"]

Failures are replies too: `Fail(429, {...}, {"retry-after": "1"})`, `Say(..., delivery=Delivery(cut_after=3))`, and a
`Gate` stops a reply in its middle until the test lets it go on.

Each request is answered with the next reply of the script. What was sent is kept in `requests`. By hand:
`python -m tests.model_server SCRIPT.json`.
"""

from tests.model_server.script import Call, Delivery, Events, Fail, Gate, Raw, Say
from tests.model_server.server import ModelServer, Received

__all__ = ["Call", "Delivery", "Events", "Fail", "Gate", "ModelServer", "Raw", "Received", "Say"]
