"""Resource claims of a pod that is on this node already (pkg/kubelet/cm/dra/manager.go): no driver runs here, so such a
pod stays ContainerCreating, in the words of the kubelet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import ApiError, Unavailable
from mews.kube.api.objects import Object, name_of, namespace_of, uid_of
from mews.kube.api.resources import RESOURCE_CLAIMS
from mews.kube.client.port import KubeApi
from mews.kube.emulated.kubelet.tools import Tools
from mews.kube.events import pod_reference


async def prepared(tools: Tools, pod: Object) -> bool:
    """Whether the devices of all claims are prepared; where not an event says why."""
    for entry in pod["spec"].get("resourceClaims") or ():
        why = await _refusal(tools.context.kube, pod, entry)
        if why:
            text = f"Failed to prepare dynamic resources: prepare dynamic resources: {why}"
            tools.events.event(pod_reference(pod), "Warning", "FailedPrepareDynamicResources", text)
            return False
    return True


async def _refusal(kube: KubeApi, pod: Object, entry: Mapping[str, Any]) -> str:
    name = entry.get("resourceClaimName")
    if name is None:
        statuses = (pod.get("status") or {}).get("resourceClaimStatuses") or ()
        noted = next((each for each in statuses if each["name"] == entry["name"]), None)
        if noted is None:
            return f'pod "{namespace_of(pod)}/{name_of(pod)}": ResourceClaim not created yet'
        name = noted.get("resourceClaimName")
    if name is None:  # none was needed
        return ""
    try:
        claim = await kube.get(RESOURCE_CLAIMS, str(name), namespace=namespace_of(pod))
    except (ApiError, Unavailable) as error:
        return f"fetch ResourceClaim {name}: {error}"
    status = claim.get("status") or {}
    if uid_of(pod) not in [each.get("uid") for each in status.get("reservedFor") or ()]:
        return f"pod {name_of(pod)} ({uid_of(pod)}) is not allowed to use ResourceClaim {name} ({uid_of(claim)})"
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return f"DRA driver {results[0]['driver']} is not registered" if results else ""
