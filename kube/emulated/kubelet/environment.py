"""What a container's process finds in its environment (contract kubelet.md section 9). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from mews.kube.api.objects import (
    Object,
    annotations_of,
    containers_of,
    init_containers_of,
    labels_of,
    name_of,
    namespace_of,
    node_name_of,
    uid_of,
)
from mews.kube.api.quantities import milli, whole
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.sources import KINDS, Sources

_NOTHING: Sources = MappingProxyType({})
_NO_AMOUNTS: Mapping[str, Any] = MappingProxyType({})
_OF_THE_NODE = ("cpu", "memory", "ephemeral-storage")
"""Limits that the downward API takes from the node where a container has none (pkg/kubelet/kubelet_resources.go)."""
_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def environment(
    pod: Object,
    container: Mapping[str, Any],
    *,
    given: Mapping[str, str],
    pod_ip: str,
    host_ip: str,
    sources: Sources = _NOTHING,
    allocatable: Mapping[str, Any] = _NO_AMOUNTS,
) -> dict[str, str]:
    """Return the whole environment: ``given`` by device plugins, then ``envFrom`` and the container's own ``env``,
    which wins.

    Limits that a container does not have are what the node has: ``allocatable``.

    Raises StartError (``CreateContainerConfigError``) for what cannot be resolved.
    """
    env = {"HOSTNAME": name_of(pod), **given, **dict(_all_from(container, sources))}
    for entry in container.get("env") or ():
        source = entry.get("valueFrom")
        if source is None:
            env[entry["name"]] = expand(str(entry.get("value", "")), env)
        elif any(f"{kind}KeyRef" in source for kind in KINDS):
            value = _key(pod, source, sources)
            if value is not None:
                env[entry["name"]] = value
        else:
            found = downward_value(pod, container, source, allocatable=allocatable, pod_ip=pod_ip, host_ip=host_ip)
            env[entry["name"]] = found
    return env


def _all_from(container: Mapping[str, Any], sources: Sources) -> Iterator[tuple[str, str]]:
    for entry in container.get("envFrom") or ():
        for kind in KINDS:
            if f"{kind}Ref" in entry:
                found = sources.get((kind, str(entry[f"{kind}Ref"].get("name", ""))), {})
                yield from ((f"{entry.get('prefix', '')}{key}", value) for key, value in found.items())


def _key(pod: Object, source: Mapping[str, Any], sources: Sources) -> str | None:
    kind = next(kind for kind in KINDS if f"{kind}KeyRef" in source)
    reference = source[f"{kind}KeyRef"]
    name, key = str(reference.get("name", "")), str(reference.get("key", ""))
    value = sources.get((kind, name), {}).get(key)
    if value is None and not reference.get("optional"):
        where = f"{KINDS[kind].kind} {namespace_of(pod)}/{name}"
        raise StartError("CreateContainerConfigError", f"couldn't find key {key} in {where}")
    return value


def expand(text: str, env: Mapping[str, str]) -> str:
    """``$(NAME)`` replaced where NAME is known, ``$$`` for a dollar (third_party/forked/golang/expansion)."""
    return _REFERENCE.sub(lambda match: "$" if match[0] == "$$" else env.get(match[1], match[0]), text)


def expand_all(words: Sequence[str] | None, env: Mapping[str, str]) -> tuple[str, ...]:
    """Apply ``expand`` to every argument of a command."""
    return tuple(expand(str(word), env) for word in words or ())


def check_sub_paths(container: Mapping[str, Any], env: Mapping[str, str]) -> None:
    """Judge the sub-paths of volume mounts, variables filled in (pkg/kubelet/kubelet_pods.go, makeMounts).

    Raises StartError (``CreateContainerConfigError``).
    """
    for mount in container.get("volumeMounts") or ():
        path = str(mount.get("subPath") or "")
        if mount.get("subPathExpr"):
            named = {match[1] for match in _REFERENCE.finditer(mount["subPathExpr"]) if match[1]}
            missing = sorted(name for name in named if not env.get(name))
            if missing:
                raise StartError("CreateContainerConfigError", f"missing value for {', '.join(missing)}")
            path = expand(mount["subPathExpr"], env)
        if path.startswith("/"):
            text = f"error SubPath `{path}` must not be an absolute path"
            raise StartError("CreateContainerConfigError", text)
        if ".." in path.split("/"):
            text = f"unable to provision SubPath `{path}`: must not contain '..'"
            raise StartError("CreateContainerConfigError", text)


def downward_value(
    pod: Object,
    container: Mapping[str, Any],
    source: Mapping[str, Any],
    *,
    allocatable: Mapping[str, Any],
    pod_ip: str,
    host_ip: str,
) -> str:
    """Return what the downward API gives for a ``fieldRef`` or ``resourceFieldRef``; of the container where none is
    named.

    Raises StartError.
    """
    if "fieldRef" in source:
        return _field(pod, str(source["fieldRef"]["fieldPath"]), pod_ip=pod_ip, host_ip=host_ip)
    if "resourceFieldRef" in source:
        reference = source["resourceFieldRef"]
        return _resource(_named(pod, reference.get("containerName")) or container, reference, allocatable)
    kind = next(iter(source), "nothing")
    raise StartError(
        "CreateContainerConfigError",
        f"env valueFrom.{kind} is not supported by the emulated kubelet; allowed: configMapKeyRef, fieldRef, "
        "resourceFieldRef, secretKeyRef",
    )


def _field(pod: Object, path: str, *, pod_ip: str, host_ip: str) -> str:
    fields = {
        "metadata.name": name_of(pod),
        "metadata.namespace": namespace_of(pod),
        "metadata.uid": uid_of(pod),
        "spec.nodeName": node_name_of(pod),
        "spec.serviceAccountName": str(pod["spec"].get("serviceAccountName", "default")),
        "status.podIP": pod_ip,
        "status.podIPs": pod_ip,
        "status.hostIP": host_ip,
        "status.hostIPs": host_ip,
    }
    subscript = _SUBSCRIPT.fullmatch(path)
    if subscript:
        return (labels_of(pod) if subscript[1] == "labels" else annotations_of(pod)).get(subscript[2], "")
    if path not in fields:
        raise StartError("CreateContainerConfigError", f"unsupported fieldPath: {path}")
    return fields[path]


def _named(pod: Object, name: str | None) -> Mapping[str, Any] | None:
    """Return the container of that name."""
    return next((each for each in (*containers_of(pod), *init_containers_of(pod)) if each["name"] == name), None)


def _resource(container: Mapping[str, Any], reference: Mapping[str, Any], allocatable: Mapping[str, Any]) -> str:
    side, _, resource = str(reference.get("resource", "")).partition(".")
    amount = ((container.get("resources") or {}).get(side) or {}).get(resource, "0")
    if side == "limits" and resource in _OF_THE_NODE and not milli(amount):
        amount = allocatable.get(resource, "0")
    divisor = reference.get("divisor") or "1"
    if divisor == "0":
        divisor = "1"
    if resource == "cpu":
        return str(-(-milli(amount) // milli(divisor)))
    return str(-(-whole(amount) // whole(divisor)))
