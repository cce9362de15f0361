"""What can keep a person out is told, and what cannot is not."""

from __future__ import annotations

import shlex

import pytest

import core
from guard.filechange import FileChange, sha256_of
from guard.judge import cutpaths, cutting
from guard.types import Facts

RULES = {f"{number}-{rule.why}": rule for number, rule in enumerate(cutting.CUTS)}


def found(command, **more):
    return {cut.why: cut.saved for cut in core.check(command, cwd="/x", **more).cuts}


@pytest.mark.parametrize("name", RULES)
def test_every_rule_matches_its_examples_and_nothing_else(name):
    rule = RULES[name]
    assert {command: rule.why in found(command) for command in (*rule.must, *rule.must_not)} == {
        **dict.fromkeys(rule.must, True),
        **dict.fromkeys(rule.must_not, False),
    }


@pytest.mark.parametrize("path", [*cutpaths.MUST, *cutpaths.MUST_NOT])
def test_paths_that_decide_who_comes_in_are_told_from_those_beside_them(path):
    assert cutpaths.decides(path) is (path in cutpaths.MUST)


WAYS = [
    "echo x >> {}",
    "sed -i s/a/b/ {}",
    "tee {}",
    "cp y {}",
    "mv {} /y",
    "rm {}",
    "chmod 600 {}",
    "chown bob {}",
    "ln -sf /y {}",
    "truncate -s 0 {}",
    "bash -c 'echo x > {}'",
    "sudo rm -f {}",
]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_change_such_a_file_is_one(way):
    command = way.format("/etc/ssh/sshd_config")
    assert found(command) == {"/etc/ssh/sshd_config, which decides who comes in": True}
    assert core.check(command, cwd="/x").cuts_off
    assert found(way.format("/etc/motd")) == {}


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("chmod 777 /root", "/root"),
        ("chmod 000 ~/.ssh", "~/.ssh"),
        ("rm -r /etc/ssh", "/etc/ssh"),
        ("chown bob /home/bob", "/home/bob"),
        ("cp passwd /etc/", "/etc"),
        ("rsync -a y/ /etc/", "/etc"),
    ],
)
def test_folders_above_such_files_count_with_their_rights_and_with_what_is_put_there(command, said):
    assert list(found(command)) == [f"{said}, which decides who comes in"]


@pytest.mark.parametrize(
    "command", ["cp motd /etc/", "mkdir /etc/nginx", "touch /home/bob/x", "chmod 644 /srv", "rm /x"]
)
def test_folders_that_hold_no_such_file_do_not(command):
    assert found(command) == {}


NAMED = {
    "find /etc/ssh -delete": ["/etc/ssh"],
    "find / -name authorized_keys -delete": ["/"],
    "git -C /etc checkout .": ["/etc"],
    "patch /etc/ssh/sshd_config": ["/etc/ssh/sshd_config"],
    "vi /etc/ssh/sshd_config": ["/etc/ssh/sshd_config"],
    "cp /etc/ssh/sshd_config /tmp/x": [],
    "tar cf /tmp/x.tar /etc/ssh": [],
    "grep -rl Port /etc/ssh": [],
    "sudo cp /etc/passwd /srv/x": [],
    "find /etc/ssh -name '*.conf'": [],
    "git -C /srv/app checkout .": [],
}


@pytest.mark.parametrize("command", NAMED)
def test_a_command_that_changes_something_and_names_such_a_file_may_mean_it(command):
    said = [why for why in found(command) if why != cutting.NOT_READ]
    assert said == [f"{path}, which decides who comes in" for path in NAMED[command]]


def test_a_key_of_the_kernel_is_no_file_that_comes_back():
    assert found("echo 1 > /proc/sys/net/ipv4/ip_forward") == {
        "/proc/sys/net/ipv4/ip_forward, which decides who comes in": False
    }


