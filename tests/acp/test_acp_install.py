"""`opsagent install zed|emacs|neovim`: shown, written, taken out byte for byte, and never through a link."""

from __future__ import annotations

import json
import stat

import pytest

from cli import opsagent
from cli.install import editors, jsonc

ZED = '// Mine\n{\n  "ui_font_size": 16, // large\n  "agent_servers": {\n    "other": { "command": "x" }\n  }\n}\n'
INIT = "(setq inhibit-startup-screen t)\r\n"
PLACES = {"zed": ".config/zed/settings.json", "emacs": ".emacs.d/init.el", "neovim": ".config/nvim/lua/opsagent.lua"}
BEFORE = {"zed": ZED, "emacs": INIT}


class Home:
    def __init__(self, folder, capsys):
        self.path, self.capsys = folder, capsys

    def place(self, editor):
        return self.path / PLACES[editor]

    def put(self, editor, text):
        place = self.place(editor)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
        return place

    def install(self, *words):
        code = opsagent.main(["install", *words])
        said = self.capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def home(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("cli.actor.is_below_an_agent", lambda: False)
    path = tmp_path / "home"
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.chdir(path)
    return Home(path, capsys)


@pytest.mark.parametrize("editor", PLACES)
def test_without_write_it_is_only_shown(home, editor):
    code, out, err = home.install(editor)
    assert (code, home.place(editor).exists()) == (0, False)
    assert "+" in out
    assert "acp" in out
    assert "--write does it" in err


@pytest.mark.parametrize("editor", PLACES)
@pytest.mark.parametrize("filled", [False, True])
def test_what_is_written_is_taken_out_byte_for_byte(home, editor, filled):
    place = home.put(editor, BEFORE[editor]) if filled and editor in BEFORE else home.place(editor)
    before = place.read_bytes() if place.exists() else None
    code, out, _ = home.install(editor, "--write")
    assert code == 0
    assert editors.AFTERWARDS[editor] in out
    written = place.read_bytes()
    assert b"acp" in written
    assert home.install(editor, "--write")[0] == 0
    assert place.read_bytes() == written
    assert home.install(editor, "--remove")[0] == 0
    assert (place.read_bytes() if place.exists() else None) == before


def test_zed_keeps_every_other_byte_and_starts_ours(home):
    place = home.put("zed", ZED)
    home.install("zed", "--write")
    text = place.read_text()
    entry = jsonc.value_of(text)["agent_servers"]["opsagent"]
    assert (entry["type"], entry["args"]) == ("custom", ["acp"])
    assert entry["command"].endswith("/opsagent")
    assert text.startswith("// Mine\n{\n")
    assert "16, // large" in text
    assert jsonc.value_of(text)["agent_servers"]["other"] == {"command": "x"}


def test_what_a_person_changed_since_stays_when_ours_goes(home):
    place = home.put("zed", ZED)
    home.install("zed", "--write")
    place.write_text(place.read_text().replace("16, // large", "18, // larger"))
    assert home.install("zed", "--remove")[0] == 0
    assert place.read_text() == ZED.replace("16, // large", "18, // larger")
    init = home.put("emacs", INIT)
    home.install("emacs", "--write")
    with init.open("ab") as file:
        file.write(b"(setq more t)\r\n")
    home.install("emacs", "--remove")
    assert init.read_bytes() == (INIT + "(setq more t)\r\n").encode()


def test_an_agent_of_that_name_that_is_not_ours_stays(home):
    text = '{"agent_servers": {"opsagent": {"command": "/usr/bin/other", "args": []}}}'
    place = home.put("zed", text)
    code, _, err = home.install("zed", "--write")
    assert code == 1
    assert "starts something else" in err
    home.install("zed", "--remove")
    assert place.read_text() == text
    module = home.put("neovim", "return {}\n")
    assert home.install("neovim", "--write")[0] == 1
    home.install("neovim", "--remove")
    assert module.read_text() == "return {}\n"


@pytest.mark.parametrize("editor", PLACES)
def test_a_link_is_never_written_through(home, editor):
    real = home.path / "dotfile"
    home.path.mkdir(exist_ok=True)
    real.write_text("")
    home.place(editor).parent.mkdir(parents=True, exist_ok=True)
    home.place(editor).symlink_to(real)
    code, _, err = home.install(editor, "--write")
    assert (code, real.read_text()) == (1, "")
    assert "link" in err


def test_the_text_from_before_is_kept_for_its_owner_alone(home, tmp_path):
    home.put("zed", ZED)
    home.install("zed", "--write")
    (kept,) = (tmp_path / "state" / "host-settings").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert json.loads(kept.read_text())["text"] == ZED


def test_a_block_without_its_end_is_left_to_the_person(home):
    place = home.put("emacs", f"{editors.BEGIN}\n(message)\n")
    assert home.install("emacs", "--remove")[0] == 1
    assert place.read_text() == f"{editors.BEGIN}\n(message)\n"


@pytest.mark.parametrize("words", [("doctor", "zed"), ("zed", "--hook"), ("emacs", "--scope", "project")])
def test_what_an_editor_does_not_have_is_a_usage_error(home, words):
    code, _, err = home.install(*words)
    assert code == 2
    assert "is an editor" in err


@pytest.mark.parametrize("name", ["init", "emacs", "el"])
def test_the_init_file_that_emacs_would_load_is_taken(home, name):
    place = home.path / {"init": ".config/emacs/init.el", "emacs": ".emacs", "el": ".emacs.el"}[name]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("")
    home.install("emacs", "--write")
    assert "opsagent-shell" in place.read_text()


def test_paths_with_quotes_stay_one_text():
    class Place:
        opsagent, home = '/opt/a "b"\\c/opsagent', "/h"

        def folder(self, variable, default):
            return f"/h/{default}"

    lisp = editors.changes("emacs", Place())[0].lines
    assert ':command "/opt/a \\"b\\"\\\\c/opsagent"' in lisp
    assert lisp.count("(") == lisp.count(")")
    lua = editors.changes("neovim", Place())[0].text
    assert '{ "/opt/a \\"b\\"\\\\c/opsagent", "acp" }' in lua
    assert lua.count("{") == lua.count("}")
