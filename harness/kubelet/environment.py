"""What a container's process finds in its environment (contract kubelet.md section 9). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mews.harness.kubelet.errors import StartError
from mews.kube.api.objects import Object, annotations_of, labels_of, name_of, namespace_of, node_name_of, uid_of
from mews.kube.api.quantities import milli, whole

_REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


def environment(
    pod: Object,
    container: Mapping[str, Any],
    *,
    given: Mapping[str, str],
    pod_ip: str,
    host_ip: str,
) -> dict[str, str]:
    """The whole environment: ``given`` by device plugins, then the container's own ``env``, which wins.

    Raises StartError (``CreateContainerConfigError``) for what cannot be resolved.
    """
    env = {"HOSTNAME": name_of(pod), **given}
    for entry in container.get("env") or ():
        if "valueFrom" in entry:
            value = _from(pod, container, entry["valueFrom"], pod_ip=pod_ip, host_ip=host_ip)
        else:
            value = expand(str(entry.get("value", "")), env)
        env[entry["name"]] = value
    return env


def expand(text: str, env: Mapping[str, str]) -> str:
    """``$(NAME)`` replaced where NAME is known, ``$$`` for a dollar (third_party/forked/golang/expansion)."""
    return _REFERENCE.sub(lambda match: "$" if match[0] == "$$" else env.get(match[1], match[0]), text)


def expand_all(words: Sequence[str] | None, env: Mapping[str, str]) -> tuple[str, ...]:
    """``expand`` over an argv."""
    return tuple(expand(str(word), env) for word in words or ())


def _from(pod: Object, container: Mapping[str, Any], source: Mapping[str, Any], *, pod_ip: str, host_ip: str) -> str:
    if "fieldRef" in source:
        return _field(pod, str(source["fieldRef"]["fieldPath"]), pod_ip=pod_ip, host_ip=host_ip)
    if "resourceFieldRef" in source:
        return _resource(container, source["resourceFieldRef"])
    kind = next(iter(source), "nothing")
    raise StartError(
        "CreateContainerConfigError",
        f"env valueFrom.{kind} is not supported by the emulated kubelet; allowed: fieldRef, resourceFieldRef",
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


def _resource(container: Mapping[str, Any], reference: Mapping[str, Any]) -> str:
    side, _, resource = str(reference.get("resource", "")).partition(".")
    amount = ((container.get("resources") or {}).get(side) or {}).get(resource, "0")
    divisor = reference.get("divisor") or "1"
    if divisor == "0":
        divisor = "1"
    if resource == "cpu":
        return str(-(-milli(amount) // milli(divisor)))
    return str(-(-whole(amount) // whole(divisor)))
