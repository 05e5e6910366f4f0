"""Which of a node's GPUs are in MIG mode, so that no pod can use them whole. GPU instances show in the driver's files;
the mode of a GPU without instances only the driver knows, and asking it opens every GPU of the host for a moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mews.kube.component import Context, record
from mews.kube.divided_gpus import DividedGpus
from mews.kube.events import EventRecorder
from mews.kube.system.gpu_driver import DriverRefusalError
from mews.kube.system.host_steps import HostSteps
from mews.kube.system.sysfs import NamedByUuid
from mews.systems.kubecomp.config import KubeCompConfig, NodeConfig

_PATIENCE_S = 5.0
"""A driver that has not answered by then is asked again later."""


def mig_modes(context: Context, config: KubeCompConfig, node: NodeConfig, steps: HostSteps) -> MigModes | None:
    """Return those of a node; None where another component hands its devices out. A host that is told of no removal is
    not asked, either."""
    if node.lent_to:
        return None
    return MigModes(context, node.name, steps, poll_s=config.timing.mig_poll_s if config.removal == "orderly" else None)


class MigModes:
    """One node's. ``poll_s``: how often the driver is asked; None: never, as files are all there is."""

    def __init__(self, context: Context, node: str, steps: HostSteps, *, poll_s: float | None) -> None:
        self._steps = steps
        self._events = EventRecorder(context, "device-manager", node)
        self._reported = DividedGpus(self._events, node)
        self._log = context.log
        self._poll_s = poll_s
        self._due_s = 0.0
        self._known: frozenset[str] = frozenset()
        self._undivisible: tuple[str, ...] | None = None
        """The UUIDs of the last look if none of them can be divided: models do not change."""

    async def run(self) -> None:
        """Post the events, until cancelled."""
        await self._events.run()

    async def look(self, devices: Sequence[NamedByUuid], *, is_quiet: bool) -> frozenset[str]:
        """Return the UUIDs of the GPUs among these that are in MIG mode; new ones are reported. ``is_quiet``: no GPU is
        being taken out, so that the driver may be asked; else the last answer stands."""
        uuids = tuple(device.uuid for device in devices if device.uuid)
        if uuids == self._undivisible:
            return self._known
        try:
            divisible = await self._steps.divisible(uuids)
        except OSError as error:
            record(self._log, "host-unread", error=str(error))
            return self._known
        self._undivisible = None if divisible else uuids
        if not divisible:
            self._known = frozenset()
            return self._known
        in_parts = {uuid for uuid, (_, has_instances) in divisible.items() if has_instances}
        on = await self._on(self._poll_s) if is_quiet and self._poll_s is not None else None
        by_mode = self._known if on is None else {uuid for uuid, (bdf, _) in divisible.items() if bdf in on}
        self._known = frozenset(in_parts | (by_mode & divisible.keys()))
        self._reported.report(self._known)
        return self._known

    async def _on(self, poll_s: float) -> frozenset[str] | None:
        """Return what the driver says; None while it is too early to ask again, and where it does not answer."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._due_s:
            return None
        self._due_s = loop.time() + poll_s
        try:
            async with asyncio.timeout(_PATIENCE_S):
                return await self._steps.in_mig_mode()
        except (DriverRefusalError, TimeoutError) as error:
            record(self._log, "mig-mode-unknown", error=str(error))
            return None
