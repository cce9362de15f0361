"""Which brains a conversation on the terminal gets."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cli import opsagent_brains
from guard.errors import UsageError


@pytest.fixture(autouse=True)
def configured(tmp_path):
    folder = tmp_path / "state" / "config"
    folder.mkdir(parents=True)
    for made in (tmp_path / "state", folder):
        made.chmod(0o700)
    path = folder / "config.toml"
    path.write_text(
        '[brains]\norder = ["near", "anthropic"]\n'
        '[brains.near]\nkind = "openai"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\n'
    )
    path.chmod(0o600)


def links(brain="", model=""):
    return [link.name for link in opsagent_brains._links(brain, model)]


def test_the_configured_chain_answers_also_when_its_first_brain_is_named():
    assert links() == links("near") == links("near", "m-2") == ["near", "anthropic", "offline"]


def test_another_brain_stands_alone():
    assert links("anthropic") == ["anthropic"]
    assert links("script:/tmp/x.toml") == ["script:/tmp/x.toml"]
    assert links("offline") == []


def test_every_brain_can_be_named():
    assert opsagent_brains.names() == ("near", "anthropic", "openai", "offline")


def test_the_runbooks_keep_no_conversation_to_go_on_with():
    with pytest.raises(UsageError, match="goes on with a model"):
        opsagent_brains.opened(SimpleNamespace(), brain="offline", model="", resume="c-1")
