"""Consent: a person's own answer in the host's form, or on a terminal; never a word of the model or a default."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult

from capabilities.consent import NO, YES
from tests.mcp import talk

CAN_ASK = {"elicitation": {}}


@pytest.fixture(params=["auto", "legacy"])
def session(request, tmp_path):
    """Runs an async function with a client whose forms are answered by `answer(message, schema)`."""
    home = tmp_path / "home"
    program, *arguments = talk.command(handle_after_s=120)
    server = StdioServerParameters(command=program, args=arguments, env=talk.environment(home), cwd=str(home))
    asked = []

    def run(scenario, answer=None):
        async def form(context, params):
            asked.append(params)
            return answer(params.message, params.requested_schema)

        async def main():
            callbacks = {"elicitation_callback": form} if answer is not None else {}
            async with Client(server, mode=request.param, **callbacks) as client:
                return await scenario(client)

        return anyio.run(main)

    run.home, run.asked = home, asked
    return run


def yes(message, schema):
    if "code" in schema["properties"]:
        return ElicitResult(action="accept", content={"code": re.search(r"type the code (\w+)", message)[1]})
    return ElicitResult(action="accept", content={"answer": YES})


async def refused_then_asked(client, command="touch new"):
    """The answers of exec, approve, exec again, and exec once more."""
    first = (await client.call_tool("ops_exec", {"command": command, "why": "to see"})).structured_content
    asked = (await client.call_tool("ops_approve", {"request": first["request"]})).structured_content
    second = (await client.call_tool("ops_exec", {"command": command})).structured_content
    third = (await client.call_tool("ops_exec", {"command": command})).structured_content
    return first, asked, second, third


def test_a_yes_in_the_form_runs_exactly_this_once(session):
    first, asked, second, third = session(refused_then_asked, yes)
    assert first["status"] == "needs_stamp" and f'ops_approve{{"request": "{first["request"]}"}}' in first["next"]
    assert (asked["status"], asked["stamp"]["consent"]) == ("approved", "elicitation")
    assert (second["status"], second["stamp"]) == ("succeeded", asked["stamp"]["id"])
    assert second["snapshot"].startswith("s-")
    assert third["status"] == "needs_stamp" and third["request"] != first["request"]
    assert (session.home / "new").exists()
    (form,) = session.asked
    for part in ("touch new", str(session.home), "R1", "to see", "one run"):
        assert part in form.message


async def changed_and_planned_back(client):
    """Creates a file with approval; then the plan to take that back, and the answer to confirm=true."""
    _, _, ran, _ = await refused_then_asked(client)
    plan = (await client.call_tool("ops_rollback", {"id": ran["execution"]})).structured_content
    asked = (await client.call_tool("ops_rollback", {"id": ran["execution"], "confirm": True})).structured_content
    return ran, plan, asked


def test_a_plan_to_go_back_is_applied_with_the_code_from_its_form_and_can_itself_be_taken_back(session):
    _, plan, asked = session(changed_and_planned_back, yes)
    assert (plan["status"], [step["action"] for step in plan["steps"]]) == ("planned", ["delete"])
    assert (asked["status"], [result["result"] for result in asked["results"]]) == ("succeeded", ["done"])
    assert not (session.home / "new").exists()
    form = session.asked[-1]
    assert str(session.home / "new") in form.message and list(form.requested_schema["properties"]) == ["code"]

    async def and_back(client):
        return (await client.call_tool("ops_rollback", {"id": asked["execution"], "confirm": True})).structured_content

    assert session(and_back, yes)["status"] == "succeeded"
    assert (session.home / "new").exists()


def test_a_plan_is_not_applied_on_the_models_word(session):
    def only_the_change(message, schema):
        return (
            yes(message, schema) if "touch new" in message else ElicitResult(action="accept", content={"code": "AAAAA"})
        )

    _, _, asked = session(changed_and_planned_back, only_the_change)
    assert asked["status"] == "unanswered" and asked["next"] == f"opsx approve {asked['request']}"
    assert (session.home / "new").exists()


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (ElicitResult(action="decline"), "denied"),
        (ElicitResult(action="cancel"), "cancelled"),
        (ElicitResult(action="accept", content={"answer": NO}), "denied"),
        (ElicitResult(action="accept", content={}), "unanswered"),
        (ElicitResult(action="accept"), "unanswered"),
        (ElicitResult(action="accept", content={"answer": "yes"}), "unanswered"),
        (ElicitResult(action="accept", content={"answer": YES, "confirm": True}), "unanswered"),
    ],
)
def test_every_other_answer_is_no(session, answer, status):
    _, asked, second, _ = session(refused_then_asked, lambda message, schema: answer)
    assert asked["status"] == status
    assert second["status"] == "needs_stamp"
    assert not (session.home / "new").exists()


def test_a_denial_is_remembered_and_said_the_next_time(session):
    answers = [ElicitResult(action="decline"), ElicitResult(action="cancel")]

    async def scenario(client):
        for _ in range(2):
            await client.call_tool("ops_approve", {"command": "touch new"})

    session(scenario, lambda message, schema: answers.pop(0))
    assert "you denied this at" not in session.asked[0].message
    assert "you denied this at" in session.asked[1].message


def test_more_than_a_small_change_needs_the_code_from_the_text(session):
    command = f"chmod 777 {session.home}"
    auto = ElicitResult(action="accept", content={"code": "AAAAA"})
    _, asked, second, _ = session(lambda client: refused_then_asked(client, command), lambda message, schema: auto)
    assert (asked["status"], second["status"]) == ("unanswered", "needs_stamp")
    _, asked, second, _ = session(lambda client: refused_then_asked(client, command), yes)
    assert asked["status"] == "approved"
    assert (second["status"], second["level"]) == ("succeeded", "R2")


def test_what_is_irreversible_is_never_asked_here(session):
    (session.home / "folder").mkdir()

    async def scenario(client):
        return (
            await client.call_tool("ops_approve", {"command": "rm -rf folder", "force": True})
        ).structured_content, (await client.call_tool("ops_exec", {"command": "rm -rf folder"})).structured_content

    asked, ran = session(scenario, yes)
    assert asked["status"] == "needs_stamp" and asked["next"] == f"opsx approve {asked['request']} --force"
    assert ran["status"] == "refused"
    assert session.asked == [] and (session.home / "folder").exists()


def test_a_client_that_cannot_ask_gets_the_line_for_the_person(session):
    first, asked, second, _ = session(refused_then_asked)
    assert first["next"] == f"opsx approve {first['request']}"
    assert (asked["status"], asked["next"]) == ("needs_stamp", f"opsx approve {first['request']}")
    assert second["status"] == "needs_stamp"


def test_what_changes_while_the_person_reads_is_not_approved(session):
    script = session.home / "fix.sh"
    script.write_text("touch new\n")

    def answer(message, schema):
        script.write_text("touch other\n")
        return yes(message, schema)

    async def scenario(client):
        asked = await client.call_tool("ops_approve", {"command": "bash fix.sh"})
        return asked, (await client.call_tool("ops_exec", {"command": "bash fix.sh"})).structured_content

    asked, ran = session(scenario, answer)
    assert asked.is_error and asked.structured_content["error"]["code"] == "approval.changed"
    assert ran["status"] == "needs_stamp"
    assert not (session.home / "new").exists() and not (session.home / "other").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"request": "a-222222"},
        {"request": "a-222222", "command": "touch new"},
        {"command": "ls"},
        {"command": "opsx approve a-1"},
    ],
)
def test_a_question_that_makes_no_sense_is_an_error_and_asks_nobody(session, arguments):
    async def scenario(client):
        return await client.call_tool("ops_approve", arguments)

    assert session(scenario, yes).is_error
    assert session.asked == []


def test_a_stamp_from_a_terminal_is_used_here_once(tmp_path):
    """The person answers elsewhere: the approval is the ledger's, whoever made it and whoever uses it."""
    home = tmp_path / "h"
    with talk.Peer(home) as peer:
        kept = peer.structured("ops_exec", command="touch new")["request"]
        assert peer.structured("ops_status", id=kept)["status"] == "waiting"
        approve_elsewhere(home, kept)
        assert peer.structured("ops_status", id=kept)["status"] == "approved"
        (stamp,) = peer.structured("ops_list")["stamps"]
        done = peer.structured("ops_exec", command="touch new")
        assert (done["status"], done["stamp"]) == ("succeeded", stamp["id"])
        assert peer.structured("ops_exec", command="touch new")["status"] == "needs_stamp"
        assert (home / "new").exists()


