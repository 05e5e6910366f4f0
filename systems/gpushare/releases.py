"""The GPUs of a node that somebody wants whole: whether pods keep them, and how this plugin lets go of them.

The ledger is where it is decided: from the moment that a GPU is withheld there, nobody can promise a part of it any
more. Then nothing is left but the pods that have theirs already, and NVML, which is closed before the answer is given:
it has all GPUs of a node open, and one that somebody has open cannot leave its host in an orderly way.

What was answered stands on the node: an incarnation that begins after a crash goes on with it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence

from mews.kube.api.errors import ConflictError, NotFoundError, UnavailableError
from mews.kube.api.objects import Object, is_terminal, key_of, node_name_of
from mews.kube.api.resources import PODS
from mews.kube.component import Context, record
from mews.kube.deviceplugin.port import PluginError
from mews.kube.deviceplugin.release import (
    DeviceAnswer,
    DeviceRequest,
    HolderRecord,
    ReleaseState,
    device_requests,
    holder_record,
)
from mews.kube.system.ports import NodeAccess
from mews.systems.gpushare.config import EVICT, HOLDER, GpuShareConfig
from mews.systems.gpushare.evictions import evict
from mews.systems.gpushare.ledger import ATTEMPTS, NodeLedgers, stands, uses_of
from mews.systems.gpushare.policy import GpuUse, SharedGpu, gpu_of
from mews.systems.gpushare.records import LedgerEntry
from mews.systems.gpushare.slices import gpu_of_slice

_GPUS = "proc/driver/nvidia/gpus"
_NAMED = 3
"""So many pods are named in a refusal."""
_GOING = (ReleaseState.RELEASING, ReleaseState.RELEASED)


class GpuReleases:
    """One node's. ``gpus``: those it has; ``close_nvml`` lets go of all of them."""

    def __init__(
        self,
        context: Context,
        config: GpuShareConfig,
        node: NodeAccess,
        ledgers: NodeLedgers,
        gpus: Callable[[], Sequence[SharedGpu]],
        close_nvml: Callable[[], Awaitable[None]],
    ) -> None:
        self._context = context
        self._config = config
        self._node = node
        self._ledgers = ledgers
        self._gpus = gpus
        self._close_nvml = close_nvml
        self.requests: Mapping[str, DeviceRequest] = {}
        """What is asked, by UUID."""
        self._answers: dict[str, DeviceAnswer] = {}
        self._resumed = False
        self._written: frozenset[str] | None = None

    def look_at(self, node: Object | None) -> None:
        """The node is this now: what is asked of it, and at first what an earlier incarnation answered."""
        self.requests = device_requests(node, HOLDER)
        if not self._resumed and node is not None:
            self._resumed = True
            self._answers = dict(holder_record(node, HOLDER).answers)

    @property
    def withheld(self) -> frozenset[str]:
        """UUIDs of the GPUs of which no more is given."""
        return frozenset(uuid for uuid, answer in self._answers.items() if answer.state in _GOING)

    def record(self, users: Mapping[str, int]) -> HolderRecord:
        """What is to be written on the node."""
        return HolderRecord(users, dict(self._answers))

    async def may_open(self) -> bool:
        """Whether NVML may be opened: no GPU that was released is still here."""
        self._forget()
        wanted = {uuid for uuid, answer in self._answers.items() if answer.state is ReleaseState.RELEASED}
        return not wanted or not wanted & await self._here(wanted)

    async def _here(self, uuids: Collection[str]) -> set[str]:
        """Those of these GPUs that the driver has; all, while nobody can say."""
        files = self._node.files
        if files is None:
            return set(uuids)
        found = set()
        try:
            for place in await files.names(_GPUS):
                try:
                    text = (await files.read(f"{_GPUS}/{place}/information")).decode("utf-8", "replace")
                except (FileNotFoundError, NotADirectoryError):
                    continue
                found |= {uuid for uuid in uuids if uuid in text.split()}
        except (FileNotFoundError, NotADirectoryError):
            return found  # The driver has none.
        except OSError:
            return set(uuids)
        return found

    # Answers

    def _standing(self) -> dict[str, DeviceRequest]:
        now_s = self._context.clock.now()
        return {uuid: request for uuid, request in self.requests.items() if now_s < request.until_s}

    def _forget(self) -> None:
        """Nobody wants them any more: they are shared again where they still are."""
        standing = self._standing()
        for uuid in [uuid for uuid in self._answers if uuid not in standing]:
            del self._answers[uuid]
            record(self._context.log, "release-over", node=self._node.name, gpu=uuid)

    async def tend(self) -> None:
        """Answer what is asked, and go on with what takes time.

        Raises ApiError, UnavailableError; what was decided until then stands.
        """
        self._forget()
        for uuid, request in sorted(self._standing().items()):
            before = self._answers.get(uuid)
            if before is None or before.request != request.request or before.state is ReleaseState.RELEASING:
                await self._answer(uuid, request, before)
        await self._withhold(self.withheld)

    async def _answer(self, uuid: str, request: DeviceRequest, before: DeviceAnswer | None) -> None:
        going = before is not None and before.state in _GOING
        users = await self._users(uuid)
        if not users and users is not None and not going:
            await self._withhold(self.withheld | {uuid})
            users = await self._users(uuid)  # Somebody may have been faster than the ledger.
        if users is None:
            return
        if users and self._config.on_shared != EVICT:
            self._refuse(uuid, request, f"shared by {_listed(users)}")
        elif users:
            await self._send_away(uuid, request, before, users)
        else:
            await self._close_nvml()
            self._give(uuid, DeviceAnswer(request.request, ReleaseState.RELEASED))

    async def _send_away(
        self, uuid: str, request: DeviceRequest, before: DeviceAnswer | None, users: Mapping[str, Object | None]
    ) -> None:
        now_s = self._context.clock.now()
        until_s = now_s + self._config.evict_s
        if before is not None and before.state is ReleaseState.RELEASING:
            until_s = before.until_s
        if now_s >= until_s:
            self._refuse(uuid, request, f"{_listed(users)} did not end in {self._config.evict_s:g} s")
            return
        await self._withhold(self.withheld | {uuid})
        # Promised, and not bound yet: it will be here soon, or never.
        here = [pod for pod in users.values() if pod is not None and node_name_of(pod)]
        text = await evict(self._context, here)
        if text:
            self._refuse(uuid, request, text)
        else:
            self._give(uuid, DeviceAnswer(request.request, ReleaseState.RELEASING, until_s=until_s))

    def _refuse(self, uuid: str, request: DeviceRequest, reason: str) -> None:
        self._give(uuid, DeviceAnswer(request.request, ReleaseState.REFUSED, reason))

    def _give(self, uuid: str, answer: DeviceAnswer) -> None:
        if self._answers.get(uuid) == answer:
            return
        self._answers[uuid] = answer
        record(self._context.log, answer.state.value, node=self._node.name, gpu=uuid, reason=answer.reason)

    async def _withhold(self, uuids: frozenset[str]) -> None:
        if self._written == uuids:
            return
        async with self._ledgers.lock(self._node.name):
            for _ in range(ATTEMPTS):
                await self._ledgers.read(self._node.name)
                try:
                    await self._ledgers.withhold(self._node.name, uuids)
                except ConflictError:
                    continue
                self._written = uuids
                return
        raise UnavailableError(f"the ledger of {self._node.name} is written by others all the time")

    # Users

    async def _users(self, uuid: str) -> dict[str, Object | None] | None:
        """Who uses the GPU: pods by their annotations, by the ledger's promises, and by the kubelet's word. None: the
        kubelet does not say."""
        try:
            kubelet = await self._node.pod_resources.list()
        except PluginError as error:
            record(self._context.log, "kubelet-unread", node=self._node.name, error=str(error))
            return None
        await self._ledgers.read(self._node.name)
        listed = await self._context.kube.list(PODS, field_selector=f"spec.nodeName={self._node.name}")
        pods: dict[str, Object | None] = {key_of(pod): pod for pod in listed.items if not is_terminal(pod)}
        entries = {}
        for uid, entry in self._ledgers.entries(self._node.name).items():
            if await self._stands(entry):
                entries[uid] = entry
        using = {use.pod for use in uses_of(listed.items, entries) if self._is_of(use, uuid)}
        for pod in kubelet:
            held = {gpu_of_slice(id_) for _, devices in pod.containers for one in devices for id_ in one.device_ids}
            if uuid in held:
                using.add(f"{pod.namespace}/{pod.name}")
        return {key: pods.get(key) for key in sorted(using)}

    def _is_of(self, use: GpuUse, uuid: str) -> bool:
        if use.uuid:
            return use.uuid == uuid
        gpu = gpu_of(use, self._gpus())
        return gpu is not None and gpu.uuid == uuid

    async def _stands(self, entry: LedgerEntry) -> bool:
        try:
            pod: Object | None = await self._context.kube.get(PODS, entry.name, namespace=entry.namespace)
        except NotFoundError:
            pod = None
        return stands(entry, pod, self._node.name, entry.version)


def users_of(pods: Iterable[Object], gpus: Sequence[SharedGpu]) -> dict[str, int]:
    """UUID -> how many live pods have a part of it by their annotations, of all GPUs."""
    counts = dict.fromkeys((gpu.uuid for gpu in gpus), 0)
    for use in uses_of(pods, {}):
        gpu = gpu_of(use, gpus)
        if gpu is not None:
            counts[gpu.uuid] += 1
    return counts


def _listed(pods: Collection[str]) -> str:
    names = sorted(pods)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
