"""The Agent Client Protocol with a real server: conversations, turns, tool calls, and what is refused."""

from __future__ import annotations

import pytest

from tests.acp.editor import ABLE, Editor, allow, editing
from tests.mcp.talk import ROOT
from tests.rpc.stories import change, log_of, use
from tests.rpc.talk import Client, line, request


@pytest.fixture
def home(tmp_path):
    return tmp_path / "h"


def test_it_says_what_it_can_and_speaks_version_one_whatever_is_asked_for(home):
    with editing(home, new=False) as editor:
        assert editor.opened["protocolVersion"] == 1
        assert editor.opened["agentCapabilities"]["loadSession"] is True
        assert editor.opened["agentInfo"]["name"] == "opsagent"
        again = editor.client.result("initialize", protocolVersion=2)
        assert again["protocolVersion"] == 1
        assert editor.client.error("initialize", protocolVersion="1")["code"] == -32602


def test_a_read_is_told_from_its_call_to_its_output_and_the_answer_follows(home):
    with editing(home, {"text": "I look.", **use("bash", command="echo hello")}, "It says hello.") as editor:
        done = editor.prompt("what does it say?")
        assert done == {"stopReason": "end_turn", "_meta": {"opsagent": {"exitCode": 0, "requests": []}}}
        (call,) = editor.updates("tool_call")
        assert (call["title"], call["kind"], call["status"]) == ("echo hello", "execute", "pending")
        assert call["rawInput"] == {"command": "echo hello"}
        steps = [one for one in editor.updates("tool_call_update") if one["toolCallId"] == call["toolCallId"]]
        assert [one["status"] for one in steps] == ["in_progress", "completed"]
        assert steps[-1]["content"] == [{"type": "content", "content": {"type": "text", "text": "```\nhello\n```"}}]
        assert steps[-1]["rawOutput"]["execution"].startswith("e-")
        assert editor.text() == "I look.It says hello."
        ids = [one["messageId"] for one in editor.updates("agent_message_chunk")]
        assert len(set(ids)) == 2


def test_several_calls_of_one_reply_are_a_plan_whose_steps_are_told(home):
    calls = [{"tool": "bash", "arguments": {"command": f"echo {word}"}} for word in ("one", "two")]
    with editing(home, {"calls": calls}, "done") as editor:
        editor.prompt()
        plans = editor.updates("plan")
        assert [entry["content"] for entry in plans[0]["entries"]] == ["echo one", "echo two"]
        assert {entry["status"] for entry in plans[0]["entries"]} == {"pending"}
        assert {entry["status"] for entry in plans[-1]["entries"]} == {"completed"}


def test_commands_are_offered_once_the_conversation_is_known(home):
    with editing(home, "x") as editor:
        editor.prompt()
        kinds = [one["sessionUpdate"] for one in editor.updates()]
        assert kinds[0] == "available_commands_update"
        (offered,) = editor.updates("available_commands_update")
        assert [one["name"] for one in offered["availableCommands"]] == ["pending", "executions", "rollback"]


def test_streamed_text_is_told_once_and_a_reply_that_broke_off_is_said_to_have(home):
    replies = [
        {"deltas": ["a line\n", "and mo"], "text": "a line\nand more"},
        {"deltas": ["broken\n"], "error": {"kind": "busy", "retry_after_s": 0}},
        "whole",
    ]
    with editing(home, *replies) as editor:
        editor.prompt()
        assert editor.text() == "a line\nand more"
        editor.prompt()
        assert "broken\n" in editor.text()
        assert "broke off and does not count" in editor.text()
        assert editor.text().endswith("whole")


def test_a_cancel_in_the_middle_is_answered_as_cancelled_and_the_next_turn_works(home):
    with editing(home, {"wait": "never", "text": "x"}, "here") as editor:
        editor.begin("p")
        editor.client.alive = lambda: None
        editor.client.result("session/list")
        editor.client.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": editor.session}})
        assert editor.client.answer("p")["result"]["stopReason"] == "cancelled"
        assert editor.prompt()["stopReason"] == "end_turn"
        assert editor.text().endswith("here")


def test_a_cancelled_request_is_a_cancelled_turn(home):
    with editing(home, {"wait": "never", "text": "x"}) as editor:
        editor.begin("p")
        editor.client.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": "p"}})
        assert editor.client.answer("p")["result"]["stopReason"] == "cancelled"


