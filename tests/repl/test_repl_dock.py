"""The permission dock: what approves, and that nothing else does."""

from __future__ import annotations

import random
from dataclasses import asdict, replace

import pytest

from agent.repl import dock
from agent.repl.dock import Dock, Edit, Forward, Key, Settle, Waiting, opened, over, press, resized
from agent.repl.dock_rows import rows_of
from agent.repl.lines import text_of, width
from dialogue.confirm import ANSWERED, APPROVED, CANCELLED, DENIED, EXPIRED, UNANSWERED, ask_of
from dialogue.screen import marked_spans
from tests.repl.conversation import ASK, golden

QUIET = 10.0
"""A moment when the first ask has been on the screen for long enough."""
R3 = replace(
    ASK,
    id="a-r3",
    command="rm -rf /srv/www/old",
    level="R3",
    must_type="/srv/www/old",
    reversible="no",
    snapshot_plan=(),
)
SCRIPT = "bash <<'EOF'\n" + "".join(f"echo step {n}\n" for n in range(2, 55)) + "rm -rf /srv/data\necho done\nEOF"
LONG = replace(ASK, command=SCRIPT, level="R2", marked=marked_spans(SCRIPT, [(0, 4)], ["/srv/data"]))
CHINESE = replace(
    ASK,
    command="""printf '%s' "重启前请先备份：数据库、配置文件、证书和计划任务，然后再继续执行下面的步骤" > /etc/motd""",
    host="网页-1",
    effects=("write /etc/motd",),
    why="请批准：用户要求更新登录提示信息，这样所有人登录后都能看到维护时间。",
)


def docked(*asks, columns=80, lines=24):
    """A dock with these asks, drawn at 0 s."""
    found = Dock(columns=columns, lines=lines)
    for number, ask in enumerate(asks, 1):
        found = opened(found, Waiting(f"q-{number}", ask, ends_s=300.0), 0.0)
    return found


def typed(found, *words, at=QUIET):
    """Presses each word's keys (names of keys as `<enter>`), and gives the dock and all that it did but nothing."""
    acts = []
    for word in words:
        keys = [Key(word[1:-1])] if word.startswith("<") else [Key(dock.TEXT, char) for char in word]
        for key in keys:
            found, act = press(found, key, at)
            acts += [act] if act is not None else []
    return found, acts


def outcome(acts):
    assert len(acts) == 1 and isinstance(acts[0], Settle), acts
    return acts[0].answer.outcome


def test_the_whole_word_and_enter_approve_once():
    found, acts = typed(docked(ASK), "yes", "<enter>")
    (act,) = acts
    assert (act.id, act.answer.outcome, act.answer.uses, act.answer.consent) == ("q-1", APPROVED, 1, "tty")
    assert len(act.answer.rendered_sha256) == 64 and found.waiting == ()


@pytest.mark.parametrize(("words", "uses"), [("yes 1", 1), ("yes 3", 3), ("yes 100", 100)])
def test_so_many_runs_of_exactly_this_request(words, uses):
    _, acts = typed(docked(ASK), words, "<enter>")
    assert (outcome(acts), acts[0].answer.uses) == (APPROVED, uses)


@pytest.mark.parametrize(
    "words",
    ["", "y", "ye", "Yes", "YES", "yes!", "yesno", "ja", "yes 0", "yes 101", "yes three", "approve", "是", "yes yes"],
)
def test_anything_else_is_no_answer_and_the_question_stays(words):
    found, acts = typed(docked(ASK), words, "<enter>")
    assert acts == [] and found.waiting and found.said and found.typed == ""


@pytest.mark.parametrize(("words", "reason"), [("no", ""), ("no not before noon", "not before noon"), ("no ", "")])
def test_no_with_and_without_a_reason(words, reason):
    _, acts = typed(docked(ASK), words, "<enter>")
    assert (outcome(acts), acts[0].answer.reason) == (DENIED, reason)


@pytest.mark.parametrize(
    ("key", "expected", "stops"),
    [("<escape>", CANCELLED, False), ("<interrupt>", CANCELLED, True), ("<end-of-input>", UNANSWERED, False)],
)
def test_leaving_the_question_is_no_yes(key, expected, stops):
    _, acts = typed(docked(ASK), key)
    assert (outcome(acts), acts[0].stop) == (expected, stops)


