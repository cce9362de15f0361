"""Which states a command changes, from its text alone."""

from __future__ import annotations

import json

import pytest

import core
from guard.hands.services import FAMILIES, Said, family_of

ITEMS = {
    "systemctl stop nginx": ["service nginx"],
    "systemctl disable --now nginx redis": ["service nginx", "service redis"],
    "sudo systemctl mask -- nginx": ["service nginx"],
    "systemctl --user stop x": [],
    "systemctl -H web-1 stop x": [],
    "systemctl edit nginx": [
        "service nginx",
        "file /etc/systemd/system/nginx.service.d",
        "file /etc/systemd/system.control/nginx.service.d",
        "file /etc/systemd/system/nginx.service",
    ],
    "systemctl set-property --runtime nginx MemoryMax=1G": [
        "service nginx",
        "file /run/systemd/system/nginx.service.d",
        "file /run/systemd/system.control/nginx.service.d",
        "file /run/systemd/system/nginx.service",
    ],
    "systemctl isolate rescue.target": ["state systemd running"],
    "systemctl set-default multi-user.target": ["state systemd links"],
    "systemctl --root /mnt set-default multi-user.target": [],
    "service nginx stop": ["service nginx"],
    "useradd -m bob": ["state accounts", "file /home/bob", "file /var/mail/bob"],
    "useradd -m -d /srv/bob bob": ["state accounts", "file /srv/bob", "file /var/mail/bob"],
    "usermod -aG docker bob": ["state accounts"],
    "usermod -p x bob": [],
    "passwd bob": [],
    "passwd -l bob": ["state accounts"],
    "passwd -e bob": ["state accounts", "state expiry bob"],
    "chage -E 0 root": ["state accounts", "state expiry root"],
    "chage bob -d 2026-01-01": ["state accounts", "state expiry bob"],
    "chage -E0 -M90 -- bob": ["state accounts", "state expiry bob"],
    "chage --expiredate 0 bob": ["state accounts", "state expiry bob"],
    "chage --expiredate=0 bob": ["state accounts", "state expiry bob"],
    "chage -E 0 $NAME": [],
    "usermod -e 1 root": ["state accounts", "state expiry root"],
    "usermod -Le 1 root": ["state accounts", "state expiry root"],
    "usermod --expiredate 1 --append -G adm bob": ["state accounts", "state expiry bob"],
    "usermod -v 100-200 bob": ["state accounts", "file /etc/subuid", "file /etc/subgid"],
    "userdel bob": ["state accounts", "state expiry bob", "file /etc/subuid", "file /etc/subgid"],
    "gpasswd -d bob adm": ["state accounts"],
    "gpasswd -M a,b adm": ["state accounts"],
    "gpasswd -A bob adm": [],
    "gpasswd -A bob -M a adm": [],
    "gpasswd adm": [],
    "gpasswd -r adm": [],
    "groupmod -p x adm": [],
    "vipw -s": [],
    "echo a:b | chpasswd": [],
    "crontab -u www-data f": ["state crontab www-data"],
    "crontab f": ["state crontab"],
    "sysctl -w net.ipv4.ip_forward=1 a.b=1": ["state sysctl net.ipv4.ip_forward", "state sysctl a.b"],
    "sysctl net/ipv4/conf/eth0.100/forwarding=1": ["state sysctl net.ipv4.conf.eth0/100.forwarding"],
    "sysctl --system": ["state sysctl"],
    "nft flush ruleset": ["state nft", "state iptables"],
    "ip6tables -F": ["state iptables"],
    "ufw enable": ["state nft", "state iptables", "file /etc/ufw"],
    "ip route del default": ["state network"],
    "ip -4 r del default": ["state network"],
    "ip link set eth0 down": ["state network"],
    "ip l set dev eth0 arp off txqueuelen 5": ["state network"],
    "ip link set eth0 name eth1": [],
    "ip link set eth0 netns 1": [],
    "ip link set eth0 mtu 1400 xdp off": [],
    "ip link set group default down": [],
    "ip xfrm policy flush": [],
    "ip neigh flush all": [],
    "ip -b file": [],
    "ip netns add x": [],
    "ip tunnel add t mode gre": [],
    "ip nexthop del id 1": [],
    "ip rule del pref 7": ["state network"],
    "ip a add 10.0.0.1/8 dev lo": ["state network"],
    "ip -n blue route del default": [],
    "umount /mnt": ["state mounts"],
    "apt-get install -y jq": ["state packages jq"],
    "apt-get -o a=b install -y jq=1.6 vim- g++ tool/stable ./own_1.0_all.deb": [
        "state packages jq vim g++ tool own"
    ],
    "dpkg -P jq": ["state packages jq"],
    "apt-mark unhold jq && apt-get install -y 'nginx*' jq vim": ["state packages jq vim"],
    "apt-get upgrade -y": ["state packages"],
    "git -C /srv/app tag v2": ["state git /srv/app"],
    "git tag v2": ["state git ."],
    "cd /srv && git tag v2": [],
    "docker stop -t 5 web": ["state docker web"],
    "kubectl -n shop scale deploy/web statefulset/db --replicas 3 --context=blue": [
        "state kubectl replicas deploy/web --namespace=shop --context=blue",
        "state kubectl replicas statefulset/db --namespace=shop --context=blue",
    ],
    "kubectl scale deployment web --replicas=3": ["state kubectl replicas deployment/web"],
    "kubectl --kubeconfig /k set image deployment web app=a:2": [
        "state kubectl images deployment/web --kubeconfig=/k"
    ],
    "kubectl cordon n1": ["state kubectl unschedulable node/n1"],
    "kubectl uncordon n1": ["state kubectl unschedulable node/n1"],
    "kubectl label --overwrite pods a b tier=x old-": [
        "state kubectl labels pods/a tier old",
        "state kubectl labels pods/b tier old",
    ],
    "kubectl annotate pod/a example.com/by=x": ["state kubectl annotations pod/a example.com/by"],
    "kubectl annotate secret x by=x": ["state kubectl annotations secret/x by"],
    "kubectl label pods --all tier=x": [],
    "kubectl label pods -l a=b tier=x": [],
    "kubectl scale -f x.yml --replicas=3": [],
    "kubectl scale deploy/$NAME --replicas=3": [],
    "kubectl scale deploy web --replicas=$N": [],
    "kubectl --kubeconfig k scale deploy/web --replicas=3": [],
    "kubectl --token x scale deploy/web --replicas=3": [],
    "KUBECONFIG=/k kubectl scale deploy/web --replicas=3": [],
    "sudo -u bob kubectl scale deploy/web --replicas=3": [],
    "kubectl patch deployment web -p {}": ["state kubectl object deployment/web"],
    "kubectl rollout undo deployment/web --to-revision=2": ["state kubectl object deployment/web"],
    "kubectl delete svc/web cm/web -n shop": [
        "state kubectl object svc/web --namespace=shop",
        "state kubectl object cm/web --namespace=shop",
    ],
    "kubectl delete pod web": [],
    "kubectl delete secret web": [],
    "kubectl delete namespace web": [],
    "kubectl delete deploy --all": [],
    "kubectl get deploy/web": [],
    "ssh web-1 sysctl -w a.b=1": [],
    "docker exec web sysctl -w a.b=1": [],
    "systemctl status nginx": [],
    "nft list ruleset": [],
    "ip addr show": [],
    "mount": [],
}  # fmt: skip
CUTTING = {
    "nft flush ruleset": True,
    "systemctl restart ssh": True,
    "systemctl stop nginx": False,
    "ip link set eth0 down": True,
    "ufw enable": True,
    "echo x >> /etc/ssh/sshd_config": True,
    "echo x > /etc/ssh/sshd_config.d/a.conf": True,
    "echo x > /etc/motd": False,
    "iptables -S": False,
    "useradd bob": False,
}


