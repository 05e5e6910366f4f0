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
from mews.kube.deviceplugin.release import DeviceAnswer, DeviceRequest, ReleaseState
from mews.kube.system.ports import NodeAccess
from mews.kube.system.release_book import ReleaseBook
from mews.systems.gpushare.config import EVICT, HOLDER, GpuShareConfig
from mews.systems.gpushare.evictions import evict
from mews.systems.gpushare.ledger import ATTEMPTS, NodeLedgers, stands, uses_of
from mews.systems.gpushare.policy import GpuUse, SharedGpu, gpu_of
from mews.systems.gpushare.records import LedgerEntry
from mews.systems.gpushare.slices import gpu_of_slice

_NAMED = 3
"""So many pods are named in a refusal."""


class GpuReleases(ReleaseBook):
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
        super().__init__(context, HOLDER, {"node": node.name})
        self._config = config
        self._node = node
        self._ledgers = ledgers
        self._gpus = gpus
        self._close_nvml = close_nvml
        self._written: frozenset[str] | None = None

    async def tend(self) -> None:
        """Answer what is asked, and go on with what takes time.

        Raises ApiError, UnavailableError; what was decided until then stands.
        """
        self.forget()
        for uuid, request in sorted(self.standing().items()):
            before = self.answer(uuid)
            if before is None or before.request != request.request or before.state is ReleaseState.RELEASING:
                await self._answer(uuid, request, before)
        await self._withhold(self.withheld)

    async def _answer(self, uuid: str, request: DeviceRequest, before: DeviceAnswer | None) -> None:
        going = uuid in self.withheld
        users = await self._users(uuid)
        if not users and users is not None and not going:
            await self._withhold(self.withheld | {uuid})
            users = await self._users(uuid)  # Somebody may have been faster than the ledger.
        if users is None:
            return
        if users and self._config.on_shared != EVICT:
            self.refuse(uuid, request, f"shared by {_listed(users)}")
        elif users:
            await self._send_away(uuid, request, before, users)
        else:
            await self._close_nvml()
            self.give(uuid, DeviceAnswer(request.request, ReleaseState.RELEASED))

    async def _send_away(
        self, uuid: str, request: DeviceRequest, before: DeviceAnswer | None, users: Mapping[str, Object | None]
    ) -> None:
        now_s = self._context.clock.now()
        until_s = now_s + self._config.evict_s
        if before is not None and before.state is ReleaseState.RELEASING:
            until_s = before.until_s
        if now_s >= until_s:
            self.refuse(uuid, request, f"{_listed(users)} did not end in {self._config.evict_s:g} s")
            return
        await self._withhold(self.withheld | {uuid})
        # Promised, and not bound yet: it will be here soon, or never.
        here = [pod for pod in users.values() if pod is not None and node_name_of(pod)]
        text = await evict(self._context, here)
        if text:
            self.refuse(uuid, request, text)
        else:
            self.give(uuid, DeviceAnswer(request.request, ReleaseState.RELEASING, until_s=until_s))

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
        """Return who uses the GPU: pods by their annotations, by the ledger's promises, and by the kubelet's word.
        None: the kubelet does not say."""
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