def test_a_second_prompt_while_one_runs_is_refused(home):
    with editing(home, {"wait": "never", "text": "x"}) as editor:
        editor.begin("p")
        editor.client.until(lambda message: message.get("method") == "session/update")
        while (error := editor.client.ask("session/prompt", editor.words())).get("result"):
            pass
        assert error["error"]["code"] == -32000


def test_a_conversation_is_loaded_in_a_new_process_with_all_that_was_said(home):
    with editing(home, use("bash", command="echo hello"), "remember 42") as editor:
        editor.prompt("what does it say?")
        session = editor.session
    with editing(home, "42", new=False) as editor:
        (listed,) = editor.client.result("session/list", cwd=str(home))["sessions"]
        assert (listed["sessionId"], listed["title"]) == (session, "what does it say?")
        editor.session = session
        loaded = editor.client.result("session/load", sessionId=session, cwd=str(home), mcpServers=[])
        assert loaded["configOptions"][0]["id"] == "guard"
        kinds = [one["sessionUpdate"] for one in editor.updates()]
        assert kinds[:4] == ["user_message_chunk", "tool_call", "tool_call_update", "agent_message_chunk"]
        assert editor.updates("tool_call_update")[0]["status"] == "completed"
        editor.prompt("which number?")
        assert editor.text() == "remember 4242"


def test_a_conversation_is_gone_on_with_without_telling_it_again(home):
    with editing(home, "one") as editor:
        editor.prompt()
        session = editor.session
    with editing(home, "two", new=False) as editor:
        editor.session = session
        editor.client.result("session/resume", sessionId=session, cwd=str(home))
        editor.prompt()
        assert editor.text() == "two"
        assert editor.client.result("session/close", sessionId=session) == {}
        assert editor.client.error("session/prompt", **editor.words())["code"] == -32002


def test_the_list_of_conversations_has_pages(home):
    with editing(home, *["x"] * 52, new=False) as editor:
        for _ in range(52):
            editor.new()
            editor.prompt()
            editor.client.result("session/close", sessionId=editor.session)
        first = editor.client.result("session/list")
        second = editor.client.result("session/list", cursor=first["nextCursor"])
        ids = [one["sessionId"] for one in (*first["sessions"], *second["sessions"])]
        assert (len(ids), len(set(ids)), "nextCursor" in second) == (52, 52, False)
        assert editor.client.result("session/list", cwd="/nowhere") == {"sessions": []}


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("session/new", {"cwd": "relative", "mcpServers": []}, -32602),
        ("session/new", {"mcpServers": []}, -32602),
        ("session/new", {"cwd": "/no/such/folder"}, -32602),
        ("session/load", {"sessionId": "c-none", "cwd": "/"}, -32002),
        ("session/prompt", {"sessionId": "c-none", "prompt": []}, -32002),
        ("session/close", {"sessionId": 3}, -32602),
        ("session/list", {"cursor": "x"}, -32602),
        ("session/set_mode", {"sessionId": "x", "modeId": "y"}, -32601),
        ("fs/read_text_file", {}, -32601),
    ],
)
def test_what_makes_no_sense_is_refused(shared, method, params, code):
    assert shared.client.error(method, **params)["code"] == code


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with editing(tmp_path_factory.mktemp("acp") / "h", *["x"] * 9) as editor:
        yield editor


@pytest.mark.parametrize(
    "prompt",
    [
        [],
        "text",
        [3],
        [{"type": "text"}],
        [{"type": "text", "text": "  "}],
        [{"type": "image", "data": "", "mimeType": "image/png"}],
        [{"type": "resource", "resource": {"uri": "x:y", "blob": ""}}],
        [{"type": "resource_link", "name": "x"}],
    ],
    ids=repr,
)
def test_a_prompt_that_is_none_is_refused(shared, prompt):
    error = shared.client.error("session/prompt", sessionId=shared.session, prompt=prompt)
    assert error["code"] == -32602


def test_what_the_person_points_at_comes_as_the_editor_has_it_and_as_data(home):
    asked = []

    def answers(message):
        asked.append(message["params"])
        return {"content": "unsaved words"}

    link = {"type": "resource_link", "uri": f"file://{home}/a%20file", "name": "a file"}
    inside = {"type": "resource", "resource": {"uri": "zed://selection", "text": "selected words"}}
    script = [{"expect": "look at", "text": "seen"}]
    with editing(home, *script, answers=answers, able=ABLE) as editor:
        editor.prompt("look at", link, inside)
        assert asked == [{"sessionId": editor.session, "path": f"{home}/a file"}]
        assert editor.text() == "seen"
        kept = next((home / "state" / "sessions").glob("*.jsonl")).read_text()
        assert "unsaved words" in kept
        assert "selected words" in kept


