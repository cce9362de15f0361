"""JSON-RPC: from the start to the answer to a ping; a ping during a turn; what does not make it slower or larger.

Beside a bare interpreter, and beside an agent on the Python SDK of the Agent Client Protocol, which is installed into
an environment of its own in a temporary folder (`--peer PYTHON` names one that has it); without a package index it is
left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

PAUSE_S = 0.005
"""Between two pings of a turn, so that they meet all that it does."""
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}}
PEER = """
import asyncio
import acp

class Agent(acp.Agent):
    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **more):
        return acp.InitializeResponse(protocol_version=1)

asyncio.run(acp.run_agent(Agent()))
"""


class Server:
    """A server that is spoken to line by line."""

    def __init__(self, argv: list[str], home: str) -> None:
        env = {"PATH": os.environ["PATH"], "HOME": home, "OPSAGENT_HOME": f"{home}/state"}
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, cwd=home
        )

    def send(self, message: dict | bytes) -> None:
        assert self.process.stdin
        data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def until(self, id: object) -> dict:
        """The answer with this id; everything before it is passed over."""
        assert self.process.stdout
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("the server is gone")
            message = json.loads(line)
            if message.get("id") == id and "method" not in message:
                return message

    def memory_kib(self) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        return 0

    def close(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait()
        self.process.stdout.close()


def starts(home: str, rounds: int, peer: str | None) -> None:
    """Prints the median time from start to first answer, in turn, and the ratios."""
    python = str(ROOT / ".venv" / "bin" / "python")
    opsagent = str(ROOT / "opsagent")
    servers = {"opsagent rpc, ping": ([opsagent, "rpc"], PING), "opsagent acp, initialize": ([opsagent, "acp"], HELLO)}
    if peer:
        path = Path(home) / "peer.py"
        path.write_text(PEER)
        servers["agent on the ACP SDK"] = ([peer, str(path)], HELLO)
    times: dict[str, list[float]] = {name: [] for name in ("python -c pass", *servers)}
    for number in range(rounds + 1):
        began = time.perf_counter()
        subprocess.run([python, "-c", "pass"], check=True)
        took = {"python -c pass": time.perf_counter() - began}
        for name, (argv, message) in servers.items():
            began = time.perf_counter()
            server = Server(argv, home)
            server.send(message)
            server.until(1)
            took[name] = time.perf_counter() - began
            server.close()
        if number:  # the first round compiles and fills the page cache
            for name, seconds in took.items():
                times[name].append(seconds)
    medians = {name: statistics.median(seconds) for name, seconds in times.items()}
    bare = medians["python -c pass"]
    for name, median in medians.items():
        print(f"{name:26} {median * 1000:7.1f} ms  {median / bare:5.1f} ×")
    if peer:
        ratio = medians["agent on the ACP SDK"] / medians["opsagent rpc, ping"]
        print(f"ping to SDK agent          1/{ratio:.1f} (target 1/5)")
    print("target                     6 × for a ping")


def pings_during_a_turn(home: str, count: int) -> None:
    """Prints how long a ping takes while tools run and text streams."""
    from tests.rpc.stories import written

    looks = {"calls": [{"tool": "bash", "arguments": {"command": "seq 1 2000"}} for _ in range(8)]}
    lines = {"deltas": [f"line {number}\n" for number in range(200)], **looks}
    server = Server([str(ROOT / "opsagent"), "rpc", "--brain", written(Path(home), *[lines] * 60)], home)
    server.send({"jsonrpc": "2.0", "id": "turn", "method": "prompt", "params": {"text": "go"}})
    assert server.process.stdout
    while b'"turn_started"' not in server.process.stdout.readline():
        pass
    times: list[float] = []
    for number in range(count):
        began = time.perf_counter()
        server.send({**PING, "id": number})
        server.until(number)
        times.append(time.perf_counter() - began)
        time.sleep(PAUSE_S)
    server.send({"jsonrpc": "2.0", "id": "stop", "method": "cancel"})
    server.until("turn")
    server.close()
    times.sort()
    p50, p99 = (times[int(len(times) * part)] * 1000 for part in (0.5, 0.99))
    print(f"ping during a turn         p50 {p50:.1f} ms, p99 {p99:.1f} ms (target 20), {count} pings")


def malformed(home: str, count: int) -> None:
    """Prints how long so many lines that are no messages take, and that a prompt works after them."""
    from tests.rpc.stories import written

    server = Server([str(ROOT / "opsagent"), "rpc", "--brain", written(Path(home), "fine")], home)
    began = time.perf_counter()
    lines = [
        b"garbage\n",
        b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n',
        b"[]\n",
        b'{"jsonrpc":"2.0","id":\n',
        b"\xff\n",
    ]
    sender = threading.Thread(target=lambda: server.send(b"".join(lines[n % len(lines)] for n in range(count))))
    sender.start()
    assert server.process.stdout
    errors = sum(b'"error"' in server.process.stdout.readline() for _ in range(count))
    sender.join()
    took = time.perf_counter() - began
    server.send({"jsonrpc": "2.0", "id": "p", "method": "prompt", "params": {"text": "go"}})
    answer = server.until("p")["result"]["answer"]
    server.close()
    print(f"malformed lines            {errors} of {count} answered in {took:.1f} s, then a prompt: {answer!r}")


SEEDS = (
    b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}',
    '{"jsonrpc":"2.0","id":"ü","method":"echo","params":{"a":[1.5,null,"\u2028"]}}'.encode(),
    b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":7}}',
    b'{"jsonrpc":"2.0","id":"srv-1","result":{"answer":"approve"}}',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"nope"}]',
)


def spoiled(chance: random.Random) -> bytes:
    """A frame with a few bytes changed, taken out or put in; now and then cut or doubled."""
    line = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(line) + 1)
        match chance.randrange(4):
            case 0 if at < len(line):
                line[at] = chance.randrange(256)
            case 1:
                del line[at : at + chance.randint(1, 8)]
            case 2:
                line[at:at] = chance.randbytes(chance.randint(1, 8))
            case _:
                line[at:at] = chance.choice(SEEDS)
    return bytes(line).replace(b"\n", b" ")


def not_strict(name: str) -> None:
    raise SystemExit(f"{name} is no JSON")


def fuzz(home: str, count: int) -> None:
    """Prints that every spoiled line got at most one strict line, and that a ping is answered after each thousand."""
    server = Server([sys.executable, str(ROOT / "tests" / "rpc" / "echo_server.py"), "batches"], home)
    chance, answers, began = random.Random(8), 0, time.perf_counter()
    assert server.process.stdout
    for sent in range(1000, count + 1, 1000):
        block = (
            b"".join(spoiled(chance) + b"\n" for _ in range(1000)) + json.dumps({**PING, "id": f"end-{sent}"}).encode()
        )
        threading.Thread(target=server.send, args=(block + b"\n",)).start()
        while True:
            message = json.loads(server.process.stdout.readline(), parse_constant=not_strict)
            if isinstance(message, dict) and message.get("id") == f"end-{sent}":
                break
            answers += 1
        if answers > sent:
            raise SystemExit(f"{answers} answers to {sent} lines")
    size, took = server.memory_kib() / 1024, time.perf_counter() - began
    server.close()
    print(f"{count} spoiled lines      {answers} answers, each strict; {took:.0f} s, {size:.1f} MB at the end")


def requests(home: str, count: int) -> None:
    """Prints the memory over so many requests that each get a thread."""
    server = Server([sys.executable, str(ROOT / "tests" / "rpc" / "echo_server.py")], home)
    sizes, began = [], time.perf_counter()
    for number in range(count):
        server.send({"jsonrpc": "2.0", "id": number, "method": "echo", "params": {"n": number}})
        server.until(number)
        if number % max(1, count // 10) == count // 100:
            sizes.append(server.memory_kib())
    sizes.append(server.memory_kib())
    each = (time.perf_counter() - began) / count * 1e6
    server.close()
    shown = " ".join(f"{size / 1024:.1f}" for size in sizes)
    print(f"{count} requests           {each:.0f} µs each; memory in MB: {shown}")


def peer_in(folder: str) -> str | None:
    """A Python that has the ACP SDK, or None when it cannot be installed."""
    place = f"{folder}/peer"
    venv.create(place, with_pip=True)
    done = subprocess.run(
        [f"{place}/bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "agent-client-protocol"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        print(f"the ACP SDK could not be installed: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return f"{place}/bin/python"


def main() -> None:
    """Everything; the figures are for people, nothing fails here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", help="a Python that has agent-client-protocol")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--fuzz", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opsagent-bench-") as folder:
        home = f"{folder}/home"
        os.mkdir(home, 0o700)
        starts(home, options.rounds, options.peer or peer_in(folder))
        pings_during_a_turn(home, 1000)
        malformed(home, 10_000)
        fuzz(home, options.fuzz)
        requests(home, options.requests)


if __name__ == "__main__":
    main()
