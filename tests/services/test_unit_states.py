"""Units go back to running or not, enabled, disabled or masked: the real systemctl, a real bus, a stub manager."""

from __future__ import annotations

import pytest

import execution
from acting import states
from guard.hands.services import FAMILIES, Said
from guard.types import PlanItem
from tests.services.booted import BOOTED
from tests.services.machine import is_root, story, went_back

STATE = {"load": "loaded", "runs": True, "file": "enabled", "links": {}}
CHANGES = {
    "stopped": ("systemctl stop nginx 2>/dev/null", {"runs": False}),
    "disabled": ("systemctl disable nginx", {"file": "disabled"}),
    "disabled-and-stopped": ("systemctl disable --now nginx 2>/dev/null", {"file": "disabled", "runs": False}),
    "masked-and-stopped": (
        "systemctl mask nginx; systemctl stop nginx 2>/dev/null",
        {"load": "masked", "file": "masked", "runs": False},
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_unit_goes_back_and_forth(name, tmp_path):
    change, after = CHANGES[name]
    if not is_root():
        back = FAMILIES["service"].way_back("nginx", STATE, {**STATE, **after})
        assert back.commands[0].command == "systemctl daemon-reload"
        assert back.commands[1:]
        return
    told = story(tmp_path, change, place=BOOTED)
    went_back(told)
    assert told["before"] == {"nginx": STATE}
    assert told["after"] == {"nginx": {**STATE, **after}}


def test_without_systemd_the_reason_is_said_and_nothing_is_kept():
    kept, missed = states.outputs([PlanItem("service", "nginx")], execution.open_guard())
    assert len(kept) + len(missed) == 1
    assert not missed or missed["service", "nginx"].startswith("systemctl ")


def test_unit_without_a_file_of_its_own_is_said_to_stay_different():
    back = FAMILIES["service"].way_back("x", {**STATE, "file": "static"}, {**STATE, "file": ""})
    assert back.lost == ("its unit file was static",)


def test_end_of_a_mask_is_all_that_a_static_unit_needs():
    back = FAMILIES["service"].way_back("x", {**STATE, "file": "static"}, {**STATE, "file": "masked-runtime"})
    assert [one.command for one in back.commands] == ["systemctl daemon-reload", "systemctl unmask --runtime x"]
    assert back.lost == ()


WANTS = "/etc/systemd/system/multi-user.target.wants"
DISABLED = {**STATE, "file": "disabled"}
FILES = {
    # What `enable --runtime` made is taken away by `disable --runtime` alone.
    "for-this-boot": (DISABLED, {"file": "enabled-runtime"}, ["systemctl disable --runtime x"]),
    "not-only-for-this-boot": (
        {**STATE, "file": "enabled-runtime"},
        {"file": "enabled"},
        ["systemctl disable x", "systemctl enable --runtime x"],
    ),
    # `disable` takes the units of `Also=` along, and leaves what was made by hand.
    "with-others": (
        {**DISABLED, "links": {f"{WANTS}/y.service": "/lib/y.service"}},
        {"file": "enabled", "links": {f"{WANTS}/{one}.service": f"/lib/{one}.service" for one in "xy"}},
        [
            "systemctl disable x",
            f"mkdir -p -- {WANTS}",
            f"ln -sfn -- /lib/y.service {WANTS}/y.service",
            "systemctl daemon-reload",
        ],
    ),
    "link-by-hand": (
        STATE,
        {"links": {f"{WANTS}/x $y.service": "/lib/x.service"}},
        [f"rm -f -- '{WANTS}/x $y.service'", "systemctl daemon-reload"],
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_links_of_a_unit_go_back(name):
    before, change, commands = FILES[name]
    back = FAMILIES["service"].way_back("x", before, {**before, **change})
    assert [one.command for one in back.commands] == ["systemctl daemon-reload", *commands]


def test_links_of_a_unit_are_those_of_its_names_and_of_what_it_enables_too():
    said = {
        "unit": Said(0, "Id=x.service\nLoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"),
        "text": Said(0, "[Install]\nWantedBy=multi-user.target\nAlso=y.service z.socket\n"),
        "links": Said(
            0,
            f"{WANTS}/x.service\t/lib/x.service\n{WANTS}/n.service\t/lib/n.service\n"
            f"/etc/systemd/system/alias.service\t/lib/x.service\n{WANTS}/z.socket\t/lib/z.socket\n",
        ),
    }
    state = FAMILIES["service"].parse("alias", said)
    assert list(state["links"]) == [
        f"{WANTS}/x.service",
        "/etc/systemd/system/alias.service",
        f"{WANTS}/z.socket",
    ]


def test_what_an_isolated_target_stopped_is_started_and_what_it_started_is_stopped():
    parse, way_back = FAMILIES["systemd"].parse, FAMILIES["systemd"].way_back
    row = "{} loaded active running a word\n"
    before = parse("running", {"units": Said(0, row.format("a.service") + row.format("user@0.service"))})
    now = parse("running", {"units": Said(0, row.format("rescue.target"))})
    back = way_back("running", before, now)
    assert [one.command for one in back.commands] == ["systemctl start -- a.service", "systemctl stop -- rescue.target"]
