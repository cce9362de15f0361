"""Units with a real systemd: change, look, roll back, equal; with the product's own programs on a terminal."""

from __future__ import annotations

import pytest

from tests.slow.box import Box

WANTED = "[Install]\nWantedBy=multi-user.target\n"
SLEEPS = "[Service]\nExecStart=/bin/sleep infinity\n"
UNITS = {
    "probe.service": SLEEPS + WANTED,
    "other.service": SLEEPS + WANTED,
    "plain.service": SLEEPS,
    "once.service": f"[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n{WANTED}",
    "also.service": f"{SLEEPS}{WANTED}Also=other.service\nAlias=named.service\n",
    "many@.service": f"{SLEEPS}{WANTED}DefaultInstance=one\n",
    "tick.timer": "[Timer]\nOnActiveSec=1d\n[Install]\nWantedBy=timers.target\n",
    "tick.service": "[Service]\nExecStart=/bin/true\n",
    "door.socket": "[Socket]\nListenStream=/run/door\n[Install]\nWantedBy=sockets.target\n",
    "door.service": SLEEPS,
    "quiet.target": "[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\n",
}
FOLDER = "/usr/lib/systemd/system"
PREPARE = "\n".join(
    [
        *(f"cat > .{FOLDER}/{name} <<'END'\n{text}END" for name, text in UNITS.items()),
        f"cat > srv/probe/linked.service <<'END'\n{SLEEPS}{WANTED}END",
        "ln -s ../plain.service etc/systemd/system/multi-user.target.wants/hand-made.service",
    ]
)
NAMES = "probe other plain once also many@one many@two tick.timer door.socket door.service"
FIRST = f"""
systemctl stop {NAMES}
rm -rf /etc/systemd/system /run/systemd/system/* /etc/systemd/system.control /run/systemd/system.control
cp -a /srv/pristine /etc/systemd/system
systemctl daemon-reload; systemctl reset-failed; systemctl start multi-user.target ssh probe other once
"""
LOOK = (
    f"systemctl show -p Id,ActiveState,UnitFileState,DropInPaths,FragmentPath,NeedDaemonReload,MemoryMax {NAMES}; "
    "for top in /etc/systemd/system /etc/systemd/system.control /run/systemd/system /run/systemd/system.control; do "
    r"[ -d $top ] && find $top ! -type d -printf '%p %l\n' | sort; done; "
    "grep -rs . /etc/systemd/system/*.d /etc/systemd/system.control /run/systemd/system.control || true; "
    "systemctl get-default; "
    "systemctl list-units --plain --no-legend --state=active --type=service,socket,timer,target | cut -d' ' -f1 | sort"
)
CHANGES = {
    "stop": "systemctl stop probe",
    "stop several": "systemctl stop probe other.service",
    "start": "systemctl start plain",
    "enable": "systemctl enable probe",
    "enable now": "systemctl enable --now plain tick.timer",
    "enable for this boot": "systemctl enable --runtime probe",
    "enable with others": "systemctl enable also",
    "disable with others": "systemctl disable --now also",
    "disable": "systemctl disable probe",
    "disable for this boot": "systemctl disable --runtime probe",
    "unmask": "systemctl unmask probe",
    "reenable": "systemctl reenable probe",
    "enable an instance": "systemctl enable --now many@one",
    "mask": "systemctl mask probe",
    "mask now": "systemctl mask --now probe",
    "mask for this boot": "systemctl mask --runtime --now probe",
    "mask a static one": "systemctl mask plain",
    "timer": "systemctl enable --now tick.timer",
    "socket": "systemctl enable --now door.socket",
    "property": "systemctl set-property probe MemoryMax=50M",
    "property for this boot": "systemctl set-property --runtime probe MemoryMax=50M",
    "drop-in": "mkdir -p /etc/systemd/system/probe.service.d && "
    "echo '[Service]' > /etc/systemd/system/probe.service.d/x.conf && systemctl daemon-reload",
    "drop-in that nobody read": "mkdir -p /etc/systemd/system/probe.service.d && "
    "echo '[Service]' > /etc/systemd/system/probe.service.d/x.conf",
    "unit file": "cp /srv/probe/linked.service /etc/systemd/system/probe.service && systemctl daemon-reload",
    "own properties go": "systemctl revert probe",
    "link": "systemctl link /srv/probe/linked.service",
    "another default": "systemctl set-default quiet.target",
    "wants": "systemctl add-wants quiet.target probe.service",
    "isolate": "systemctl isolate quiet.target",
    "preset": "systemctl preset probe",
    "kill": "systemctl kill -s KILL probe",
    "restart": "systemctl restart probe",
}
BEFORE = {
    "disable with others": "systemctl enable also other",
    "disable": "systemctl enable probe",
    "disable for this boot": "systemctl enable --runtime probe",
    "enable for this boot": "systemctl enable probe",
    "enable with others": "systemctl enable other",
    "unmask": "systemctl mask probe",
    "reenable": "systemctl add-wants quiet.target probe.service",
    "own properties go": "systemctl set-property probe MemoryMax=60M; "
    "systemctl set-property --runtime probe CPUWeight=5; systemctl daemon-reload",
}
SAME = ("restart",)
"""Changes that only time shows."""


@pytest.fixture(scope="module")
def box():
    machine = Box(PREPARE)
    machine.run("cp -a /etc/systemd/system /srv/pristine")
    yield machine
    machine.close()


@pytest.mark.parametrize("name", CHANGES)
def test_unit_goes_back_to_equal(name, box):
    told = box.ask(change=CHANGES[name], before=FIRST + BEFORE.get(name, ""), look=LOOK)
    assert told["exec"]["status"] == "succeeded", told["exec"]
    assert (told["after"] == told["before"]) is (name in SAME)
    assert told["rollback"]["status"] == "succeeded", told["rollback"]["results"]
    assert told["now"].split("\n") == told["before"].split("\n")
