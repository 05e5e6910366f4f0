"""Lives of claims and volumes. Volumes belong to no namespace: each story's have its name before theirs."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import Object, name_of
from mews.kube.api.resources import (
    EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
)
from mews.kube.client.port import Patch
from tests.kube.emulated.controllers.staging import Stage, plain

_CLAIMS, _VOLUMES = PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES


def _volume(stage: Stage, **spec: Any) -> dict[str, Any]:
    base = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": stage.namespace}
    return {**base, "persistentVolumeReclaimPolicy": "Retain", "nfs": {"server": "x", "path": "/x"}, **spec}


async def _volumes(stage: Stage, **specs: dict[str, Any]) -> None:
    for name, spec in specs.items():
        body = {"metadata": {"name": f"{stage.namespace}-{name}"}, "spec": _volume(stage, **spec)}
        await stage.kube.create(_VOLUMES, body)


async def _claim(stage: Stage, name: str, size: str = "1Gi", **spec: Any) -> None:
    base = {"accessModes": ["ReadWriteOnce"], "storageClassName": stage.namespace}
    await stage.make(_CLAIMS, name, spec={**base, "resources": {"requests": {"storage": size}}, **spec})


async def _phase(stage: Stage, name: str, phase: str) -> bool:
    if name.startswith("pv-"):
        obj = await stage.kube.get(_VOLUMES, f"{stage.namespace}-{name}")
    else:
        obj = await stage.get(_CLAIMS, name)
    return bool(obj["status"]["phase"] == phase)


async def _turn(stage: Stage, **phases: str) -> None:
    """Wait until claims and volumes (``pv_a`` is ``pv-a``) have these phases, and note the volumes too."""
    wanted = {name.replace("_", "-"): phase for name, phase in phases.items()}
    words = " ".join(f"{name} {phase}" for name, phase in wanted.items())

    async def there() -> bool:
        return all([await _phase(stage, name, phase) for name, phase in wanted.items()])

    await stage.until(words, there)
    volumes = (await stage.kube.list(_VOLUMES)).items
    own = [each for each in volumes if name_of(each).startswith(f"{stage.namespace}-")]
    stage.seen.append((words, sorted(json.dumps(_plain(each), sort_keys=True) for each in own)))


def _plain(volume: Object) -> Any:
    shown = plain(_VOLUMES, volume)
    (shown["spec"].get("claimRef") or {}).pop("resourceVersion", None)
    return shown


async def _said(stage: Stage, reason: str) -> None:
    async def there() -> bool:
        return any(event["reason"] == reason for event in await stage.all(EVENTS))

    await stage.until(reason, there)


async def binds_the_smallest(stage: Stage) -> None:
    big, small = {"capacity": {"storage": "5Gi"}}, {"capacity": {"storage": "2Gi"}}
    await _volumes(stage, **{"pv-a": big, "pv-b": small, "pv-c": {"capacity": {"storage": "500Mi"}}})
    await _turn(stage, pv_a="Available", pv_b="Available", pv_c="Available")
    await _claim(stage, "c")
    await _turn(stage, c="Bound", pv_b="Bound", pv_a="Available")
    await stage.kube.delete(_CLAIMS, "c", namespace=stage.namespace)
    await _turn(stage, pv_b="Released")


async def prefers_few_modes(stage: Stage) -> None:
    many = {"accessModes": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"], "capacity": {"storage": "1Gi"}}
    await _volumes(stage, **{"pv-a": many, "pv-b": {"capacity": {"storage": "9Gi"}}})
    await _turn(stage, pv_a="Available", pv_b="Available")
    await _claim(stage, "c")
    await _turn(stage, c="Bound", pv_b="Bound")
    await _claim(stage, "d", accessModes=["ReadWriteMany"])
    await _turn(stage, d="Bound", pv_a="Bound")


async def heeds_selectors(stage: Stage) -> None:
    await _volumes(stage, **{"pv-a": {}, "pv-b": {}})
    label = {"metadata": {"labels": {"tier": "gold"}}}
    await stage.kube.patch(_VOLUMES, f"{stage.namespace}-pv-b", label, kind=Patch.MERGE)
    await _turn(stage, pv_a="Available", pv_b="Available")
    await _claim(stage, "c", selector={"matchLabels": {"tier": "gold"}})
    await _turn(stage, c="Bound", pv_b="Bound")


async def asks_for_a_volume(stage: Stage) -> None:
    await _volumes(stage, **{"pv-a": {}, "pv-b": {"capacity": {"storage": "9Gi"}}})
    await _turn(stage, pv_a="Available", pv_b="Available")
    await _claim(stage, "large", size="5Gi", volumeName=f"{stage.namespace}-pv-a")
    await _said(stage, "VolumeMismatch")
    await _claim(stage, "right", volumeName=f"{stage.namespace}-pv-b")
    await _turn(stage, right="Bound", pv_b="Bound", large="Pending")


async def keeps_promises(stage: Stage) -> None:
    promised = {"claimRef": {"name": "c", "namespace": stage.namespace}, "capacity": {"storage": "9Gi"}}
    await _volumes(stage, **{"pv-a": {}, "pv-b": promised})
    await _turn(stage, pv_a="Available", pv_b="Available")
    await _claim(stage, "c")
    await _turn(stage, c="Bound", pv_b="Bound", pv_a="Available")


async def loses_its_volume(stage: Stage) -> None:
    await _volumes(stage, **{"pv-a": {}})
    await _turn(stage, pv_a="Available")
    await _claim(stage, "c")
    await _turn(stage, c="Bound", pv_a="Bound")
    name = f"{stage.namespace}-pv-a"
    await stage.kube.delete(_VOLUMES, name)
    await stage.kube.patch(_VOLUMES, name, {"metadata": {"finalizers": None}}, kind=Patch.MERGE)
    await _turn(stage, c="Lost")


async def cannot_delete(stage: Stage) -> None:
    places = {
        "pv-a": {},
        "pv-b": {"nfs": None, "hostPath": {"path": "/somewhere"}},
        "pv-c": {"nfs": None, "iscsi": {"targetPortal": "x", "iqn": "iqn.2001-04.com.example:x", "lun": 0}},
    }
    for name, place in places.items():
        await _volumes(stage, **{name: {**place, "persistentVolumeReclaimPolicy": "Delete"}})
        await _turn(stage, **{name.replace("-", "_"): "Available"})
        await _claim(stage, f"c{name[-1]}")
        await _turn(stage, **{f"c{name[-1]}": "Bound", name.replace("-", "_"): "Bound"})
        await stage.kube.delete(_CLAIMS, f"c{name[-1]}", namespace=stage.namespace)
        await _turn(stage, **{name.replace("-", "_"): "Failed"})


async def deletes(stage: Stage) -> None:
    place = {"nfs": None, "hostPath": {"path": "/tmp/mews-no-such-folder"}}
    await _volumes(stage, **{"pv-a": {**place, "persistentVolumeReclaimPolicy": "Delete"}})
    await _turn(stage, pv_a="Available")
    await _claim(stage, "c")
    await _turn(stage, c="Bound", pv_a="Bound")
    await stage.kube.delete(_CLAIMS, "c", namespace=stage.namespace)

    async def gone() -> bool:
        try:
            await stage.kube.get(_VOLUMES, f"{stage.namespace}-pv-a")
        except NotFoundError:
            return True
        return False

    await stage.until("gone", gone)


async def waits_for_a_consumer(stage: Stage) -> None:
    body = {"metadata": {"name": stage.namespace}, "provisioner": "kubernetes.io/no-provisioner"}
    await stage.kube.create(STORAGE_CLASSES, {**body, "volumeBindingMode": "WaitForFirstConsumer"})
    await _volumes(stage, **{"pv-a": {}})
    await _turn(stage, pv_a="Available")
    await asyncio.sleep(1.0)
    await _claim(stage, "c")
    await _said(stage, "WaitForFirstConsumer")
    await _turn(stage, c="Pending", pv_a="Available")


async def asks_provisioners(stage: Stage) -> None:
    name = stage.namespace
    await _claim(stage, "no-class-there")
    await _said(stage, "ProvisioningFailed")
    await stage.kube.create(STORAGE_CLASSES, {"metadata": {"name": f"{name}-x"}, "provisioner": "example.com/x"})
    await stage.kube.create(
        STORAGE_CLASSES, {"metadata": {"name": f"{name}-none"}, "provisioner": "kubernetes.io/no-provisioner"}
    )
    await asyncio.sleep(1.0)
    await _claim(stage, "outside", storageClassName=f"{name}-x")
    await _said(stage, "ExternalProvisioning")
    await _claim(stage, "nobody", storageClassName=f"{name}-none")
    await _claim(stage, "no-class", storageClassName="")
    await _said(stage, "FailedBinding")
    await _turn(stage, outside="Pending", nobody="Pending", no_class="Pending")


STORIES = (
    binds_the_smallest,
    prefers_few_modes,
    heeds_selectors,
    asks_for_a_volume,
    keeps_promises,
    loses_its_volume,
    cannot_delete,
    deletes,
    waits_for_a_consumer,
    asks_provisioners,
)
