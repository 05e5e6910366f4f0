"""All controllers of a cluster in one component, on shared informers, as kube-controller-manager."""

from __future__ import annotations

import asyncio

from mews.harness.clock import Pace
from mews.harness.controllers.garbage import GarbageCollector
from mews.harness.controllers.namespaces import NamespaceDeletion
from mews.harness.controllers.node_lifecycle import NodeLifecycle
from mews.harness.controllers.taint_eviction import TaintEviction
from mews.harness.events import EventRecorder
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.informer import Informer
from mews.kube.component import Component, Context


class ControllerManager:
    """Component: node lifecycle, taint eviction, garbage; ``namespaces`` too where the API server leaves it to us."""

    def __init__(self, context: Context, pace: Pace, *, namespaces: bool = False) -> None:
        self._context = context
        self._pace = pace
        self._namespaces = namespaces

    async def run(self) -> None:
        """Run until cancelled."""
        context, pace = self._context, self._pace
        nodes, pods = Informer(context.kube, NODES), Informer(context.kube, PODS)
        node_events = EventRecorder(context, "node-controller")
        eviction_events = EventRecorder(context, "taint-eviction-controller")
        parts: list[Component | Informer | EventRecorder] = [
            *(nodes, pods, node_events, eviction_events),
            NodeLifecycle(context, pace, nodes=nodes, pods=pods, events=node_events),
            TaintEviction(context, pace, nodes=nodes, pods=pods, events=eviction_events),
            GarbageCollector(context, pace, nodes=nodes, pods=pods),
        ]
        if self._namespaces:
            parts.append(NamespaceDeletion(context, pace))
        async with asyncio.TaskGroup() as tasks:
            for part in parts:
                tasks.create_task(part.run())
