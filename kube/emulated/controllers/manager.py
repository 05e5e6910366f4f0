"""All controllers of a cluster in one component, on shared informers, as kube-controller-manager."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mews.kube.clock import Pace
from mews.kube.component import Context
from mews.kube.emulated.controllers.catalogue import ALL, CONTROLLERS, DEVICE_TAINTS, ROOT_CA, Parts, chosen
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.events import EventRecorder
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures


class ControllerManager:
    """Component: those of ``catalogue.CONTROLLERS`` that are wished for (see ``chosen``). ``authority``: the
    certificates by which the API server is known, None where it has none. ``devices``: what the cluster's feature gates
    let controllers do with devices.

    Raises ValueError for a wish that cannot be met.
    """

    def __init__(
        self,
        context: Context,
        pace: Pace,
        *,
        controllers: Sequence[str] = (ALL,),
        authority: str | None = None,
        devices: DeviceFeatures = DEFAULT_FEATURES,
    ) -> None:
        self._context = context
        self._pace = pace
        self._authority = authority
        self._devices = devices
        off = {*(() if authority is not None else (ROOT_CA,)), *(() if devices.device_taints else (DEVICE_TAINTS,))}
        self._names = [name for name in chosen(controllers) if name not in off]

    async def run(self) -> None:
        """Run until cancelled."""
        informers = Informers(self._context.kube)
        async with asyncio.TaskGroup() as tasks:

            def recorder(component: str) -> EventRecorder:
                made = EventRecorder(self._context, component)
                tasks.create_task(made.run())
                return made

            parts = Parts(self._context, self._pace, informers, recorder, self._authority, self._devices)
            made = [CONTROLLERS[name](parts) for name in self._names]
            tasks.create_task(informers.run())
            for controller in made:
                tasks.create_task(controller.run())