@pytest.mark.parametrize("command", ITEMS)
def test_states_of_a_command_are_in_its_plan(command):
    plan = [f"{item.kind} {item.object}" for item in core.check(command, cwd="/x").snapshot_plan]
    assert [item for item in plan if item.startswith(("service ", "state ")) or item in ITEMS[command]] == ITEMS[
        command
    ]


@pytest.mark.parametrize("command", CUTTING)
def test_what_can_cut_the_connection_is_told(command):
    assert core.check(command, cwd="/x").cuts_off is CUTTING[command]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=lambda family: family.name)
def test_every_read_of_every_family_is_r0_and_needs_no_shell(family):
    for key in ("", "a b;c", "net.ipv4.ip_forward"):
        for read in family.reads(key):
            assert core.check(read.command, cwd="/").level.name == "R0", read.command


@pytest.mark.parametrize("program", ["docker", "podman"])
def test_container_of_the_documented_shape_goes_back_and_is_said_to_be_unproven(program):
    # docker-inspect(1), `.State`
    shape = {"Status": "running", "Running": True, "Paused": False, "Restarting": False, "Pid": 7, "ExitCode": 0}
    family, key = family_of("state", f"{program} web")
    before = family.parse(key, {"state": Said(0, json.dumps(shape))})
    now = family.parse(key, {"state": Said(0, json.dumps({**shape, "Status": "exited", "Running": False}))})
    paused = family.parse(key, {"state": Said(0, json.dumps({**shape, "Status": "paused", "Paused": True}))})
    assert [one.command for one in family.way_back(key, before, now).commands] == [f"{program} start web"]
    assert [one.command for one in family.way_back(key, before, paused).commands] == [f"{program} unpause web"]
    assert [one.command for one in family.way_back(key, paused, now).commands] == [
        f"{program} start web",
        f"{program} pause web",
    ]
    assert not family.proven


def test_words_of_a_state_never_become_shell():
    back = FAMILIES["accounts"].way_back(
        "",
        {"users": {"a": {"uid": 1, "gid": 1, "comment": "$(reboot)", "home": "/h", "shell": "/s"}}, "groups": {}},
        {"users": {"a": {"uid": 1, "gid": 1, "comment": "x", "home": "/h", "shell": "/s"}}, "groups": {}},
    )
    assert [one.command for one in back.commands] == ["usermod -c '$(reboot)' -- a"]
