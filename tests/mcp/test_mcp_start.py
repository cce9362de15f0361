"""The start loads what a stdio server uses and nothing else, and never depends on that working."""

from __future__ import annotations

import json
import subprocess
import sys

from tests.mcp.talk import LEGACY, ROOT, Peer, environment

HEAVY = ("starlette", "uvicorn", "httpx2", "sse_starlette", "cryptography", "jwt", "click", "jsonschema")


def python(tmp_path, code: str) -> str:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{code}"],
        env=environment(home),
        cwd=home,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def launch(*arguments: str) -> str:
    """Python that does what `opsagent mcp ARGUMENTS` does."""
    lines = ("import sys", f"sys.path.insert(0, {str(ROOT)!r})", "from cli.opsagent import main")
    return "\n".join((*lines, f"sys.exit(main({['mcp', *arguments]!r}))"))


def test_the_light_way_works_with_the_installed_package_and_leaves_no_trace(tmp_path):
    out = python(
        tmp_path,
        "import json, mcp_wire.sdk\n"
        "import pydantic\n"
        "init = pydantic.TypeAdapter.__init__\n"
        "sdk = mcp_wire.sdk.load_sdk()\n"
        f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "same = pydantic.TypeAdapter.__init__ is init and not pydantic.BaseModel.model_config\n"
        "finders = [type(one).__name__ for one in sys.meta_path]\n"
        "import httpx2\n"
        "print(json.dumps([sdk.light, heavy, same, finders, httpx2.Client.__module__.split('.')[0]]))\n",
    )
    light, heavy, same, finders, real = json.loads(out)
    assert (light, heavy, same, real) == (True, [], True, "httpx2")
    assert "_StandIns" not in finders


def test_when_the_light_way_fails_the_whole_package_serves(tmp_path):
    out = python(
        tmp_path,
        "import contextlib, mcp_wire.sdk, json\n"
        "@contextlib.contextmanager\n"
        "def broken():\n"
        "    import mcp_types\n"
        "    yield\n"
        "    raise RuntimeError('another version of the package')\n"
        "sdk = mcp_wire.sdk.load_sdk(broken)\n"
        "print(json.dumps([sdk.light, sdk.Server.__name__, 'starlette' in sys.modules]))\n",
    )
    assert json.loads(out) == [False, "Server", True]


def test_what_a_call_needs_is_loaded_with_the_first_call(tmp_path):
    """Until then the guard, the judge's grammar and jsonschema stay out of the way of the host's start-up time."""
    out = python(
        tmp_path,
        "import json, mcp_server, mcp_wire.sdk\n"
        "mcp_wire.sdk.load_sdk()\n"
        "late = ('jsonschema', 'guard.judge.shell.grammar', 'guard.hands.sandbox.worker', 'sqlite3')\n"
        "print(json.dumps([name for name in late if name in sys.modules]))\n",
    )
    assert json.loads(out) == []


def test_the_launcher_serves(tmp_path):
    """`opsagent mcp` from a folder of its own, through the command line's dispatch."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": LEGACY},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    ]
    code = launch()
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="".join(json.dumps(line) + "\n" for line in lines).encode(),
        env=environment(home),
        cwd=home,
        capture_output=True,
        timeout=120,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, [answer["id"] for answer in answers]) == (0, [1, 2])
    assert answers[0]["result"]["serverInfo"]["name"] == "opsagent"


def test_read_only_refuses_every_change(tmp_path):
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    code = launch("--read-only")
    call = {"name": "ops_exec", "arguments": {"command": "touch new"}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": LEGACY},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(home), cwd=home
    )
    with process:
        process.stdin.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        process.stdin.flush()
        process.stdout.readline()
        answer = json.loads(process.stdout.readline())["result"]["structuredContent"]
        process.stdin.close()
        process.wait(60)
        process.stdout.close()
    assert (answer["status"], answer["forceable"], answer["request"]) == ("refused", False, None)


def test_a_wrong_option_is_a_sentence_on_stderr_and_nothing_on_the_wire(tmp_path):
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    for arguments in (["--nothing"], ["extra"], ["--cwd", "/no/such/folder"]):
        code = launch(*arguments)
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdin=subprocess.DEVNULL,
            env=environment(home),
            cwd=home,
            capture_output=True,
            timeout=60,
        )
        assert (done.returncode, done.stdout) == (2, b"")
        assert done.stderr.startswith(b"error[usage")


def test_the_server_says_who_it_is(tmp_path):
    with Peer(tmp_path / "h") as peer:
        opened = peer.opened["result"]
        assert opened["serverInfo"] == {"name": "opsagent", "title": "opsagent", "version": "0"}
        assert opened["capabilities"] == {"tools": {"listChanged": False}}


def test_the_page_about_the_server_names_every_tool_with_its_hint_and_its_arguments(tmp_path):
    page = (ROOT / "docs/mcp.md").read_text()
    with Peer(tmp_path / "h", options=("edits",)) as peer:
        tools = peer.ask("tools/list")["result"]["tools"]
    rows = [line for line in page.splitlines() if line.startswith("| `") and "{" in line]
    assert len(rows) == len(tools)
    for tool, row in zip(tools, rows, strict=True):
        words, read_only = row.split("|")[1:3] if "\\|" not in row else (row.split(" | ")[0], row.split(" | ")[1])
        name, _, arguments = words.replace("\\|", ",").strip(" |`").rstrip("}").partition("{")
        assert name == tool["name"]
        assert read_only.strip() == ("yes" if tool["annotations"]["readOnlyHint"] else "no")
        named = {one.strip() for one in arguments.split(",") if one.strip()}
        assert named == set(tool["inputSchema"]["properties"]) - {"target"}
