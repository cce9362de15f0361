"""The scripted brain of docs/loop.md plays as it stands there."""

from __future__ import annotations

import re

from agent.providers.scripted import open_script
from dialogue import confirm, events
from tests.capabilities.world import guard_in
from tests.sources import ROOT
from tests.talk import conversation, of, turn


def test_script_of_the_page_plays_to_its_end(tmp_path):
    page = (ROOT / "docs" / "loop.md").read_text("utf-8")
    (script,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    (tmp_path / "srv" / "log").mkdir(parents=True)
    (tmp_path / "srv" / "log" / "app.1.gz").write_text("old")
    (tmp_path / "a.toml").write_text(script.replace("/srv", f"{tmp_path}/srv"))
    talk = conversation(guard_in(tmp_path), open_script(str(tmp_path / "a.toml")), tmp_path, asks=True)

    def on_event(event):
        if isinstance(event, events.AskOpened):
            talk.respond(event.id, confirm.Answer(confirm.APPROVED, "rpc", "0" * 64))

    seen = turn(talk, "make room", on_event=on_event)
    run = of(seen, events.ToolCompleted)[-1].execution
    assert (of(seen, events.Text)[-1].text, seen[-1].exit_code) == (f"Done in {run}.", 0)
    assert not (tmp_path / "srv" / "log" / "app.1.gz").exists()


def test_fields_of_the_page_are_those_of_the_form():
    from agent.providers.scripted import _FIELDS

    page = (ROOT / "docs" / "loop.md").read_text("utf-8").partition("## A scripted brain")[2]
    named = [name for row in re.findall(r"^\| (`.*?) \|", page, re.M) for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(_FIELDS)


def test_events_of_the_page_are_those_that_exist():
    import dataclasses

    page = (ROOT / "docs" / "loop.md").read_text("utf-8").partition("## Events")[2].partition("## Approvals")[0]
    rows = [row.split("|") for row in page.splitlines() if row.startswith("| `")]
    named = {row[1].strip(" `"): re.findall(r"`(\w+)`", row[2]) for row in rows}
    assert named == {kind.type: [field.name for field in dataclasses.fields(kind)] for kind in events.EVENTS}
