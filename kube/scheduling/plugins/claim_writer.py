"""What the scheduler writes of resource claims: allocation and reservation, and both taken back.

Source: bindClaim, Unreserve and PostFilter of pkg/scheduler/framework/plugins/dynamicresources.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.errors import ApiError, ConflictError
from mews.kube.api.objects import Object, is_deleting, name_of, namespace_of, timestamp, uid_of
from mews.kube.api.resource_claims import DELETE_PROTECTION, allocation_of, consumers_of
from mews.kube.api.resources import RESOURCE_CLAIMS
from mews.kube.client.port import KubeApi, Patch
from mews.kube.clock import Clock, rest
from mews.kube.scheduling.podinfo import PodInfo

_TRIES = 5
_PAUSE_S = 0.01
"""client-go's retry.DefaultRetry after a conflict."""


class ClaimWriter:
    """``stamps``: whether an allocation gets the time it was made."""

    def __init__(self, kube: KubeApi, clock: Clock, *, stamps: bool) -> None:
        self._kube = kube
        self._clock = clock
        self._stamps = stamps

    async def bind(self, claim: Object, pod: PodInfo, allocation: Mapping[str, Any] | None) -> Object:
        """Write the finalizer, then allocation (None: it has one) and reservation in one; the claim as written.

        Raises ApiError, in upstream's words, and UnavailableError.
        """
        for attempt in range(_TRIES):
            if attempt:
                await rest(_PAUSE_S)
                claim = await self._kube.get(RESOURCE_CLAIMS, name_of(claim), namespace=namespace_of(claim))
            try:
                return await self._bind_once(claim, pod, allocation)
            except ConflictError:
                if attempt == _TRIES - 1:
                    raise
        raise AssertionError("unreachable")

    async def _bind_once(self, claim: Object, pod: PodInfo, allocation: Mapping[str, Any] | None) -> Object:
        key = f"{namespace_of(claim)}/{name_of(claim)}"
        if is_deleting(claim):
            raise ApiError(f"claim {key} got deleted in the meantime")
        if allocation is not None:
            if allocation_of(claim) is not None:
                raise ApiError(f"claim {key} got allocated elsewhere in the meantime")
            finalizers = list(claim["metadata"].get("finalizers") or ())
            if DELETE_PROTECTION not in finalizers:
                metadata = {**claim["metadata"], "finalizers": [*finalizers, DELETE_PROTECTION]}
                claim = await self._replace({**claim, "metadata": metadata}, f"add finalizer to claim {key}", None)
        status = dict(claim.get("status") or {})
        if allocation is not None:
            status["allocation"] = dict(allocation)
        if self._stamps and "allocationTimestamp" not in status["allocation"]:
            status["allocation"] = {**status["allocation"], "allocationTimestamp": timestamp(self._clock.now())}
        consumer = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status["reservedFor"] = [*consumers_of(claim), consumer]
        what = "add allocation and reservation to claim" if allocation is not None else "add reservation to claim"
        return await self._replace({**claim, "status": status}, f"{what} {key}", "status")

    async def _replace(self, claim: Object, what: str, subresource: str | None) -> Object:
        try:
            return await self._kube.replace(RESOURCE_CLAIMS, claim, subresource=subresource)
        except ConflictError:
            raise
        except ApiError as failed:
            raise ApiError(f"{what}: {failed}", code=failed.code, reason=failed.reason) from failed

    async def unreserve(self, claim: Object, pod: PodInfo) -> Object:
        """Take the pod's reservation back; the allocation stays."""
        gone = [{"$patch": "delete", "uid": pod.uid}]
        body = {"metadata": {"uid": uid_of(claim)}, "status": {"reservedFor": gone}}
        return await self._kube.patch(
            RESOURCE_CLAIMS,
            name_of(claim),
            body,
            kind=Patch.STRATEGIC,
            namespace=namespace_of(claim),
            subresource="status",
        )

    async def deallocate(self, claim: Object) -> None:
        """Free the devices of a claim that no other pod uses."""
        kept = {name: value for name, value in (claim.get("status") or {}).items() if name not in _FREED}
        await self._kube.replace(RESOURCE_CLAIMS, {**claim, "status": kept}, subresource="status")


_FREED = ("reservedFor", "allocation", "devices")