def test_escape_takes_back_what_is_typed_first():
    found, acts = typed(docked(ASK), "yes", "<escape>")
    assert (found.typed, acts) == ("", []) and found.waiting


def test_a_paste_approves_nothing_and_goes_to_the_composer():
    found, act = press(docked(ASK), Key(dock.PASTE, "yes\n"), QUIET)
    assert isinstance(act, Forward) and found.typed == "" and found.waiting
    found, acts = typed(found, "<enter>")
    assert acts == []


def test_what_was_meant_for_the_composer_goes_there():
    found = docked(ASK)
    for at in (0.0, 0.3, 0.6, 0.9):  # each of them within 0.4 s of the one before
        found, act = press(found, Key(dock.TEXT, "y"), at)
        assert isinstance(act, Forward)
    found, act = press(found, Key(dock.ENTER), 1.2)
    assert isinstance(act, Forward) and found.typed == ""
    found, act = press(found, Key(dock.TEXT, "y"), 1.7)
    assert act is None and found.typed == "y"


def test_dock_says_while_it_does_not_listen_yet():
    assert "one moment" in text_of(rows_of(docked(ASK), 0.3)[-1])
    assert text_of(rows_of(docked(ASK), 0.4)[-1]) == "approve? >  "


def test_keys_of_the_first_moments_never_approve_the_next_ask():
    found, acts = typed(docked(ASK, R3, ASK), "yes", "<enter>")
    assert [act.id for act in acts] == ["q-1"]
    found, acts = typed(found, "/srv/www/old", "<enter>")
    assert all(isinstance(act, Forward) for act in acts), "the second one was drawn when the first was answered"


def test_what_cannot_be_undone_needs_its_object_as_shown():
    for words in ("yes", "/srv/www/old/", "/srv/www", " /srv/www/old", "/SRV/www/old", "yes 2"):
        assert typed(docked(R3), words, "<enter>")[1] == []
    _, acts = typed(docked(R3), "/srv/www/old", "<enter>")
    assert (outcome(acts), acts[0].answer.uses) == (APPROVED, 1)


def test_an_object_that_is_named_like_a_no_cannot_be_approved_by_it():
    _, acts = typed(docked(replace(R3, must_type="no")), "no", "<enter>")
    assert outcome(acts) == DENIED


def test_long_text_has_to_be_on_the_screen_to_its_end_first():
    found = docked(LONG)
    found, acts = typed(found, "yes", "<enter>")
    assert acts == [] and "read" in found.said
    found, acts = typed(found, "<end>", "yes", "<enter>")
    assert outcome(acts) == APPROVED


def test_marked_rows_have_to_be_on_the_screen_too():
    early = replace(LONG, marked=marked_spans(SCRIPT, [], ["step 25"]))
    found, acts = typed(docked(early), "<end>", "yes", "<enter>")
    assert acts == [] and "marked" in found.said
    found, acts = typed(found, "<page-up>", "<page-up>", "yes", "<enter>")
    assert outcome(acts) == APPROVED


def test_page_by_page_every_row_is_shown():
    found, shown = docked(LONG), set()
    for _ in range(20):
        shown.update(text_of(row) for row in rows_of(found, QUIET))
        found, _ = typed(found, "<page-down>")
    assert {f"  | echo step {n}" for n in range(2, 55)} <= shown and "  ! rm -rf /srv/data" in shown
    assert found.read


def test_what_was_read_stays_read_when_the_window_changes():
    found, _ = typed(docked(LONG), "<end>")
    found = resized(found, 60, 20)
    assert found.read and outcome(typed(found, "yes", "<enter>")[1]) == APPROVED
    assert not resized(docked(LONG), 60, 20).read


def test_expired_is_said_as_expired():
    _, acts = typed(docked(ASK), "yes", "<enter>", at=300.0)
    assert outcome(acts[:1]) == EXPIRED


def test_asks_queue_and_show_their_number():
    found = docked(ASK, R3)
    assert "1 of 2" in text_of(rows_of(found, QUIET)[0])
    found = over(found, "q-1", QUIET)
    assert "2 of 2" in text_of(rows_of(found, QUIET)[0]) and found.quiet_until_s == QUIET + dock.QUIET_S
    assert over(found, "q-9", QUIET) == found and over(found, "q-2", QUIET).waiting == ()


