"""What the server warns of in a pod spec (pkg/api/pod/warnings.go)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.quantities import canonical, milli
from mews.kube.emulated.core.checks import addresses
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.kinds.node_label_warnings import OLD_NODE_LABELS, key_warnings, node_term_warnings
from mews.kube.emulated.kinds.pods.preparation import APP_ARMOR, OLD_ARMOR, armor_of
from mews.kube.emulated.kinds.volumes.persistent_volume_claims import claim_spec_warnings
from mews.kube.emulated.kinds.volumes.volume_path_warnings import overlap_warnings

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


def pod_warnings(pod: Part, path: str = "") -> list[str]:
    """Return the warnings of a pod or of a template at a path, in upstream's order."""
    spec, meta = part_of(pod, "spec"), part_of(part_of(pod, "metadata"), "annotations")
    here, prefix = f"{path}.spec".lstrip("."), f"{path}." if path else ""
    return [
        *_node_warnings(spec, here),
        *_spread_warnings(spec, here),
        *_old_annotation_warnings(meta, prefix),
        *_volume_warnings(spec, here),
        *overlap_warnings(spec),
        *_name_warnings(spec, here),
        *_overhead_warnings(spec, here),
        *_annotation_warnings(spec, meta, prefix),
        *_container_warnings(spec, here, meta, prefix),
        *_port_warnings(spec, here),
        *_grace_warnings(spec, here),
        *_affinity_warnings(spec, here),
        *_address_warnings(spec, here),
    ]


def hostname_warnings(obj: Object, used: str = "Pod names and hostnames") -> list[str]:
    """Return the warnings of a name that is no label, where pods are named by it."""
    if not (texts := names.label_texts(obj["metadata"]["name"])):
        return []
    text = f"this is used in {used}, which can result in surprising behavior; a DNS label is recommended"
    return [f"metadata.name: {text}: [{' '.join(texts)}]"]


_OLD_SYSCTLS = 'non-functional in v1.11+; use the "sysctls" field instead'
_OLD_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        'non-functional in v1.16+; use the "priorityClassName" field instead'
    ),
    "security.alpha.kubernetes.io/sysctls": _OLD_SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _OLD_SYSCTLS,
}
_OLD_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'


def _old_annotation_warnings(annotations: Part, prefix: str) -> Iterator[str]:
    for key, text in _OLD_ANNOTATIONS.items():
        if key in annotations:
            yield f"{prefix}metadata.annotations[{key}]: {text}"


def _node_warnings(spec: Part, path: str) -> Iterator[str]:
    yield from key_warnings(part_of(spec, "nodeSelector"), f"{path}.nodeSelector[{{key}}]")
    affinity, here = part_of(part_of(spec, "affinity"), "nodeAffinity"), f"{path}.affinity.nodeAffinity"
    required, preferred = (f"{how}DuringSchedulingIgnoredDuringExecution" for how in ("required", "preferred"))
    for index, term in enumerate(items(part_of(affinity, required), "nodeSelectorTerms")):
        yield from node_term_warnings(term, f"{here}.{required}.nodeSelectorTerms[{index}]")
    for index, weighed in enumerate(items(affinity, preferred)):
        place = f"{here}.{preferred}[{index}].preference"
        yield from node_term_warnings(part_of(weighed, "preference"), place, with_values=True)


def _spread_warnings(spec: Part, path: str) -> Iterator[str]:
    for index, constraint in enumerate(items(spec, "topologySpreadConstraints")):
        here, key = f"{path}.topologySpreadConstraints[{index}]", constraint.get("topologyKey", "")
        if key in OLD_NODE_LABELS:
            yield f"{here}.topologyKey: {key} is {OLD_NODE_LABELS[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{here}.labelSelector: {_NO_SELECTOR}"


def _overhead_warnings(spec: Part, path: str) -> Iterator[str]:
    yield from _fractions(part_of(spec, "overhead"), f"{path}.overhead")


def _fractions(amounts: Part, path: str, kinds: Sequence[str] = ("memory", "ephemeral-storage")) -> Iterator[str]:
    for name in kinds:
        amount = amounts.get(name)
        if amount is not None and milli(amount) % 1000:
            text = f"fractional byte value {refusals.shown(canonical(amount))} is invalid, must be an integer"
            yield f"{path}[{name}]: {text}"


def _annotation_warnings(spec: Part, annotations: Part, prefix: str) -> Iterator[str]:
    key = "seccomp.security.alpha.kubernetes.io/pod"
    if part_of(spec, "securityContext").get("seccompProfile") is None and key in annotations:
        yield f"{prefix}metadata.annotations[{key}]: {_OLD_SECCOMP}"


def _grace_warnings(spec: Part, path: str) -> Iterator[str]:
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        text = "must be >= 0; negative values are invalid and will be treated as 1"
        yield f"{path}.terminationGracePeriodSeconds: {text}"


