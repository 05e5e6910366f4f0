"""koord-scheduler: the scheduling framework with DeviceShare, and what it answers people who ask about its books."""

from __future__ import annotations

import asyncio
import json

from msgspec.structs import replace

from mews.kube.client.port import KubeApi
from mews.kube.component import Context, Runnable
from mews.kube.leader_election import LeaderElection
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.framework import PluginFactory
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.scheduler import Scheduler
from mews.kube.system.services import ServicePort, ServiceReply
from mews.systems.koordinator.cache import NodeDeviceCache
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.metrics import exposition
from mews.systems.koordinator.plugin import COUNTED_GROUPS, koordinator_profile

SUMMARIES = "/apis/v1/plugins/DeviceShare/nodeDeviceSummaries"
"""Where Total, Free, Used and AllocateSet of all nodes are read, as upstream serves them; of one, behind its name."""


class KoordScheduler:
    """One incarnation. ``service`` is what it answers requests on, None where nobody can ask; ``plugin`` takes
    DeviceShare's place; ``devices`` is what the cluster's feature gates let it do with claimed devices."""

    def __init__(
        self,
        context: Context,
        config: KoordinatorConfig,
        service: ServicePort | None = None,
        *,
        plugin: PluginFactory | None = None,
        devices: DeviceFeatures = DEFAULT_FEATURES,
    ) -> None:
        self._context, self._config, self._plugin = context, config, plugin
        self._service, self._devices = service, devices
        self.cache = NodeDeviceCache()
        """The books, of this term where a leader is elected; empty while another one leads."""
        self._scheduler = None if config.leader_elect else self._made(context.kube)

    async def run(self) -> None:
        """Schedule until cancelled; where a leader is elected, while this one leads."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._lead() if self._scheduler is None else self._scheduler.run())
            if self._service is not None:
                group.create_task(self._service.serve(self.handle))

    async def _lead(self) -> None:
        name = self._config.scheduler_name
        identity = f"{name}_{self._context.rng.getrandbits(64):016x}"
        election = LeaderElection(self._context, self._config.namespace, name, identity=identity)
        await election.run(self._term)

    def _term(self, kube: KubeApi) -> Runnable:
        return _Term(self, self._made(kube))

    def _made(self, kube: KubeApi) -> Scheduler:
        """Return the scheduler of one term: what it must know is in the API."""
        self.cache = NodeDeviceCache()
        profile = (
            koordinator_profile(self._config, self.cache, self._devices)
            if self._plugin is None
            else _profile_with(self._config, self._plugin, self._devices)
        )
        return Scheduler(replace(self._context, kube=kube), SchedulerConfig((profile,)))

    async def handle(self, method: str, path: str, body: bytes) -> ServiceReply:
        """Answer one request."""
        path = path.partition("?")[0].rstrip("/")
        if path == "/metrics" and method == "GET":
            return ServiceReply(200, exposition(self.cache.summary()).encode(), "text/plain; version=0.0.4")
        head, _, node = path.partition(SUMMARIES)
        if head or not path.startswith(SUMMARIES) or (node and not node.startswith("/")):
            return _json(404, {"error": f"{path}: no such thing; ask for {SUMMARIES} or {SUMMARIES}/NODE"})
        if method != "GET":
            return _json(405, {"error": f"{method} {path}: must be GET"})
        if not node:
            return _json(200, self.cache.summary())
        found = self.cache.summary([node[1:]])
        return (
            _json(200, found[node[1:]]) if found else _json(404, {"error": f"{node[1:]}: no devices are known of it"})
        )


class _Term:
    """One term of a leader: its books go with it."""

    def __init__(self, holder: KoordScheduler, scheduler: Scheduler) -> None:
        self._holder, self._scheduler = holder, scheduler

    async def run(self) -> None:
        try:
            await self._scheduler.run()
        finally:
            self._holder.cache = NodeDeviceCache()


def _profile_with(config: KoordinatorConfig, plugin: PluginFactory, devices: DeviceFeatures) -> SchedulerProfile:
    fitting = default_plugins(ignored_resource_groups=COUNTED_GROUPS, devices=devices)
    return SchedulerProfile(config.scheduler_name, (*fitting, plugin))


def _json(status: int, body: object) -> ServiceReply:
    return ServiceReply(status, json.dumps(body).encode())
