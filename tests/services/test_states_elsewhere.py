"""What another root, namespace, manager or user has is never said to be saved from here."""

from __future__ import annotations

import pytest

import core
from guard.hands.services import FAMILIES, Said, Unreadable

ITEMS = {
    "systemctl -Mbox stop x": [],
    "systemctl --mach box stop x": [],
    "systemctl --us stop x": [],
    "chroot /mnt useradd x": [],
    "chroot /mnt ip link set eth0 down": ["state network"],
    "useradd -R /mnt x": [],
    "userdel --root=/mnt x": [],
    "gpasswd -Q /mnt -d a b": [],
    "gpasswd -d bob staff": ["state accounts"],
    "dpkg --root=/mnt -r x": [],
    "apt-get -o Dir=/mnt remove x": [],
    "apt-get -o Dpkg::Options::=--force-confold install jq": ["state packages jq"],
    "umount -N 55 /x": [],
    "unshare -n ip link del eth0": [],
    "unshare -m ip link del eth0": ["state network"],
    "nsenter -t 55 -m umount /x": [],
    "nsenter -t 55 -n nft flush ruleset": [],
    "nsenter -t 1 -n ip link del eth0": ["state network"],
    "ip netns exec blue ip link del eth0": [],
    "ip netns exec blue sysctl -w net.ipv4.ip_forward=1": [],
    "ip -4 -o -d -n blue route del default": [],
    "crontab -ubob -r": ["state crontab bob"],
    "sudo -u bob crontab -r": ["state crontab bob"],
    "sudo crontab -r": ["state crontab root"],
    "sudo -n crontab -r": [],
    "sudo -u bob crontab -u carol -r": ["state crontab carol"],
    "su bob -c 'crontab -r'": ["state crontab bob"],
    "runuser -u bob -- crontab -r": ["state crontab bob"],
    "sudo -u bob podman stop web": [],
    "sudo crontab -r; crontab f": ["state crontab root", "state crontab"],
    "git -C /x -C y tag v2": ["state git /x/y"],
    "git -c a.b=c -C /x tag v2": ["state git /x"],
    "git -c a.b=c tag v2": ["state git ."],
    "env -C /x git tag v2": [],
    "env -C /x git -C /y tag v2": ["state git /y"],
    "sudo -D /x git tag v2": [],
    "DOCKER_HOST=tcp://x docker stop c": [],
    "export DOCKER_HOST=x; docker stop c": [],
    "sudo DOCKER_HOST=x docker stop c": [],
    "CONTAINER_HOST=x podman stop c": [],
    "GIT_DIR=/x/.git git tag v2": [],
    "env GIT_WORK_TREE=/y git checkout x": [],
    "TZ=UTC git tag v2": ["state git ."],
}


@pytest.mark.parametrize("command", ITEMS)
def test_a_state_elsewhere_is_not_in_the_plan_and_one_here_goes_by_its_name(command):
    plan = core.check(command, cwd="/x").snapshot_plan
    assert [f"{one.kind} {one.object}" for one in plan if one.kind in ("service", "state")] == ITEMS[command]


@pytest.mark.parametrize("unit", ["ssh*", "ng?nx", "[a-z]*.service"])
def test_one_state_never_stands_for_several_units(unit):
    said = Said(0, "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n")
    with pytest.raises(Unreadable, match="several units"):
        FAMILIES["service"].parse(unit, {"unit": said})


@pytest.mark.parametrize(
    ("pattern", "cuts"),
    [("ssh*", True), ("s*", True), ("*", True), ("[s]sh", True), ("net?ork", True), ("nginx*", False), ("sx", False)],
)
def test_a_pattern_that_may_name_the_ssh_server_can_cut_the_connection(pattern, cuts):
    assert core.check(f"systemctl stop '{pattern}'", cwd="/x").cuts_off is cuts
