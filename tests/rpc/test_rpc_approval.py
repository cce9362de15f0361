"""What a client's answer to an approval means: one well-formed yes, and many ways to say no."""

from __future__ import annotations

import dataclasses

import pytest

from agent.held import most_uses, why_not_here
from agent.jsonrpc import Reply
from agent.rpc.asking import approval_of, spelled_approval_of, words_of
from dialogue.confirm import ANSWERED, APPROVED, DENIED, UNANSWERED, Ask
from tests.rpc.stories import change, kinds_in, log_of, served, use

pytestmark = pytest.mark.guarantee("G-RPC-YES")

ASK = Ask(
    id="a-1",
    target="local",
    host="here",
    user="me",
    cwd="/",
    command="touch x",
    level="R1",
    reasons=(),
    effects=(),
    reversible="yes",
    snapshot_plan=(),
    not_bound=(),
    must_type="",
    why="",
    expires_at="",
)
WORST = dataclasses.replace(ASK, level="R3", must_type="/srv/data")
RISKY = dataclasses.replace(ASK, level="R2")

YES = {"answer": "approve"}
NO_YES = [
    {},
    [],
    None,
    True,
    1,
    "approve",
    {"answer": "Approve"},
    {"answer": "approve "},
    {"answer": "yes"},
    {"answer": True},
    {"answer": ["approve"]},
    {"answer": None},
    {"approve": True},
    {**YES, "more": 1},
    {**YES, "reason": "fine"},
    {**YES, "typed": ""},
    {**YES, "uses": 0},
    {**YES, "uses": -1},
    {**YES, "uses": 101},
    {**YES, "uses": True},
    {**YES, "uses": 1.0},
    {**YES, "uses": "1"},
    {"answer": "deny", "reason": 3},
    {"answer": "deny", "answer2": "approve"},
]


@pytest.mark.parametrize("result", NO_YES, ids=repr)
def test_anything_but_the_one_form_of_a_yes_is_no_answer(result):
    assert approval_of(Reply(result), ASK, "sha").outcome == UNANSWERED


def test_the_one_form_of_a_yes_approves_and_names_what_was_shown():
    said = approval_of(Reply(YES), ASK, "sha")
    assert (said.outcome, said.consent, said.rendered_sha256, said.uses) == (APPROVED, "rpc", "sha", 1)


def test_a_result_beside_a_reason_why_there_is_none_is_no_yes():
    assert approval_of(Reply(YES, "nobody answered in time"), ASK, "sha").outcome == UNANSWERED


def test_a_no_carries_its_words():
    said = approval_of(Reply({"answer": "deny", "reason": "not today"}), ASK, "sha")
    assert (said.outcome, said.reason) == (DENIED, "not today")


def test_several_runs_are_for_what_is_small_alone():
    assert approval_of(Reply({**YES, "uses": 5}), ASK, "sha").uses == 5
    assert most_uses(RISKY) == 1
    assert approval_of(Reply({**YES, "uses": 2}), RISKY, "sha").outcome == UNANSWERED
    assert most_uses(dataclasses.replace(ASK, kind="rollback")) == 1


@pytest.mark.parametrize("typed", [None, "", "/srv", "/srv/data ", "/SRV/DATA", "yes", True])
def test_what_cannot_be_undone_wants_its_object_typed(typed):
    assert approval_of(Reply({**YES, "typed": typed}), WORST, "sha").outcome == UNANSWERED
    assert approval_of(Reply(YES), WORST, "sha").outcome == UNANSWERED
    assert approval_of(Reply({**YES, "typed": "/srv/data"}), WORST, "sha").outcome == APPROVED


@pytest.mark.parametrize("typed", ["", "y", "Yes", "yes ", "yes\n", "yes, but", "approve", "/srv/data"])
def test_words_that_are_not_the_asked_for_word_approve_nothing(typed):
    assert spelled_approval_of(Reply({"answer": typed}), "yes", "sha").outcome == UNANSWERED


def test_the_asked_for_word_approves_and_a_no_denies():
    assert spelled_approval_of(Reply({"answer": "yes"}), "yes", "sha").outcome == APPROVED
    said = spelled_approval_of(Reply({"answer": "no not now"}), "yes", "sha")
    assert (said.outcome, said.reason) == (DENIED, "not now")
    for result in ("yes", ["yes"], {"answer": "yes", "x": 1}, {"answer": ["yes"]}):
        assert spelled_approval_of(Reply(result), "yes", "sha").outcome == UNANSWERED


def test_words_for_a_question_approve_nothing_and_must_be_a_text():
    assert words_of(Reply({"answer": "the blue one"})).reason == "the blue one"
    assert words_of(Reply({"answer": "approve"})).outcome == ANSWERED
    for result in (None, 3, "text", {"answer": 3}, {"answer": " "}, {"answer": "x", "y": 1}, {}):
        assert words_of(Reply(result)).outcome == UNANSWERED


# ── with a real server ───────────────────────────────────────────────────────────────────────────────────────────


def typed(client):
    client.result("initialize", client={"name": "tests", "version": "7"}, answers=["approve", "ask_user"])


