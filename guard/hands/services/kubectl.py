"""What a command sets on one object of a cluster: replicas, images, whether a node takes pods, labels, annotations.

Only these fields are kept, each with the documented command that sets it. The object itself, and so whatever credential
it holds, is never kept. Source: the kubectl reference (`scale`, `set image`, `cordon`, `label`, `annotate`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from guard.hands.environment import looks_secret
from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import joined

ELSEWHERE = "what was set in another cluster or namespace than kubectl leads to now"


def _words(key: str) -> tuple[str, str, list[str], list[str]]:
    """(field, object, names of entries, options that say where) of a key: see `guard.judge.states`."""
    field, _, rest = key.partition(" ")
    target, _, rest = rest.partition(" ")
    words = rest.split(" ") if rest else []
    where = [word for word in words if word.startswith("--")]
    return field, target, [word for word in words if not word.startswith("--")], where


def _is_secret(target: str) -> bool:
    return target.partition("/")[0].partition(".")[0].lower() in ("secret", "secrets")


def _reads(key: str) -> tuple[Read, ...]:
    _, target, _, where = _words(key)
    if _is_secret(target):
        return ()
    return (
        Read("place", joined(["kubectl", "config", "view", "--minify", "-o", "json", *where])),
        Read("object", joined(["kubectl", "get", target, "-o", "json", *where])),
    )


def _parse(key: str, said: Mapping[str, Said]) -> State:
    field, target, names, _ = _words(key)
    if _is_secret(target):
        raise Unreadable("what a secret of a cluster holds is never read")
    if any(looks_secret(name) for name in names):
        raise Unreadable("a name like this often stands before a credential, so its value is not kept")
    try:
        place, thing = json.loads(said["place"].out), json.loads(said["object"].out)
        return {
            "server": str(place["clusters"][0]["cluster"]["server"]),
            "namespace": str(thing["metadata"].get("namespace", "")),
            field: _FIELDS[field](thing, names),
        }
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        raise Unreadable(f"kubectl says nothing about {field} of {target}") from None


def _replicas(thing: dict[str, Any], names: list[str]) -> int:
    return int(thing["spec"]["replicas"])


def _images(thing: dict[str, Any], names: list[str]) -> dict[str, str]:
    spec = thing["spec"]
    spec = spec["jobTemplate"]["spec"] if "jobTemplate" in spec else spec
    pod = spec["template"]["spec"] if "template" in spec else spec
    return {str(one["name"]): str(one["image"]) for one in [*pod.get("initContainers", []), *pod["containers"]]}


def _unschedulable(thing: dict[str, Any], names: list[str]) -> bool:
    if thing["kind"] != "Node":
        raise TypeError(thing["kind"])
    return bool(thing["spec"].get("unschedulable", False))


def _labels(thing: dict[str, Any], names: list[str]) -> dict[str, str | None]:
    held = thing["metadata"].get("labels") or {}
    return {name: held.get(name) for name in names}


def _annotations(thing: dict[str, Any], names: list[str]) -> dict[str, str | None]:
    held = thing["metadata"].get("annotations") or {}
    return {name: held.get(name) for name in names}


_FIELDS = {
    "replicas": _replicas,
    "images": _images,
    "unschedulable": _unschedulable,
    "labels": _labels,
    "annotations": _annotations,
}


def _way_back(key: str, before: State, now: State) -> WayBack:
    field, target, _, where = _words(key)
    if any(before[name] != now[name] for name in ("server", "namespace")):
        return WayBack((), (ELSEWHERE,))
    was, has = before[field], now[field]
    lost: list[str] = []
    if field == "replicas":
        words = ["scale", target, f"--replicas={was}"]
    elif field == "unschedulable":
        words = ["cordon" if was else "uncordon", target.partition("/")[2]]
    elif field == "images":
        changed = [f"{name}={image}" for name, image in was.items() if name in has and has[name] != image]
        words = ["set", "image", target, *changed] if changed else []
        lost = [f"container {name}" for name in was.keys() ^ has.keys()]
    else:
        differs = [name for name in was if was[name] != has.get(name)]
        entries = [f"{name}-" if was[name] is None else f"{name}={was[name]}" for name in differs]
        words = ["label" if field == "labels" else "annotate", target, "--overwrite", *entries]
    return WayBack((Inverse(joined(["kubectl", *words, *where])),) if words else (), tuple(sorted(lost)))


FAMILY = Family(
    "kubectl",
    "kubectl",
    _reads,
    _parse,
    _way_back,
    stays="pods that were replaced or ended, and what they held",
    proven=False,
)
