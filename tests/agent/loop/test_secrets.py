"""Secrets of every kind, wherever they enter a conversation: none is shown, sent or kept."""

from __future__ import annotations

import json
import os

import pytest

from agent.sessions.store import Sessions
from dialogue.protocol import Turn
from tests.capabilities.world import guard_in
from tests.redact.secret_forms import FORMS
from tests.talk import conversation, scripted, use

AT_ONCE = 12
"""Forms in one turn, so that there are few turns."""


def readable(secret, shown):
    """Lines of a secret that can be read in a text, as they are or as JSON spells them."""
    return [
        line for line in secret.split("\n") if len(line) >= 8 and (line in shown or json.dumps(line)[1:-1] in shown)
    ]


@pytest.mark.guarantee("G-REDACT")
def test_no_kind_of_secret_is_shown_sent_or_kept(tmp_path):
    guard = guard_in(tmp_path)
    sessions = Sessions.open(guard.redactor, str(tmp_path / "state"))
    (tmp_path / "files").mkdir()
    batches = [FORMS[at : at + AT_ONCE] for at in range(0, len(FORMS), AT_ONCE)]
    rows = []
    for batch in batches:
        calls = []
        for name, text, _ in batch:
            (tmp_path / "files" / name).write_text(f"{text}\n")
            calls += [
                use("bash", command=f"cat {tmp_path}/files/{name}"),
                use("bash", command=f"no-such-program <<'X'\n{text}\nX"),
            ]
        words = [f"{text}\n" for _, text, _ in batch]
        rows.append({"deltas": words, "calls": [*calls, use("ask_user", question=words[0][:4000])], "notes": words})
        rows.append({"error": {"message": words[-1]}})
    brain = scripted(*rows)
    talk = conversation(guard, brain, tmp_path, transcript=sessions.create(cwd=str(tmp_path)))
    shown = []
    for batch in batches:
        texts = tuple(text for _, text, _ in batch)
        talk.send_turn(Turn("\n\n".join(("look at this:", *texts)), texts))
        shown += [repr(event) for event in talk.events()]
    talk.close()
    sent = [repr(message) for request in brain.sent for message in request.messages[-30:]]
    kept = [repr(message) for message in talk.history.messages]
    disk = []
    for folder, _, names in os.walk(tmp_path / "state"):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                disk.append(file.read().decode("utf-8", "replace"))
    assert sum("no-such-program" in one for one in kept) >= len(batches)
    # What stands beside a secret in some form, such as a user's name, is no leak.
    beside = "".join(json.dumps(text.replace(secret, "\0")) for _, text, secret in FORMS)
    everything = "\n".join((*shown, *sent, *kept, *disk))
    leaked = {name: [line for line in readable(secret, everything) if line not in beside] for name, _, secret in FORMS}
    assert {name: lines for name, lines in leaked.items() if lines} == {}
