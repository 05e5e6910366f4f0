"""Waits for a pod's volumes before the pod starts (pkg/kubelet/volumemanager): without them it stays ContainerCreating.

Nothing is mounted here; what is looked at is what the API must have: claims and their volumes, ConfigMaps, Secrets.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.errors import ApiError, NotFoundError, UnavailableError
from mews.kube.api.finalizers import IN_USE
from mews.kube.api.objects import Object, all_containers_of, is_deleting, name_of, namespace_of, uid_of
from mews.kube.api.resources import CONFIGMAPS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS, Resource
from mews.kube.api.volumes import not_made_for
from mews.kube.client.port import KubeApi
from mews.kube.emulated.kubelet.tools import Tools
from mews.kube.events import pod_reference

_ACCOUNT = "kube-api-access-"
"""The volumes that admission adds: their parts are made by the API server and by controllers."""
_FIRST_S, _LAST_S = 0.5, 122.0
"""Between two attempts to mount a volume (pkg/util/goroutinemap/exponentialbackoff)."""
_PATIENCE_S = 123.0
"""podAttachAndMountTimeout."""
_SOURCES: Mapping[str, tuple[Resource, str]] = {
    "configMap": (CONFIGMAPS, "configmap references non-existent config key"),
    "secret": (SECRETS, "references non-existent secret key"),
}

Pause = Callable[[float], Awaitable[bool]]
"""Let so many emulated seconds pass; True where the pod is to end meanwhile."""


class MountFailure(Struct, frozen=True):
    """Why a volume cannot be had; ``unclear``: it is not even known what it is, as its claim is not bound."""

    volume: str
    text: str
    unclear: bool = False


async def mounted(tools: Tools, pod: Object, pause: Pause) -> bool:
    """Wait until every volume that a container mounts can be had; False where the pod is to end before that."""
    volumes = list(_waited_for(pod))
    while volumes:
        waited_s, delay_s = 0.0, _FIRST_S
        while True:
            failures = [failure for volume in volumes if (failure := await _failure(tools.context.kube, pod, volume))]
            if not failures:
                return True
            if failures[0].unclear or waited_s >= _PATIENCE_S:
                break
            for failure in failures:
                text = f'MountVolume.SetUp failed for volume "{failure.volume}" : {failure.text}'
                tools.events.event(pod_reference(pod), "Warning", "FailedMount", text)
            if await pause(min(delay_s, _PATIENCE_S - waited_s)):
                return False
            waited_s, delay_s = waited_s + delay_s, min(2 * delay_s, _LAST_S)
        tools.events.event(pod_reference(pod), "Warning", "FailedMount", _given_up(failures))
        if await pause(tools.timings.retry.draw(tools.rng)):
            return False
    return True


def _given_up(failures: list[MountFailure]) -> str:
    names = " ".join(sorted(failure.volume for failure in failures))
    unclear = " ".join(sorted(failure.volume for failure in failures if failure.unclear))
    why = "; ".join(failure.text for failure in failures if failure.unclear) or "context deadline exceeded"
    lists = f"unmounted volumes=[{names}], unattached volumes=[], failed to process volumes=[{unclear}]"
    return f"Unable to attach or mount volumes: {lists}: {why}"


def _waited_for(pod: Object) -> Iterator[Mapping[str, Any]]:
    used = {
        str(mount["name"])
        for container in all_containers_of(pod)
        for mount in (*(container.get("volumeMounts") or ()), *(container.get("volumeDevices") or ()))
    }
    for volume in pod["spec"].get("volumes") or ():
        is_account = volume["name"].startswith(_ACCOUNT) and "projected" in volume
        if volume["name"] in used and not is_account and not volume.keys().isdisjoint(_LOOKED_AT):
            yield volume


_LOOKED_AT = ("persistentVolumeClaim", "ephemeral", "configMap", "secret", "projected")


async def _failure(kube: KubeApi, pod: Object, volume: Mapping[str, Any]) -> MountFailure | None:
    name = str(volume["name"])
    if "persistentVolumeClaim" in volume or "ephemeral" in volume:
        text = await _claim_failure(kube, pod, volume)
        return MountFailure(name, text, unclear=True) if text else None
    for kind, source in _sources(volume):
        text = await _source_failure(kube, namespace_of(pod), kind, source)
        if text:
            return MountFailure(name, text)
    return None


def _sources(volume: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for part in ((volume.get("projected") or {}).get("sources") or ()) if "projected" in volume else (volume,):
        for kind in _SOURCES:
            if kind in part:
                yield kind, part[kind] or {}


async def _source_failure(kube: KubeApi, namespace: str, kind: str, source: Mapping[str, Any]) -> str:
    resource, no_key = _SOURCES[kind]
    name = str(source.get("secretName") or source.get("name") or "")
    try:
        obj = await kube.get(resource, name, namespace=namespace)
    except NotFoundError:
        return "" if source.get("optional") else f'{kind.lower()} "{name}" not found'
    except (ApiError, UnavailableError) as error:
        return str(error)
    keys = {*(obj.get("data") or {}), *(obj.get("binaryData") or {})}
    absent = next((item["key"] for item in source.get("items") or () if item["key"] not in keys), None)
    return "" if absent is None or source.get("optional") else f"{no_key}: {absent}"


async def _claim_failure(kube: KubeApi, pod: Object, volume: Mapping[str, Any]) -> str:
    own = "ephemeral" in volume
    name = f"{name_of(pod)}-{volume['name']}" if own else str(volume["persistentVolumeClaim"]["claimName"])
    start = f"error processing PVC {namespace_of(pod)}/{name}: "
    try:
        claim = await kube.get(PERSISTENT_VOLUME_CLAIMS, name, namespace=namespace_of(pod))
    except (ApiError, UnavailableError) as error:
        return f"{start}failed to fetch PVC from API server: {error}"
    if is_deleting(claim) and IN_USE[PERSISTENT_VOLUME_CLAIMS] not in (claim["metadata"].get("finalizers") or ()):
        return f"{start}PVC is being deleted"
    if (claim.get("status") or {}).get("phase") != "Bound":
        return f"{start}PVC is not bound"
    if own and (why := not_made_for(pod, claim)):
        return why
    text = await _volume_failure(kube, claim)
    return f"{start}{text}" if text else ""


async def _volume_failure(kube: KubeApi, claim: Object) -> str:
    name = str(claim["spec"].get("volumeName") or "")
    if not name:
        return "PVC has empty pvc.Spec.VolumeName"
    try:
        volume = await kube.get(PERSISTENT_VOLUMES, name)
    except (ApiError, UnavailableError) as error:
        return f"failed to fetch PV {name} from API server: {error}"
    given = volume["spec"].get("claimRef")
    if given is None:
        return f"found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
    if given.get("uid") != uid_of(claim):
        uids = f"pv.Spec.ClaimRef.UID {given.get('uid', '')} does not point to claim.UID {uid_of(claim)}"
        return f"found PV object {name} but its {uids}"
    return ""
