"""The tests' own model server, started by hand as a person would."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from agent.providers.base import BrainBusy, BrainUnreachable
from tests.model_server import Call, Delivery, Events, Fail, Say
from tests.model_server.clients import ask, provider
from tests.model_server.script import read_script
from tests.sources import ROOT

SCRIPT = {
    "replies": [
        {"status": 429, "error": "slow down", "headers": {"retry-after": "2"}},
        {"text": "Looking.", "calls": [{"name": "bash", "arguments": {"command": "df"}, "id": "a"}]},
        {"text": "half of it", "cut_after": 2},
        {"text": "Full.", "split": 2, "model": "mock-2"},
    ]
}


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.json"
    path.write_text(json.dumps(SCRIPT))
    return path


def test_a_script_is_read_as_replies(script):
    assert read_script(script) == (
        Fail(429, {"error": {"message": "slow down"}}, {"retry-after": "2"}),
        Say("Looking.", [Call("bash", {"command": "df"}, "a")]),
        Say("half of it", [], delivery=Delivery(cut_after=2)),
        Say("Full.", [], split=2, model="mock-2"),
    )


def test_events_of_a_script_go_out_as_they_stand(tmp_path):
    path = tmp_path / "script.json"
    path.write_text('{"replies": [{"events": [{"a": 1}, "[DONE]"]}]}')
    assert read_script(path) == (Events([{"a": 1}, "[DONE]"]),)


@pytest.mark.parametrize("kind", ["openai", "anthropic"])
def test_a_script_is_served_by_hand(script, kind):
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.model_server", str(script)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        words = dict(word.split("=", 1) for word in child.stdout.readline().split())
        api = provider(kind, words[f"{kind.upper()}_BASE_URL"])
        with pytest.raises(BrainBusy) as busy:
            ask(api)
        assert busy.value.retry_after_s == 2.0
        assert ask(api)[1].calls[0].arguments == {"command": "df"}
        with pytest.raises(BrainUnreachable):
            ask(api)
        assert ask(api)[1].text == "Full."
        with pytest.raises(BrainUnreachable, match="the script is over"):
            ask(api)
        api.close()
    finally:
        child.terminate()
        child.wait(30)
        child.stdout.close()
