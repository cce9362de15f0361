"""What real hosts said to our MCP server, said again: each request gets the answer that it got then."""

from __future__ import annotations

import datetime
import json

import pytest

from tests.hosts import frames, versions
from tests.mcp.talk import Peer

RECORDINGS = {one.host: one for one in frames.recordings()}


def test_every_host_that_has_our_server_is_recorded():
    assert set(RECORDINGS) == {"claude-code", "codex", "gemini", "opencode"}


@pytest.mark.parametrize("host", sorted(RECORDINGS))
def test_a_hosts_frames_are_answered_as_they_were(host, tmp_path):
    home = tmp_path / "stage"
    home.mkdir()
    (home / "a-file").write_text("forty-two\n")
    asked = 0
    with Peer(home, open=False) as peer:
        for row in RECORDINGS[host].rows:
            message = json.loads(json.dumps(row["send"]).replace(frames.STAGE, str(home)))
            peer.send(message)
            if "answer" in row:
                got = frames.outcome(peer.answer(message["id"]))
                assert json.loads(json.dumps(got)) == row["answer"], message
                asked += 1
        assert peer.process.poll() is None
    assert asked >= 3, "the recording holds the tools and calls"


@pytest.mark.parametrize("host", sorted(RECORDINGS))
def test_frames_are_those_of_the_version_that_is_run(host):
    """Who takes a new version of a host records it: make hosts RECORD=1."""
    assert RECORDINGS[host].package in versions.NPM


@pytest.mark.parametrize("host", sorted(RECORDINGS))
def test_a_recording_says_how_old_it_is(host):
    one = RECORDINGS[host]
    said = one.age(one.day + datetime.timedelta(days=30))
    assert said == f"frames of {one.package} were recorded 30 days ago, on {one.day}"
    assert "1 day ago" in one.age(one.day + datetime.timedelta(days=1))
