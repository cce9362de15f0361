"""What an editor's answer to a permission request means, and that all of the request is in it."""

from __future__ import annotations

import pytest

from agent.acp.asking import choice_of, permission_of, typed_of, words_of
from agent.acp.updates import diffs_of
from agent.jsonrpc import Reply
from dialogue.confirm import ANSWERED, APPROVED, CANCELLED, DENIED, UNANSWERED
from tests.acp.editor import ABLE, allow, editing
from tests.rpc.stories import change, kinds_in, log_of, use

pytestmark = pytest.mark.guarantee("G-RPC-YES")

OPTIONS = [
    {"optionId": "reject", "name": "No", "kind": "reject_once"},
    {"optionId": "allow", "name": "Yes", "kind": "allow_once"},
]


def selected(option: object) -> dict:
    return {"outcome": {"outcome": "selected", "optionId": option}}


NO_YES = [
    None,
    {},
    "allow",
    {"outcome": "allow"},
    {"outcome": "selected"},
    {"outcome": {"optionId": "allow"}},
    {"outcome": {"outcome": "selected"}},
    {"outcome": {"outcome": "Selected", "optionId": "allow"}},
    {"outcome": [{"outcome": "selected", "optionId": "allow"}]},
    selected("Allow"),
    selected(None),
    selected(True),
    selected(["allow"]),
    selected("allow_once"),
    selected("allow-several"),
]


@pytest.mark.parametrize("result", NO_YES, ids=repr)
def test_anything_but_an_option_that_was_offered_is_no_answer(result):
    assert permission_of(Reply(result), OPTIONS, "sha").outcome == UNANSWERED


def test_the_options_mean_what_they_say():
    said = permission_of(Reply(selected("allow")), OPTIONS, "sha")
    assert (said.outcome, said.consent, said.rendered_sha256, said.uses) == (APPROVED, "acp", "sha", 1)
    assert permission_of(Reply(selected("reject")), OPTIONS, "sha").outcome == DENIED
    assert permission_of(Reply({"outcome": {"outcome": "cancelled"}}), OPTIONS, "sha").outcome == CANCELLED
    several = [*OPTIONS, {"optionId": "allow-several", "name": "…", "kind": "allow_always"}]
    assert permission_of(Reply(selected("allow-several")), several, "sha").uses == 10
    assert permission_of(Reply(selected("allow"), "the client is gone"), OPTIONS, "sha").outcome == UNANSWERED


@pytest.mark.parametrize("text", ["", "/srv", " /srv/data", "yes", None, True, ["/srv/data"]])
def test_a_form_approves_only_with_exactly_the_text(text):
    result = {"action": "accept", "content": {"answer": text}}
    assert typed_of(Reply(result), "/srv/data", "sha").outcome == UNANSWERED


def test_a_form_that_is_filled_in_declined_or_closed():
    good = {"action": "accept", "content": {"answer": "/srv/data"}}
    assert typed_of(Reply(good), "/srv/data", "sha").outcome == APPROVED
    assert typed_of(Reply({**good, "action": "decline"}), "/srv/data", "sha").outcome == DENIED
    assert typed_of(Reply({"action": "cancel"}), "/srv/data", "sha").outcome == CANCELLED
    assert typed_of(Reply({**good, "action": "accepted"}), "/srv/data", "sha").outcome == UNANSWERED
    more = {"action": "accept", "content": {"answer": "/srv/data", "sure": False}}
    assert typed_of(Reply(more), "/srv/data", "sha").outcome == UNANSWERED
    assert words_of(Reply(good)).reason == "/srv/data"
    assert words_of(Reply({**good, "action": "decline"})).outcome == UNANSWERED


def test_a_chosen_answer_to_a_question_is_its_words():
    options = [{"optionId": "none", "name": "No answer"}, {"optionId": "option-0", "name": "the blue one"}]
    said = choice_of(Reply(selected("option-0")), options)
    assert (said.outcome, said.reason) == (ANSWERED, "the blue one")
    for other in ("none", "option-1", "the blue one"):
        assert choice_of(Reply(selected(other)), options).outcome == UNANSWERED


def test_a_difference_becomes_one_diff_for_each_place():
    lines = ["change the file /x", "now: …", "", "@@ -1,2 +1,2 @@", " a", "-b", "+c", "@@ -9 +9,2 @@", " z", "+-- y"]
    assert diffs_of("/x", lines) == [
        {"type": "diff", "path": "/x", "oldText": "a\nb", "newText": "a\nc"},
        {"type": "diff", "path": "/x", "oldText": "z", "newText": "z\n-- y"},
    ]
    assert diffs_of("/x", ["make the file /x", "an empty file"]) == []


