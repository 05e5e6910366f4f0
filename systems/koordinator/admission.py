"""What Koordinator's webhooks answer: pods with devices as they are created, and who binds them. Pure.

A pod asks for devices by today's names or the design's, as requests alone or as limits. An API server takes extended
resources with limits equal to requests only, and never changes them later (contract koordinator.md sections 1 and 2,
measured): so the amounts that the scheduler is to translate are written when the pod is created. Memory stands in the
annotation alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, annotations_of, containers_of, init_containers_of, name_of, namespace_of
from mews.kube.api.quantities import whole
from mews.systems.koordinator.devices import quantities
from mews.systems.koordinator.errors import InvalidRequestError
from mews.systems.koordinator.names import (
    ALIASES,
    ALLOCATED,
    CORE,
    FPGA_RESOURCE,
    GPU_NAMES,
    NVIDIA,
    RATIO,
    RDMA_RESOURCE,
    SHARED,
    VENDORS,
    WHOLE,
    today,
    type_of_resource,
)

DEVICE_NAMES = frozenset({*GPU_NAMES, RDMA_RESOURCE, FPGA_RESOURCE, *ALIASES})
"""By which a pod is one of Koordinator's: any resource of section 1, and ``koordinator.sh/TYPE`` of any other type."""

_FULL = 100
_MIRROR = "kubernetes.io/config.mirror"


def has_devices(pod: Object) -> bool:
    """Return whether a pod asks for devices, by whichever name."""
    return any(_is_device(name) for container in _containers(pod) for name in _named(container))


def _is_device(name: str) -> bool:
    return name in DEVICE_NAMES or bool(type_of_resource(name))


def mutated(pod: Object, *, scheduler: str, device_plugin: bool) -> Object:
    """Return the pod as it is to be created; the very same where it asks for no device and bears no allocation.

    Its scheduler is ours, names are today's, limits are requests, ``koordinator.sh/gpu`` and names of vendors
    (``nvidia.com/gpu``) are written as core and ratio. Where GPUs are asked for by Koordinator's names,
    ``koordinator.sh/gpu.shared`` says their number. ``device_plugin``: NVIDIA's runs, so that ``nvidia.com/gpu`` stays
    beside them. An allocation that it is created with, being a copy of another pod, is not its own and goes. What a
    kubelet shows of a pod of its own files stays: it runs already.

    Raises InvalidRequestError where a container says an amount twice and differently, or under two names, and where
    somebody has placed the pod.
    """
    devices = has_devices(pod)
    if _MIRROR in annotations_of(pod) or not (devices or ALLOCATED in annotations_of(pod)):
        return pod
    made: dict[str, Any] = copy.deepcopy(dict(pod))
    (made["metadata"].get("annotations") or {}).pop(ALLOCATED, None)
    if not devices:
        return made
    if node := pod["spec"].get("nodeName"):
        raise InvalidRequestError(f"spec.nodeName: {node}: a pod that asks for devices is placed by {scheduler} alone")
    made["spec"]["schedulerName"] = scheduler
    for container in _containers(made):
        if any(map(_is_device, _named(container))):
            _rewrite(container, device_plugin=device_plugin)
    return made


def json_patch(before: Object, after: Object) -> list[dict[str, Any]]:
    """Return the JSON patch (RFC 6902) from one to the other: allocation, the scheduler's name, and containers'
    resources."""
    patch: list[dict[str, Any]] = []
    if ALLOCATED in annotations_of(before) and ALLOCATED not in annotations_of(after):
        patch.append({"op": "remove", "path": f"/metadata/annotations/{ALLOCATED.replace('/', '~1')}"})
    name = after["spec"].get("schedulerName")
    if before["spec"].get("schedulerName") != name:
        patch.append({"op": "add", "path": "/spec/schedulerName", "value": name})
    for kind in ("initContainers", "containers"):
        pairs = zip(before["spec"].get(kind) or (), after["spec"].get(kind) or (), strict=True)
        for number, (old, new) in enumerate(pairs):
            if old.get("resources") != new.get("resources"):
                path = f"/spec/{kind}/{number}/resources"
                patch.append({"op": "add", "path": path, "value": new["resources"]})
    return patch


def refused_binding(pod: Object, username: str, *, accounts: Sequence[str]) -> str:
    """Return why that user must not bind the pod; "" where it may. ``accounts``: of the scheduler, the usual one
    first."""
    if username in accounts or not has_devices(pod):
        return ""
    asks = f"pod {namespace_of(pod)}/{name_of(pod)} asks for devices"
    return f"{asks}: only {accounts[0]} may bind it, and this is {username}"


def _containers(pod: Object) -> Iterable[Any]:
    return (*init_containers_of(pod), *containers_of(pod))


def _named(container: Mapping[str, Any]) -> set[str]:
    resources = container.get("resources") or {}
    return {*(resources.get("requests") or {}), *(resources.get("limits") or {})}


def _rewrite(container: dict[str, Any], *, device_plugin: bool) -> None:
    resources = container.setdefault("resources", {})
    where = f"container {container.get('name', '')}"
    amounts: dict[str, int] = {}
    for side in ("limits", "requests"):
        named: set[str] = set()
        for name, quantity in (resources.get(side) or {}).items():
            if _is_device(name):
                value = whole(quantity)
                if amounts.setdefault(today(name), value) != value:
                    raise InvalidRequestError(
                        f"{where}: {name}: {quantity}: it is requested as {amounts[today(name)]} as well"
                    )
                if today(name) in named:
                    raise InvalidRequestError(f"{where}: {today(name)} is requested under two names")
                named.add(today(name))
    translated = _translated(amounts, device_plugin=device_plugin)
    for side in ("limits", "requests"):
        others = {name: value for name, value in (resources.get(side) or {}).items() if not _is_device(name)}
        resources[side] = {**others, **translated}


def _translated(amounts: Mapping[str, int], *, device_plugin: bool) -> dict[str, str]:
    """Return a whole request as core and ratio; any other is as it was asked for, and the scheduler's to judge."""
    asked, found = {name for name in amounts if name in GPU_NAMES}, dict(amounts)
    if asked == {WHOLE}:
        hundredths = found.pop(WHOLE)
        found |= {CORE: hundredths, RATIO: hundredths}
    vendor = next((name for name in VENDORS if name in asked), None)
    if vendor is not None and asked in ({vendor}, {vendor, CORE, RATIO}):
        hundredths = found[vendor] * _FULL
        if found.get(CORE, hundredths) == found.get(RATIO, hundredths) == hundredths:
            found |= {CORE: hundredths, RATIO: hundredths}
            if not (device_plugin and vendor == NVIDIA):
                del found[vendor]
    number = _number_of_gpus(found) if asked and vendor is None else 0
    return quantities(found | {SHARED: number} if number else found)


def _number_of_gpus(found: Mapping[str, int]) -> int:
    """Return what ``koordinator.sh/gpu.shared`` is set to where a container asks for GPUs by Koordinator's names and
    does not say their number; 0: it is not set (v1.6.0, pkg/webhook/pod/mutating/device_resource_spec.go,
    injectGPUShare)."""
    if SHARED in found or WHOLE in found:  # one with other names beside it is the scheduler's to refuse
        return 0
    of = RATIO if RATIO in found else CORE
    several = found.get(of, 0) > _FULL and found[of] % _FULL == 0
    return found.get(RATIO, 0) // _FULL if several else 1