@pytest.mark.parametrize("command", ["bash fw.sh", "./fw.sh", "frobnicate", "python3 x.py", "eval $x", "rm $x"])
def test_what_is_not_read_may_cut_off_and_nothing_brings_it_back(command):
    assert found(command) == {cutting.NOT_READ: False}
    assert not core.check(command, cwd="/x").cuts_off


@pytest.mark.parametrize("command", ["uptime", "touch x", "reboot", "systemctl restart nginx", "apt-get update"])
def test_what_keeps_nobody_out_says_nothing(command):
    assert found(command) == {}


def test_a_part_that_nothing_brings_back_is_told_beside_one_that_comes_back():
    assert found("nft -f f; bash fw.sh") == {"a firewall": True, cutting.NOT_READ: False}
    assert core.check("nft -f f; bash fw.sh", cwd="/x").cuts_off


CONTAINERS = {
    "docker exec web iptables -F": True,
    "docker run --rm --net=host alpine iptables -F": True,
    "docker run --network host alpine ip link set eth0 down": True,
    "docker run --rm --privileged --pid=host alpine iptables -F": True,
    "docker run --rm alpine iptables -F": False,
    "docker exec web ls": False,
    "ssh web-1 iptables -F": False,
}


@pytest.mark.parametrize("command", CONTAINERS)
def test_a_container_that_may_share_this_network_is_not_trusted_with_it(command):
    said = [why for why in found(command) if why.startswith("the network of this machine")]
    assert bool(said) is CONTAINERS[command]
    assert not core.check(command, cwd="/x").cuts_off


def told(number, own="net:[4026531840]"):
    paths = {"/proc/55/ns/net": f"/proc/55/ns/{number}", "/proc/self/ns/net": f"/proc/7/ns/{own}"}
    return Facts(paths, {})


@pytest.mark.parametrize(
    "words", ["-t 55 -n", "-t55 -n", "--target 55 --net", "--target=55 -n", "-n -t 55", "-t 55 -a"]
)
def test_another_process_has_this_network_unless_it_is_shown_to_have_its_own(words):
    command = f"nsenter {words} nft flush ruleset"
    # Nothing is known: it may be this one, and nothing says that what is saved here is what it changes.
    assert found(command) == {"a firewall": False}
    assert core.check(command, cwd="/x").snapshot_plan == ()
    same = core.check(command, cwd="/x", facts=told("net:[4026531840]"))
    assert [item.object for item in same.snapshot_plan] == ["nft", "iptables"]
    assert same.cuts_off
    assert found(command, facts=told("net:[4026532999]")) == {}
    # A process that is gone, or whose namespace may not be looked at, answers with its own path.
    assert found(command, facts=told("net")) == {"a firewall": False}


@pytest.mark.parametrize("words", ['-t "$p" -n', "-n/proc/55/ns/net", "--net=/run/netns/x -t 55", "-t 0x37 -n"])
def test_a_network_that_the_text_does_not_name_counts_as_this_one(words):
    assert found(f"nsenter {words} nft flush ruleset", facts=told("net:[4026532999]"))["a firewall"] is False


@pytest.mark.parametrize(
    "carriers",
    ["unshare -n nsenter -t 1 -n", "ip netns exec blue nsenter -t 1 -a", "nsenter -t 55 -n nsenter --net --target=1"],
)
def test_the_last_that_enters_a_network_decides(carriers):
    command = f"{carriers} nft flush ruleset"
    assert found(command, facts=told("net:[4026532999]")) == {"a firewall": True}
    assert found(f"nsenter -t 1 -n nsenter -t 55 -n {command}", facts=told("net:[4026532999]")) == {"a firewall": True}
    assert found("nsenter -t 1 -n nsenter -t 55 -n nft -f f", facts=told("net:[4026532999]")) == {}


def test_the_question_about_a_network_is_asked():
    assert {"/proc/55/ns/net", "/proc/self/ns/net"} <= set(
        core.check("nsenter -t 55 -n nft flush ruleset", cwd="/x").questions
    )


