"""The laws again, for combinations: wrappers in wrappers, secrets in every spelling, peers and paths that move."""

import shlex

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from guard.judge.classify import check
from guard.types import Actor, Enforcement, Facts, Level, Policy
from tests.judge_texts import COMMANDS, ROWS

STRICT = Enforcement(("local", "net", "bus", "observe", "netadm", "block"), "strict", 4, True)
OWN = Policy(own_paths=["/opt/opsagent"])
small = settings(max_examples=120, deadline=None, derandomize=True)

SHELLS_IN = ("bash -c {}", "sh -c {}", "eval {}", "sudo sh -c {}", "ssh web1 {}", "su bob -c {}",
    "timeout 5 bash -c {}",
    "docker exec web sh -c {}", "kubectl exec web -- sh -c {}", "nohup bash -c {}", "flock /l -c {}",
    "env A=1 sh -c {}",
    "watch {}", "xargs -I % sh -c {}", "find . -exec sh -c {} \\;", "systemd-run bash -c {}",
    "chroot /mnt sh -c {}")  # fmt: skip
BESIDE = ("{} | cat", "cat x | {}", "{} && df", "! {}", "if {}; then ls; fi", "while {}; do break; done",
    "{{ {}; }}", "({})",
    "{} > /dev/null", "time {}", "ls; {}", "f() {{ {}; }}; f", "case a in a) {};; esac", "echo $({})",
    "cat <({})")  # fmt: skip
LINES = ("{} |\n cat", "{} &&\n df", "df ||\n {}", "{}\n\n", "if\n {}\nthen\n ls\nfi")
PLAIN = st.sampled_from(
    [row["cmd"] for row in ROWS if "\n" not in row["cmd"] and not set(row["cmd"]) & set("\\#!`")
     and "<<" not in row["cmd"]
     and row["cmd"].split(" ")[0] not in ("exec", "export", "trap", "f", "time", "coproc", "source", ".", "alias",
     "hash",
                                          "enable", "set", "exit", "return", "break", "continue", "function",
                                          "history")]
)  # fmt: skip


def _level(command: str, **more) -> Level:
    return check(command, **more).level


@small
@given(PLAIN, st.lists(st.sampled_from(SHELLS_IN), min_size=1, max_size=3))
def test_no_pile_of_shells_lowers_the_level(command, frames):
    wrapped = command
    for frame in frames:
        wrapped = frame.format(shlex.quote(wrapped))
    assert _level(wrapped) >= _level(command)


@small
@given(PLAIN, st.lists(st.sampled_from((*BESIDE, *LINES)), min_size=1, max_size=3))
def test_no_grammar_around_a_command_lowers_the_level(command, frames):
    wrapped = command
    for frame in frames:
        if wrapped.rstrip().endswith("&"):
            return
        wrapped = frame.format(wrapped.rstrip())
    assert _level(wrapped) >= _level(command)


@small
@given(st.lists(st.sampled_from(COMMANDS), min_size=2, max_size=4))
def test_a_whole_is_at_least_its_worst_part(parts):
    assert _level("\n".join(parts)) >= max(_level(part) for part in parts)


SECRETS = ("/etc/shadow", "/root/.ssh/id_rsa", "~/.ssh/id_ed25519", "/home/bob/.aws/credentials", ".env", "~/.pgpass",
    "/etc/ssh/ssh_host_rsa_key", "/proc/1/environ", "~/.netrc", "/etc/gshadow", "/srv/app/.env.production",
    "~/.docker/config.json")  # fmt: skip
READERS = ("cat {}", "head -n 1 {}", "tail -c 10 {}", "less {}", "grep x {}", "sort {}", "cut -c1 {}", "base64 {}",
    "od -c {}",
    "strings {}", "awk 1 {}", "sed -n p {}", "diff {} /dev/null", "wc -l < {}", "xxd {}", "tac {}", "nl {}",
    "rev {}", "tr a b < {}",
    "sudo cat {}", "while read -r l; do echo \"$l\"; done < {}", "echo \"$(< {})\"", "x=\"$(cat {})\"; echo \"$x\"",
    "mapfile a < {}",
    "paste {}", "comm {} /dev/null", "fold {}", "cat -- {}", "jq . {}", "bat {}")  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_no_reader_shows_a_credential_as_a_mere_read(reader):
    assert [secret for secret in SECRETS if _level(reader.format(secret)) < Level.R2] == []


@small
@given(st.sampled_from(SECRETS), st.sampled_from(READERS), st.data())
def test_no_spelling_of_a_secret_path_makes_it_a_read(secret, reader, data):
    at = data.draw(st.integers(1, len(secret)))
    head, tail = secret[:at], secret[at:]
    tilde = secret.startswith("~")
    spelled = data.draw(
        st.sampled_from(
            [
                f"{head}''{tail}" if not tilde or at > 1 else secret,
                f'{head}"{tail}"' if not tilde or at > 1 else secret,
                f"{head}$'{tail}'" if not tilde or at > 1 else secret,
                secret.replace("/", "//") if "/" in secret else secret,
                secret.replace("/", "/./", 1) if "/" in secret else f"./{secret}",
                secret.replace("/etc/", "/etc/../etc/"),
                secret.replace("~", "$HOME"),
            ]
        )
    )
    assert _level(reader.format(spelled)) >= Level.R2, spelled


