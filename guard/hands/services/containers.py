"""Whether a container runs. Source: docker-inspect(1), podman-inspect(1)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import quoted


def _family(program: str) -> Family:
    def reads(key: str) -> tuple[Read, ...]:
        return (Read("state", f"{program} inspect --type container --format '{{{{json .State}}}}' {quoted(key)}"),)

    def parse(key: str, said: Mapping[str, Said]) -> State:
        try:
            state = json.loads(said["state"].out)
            return {"runs": bool(state["Running"]), "paused": bool(state["Paused"])}
        except (ValueError, KeyError, TypeError):
            raise Unreadable(f"{program} says nothing about {key}") from None

    def way_back(key: str, before: State, now: State) -> WayBack:
        name = quoted(key)
        commands = []
        if now["paused"] and not before["paused"]:
            commands.append(f"{program} unpause {name}")
        if before["runs"] != now["runs"]:
            commands.append(f"{program} {'start' if before['runs'] else 'stop'} {name}")
        if before["paused"] and not (now["paused"] and now["runs"]):
            commands.append(f"{program} pause {name}")
        return WayBack(tuple(Inverse(command) for command in commands))

    return Family(program, program, reads, parse, way_back, stays="what its processes held in memory", proven=False)


FAMILIES = (_family("docker"), _family("podman"))
