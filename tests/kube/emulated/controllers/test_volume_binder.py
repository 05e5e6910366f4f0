"""Claims and volumes come together; in virtual time. What Kubernetes does too is told in ``volume_stories``."""

from __future__ import annotations

from typing import Any

from mews.kube.api.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SERVICE_ACCOUNTS,
    STORAGE_CLASSES,
)
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


def test_a_volume_of_another_node_is_not_taken_for_a_pod_on_this_one() -> None:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["east"]}]}
    volume = _volume("a", nodeAffinity={"required": {"nodeSelectorTerms": [term]}})
    nodes = [{"metadata": {"name": "n", "labels": {"zone": zone}}} for zone in ("west", "east")]
    assert [best_match(_claim(), [volume], waits=False, node=node) for node in nodes] == [None, volume]


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


async def a_pod_with_a_node_is_a_consumer(stage: Stage) -> None:
    body = {"metadata": {"name": "late"}, "provisioner": "kubernetes.io/no-provisioner"}
    await stage.kube.create(STORAGE_CLASSES, {**body, "volumeBindingMode": "WaitForFirstConsumer"})
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late"}
    source = {"hostPath": {"path": "/tmp/x"}, "capacity": {"storage": "1Gi"}}
    await stage.kube.create(PERSISTENT_VOLUMES, {"metadata": {"name": "v"}, "spec": {**spec, **source}})
    requests = {"requests": {"storage": "1Gi"}}
    await stage.make(PERSISTENT_VOLUME_CLAIMS, "c", spec={**spec, "resources": requests})

    async def phase(wanted: str) -> bool:
        return bool((await stage.get(PERSISTENT_VOLUME_CLAIMS, "c"))["status"]["phase"] == wanted)

    await stage.until("pending", lambda: phase("Pending"))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    await stage.until("an account", lambda: _has_account(stage))
    await stage.make(PODS, "p", spec={"containers": [{"name": "c", "image": "x"}], "volumes": volumes})
    await stage.until("bound", lambda: phase("Bound"))


async def _has_account(stage: Stage) -> bool:
    return any(each["metadata"]["name"] == "default" for each in await stage.all(SERVICE_ACCOUNTS))


def test_a_claim_that_waits_is_bound_once_a_pod_that_uses_it_has_a_node() -> None:
    told = ours([a_pod_with_a_node_is_a_consumer])
    turns, _ = told[title(a_pod_with_a_node_is_a_consumer)]
    assert [what for what, _ in turns] == ["pending", "an account", "bound"]
