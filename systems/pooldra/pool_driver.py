"""The pool driver: offers the free devices of each chassis to claims, and attaches those that claims were given.

All that it does follows from the chassis' table, the claims and the nodes' annotations, so an incarnation can be killed
at any point: the next one finds the same situation, or the one that its last act has made of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mews.kube.api.objects import Object, name_of
from mews.kube.api.resource_claims import results_of
from mews.kube.api.resources import NODES, RESOURCE_CLAIMS, RESOURCE_SLICES
from mews.kube.chassis.port import ChassisApi
from mews.kube.client.informer import Informer
from mews.kube.component import Context
from mews.kube.dra.gpus import DRIVER
from mews.systems.pooldra.asks import StandingRequests
from mews.systems.pooldra.chassis_worker import ChassisWorker
from mews.systems.pooldra.config import PoolDraConfig
from mews.systems.pooldra.errors import PoolDraError
from mews.systems.pooldra.view import KnownUses, is_ready


class PoolDriver:
    """Component: one incarnation. ``chassis`` maps the configuration's names to their APIs.

    Raises PoolDraError when one is missing.
    """

    def __init__(self, context: Context, config: PoolDraConfig, chassis: Mapping[str, ChassisApi]) -> None:
        missing = [each.name for each in config.chassis if each.name not in chassis]
        if missing:
            raise PoolDraError(f"chassis {missing[0]!r}: has no connection; connections exist for {sorted(chassis)}")
        self._claims = Informer(context.kube, RESOURCE_CLAIMS)
        self._nodes = Informer(context.kube, NODES)
        self._slices = Informer(context.kube, RESOURCE_SLICES, field_selector=f"spec.driver={DRIVER}")
        asks = StandingRequests(context.kube, self._nodes, config)
        uses = KnownUses(self._claims)
        self._workers = [
            ChassisWorker(
                context,
                config,
                each,
                api=chassis[each.name],
                uses=uses,
                nodes=self._nodes,
                slices=self._slices,
                asks=asks,
            )
            for each in config.chassis
        ]

    async def run(self) -> None:
        """Serve all chassis, each at its own pace, until cancelled."""
        async with asyncio.TaskGroup() as group:
            informers = (self._claims, self._nodes, self._slices)
            for informer in informers:
                group.create_task(informer.run())
            for informer in informers:
                await informer.synced()
            self._claims.on_change(self._claim_changed)
            self._nodes.on_change(self._node_changed)
            self._slices.on_change(self._slice_changed)
            for worker in self._workers:
                group.create_task(worker.run())

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        self._look({str(each["pool"]) for claim in (old, new) if claim is not None for each in results_of(claim)})

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        # A kubelet reports its node every few minutes, and a load on it more often: nothing here hangs on that.
        if old is None or new is None or _read_of(old) != _read_of(new):
            self._look({name_of(new or old or {})})

    def _slice_changed(self, old: Object | None, new: Object | None) -> None:
        self._look({str(each["spec"]["pool"]["name"]) for each in (old, new) if each is not None})

    def _look(self, pools: set[str]) -> None:
        """Something of those pools changed, or of the pools of nodes with these names."""
        for worker in self._workers:
            if worker.knows & pools:
                worker.look_again()


def _read_of(node: Object) -> tuple[bool, object]:
    """Return what the workers read of a node."""
    return is_ready(node), node["metadata"].get("annotations")
