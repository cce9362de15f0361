"""A kubectl of few verbs over a JSON file: KUBECONFIG names it. Shapes and words as the kubectl reference has them."""

import json
import os
import pathlib
import sys

KINDS = {"deploy": "deployment", "deployments": "deployment", "pods": "pod", "no": "node"}


def main(words):
    options = [word for word in words if word.startswith("--")]
    values = dict(word.lstrip("-").split("=", 1) for word in options if "=" in word)
    plain = [word for word in words if not word.startswith("--")]
    file = pathlib.Path(values.get("kubeconfig") or os.environ["KUBECONFIG"])
    cluster = json.loads(file.read_text())
    if plain[:2] == ["config", "view"]:
        return {"kind": "Config", "clusters": [{"name": "c", "cluster": {"server": cluster["server"]}}]}
    verb = plain.pop(0)
    if verb in ("create", "replace"):
        thing = json.load(sys.stdin)
        place = f"{thing['kind'].lower()}/{thing['metadata']['name']}"
        if (place in cluster["objects"]) is (verb == "create"):
            sys.exit(f"Error from server: {place}")
        counted = {"uid": "9d", "generation": 1, "creationTimestamp": "2026-01-06T09:00:00Z", "resourceVersion": "9"}
        cluster["objects"][place] = {**thing, "metadata": {**thing["metadata"], **counted}, "status": {}}
        file.write_text(json.dumps(cluster))
        return None
    if verb == "set":
        plain.pop(0)
    target = plain.pop(0)
    kind, name = target.split("/") if "/" in target else ("node", target)
    thing = cluster["objects"].get(f"{KINDS.get(kind, kind)}/{name}")
    if thing is None or values.get("namespace", "default") != thing["metadata"].get("namespace", "default"):
        if "--ignore-not-found" in options:
            sys.exit(0)
        sys.exit(f'Error from server (NotFound): {kind} "{name}" not found')
    if verb == "get":
        return thing
    if verb == "scale":
        thing["spec"]["replicas"] = int(values["replicas"])
    elif verb == "set":
        new = dict(word.split("=", 1) for word in plain)
        for one in thing["spec"]["template"]["spec"]["containers"]:
            one["image"] = new.get(one["name"], one["image"])
    elif verb == "patch":
        thing["spec"].update(json.loads(values["patch"]))
    elif verb == "delete":
        del cluster["objects"][f"{KINDS.get(kind, kind)}/{name}"]
    elif verb == "cordon":
        thing["spec"]["unschedulable"] = True
    elif verb == "uncordon":
        thing["spec"].pop("unschedulable", None)
    elif verb in ("label", "annotate"):
        held = thing["metadata"].setdefault("labels" if verb == "label" else "annotations", {})
        for word in plain:
            name, mark, value = word.partition("=")
            if not mark:
                held.pop(name.removesuffix("-"), None)
            elif name in held and "--overwrite" not in options:
                sys.exit(f"error: '{name}' already has a value ({held[name]}), and --overwrite is false")
            else:
                held[name] = value
    else:
        sys.exit(f"error: unknown command {verb}")
    metadata = thing["metadata"]
    metadata["resourceVersion"] = str(int(metadata["resourceVersion"]) + 1)
    file.write_text(json.dumps(cluster))
    return None


if __name__ == "__main__":
    answer = main(sys.argv[1:])
    print("done" if answer is None else json.dumps(answer))
