"""`[mcp]` loosens only what every file agrees on, and a fault anywhere leaves it strict."""

from __future__ import annotations

import pytest

from cli import config
from cli.mcp_config import ELICIT, HOST, McpSettings


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two configuration folders, as a machine and its user have them."""
    made = []
    for name in ("system", "own"):
        folder = tmp_path / name
        folder.mkdir(mode=0o700)
        made.append(folder)
    monkeypatch.setattr(config, "folders", lambda: [str(folder) for folder in made])
    return made


def put(folder, text):
    path = folder / "config.toml"
    path.write_text(text)
    path.chmod(0o600)


@pytest.mark.parametrize(
    ("system", "own", "found"),
    [
        ("", '[mcp]\napproval = "host"', McpSettings(HOST)),
        ("", '[mcp]\napproval = "elicit"\nshare_outputs = true', McpSettings(ELICIT, True)),
        ("[mcp]\nshare_outputs = true", '[mcp]\napproval = "host"', McpSettings(HOST, True)),
        ("[mcp]\nedits = true", "", McpSettings(edits=True)),
        ("[mcp]\nedits = true", "[mcp]\nedits = false", None),
        ('[mcp]\napproval = "elicit"', '[mcp]\napproval = "host"', None),
        ('[mcp]\napproval = "host"', '[mcp]\napproval = "elicit"', None),
        ("[mcp]\nshare_outputs = false", "[mcp]\nshare_outputs = true", None),
        ("", "[mcp]", None),
        ("", '[policy]\nmode = "guarded"', None),
        ("not toml", '[mcp]\napproval = "host"\nshare_outputs = true', None),
    ],
)
def test_a_loosening_counts_when_no_file_says_otherwise_and_all_could_be_used(folders, system, own, found):
    put(folders[0], system)
    put(folders[1], own)
    assert config.load().mcp == found


@pytest.mark.parametrize(
    "text",
    [
        '[mcp]\napproval = "yes"',
        "[mcp]\napproval = true",
        "[mcp]\nshare_outputs = 1",
        "[mcp]\nedits = 1",
        '[mcp]\nshare_outputs = "true"',
        '[mcp]\napprove = "host"',
        'mcp = "host"',
    ],
)
def test_a_setting_that_is_none_leaves_it_strict_and_is_said(folders, text):
    put(folders[1], text)
    found = config.load()
    assert found.mcp is None
    assert len(found.problems) == 1 and "mcp" in found.problems[0]
