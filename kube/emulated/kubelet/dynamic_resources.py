"""When a pod's claims are prepared and given up (pkg/kubelet/kubelet.go, kuberuntime_manager.go)."""

from __future__ import annotations

from mews.kube.api.objects import Object
from mews.kube.api.resource_claims import uses_claims
from mews.kube.clock import rest
from mews.kube.deviceplugin.port import Allocation
from mews.kube.emulated.kubelet.dra.errors import DraError
from mews.kube.emulated.kubelet.tools import Tools
from mews.kube.events import pod_reference

_FIRST_RETRY_S = 0.7
_RETRY_FROM_S, _RETRY_FOR_S = 10.0, 5.0
"""Measured: an unprepare that fails is tried again after 0.7 s, then 10 to 15 s apart."""


async def prepared(tools: Tools, pod: Object) -> bool:
    """Return whether the devices of all claims are prepared; where not an event says why."""
    if not uses_claims(pod):
        return True
    try:
        await tools.dra.prepare(pod)
    except DraError as why:
        text = f"Failed to prepare dynamic resources: prepare dynamic resources: {why}"
        tools.events.event(pod_reference(pod), "Warning", "FailedPrepareDynamicResources", text)
        return False
    return True


async def unprepared(tools: Tools, pod: Object) -> None:
    """Return once the claims of a pod whose containers have ended are given up, however often that takes."""
    if not uses_claims(pod):
        return
    delay_s = _FIRST_RETRY_S
    while True:
        try:
            await tools.dra.unprepare(pod)
        except DraError as why:
            tools.context.log.info("unprepare dynamic resources: %s", why)
        else:
            return
        await rest(tools.pace.loop_s(delay_s))
        delay_s = _RETRY_FROM_S + _RETRY_FOR_S * tools.rng.random()


def with_claims(tools: Tools, pod: Object, container: str, given: Allocation) -> Allocation:
    """Return what device plugins gave to a container with what its claims give; the claims' devices come first.

    Raises StartError.
    """
    if not uses_claims(pod):
        return given
    more = tools.dra.allocation(pod, container)
    return Allocation(
        {**more.envs, **given.envs},
        (*more.mounts, *given.mounts),
        (*more.devices, *given.devices),
        given.annotations,
        given.cdi_devices,
        more.hooks,
    )
