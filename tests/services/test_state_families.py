"""Each family of states with the real programs: captured, changed, put back, equal, and put forth again.

Root gets namespaces of its own. An ordinary user cannot change these states, and reads of them say why or answer.
"""

from __future__ import annotations

import pytest

import execution
from acting import states
from guard.hands.services import FAMILIES
from guard.types import PlanItem
from tests.services.machine import is_root, story, went_back

ETC = (
    "mount -t tmpfs none /mnt; mkdir /mnt/u /mnt/w; "
    "mount -t overlay o -o lowerdir=/etc,upperdir=/mnt/u,workdir=/mnt/w /etc; "
    "mount -t tmpfs none /home; mount -t tmpfs none /var/mail"
)
SPOOL = (
    "mount -t tmpfs none /mnt; mkdir /mnt/c; chmod 1730 /mnt/c; chgrp crontab /mnt/c; "
    "mount --bind /mnt/c /var/spool/cron/crontabs"
)
MOUNTED = (
    "mount -t tmpfs none /mnt; mkdir /mnt/a /mnt/b /mnt/c; mount -t tmpfs -o size=2m one /mnt/a; "
    "mount -t tmpfs two /mnt/b"
)
RULES = (
    "nft add table inet x; nft 'add chain inet x in { type filter hook input priority 0; policy accept; }'; "
    "nft 'add rule inet x in tcp dport { 22, 80 } counter accept comment \"a { b\"'; "
    "nft 'add set inet x s { type ipv4_addr; flags timeout; }'"
)
LINKS = (
    "ip link add b0 type bridge; ip link add b1 type bridge; ip link set lo up; ip link set b0 up; ip link set b1 up; "
    "ip addr add 10.1.0.2/24 dev b0; ip addr add 10.2.0.2/24 brd + dev b1; ip route add default via 10.1.0.1; "
    "ip route add 10.7.0.0/16 via 10.2.0.1 dev b1 metric 5; ip -6 addr add fd00::2/64 dev b0 nodad; "
    "ip -6 route add fd01::/64 via fd00::1; ip route add blackhole 10.66.0.0/16; "
    "ip rule add from 10.3.0.0/16 lookup 100 pref 1000"
)
CONNTRACK = "-m conntrack --ctstate NEW -m comment --comment 'hi there'"
STORIES = {
    "sysctl-and-what-the-kernel-sets-with-it": ("sysctl -w net.ipv4.ip_forward=1", {}),
    "nft-tables": ("nft add table inet y; nft delete table inet x", {"before": RULES}),
    "nft-flush-takes-iptables-along": (
        "nft flush ruleset",
        {"before": f"{RULES}; iptables -A INPUT -p tcp --dport 22 {CONNTRACK} -j ACCEPT"},
    ),
    "iptables-of-both-versions": (
        "iptables -P INPUT DROP; ip6tables -A INPUT -j DROP; iptables -t nat -A POSTROUTING -j MASQUERADE",
        {"before": f"iptables -N own; iptables -A INPUT -p tcp --dport 22 {CONNTRACK} -j ACCEPT"},
    ),
    "network-links-addresses-routes-rules": (
        "ip link del b1; ip addr del 10.1.0.2/24 dev b0; ip addr add 10.9.0.1/24 dev b0; ip link set b0 mtu 1400; "
        "ip link add b9 type bridge; ip rule add from 10.4.0.0/16 lookup 77",
        {"before": LINKS},
    ),
    "network-default-route": ("ip route del default; ip link set b0 down", {"before": LINKS}),
    "network-what-is-set-on-links": (
        "ip link set b0 arp off promisc on multicast off allmulticast on txqueuelen 77 alias 'a b'; "
        "ip link set b0 addrgenmode none; ip link set b1 address 02:00:00:00:00:01; ip link del b2",
        {"before": f"{LINKS}; ip link add b2 type bridge; ip link set b2 arp off alias x txqueuelen 5"},
    ),
    "network-rules-and-routes-with-more": (
        "ip rule del pref 997; ip rule del pref 998; ip rule del pref 999; ip route del 10.8.0.0/16; "
        "ip route change 10.9.0.0/16 via 10.1.0.1 mtu 1300",
        {
            "before": f"{LINKS}; ip route add 10.8.0.0/16 via 10.1.0.1 mtu 1400; "
            "ip route add 10.9.0.0/16 via 10.1.0.1 mtu 1400 advmss 1200; "
            "ip rule add not from 10.3.0.0/16 dport 53 ipproto udp lookup 100 pref 997; "
            "ip rule add from all lookup main suppress_prefixlength 0 pref 998; "
            "ip rule add from all sport 100-200 uidrange 5-10 lookup 7 pref 999",
        },
    ),
    "accounts-new": ("useradd -m -G users bob", {"place": ETC}),
    "accounts-changed": (
        "usermod -s /bin/sh -G adm -c 'x y' bob; groupadd new; usermod -L carl; groupdel old; chage -M 30 carl",
        {
            "place": ETC,
            "before": "useradd -m -s /bin/bash -G users bob; useradd carl; echo carl:pw | chpasswd; "
            "groupadd -g 4321 old",
        },
    ),
    "accounts-ends": (
        "chage -E 0 bob; usermod -e 1 carl; passwd -e -q dora; chage -d 2020-01-02 -E -1 eve",
        {
            "place": ETC,
            "before": "for one in bob carl dora eve; do useradd $one; done; chage -E 2030-03-04 -d 0 bob; "
            "chage -E 2031-01-01 eve",
        },
    ),
    "accounts-beside-lines-for-others-and-without-a-shadow": (
        "chage -E 0 bob; usermod -c x bob; usermod -c y plain",
        {
            "place": ETC,
            "before": "useradd bob; echo 'plain:*:4001:100::/:/bin/sh' >> /etc/passwd; "
            "echo '+@adm::::::/bin/sh' >> /etc/passwd; echo '+::::::' >> /etc/passwd; echo '+:::' >> /etc/group",
        },
    ),
    "crontab-changed": (
        "echo '1 2 * * * y' | crontab -",
        {"place": SPOOL, "before": "printf '# a\\n* * * * * echo \"x\"\\n' | crontab -"},
    ),
    "crontab-new": ("echo '1 2 * * * y' | crontab -u nobody -", {"place": SPOOL}),
    "crontab-removed": ("crontab -r", {"place": SPOOL, "before": "echo '* * * * * x' | crontab -"}),
    "mounts-added-and-remounted": (
        "mount -o remount,ro /mnt/b; mount -t tmpfs -o size=1m none /mnt/c",
        {"place": MOUNTED},
    ),
}
ITEMS = [
    PlanItem("service", "nginx"),
    *(
        PlanItem("state", name)
        for name in (
            "accounts",
            "crontab",
            "sysctl net.ipv4.ip_forward",
            "nft",
            "iptables",
            "network",
            "mounts",
            "packages",
            "git /",
            "docker none",
            "podman none",
        )
    ),
]