def test_a_stamp_from_here_is_used_on_the_command_line_once(tmp_path):
    home = tmp_path / "h"
    with talk.Peer(home, open=False) as peer:
        peer.ask("initialize", {**talk.LEGACY, "capabilities": CAN_ASK})
        peer.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        id = peer.request("tools/call", {"name": "ops_approve", "arguments": {"command": "touch new"}})
        form = peer.next()
        assert form["method"] == "elicitation/create"
        peer.send({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "accept", "content": {"answer": YES}}})
        assert peer.answer(id)["result"]["structuredContent"]["status"] == "approved"
    codes = [opsx(home, "exec", "--", "touch new") for _ in range(2)]
    assert codes == [0, 3]
    assert (home / "new").exists()


def opsx(home, *arguments: str) -> int:
    lines = ("import sys", f"sys.path.insert(0, {str(talk.ROOT)!r})", "from cli.opsx import main")
    code = "\n".join((*lines, f"sys.exit(main({list(arguments)!r}))"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=talk.environment(home),
        cwd=home,
        stdin=subprocess.DEVNULL,
        capture_output=True,
    )
    return done.returncode


def in_process(home, code: str) -> None:
    """Runs Python with a `guard` in a process of its own, as another shell would."""
    code = f"""
import sys
sys.path.insert(0, {str(talk.ROOT)!r})
import execution
from cli import surroundings
guard = execution.open_guard(surroundings.policy())
{code}
"""
    subprocess.run([sys.executable, "-c", code], env=talk.environment(home), cwd=home, check=True, timeout=60)


def approve_elsewhere(home, request_id: str) -> None:
    """What `opsx approve` does after the person's yes."""
    in_process(
        home,
        f"""
from acting import approving
from guard.bound import Consent
from guard.ledger.answers import ToApprove
kept = guard.ledger.request({request_id!r})
request = kept.request()
assessment = execution.assess(request, guard)
binding = approving.bind(request, assessment, guard, kept.options, kept.environment)
guard.ledger.answers.approve([ToApprove(request, assessment, binding, kept.id)], Consent("tty", "0" * 64))
""",
    )


def by_opsx_approve(home, request_id: str) -> None:
    """The command line's own way from a kept request to the stamp, in a process with an environment of its own."""
    in_process(
        home,
        f"""
from capabilities.questions import prepared
from capabilities.subjects import Wanted
from guard.bound import Consent
one = prepared(Wanted.of_kept(guard.ledger.request({request_id!r})), guard, force=False, holds="")
guard.ledger.answers.approve([one.to_approve()], Consent("tty", "0" * 64))
""",
    )


@pytest.mark.parametrize("approve", ["opsx", "form"])
def test_a_request_is_approved_for_its_askers_environment_wherever_it_is_answered(tmp_path, approve):
    """`kubectl` passes KUBECONFIG on: what the server's host set is bound, not what surrounds whoever answers."""
    home = tmp_path / "h"
    home.mkdir()
    (home / "x.yaml").write_text("kind: ConfigMap\n")
    (home / "one").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: prod\n"
        "contexts:\n- context:\n    cluster: c\n    user: u\n  name: prod\n"
        "clusters:\n- cluster:\n    server: http://127.0.0.1:9\n  name: c\nusers: []\n"
    )
    command = "kubectl apply -f x.yaml"
    with talk.Peer(home, env={"KUBECONFIG": str(home / "one")}) as asker:
        kept = asker.structured("ops_exec", command=command)["request"]
        if approve == "opsx":
            by_opsx_approve(home, kept)
        else:
            # The same client, started anew from another environment, whose person answers its form.
            with talk.Peer(home, client={"capabilities": CAN_ASK}) as other:
                id = other.request("tools/call", {"name": "ops_approve", "arguments": {"request": kept}})
                form = other.next()
                assert re.search(r"points at +kubernetes context prod", form["params"]["message"])
                code = re.search(r"type the code (\w+)", form["params"]["message"])[1]
                result = {"action": "accept", "content": {"code": code}}
                other.send({"jsonrpc": "2.0", "id": form["id"], "result": result})
                assert other.answer(id)["result"]["structuredContent"]["status"] == "approved"
                # It is not an approval for this environment.
                mine = other.structured("ops_exec", command=command)
                assert mine["status"] == "needs_stamp"
        ran = asker.structured("ops_exec", command=command)
        assert ran["status"] == "failed" and ran["stamp"].startswith("t-")  # there is no such cluster, or no kubectl
        assert asker.structured("ops_exec", command=command)["status"] == "needs_stamp"


