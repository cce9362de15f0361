"""Units go back to running or not, enabled, disabled or masked: the real systemctl, a real bus, a stub manager."""

from __future__ import annotations

import pytest

import execution
from acting import states
from guard.hands.services import FAMILIES
from guard.types import PlanItem
from tests.services.booted import BOOTED
from tests.services.machine import is_root, story, went_back

STATE = {"load": "loaded", "runs": True, "file": "enabled"}
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
    back = FAMILIES["service"].way_back("x", {**STATE, "file": "static"}, {**STATE, "file": "masked"})
    assert back.lost == ("its unit file was static",)