@pytest.mark.guarantee("G-STATE-BACK")
@pytest.mark.parametrize("name", STORIES)
def test_state_goes_back_to_equal_and_forth_again(name, tmp_path):
    change, surroundings = STORIES[name]
    if is_root():
        # A file system in memory that is made anew is empty, and that is no success.
        went_back(story(tmp_path, change, **surroundings), forth="failed" if "mounts" in name else "succeeded")
    else:
        every_read_answers_or_says_why()


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.object)
def test_every_read_is_judged_a_read_and_answers_or_says_why(item):
    every_read_answers_or_says_why(item)


def every_read_answers_or_says_why(*items):
    kept, missed = states.outputs(items or ITEMS, execution.open_guard())
    assert len(kept) + len(missed) == len(items or ITEMS)
    assert all(missed.values())


@pytest.mark.guarantee("G-STATE-BACK")
def test_account_that_went_comes_back_with_its_home_and_without_its_password(tmp_path):
    if not is_root():
        every_read_answers_or_says_why(PlanItem("state", "accounts"))
        return
    before = (
        "useradd -m -G users,adm -c 'B O' bob; echo bob:pw | chpasswd; echo hi > /home/bob/x; chown bob: /home/bob/x"
    )
    told = story(tmp_path, "userdel -r bob 2>/dev/null", place=ETC, before=before)
    was, now = told["before"]["accounts"]["users"]["bob"], told["now"]["accounts"]["users"]["bob"]
    assert (was.pop("password"), now.pop("password")) == ("set", "locked")
    assert now == was
    assert told["now"]["accounts"]["groups"] == told["before"]["accounts"]["groups"]
    assert told["results"]["/home/bob/x"][0] == "done"
    assert told["results"]["accounts"][0] == "partial"
    assert "the password of bob" in told["results"]["accounts"][1]
    assert told["status"] == "failed"


