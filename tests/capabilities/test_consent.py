"""A host's form: complete, injective, and only one answer is a yes."""

from __future__ import annotations

import json
import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capabilities import consent
from capabilities.asking import ASK_TIMEOUT_S
from dialogue.confirm import APPROVED, CANCELLED, DENIED, UNANSWERED, Ask
from dialogue.screen import MARGIN
from guard.errors import ApprovalChanged

ASK = Ask(
    id="a-7k2m4p",
    target="local",
    host="web-1",
    user="root",
    cwd="/etc/nginx",
    command="systemctl reload nginx",
    level="R1",
    reasons=("reloads a service",),
    effects=("service nginx",),
    reversible="yes",
    snapshot_plan=("service nginx",),
    not_bound=("include trees",),
    must_type="",
    why="to load the new certificate",
    expires_at="2026-12-02T00:00:00.000Z",
    ambient=("kubernetes context prod",),
    remarks=("you denied this at 10:41",),
    asked_by="agent (tests 7) through mcp",
    holds="one run within 15 min",
    fingerprint="0123456789abcdef",
    details=("write /etc/nginx/nginx.conf",),
    not_saved=("its state now",),
    digest="d" * 64,
)


def test_the_text_has_all_of_the_request_and_the_askers_words_last():
    text = consent.words(ASK, "")
    for part in ("web-1 (target local)", "root", "/etc/nginx", "systemctl reload nginx", "reloads a service",
                 "include trees", "kubernetes context prod", "you denied this at 10:41", "its state now", "a-7k2m4p",
                 "one run within 15 min", "fingerprint 0123456789abcdef", "write /etc/nginx/nginx.conf"):  # fmt: skip
        assert part in text
    assert text.index("What the asker says") > text.index("request a-7k2m4p")


def test_different_commands_never_look_alike():
    odd = ["rm x", "rm  x", "rm\tx", "rm x\u200b", "rm \u202ex", "rm\u00a0x", "rm x\r", "rm x\x1b[8m y", "rm \u0445"]
    shown = {consent.words(replace(ASK, command=command), "") for command in odd}
    assert len(shown) == len(odd)
    assert all("\x1b" not in text and "\u202e" not in text for text in shown)


def test_the_askers_words_cannot_pretend_to_be_the_request():
    text = consent.words(replace(ASK, why="x\n\nTo approve, type the code AAAAA.\nsystemctl status"), "BCDEF")
    assert text.count("\nTo approve") == 1 and text.endswith("To approve, type the code BCDEF.")


def test_no_line_of_a_command_can_pass_for_a_line_of_ours():
    command = "ls\n\nundo        yes\nTo approve, type the code AAAAA."
    lines = consent.words(replace(ASK, command=command, reversible="no", snapshot_plan=()), "BCDEF").split("\n")
    assert [line for line in lines if line.startswith("undo")] == ["undo        by hand: nothing is saved first"]
    assert [line for line in lines if line.startswith("To approve")] == ["To approve, type the code BCDEF."]
    assert [line for line in lines if line.startswith(MARGIN)] == [MARGIN + line for line in command.split("\n")]


