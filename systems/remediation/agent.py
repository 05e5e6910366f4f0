"""One per node: watches its GPUs, says which are broken and who uses them, and resets those that nobody uses.

What it has seen and what it is about to do stand on its node before it does anything, so that the next incarnation goes
on where this one ended. A reset that was cut short is done again: nobody uses the GPU.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object
from mews.kube.api.resources import NODES
from mews.kube.client.informer import Informer
from mews.kube.component import Context, record
from mews.kube.deviceplugin.release import (
    DeviceRequest,
    ReleaseState,
    asked_by,
    holder_record,
    requests_annotation,
)
from mews.kube.pulse import Pulse
from mews.kube.system.files import FileTree
from mews.kube.system.gpu_driver import DriverRefusalError, GpuDriver
from mews.systems.remediation import policy
from mews.systems.remediation.config import RemediationConfig
from mews.systems.remediation.host_gpus import HostGpu, HostGpus
from mews.systems.remediation.names import ASKER
from mews.systems.remediation.policy import LOST, Observed
from mews.systems.remediation.records import IncidentState, NodeGpus, gpus_annotation, node_gpus, node_work

_LEASE_S = 60.0
"""A request to a holder of devices lapses after that unless it is renewed."""


class RemediationAgent:
    """One incarnation."""

    def __init__(
        self, context: Context, config: RemediationConfig, node: str, *, files: FileTree, driver: GpuDriver | None
    ) -> None:
        self._context = context
        self._config = config
        self._node = node
        self._driver = driver
        self._host = HostGpus(files)
        self._holder = config.lent.get(node, "")
        self._nodes = Informer(context.kube, NODES, field_selector=f"metadata.name={node}")
        self._wake = Pulse()
        self._nodes.on_change(lambda old, new: self._wake.beat() if node_work(old) != node_work(new) else None)
        self._reported: NodeGpus | None = None
        self._gpus = NodeGpus()
        self._deadlines: dict[str, float] = {}
        self._reset: set[str] = set()
        self._persistent: set[str] = set()
        self._tries: dict[str, int] = {}

    async def run(self) -> None:
        """Look, say and reset, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._nodes.run())
            await self._nodes.synced()
            while True:
                try:
                    await self._look()
                except (ApiError, UnavailableError) as error:
                    record(self._context.log, "not-written", node=self._node, error=str(error))
                except OSError as error:
                    record(self._context.log, "host-unread", node=self._node, error=str(error))
                await self._wake.wait(self._config.poll_s)

    async def _look(self) -> None:
        node = self._nodes.get(self._node)
        if node is None:
            return
        if self._reported is None:
            self._gpus = self._reported = node_gpus(node)
        gpus = await self._host.gpus()
        seen = await self._observe(gpus)
        self._gpus = seen.gpus
        await self._report()
        for uuid in self._permitted(node):
            await self._mend(uuid, gpus, seen, node)

    async def _observe(self, gpus: dict[str, HostGpu]) -> Observed:
        logged = await self._host.xids()
        seen = policy.observed(
            self._gpus,
            gpus,
            logged=logged,
            functions=await self._host.functions(),
            now_s=self._context.clock.now(),
        )
        broken = [gpus[uuid] for uuid in seen.gpus.incidents if uuid in gpus]
        return policy.with_users(seen, await self._host.users(broken))

    async def _report(self) -> None:
        """Write what is known onto the node, if it is news.

        Raises ApiError, UnavailableError.
        """
        if (
            self._reported is not None
            and self._reported == self._gpus
            and self._gpus.seen is not None
            and self._written()
        ):
            return
        await self._patch(gpus_annotation(self._gpus))
        before, self._reported = self._reported or NodeGpus(), self._gpus
        for uuid, incident in self._gpus.incidents.items():
            if before.incidents.get(uuid) is None:
                record(self._context.log, "broken", gpu=uuid, cause=incident.cause, pods=list(incident.pods))

    def _written(self) -> bool:
        """Return whether the node shows anything of ours: one that registered anew does not."""
        node = self._nodes.get(self._node)
        return node is None or node_gpus(node).seen is not None

    async def _patch(self, annotations: Mapping[str, str]) -> None:
        body = {"metadata": {"annotations": annotations}}
        await self._context.kube.patch(NODES, self._node, body)

    # Resetting

    def _permitted(self, node: Object) -> list[str]:
        """Return the GPUs whose reset may begin, or goes on."""
        work = node_work(node)
        reset = {} if work is None else work.reset
        return [uuid for uuid, each in self._gpus.open.items() if reset.get(uuid) == each.number]

    async def _mend(self, uuid: str, gpus: dict[str, HostGpu], seen: Observed, node: Object) -> None:
        """One step towards the GPU's being well, or given up. Raises ApiError, UnavailableError, OSError."""
        incident, now_s = self._gpus.incidents[uuid], self._context.clock.now()
        if incident.state is IncidentState.BROKEN:
            self._gpus = policy.changed(self._gpus, uuid, IncidentState.RESETTING)
            await self._report()
        deadline_s = self._deadlines.setdefault(uuid, now_s + self._config.reset_s)
        gpu = gpus.get(uuid)
        if gpu is not None and not gpu.answers:
            await self._give_up(uuid, LOST)
        elif uuid in self._reset and uuid in seen.struck:
            await self._give_up(uuid, f"XID {seen.struck[uuid]} after its reset")
        elif uuid in self._reset and gpu is not None:
            await self._well(uuid, gpu)
        elif gpu is None or uuid in self._reset:
            if now_s >= deadline_s:
                await self._give_up(uuid, "its driver has not taken it back")
        elif reason := await self._try(uuid, gpu, node):
            record(self._context.log, "not-reset", gpu=uuid, reason=reason)
            if now_s >= deadline_s:
                await self._give_up(uuid, reason)

    async def _try(self, uuid: str, gpu: HostGpu, node: Object) -> str:
        """Reset it; why it cannot be, "" where it was."""
        if self._driver is None:
            return "nothing here resets GPUs"
        if self._holder and (reason := await self._unreleased(uuid, node)):
            return reason
        try:
            if await self._driver.persistence(gpu.bdf):
                self._persistent.add(uuid)
                await self._driver.set_persistence(gpu.bdf, False)
            await self._driver.reset(gpu.bdf)
        except DriverRefusalError as refusal:
            return str(refusal)
        self._reset.add(uuid)
        record(self._context.log, "reset", gpu=uuid, bdf=gpu.bdf)
        self._wake.beat()
        return ""

    async def _unreleased(self, uuid: str, node: Object) -> str:
        """Return why the system that hands out the node's devices in parts has not let go of this one yet, "" if it
        has."""
        number, now_s = self._gpus.incidents[uuid].number, self._context.clock.now()
        request = f"{ASKER}-{number}.{self._tries.get(uuid, 0)}"
        answer = holder_record(node, self._holder).answers.get(uuid)
        if answer is not None and answer.request == request and answer.state is ReleaseState.REFUSED:
            self._tries[uuid] = self._tries.get(uuid, 0) + 1
            return f"{self._holder}: {answer.reason}"
        asked = asked_by(node, self._holder, ASKER).get(uuid)
        if asked is None or asked.request != request or asked.until_s - now_s < _LEASE_S / 2:
            standing = {**asked_by(node, self._holder, ASKER), uuid: DeviceRequest(request, now_s + _LEASE_S)}
            await self._patch(requests_annotation(self._holder, standing, asker=ASKER))
        if answer is not None and answer.request == request and answer.state is ReleaseState.RELEASED:
            return ""
        return f"{self._holder} has not let go of it"

    async def _well(self, uuid: str, gpu: HostGpu) -> None:
        if uuid in self._persistent and self._driver is not None:
            self._persistent.discard(uuid)
            with contextlib.suppress(DriverRefusalError):  # It is as good without.
                await self._driver.set_persistence(gpu.bdf, True)
        number = self._gpus.incidents[uuid].number
        self._gpus = policy.mended(self._gpus, uuid)
        await self._over(uuid)
        record(self._context.log, "mended", gpu=uuid, number=number)

    async def _give_up(self, uuid: str, reason: str) -> None:
        self._gpus = policy.changed(self._gpus, uuid, IncidentState.FAILED, reason)
        await self._over(uuid)
        record(self._context.log, "given-up", gpu=uuid, reason=reason)

    async def _over(self, uuid: str) -> None:
        """Say how it ended, and ask no holder any more, in one write."""
        annotations = gpus_annotation(self._gpus)
        if self._holder:
            standing = asked_by(self._nodes.get(self._node), self._holder, ASKER)
            standing.pop(uuid, None)
            # Empty it stays: a holder looks after what it let go of while somebody may ask.
            annotations |= requests_annotation(self._holder, standing, asker=ASKER)
        await self._patch(annotations)
        self._reported = self._gpus
        self._deadlines.pop(uuid, None)
        self._tries.pop(uuid, None)
        self._reset.discard(uuid)
