"""What a person sees of states: the preview of a rollback, the objects for programs, the words before a yes."""

from __future__ import annotations

from capabilities.rollback_shapes import foreseen_words, plan_object, state_rows
from cli.opsx_snapshot import _in_words, preview
from guard.ledger.plans import with_states
from guard.saved import (
    ABSENT,
    FILE,
    Action,
    Foreseen,
    Node,
    RollbackPlan,
    RolledBack,
    State,
    StateStep,
    Step,
    StepResult,
)

STEP = StateStep(
    "state",
    "iptables",
    State.UNCHANGED,
    commands=(("iptables-restore", "*filter\nCOMMIT\n"), ("true", "")),
    levels=("R3", "R0"),
    before="a" * 64,
    now="b" * 64,
    difference=("- iptables filter chains INPUT: DROP", "+ iptables filter chains INPUT: ACCEPT"),
    lost=("a counter",),
)
BACK = StateStep("service", "nginx", State.BACK)
UNREADABLE = StateStep("service", "redis", State.NOT_SAVED, lost=("it cannot be read now: gone",))


def planned(*steps):
    return with_states(RollbackPlan("e-1", "s-1", "local", (), "0" * 64), steps, ())


def test_preview_shows_differences_commands_and_what_stays():
    assert preview(planned(STEP, BACK), {}, "vm") == (
        "rollback of e-1 on local (vm), from snapshot s-1\n"
        "to change: 1 state; what is there now is saved first\n"
        "1 already back\n"
        "note: iptables: a counter does not come back\n"
        "\n"
        "run    iptables  (as the change left it)\n"
        "    - iptables filter chains INPUT: DROP\n"
        "    + iptables filter chains INPUT: ACCEPT\n"
        "    runs (R3): iptables-restore < 2 lines\n"
        "    runs (R0): true\n"
        "    stays: a counter\n"
    )


def test_state_that_cannot_be_read_is_no_success():
    plan = planned(UNREADABLE)
    assert plan.cannot_return == ("service redis",)
    assert not plan.does_something
    assert "nothing can be put back" in preview(plan, {}, "vm")


def test_programs_get_the_same():
    (state,) = plan_object(planned(STEP, BACK), (), str)["states"]
    assert state == {
        "name": "iptables",
        "state": "unchanged",
        "commands": [{"command": "iptables-restore", "level": "R3"}, {"command": "true", "level": "R0"}],
        "diff": list(STEP.difference),
        "lost": ["a counter"],
        "proven": True,
    }


def test_consent_is_bound_to_commands_their_input_and_what_is_there_now():
    digests = {
        planned(STEP).digest,
        planned(BACK).digest,
        *(
            planned(StateStep("state", "iptables", State.UNCHANGED, **changed)).digest
            for changed in (
                {"commands": (("iptables-restore", "*filter\nCOMMIT\n"),)},
                {"commands": (("iptables-restore", "*nat\nCOMMIT\n"),)},
                {"commands": (("ip6tables-restore", "*filter\nCOMMIT\n"),)},
                {"now": "c" * 64},
            )
        ),
    }
    assert len(digests) == 6


def test_unproven_way_back_is_said_before_and_after_the_yes():
    docker = StateStep("state", "docker web", State.UNCHANGED, commands=(("docker start web", ""),), proven=False)
    assert planned(docker).notes == ("docker web: way back: not proven here",)
    saved, missed = foreseen_words(Foreseen(states=(("docker web", "way back: not proven here"),)))
    assert saved == ("the state of docker web",)
    assert missed == ("of docker web: way back: not proven here",)


def test_state_that_is_back_has_nothing_to_show():
    assert state_rows(BACK) == ()


def test_what_is_back_is_counted_by_its_kind(capsys):
    now, absent = (Node("/srv/a", kind) for kind in (FILE, ABSENT))
    paths = tuple(Step(f"/srv/{name}", State.UNCHANGED, Action.DELETE, absent, now) for name in "ab")
    plan = with_states(RollbackPlan("e-1", "s-1", "local", paths, "0" * 64), (STEP,), ())
    results = [StepResult(step.path, step.action, "done") for step in paths]
    for of_state, counted in (("done", "2 of 2 paths and 1 of 1 state"), ("failed", "2 of 2 paths and 0 of 1 state")):
        _in_words(RolledBack("failed", plan, "e-2", "s-2", (*results, StepResult(STEP.label, "run", of_state))))
        assert f"back and verified: {counted}\n" in capsys.readouterr().out
    _in_words(RolledBack("failed", planned(STEP), "e-2", "s-2", (StepResult(STEP.label, "run", "done"),)))
    assert "back and verified: 1 of 1 state\n" in capsys.readouterr().out


def test_states_come_before_files_and_files_that_come_or_go_whole_are_short():
    now, absent = (Node("/home/new/.bashrc", kind) for kind in (FILE, ABSENT))
    step = Step(now.path, State.UNCHANGED, Action.DELETE, absent, now)
    plan = with_states(RollbackPlan("e-1", "s-1", "local", (step,), "0" * 64), (STEP,), ())
    for header, sign in (("@@ -1,90 +0,0 @@", "-"), ("@@ -0,0 +1,90 @@", "+")):
        difference = "\n".join(["--- now", "+++ before", header, *(f"{sign}line {number}" for number in range(90))])
        shown = preview(plan, {step: difference}, "vm")
        assert 0 < shown.index("to change: ") < shown.index("iptables-restore") < shown.index(now.path)
        assert "line 4\n" in shown and "line 5" not in shown
        assert "… 85 more lines; all of it: " in shown and "opsx rollback e-1 --full\n" in shown
        assert "line 89" in preview(plan, {step: difference}, "vm", full=True)


def test_no_line_of_a_file_that_stays_is_left_out():
    now = Node("/etc/motd", FILE)
    step = Step(now.path, State.UNCHANGED, Action.WRITE, now, now)
    plan = RollbackPlan("e-1", "s-1", "local", (step,), "0" * 64)
    rows = [f"-line {number}" for number in range(90)]
    for headers in (["@@ -1,90 +1,1 @@"], ["@@ -0,0 +1,2 @@", "@@ -1,90 +0,0 @@"]):
        assert preview(plan, {step: "\n".join([*headers, *rows])}, "vm").endswith("    -line 89\n")
