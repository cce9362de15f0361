"""What a command sets on one object of a cluster: replicas, images, whether a node takes pods, labels, annotations.

Only these fields are kept, each with the documented command that sets it. The whole object is kept only where a command
deletes or patches it, without what the server counts, and never a secret. Source: the kubectl reference (`scale`,
`set image`, `cordon`, `label`, `annotate`, `create`, `replace`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from guard.hands.environment import looks_secret
from guard.hands.services.base import Family, Inverse, Read, Said, State, Unreadable, WayBack
from guard.quoting import joined

OBJECT = "object"
_BY_SERVER = frozenset(
    ("resourceVersion", "uid", "creationTimestamp", "generation", "managedFields", "selfLink", "deletionTimestamp",
     "deletionGracePeriodSeconds")
)  # fmt: skip
_REVISION = "deployment.kubernetes.io/revision"
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
    field, target, _, where = _words(key)
    if _is_secret(target):
        return ()
    # An object that was deleted is a state: nothing.
    gone = ["--ignore-not-found"] if field == OBJECT else []
    return (
        Read("place", joined(["kubectl", "config", "view", "--minify", "-o", "json", *where])),
        Read("object", joined(["kubectl", "get", target, "-o", "json", *gone, *where])),
    )


def _parse(key: str, said: Mapping[str, Said]) -> State:
    field, target, names, _ = _words(key)
    if _is_secret(target):
        raise Unreadable("what a secret of a cluster holds is never read")
    if any(looks_secret(name) for name in names):
        raise Unreadable("a name like this often stands before a credential, so its value is not kept")
    try:
        place, text = json.loads(said["place"].out), said["object"].out
        if field == OBJECT and not text.strip():
            return {"server": str(place["clusters"][0]["cluster"]["server"]), "namespace": "", OBJECT: None}
        thing = json.loads(text)
        return {
            "server": str(place["clusters"][0]["cluster"]["server"]),
            "namespace": str(thing["metadata"].get("namespace", "")),
            field: _FIELDS[field](thing, names),
        }
    except Unreadable:
        raise
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


def _holds_credential(value: object) -> bool:
    """Whether a variable or an entry of a map of data with a name like a credential's has a value there."""
    if isinstance(value, list):
        return any(map(_holds_credential, value))
    if not isinstance(value, dict):
        # What `apply` was given is kept as JSON in an annotation.
        return isinstance(value, str) and value.startswith("{") and _holds_credential(_read(value))
    named = bool(value.get("value")) and looks_secret(str(value.get("name", "")))
    data = value.get("data")
    entries = data.items() if isinstance(data, dict) else ()
    return (
        named
        or any(looks_secret(str(name)) and one for name, one in entries)
        or any(map(_holds_credential, value.values()))
    )


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _object(thing: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """The object as one would write it: without its status and what the server counts and adds."""
    metadata = {name: value for name, value in thing["metadata"].items() if name not in _BY_SERVER}
    if metadata.get("ownerReferences"):
        raise Unreadable("another object owns it and makes it anew")
    if _holds_credential(thing):
        raise Unreadable("it holds what looks like a credential, so the object is not kept")
    held = {name: value for name, value in (metadata.get("annotations") or {}).items() if name != _REVISION}
    metadata = {**metadata, "annotations": held} if held else {**metadata, "annotations": None}
    bare = {name: value for name, value in metadata.items() if value is not None}
    return {**{name: value for name, value in thing.items() if name != "status"}, "metadata": bare}


_FIELDS = {
    OBJECT: _object,
    "replicas": _replicas,
    "images": _images,
    "unschedulable": _unschedulable,
    "labels": _labels,
    "annotations": _annotations,
}


def _way_back(key: str, before: State, now: State) -> WayBack:
    field, target, _, where = _words(key)
    was, has = before[field], now[field]
    same = ("server",) if field == OBJECT and None in (was, has) else ("server", "namespace")
    if any(before[name] != now[name] for name in same):
        return WayBack((), (ELSEWHERE,))
    if field == OBJECT:
        if was is None:
            return WayBack((), ("that it was not there",))
        verb = "create" if has is None else "replace"
        return WayBack((Inverse(joined(["kubectl", verb, "-f", "-", *where]), json.dumps(was)),))
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
