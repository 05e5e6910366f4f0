"""A controller that costs nothing before there is something for it to do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from mews.kube.api.objects import Object
from mews.kube.client.informer import Informer
from mews.kube.component import Runnable


class LazyController:
    """Runnable: makes another and runs it as soon as one of the caches holds an object that ``concerns`` it."""

    def __init__(
        self,
        informers: tuple[Informer, ...],
        make: Callable[[], Runnable],
        concerns: Callable[[Object], bool] = lambda obj: True,
    ) -> None:
        self._informers = informers
        self._make = make
        self._concerns = concerns
        self._woken = asyncio.Event()

    async def run(self) -> None:
        """Run until cancelled."""
        for informer in self._informers:
            informer.on_change(self._changed)
        await self._woken.wait()
        await self._make().run()

    def _changed(self, _old: Object | None, new: Object | None) -> None:
        if new is not None and not self._woken.is_set() and self._concerns(new):
            self._woken.set()
