"""What is saved before owner, mode, attributes, times or flags of files change, and whether all of it comes back."""

from __future__ import annotations

import pytest

from guard.judge.classify import check
from guard.types import Level

CWD = "/srv/w"
WHOLE = {
    "chmod 600 f": ["meta /srv/w/f"],
    "chmod 600 f /etc/g": ["meta /srv/w/f", "meta /etc/g"],
    "chmod -x f": ["meta /srv/w/f"],
    "chmod -Rw f": ["meta-tree /srv/w/f"],
    "chmod f=x f": ["meta /srv/w/f"],
    "chmod 600 f -R": ["meta-tree /srv/w/f"],
    "chmod --recursive go-w d": ["meta-tree /srv/w/d"],
    "chmod --reference=r a b": ["meta /srv/w/a", "meta /srv/w/b"],
    "chmod --ref=r a": ["meta /srv/w/a"],
    "chmod 600 -- -R": ["meta /srv/w/-R"],
    "chmod 600 {a,b}": ["meta /srv/w/a", "meta /srv/w/b"],
    "chmod 600 ./*.conf": ["meta-glob /srv/w/*.conf"],
    "chmod -R 600 /srv/x*": ["meta-tree-glob /srv/x*"],
    'D=/srv; chmod 600 "$D"/*.conf': ["meta-glob /srv/*.conf"],
    "for f in a b; do chmod 600 $f; done": ["meta /srv/w/a", "meta /srv/w/b"],
    "cd /tmp && chmod 600 f": ["meta /srv/w/f", "meta /tmp/f"],
    "sudo chmod 600 f": ["meta /srv/w/f"],
    "bash -c 'chmod 600 f'": ["meta /srv/w/f"],
    "nice chmod 600 f && chown a:b g": ["meta /srv/w/f", "meta /srv/w/g"],
    "chown a f": ["meta /srv/w/f"],
    "chown -Rh a:b d": ["meta-tree /srv/w/d"],
    "chown --from=a b f": ["meta /srv/w/f"],
    "chown --reference r f": ["meta /srv/w/f"],
    "chgrp -R g /srv": ["meta-tree /srv"],
    "setfacl -R -m u:x:r /srv": ["meta-tree /srv"],
    "setfacl -b f": ["meta /srv/w/f"],
    "setfattr -n user.x -v y f": ["meta /srv/w/f"],
    "setfattr -x user.x f": ["meta /srv/w/f"],
    "setcap cap_net_raw+ep /opt/p": ["meta /opt/p"],
    "setcap cap_net_raw+ep /opt/p -r /opt/q": ["meta /opt/p", "meta /opt/q"],
    "chattr +i f": ["flags /srv/w/f"],
    "chattr -R -a d": ["flags-tree /srv/w/d"],
    "chcon -t etc_t f": ["meta /srv/w/f"],
    "chcon --reference r f": ["meta /srv/w/f"],
    "restorecon -Rv d": ["meta-tree /srv/w/d"],
    "find d -type f -exec chmod 644 {} +": ["meta-tree /srv/w/d"],
    "find -type d -exec chmod 755 {} \\;": ["meta-tree /srv/w"],
    "find d /e -name x -execdir chown a {} +": ["meta-tree-links /srv/w/d", "meta-tree-links /e"],
    "find ./*.d -type f -exec chattr +i {} +": ["flags-tree-glob /srv/w/*.d"],
    "echo a b | xargs chmod 600": ["meta /srv/w/a", "meta /srv/w/b"],
    "printf 'a b\\nc\\n' | xargs -I% chmod 600 %": ["meta /srv/w/a b", "meta /srv/w/c"],
    "touch f": ["times /srv/w/f"],
    "touch *.log": ["times-glob /srv/w/*.log"],
    "touch -d yesterday f": ["times /srv/w/f"],
}
PARTIAL = {
    "chmod 600 a $F": ["meta /srv/w/a"],
    "chmod 600 *.conf": ["meta-glob /srv/w/*.conf"],
    "chmod -RL 600 d": ["meta-tree /srv/w/d"],
    "chown -R -L a d": ["meta-tree /srv/w/d"],
    "chmod 600 f; systemctl mask x": None,
    "chmod 600 f; ./own": ["meta /srv/w/f"],
    "chroot /mnt chmod 600 /f": ["meta /f"],
    "chattr -p 7 +i f": None,
    "chattr +e f": ["flags /srv/w/f"],
    "find d -exec chmod -R 700 {} +": ["meta-tree-links /srv/w/d"],
    "chmod --unknown 600 f": ["meta /srv/w/f"],
    "chroot /mnt touch /f": ["times /f"],
}
NONE = [
    "chmod 600 $F",
    "find -L d -exec chmod 600 {} +",
    "find d -exec chmod 600 x{} +",
    "find $D -exec chmod 600 {} +",
    "find d | xargs chmod 600",
    "echo a -R | xargs chmod 600",
    "echo '\"a b\" c' | xargs chmod 600",
    "echo a | xargs -d, chmod 600",
    "setfacl --restore=acls",
    "setcap -",
    "ssh h chmod 600 /f",
    "docker exec c chown a /f",
    "kubectl exec p -- chmod 600 /f",
]


def plan_of(command):
    found = check(command, cwd=CWD)
    return found, [f"{item.kind} {item.object}" for item in found.snapshot_plan if item.kind != "service"]


@pytest.mark.parametrize("command", WHOLE)
def test_everything_that_changes_is_saved(command):
    found, plan = plan_of(command)
    assert (plan, found.reversible) == (WHOLE[command], "yes")
    assert found.level == (Level.R1 if "touch" in command else Level.R2)


@pytest.mark.parametrize("command", PARTIAL)
def test_what_is_not_wholly_known_comes_back_in_part(command):
    found, plan = plan_of(command)
    assert found.reversible == "partial"
    assert PARTIAL[command] in (None, plan)


@pytest.mark.parametrize("command", NONE)
def test_what_is_told_nowhere_or_lies_elsewhere_is_not_said_to_come_back(command):
    found, plan = plan_of(command)
    assert (plan, found.reversible, found.level) == ([], "no", Level.R2)


@pytest.mark.parametrize("command", ["ssh h touch /f", "docker exec c rm /f", "kubectl exec p -- tee /f"])
def test_nothing_here_is_saved_for_a_change_elsewhere(command):
    found, plan = plan_of(command)
    assert plan == [] and found.reversible != "yes"


def test_without_a_folder_a_relative_name_is_not_saved():
    found = check("chmod 600 f")
    assert (found.snapshot_plan, found.reversible) == ((), "no")


def test_the_effect_names_the_place():
    assert [(effect.kind, effect.object) for effect in check("chmod 600 f", cwd=CWD).effects] == [
        ("privilege", "/srv/w/f")
    ]