# ── with a real server ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def home(tmp_path):
    return tmp_path / "h"


def test_a_permission_that_is_granted_runs_exactly_that_and_is_on_record_as_consent_through_acp(home):
    with editing(home, *change(f"touch {home}/made"), "done", answers=allow()) as editor:
        done = editor.prompt()
        assert (done["stopReason"], done["_meta"]["opsagent"]["exitCode"]) == ("end_turn", 0)
        assert (home / "made").exists()
        (asked,) = editor.client.asked
        params = asked["params"]
        assert asked["method"] == "session/request_permission"
        assert [option["kind"] for option in params["options"]] == ["reject_once", "allow_once", "allow_always"]
        assert params["toolCall"]["title"].startswith("R1 · ")
        assert params["toolCall"]["title"].endswith(f" · touch {home}/made")
        (page,) = params["toolCall"]["content"]
        for part in (f"  | touch {home}/made\n", "R1: small and reversible", "because", "saved first"):
            assert part in page["content"]["text"]
        told = [one["toolCallId"] for one in editor.updates("tool_call")]
        assert params["toolCall"]["toolCallId"] in told
    (approved,) = [one for one in log_of(home).entries() if one["kind"] == "approved"]
    assert (approved["consent"], approved["shell"], approved["client"]) == ("acp", "acp", "editor 3")


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        (selected("reject"), "denied"),
        ({"outcome": {"outcome": "cancelled"}}, ""),
        (selected("yes"), ""),
        (LookupError("broken"), ""),
    ],
    ids=["reject", "cancelled", "no such option", "an error"],
)
def test_a_permission_that_is_not_granted_runs_nothing(home, said, kind):
    with editing(home, *change(f"touch {home}/made"), "left", answers=lambda message: said) as editor:
        assert editor.prompt()["_meta"]["opsagent"]["exitCode"] in (3, 4)
        assert not (home / "made").exists()
    kinds = kinds_in(home)
    assert "approved" not in kinds
    assert ("denied" in kinds) == (kind == "denied")


def test_the_tool_call_that_asks_is_told_before_its_permission_is_asked(home):
    order = []

    def answers(message):
        order.append(("asked", message["params"]["toolCall"]["toolCallId"]))
        return selected("reject")

    with editing(home, *change("touch made"), "x", answers=answers) as editor:
        editor.begin("p")
        while (message := editor.client.next()).get("id") != "p" or "method" in message:
            update = message.get("params", {}).get("update", {})
            if update.get("sessionUpdate") == "tool_call":
                order.append(("told", update["toolCallId"]))
            if "method" in message:
                editor.client.took(message)
    (asked,) = [id for what, id in order if what == "asked"]
    assert order.index(("told", asked)) < order.index(("asked", asked))


def test_always_is_ten_runs_of_exactly_this_and_offered_for_what_is_small_alone(home):
    command = "touch made"
    replies = [*change(command), use("ops_exec", command=command), use("ops_exec", command="touch other"), "done"]
    with editing(home, *replies, answers=allow("allow-several")) as editor:
        editor.prompt()
        statuses = [
            one["rawOutput"]["status"] for one in editor.updates("tool_call_update") if one["status"] != "in_progress"
        ]
        assert statuses == ["needs_stamp", "approved", "succeeded", "succeeded", "needs_stamp"]
    (approved,) = [one for one in log_of(home).entries() if one["kind"] == "approved"]
    assert approved["uses"] == 10


def test_high_risk_is_approved_once_at_most(home):
    with editing(home, *change("chmod 600 script.jsonl"), "x", answers=allow("allow-several")) as editor:
        editor.prompt()
        (asked,) = editor.client.asked
        assert asked["params"]["toolCall"]["title"].startswith("R2 · ")
        assert [option["kind"] for option in asked["params"]["options"]] == ["reject_once", "allow_once"]
        assert "approved" not in kinds_in(home)


def test_what_cannot_be_undone_is_asked_only_where_it_can_be_typed(home):
    (home / "data").mkdir(parents=True)
    (home / "data" / "one").write_text("1")
    replies = [*change(f"rm -r {home}/data"), "x"]
    with editing(home, *replies, answers=allow()) as editor:
        editor.prompt()
        assert editor.client.asked == []
        assert (home / "data").exists()
        assert "--force" in editor.updates("tool_call_update")[-1]["content"][0]["content"]["text"]

    def typed(message):
        assert message["method"] == "elicitation/create"
        assert message["params"]["mode"] == "form"
        assert f"rm -r {home}/data" in message["params"]["message"]
        return {"action": "accept", "content": {"answer": f"{home}/data"}}

    with editing(home, *replies, answers=typed, able=ABLE) as editor:
        editor.prompt()
        assert not (home / "data").exists()