def test_the_same_ask_is_not_queued_twice():
    found = docked(ASK)
    assert opened(found, found.waiting[0], 1.0) is found


def test_command_can_be_edited_unless_something_in_it_is_hidden():
    _, acts = typed(docked(ASK), "edit", "<enter>")
    assert acts == [Edit("q-1", ASK.command)]
    found, acts = typed(docked(replace(ASK, fingerprint="ab12")), "edit", "<enter>")
    assert acts == [] and "secret" in found.said


def test_only_commands_are_approved_for_several_runs():
    assert typed(docked(replace(ASK, kind="rollback")), "yes 2", "<enter>")[1] == []


@pytest.mark.parametrize("more", [{}, {"kind": "rollback"}, {"kind": "file-change"}, {"fingerprint": "ab12"}])
def test_edit_is_named_only_where_it_is_an_answer(more):
    found = typed(docked(replace(ASK, **more)), "perhaps", "<enter>")[0]
    is_offered = "edit" in "".join(text for row in rows_of(found, QUIET) for _, text in row)
    assert is_offered == ("edit" in found.said) == (not more)


def test_question_takes_words_or_a_number_and_approves_nothing():
    asked = Waiting("q-1", None, "Which one?", ("web-1", "web-2"))
    for words, reason in (("2", "web-2"), ("neither", "neither"), ("7", "7")):
        _, acts = typed(opened(Dock(), asked, 0.0), words, "<enter>")
        assert (outcome(acts), acts[0].answer.reason) == (ANSWERED, reason)
    assert outcome(typed(opened(Dock(), asked, 0.0), "<escape>")[1]) == CANCELLED
    assert typed(opened(Dock(), asked, 0.0), "<enter>")[1] == []


def test_keys_without_an_ask_are_the_composers():
    assert press(Dock(), Key(dock.TEXT, "y"), 0.0)[1] == Forward()


def test_ask_comes_back_whole_from_its_event():
    assert ask_of(asdict(LONG)) == LONG and ask_of(asdict(PLAN)) == PLAN
    assert ask_of({"id": "a", "command": "ls", "later": 1}).command == "ls"


KEYS = [
    *(Key(dock.TEXT, char) for char in "yesnoedit 13y/srv/wwwold"),
    *(Key(dock.TEXT, "是"), Key(dock.PASTE, "yes\n"), Key(dock.PASTE, "yes"), Key(dock.PASTE, "/srv/www/old\n")),
    *(Key(name) for name in (dock.ENTER, dock.ENTER, dock.ENTER, dock.ESCAPE, dock.BACKSPACE, dock.ERASE)),
    *(Key(name) for name in (dock.UP, dock.DOWN, dock.PAGE_DOWN, dock.PAGE_UP, dock.HOME, dock.END)),
    *(Key(name) for name in (dock.INTERRUPT, dock.END_OF_INPUT, dock.OTHER)),
]


@pytest.mark.guarantee("G-DOCK")
def test_random_keys_approve_nothing():
    """500 people who know nothing of the question press 200 keys each; asks appear at random moments."""
    asks = (ASK, R3, LONG, CHINESE)
    for seed in range(500):
        chance = random.Random(seed)
        found, now_s, number = Dock(), 0.0, 0
        for _ in range(200):
            now_s += chance.choice((0.0, 0.01, 0.1, 0.5, 2.0))
            if chance.random() < 0.05:
                number += 1
                found = opened(found, Waiting(f"q-{number}", chance.choice(asks), ends_s=now_s + 60), now_s)
            found, act = press(found, chance.choice(KEYS), now_s)
            assert not (isinstance(act, Settle) and act.answer.outcome == APPROVED), f"seed {seed}"


PLAN = replace(ASK, id="", also=(replace(ASK, command="touch /srv/x"), replace(ASK, command="chmod 600 /srv/x")))


def test_plan_is_read_to_its_end_and_answered_once():
    found = docked(PLAN)
    found, acts = typed(found, "yes", "<enter>")
    assert acts == [] and "read all" in found.said
    found, acts = typed(found, "<end>", "yes 2", "<enter>", "edit", "<enter>")
    assert acts == [] and "not edited" in found.said
    _, acts = typed(found, "yes", "<enter>")
    assert (outcome(acts), acts[0].answer.uses) == (APPROVED, 1)
    shown = docked(ASK, lines=90).waiting[0].asks
    assert acts[0].answer.rendered_sha256 != dock.shown_sha256(shown, 80), "all steps are in what was shown"


