"""A user's table of jobs. Source: crontab(1)."""

from __future__ import annotations

from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted


def _user(key: str) -> str:
    return f" -u {quoted(key)}" if key else ""


def _reads(key: str) -> tuple[Read, ...]:
    return (Read("jobs", f"crontab -l{_user(key)}", unmasked=True, good=frozenset((0, 1))),)


def _parse(key: str, said: Mapping[str, Said]) -> State:
    jobs = said["jobs"]
    if jobs.exit_code == 0:
        return {"jobs": jobs.out}
    if "no crontab for" not in jobs.err:
        raise Unreadable(jobs.err.strip() or "crontab gave no answer")
    return {"jobs": None}


def _way_back(key: str, before: State, now: State) -> WayBack:
    if before["jobs"] is None:
        return WayBack((Inverse(f"crontab{_user(key)} -r"),))
    return WayBack((Inverse(f"crontab{_user(key)} -", before["jobs"]),))


FAMILY = Family(
    "crontab", "crontab", _reads, _parse, _way_back, whole=lambda key, before: _way_back(key, before, {"jobs": ""})
)
