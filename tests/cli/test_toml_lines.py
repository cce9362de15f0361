"""On which line a setting stands, whatever its value looks like."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from cli.toml_lines import lines_of

TEXT = '''
# [brains]
[policy]
mode = "guarded" # mode = "lab"
peers = [
  "a",   # ]
  "[brains.x]",
]
text = """
[brains.local]
model = "no"
"""

[brains]
order = ["local"]
local.model = "m"
near = { kind = "openai", model = "x" }
[ brains . "far away" ]
model = 'y'
[[many]]
a = 1
[[many]]
a = 2
'''


def test_each_setting_is_found_on_its_own_line():
    got = lines_of(TEXT)
    assert got[("policy",)] == 3
    assert got[("policy", "mode")] == 4
    assert got[("policy", "peers")] == 5
    assert got[("policy", "text")] == 9
    assert got[("brains", "order")] == 15
    assert got[("brains", "local", "model")] == 16
    assert got[("brains", "near", "model")] == 17
    assert got[("brains", "far away", "model")] == 19
    assert got[("many", "a")] == 21
    assert ("brains", "x") not in got


def places(table, above=()):
    for key, value in table.items():
        yield (*above, key)
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        if isinstance(inner, dict):
            yield from places(inner, (*above, key))


def test_nothing_that_the_reader_sees_is_missed():
    assert set(lines_of(TEXT)) >= set(places(tomllib.loads(TEXT)))


@given(st.text(alphabet="[]\"'=a.#\n {},1", max_size=60))
def test_any_text_is_survived_and_valid_ones_are_told_whole(text):
    got = lines_of(text)
    assert all(1 <= number <= text.count("\n") + 1 for number in got.values())
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert set(got) >= set(places(table))
