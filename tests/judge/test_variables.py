"""However a text gives a value to a variable that programs obey, it counts as in `NAME=value program`."""

from __future__ import annotations

import pytest

from guard.judge.assignments import leads_to_shared
from guard.judge.classify import check
from guard.judge.engine import Judge
from guard.judge.variables import AMBIENT_VARIABLES, DANGEROUS_VARIABLES, HARMLESS_VARIABLES
from guard.pointers import OUTSIDE
from guard.types import Enforcement, Level, Policy

HERE = Enforcement(("local", "net", "bus"), "strict", 5, True)

LITERAL = (
    "{name}={value} {program}",
    "{name}={value}; {program}",
    "export {name}={value}; {program}",
    "export {name}='{value}'\n{program}",
    "declare -x {name}={value}; {program}",
    "typeset -gx {name}={value} && {program}",
    "readonly {name}={value}; {program}",
    "set -a; {name}={value}; {program}",
    "v={value}; export {name}=$v; {program}",
    "f() {{ local {name}={value}; {program}; }}; f",
    "env {name}={value} {program}",
    "command export {name}={value}; {program}",
)
UNTOLD = (
    "{name}=$x {program}",
    "export {name}=$(cat f); {program}",
    "export {name}+=x; {program}",
    "read {name} < f; export {name}; {program}",
    "mapfile -t {name} < f; {program}",
    "printf -v {name} %s x; {program}",
    "for {name} in *; do {program}; done",
    "select {name} in a b; do {program}; done",
    ": ${{{name}:={value}}}; {program}",
    ": $(({name} = 1)); {program}",
    "(( {name} = 1 )); {program}",
    "let {name}=1; {program}",
    "declare -n r={name}; r={value}; {program}",
    "f() {{ local -n r=$1; r={value}; {program}; }}; f {name}",
)


@pytest.mark.parametrize("form", LITERAL)
@pytest.mark.parametrize("value", ["/tmp/x", "/var/tmp", "/srv/../tmp/x"])
@pytest.mark.parametrize(
    ("name", "program"), [("DOCKER_CONFIG", "docker ps"), ("KUBECONFIG", "kubectl get pods"), ("PATH", "ls")]
)
def test_a_configuration_from_where_others_write_is_high_risk_in_every_form(form, value, name, program):
    assert check(form.format(name=name, value=value, program=program), enforcement=HERE).level == Level.R2


@pytest.mark.parametrize("form", UNTOLD)
@pytest.mark.parametrize(
    ("name", "program"), [("DOCKER_CONFIG", "docker ps"), ("KUBECONFIG", "kubectl get pods"), ("PATH", "ls")]
)
def test_a_value_that_is_not_told_is_high_risk_in_every_form(form, name, program):
    assert check(form.format(name=name, value="/srv/x", program=program), enforcement=HERE).level == Level.R2


@pytest.mark.parametrize("form", LITERAL[:7])
def test_a_literal_elsewhere_is_named_and_a_helper_in_every_form(form):
    judged = check(form.format(name="DOCKER_CONFIG", value="/srv/x", program="docker ps"), enforcement=HERE)
    assert (judged.level, judged.ambient["DOCKER_CONFIG"]) == (Level.R0, "/srv/x")
    assert "helper" in judged.flags and judged.decision.verdict == "needs_stamp"


@pytest.mark.parametrize("name", sorted(AMBIENT_VARIABLES | DANGEROUS_VARIABLES - {"HOME", "PS4"}))
def test_no_name_that_programs_obey_is_filled_with_what_is_not_told(name):
    assert check(f"read -r {name} < f; ls").level == Level.R2
    assert check(f"for {name} in a b; do ls; done").level == Level.R2


@pytest.mark.parametrize("name", [*sorted(HARMLESS_VARIABLES - {"REPLY", "OPTARG", "OPTIND"}), "x", "file", "COUNT"])
def test_ordinary_names_stay_what_they_are(name):
    assert check(f"{name}=1; ls").level == Level.R0
    assert check(f"export {name}=1; ls").level == Level.R0


@pytest.mark.parametrize(
    ("value", "folders", "expected"),
    [
        ("/tmp", [], True),
        ("/tmpfiles/x", [], False),
        ("/srv/a:/var/tmp/b", [], True),
        ("/dev/shm/../../srv", [], False),
        ("/srv/../dev/shm/x", [], True),
        ("x", ["/tmp/w"], False),
        ("x", ["/srv", "/tmp"], True),
        ("../tmp/x", ["/home", "/srv"], True),
        ("~/x", ["/srv", "/tmp"], False),
        ("", [], False),
    ],
)
def test_where_everybody_can_write_is_told_from_the_folder_that_the_text_goes_to(value, folders, expected):
    judge = Judge()
    judge.cwds = folders
    assert leads_to_shared(judge, value) is expected


GIVEN = ("{} ls", "export {}; ls", "declare -x {}; ls", "env {} ls", "sudo {} ls", "{} bash -c ls", "command env {} ls")