def test_a_file_that_the_editor_does_not_give_is_only_named(home):
    link = {"type": "resource_link", "uri": f"file://{home}/x", "name": "x"}
    with editing(home, {"expect": "x", "text": "named"}) as editor:
        editor.prompt("look at", link)
        assert editor.client.asked == []
        assert editor.text() == "named"


def test_servers_of_the_editor_are_never_started_and_that_is_said(home):
    ran = home / "ran"
    server = {"name": "evil", "command": "/usr/bin/touch", "args": [str(ran)], "env": []}
    with editing(home, "x", new=False) as editor:
        made = editor.client.result("session/new", cwd=str(home), mcpServers=[server])
        editor.session = made["sessionId"]
        editor.prompt()
        assert "MCP servers of the client are never started here: evil" in editor.text()
        assert not ran.exists()


def test_notices_go_where_the_editor_shows_them(home):
    with editing(home, {"text": "cut", "stop": "length"}, able={"session": {"notices": {}}}) as editor:
        editor.prompt()
        (notice,) = editor.updates("notice")
        assert notice["title"] == "the answer was cut by the model's length limit"
        assert editor.text() == "cut"


def test_read_only_can_be_chosen_and_never_more_than_is_configured(home):
    with editing(home, use("ops_exec", command=f"touch {home}/made"), "refused", new=False) as editor:
        (option,) = editor.new()["configOptions"]
        assert (option["currentValue"], [one["value"] for one in option["options"]]) == (
            "guarded",
            ["read-only", "guarded"],
        )
        configure = {"sessionId": editor.session, "configId": "guard"}
        assert editor.client.error("session/set_config_option", **configure, value="lab")["code"] == -32602
        assert editor.client.error("session/set_config_option", **{**configure, "configId": "x"}, value="read-only")
        chosen = editor.client.result("session/set_config_option", **configure, value="read-only")
        assert chosen["configOptions"][0]["currentValue"] == "read-only"
        done = editor.prompt()
        assert done["_meta"]["opsagent"]["exitCode"] == 4
        assert editor.updates("tool_call_update")[-1]["rawOutput"]["status"] == "refused"


def test_what_waits_for_an_approval_elsewhere_is_named(home):
    with editing(home, use("ops_exec", command=f"touch {home}/made"), "it waits") as editor:
        (request_id,) = editor.prompt()["_meta"]["opsagent"]["requests"]
        assert f"opsx approve {request_id}" in editor.text()
        editor.prompt("/pending")
        assert f"{request_id}  R1  touch {home}/made" in editor.text()


def test_commands_are_answered_without_the_brain_and_a_rollback_is_asked(home):
    home.mkdir()
    (home / "file").write_text("before\n")
    replies = change(f"cp /etc/hostname {home}/file")
    with editing(home, *replies, "done", answers=allow()) as editor:
        editor.prompt()
        (run,) = log_of(home).executions().executions
        editor.prompt("/executions")
        assert run.id in editor.text()
        assert editor.prompt(f"/rollback {run.id}")["stopReason"] == "end_turn"
        assert (home / "file").read_text() == "before\n"
        asked = editor.client.asked[-1]["params"]
        call = next(one for one in editor.updates("tool_call") if one["toolCallId"] == asked["toolCall"]["toolCallId"])
        assert call["title"] == f"ops_rollback {run.id}"
        assert editor.updates("tool_call_update")[-1]["status"] == "completed"
        assert editor.client.error("session/prompt", **editor.words("/rollback e-none"))["message"]


def test_the_verb_without_a_model_answers_with_the_runbooks(home):
    home.mkdir()
    with Client(home, [str(ROOT / "opsagent"), "acp", "--brain", "offline"]) as client:
        editor = Editor(client, home)
        (option,) = editor.new()["configOptions"]
        assert [one["value"] for one in option["options"]] == ["guarded"]
        done = editor.prompt("check the memory of this machine")
        assert done["stopReason"] == "end_turn"
        assert editor.updates("tool_call")[0]["title"]
        assert editor.text()


def test_an_array_of_messages_is_refused_as_the_protocol_has_none(home):
    with editing(home, new=False) as editor:
        editor.client.send(line([request(1, "session/list")]))
        answer = editor.client.next()
        assert (answer["error"]["code"], answer["id"]) == (-32600, None)
