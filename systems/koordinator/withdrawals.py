"""The GPUs of a node that somebody wants whole, for a move between nodes: they leave the Device object before they go.

A GPU that is asked for and that no pod holds is reported unhealthy. Once the Device object has said so for a while, so
that the scheduler can have seen it, and still no pod holds it, NVML is closed (it has all GPUs of a node open) and the
GPU is released. What was answered stands on the node: the next incarnation goes on with it.

The while is for nobody to be disturbed in vain; what fences a pod off is the order of writes and reads, however late
they are. koordlet has the Device say unhealthy, and then reads the pods; the scheduler writes a pod's devices onto it,
and then reads the Device, before it binds (``DeviceShare.pre_bind``). So one of them sees the other, and the scheduler
gives up or the release waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Protocol

from mews.kube.component import Context
from mews.kube.deviceplugin.release import DeviceAnswer, DeviceRequest, ReleaseState
from mews.kube.system.release_book import ReleaseBook

HOLDER = "koordinator"
"""The system's name, as which it answers (``mews.kube.deviceplugin.release``)."""

SETTLE_S = 3.0
"""For how long the Device object has shown a GPU as unhealthy before it is released."""

_PATIENCE_S = 60.0


class GpuUsers(Protocol):
    """Who uses a GPU of the node, freshly read. Methods raise ApiError and UnavailableError."""

    async def holders(self, uuid: str) -> Collection[str]:
        """Return the pods that hold it."""
        ...

    async def claims(self, uuid: str) -> Collection[str]:
        """Return what may make a pod hold it that does not yet: pods on their way to the node, a Device that offers
        it."""
        ...


class GpuWithdrawals(ReleaseBook):
    """One node's. ``close_nvml`` lets go of all its GPUs."""

    def __init__(self, context: Context, users: GpuUsers, close_nvml: Callable[[], Awaitable[None]]) -> None:
        super().__init__(context, HOLDER, {})
        self._users = users
        self._close_nvml = close_nvml
        self._shown: dict[str, float] = {}

    def shown(self, unhealthy: Collection[str]) -> None:
        """These GPUs stand as unhealthy in the Device object now."""
        now_s = self._context.clock.now()
        self._shown = {uuid: self._shown.get(uuid, now_s) for uuid in unhealthy}

    async def tend(self) -> None:
        """Answer what is asked. Raises ApiError, UnavailableError; what was decided until then stands."""
        self.forget()
        for uuid, request in sorted(self.standing().items()):
            before = self.answer(uuid)
            if before is None or before.request != request.request:
                await self._begin(uuid, request)
            elif before.state is ReleaseState.RELEASING:
                await self._go_on(uuid, request, before)

    async def _begin(self, uuid: str, request: DeviceRequest) -> None:
        if users := await self._users.holders(uuid):
            self.refuse(uuid, request, f"held by {', '.join(sorted(users))}")
            return
        until_s = self._context.clock.now() + _PATIENCE_S
        self.give(uuid, DeviceAnswer(request.request, ReleaseState.RELEASING, until_s=until_s))

    async def _go_on(self, uuid: str, request: DeviceRequest, before: DeviceAnswer) -> None:
        now_s = self._context.clock.now()
        if now_s - self._shown.get(uuid, now_s) < SETTLE_S:
            if now_s >= before.until_s:
                self.refuse(uuid, request, "its Device object is not written")
            return
        # Claims first: a pod that is bound between the two looks is seen by one of them.
        claims = await self._users.claims(uuid)
        if users := await self._users.holders(uuid):
            self.refuse(uuid, request, f"held by {', '.join(sorted(users))}")
            return
        if claims:
            if now_s >= before.until_s:
                self.refuse(uuid, request, f"claimed by {', '.join(sorted(claims))}")
            return
        await self._close_nvml()
        self.give(uuid, DeviceAnswer(request.request, ReleaseState.RELEASED))