def test_a_yes_runs_exactly_that_change_once_and_is_on_record_as_consent_through_rpc(tmp_path):
    home = tmp_path / "h"
    with served(home, *change(f"touch {home}/made"), "done", answers=lambda message: YES) as client:
        typed(client)
        done = client.result("prompt", text="go")
        assert (done["answer"], done["exit_code"], len(done["executions"])) == ("done", 0, 1)
        assert (home / "made").exists()
        (asked,) = client.asked
        ask = asked["params"]["ask"]
        assert asked["method"] == "approve"
        assert (ask["command"], ask["level"], ask["why"]) == (f"touch {home}/made", "R1", "because")
        assert set(ask) == {field.name for field in dataclasses.fields(Ask)}
        assert f"  | touch {home}/made\n" in asked["params"]["text"]
        assert asked["params"]["answers"] == ["deny", "approve"]
        assert [one["outcome"] for one in client.events("ask_settled")] == ["approved"]
        client.ended()
    (approved,) = [one for one in log_of(home).entries() if one["kind"] == "approved"]
    assert (approved["consent"], approved["shell"], approved["client"]) == ("rpc", "rpc", "tests 7")
    assert len(approved["rendered_sha256"]) == 64


@pytest.mark.parametrize(
    ("said", "kind"),
    [({"answer": "deny", "reason": "no!"}, "denied"), ({"answer": "yes"}, ""), (LookupError("x"), "")],
    ids=["deny", "no form", "an error"],
)
def test_without_a_yes_nothing_runs(tmp_path, said, kind):
    home = tmp_path / "h"
    with served(home, *change(f"touch {home}/made"), "left it", answers=lambda message: said) as client:
        typed(client)
        done = client.result("prompt", text="go")
        assert done["exit_code"] in (3, 4)
        assert not (home / "made").exists()
        client.ended()
    kinds = kinds_in(home)
    assert "approved" not in kinds
    assert ("denied" in kinds) == (kind == "denied")


def test_a_client_that_declares_nothing_is_asked_in_words_with_all_of_the_request(tmp_path):
    home = tmp_path / "h"
    with served(home, *change(f"touch {home}/made"), "done", answers=lambda message: {"answer": "yes"}) as client:
        assert client.result("prompt", text="go")["exit_code"] == 0
        (asked,) = client.asked
        assert (asked["method"], asked["params"]["kind"]) == ("ask_user", "approval")
        for part in (f"touch {home}/made", "R1: small and reversible", "because", "Type yes"):
            assert part in asked["params"]["question"]
        assert (home / "made").exists()


def test_what_cannot_be_undone_is_approved_by_typing_what_it_destroys(tmp_path):
    home = tmp_path / "h"
    (home / "data").mkdir(parents=True)
    (home / "data" / "one").write_text("1")
    told = []

    def answers(message):
        told.append(message["params"])
        return {"answer": "approve", "typed": message["params"]["ask"]["must_type"]}

    with served(home, *change(f"rm -r {home}/data"), "gone", answers=answers) as client:
        typed(client)
        assert client.result("prompt", text="go")["answer"] == "gone"
        assert told[0]["ask"]["level"] == "R3"
        assert told[0]["ask"]["must_type"]
        assert not (home / "data").exists()


PLAN = use("ops_plan", steps=[{"command": "touch one"}, {"command": "chmod 600 script.jsonl"}])


def test_a_plan_is_shown_whole_and_answered_once(tmp_path):
    home = tmp_path / "h"
    with served(home, PLAN, "done", answers=lambda message: YES) as client:
        typed(client)
        assert client.result("prompt", text="go")["exit_code"] == 0
        (asked,) = client.asked
        assert [one["command"] for one in asked["params"]["ask"]["also"]] == ["chmod 600 script.jsonl"]
        for part in ("2 requests, in this order", "  | touch one\n", "  | chmod 600 script.jsonl\n", "R2: high risk"):
            assert part in asked["params"]["text"]
        assert "most_uses" not in asked["params"]
        assert (home / "one").exists()
    with served(home, PLAN, "done", answers=lambda message: {**YES, "uses": 2}) as client:
        typed(client)
        assert client.result("prompt", text="go")["exit_code"] == 3


def test_a_plan_with_what_cannot_be_undone_is_not_asked_here():
    plan = dataclasses.replace(ASK, also=(WORST,))
    assert why_not_here(plan)
    assert not why_not_here(WORST)
    assert most_uses(dataclasses.replace(ASK, also=(ASK,))) == 1


def test_a_question_brings_words_and_no_approval(tmp_path):
    home = tmp_path / "h"
    replies = [
        use("ask_user", question="which one?", options=["a", "b"]),
        {"expect": "the blue one", "text": "so be it"},
    ]
    with served(home, *replies, answers=lambda message: {"answer": "the blue one"}) as client:
        assert client.result("prompt", text="go")["answer"] == "so be it"
        (asked,) = client.asked
        params = asked["params"]
        assert (params["kind"], params["question"], params["options"]) == ("question", "which one?", ["a", "b"])


def test_a_client_that_answers_nothing_is_not_asked(tmp_path):
    home = tmp_path / "h"
    with served(home, use("ops_exec", command=f"touch {home}/made"), "it waits") as client:
        assert client.result("initialize", answers=[])["can_ask"] is False
        done = client.result("prompt", text="go")
        assert (done["exit_code"], client.asked) == (3, [])
        assert [one["id"] for one in client.result("pending")["requests"]] == done["requests"]
