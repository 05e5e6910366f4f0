"""What is wrong with references to a pod's own fields and resources (pkg/apis/core/validation)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mews.kube.api.quantities import parse
from mews.kube.emulated.core.checks.common import Part
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError

IN_ENVIRONMENT = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
IN_FILES = (
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid",
)  # fmt: skip
_CONVERTED = frozenset(
    (*IN_ENVIRONMENT, *IN_FILES, "spec.restartPolicy", "spec.schedulerName", "status.phase", "spec.host")
)
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_SUBSCRIPT = re.compile(r"(.+)\['(.*)'\]")
_CPU_DIVISORS = ("1m", "1")
_BYTE_DIVISORS = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def field_reference_errors(reference: Part, path: str, allowed: Sequence[str]) -> Iterator[FieldError]:
    """Yield a field of the pod (validateObjectFieldSelector)."""
    version, place = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        yield refusals.required(f"{path}.apiVersion")
        return
    if not place:
        yield refusals.required(f"{path}.fieldPath")
        return
    if version != "v1":
        text = f"error converting fieldPath: unsupported pod version: {version}"
        yield refusals.bad(f"{path}.fieldPath", place, text)
        return
    subscripted = _SUBSCRIPT.fullmatch(place)
    if subscripted is None and place not in _CONVERTED:
        text = f"error converting fieldPath: field label not supported: {place}"
        yield refusals.bad(f"{path}.fieldPath", place, text)
    elif subscripted is not None and subscripted[1] not in ("metadata.annotations", "metadata.labels"):
        text = f"error converting fieldPath: field label does not support subscript: {place}"
        yield refusals.bad(f"{path}.fieldPath", place, text)
    elif subscripted is not None:
        key = subscripted[2].lower() if subscripted[1] == "metadata.annotations" else subscripted[2]
        yield from names.qualified_errors(path, key)
    elif place not in allowed:
        yield refusals.unsupported(f"{path}.fieldPath", place, sorted(allowed))


def resource_reference_errors(reference: Part, path: str, *, named: bool) -> Iterator[FieldError]:
    """Yield a container's resource (validateContainerResourceFieldSelector)."""
    resource = reference.get("resource", "")
    if named and not reference.get("containerName"):
        yield refusals.required(f"{path}.containerName")
    elif not resource:
        yield refusals.required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(_HUGE):
        yield refusals.unsupported(f"{path}.resource", resource, _RESOURCES)
    divisor = reference.get("divisor", "0")
    if parse(divisor) == 0:
        return
    if resource.endswith(".cpu"):
        if divisor not in _CPU_DIVISORS:
            yield refusals.bad(
                f"{path}.divisor", divisor, "only divisor's values 1m and 1 are supported with the cpu resource"
            )
    elif (resource in _RESOURCES or resource.startswith(_HUGE)) and divisor not in _BYTE_DIVISORS:
        what = "memory" if resource.endswith(".memory") else "local ephemeral storage"
        what = "hugepages" if "hugepages" in resource else what
        text = "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the "
        yield refusals.bad(f"{path}.divisor", divisor, f"{text}{what} resource")
