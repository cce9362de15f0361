"""Events survive the wire, and readers are strict about what they know and deaf to the rest."""

from __future__ import annotations

import dataclasses
import json

import pytest

from dialogue import confirm, events


def example_of(kind):
    values = {}
    for f in dataclasses.fields(kind):
        if f.default is f.default_factory is dataclasses.MISSING:
            values[f.name] = {"str": "x", "int": 7, "dict[str, Any]": {"a": 1}}[str(f.type)]
    return kind(**values)


@pytest.mark.parametrize("kind", events.EVENTS, ids=lambda kind: kind.type)
def test_every_event_survives_the_wire(kind):
    sent = events.Stamped(example_of(kind), "c-1", 2, 3, "2026-12-01T00:00:00.000Z")
    row = json.loads(json.dumps(sent.as_json()))
    assert {"format", "type", "session", "turn", "seq", "at"} <= row.keys()
    assert events.from_json(row) == sent


def test_a_type_from_a_later_version_is_ignored():
    assert events.from_json({"format": 1, "type": "telepathy", "session": "c-1", "turn": 1, "seq": 1, "at": ""}) is None


def test_another_format_is_refused():
    with pytest.raises(ValueError, match="format"):
        events.from_json({"format": 2, "type": "text"})


def test_a_missing_field_is_named():
    with pytest.raises(ValueError, match="text lacks text"):
        events.from_json({"format": 1, "type": "text", "session": "c", "turn": 1, "seq": 1, "at": ""})


def test_unknown_fields_are_dropped():
    row = {"format": 1, "type": "text", "session": "c", "turn": 1, "seq": 1, "at": "", "text": "a", "role": "system"}
    assert events.from_json(row).as_json().keys() == row.keys() - {"role"}


def test_nobody_there_means_unanswered_and_never_approved():
    ask = confirm.Ask("a-1", "local", "h", "root", "/", "reboot", "R2", (), (), "no", (), (), "", "", "")
    assert confirm.NobodyThere().ask(ask, timeout_s=1).outcome == confirm.UNANSWERED
