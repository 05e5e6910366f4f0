"""Reconfig-Mgr: moves devices of the pools to where pods wait for them (seed paper sections IV-D, V-A).

A pod that the scheduler holds for a node is on the API twice, as an annotated pod and as a Reconfig event. Both only
say "look": what is moved follows from the pods, the nodes' reports and the chassis as they are at that moment, so a
stale annotation, and an event heard twice or late, move nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from mews.kube.chassis.port import ChassisApi
from mews.kube.component import Context
from mews.kube.events import EventRecorder
from mews.systems.kubecomp.config import KubeCompConfig, Topology
from mews.systems.kubecomp.config_map_writer import ConfigMapWriter
from mews.systems.kubecomp.errors import KubeCompConfigError
from mews.systems.kubecomp.metrics import KubeCompMemoryMetrics, KubeCompMetrics
from mews.systems.kubecomp.pool_worker import PoolWorker
from mews.systems.kubecomp.view import ClusterView


class ReconfigManager:
    """One incarnation. ``chassis`` maps the configuration's chassis names to their APIs.

    Raises ConfigError when one is missing.
    """

    def __init__(
        self,
        context: Context,
        config: KubeCompConfig,
        chassis: Mapping[str, ChassisApi],
        metrics: KubeCompMetrics | None = None,
    ) -> None:
        missing = [entry.name for entry in config.chassis if entry.name not in chassis]
        if missing:
            raise KubeCompConfigError(f"chassis {missing[0]!r}: has no connection; only {sorted(chassis)} have")
        topology = Topology(config)
        self._view = ClusterView(context.kube, config, topology, self._on_change)
        board = ConfigMapWriter(context.kube, config.namespace)
        self.metrics: KubeCompMetrics = metrics if metrics is not None else KubeCompMemoryMetrics()
        self._events = EventRecorder(context, "reconfig-manager")
        self._workers = {
            pool: PoolWorker(
                context,
                config,
                pool,
                topology=topology,
                chassis=chassis,
                view=self._view,
                board=board,
                metrics=self.metrics,
                events=self._events,
            )
            for pool in topology.pools
        }

    async def run(self) -> None:
        """Serve all pools, each at its own pace, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._view.run())
            group.create_task(self._events.run())
            for worker in self._workers.values():
                group.create_task(worker.run())

    def _on_change(self, pool: str, news: bool) -> None:
        self._workers[pool].on_change(news)
