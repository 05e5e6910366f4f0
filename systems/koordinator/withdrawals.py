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

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from mews.kube.api.objects import Object
from mews.kube.component import Context, record
from mews.kube.deviceplugin.release import (
    DeviceAnswer,
    DeviceRequest,
    HolderRecord,
    ReleaseState,
    device_requests,
    holder_record,
)
from mews.kube.system.files import FileTree

HOLDER = "koordinator"
"""The system's name, as which it answers (``mews.kube.deviceplugin.release``)."""

SETTLE_S = 3.0
"""For how long the Device object has shown a GPU as unhealthy before it is released."""

_PATIENCE_S = 60.0
_GPUS = "proc/driver/nvidia/gpus"
_GOING = (ReleaseState.RELEASING, ReleaseState.RELEASED)


class GpuUsers(Protocol):
    """Who uses a GPU of the node, freshly read. Methods raise ApiError and UnavailableError."""

    async def holders(self, uuid: str) -> Collection[str]:
        """The pods that hold it."""
        ...

    async def claims(self, uuid: str) -> Collection[str]:
        """What may make a pod hold it that does not yet: pods on their way to the node, a Device that offers it."""
        ...


class GpuWithdrawals:
    """One node's. ``close_nvml`` lets go of all its GPUs."""

    def __init__(
        self,
        context: Context,
        files: FileTree | None,
        users: GpuUsers,
        close_nvml: Callable[[], Awaitable[None]],
    ) -> None:
        self._context = context
        self._files = files
        self._users = users
        self._close_nvml = close_nvml
        self.requests: Mapping[str, DeviceRequest] = {}
        self._answers: dict[str, DeviceAnswer] = {}
        self._shown: dict[str, float] = {}
        self._resumed = False

    def look_at(self, node: Object | None) -> None:
        """The node is this now: what is asked of it, and at first what an earlier incarnation answered."""
        self.requests = device_requests(node, HOLDER)
        if not self._resumed and node is not None:
            self._resumed = True
            self._answers = dict(holder_record(node, HOLDER).answers)

    @property
    def withheld(self) -> frozenset[str]:
        """UUIDs of the GPUs that are on their way out."""
        return frozenset(uuid for uuid, answer in self._answers.items() if answer.state in _GOING)

    def record(self, users: Mapping[str, int]) -> HolderRecord:
        """What is to be written on the node."""
        return HolderRecord(users, dict(self._answers))

    async def may_open(self) -> bool:
        """Whether NVML may be opened: no GPU that was released is still here."""
        self._forget()
        released = {uuid for uuid, answer in self._answers.items() if answer.state is ReleaseState.RELEASED}
        return not released or not released & await self._here(released)

    async def _here(self, uuids: Collection[str]) -> set[str]:
        """Those of these GPUs that the driver has; all, while nobody can say."""
        if self._files is None:
            return set(uuids)
        found: set[str] = set()
        try:
            for place in await self._files.names(_GPUS):
                try:
                    text = (await self._files.read(f"{_GPUS}/{place}/information")).decode("utf-8", "replace")
                except (FileNotFoundError, NotADirectoryError):
                    continue
                found |= set(uuids) & set(text.split())
        except (FileNotFoundError, NotADirectoryError):
            return found  # the driver has none
        except OSError:
            return set(uuids)
        return found

    def shown(self, unhealthy: Collection[str]) -> None:
        """These GPUs stand as unhealthy in the Device object now."""
        now_s = self._context.clock.now()
        self._shown = {uuid: self._shown.get(uuid, now_s) for uuid in unhealthy}

    async def tend(self) -> None:
        """Answer what is asked. Raises ApiError, UnavailableError; what was decided until then stands."""
        self._forget()
        for uuid, request in sorted(self._standing().items()):
            before = self._answers.get(uuid)
            if before is None or before.request != request.request:
                await self._begin(uuid, request)
            elif before.state is ReleaseState.RELEASING:
                await self._go_on(uuid, request, before)

    async def _begin(self, uuid: str, request: DeviceRequest) -> None:
        if users := await self._users.holders(uuid):
            self._refuse(uuid, request, f"held by {', '.join(sorted(users))}")
            return
        until_s = self._context.clock.now() + _PATIENCE_S
        self._give(uuid, DeviceAnswer(request.request, ReleaseState.RELEASING, until_s=until_s))

    async def _go_on(self, uuid: str, request: DeviceRequest, before: DeviceAnswer) -> None:
        now_s = self._context.clock.now()
        if now_s - self._shown.get(uuid, now_s) < SETTLE_S:
            if now_s >= before.until_s:
                self._give(
                    uuid, DeviceAnswer(request.request, ReleaseState.REFUSED, "its Device object is not written")
                )
            return
        # Claims first: a pod that is bound between the two looks is seen by one of them.
        claims = await self._users.claims(uuid)
        if users := await self._users.holders(uuid):
            self._refuse(uuid, request, f"held by {', '.join(sorted(users))}")
            return
        if claims:
            if now_s >= before.until_s:
                self._refuse(uuid, request, f"claimed by {', '.join(sorted(claims))}")
            return
        await self._close_nvml()
        self._give(uuid, DeviceAnswer(request.request, ReleaseState.RELEASED))

    def _standing(self) -> dict[str, DeviceRequest]:
        now_s = self._context.clock.now()
        return {uuid: request for uuid, request in self.requests.items() if now_s < request.until_s}

    def _forget(self) -> None:
        """Nobody wants them any more: they may be given again where they still are."""
        standing = self._standing()
        for uuid in [uuid for uuid in self._answers if uuid not in standing]:
            del self._answers[uuid]
            record(self._context.log, "release-over", gpu=uuid)

    def _refuse(self, uuid: str, request: DeviceRequest, reason: str) -> None:
        self._give(uuid, DeviceAnswer(request.request, ReleaseState.REFUSED, reason))

    def _give(self, uuid: str, answer: DeviceAnswer) -> None:
        self._answers[uuid] = answer
        record(self._context.log, answer.state.value, gpu=uuid, reason=answer.reason)
