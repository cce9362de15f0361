"""The nearest read to a command that changes something: what to type instead, to look before one leaps.

Only texts that were judged R0 are ever offered.
"""

from guard.judge.levels import R0
from guard.judge.program import lookup
from guard.quoting import joined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from guard.judge.classify import Judged
    from guard.judge.program import Ran

MOST_PARTS = 40
_LOOKS = {
    "systemctl": "systemctl status {}", "service": "service {0} status", "rm": "ls -ld -- {}", "rmdir": "ls -ld -- {}",
    "mv": "ls -ld -- {}", "cp": "ls -ld -- {}", "chmod": "stat -- {}", "chown": "stat -- {}", "chgrp": "stat -- {}",
    "truncate": "stat -- {}", "touch": "stat -- {}", "shred": "stat -- {}", "mkdir": "ls -ld -- {}",
    "ln": "ls -ld -- {}",
    "setfacl": "getfacl -- {}", "chattr": "lsattr -d -- {}", "tee": "ls -ld -- {}", "kill": "ps -fp {}",
    "pkill": "pgrep -a {}", "killall": "pgrep -a {}", "apt": "apt-cache policy {}", "apt-get": "apt-cache policy {}",
    "dpkg": "dpkg -l", "rpm": "rpm -qa", "dnf": "dnf list --installed", "yum": "rpm -qa", "snap": "snap list",
    "apk": "apk info", "pacman": "pacman -Q", "brew": "brew list", "pip": "pip list", "pip3": "pip3 list",
    "npm": "npm ls", "gem": "gem list", "docker": "docker ps -a", "podman": "podman ps -a",
    "iptables": "iptables -S", "ip6tables": "ip6tables -S", "iptables-restore": "iptables -S",
    "nft": "nft list ruleset",
    "ufw": "ufw status", "firewall-cmd": "firewall-cmd --list-all", "ip": "ip addr", "mount": "findmnt",
    "umount": "findmnt", "mkfs": "lsblk -f", "dd": "lsblk -f", "wipefs": "lsblk -f", "fdisk": "lsblk -f",
    "parted": "lsblk -f", "swapoff": "swapon --show", "swapon": "swapon --show", "lvremove": "lvs",
    "vgremove": "vgs", "pvremove": "pvs", "zfs": "zfs list", "zpool": "zpool status", "crontab": "crontab -l",
    "useradd": "getent passwd {}", "userdel": "getent passwd {}", "usermod": "getent passwd {}",
    "adduser": "getent passwd {}",
    "groupadd": "getent group {}", "groupdel": "getent group {}", "passwd": "getent passwd {}", "modprobe": "lsmod",
    "rmmod": "lsmod",
    "terraform": "terraform plan", "tofu": "tofu plan", "helm": "helm list", "git": "git status", "reboot": "uptime",
    "shutdown": "uptime", "poweroff": "uptime", "halt": "uptime", "hostnamectl": "hostnamectl status",
    "timedatectl": "timedatectl status", "unzip": "unzip -l {0}",
}  # fmt: skip
_VERBS = {
    "git reset": "git diff HEAD", "git clean": "git clean -n", "git push": "git log --oneline @{{u}}..",
    "git checkout": "git diff", "git restore": "git diff", "git branch": "git branch -v", "git stash": "git stash list",
    "git commit": "git status", "git rebase": "git log --oneline -n 20", "git tag": "git tag -l",
    "docker rm": "docker ps -a", "docker rmi": "docker images", "docker volume": "docker volume ls",
    "docker system": "docker system df", "docker network": "docker network ls", "docker image": "docker images",
    "docker compose": "docker compose ps", "helm upgrade": "helm status {0}", "helm uninstall": "helm status {0}",
    "helm rollback": "helm history {0}", "systemctl daemon-reload": "systemctl --failed",
    "ip route": "ip route", "ip link": "ip link", "ip addr": "ip addr", "ip address": "ip addr", "ip rule": "ip rule",
    "zfs destroy": "zfs list {}", "zpool destroy": "zpool status {}", "aws s3": "aws s3 ls",
    "terraform state": "terraform state list",
}  # fmt: skip
"""`{}`: the operands behind the verb; `{0}`: the first of them."""
_KUBE = frozenset(("kubectl", "oc", "k", "kubecolor"))


def nearest(assessment: "Judged") -> str:
    """A command that is R0 and shows what the worst part would act on; "" when none is known."""
    from guard.judge.classify import check

    if assessment.level == R0:
        return ""
    worst = max((ran.level for ran in assessment.ran), default=R0)
    tried: set[str] = set()
    for ran in assessment.ran[:MOST_PARTS]:
        if ran.level < worst or ran.away or lookup(ran.name) is None:
            continue
        for text in _candidates(ran):
            if text not in tried:
                tried.add(text)
                if check(text).level == R0:
                    return text
    return ""


def _candidates(ran: "Ran") -> "Iterator[str]":
    values = [word.value for word in ran.words]
    if any(value is None for value in values):
        return
    argv = [value for value in values if value is not None]
    if worst_options := [at for at, value in enumerate(argv) if at and value in _ACTING]:
        yield joined([value for at, value in enumerate(argv) if at not in worst_options])
    if ran.name in _KUBE:
        yield from _kube(argv)
    if ran.name == "terraform" and "-auto-approve" in argv:
        yield "terraform plan"
    operands = [value for value in argv[1:] if not value.startswith("-") and not _is_mode(ran.name, value)]
    if operands:
        shape = _VERBS.get(f"{ran.name} {operands[0]}")
        if shape is not None:
            yield from _filled(shape, operands[1:])
    shape = _LOOKS.get(ran.name) or _LOOKS.get(ran.name.partition(".")[0])
    if shape is not None:
        verbs = ran.name in ("systemctl", "apt", "apt-get", "snap", "dnf")
        yield from _filled(shape, operands[1:] if verbs else operands)


_ACTING = frozenset(("-i", "--in-place", "-delete", "-w", "--write", "-n", "-o", "--fix", "-f", "--force"))


def _is_mode(name: str, value: str) -> bool:
    """The first operand of chmod and its kin, and a signal of kill, are no objects."""
    if name in ("chmod", "chown", "chgrp", "setfacl", "chattr"):
        return value.isdigit() or any(char in value for char in "+=:") or (name != "chmod" and "/" not in value)
    return name in ("dd", "service") and "=" in value


def _filled(shape: str, operands: "list[str]") -> "Iterator[str]":
    if "{0}" in shape:
        if operands:
            yield shape.format(joined(operands[:1]))
    elif "{}" in shape:
        if operands:
            yield shape.format(joined(operands))
    else:
        yield shape.replace("{{", "{").replace("}}", "}")


def _kube(argv: "list[str]") -> "Iterator[str]":
    """`delete pod x` → `get pod x`; `apply -f m` → `diff`'s place is taken by `get -f m`, which reads only."""
    for verb in ("delete", "scale", "edit", "patch", "label", "annotate", "replace", "apply", "create", "set"):
        if verb in argv:
            at = argv.index(verb)
            rest = [
                value
                for value in argv[at + 1 :]
                if not value.startswith(
                    ("--replicas", "--force", "--grace", "--now", "--all", "-p", "--patch", "--wait")
                )
            ]
            yield joined([*argv[:at], "get", *rest])
            return
    if "rollout" in argv:
        at = argv.index("rollout")
        yield joined([*argv[:at], "rollout", "status", *argv[at + 2 :]])
    elif any(verb in argv for verb in ("drain", "cordon", "uncordon", "taint")):
        yield "kubectl get nodes"