UNITS = {
    "systemctl restart nftables": {"nft", "iptables"},
    "systemctl enable --now ufw": {"nft", "iptables"},
    "service networking restart": {"network"},
    "systemctl enable nftables": set(),
    "systemctl restart nginx": set(),
}


@pytest.mark.parametrize("command", UNITS)
def test_with_a_unit_that_makes_rules_or_routes_these_are_saved_too(command):
    plan = core.check(command, cwd="/x").snapshot_plan
    assert {item.object for item in plan if item.kind == "state"} == UNITS[command]


@pytest.mark.parametrize("command", ["truncate -s 0 /etc/shadow", "sed -i s/a/b/ /etc/shadow"])
def test_a_file_of_which_no_snapshot_keeps_the_content_does_not_come_back(command):
    assert found(command) == {"/etc/shadow, which decides who comes in": False}


@pytest.mark.parametrize(
    ("path", "unkept", "saved"),
    [("/etc/ssh/sshd_config", False, [True]), ("/etc/ssh/sshd_config", True, [False]), ("/etc/motd", False, [])],
)
def test_a_file_change_cuts_off_as_a_command_does(path, unkept, saved):
    change = FileChange(path, 0o644, "", sha256_of(b""))
    assert [cut.saved for cut in core.check_file_change(change, unkept=unkept).cuts] == saved


WRAPPERS = {
    "sudo": "sudo {}",
    "env": "env A=b {}",
    "timeout": "timeout 5 {}",
    "nohup": "nohup {} &",
    "list": "true; {} || true",
    "pipe": "true | {}",
    "group": "if true; then {}; fi",
    "loop": "for i in 1 2; do {}; done",
    "bash": "bash -c {quoted}",
    "su": "su root -c {quoted}",
    "subshell": "x=$({})",
    "time": "time {}",
    "systemd-run": "systemd-run {}",
    "xargs": "echo x | xargs {}",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_no_way_to_run_it_hides_that_it_cuts_off(wrapper):
    missed = []
    for rule in cutting.CUTS:
        for command in rule.must:
            if wrapper in ("systemd-run", "xargs", "sudo", "env", "timeout", "nohup", "time") and " < " in command:
                continue
            text = WRAPPERS[wrapper].format(command, quoted=shlex.quote(command))
            cuts = found(text)
            if rule.why not in cuts and cutting.NOT_READ not in cuts:
                missed.append(text)
    assert missed == []


LATER = [
    "(sleep 15; iptables -F) &",
    "nohup sh -c 'sleep 9; iptables -F' &",
    "bash -c '(sleep 9; iptables -F) & exit'",
    "systemd-run --on-active=10 iptables -F",
    "echo iptables -F | at now + 1 min",
    "setsid -f iptables -F",
    "tmux new -d 'iptables -F'",
]


@pytest.mark.parametrize("command", LATER)
def test_what_goes_on_after_its_end_is_said_to_stay(command):
    """Its dead man takes back what is there at the deadline, and nobody watches what comes then."""
    assert found(command) == {"a firewall": True, cutting.LATER: False}


@pytest.mark.parametrize(
    "command", ["sleep 9 &", "iptables -F", "setsid iptables -F", "systemd-run --wait iptables -F"]
)
def test_what_ends_with_its_command_is_not(command):
    assert cutting.LATER not in found(command)


LOST = [
    "pgrep sshd | xargs kill",
    "systemctl stop user.slice",
    "systemctl start rescue.target",
    "loginctl terminate-user bob",
    "ss -K dst 192.0.2.1",
    "cpio -idm -D /etc",
    "cd / && tar xf a",
    "fail2ban-client set sshd banip 192.0.2.1",
]


@pytest.mark.parametrize("command", LOST)
def test_what_nothing_could_bring_back_has_no_dead_man(command):
    assert set(found(command).values()) == {False}


@pytest.mark.parametrize("command", ["pgrep nginx | xargs kill", "tar xf a", "cpio -idm -D /srv", "tar cf a ."])
def test_what_is_like_it_and_keeps_nobody_out_is_not_told(command):
    assert found(command) == {}
