"""When an account ends, and when its password was last changed, which says when that ends. Source: chage(1), shadow(5).

chage tells both without the hash. The other ages of a password are told for all accounts at once, by `accounts`.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted

_DATE = re.compile(r"^([A-Z][a-z]{2}) (\d{2}), (\d{4})$")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCH = datetime.date(1970, 1, 1)
_LINES = {"Account expires": "ends", "Last password change": "changed"}
_WORDS = {"never": -1, "password must be changed": 0}
_OPTIONS = (("ends", "-E"), ("changed", "-d"))


def _reads(key: str) -> tuple[Read, ...]:
    return (Read("ages", f"chage -l -- {quoted(key)}", unmasked=True, good=frozenset((0, 1))),)


def _parse(key: str, said: Mapping[str, Said]) -> State:
    """`{"account": {"ends": …, "changed": …}}` in days since 1970-01-01, -1 for never; None for no such account."""
    ages = said["ages"]
    if ages.exit_code:
        if "does not exist" not in ages.err:
            raise Unreadable("chage gave no answer")
        return {"account": None}
    found: dict[str, int] = {}
    for line in ages.lines():
        head, _, text = line.partition("\t")
        if head in _LINES:
            found[_LINES[head]] = _days(text.lstrip("\t: "))
    if found.keys() != set(_LINES.values()):
        raise Unreadable("chage left something out")
    return {"account": found}


def _days(text: str) -> int:
    if text in _WORDS:
        return _WORDS[text]
    date = _DATE.match(text)
    try:
        if date is None:
            raise ValueError(text)
        return (datetime.date(int(date[3]), _MONTHS.index(date[1]) + 1, int(date[2])) - _EPOCH).days
    except ValueError:
        raise Unreadable("chage gave a date of no known form") from None


def _way_back(key: str, before: State, now: State) -> WayBack:
    # An account that came goes with the state of accounts; one that went is there again by now.
    old, new = before["account"], now["account"] or {}
    if old is None:
        return WayBack()
    changed = [f"{option} {old[name]}" for name, option in _OPTIONS if old[name] != new.get(name)]
    return WayBack((Inverse(f"chage {' '.join(changed)} -- {quoted(key)}"),))


FAMILY = Family("expiry", "chage", _reads, _parse, _way_back)
