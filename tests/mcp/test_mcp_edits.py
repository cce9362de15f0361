"""Changes of files through an MCP host: shown whole, approved by a person, saved, and taken back like any other."""

from __future__ import annotations

import re

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from capabilities.consent import NO, YES
from tests.mcp import talk


@pytest.fixture(params=["auto", "legacy"])
def session(request, tmp_path):
    """Runs an async function with a client whose person answers `said` to every form, or the code that stands in it."""
    home = tmp_path / "home"
    (home / "app.conf").write_bytes("port = 80\n主机 = a\n".encode())
    program, *arguments = talk.command("edits", handle_after_s=120)
    server = StdioServerParameters(command=program, args=arguments, env=talk.environment(home), cwd=str(home))
    asked = []

    def run(scenario, said=None):
        async def form(context, params):
            asked.append(params.message)
            code = re.search(r"type the code (\w+)", params.message)
            return ElicitResult(action="accept", content={"code": code[1]} if code else {"answer": said})

        async def main():
            async with Client(
                server, mode=request.param, **({} if said is None else {"elicitation_callback": form})
            ) as client:
                return await scenario(client)

        return anyio.run(main)

    run.home, run.asked = home, asked
    return run


EDIT = ("edit", {"path": "app.conf", "old": "port = 80", "new": "port = 443"})
WRITE = ("write", {"path": "new.conf", "content": "端口 = 1\n"})


async def call(client, name, arguments):
    answer = await client.call_tool(name, arguments)
    return answer.structured_content | {"is_error": answer.is_error}


async def asked_and_done(client, name, arguments):
    """The answers of the call, of `ops_approve`, and of the same call again."""
    first = await call(client, name, arguments)
    approved = await call(client, "ops_approve", {"request": first["request"]})
    return first, approved, await call(client, name, arguments)


@pytest.mark.parametrize(("name", "arguments"), [EDIT, WRITE])
def test_a_person_sees_the_difference_and_the_same_call_again_does_it_once(session, name, arguments):
    file = session.home / arguments["path"]
    before = file.read_bytes() if file.exists() else None

    async def scenario(client):
        answers = await asked_and_done(client, name, arguments)
        there, after = file.read_bytes(), await call(client, name, arguments)
        await call(client, "ops_rollback", {"id": answers[-1]["execution"], "confirm": True})
        return *answers, there, after

    first, approved, done, there, after = session(scenario, YES)
    assert (first["status"], first["is_error"], approved["status"]) == ("needs_stamp", True, "approved")
    assert (done["status"], done["is_error"], done["stamp"]) == ("succeeded", False, approved["stamp"]["id"])
    assert done["snapshot"].startswith("s-") and done["next"] == f"opsx rollback {done['execution']}"
    assert after["is_error"] and after["error"]["code"] == "usage.edit", "it is done already, and says so"
    assert there == ("port = 443\n主机 = a\n" if name == "edit" else "端口 = 1\n").encode()
    assert any("+port = 443" in form or "+端口 = 1" in form for form in session.asked)
    assert (file.read_bytes() if file.exists() else None) == before, "the rollback that the person allowed"


def test_without_a_yes_nothing_is_written(session):
    async def scenario(client):
        return await asked_and_done(client, *EDIT)

    for said in (None, NO):
        first, approved, again = session(scenario, said)
        assert first["status"] == again["status"] == "needs_stamp"
        assert approved["status"] == ("needs_stamp" if said is None else "denied")
        assert (session.home / "app.conf").read_bytes() == "port = 80\n主机 = a\n".encode()


def test_opsagents_own_files_and_unknown_arguments_are_refused(session):
    async def scenario(client):
        own = await call(client, "write", {"path": str(session.home / "state/config/config.toml"), "content": "x"})
        more = await call(client, "write", {"path": "f", "content": "x", "force": True})
        gone = await call(client, "edit", {"path": "gone", "old": "a", "new": "b"})
        return own, more, gone

    (session.home / "state" / "config").mkdir(parents=True)
    for folder in ("state", "state/config"):
        (session.home / folder).chmod(0o700)
    own, more, gone = session(scenario)
    assert (own["status"], own["request"]) == ("refused", None)
    assert more["error"]["code"].startswith("usage") and gone["error"]["code"] == "usage.edit"
    assert not (session.home / "f").exists() and not (session.home / "state/config/config.toml").exists()


def test_the_hints_say_that_they_change_things(session):
    async def scenario(client):
        return {tool.name: tool.annotations for tool in (await client.list_tools()).tools}

    hints = session(scenario)
    for name in ("write", "edit"):
        assert not hints[name].read_only_hint and not hints[name].open_world_hint and hints[name].destructive_hint
    assert hints["write"].idempotent_hint and not hints["edit"].idempotent_hint


def test_they_are_there_only_where_they_are_configured(tmp_path):
    """The list of tools is read by a model in each conversation, and hosts have such tools of their own."""
    for options, offered in (((), set()), (("edits",), {"edit", "write"})):
        with talk.Peer(tmp_path / "-".join(("h", *options)), options=options) as peer:
            names = {tool["name"] for tool in peer.ask("tools/list")["result"]["tools"]}
            assert names & {"edit", "write"} == offered
            assert ("`edit`" in peer.opened["result"]["instructions"]) == bool(offered)
            assert len(peer.opened["result"]["instructions"].encode()) < 2048
