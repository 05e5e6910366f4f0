"""What the server warns of in a pod spec (pkg/api/pod/warnings.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mews.kube.api.quantities import parse
from mews.kube.emulated.apiserver.objects.rules.checks import Part, items, part_of
from mews.kube.emulated.apiserver.store import refusals

_GONE = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_SHOWN = {"storageos": "storageOS"}
_NO_SELECTOR = "a null labelSelector results in matching no pod"


def pod_warnings(spec: Part, path: str) -> list[str]:
    """The warnings, in upstream's order."""
    return [*_spread_warnings(spec, path), *_volume_warnings(spec, path), *_name_warnings(spec, path),
            *_container_warnings(spec, path), *_port_warnings(spec, path), *_affinity_warnings(spec, path)]  # fmt: skip


def _spread_warnings(spec: Part, path: str) -> Iterator[str]:
    for index, constraint in enumerate(items(spec, "topologySpreadConstraints")):
        if constraint.get("labelSelector") is None:
            yield f"{path}.topologySpreadConstraints[{index}].labelSelector: {_NO_SELECTOR}"


def _volume_warnings(spec: Part, path: str) -> Iterator[str]:
    for index, volume in enumerate(items(spec, "volumes")):
        for name, text in _GONE.items():
            if volume.get(name) is not None:
                yield f"{path}.volumes[{index}].{_SHOWN.get(name, name)}: {text}"


def _name_warnings(spec: Part, path: str) -> Iterator[str]:
    addresses = [alias.get("ip", "") for alias in items(spec, "hostAliases")]
    for index, address in enumerate(addresses):
        if address in addresses[:index]:
            yield f"{path}.hostAliases[{index}].ip: duplicate ip {refusals.shown(address)}"
    names = [secret.get("name", "") for secret in items(spec, "imagePullSecrets")]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield f"{path}.imagePullSecrets[{index}].name: duplicate name {refusals.shown(name)}"
    for index, name in enumerate(names):
        if not name:
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _containers(spec: Part, path: str) -> Iterator[tuple[Part, str]]:
    for place in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, place)):
            yield container, f"{path}.{place}[{index}]"


def _container_warnings(spec: Part, path: str) -> Iterator[str]:
    for container, here in _containers(spec, path):
        resources = part_of(container, "resources")
        for name in ("memory", "ephemeral-storage"):
            for place in ("limits", "requests"):
                amount = part_of(resources, place).get(name)
                if amount is not None and parse(amount) * 1000 % 1000 != 0:
                    text = f"fractional byte value {refusals.shown(amount)} is invalid, must be an integer"
                    yield f"{here}.resources.{place}[{name}]: {text}"
        seen: set[str] = set()
        for index, variable in enumerate(items(container, "env")):
            name, value = variable.get("name", ""), variable.get("value", "")
            reference = f"$({name})"
            hides = variable.get("valueFrom") is not None or value == reference or reference not in value
            if name in seen and hides:
                text = f"hides previous definition of {refusals.shown(name)}, which may be dropped when using apply"
                yield f"{here}.env[{index}]: {text}"
            seen.add(name)


def _port_warnings(spec: Part, path: str) -> Iterator[str]:
    known: dict[tuple[Any, Any], list[tuple[str, Part]]] = {}
    for container, here in _containers(spec, path):
        for index, port in enumerate(items(container, "ports")):
            place = f"{here}.ports[{index}]"
            others = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
            for other_place, other in others:
                if [port.get(name) for name in _HOST] == [other.get(name) for name in _HOST]:
                    yield f"{place}: duplicate port definition with {other_place}"
                elif not port.get("hostPort") or not other.get("hostPort"):
                    yield f"{place}: overlapping port definition with {other_place}"
            others.append((place, port))
    named: dict[str, str] = {}
    for container, here in _containers(spec, path):
        for index, port in enumerate(items(container, "ports")):
            name, place = port.get("name", ""), f"{here}.ports[{index}]"
            if name in named:
                first = named[name]
                text = (
                    f"duplicate port name {refusals.shown(name)} with {first}, services and probes that select ports "
                )
                yield f"{place}: {text}by name will use {first}"
            elif name:
                named[name] = place


_HOST = ("hostIP", "hostPort")


def _affinity_warnings(spec: Part, path: str) -> Iterator[str]:
    for kind in ("podAffinity", "podAntiAffinity"):
        given, here = part_of(part_of(spec, "affinity"), kind), f"{path}.affinity.{kind}"
        required, preferred = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
        for index, term in enumerate(items(given, required)):
            if term.get("labelSelector") is None:
                yield f"{here}.{required}[{index}].labelSelector: {_NO_SELECTOR}"
        for index, weighed in enumerate(items(given, preferred)):
            if part_of(weighed, "podAffinityTerm").get("labelSelector") is None:
                yield f"{here}.{preferred}[{index}].podAffinityTerm.labelSelector: {_NO_SELECTOR}"
