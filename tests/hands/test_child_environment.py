"""What a command's environment has, and has not."""

from __future__ import annotations

import pytest

from guard.hands.environment import build_environment, looks_secret

OURS = {
    "HOME": "/home/a",
    "USER": "somebody",
    "PATH": "/evil:/bin",
    "LANG": "tr_TR.UTF-8",
    "PAGER": "evil",
    "TZ": "Asia/Shanghai",
    "https_proxy": "http://me:pa55word@proxy:3128",
    "SSL_CERT_FILE": "/ca.pem",
    "OPENAI_API_KEY": "sk-1234567890",
    "AWS_PROFILE": "prod",
    "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI",
    "PGHOST": "db",
    "PGPASSWORD": "hunter2hunter2",
    "KUBECONFIG": "/home/a/k",
    "LD_PRELOAD": "/evil.so",
    "BASH_ENV": "/evil.sh",
    "BASH_FUNC_ls%%": "() { evil; }",
    "PYTHONPATH": "/evil",
    "OPSAGENT_HOME": "/state",
    "SSH_AUTH_SOCK": "/agent",
    "EDITOR": "vi",
}


def test_nothing_comes_along_that_nobody_asked_for():
    made = build_environment(source=OURS)
    assert made.passed == ("SSL_CERT_FILE", "TZ", "https_proxy")
    assert made.env["HOME"] == "/home/a"
    assert made.env["PATH"].split(":")[:2] == ["/usr/local/sbin", "/usr/local/bin"]
    assert (made.env["LANG"], made.env["PAGER"], made.env["TERM"]) == ("C.UTF-8", "cat", "dumb")
    assert (made.env["GIT_OPTIONAL_LOCKS"], made.env["GIT_TERMINAL_PROMPT"], made.env["SYSTEMD_PAGER"]) == (
        "0",
        "0",
        "",
    )
    assert not {"OPENAI_API_KEY", "AWS_PROFILE", "EDITOR", "SSH_AUTH_SOCK", "OPSAGENT_HOME"} & made.env.keys()


def test_names_and_shapes_that_are_asked_for_are_passed_and_told():
    made = build_environment(["AWS_*", "PG*", "KUBECONFIG"], OURS)
    assert made.env["AWS_SECRET_ACCESS_KEY"] == "wJalrXUtnFEMI"
    assert {"AWS_PROFILE", "AWS_SECRET_ACCESS_KEY", "KUBECONFIG", "PGHOST", "PGPASSWORD"} <= set(made.passed)


def test_secret_values_that_are_passed_are_told_to_the_redactor():
    made = build_environment(["AWS_*", "PG*", "KUBECONFIG"], OURS)
    assert set(made.secrets) == {"pa55word", "wJalrXUtnFEMI", "hunter2hunter2"}


@pytest.mark.parametrize("name", ["LD_PRELOAD", "BASH_ENV", "BASH_FUNC_ls%%", "PYTHONPATH", "OPSAGENT_HOME"])
def test_loader_and_shell_variables_are_passed_to_nobody(name):
    assert name not in build_environment([name, "*"], OURS).env


@pytest.mark.parametrize("name", ["PATH", "PAGER", "LANG", "GIT_OPTIONAL_LOCKS"])
def test_fixed_values_cannot_be_asked_away(name):
    assert build_environment([name], OURS).env[name] == build_environment(source={}).env[name]


def test_without_a_home_there_is_still_one():
    assert build_environment(source={}).env["HOME"].startswith("/")


@pytest.mark.parametrize(
    ("name", "secret"),
    [("DB_PASSWORD", True), ("GITHUB_TOKEN", True), ("AWS_SECRET_ACCESS_KEY", True), ("X_API_KEY", True),
     ("PGHOST", False), ("KUBECONFIG", False), ("TZ", False), ("KEYBOARD", False)],
)  # fmt: skip
def test_names_of_credentials_are_known(name, secret):
    assert looks_secret(name) is secret
