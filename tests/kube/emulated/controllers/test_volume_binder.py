"""Claims and volumes come together; in virtual time. What Kubernetes does too is told in ``volume_stories``."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mews.kube.api.objects import annotations_of
from mews.kube.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICE_ACCOUNTS,
    STORAGE_CLASSES,
)
from mews.kube.api.volumes import PROVISIONERS, SELECTED_NODE, smallest_match
from mews.kube.emulated.controllers.volumebinder.policy import best_match, default_class, misfit, undeletable
from tests.kube.emulated.controllers.staging import Stage
from tests.kube.emulated.controllers.telling import ours, title
from tests.kube.emulated.controllers.volume_stories import STORIES


def _volume(name: str, size: str = "1Gi", **spec: Any) -> dict[str, Any]:
    base = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]}
    return {"metadata": {"name": name}, "spec": {**base, **spec}, "status": {"phase": "Available"}}


def _claim(**spec: Any) -> dict[str, Any]:
    base = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": "c", "namespace": "n", "uid": "u"}, "spec": {**base, **spec}}


def test_every_life_of_a_claim_comes_to_its_end() -> None:
    told = ours(STORIES)
    assert set(told) == {title(story) for story in STORIES}


def test_a_claim_gets_the_smallest_volume_that_is_large_enough_and_of_its_class() -> None:
    volumes = [_volume("a", "5Gi"), _volume("b", "2Gi"), _volume("c", "500Mi"), _volume("d", storageClassName="x")]
    found = best_match(_claim(), volumes, waits=False)
    assert found is not None and found["metadata"]["name"] == "b"
    assert best_match(_claim(), volumes, waits=True) is None


@pytest.mark.parametrize(
    ("key", "zone", "found"), [("matchExpressions", "west", False), ("matchExpressions", "east", True)]
)
def test_a_volume_of_another_node_is_not_taken_for_a_pod_on_this_one(key: str, zone: str, found: bool) -> None:
    term = {key: [{"key": "zone", "operator": "In", "values": ["east"]}]}
    volume = _volume("a", nodeAffinity={"required": {"nodeSelectorTerms": [term]}})
    node = {"metadata": {"name": "n", "labels": {"zone": zone}}}
    assert smallest_match(_claim(), [volume], waits=True, node=node) == (volume if found else None)


def test_what_does_not_fit_is_named() -> None:
    assert misfit(_volume("a", "1Mi"), _claim()) == "requested PV is too small"
    assert misfit(_volume("a", volumeMode="Block"), _claim()) == "incompatible volumeMode"
    assert misfit(_volume("a"), _claim(accessModes=["ReadWriteMany"])) == "incompatible accessMode"
    assert misfit(_volume("a"), _claim()) == ""


def test_data_is_removed_where_a_deleter_knows_how_and_nowhere_else() -> None:
    assert undeletable(_volume("a", hostPath={"path": "/tmp/x"})) == ""
    assert "only supports /tmp/.+" in str(undeletable(_volume("a", hostPath={"path": "/data"})))
    assert "no deletable volume plugin matched" in str(undeletable(_volume("a", nfs={"server": "s"})))
    assert undeletable(_volume("a", csi={"driver": "d"})) is None


def test_the_newest_default_class_counts() -> None:
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    classes = [
        {"metadata": {"name": name, "annotations": notes, "creationTimestamp": f"2024-01-0{day}T00:00:00Z"}}
        for name, notes, day in (("old", mark, 1), ("new", mark, 2), ("other", {}, 3))
    ]
    assert default_class(classes) is classes[1]


def test_a_volume_that_is_promised_to_the_claim_is_taken_or_none() -> None:
    reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}}
    promised = _volume("a", "9Gi", claimRef={"name": "c", "namespace": "n"}, nodeAffinity=reach)
    volumes = [promised, _volume("b")]
    there, elsewhere = ({"metadata": {"name": "n", "labels": labels}} for labels in ({"zone": "east"}, {}))
    assert smallest_match(_claim(), volumes, waits=True, node=None) is promised
    assert smallest_match(_claim(), volumes, waits=True, node=there) is promised
    assert smallest_match(_claim(), volumes, waits=True, node=elsewhere) is None


async def a_claim_waits_for_the_scheduler(stage: Stage) -> None:
    body = {"metadata": {"name": "late"}, "provisioner": "example.com/x"}
    await stage.kube.create(STORAGE_CLASSES, {**body, "volumeBindingMode": "WaitForFirstConsumer"})
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
    requests = {"requests": {"storage": "1Gi"}}
    await stage.make(PERSISTENT_VOLUME_CLAIMS, "c", spec={**spec, "resources": requests})
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    await stage.until("an account", lambda: _has_account(stage))
    placed = {"containers": [{"name": "c", "image": "x"}], "volumes": volumes, "nodeName": "stage-1"}
    await stage.make(PODS, "p", spec=placed)

    async def asked() -> bool:
        claim = await stage.get(PERSISTENT_VOLUME_CLAIMS, "c")
        return PROVISIONERS[-1] in annotations_of(claim)

    await asyncio.sleep(20.0)
    assert not await asked()  # a pod with a node is no word of the scheduler's
    await stage.change(PERSISTENT_VOLUME_CLAIMS, "c", {"metadata": {"annotations": {SELECTED_NODE: "stage-1"}}})
    await stage.until("asked", asked)


async def _has_account(stage: Stage) -> bool:
    return any(each["metadata"]["name"] == "default" for each in await stage.all(SERVICE_ACCOUNTS))


def test_a_volume_is_asked_for_once_the_scheduler_has_named_a_node() -> None:
    told = ours([a_claim_waits_for_the_scheduler])
    turns, _ = told[title(a_claim_waits_for_the_scheduler)]
    assert [what for what, _ in turns] == ["an account", "asked"]
