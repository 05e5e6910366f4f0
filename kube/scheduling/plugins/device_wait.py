"""PreBind waits until the devices of a pod's claims are ready (upstream isPodReadyForBinding)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mews.kube.api.objects import Object, key_of, name_of
from mews.kube.scheduling import messages
from mews.kube.scheduling.devices.features import DeviceFeatures
from mews.kube.scheduling.framework import SUCCESS, Handle, Status, error
from mews.kube.scheduling.plugins.binding_conditions import POLL_S, BindingFailedError, is_late, is_ready
from mews.kube.scheduling.podinfo import PodInfo


class DeviceWait:
    """``claim_at`` finds a claim by ``namespace/name``."""

    def __init__(self, handle: Handle, features: DeviceFeatures, claim_at: Callable[[str], Object | None]) -> None:
        self._handle = handle
        self._minor = features.minor
        self._timeout_s = features.binding_timeout_s
        self._claim_at = claim_at

    async def until_ready(self, claims: list[Object], pod: PodInfo, node: str) -> Status:
        """Look at the claims now and every five seconds until their devices are ready, fail, or are late."""
        note = f"waiting for binding conditions for device on node {node}"
        self._handle.events.record(
            pod, kind="Normal", reason="BindingConditionsPending", action="Scheduling", note=note
        )
        loop = asyncio.get_running_loop()
        ends_s = loop.time() + self._timeout_s
        while True:
            ready = True
            for index, known in enumerate(claims):
                claim = self._claim_at(key_of(known))
                if claim is None:
                    return error(messages.no_claim(key_of(known)))
                claims[index] = claim
                try:
                    ready = is_ready(claim, minor=self._minor)
                except BindingFailedError as failed:
                    return error(str(failed))
                if not ready and self.is_late(claim):
                    return error(self._late(claim))
                if not ready:
                    break
            if ready:
                return SUCCESS
            if loop.time() >= ends_s:
                timeout = "device binding timeout"
                return error(timeout if self._minor < 36 else f"{timeout}: context deadline exceeded")
            await asyncio.sleep(min(POLL_S, ends_s - loop.time()))

    def is_late(self, claim: Object) -> bool:
        """Return whether the devices had long enough."""
        return is_late(claim, self._handle.context.clock.now(), self._timeout_s)

    def _late(self, claim: Object) -> str:
        if self._minor < 36:
            return f"claim {name_of(claim)} binding timeout"
        return f"device binding timeout: claim={name_of(claim)}"