def test_a_request_of_the_command_line_is_not_approved_by_a_client(tmp_path):
    home = tmp_path / "h"
    with talk.Peer(home, client={"capabilities": CAN_ASK}) as peer:
        assert opsx(home, "exec", "--", "touch new") == 3
        (kept,) = peer.structured("ops_list")["requests"]
        got = peer.structured("ops_approve", request=kept["id"])
        assert got["error"]["code"] == "not_permitted" and f"opsx approve {kept['id']}" in got["error"]["hint"]


def test_a_stop_from_elsewhere_holds_here_from_the_next_call_on(tmp_path):
    home = tmp_path / "h"
    with talk.Peer(home) as peer:
        kept = peer.structured("ops_exec", command="touch new")["request"]
        approve_elsewhere(home, kept)
        in_process(home, 'guard.ledger.answers.freeze("an incident", actor="person")')
        frozen = peer.structured("ops_exec", command="touch new")
        assert (frozen["status"], "an incident" in frozen["because"]["text"]) == ("refused", True)
        assert peer.structured("bash", command="echo reads go on")["status"] in ("succeeded", "needs_stamp")
        in_process(home, "guard.ledger.answers.thaw()")
        assert peer.structured("ops_exec", command="touch new")["status"] == "succeeded"


# ── the sealed state of the era without server requests, by hand ─────────────────────────────────────────────────