@pytest.mark.parametrize("form", GIVEN)
@pytest.mark.parametrize(
    "setting",
    ["LANGUAGE=/srv/x", "LC_ALL=/srv/x", "LC_MESSAGES=../x", "LANG=a/b", "TZ=/srv/x", "TZ=:/srv/x", "TZ=../../srv/x",
     "LOCPATH=/srv/x", "DBUS_SYSTEM_BUS_ADDRESS=unixexec:path=x", "APT_CONFIG=x", "npm_config_userconfig=x",
     "GETCONF_DIR=x", "LESSKEY_CONTENT=x", "OPENSSL_MODULES=x", "SSLKEYLOGFILE=x", "PERL5DB=x", "RUBYSHELL=x",
     "NODE_V8_COVERAGE=x", "PYTHONBREAKPOINT=x", "LUA_INIT=x", "VAULT_ADDR=http://x", "ETCDCTL_ENDPOINTS=x",
     "SYSTEMD_LESS=+x", "GLIBC_TUNABLES=x", "JDK_JAVA_OPTIONS=x", "DEBUGINFOD_URLS=http://x", "KRB5_TRACE=x"],
)  # fmt: skip
def test_what_makes_programs_load_run_or_reach_something_is_high_risk_in_every_form(form, setting):
    assert check(form.format(setting), enforcement=HERE).level == Level.R2


@pytest.mark.parametrize("form", GIVEN[:4])
@pytest.mark.parametrize(
    "setting", ["LANGUAGE=de:en", "LC_ALL=en_US.UTF-8", "TZ=Europe/Berlin", "TZ=:Europe/Berlin", "TZ=UTC0",
                "TZ=/usr/share/zoneinfo/UTC", "SYSTEMD_LESS=FRXMK", "LESS=-R"],
)  # fmt: skip
def test_names_of_locales_and_zones_mean_what_they_say(form, setting):
    judged = check(form.format(setting))
    assert (judged.level, judged.decision.verdict) == (Level.R0, "run")


@pytest.mark.parametrize("form", [*GIVEN[:4], "set -a; {}; ls", "set -o allexport; {}; ls"])
@pytest.mark.parametrize("setting", ["FOO=1", "foo=1", "COUNT=3"])
def test_what_a_variable_means_to_a_program_is_left_to_the_sandbox(form, setting):
    judged = check(form.format(setting))
    assert (judged.level, judged.decision.verdict) == (Level.R0, "needs_stamp")
    assert check(form.format(setting), enforcement=HERE).decision.verdict == "run"
    assert check(f"{setting}; ls").decision.verdict == "run", "a variable of the shell alone reaches no program"


@pytest.mark.parametrize(
    "command",
    [
        "KUBECONFIG=a kubectl get pods; kubectl get pods",
        "kubectl get pods && KUBECONFIG=a kubectl get pods",
        "kubectl get ns; export KUBECONFIG=a; kubectl get pods",
        "(export KUBECONFIG=a; kubectl get ns); kubectl get pods",
        "KUBECONFIG=a; kubectl get pods",
        "export KUBECONFIG=a; export -n KUBECONFIG; kubectl get pods",
        "export KUBECONFIG=a; unset KUBECONFIG; kubectl get pods",
        "env KUBECONFIG=a kubectl get ns | kubectl get pods",
        "KUBECONFIG=a sudo kubectl get pods",
        "export KUBECONFIG=a; sudo kubectl get pods",
        "KUBECONFIG=a kubectl get pods; bash -c 'kubectl get pods'",
        "KUBECONFIG=a helm list; kubectl get pods",
    ],
)
def test_a_client_that_gets_no_pointer_goes_where_it_always_goes(command):
    assert sorted(check(command).ambient.values()) == sorted(("a", OUTSIDE))


@pytest.mark.parametrize(
    "command",
    [
        "KUBECONFIG=a kubectl get pods",
        "KUBECONFIG=a kubectl get pods; docker ps; ls",
        "export KUBECONFIG=a; kubectl get pods; helm list",
        "export KUBECONFIG=a; bash -c 'kubectl get pods'",
        "KUBECONFIG=a; export KUBECONFIG; kubectl get pods",
        "env KUBECONFIG=a kubectl get pods",
        "sudo KUBECONFIG=a kubectl get pods",
        "KUBECONFIG=a bash -c 'kubectl get ns; kubectl get pods'",
        "KUBECONFIG=a kubectl exec p -- kubectl get pods",
    ],
)
def test_a_pointer_that_every_client_gets_is_the_only_one(command):
    assert list(check(command).ambient.values()) == ["a"]


def test_a_context_that_is_named_once_names_it_for_no_other_command():
    named = Policy(contexts=["prod"])
    for command in ("kubectl --context prod get pods", "kubectl --context prod get ns; kubectl --context=prod get po"):
        assert check(command, enforcement=HERE, policy=named).decision.code != "egress"
    for command in (
        "kubectl --context prod get pods; kubectl get pods",
        "kubectl get pods | cat; kubectl --context prod get pods",
        "kubectl --context prod get pods; kubectl --context other get pods",
        "kubectl --context other get pods; kubectl --context prod get pods",
    ):
        assert check(command, enforcement=HERE, policy=named).decision.code == "egress", command


def test_no_file_can_be_named_like_what_is_outside_of_the_text():
    assert list(check(f'KUBECONFIG="{OUTSIDE}" kubectl get pods').ambient.values()) == [f"./{OUTSIDE}"]
