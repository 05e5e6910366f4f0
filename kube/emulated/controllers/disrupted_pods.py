"""The condition that says why a controller deletes a pod, written before the deletion."""

from __future__ import annotations

from typing import Any

from mews.kube.api.objects import Object, condition_of, name_of, namespace_of, timestamp
from mews.kube.api.resources import PODS
from mews.kube.client.port import Patch
from mews.kube.component import Context
from mews.kube.emulated.controllers.syncing import MANAGER
from mews.kube.scheduling.podstatus import status_patch

_KIND = "DisruptionTarget"


async def mark_disrupted(
    context: Context, pod: Object, *, reason: str, message: str, observed_generation: int | None = None
) -> None:
    """Write the condition DisruptionTarget, unless the pod has it in these words already.

    Raises as ``KubeApi.patch`` does; Conflict where another pod has taken the name.
    Source: pkg/api/v1/pod/util.go, UpdatePodCondition.
    """
    condition: dict[str, Any] = {"type": _KIND, "status": "True", "reason": reason, "message": message}
    known = condition_of(pod, _KIND) or {}
    if all(known.get(field) == value for field, value in condition.items()):
        return
    is_old = known.get("status") == condition["status"]
    since = known["lastTransitionTime"] if is_old else timestamp(context.clock.now())
    condition |= {"lastProbeTime": None, "lastTransitionTime": since}
    if observed_generation is not None:
        condition["observedGeneration"] = observed_generation
    await context.kube.patch(
        PODS,
        name_of(pod),
        status_patch(pod, condition=condition),
        kind=Patch.STRATEGIC,
        namespace=namespace_of(pod),
        subresource="status",
        field_manager=MANAGER,
    )