class Asked:
    """An `ops_approve` that was answered with a form."""

    def __init__(self, peer: talk.Peer, command: str = "touch new") -> None:
        self.peer = peer
        self.kept = peer.structured("ops_exec", command=command)["request"]
        self.first = self.call()["result"]

    def call(self, **more) -> dict:
        meta = {"_meta": {"io.modelcontextprotocol/clientCapabilities": CAN_ASK}}
        arguments = {"request": self.kept}
        return self.peer.ask("tools/call", {"name": "ops_approve", "arguments": arguments, **meta, **more})

    def answered(self, state, response=None) -> str:
        response = response or {"action": "accept", "content": {"answer": YES}}
        found = self.call(inputResponses={"approve": response}, requestState=state)
        return found["result"]["structuredContent"]["status"]


@pytest.fixture
def modern(tmp_path):
    with talk.Peer(tmp_path / "h", modern=True) as peer:
        yield peer


def test_the_form_comes_with_a_mark_that_tells_nothing(modern):
    asked = Asked(modern, "chmod 777 .")
    assert asked.first["resultType"] == "input_required"
    form = asked.first["inputRequests"]["approve"]["params"]
    code = re.search(r"type the code (\w+)", form["message"])[1]
    assert code not in json.dumps({**asked.first, "inputRequests": {}})
    assert code not in json.dumps(form["requestedSchema"])


@pytest.mark.parametrize("state", [None, "", "x", "a.b", 3, {"n": 1}, "A" * 22 + "." + "0" * 64])
def test_a_forged_state_approves_nothing(modern, state):
    asked = Asked(modern)
    if state is None:
        found = asked.call(inputResponses={"approve": {"action": "accept", "content": {"answer": YES}}})
    else:
        found = asked.call(
            inputResponses={"approve": {"action": "accept", "content": {"answer": YES}}}, requestState=state
        )
    status = found.get("result", {}).get("structuredContent", {}).get("status")
    assert status == "unanswered" or found["error"]["code"] == -32602
    assert modern.structured("ops_list")["stamps"] == []


def test_a_state_counts_once_and_for_its_own_request_only(modern):
    one, other = Asked(modern), Asked(modern, "touch other")
    assert other.answered(one.first["requestState"]) == "unanswered"
    assert one.answered(one.first["requestState"], {"action": "cancel"}) == "cancelled"
    assert one.answered(one.first["requestState"]) == "unanswered"
    again = one.call()["result"]["requestState"]
    assert one.answered(again) == "approved"
    assert len(modern.structured("ops_list")["stamps"]) == 1


def test_a_state_of_another_process_counts_for_nothing(modern, tmp_path):
    with talk.Peer(tmp_path / "h", modern=True) as second:
        state = Asked(second, "touch other").first["requestState"]
    assert Asked(modern).answered(state) == "unanswered"


@pytest.mark.parametrize("response", [{"action": "accept"}, {"action": "accept", "content": {}}, {"action": "decline"}])
def test_an_answer_that_is_not_the_yes_approves_nothing(modern, response):
    asked = Asked(modern)
    assert asked.answered(asked.first["requestState"], response) in ("unanswered", "denied")
    assert modern.structured("ops_list")["stamps"] == []


def test_an_answer_without_a_declared_form_is_never_asked_for(modern):
    kept = modern.structured("ops_exec", command="touch new")["request"]
    found = modern.ask("tools/call", {"name": "ops_approve", "arguments": {"request": kept}})["result"]
    assert found["resultType"] == "complete" and found["structuredContent"]["status"] == "needs_stamp"


def test_a_request_of_another_client_is_not_asked_about_and_that_of_the_same_one_started_anew_is(tmp_path):
    home = tmp_path / "h"
    with talk.Peer(home) as one:
        kept = one.structured("ops_exec", command="touch new")["request"]
    with talk.Peer(home, open=False) as other:
        other.ask("initialize", {**talk.LEGACY, "clientInfo": {"name": "another", "version": "1"}})
        other.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        answer = other.call("ops_approve", request=kept)
    assert answer["isError"] and answer["structuredContent"]["error"]["code"] == "not_permitted"
    with talk.Peer(home) as again:
        assert again.structured("ops_approve", request=kept)["status"] == "needs_stamp"
