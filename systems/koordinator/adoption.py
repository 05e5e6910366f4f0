"""What others gave: read from the kubelet's checkpoint, and from the environments of containers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mews.kube.api.objects import Object, is_terminal, uid_of
from mews.kube.component import Context, record
from mews.kube.runtimehook.port import HookError, HookRequest, RunningEnvironment
from mews.kube.system.ports import NodeAccess
from mews.systems.koordinator.checkpoint import CheckpointFormatError, adopted, placed_by, read_checkpoint
from mews.systems.koordinator.devices import CheckpointEntry, NodeDeviceReport
from mews.systems.koordinator.koordlet_config import KoordletConfig
from mews.systems.koordinator.names import NVIDIA
from mews.systems.koordinator.visible import IndexedGpu, visible_ids


class Adoption:
    """Reads what others gave on one node. What cannot be read now is as it was read last, of the pods that still
    live."""

    def __init__(self, context: Context, config: KoordletConfig, node: NodeAccess) -> None:
        self._context = context
        self._config = config
        self._node = node
        self._read: tuple[CheckpointEntry, ...] = ()
        self._text: str | None = None
        self._running: Sequence[RunningEnvironment] = ()
        self._asked: dict[tuple[str, str], RunningEnvironment] = {}
        self._recalled: tuple[CheckpointEntry, ...] = ()

    def recall(self, report: NodeDeviceReport) -> None:
        """What the incarnation before had published: it stands until it is known anew."""
        self._read, self._recalled = report.held, report.found

    def seen(self, request: HookRequest, env: Mapping[str, str]) -> None:
        """A hook was asked about a container, which has that environment."""
        self._asked[request.pod_uid, request.container] = RunningEnvironment(request.pod_uid, request.container, env)

    async def entries(
        self, pods: Sequence[Object], gpus: Sequence[IndexedGpu]
    ) -> tuple[tuple[CheckpointEntry, ...], tuple[CheckpointEntry, ...]]:
        """Return them by the checkpoint; and by environments, of containers that it does not list."""
        await self._read_checkpoint()
        config = self._config
        held = adopted(self._read, pods, scheduler=config.scheduler, resources=config.adopt)
        return held, await self._found(pods, gpus, {(entry.pod_uid, entry.container) for entry in held})

    async def _read_checkpoint(self) -> None:
        if self._node.checkpoint is None:
            return
        try:
            text = await self._node.checkpoint.read()
        except FileNotFoundError:
            self._read, self._text = (), None  # no kubelet has written one: it gave nothing, or has forgotten
            return
        except OSError as error:
            record(self._context.log, "checkpoint-unreadable", node=self._node.name, error=str(error))
            return
        if text == self._text:
            return
        try:
            self._read, self._text = read_checkpoint(text), text
        except CheckpointFormatError as error:
            record(self._context.log, "checkpoint-unreadable", node=self._node.name, error=str(error))

    async def _found(
        self, pods: Sequence[Object], gpus: Sequence[IndexedGpu], listed: set[tuple[str, str]]
    ) -> tuple[CheckpointEntry, ...]:
        live = {uid_of(pod): pod for pod in pods if not is_terminal(pod)}
        self._asked = {key: each for key, each in self._asked.items() if key[0] in live}
        if self._node.hooks is not None:
            try:
                self._running = await self._node.hooks.running()
            except HookError as error:
                record(self._context.log, "containers-not-listed", node=self._node.name, error=str(error))
        if not self._config.adopt_env:
            return ()
        known = {**self._asked, **{(each.pod_uid, each.container): each for each in self._running}}
        found = []
        for (uid, container), each in sorted(known.items()):
            pod = live.get(uid)
            if pod is None or placed_by(pod, self._config.scheduler) or (uid, container) in listed:
                continue
            if ids := visible_ids(each.env, gpus):
                found.append(CheckpointEntry(uid, container, NVIDIA, ids))
        return (*found, *self._still_found(live, {*known, *listed}))

    def _still_found(self, live: Mapping[str, Object], known: set[tuple[str, str]]) -> Sequence[CheckpointEntry]:
        """Return what was found before this incarnation, of containers that nothing is known of: those that the runtime
        does not list do not run any more, unless it lists none at all, as one that cannot be asked yet."""
        if self._running:
            self._recalled = ()
        return [
            entry
            for entry in self._recalled
            if (pod := live.get(entry.pod_uid)) is not None
            and not placed_by(pod, self._config.scheduler)
            and (entry.pod_uid, entry.container) not in known
        ]