def test_a_file_change_is_asked_with_its_true_difference(home):
    home.mkdir()
    (home / "conf").write_text("a\nb\nc\n")
    replies = [
        use("write", path="conf", content="a\nB\nc\n"),
        {"expect": '"request": "(?P<request>a-[a-z0-9-]+)"', **use("ops_approve", request="${request}")},
        use("write", path="conf", content="a\nB\nc\n"),
        "done",
    ]
    with editing(home, *replies, answers=allow()) as editor:
        editor.prompt()
        assert (home / "conf").read_text() == "a\nB\nc\n"
        (asked,) = editor.client.asked
        diff, page = asked["params"]["toolCall"]["content"]
        assert diff == {"type": "diff", "path": f"{home}/conf", "oldText": "a\nb\nc", "newText": "a\nB\nc"}
        assert "change the file" in page["content"]["text"]
        written = [one for one in editor.updates("tool_call") if one["kind"] == "edit"]
        assert written[0]["locations"] == [{"path": f"{home}/conf"}]
        assert written[0]["content"][0]["newText"] == "a\nB\nc\n"


def test_a_plan_is_asked_whole(home):
    plan = use("ops_plan", steps=[{"command": "touch one"}, {"command": "chmod 600 script.jsonl"}])
    with editing(home, plan, "done", answers=allow()) as editor:
        editor.prompt()
        (asked,) = editor.client.asked
        assert asked["params"]["toolCall"]["title"].startswith("R2 · ")
        assert asked["params"]["toolCall"]["title"].endswith(" · touch one and 1 more")
        assert [one["name"] for one in asked["params"]["options"]] == ["No, do not do it", "Yes, exactly all 2, once"]
        assert "  | chmod 600 script.jsonl\n" in asked["params"]["toolCall"]["content"][0]["content"]["text"]
        assert (home / "one").exists()


def test_a_question_is_a_form_or_a_choice_and_else_is_not_asked(home):
    question = use("ask_user", question="which one?", options=["the red one", "the blue one"])
    replies = [question, {"expect": "the blue one", "text": "so be it"}]
    with editing(home, *replies, answers=allow("option-1")) as editor:
        editor.prompt()
        assert editor.text() == "so be it"
        assert [one["name"] for one in editor.client.asked[0]["params"]["options"]] == [
            "No answer",
            "the red one",
            "the blue one",
        ]
    form = {"action": "accept", "content": {"answer": "the blue one"}}
    with editing(home, *replies, answers=lambda message: form, able=ABLE) as editor:
        editor.prompt()
        schema = editor.client.asked[0]["params"]["requestedSchema"]
        assert schema["properties"]["answer"]["enum"] == ["the red one", "the blue one"]
        assert editor.text() == "so be it"
    with editing(home, use("ask_user", question="what?"), {"expect": "nobody can be asked", "text": "alone"}) as editor:
        editor.prompt()
        assert (editor.client.asked, editor.text()) == ([], "alone")


def test_a_cancel_while_permission_is_asked_takes_it_back_and_a_late_answer_approves_nothing(home):
    with editing(home, *change(f"touch {home}/made"), "x") as editor:
        editor.begin("p")
        asked = editor.client.until(lambda message: message.get("method") == "session/request_permission")
        editor.client.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": editor.session}})
        assert editor.client.answer("p")["result"]["stopReason"] == "cancelled"
        editor.client.reply(asked["id"], result=selected("allow"))
        editor.client.result("session/list")
        assert not (home / "made").exists()
        assert {"requestId": asked["id"]} in [note["params"] for note in editor.client.notes]


@pytest.mark.guarantee("G-RPC-ENDS")
def test_an_editor_that_goes_while_permission_is_asked_has_approved_nothing(home):
    with editing(home, *change(f"touch {home}/made"), "x") as editor:
        editor.begin("p")
        editor.client.until(lambda message: message.get("method") == "session/request_permission")
        rest = editor.client.ended()
        assert editor.client.code == 0
        assert [one["result"]["stopReason"] for one in rest if one.get("id") == "p"] == ["cancelled"]
    assert not (home / "made").exists()
    assert "approved" not in kinds_in(home)