@small
@given(
    st.sampled_from(COMMANDS),
    st.sampled_from(["/etc/shadow", "/dev/sda", "/srv/plain"]),
    st.sampled_from(["file", "device", "fifo"]),
)
def test_facts_never_lower(command, real, kind):
    plain = check(command, cwd="/srv")
    asked = plain.questions
    facts = Facts(dict.fromkeys(asked, real), {real: kind, **dict.fromkeys(asked, kind)})
    assert check(command, cwd="/srv", facts=facts).level >= plain.level


@small
@given(st.sampled_from(COMMANDS), st.sampled_from([Actor.AGENT, Actor.RUNBOOK, Actor.HOOK]))
def test_no_actor_changes_the_level_and_none_below_a_person_decides_more(command, actor):
    person, other = check(command, actor=Actor.PERSON, policy=OWN), check(command, actor=actor, policy=OWN)
    assert person.level == other.level
    order = ("run", "needs_stamp", "refuse")
    assert order.index(other.decision.verdict) >= order.index(person.decision.verdict)


@small
@given(st.sampled_from(COMMANDS))
def test_only_reads_run_and_only_the_irreversible_is_forceable(command):
    decision = check(command, enforcement=STRICT).decision
    level = _level(command)
    if decision.verdict == "run":
        assert level == Level.R0
    assert decision.forceable == (level == Level.R3 and decision.verdict == "refuse" and decision.code == "level")
    assert decision.text and not decision.text.endswith(".") and decision.text[0].islower()


@small
@given(st.sampled_from(COMMANDS))
def test_more_enforcement_never_stops_what_less_lets_run(command):
    if check(command).decision.verdict == "run":
        assert check(command, enforcement=STRICT).decision.verdict == "run"


OWN_ACTS = ("opsx approve a-1", "opsx rules trust /x", "opsx thaw", "opsagent -p hi", "touch /opt/opsagent/core.py",
    "rm -r /opt/opsagent", "sed -i s/a/b/ /opt/opsagent/x", "OPSAGENT_HOME=/x ls", "echo x > /opt/opsagent/config.toml",
    "opsx check --config /tmp/x -- ls", "cp x /opt/opsagent/y", "ln -sf /x /opt/opsagent/.venv",
    "tee /opt/opsagent/z")  # fmt: skip


@small
@given(st.sampled_from(OWN_ACTS), st.lists(st.sampled_from(SHELLS_IN), max_size=2), st.sampled_from(["{}", *BESIDE]))
def test_nobody_below_a_person_approves_in_any_wrapping(act, frames, beside):
    command = act
    for frame in frames:
        command = frame.format(shlex.quote(command))
    command = beside.format(command)
    assume(not command.startswith("xargs"))
    decision = check(command, cwd="/srv", policy=OWN, enforcement=STRICT).decision
    assert (decision.verdict, decision.forceable) == ("refuse", False), command


@small
@given(st.sampled_from(["PATH=/tmp", "LD_PRELOAD=/tmp/x.so", "BASH_ENV=/tmp/x", "IFS=x", "GIT_SSH_COMMAND=id",
    "PERL5OPT=-Mx",
    "PYTHONPATH=/tmp", "ENV=/tmp/x", "LESSOPEN=id", "NODE_OPTIONS=-r/x", "GIT_EXTERNAL_DIFF=id", "PROMPT_COMMAND=id"]),
    st.sampled_from(["{} ls", "export {}; ls", "env {} ls", "declare -x {}; ls", "sudo {} ls", "{}; ls",
    "readonly {}; ls",
        "typeset -gx {}; ls", "f() {{ local -x {}; ls; }}; f", "ssh web1 {} ls", "timeout 5 env {} ls"]))  # fmt: skip
def test_a_variable_that_changes_what_programs_do_is_never_a_read(setting, frame):
    assert _level(frame.format(setting)) >= Level.R2


@small
@given(
    st.sampled_from(["curl -s {}", "wget -qO- {}", "curl -I {}", "curl -s https://x.example/?q={}", "dig {}",
    "curl -s -o /dev/null {}"]),
    st.sampled_from(["$X", "$(hostname)", "https://$X/", "https://x.example/$(id)", "`id`.x.example",
    "${X}.x.example"]),
)  # fmt: skip
def test_a_peer_or_query_that_the_text_does_not_tell_is_no_read(frame, moving):
    assert _level(frame.format(moving)) >= Level.R2


@pytest.mark.parametrize("address", ["169.254.169.254", "http://169.254.169.254/latest/meta-data/",
    "metadata.google.internal",
    "http://[fd00:ec2::254]/latest", "http://100.100.100.200/latest"])  # fmt: skip
def test_metadata_services_are_secrets(address):
    assert _level(f"curl -s {address}") >= Level.R2


@small
@given(st.sampled_from(["sort", "rg x", "find", "git log", "tar -tf", "date", "curl", "awk", "less", "sed", "man"]),
    st.sampled_from(["*", "$X", "\"$X\"", "$(cat l)", "-$X", "--$X", "${A[@]}"]))  # fmt: skip
def test_what_may_turn_out_to_be_an_option_runs_only_where_nothing_can_be_written(program, word):
    assessment = check(f"{program} {word}")
    assert assessment.level >= Level.R2 or assessment.decision.verdict != "run"