@pytest.mark.guarantee("G-STATE-BACK")
def test_ranges_of_numbers_that_an_account_may_give_go_back(tmp_path):
    if not is_root():
        every_read_answers_or_says_why(PlanItem("state", "accounts"))
        return
    told = story(
        tmp_path, "usermod -v 900000-900009 bob", place=ETC, before="useradd bob", look="cat /etc/subuid /etc/subgid"
    )
    assert "bob:900000:10" in told["looked"][1]
    assert told["looked"][2] == told["looked"][0]
    assert told["status"] == "succeeded"


def test_what_was_in_memory_is_said_to_be_gone(tmp_path):
    if not is_root():
        every_read_answers_or_says_why(PlanItem("state", "mounts"))
        return
    told = story(tmp_path, "umount /mnt/a", place=MOUNTED)
    assert told["now"] == told["before"]
    assert told["results"]["mounts"] == ["partial", "what was in the tmpfs on /mnt/a does not come back"]


def test_state_that_somebody_changed_since_is_a_conflict_and_is_left_alone(tmp_path):
    if not is_root():
        every_read_answers_or_says_why(PlanItem("state", "iptables"))
        return
    told = story(tmp_path, "iptables -A INPUT -j DROP", disturb="iptables -A INPUT -j ACCEPT")
    assert told["steps"]["iptables"][:2] == ["changed", []]
    assert told["status"] == "refused"
    assert told["now"] != told["before"]
    assert told["now"] != told["after"]


MADE = (
    "git init -q -b main r; cd r; git config user.email a@b; git config user.name n; echo 1 > f; git add f; "
    "git commit -q -m 1; git branch side; git branch own/one; git tag t; echo 2 > f; git commit -q -a -m 2"
)
GIT_CHANGES = {
    "branches-and-tags": "{git} branch -q -D side; {git} checkout -q -b other; {git} commit -q --allow-empty -m 3; "
    "{git} tag v2",
    "detached": "{git} checkout -q --detach HEAD~1",
    "another-branch": "{git} checkout -q side",
    "hard-reset": "{git} reset -q --hard HEAD~1",
    "commit": "{git} commit -q --allow-empty -m 3",
    "a-branch-in-the-place-of-a-folder": "{git} branch a/b side && {git} branch -q -D side && {git} branch side/x a/b",
    "a-folder-in-the-place-of-the-branch-in-use": "{git} branch -m main main/new",
    "a-branch-for-the-folder-of-branches": "{git} branch -m own/one own",
    "a-branch-for-the-folder-of-branches-in-use": "{git} checkout -q own/one; {git} branch -m own",
}


