"""All controllers of a cluster in one component, on shared informers, as kube-controller-manager."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mews.kube.clock import Pace
from mews.kube.component import Context
from mews.kube.emulated.controllers.catalogue import ALL, CONTROLLERS, Parts, chosen
from mews.kube.emulated.controllers.owners import Informers
from mews.kube.events import EventRecorder


class ControllerManager:
    """Component: those of ``catalogue.CONTROLLERS`` that are wished for (see ``chosen``).

    Raises ValueError for a wish that cannot be met.
    """

    def __init__(self, context: Context, pace: Pace, *, controllers: Sequence[str] = (ALL,)) -> None:
        self._context = context
        self._pace = pace
        self._names = chosen(controllers)

    async def run(self) -> None:
        """Run until cancelled."""
        informers = Informers(self._context.kube)
        async with asyncio.TaskGroup() as tasks:

            def recorder(component: str) -> EventRecorder:
                made = EventRecorder(self._context, component)
                tasks.create_task(made.run())
                return made

            parts = Parts(self._context, self._pace, informers, recorder)
            made = [CONTROLLERS[name](parts) for name in self._names]
            tasks.create_task(informers.run())
            for controller in made:
                tasks.create_task(controller.run())
