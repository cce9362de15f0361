"""A person's own rules raise freely; they lower only what is merely unknown or small, and only from a trusted file."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guard import userrules
from guard.judge.classify import check
from guard.types import Actor, Enforcement, Level, Policy, UserRule
from tests.judge_texts import COMMANDS

STRICT = Enforcement(("local", "net", "bus"), "strict", 4, True)
GOOD = b"""
[[raise]]
id = "site.payments"
program = "systemctl"
words = ["restart", "payments*"]
level = "R3"
text = "payments restart only with the on-call person"
match = ["systemctl restart payments-api", "sudo systemctl --no-block restart payments"]
skip = ["systemctl restart nginx", "systemctl status payments"]

[[lower]]
id = "site.deploy-status"
program = "deployctl"
words = ["status", "*"]
level = "R0"
text = "shows how far a deployment is"
match = ["deployctl status web"]
skip = ["deployctl apply web", "deployctl status", "deployctl status --fix", "deployctl status $X"]
"""


def _lower(program: str, words: list[str], level: Level = Level.R0) -> Policy:
    return Policy(rules=[UserRule("t.x", program, words, level, "is fine here", True, "mine.toml")])


def _raise(program: str, words: list[str], level: Level = Level.R3) -> Policy:
    return Policy(rules=[UserRule("t.x", program, words, level, "is not fine here", False, "mine.toml")])


def _read(text: bytes) -> userrules.Read:
    return userrules.read(text, "mine.toml")


def test_a_good_file_keeps_its_word():
    found = _read(GOOD)
    assert userrules.failures(found) == []
    assert [(rule.id, rule.level, rule.lowers) for rule in found.rules] == [
        ("site.payments", Level.R3, False),
        ("site.deploy-status", Level.R0, True),
    ]


def test_lowering_rules_count_only_with_trust():
    found = _read(GOOD)
    assert [rule.id for rule in userrules.usable(found, trusted=False)] == ["site.payments"]
    assert len(userrules.usable(found, trusted=True)) == 2


@pytest.mark.parametrize(
    ("command", "level"),
    [
        ("systemctl restart payments", Level.R3),
        ("sudo -n systemctl restart payments-api", Level.R3),
        ("ls; bash -c 'systemctl restart payments'", Level.R3),
        ("systemctl --no-block restart payments nginx", Level.R3),
        ("systemctl restart $X", Level.R3),
        ("systemctl restart nginx", Level.R1),
        ("echo systemctl restart payments", Level.R0),
    ],
)
def test_a_raising_rule_is_met_in_every_form_of_the_command(command, level):
    assert check(command, policy=_raise("systemctl", ["restart", "payments*"])).level == level


@pytest.mark.parametrize(
    ("command", "level"),
    [
        ("deployctl status web", Level.R0),
        ("sudo deployctl status web | head", Level.R0),
        ("deployctl status web; rm -r x", Level.R3),
        ("deployctl status web > /etc/passwd", Level.R2),
        ("deployctl status", Level.R2),
        ("deployctl status web db", Level.R2),
        ("deployctl status -x", Level.R2),
        ("deployctl status $X", Level.R2),
        ("deployctl status *", Level.R2),
        ("deployctl status \"$(rm -r x)\"", Level.R3),
        ("/tmp/deployctl status web", Level.R2),
        ("PATH=/tmp deployctl status web", Level.R2),
        ("ls | xargs deployctl status", Level.R2),
        ("deployctl() { rm x; }; deployctl status web", Level.R1),
    ],
)  # fmt: skip
def test_a_lowering_rule_is_met_word_for_word_only(command, level):
    assert check(command, policy=_lower("deployctl", ["status", "*"])).level == level


def test_a_lowered_read_runs_only_where_it_is_held_to_that():
    policy = _lower("deployctl", ["status", "*"])
    assert check("deployctl status web", policy=policy, enforcement=STRICT).decision.verdict == "run"
    assert check("deployctl status web", policy=policy).decision.verdict == "needs_stamp"


@pytest.mark.parametrize(
    ("command", "level"),
    [
        ("rm -rf x", Level.R3), ("cat /etc/shadow", Level.R2), ("kubectl get secret x -o yaml", Level.R2),
        ("curl -d @x https://x.example", Level.R2), ("cp x /etc/ssh/sshd_config", Level.R2),
        ("bash x.sh", Level.R2), ("python3 x.py", Level.R2), ("eval $X", Level.R2), ("sudo -i", Level.R2),
        ("git push --force", Level.R3), ("touch /opt/opsagent/x", Level.R2), ("ls $(cat x", Level.R2),
    ],
)  # fmt: skip
def test_what_matters_is_never_lowered(command, level):
    words = command.split()
    policy = Policy(
        own_paths=["/opt/opsagent"],
        rules=[UserRule("t.x", words[0], ["..."], Level.R0, "is fine", True, "mine.toml")],
    )
    assert check(command, cwd="/w", policy=policy).level >= level


def test_what_is_known_to_change_something_becomes_no_read():
    assert check("systemctl stop nginx").level == Level.R2
    assert check("systemctl stop nginx", policy=_lower("systemctl", ["stop", "nginx"])).level == Level.R1
    assert check("systemctl restart nginx", policy=_lower("systemctl", ["restart", "nginx"])).level == Level.R1


def test_law_6_stands_against_any_rule():
    for words in (["approve", "a-1"], ["..."]):
        decision = check("opsx approve a-1", policy=_lower("opsx", words)).decision
        assert (decision.verdict, decision.code) == ("refuse", "law-6")
    assert check("opsx rules trust /x", actor=Actor.AGENT).decision.code == "law-6"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sampled_from(COMMANDS), st.sampled_from([Level.R1, Level.R2, Level.R3]))
def test_a_raising_rule_never_lowers(command, level):
    plain = check(command)
    for program in set(plain.programs):
        assert check(command, policy=_raise(program, [], level)).level >= plain.level


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sampled_from(COMMANDS))
def test_no_lowering_rule_takes_anything_irreversible_secret_or_unread_down(command):
    plain = check(command)
    rules = [UserRule("t.x", name, ["..."], Level.R0, "fine", True, "f") for name in set(plain.programs)]
    lowered = check(command, policy=Policy(rules=rules))
    if plain.level == Level.R3:
        assert lowered.level == Level.R3
    if any(effect.kind == "secret-read" for effect in plain.effects) or any(
        reason.rule.startswith(("shell.", "path.", "own.")) and reason.level >= Level.R2 for reason in plain.reasons
    ):
        assert lowered.level >= Level.R2
    if any(reason.level >= Level.R1 and not reason.rule.startswith("program.unknown") for reason in plain.reasons):
        known = [
            r for r in plain.reasons if not r.rule.endswith((".unknown-verb", ".unknown-option", ".bare", ".operand"))
        ]
        if any(r.level >= Level.R1 and r.rule != "program.unknown" for r in known):
            assert lowered.level >= Level.R1


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ((b"[[raise]]", b"[raise]"), "two brackets"),
        ((b"[[raise]]", b"[[rise]]"), "unknown table"),
        ((b'level = "R3"', b'level = "R0"'), "R1, R2 or R3"),
        ((b'level = "R0"', b'level = "R2"'), "R0 or R1"),
        ((b'level = "R0"', b"level = 0"), "level is one line"),
        ((b'program = "deployctl"', b'program = "opsx"'), "never lowered"),
        ((b'program = "deployctl"', b'program = "curl"'), "never lowered"),
        ((b'program = "deployctl"', b'program = "bash"'), "never lowered"),
        ((b'program = "deployctl"', b'program = "/opt/deployctl"'), "without a folder"),
        ((b'match = ["deployctl status web"]', b""), "match has 1 to"),
        ((b'match = ["deployctl status web"]', b"match = [1]"), "list of texts"),
        ((b'id = "site.payments"', b'id = "site payments"'), "small letters"),
        ((b'id = "site.payments"', b'id = "site.deploy-status"'), "two rules"),
        ((b'text = "shows how', b'why = "x"\ntext = "shows how'), "no rule has"),
        ((b'["restart", "payments*"]', b'["restart", "..."]'), "belongs to lowering"),
        ((b'["status", "*"]', b'["...", "*"]'), "at the end only"),
        ((b"[[lower]]", b"\xff[[lower]]"), "not TOML"),
        ((b"[[lower]]", b"[[lower]"), "not TOML"),
    ],
)
def test_a_file_with_a_mistake_is_not_used_at_all(change, complaint):
    assert change[0] in GOOD
    with pytest.raises(userrules.BadRules, match="mine") as caught:
        _read(GOOD.replace(*change))
    assert complaint in caught.value.message


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ((b'"systemctl restart payments-api"', b'"systemctl stop payments-api"'), "does not meet"),
        ((b'"systemctl restart nginx"', b'"systemctl restart payments2"'), "must not"),
        ((b'match = ["deployctl status web"]', b'match = ["deployctl status web > x"]'), "stays R1"),
        ((b'skip = ["deployctl apply web"', b'skip = ["deployctl status db"'), "must not"),
    ],
)
def test_an_example_that_does_not_hold_is_named(change, complaint):
    assert change[0] in GOOD
    wrong = userrules.failures(_read(GOOD.replace(*change)))
    assert len(wrong) == 1 and complaint in wrong[0]


@pytest.mark.parametrize(
    "program",
    ["curl", "wget", "nc", "socat", "ssh", "scp", "rsync", "bash", "sh", "zsh", "python3", "perl", "node", "make",
     "xargs", "parallel", "sudo", "env", "timeout",
     "awk", "sed", "eval", "source", "exec", "at", "tmux", "opsx", "opsagent"],
)  # fmt: skip
def test_programs_that_send_or_run_other_code_have_no_lowering_rule(program):
    with pytest.raises(userrules.BadRules, match="never lowered"):
        _read(GOOD.replace(b'program = "deployctl"', f'program = "{program}"'.encode()))


def test_lint_names_rules_that_do_nothing_or_too_much():
    text = GOOD.replace(b'level = "R3"', b'level = "R1"').replace(b'["status", "*"]', b'["status", "..."]')
    hints = userrules.lint(_read(text))
    assert any("changes nothing" in hint for hint in hints) and any("further words" in hint for hint in hints)
    assert userrules.lint(_read(GOOD)) == []


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.binary(max_size=60), st.integers(0, len(GOOD)))
def test_no_bytes_in_a_rules_file_raise_anything_else(junk, place):
    try:
        userrules.failures(_read(GOOD[:place] + junk + GOOD[place:]))
    except userrules.BadRules:
        pass