@pytest.mark.parametrize("name", GIT_CHANGES)
def test_refs_of_a_repository_go_back_and_its_files_with_them(name, tmp_path):
    change = GIT_CHANGES[name].format(git=f"git -C {tmp_path}/r")
    told = story(tmp_path, change, before=f"cd {tmp_path}; {MADE}", alone=is_root())
    assert told["plan"] == [["state", f"git {tmp_path}/r"]]
    went_back(told)


def test_what_was_staged_before_a_commit_is_staged_again(tmp_path):
    change = f"git -C {tmp_path}/r commit -q -m 3"
    told = story(tmp_path, change, before=f"cd {tmp_path}; {MADE}; echo 3 > f; git add f", alone=is_root())
    assert told["now"] == told["before"]
    assert (tmp_path / "r/f").read_text() == "3\n"


@pytest.mark.guarantee("G-STATE-BACK")
def test_no_branch_is_lost_when_the_one_in_its_place_cannot_be_made(tmp_path):
    git = f"git -C {tmp_path}/r"
    told = story(
        tmp_path,
        f"{git} checkout -q own/one; {git} branch -m own; {git} branch -q -D side",
        before=f"cd {tmp_path}; {MADE}",
        disturb=f"touch {tmp_path}/r/.git/refs/heads/side.lock",
        look=f"{git} for-each-ref; {git} symbolic-ref HEAD",
        alone=is_root(),
    )
    (text,) = (text for _, text in told["results"].values())
    assert told["status"] == "failed"
    assert "what should come after it was not run" in text
    assert told["now"] == told["after"]
    assert told["looked"][2] == told["looked"][1]


UNSEEN = {
    "iptables-comment-that-is-no-text": (
        "iptables -P INPUT DROP; iptables -t mangle -A INPUT -j DROP; iptables -N new; "
        "iptables -A new -m comment --comment $'caf\\xe9' -j DROP",
        "iptables -A INPUT -p tcp --dport 22 -j ACCEPT",
    ),
    "iptables-comment-of-two-lines": (
        "ip6tables -A INPUT -m comment --comment $'a\\nb' -j DROP",
        "iptables -t nat -A POSTROUTING -j MASQUERADE",
    ),
    "nft-comment-that-is-no-text": ("nft add rule inet x in accept comment $'\"caf\\xe9\"'", RULES),
    "crontab": ("printf '# caf\\xe9\\n' | crontab -", "echo '* * * * * x' | crontab -"),
}


@pytest.mark.guarantee("G-STATE-BACK")
@pytest.mark.parametrize("name", UNSEEN)
def test_what_cannot_be_read_now_is_put_back_as_a_whole(name, tmp_path):
    change, before = UNSEEN[name]
    if not is_root():
        every_read_answers_or_says_why()
        return
    told = story(tmp_path, change, before=before, place=SPOOL)
    family = name.partition("-")[0]
    assert isinstance(told["after"][family], str)
    assert told["now"] == told["before"], told["results"]
    assert told["results"][family] == ["done", ""]
    assert told["status"] == "succeeded"


def test_a_key_of_the_kernel_goes_back_unseen_and_all_of_them_do_not():
    family = FAMILIES["sysctl"]
    before = {"values": {"kernel.domainname": "here"}}
    back = family.whole("kernel.domainname", before)
    assert [one.command for one in back.commands] == ["sysctl -w 'kernel.domainname=here'"]
    assert family.whole("", before).lost


@pytest.mark.guarantee("G-STATE-BACK")
def test_a_way_back_needs_no_space(tmp_path):
    if not is_root():
        every_read_answers_or_says_why(PlanItem("state", "iptables"))
        return
    full = "mount -t tmpfs -o size=1m none /mnt; for at in /run /dev/shm; do mount --bind /mnt $at; done"
    told = story(tmp_path, "iptables -A INPUT -j DROP", place=full, disturb="cat /dev/zero > /mnt/x || true")
    assert told["results"] == {"iptables": ["done", ""]}
    assert told["now"] == told["before"]
