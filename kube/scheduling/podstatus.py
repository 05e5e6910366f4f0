"""The scheduler's writes to a pod's status: one condition and the nominated node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object, name_of, namespace_of, uid_of
from mews.kube.api.resources import PODS
from mews.kube.client.port import KubeApi, Patch

FIELD_MANAGER = "kube-scheduler"


def status_patch(
    pod: Object, *, condition: Mapping[str, Any] | None = None, nominated: str | None = None
) -> dict[str, Any]:
    """Return the strategic merge patch; ``nominated`` "" removes it, None leaves it.

    The uid in it makes the server refuse (409) a pod replaced under the same name.
    """
    status: dict[str, Any] = {}
    if condition is not None:
        kinds = [c["type"] for c in (pod.get("status") or {}).get("conditions") or ()]
        if condition["type"] not in kinds:
            kinds.append(condition["type"])
        status["$setElementOrder/conditions"] = [{"type": kind} for kind in kinds]
        status["conditions"] = [dict(condition)]
    if nominated is not None:
        status["nominatedNodeName"] = nominated or None
    return {"metadata": {"uid": uid_of(pod)}, "status": status}


async def patch_status(
    kube: KubeApi, pod: Object, *, condition: Mapping[str, Any] | None = None, nominated: str | None = None
) -> Object:
    """Write it; the pod as stored then. Raises as ``KubeApi.patch`` does."""
    return await kube.patch(
        PODS,
        name_of(pod),
        status_patch(pod, condition=condition, nominated=nominated),
        kind=Patch.STRATEGIC,
        namespace=namespace_of(pod),
        subresource="status",
        field_manager=FIELD_MANAGER,
    )
