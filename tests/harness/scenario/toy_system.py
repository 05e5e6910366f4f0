"""A system that nobody has heard of: it counts the pods that exist, in objects of a kind of its own."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Literal

from mews.kube.api.errors import AlreadyExistsError, ApiError
from mews.kube.api.resources import NODES, PODS, Resource
from mews.kube.clock import rest
from mews.kube.component import record
from mews.kube.system.options import COUNT, OptionsModel
from mews.kube.system.system import Component, System
from mews.kube.system.system_parts import SystemMeasuring

COUNTS = Resource("toys.example.com", "v1", "podcounts", "PodCount")
_SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "podcounts.toys.example.com"},
    "spec": {
        "group": "toys.example.com",
        "scope": "Namespaced",
        "names": {"plural": "podcounts", "singular": "podcount", "kind": "PodCount", "listKind": "PodCountList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": _SCHEMA}}],
    },
}


class ToyOptions(OptionsModel):
    """``every``: seconds between two looks; ``mood`` shows that choices are checked."""

    every: COUNT = 2
    mood: Literal["calm", "busy"] = "calm"


@dataclass(frozen=True)
class ToyConfig:
    every: int
    nodes: tuple[str, ...]


class Counter:
    """Writes how many pods there are."""

    def __init__(self, ports, config):
        self._context, self._config, self._measures = ports.context, config, ports.measures

    async def run(self):
        kube = self._context.kube
        made = {"apiVersion": "toys.example.com/v1", "kind": "PodCount", "metadata": {"name": "all"}, "pods": 0}
        with contextlib.suppress(AlreadyExistsError):
            await kube.create(COUNTS, made, namespace="default")
        while True:
            pods = len((await kube.list(PODS, namespace="default")).items)
            self._measures.append(pods)
            there = await kube.get(COUNTS, "all", namespace="default")
            if there.get("pods") != pods:
                record(self._context.log, "counted", pods=pods)
                await kube.replace(COUNTS, {**there, "pods": pods}, namespace="default")
            await rest(self._config.every)


class Painter:
    """One on each node: labels it with the name of what it runs on."""

    def __init__(self, ports, config):
        self._context, self._node = ports.context, ports.node

    async def run(self):
        while True:
            with contextlib.suppress(ApiError):  # the node is not there yet, or somebody else was faster
                await self._paint()
            await rest(1)

    async def _paint(self):
        found = await self._context.kube.get(NODES, self._node.name)
        labels = found["metadata"].setdefault("labels", {})
        if labels.get("toys.example.com/painted") != self._node.name:
            labels["toys.example.com/painted"] = self._node.name
            await self._context.kube.replace(NODES, found)


def configure(options, facility):
    if options.mood == "busy" and options.every > 10:
        raise ValueError("every: a busy toy looks every 10 seconds at least")
    return ToyConfig(options.every, tuple(node.name for node in facility.nodes))


SYSTEM = System(
    name="toy",
    summary="counts pods",
    options=ToyOptions,
    configure=configure,
    components=(
        Component("scheduler", Counter),
        Component("painter", Painter, nodes=lambda config: config.nodes),
    ),
    namespace=lambda config: "toys",
    kinds=lambda: (DEFINITION,),
    measuring=SystemMeasuring(
        measures=list,
        measured=lambda measures: {"most_pods": max(measures, default=0)},
        names={"most_pods": "pods at once"},
    ),
)
