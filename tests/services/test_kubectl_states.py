"""What kubectl set on an object goes back: a stub program of the documented words and shapes, the whole walk."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

import core
import execution
from acting import approving, snapshots, states
from guard.hands import environment
from guard.hands.services import FAMILIES, Said, Unreadable, kubectl
from guard.saved import State as SavedState
from guard.types import Actor, PlanItem, Request
from tests.services import kubectl_stub

KUBECTL = FAMILIES["kubectl"]
META = {"resourceVersion": "41", "uid": "7c1f", "generation": 2, "creationTimestamp": "2026-01-05T09:00:00Z"}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"tier": "front"}, **META},
    "spec": {
        "replicas": 2,
        "template": {
            "spec": {
                "containers": [
                    {"name": "app", "image": "app:1", "env": [{"name": "DB_PASSWORD", "value": "hunter2-long"}]},
                    {"name": "log", "image": "log:1"},
                ]
            }
        },
    },
    "status": {"replicas": 2, "observedGeneration": 2},
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", **META}, "spec": {"podCIDR": "10.1.0.0/24"}}
PLAIN = {
    **WEB,
    "metadata": {**WEB["metadata"], "name": "plain"},
    "spec": {"replicas": 2, "template": {"spec": {"containers": [{"name": "app", "image": "app:1"}]}}},
}
CHANGES = {
    "replicas deploy/web --namespace=shop": "kubectl scale deploy/web --replicas=0 --namespace=shop",
    "images deploy/web --namespace=shop": "kubectl set image deploy/web app=app:2 --namespace=shop",
    "unschedulable node/n1": "kubectl cordon n1",
    "labels deploy/web tier new --namespace=shop": (
        "kubectl label deploy/web --overwrite tier=back new=1 --namespace=shop"
    ),
    "annotations deploy/web by --namespace=shop": "kubectl annotate deploy/web by=x --namespace=shop",
    "object deploy/plain --namespace=shop": "kubectl delete deploy/plain --namespace=shop",
    "object deployment/plain --namespace=shop": (
        """kubectl patch deployment/plain --namespace=shop --patch='{"replicas": 7}'"""
    ),
}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A stub kubectl in a folder of programs, and the cluster that KUBECONFIG names."""
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    stub = pathlib.Path(kubectl_stub.__file__)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I {stub} "$@"\n')
    program.chmod(0o755)
    file = tmp_path / "cluster.json"
    file.write_text(
        json.dumps(
            {
                "server": "https://blue:6443",
                "objects": {"deployment/web": WEB, "deployment/plain": PLAIN, "node/n1": NODE},
            }
        )
    )
    monkeypatch.setenv("KUBECONFIG", str(file))
    monkeypatch.setattr(environment, "PATH", f"{program.parent}{os.pathsep}{environment.PATH}")
    return file


def changed(change, folder, guard):
    """The snapshot that the plan of a change took before it ran, and its request."""
    request = Request(change, cwd=str(folder), actor=Actor.PERSON)
    plan = approving.plan_of(request, core.check(change, cwd=str(folder), actor=Actor.PERSON))
    foreseen = snapshots.foreseen(plan, guard)
    assert not foreseen.unsaved
    assert ["not proven here" in words for _, words in foreseen.states] == [True]
    snapshot = execution.snapshot(plan, guard, cwd=str(folder), reason="exec")
    subprocess.run(["bash", "-ec", change], check=True, env=environment.build_environment(["KUBECONFIG"]).env)
    snapshots.record_after(snapshot, guard)
    return snapshot, request


def objects(file):
    """The cluster without what its server counts."""
    held = json.loads(file.read_text())
    for thing in held["objects"].values():
        for counted in ("resourceVersion", "uid", "generation", "creationTimestamp"):
            del thing["metadata"][counted]
        thing.pop("status", None)
        thing["metadata"].setdefault("annotations", {})
    return held


@pytest.mark.parametrize("key", CHANGES)
def test_object_goes_back_to_equal_and_forth_again(key, cluster, tmp_path):
    guard = execution.open_guard()
    before = objects(cluster)
    snapshot, request = changed(CHANGES[key], tmp_path, guard)
    after = objects(cluster)
    assert after != before
    back = execution.plan_rollback(snapshot, guard)
    assert [(step.label, step.proven) for step in back.states] == [(f"kubectl {key}", False)]
    done = execution.apply_rollback(back, request, guard, consent="tty")
    assert (done.status, objects(cluster)) == ("succeeded", before), done.results
    again = execution.plan_rollback(done.snapshot, guard)
    redone = execution.apply_rollback(again, request, guard, consent="tty")
    if "kubectl delete" in CHANGES[key]:
        # Deleting is no way back: who wants that asks for it.
        assert again.states[0].lost == ("that it was not there",)
        assert (redone.status, objects(cluster)) == ("failed", before)
        return
    assert (redone.status, objects(cluster)) == ("succeeded", after), redone.results


