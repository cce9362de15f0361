"""However a text gives a value to a variable that programs obey, it counts as in `NAME=value program`."""

from __future__ import annotations

import pytest

from guard.judge.assignments import leads_to_shared
from guard.judge.classify import check
from guard.judge.engine import Judge
from guard.judge.variables import AMBIENT_VARIABLES, DANGEROUS_VARIABLES, HARMLESS_VARIABLES
from guard.types import Enforcement, Level

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