def _address_warnings(spec: Part, path: str) -> Iterator[str]:
    for index, text in enumerate(items(part_of(spec, "dnsConfig"), "nameservers")):
        yield from addresses.address_warnings(f"{path}.dnsConfig.nameservers[{index}]", text)
    for index, alias in enumerate(items(spec, "hostAliases")):
        yield from addresses.address_warnings(f"{path}.hostAliases[{index}].ip", alias.get("ip", ""))


def _volume_warnings(spec: Part, path: str) -> Iterator[str]:
    for index, volume in enumerate(items(spec, "volumes")):
        for name, text in _GONE.items():
            if volume.get(name) is not None:
                yield f"{path}.volumes[{index}].{_SHOWN.get(name, name)}: {text}"
            template = part_of(part_of(volume, "ephemeral"), "volumeClaimTemplate")
            if name == "glusterfs" and template:
                here = f"{path}.volumes[{index}].ephemeral.volumeClaimTemplate.spec"
                yield from claim_spec_warnings(part_of(template, "spec"), here)


def _name_warnings(spec: Part, path: str) -> Iterator[str]:
    aliases = [alias.get("ip", "") for alias in items(spec, "hostAliases")]
    for index, address in enumerate(aliases):
        if address in aliases[:index]:
            yield f"{path}.hostAliases[{index}].ip: duplicate ip {refusals.shown(address)}"
    secrets = [secret.get("name", "") for secret in items(spec, "imagePullSecrets")]
    for index, name in enumerate(secrets):
        if name in secrets[:index]:
            yield f"{path}.imagePullSecrets[{index}].name: duplicate name {refusals.shown(name)}"
    for index, name in enumerate(secrets):
        if not name:
            yield f'{path}.imagePullSecrets[{index}].name: invalid empty name ""'


def _containers(spec: Part, path: str) -> Iterator[tuple[Part, str]]:
    for place in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(items(spec, place)):
            yield container, f"{path}.{place}[{index}]"


def _container_warnings(spec: Part, path: str, annotations: Part, prefix: str) -> Iterator[str]:
    pod_armor = part_of(spec, "securityContext").get("appArmorProfile")
    for container, here in _containers(spec, path):
        security, name = part_of(container, "securityContext"), container.get("name", "")
        key = f"container.seccomp.security.alpha.kubernetes.io/{name}"
        if security.get("seccompProfile") is None and key in annotations:
            yield f"{prefix}metadata.annotations[{key}]: {_OLD_SECCOMP}"
        key = f"{APP_ARMOR}{name}"
        unlike = prefix and security.get("appArmorProfile") is None and key in annotations
        if unlike and (pod_armor is None or pod_armor != armor_of(annotations[key])):
            yield f"{prefix}metadata.annotations[{key}]: {OLD_ARMOR}"
        resources = part_of(container, "resources")
        for kind in ("memory", "ephemeral-storage"):
            for place in ("limits", "requests"):
                yield from _fractions(part_of(resources, place), f"{here}.resources.{place}", (kind,))
        seen: set[str] = set()
        for index, variable in enumerate(items(container, "env")):
            name, value = variable.get("name", ""), variable.get("value", "")
            reference = f"$({name})"
            hides = variable.get("valueFrom") is not None or value == reference or reference not in value
            if name in seen and hides:
                text = f"hides previous definition of {refusals.shown(name)}, which may be dropped when using apply"
                yield f"{here}.env[{index}]: {text}"
            seen.add(name)


def _port_shown(port: Part) -> str:
    """Return it as Go prints the struct."""
    parts: tuple[tuple[str, str, str | int], ...] = (
        ("Name", "name", ""),
        ("HostPort", "hostPort", 0),
        ("ContainerPort", "containerPort", 0),
        ("Protocol", "protocol", ""),
        ("HostIP", "hostIP", ""),
    )
    return "{" + " ".join(f"{shown}:{port.get(name, empty)}" for shown, name, empty in parts) + "}"


# Complex: one branch for each warning, in upstream's order.
def _port_warnings(spec: Part, path: str) -> Iterator[str]:  # noqa: C901
    known: dict[tuple[Any, Any], list[tuple[str, Part]]] = {}
    for container, here in _containers(spec, path):
        for index, port in enumerate(items(container, "ports")):
            place = f"{here}.ports[{index}]"
            if port.get("hostIP") and not port.get("hostPort"):
                yield f"{place}: hostIP set without hostPort: {_port_shown(port)}"
            others = known.setdefault((port.get("containerPort"), port.get("protocol")), [])
            for other_place, other in others:
                if [port.get(name) or None for name in _HOST] == [other.get(name) or None for name in _HOST]:
                    yield f"{place}: duplicate port definition with {other_place}"
                elif not port.get("hostPort") or not other.get("hostPort"):
                    yield f"{place}: overlapping port definition with {other_place}"
                elif port["hostPort"] == other["hostPort"] and bool(port.get("hostIP")) != bool(other.get("hostIP")):
                    yield f"{place}: dangerously ambiguous port definition with {other_place}"
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