def test_what_somebody_set_since_is_a_conflict_and_stays(cluster, tmp_path):
    guard = execution.open_guard()
    snapshot, _ = changed(CHANGES["replicas deploy/web --namespace=shop"], tmp_path, guard)
    held = json.loads(cluster.read_text())
    held["objects"]["deployment/web"]["spec"]["replicas"] = 9
    cluster.write_text(json.dumps(held))
    back = execution.plan_rollback(snapshot, guard)
    assert [(step.state, step.commands) for step in back.states] == [(SavedState.CHANGED, ())]


def test_another_cluster_is_never_changed():
    before = {"server": "https://blue:6443", "namespace": "shop", "replicas": 2}
    for other in ({"server": "https://green:6443"}, {"namespace": "prod"}):
        back = KUBECTL.way_back("replicas deploy/web", before, {**before, **other, "replicas": 0})
        assert (back.commands, back.lost) == ((), (kubectl.ELSEWHERE,))


def test_only_the_field_is_kept_and_no_credential_beside_it(cluster):
    for key in CHANGES:
        (kept,), missed = states.outputs([PlanItem("state", f"kubectl {key}")], execution.open_guard())
        assert not missed
        assert b"hunter2" not in kept.data


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("annotations secret/x by", "what a secret of a cluster holds is never read"),
        ("annotations secrets.v1/x by", "what a secret of a cluster holds is never read"),
        ("annotations deploy/web api_token --namespace=shop", "a name like this"),
        ("replicas deploy/gone --namespace=shop", "NotFound"),
        ("replicas node/n1", "kubectl says nothing about replicas of node/n1"),
        ("object deploy/web --namespace=shop", "it holds what looks like a credential, so the object is not kept"),
        ("unschedulable deploy/web --namespace=shop", "kubectl says nothing about unschedulable"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_reason(key, why, cluster):
    kept, missed = states.outputs([PlanItem("state", f"kubectl {key}")], execution.open_guard())
    assert not kept
    assert why in missed["state", f"kubectl {key}"]


def test_images_of_every_documented_kind_are_found():
    pod = {"initContainers": [{"name": "init", "image": "i:1"}], "containers": [{"name": "app", "image": "a:1"}]}
    shapes = {
        "Pod": pod,
        "DaemonSet": {"template": {"spec": pod}},
        "CronJob": {"jobTemplate": {"spec": {"template": {"spec": pod}}}},
    }
    place = Said(0, json.dumps({"clusters": [{"name": "c", "cluster": {"server": "https://blue:6443"}}]}))
    for kind, spec in shapes.items():
        thing = Said(0, json.dumps({"kind": kind, "metadata": {"name": "x", "namespace": "shop"}, "spec": spec}))
        state = KUBECTL.parse(f"images {kind}/x", {"place": place, "object": thing})
        assert state["images"] == {"init": "i:1", "app": "a:1"}


def test_object_is_kept_without_what_the_server_counts_and_is_made_or_replaced():
    place = Said(0, json.dumps({"clusters": [{"name": "c", "cluster": {"server": "https://blue:6443"}}]}))

    def state(thing):
        text = json.dumps(thing) if thing else ""
        return KUBECTL.parse("object deploy/plain", {"place": place, "object": Said(0, text)})

    kept = state(PLAIN)["object"]
    assert "status" not in kept
    assert kept["metadata"] == {"name": "plain", "namespace": "shop", "labels": {"tier": "front"}}
    (made,) = KUBECTL.way_back("object deploy/plain", state(PLAIN), state(None)).commands
    assert (made.command, json.loads(made.input)) == ("kubectl create -f -", kept)
    other = state({**PLAIN, "spec": {"replicas": 9}})
    (put,) = KUBECTL.way_back("object deploy/plain", state(PLAIN), other).commands
    assert (put.command, json.loads(put.input)) == ("kubectl replace -f -", kept)
    owned = {**PLAIN, "metadata": {**PLAIN["metadata"], "ownerReferences": [{"kind": "ReplicaSet"}]}}
    with pytest.raises(Unreadable, match="makes it anew"):
        state(owned)


@pytest.mark.parametrize(
    "held",
    [
        {"data": {"db_password": "x"}},
        {"metadata": {**PLAIN["metadata"], "annotations": {"last": '{"spec": [{"name": "API_TOKEN", "value": "x"}]}'}}},
    ],
)
def test_object_with_a_credential_in_it_is_not_kept(held):
    place = Said(0, json.dumps({"clusters": [{"name": "c", "cluster": {"server": "https://blue:6443"}}]}))
    with pytest.raises(Unreadable, match="looks like a credential"):
        KUBECTL.parse("object cm/x", {"place": place, "object": Said(0, json.dumps({**PLAIN, **held}))})


def test_words_of_a_label_never_become_shell():
    before = {"server": "s", "namespace": "", "annotations": {"by": "$(reboot) x", "new": None}}
    back = KUBECTL.way_back("annotations pod/a by new", before, {**before, "annotations": {"by": None, "new": "1"}})
    assert [one.command for one in back.commands] == ["kubectl annotate pod/a --overwrite 'by=$(reboot) x' new-"]