def test_the_form_is_flat_requires_its_field_fills_in_nothing_and_offers_no_first():
    for code in ("", "ABCDE"):
        schema = consent.form(code)
        (name,) = schema["properties"]
        assert schema["required"] == [name]
        assert "default" not in schema["properties"][name]
        assert code == "" or code not in json.dumps(schema)
    assert consent.form("")["properties"]["answer"]["enum"][0] == consent.NO


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        ({"action": "accept", "content": {"answer": consent.YES}}, APPROVED),
        ({"action": "accept", "content": {"answer": consent.NO}}, DENIED),
        ({"action": "accept", "content": {"answer": "yes"}}, UNANSWERED),
        ({"action": "accept", "content": {"answer": True}}, UNANSWERED),
        ({"action": "accept", "content": {"answer": consent.YES, "more": 1}}, UNANSWERED),
        ({"action": "accept", "content": {}}, UNANSWERED),
        ({"action": "accept", "content": None}, UNANSWERED),
        ({"action": "accept"}, UNANSWERED),
        ({"action": "accept", "content": [consent.YES]}, UNANSWERED),
        ({"action": "decline", "content": {"answer": consent.YES}}, DENIED),
        ({"action": "cancel"}, CANCELLED),
        ({"action": "ACCEPT", "content": {"answer": consent.YES}}, UNANSWERED),
        ({}, UNANSWERED),
        (None, UNANSWERED),
        ("accept", UNANSWERED),
    ],
)
def test_only_the_exact_answer_is_a_yes(response, outcome):
    found = consent.answer_of(response, consent.sha256_of("text"), "")
    assert (found.outcome, found.consent, len(found.rendered_sha256)) == (outcome, "elicitation", 64)


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        ({"code": "ABCDE"}, APPROVED),
        ({"code": " abcde "}, APPROVED),
        ({"code": ""}, UNANSWERED),
        ({"code": "ABCDF"}, UNANSWERED),
        ({"code": "ABCD"}, UNANSWERED),
        ({"code": None}, UNANSWERED),
        ({"answer": consent.YES}, UNANSWERED),
        ({"code": "ABCDE", "answer": consent.YES}, UNANSWERED),
        ({"code": ["ABCDE"]}, UNANSWERED),
        ({"code": "ＡＢＣＤＥ"}, UNANSWERED),
    ],
)
def test_only_the_code_of_the_text_is_a_yes_where_one_is_asked_for(content, outcome):
    assert (
        consent.answer_of({"action": "accept", "content": content}, consent.sha256_of("text"), "ABCDE").outcome
        == outcome
    )


def test_codes_differ_and_can_be_typed():
    codes = {consent.new_code() for _ in range(200)}
    assert len(codes) > 190
    assert all(len(code) == 5 and set(code) <= set(consent.CODE_ALPHABET) for code in codes)


class Form:
    """A host's form that is answered with what stands in its text."""

    def __init__(self, *, answer=None, state=None):
        self.answer, self.state, self.shown = answer, state, []

    def __call__(self, purpose, text, schema, state, timeout_s):
        self.shown.append((purpose, text, schema, timeout_s))
        if self.answer is not None:
            return self.answer, self.state or state
        content = {"code": state["code"]} if state["code"] else {"answer": consent.YES}
        return {"action": "accept", "content": content}, self.state or state


def test_a_yes_in_a_form_names_how_and_what_was_shown():
    for level, asks_for_code in (("R0", False), ("R1", False), ("R2", True)):
        form = Form()
        answer = consent.FormConfirm(form).ask(replace(ASK, level=level), timeout_s=7.0)
        ((purpose, text, schema, timeout_s),) = form.shown
        assert (answer.outcome, answer.consent) == (APPROVED, "elicitation")
        assert answer.rendered_sha256 == consent.sha256_of(text)
        assert (purpose, timeout_s, list(schema["properties"])) == (
            "command a-7k2m4p",
            7.0,
            ["code" if asks_for_code else "answer"],
        )


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"must_type": "/srv"}, "terminal"),
        ({"resolves": ("e-1",)}, "no end on record"),
        ({"also": (ASK,)}, "several requests"),
        ({"command": "x" * (consent.MOST_TEXT + 1)}, "too long"),
    ],
)
def test_what_is_irreversible_unclear_or_does_not_fit_is_not_asked_in_a_form(change, reason):
    form = Form()
    answer = consent.FormConfirm(form).ask(replace(ASK, **change), timeout_s=1.0)
    assert answer.outcome == UNANSWERED and reason in answer.reason and form.shown == []


def test_a_yes_to_a_form_that_showed_something_else_is_an_error():
    form = Form(state={"code": "", "sha256": "0" * 64, "digest": "of something else"})
    with pytest.raises(ApprovalChanged):
        consent.FormConfirm(form).ask(ASK, timeout_s=1.0)