def test_irreversible_steps_of_a_plan_are_approved_by_typing_what_each_destroys_in_order():
    other = replace(R3, must_type="/srv/www/other")
    for plan in (replace(ASK, also=(R3, other)), replace(R3, also=(ASK, other))):
        found, acts = typed(docked(plan, lines=150), "<end>", "yes", "<enter>", "/srv/www/other", "<enter>")
        assert acts == [] and found.given == 0 and "what it destroys" in found.said
        assert text_of(rows_of(found, 9.0)[-1]).startswith("1 of 2: ")
        found, acts = typed(found, "/srv/www/old", "<enter>")
        assert acts == [] and text_of(rows_of(found, 9.0)[-1]).startswith("2 of 2: ")
        assert typed(found, "/srv/www/old", "<enter>")[1] == [], "each its own"
        assert typed(found, "no", "<enter>")[1][0].answer.outcome == DENIED
        found, acts = typed(found, "/srv/www/other", "<enter>")
        assert outcome(acts) == APPROVED


def test_what_was_typed_for_one_plan_counts_for_no_other():
    plan = replace(R3, also=(replace(R3, must_type="/srv/www/other"),))
    found = opened(docked(plan, lines=150), Waiting("q-9", plan), 0.0)
    found, _ = typed(found, "<end>", "/srv/www/old", "<enter>")
    assert found.given == 1
    found, _ = typed(found, "no", "<enter>")
    assert found.waiting[0].id == "q-9" and found.given == 0


def test_one_irreversible_step_of_a_plan_is_typed_once_and_a_plan_is_not_edited():
    found, acts = typed(docked(replace(ASK, also=(R3,)), lines=90), "<end>", "yes", "<enter>", "edit", "<enter>")
    assert acts == [] and "not edited" in found.said
    assert "· edit" not in "\n".join(map(text_of, rows_of(found, 9.0)))
    assert outcome(typed(found, "/srv/www/old", "<enter>")[1]) == APPROVED


@pytest.mark.parametrize("kind", ["file-change", "rollback", "resolve"])
def test_only_a_command_is_edited(kind):
    found, acts = typed(docked(replace(ASK, kind=kind)), "edit", "<enter>")
    assert acts == [] and "only a command is edited" in found.said


STATES = {
    "plan": lambda: docked(PLAN, lines=60),
    "plain": lambda: docked(ASK),
    "queue": lambda: docked(ASK, R3),
    "irreversible": lambda: docked(R3),
    "long": lambda: docked(LONG),
    "long-end": lambda: typed(docked(LONG), "<end>")[0],
    "refused": lambda: typed(docked(ASK), "ok", "<enter>")[0],
    "chinese": lambda: docked(CHINESE),
    "question": lambda: opened(Dock(), Waiting("q-1", None, "重启哪一台？", ("web-1", "网页-2")), 0.0),
}


@pytest.mark.parametrize("state", STATES)
def test_state_looks_as_on_paper(state):
    rows = rows_of(STATES[state](), 2.0)
    golden(f"dock-{state}.txt", "\n".join(text_of(row).rstrip() for row in rows) + "\n")


def test_window_that_is_too_narrow_for_the_text_approves_nothing():
    found, acts = typed(docked(ASK, columns=39), "yes", "<enter>")
    assert acts == [] and "narrow" in found.said
    assert outcome(typed(resized(found, 40, 60), "yes", "<enter>")[1]) == APPROVED


@pytest.mark.parametrize("columns", [20, 40, 59, 60, 80, 200])
@pytest.mark.parametrize("lines", [10, 24, 60])
@pytest.mark.parametrize("state", STATES)
def test_dock_fits_its_window(state, columns, lines):
    found = resized(STATES[state](), columns, lines)
    rows = rows_of(found, 2.0)
    assert all(width(row) <= columns for row in rows)
    assert len(rows) < lines or lines == 10 or columns < dock.LEAST_COLUMNS


def test_a_window_without_a_size_counts_as_a_small_one():
    found = resized(docked(ASK, columns=100, lines=50), 0, 0)
    assert (found.columns, found.lines) == (80, 24)