def test_a_hosts_prompt_counts_for_what_is_plain_and_spelled_out_in_the_call():
    answer = consent.HostConfirm(ASK.command, None).ask(ASK, timeout_s=1.0)
    assert (answer.outcome, answer.consent, len(answer.rendered_sha256)) == (APPROVED, "host", 64)


@pytest.mark.parametrize(
    ("change", "command", "reason"),
    [
        ({"must_type": "/srv", "level": "R3"}, "x", "irreversible"),
        ({"resolves": ("e-1",)}, "x", "unknown run"),
        ({"kind": "rollback"}, "x", "rollback"),
        ({"kind": "resolve"}, "x", "does not count"),
        ({"also": (ASK,)}, "x", "does not count"),
        ({"sensitive": ("it can show or handle credentials",)}, "x", "credentials"),
        ({}, "", "the command itself"),
    ],
)
def test_a_hosts_prompt_counts_for_nothing_else_and_the_form_is_next(change, command, reason):
    ask = replace(ASK, **change)
    refused = consent.HostConfirm(command, None).ask(ask, timeout_s=1.0)
    assert (refused.outcome, reason in refused.reason) == (UNANSWERED, True)
    form = Form()
    there = consent.HostConfirm(command, consent.FormConfirm(form)).ask(ask, timeout_s=1.0)
    if {"must_type", "resolves", "also"} & set(change):
        assert there.outcome == UNANSWERED and form.shown == []
    else:
        assert (there.outcome, there.consent) == (APPROVED, "elicitation")


@pytest.fixture
def sealer():
    clock = [1000.0]
    made = consent.Sealer(lambda: clock[0])
    made.clock = clock
    return made


def test_a_seal_gives_its_state_once(sealer):
    sealed = sealer.seal("exec", {"request": "a-1"})
    assert sealer.unseal("exec", sealed) == {"request": "a-1"}
    assert sealer.unseal("exec", sealed) is None


def test_a_seal_holds_for_its_purpose_its_time_and_its_process(sealer):
    sealed = sealer.seal("exec", {"n": 1})
    assert sealer.unseal("rollback", sealed) is None
    assert consent.Sealer(lambda: 1000.0).unseal("exec", sealed) is None
    sealer.clock[0] += ASK_TIMEOUT_S
    assert sealer.unseal("exec", sealed) is None


def test_a_mark_tells_nothing_of_what_it_stands_for(sealer):
    assert "ABCDE" not in sealer.seal("exec", {"code": "ABCDE"})


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_no_change_to_a_mark_survives(data):
    sealer = consent.Sealer(lambda: 0.0)
    sealed = sealer.seal("exec", {"request": "a-1"})
    at = data.draw(st.integers(0, len(sealed) - 1))
    other = data.draw(st.sampled_from("ABCabc019-_.=é \n"))
    changed = sealed[:at] + other + sealed[at + 1 :]
    assert (sealer.unseal("exec", changed) is None) == (changed != sealed)


def test_of_too_many_open_forms_the_oldest_goes(sealer):
    marks = [sealer.seal("exec", {"n": number}) for number in range(consent.MOST_OPEN + 1)]
    assert sealer.unseal("exec", marks[0]) is None
    assert sealer.unseal("exec", marks[1]) == {"n": 1}


@pytest.mark.parametrize("sealed", [None, 3, "", ".", "a.b", "é.é", "a" * 200_000 + ".b", "..", {"n": 1}])
def test_what_was_never_sealed_is_nothing(sealer, sealed):
    assert sealer.unseal("exec", sealed) is None


def test_of_many_that_unseal_at_once_one_gets_the_state(sealer):
    sealed, found = sealer.seal("exec", {"n": 1}), []
    threads = [threading.Thread(target=lambda: found.append(sealer.unseal("exec", sealed))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (found.count({"n": 1}), found.count(None)) == (1, 15)
