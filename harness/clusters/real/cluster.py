"""A real cluster with our components in its pods: the Cluster of ``kind`` and ``kubeconfig``."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.hardware.inventory import Hardware
from mews.harness.clusters.real.access import Gate
from mews.harness.clusters.real.admin import ClusterAdmin
from mews.harness.clusters.real.chassis import PodChassis, PodHardware
from mews.harness.clusters.real.component_pods import ComponentPods
from mews.harness.clusters.real.component_switches import ComponentSwitches
from mews.harness.clusters.real.extenders import addressed_extenders
from mews.harness.clusters.real.first_objects import make_first_objects
from mews.harness.clusters.real.following import LogFollower, logs_records
from mews.harness.clusters.real.hidden_nodes import HiddenNodes
from mews.harness.clusters.real.hosts import PodHosts
from mews.harness.clusters.real.idle_part import IdlePart
from mews.harness.clusters.real.nodes import Nodes
from mews.harness.clusters.real.pod_faults import PodFaults
from mews.harness.clusters.real.readiness import Readiness, announced_devices, kinds_served
from mews.harness.clusters.real.replacement_pods import ReplacementPods
from mews.harness.clusters.real.reset import SYSTEM, Reset
from mews.harness.clusters.real.rewriting import Fitting, FittingKube
from mews.harness.clusters.real.rollout import Notify, Rollout
from mews.harness.clusters.real.supervisor import KILL, START
from mews.harness.clusters.real.systems import deployments, image_book
from mews.harness.errors import RequirementError
from mews.harness.journal import Journal
from mews.harness.manifests.parts import TLS_SECRET, TRUST
from mews.harness.manifests.replacement_objects import manifest_objects
from mews.harness.manifests.replacements import is_deployed_last
from mews.harness.manifests.services import SERVICES_CA, SERVICES_TLS, extender_entries
from mews.harness.manifests.spec import StackSpec
from mews.harness.manifests.stack import manifests
from mews.harness.ports.cluster import DEFAULT_SCHEDULER, HardwareControl
from mews.harness.ports.hardware_http import HttpHardwareControl
from mews.harness.recorder import Recorder
from mews.harness.run_context import RunContext
from mews.harness.scenario.artefacts import logs_of
from mews.harness.scenario.model import Scenario
from mews.harness.systems import watched_by
from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object
from mews.kube.api.resources import PODS, Resource
from mews.kube.client.port import KubeApi
from mews.kube.clock import Pace
from mews.kube.deviceplugin.port import PodDevices
from mews.kube.system.configured import ConfiguredSystem
from mews.names import must_be

log = logging.getLogger(__name__)


class Deployment(Struct, frozen=True):
    """What one scenario has deployed in a real cluster."""

    scenario: Scenario
    hardware: Hardware
    stack: StackSpec
    settings: Sequence[Mapping[str, Any]] = ()
    """The extenders' entries in the default scheduler's configuration."""


class RealCluster(IdlePart):
    """A Cluster whose nodes run real kubelets. ``await open()`` before use: then everything is as at a first start."""

    time = "wall"

    def __init__(
        self, deployment: Deployment, run: RunContext, admin: ClusterAdmin, notify: Notify = lambda _: None
    ) -> None:
        self.name = admin.name
        self.journal = run.journal
        self.records = Journal(lambda: run.journal.elapsed_s)
        self.clock = run.clock
        self.pace, self.kubelet_pace = run.pace, Pace()
        self.dialect = run.dialect
        self.parts_are_ours = False  # kubelets, scheduler and controllers are the cluster's
        self.systems: Sequence[ConfiguredSystem] = deployment.scenario.stack.configured(deployment.stack.facility)
        self._deployment = deployment
        self._cluster_admin = admin
        self._target = admin.target
        self._notify = notify
        self._gate = Gate(admin.target)
        self._admin = self._gate.kube("admin")
        known = deployments()
        swept = [resource for each in known for resource in each.swept()]
        notes = [(where, start) for each in known for where, starts in each.notes.items() for start in starts]
        self._reset = Reset(self._admin, admin.target, notify, swept, notes, [n for d in known for n in d.on_nodes])
        images, target, foreign = image_book(deployment.scenario), admin.target, deployment.stack.foreign_claims
        self._fit = Fitting(images, target.image, target.nodes, run.speed, known, foreign_claims=foreign)
        self.kube: KubeApi = self._view("admin", self._reset.made)
        self._rollout = Rollout(self._admin, admin.target.namespace, notify)
        ours = admin.target.namespace
        ignored = (*SYSTEM, ours, *(name for name, real in admin.target.namespaces.items() if real == ours))
        self._recorder = Recorder(
            self._view("recorder"), self.journal, watched=watched_by(self.systems), ignored=ignored
        )
        self._recording: asyncio.Task[None] | None = None
        hooks, hosts = deployment.stack.runtime_hooks, self._hosts()
        hooked = self._hooked = {host: hooks[node] for host, node in hosts.items() if node in hooks}
        self._pod_hosts = PodHosts(self._gate, ours, reports=bool(hooked) or deployment.stack.shows_users)
        self._nodes = Nodes(
            self._gate,
            self._view("nodes"),
            self.journal,
            hosts=self._hosts(),
            records=self.records,
            component=deployment.stack.node_component() or "",
            ignored=ignored,
            users=self._pod_hosts.users,
            hooked=hooked,
            visible=self._pod_hosts.visible,
        )
        self._stack = dataclasses.replace(deployment.stack, allow_hosts=self._gate.names())
        self._replacements = ReplacementPods(
            deployment.stack,
            kube=self._admin,
            view=self._view("replacements"),
            journal=self.journal,
            hosts={node: host for host, node in self._hosts().items()},
        )
        url = self._gate.service(admin.target.namespace, "chassis", "control")
        control = HttpHardwareControl(url, "", opened=lambda: self._gate.session(self._stack.token))
        struck = deployment.stack.struck
        self.api_faults = PodFaults(self._admin, ours, self.journal, lambda: self._pods.pods, struck)
        self.hardware: HardwareControl = PodHardware(control, self._pod_hosts, self._nodes.users_known)
        self._chassis = PodChassis(control, deployment.hardware, self.journal)
        self._pods = ComponentPods(
            self._stack,
            self._hosts(),
            self._rollout,
            kube=self._admin,
            namespace=ours,
            check=self._replacements.check,
        )
        self._switches = ComponentSwitches(
            self._pods,
            admin,
            chassis=self._chassis,
            chassis_names=[spec.name for spec in deployment.hardware.chassis],
            hosts=list(self._hosts()),
            stack=self._stack,
            nodes=self._nodes,
            journal=self.journal,
        )
        self._following: list[asyncio.Task[None]] = []

    def _view(self, actor: str, made: Callable[[Resource, str, str | None], None] = lambda *_: None) -> KubeApi:
        """Return the API as the scenario knows it."""
        hosts, target = self._hosts().values(), self._target
        strangers = HiddenNodes(hosts, cordoned=len(set(target.ours) - set(hosts)))
        kube = self._gate.kube(actor)
        return FittingKube(kube, self._fit, made, namespaces=target.namespaces, mark=target.mark, strangers=strangers)

    def _hosts(self) -> dict[str, str]:
        return {host.name: self._target.nodes[host.name] for host in self._deployment.hardware.hosts}

    # Beginning and end

    async def open(self) -> None:
        """Deploy what the scenario needs, undo what an earlier one left, wait until nodes offer what they have.

        Raises RequirementError for what the cluster does not let us do, or does not do in time.
        """
        self._notify("clearing the cluster")
        await self._cluster_admin.restore()
        await self._reset.scenario_objects()
        await self._replacements.remove()
        await self._replacements.clean()
        await self._reset.cordon(set(self._hosts().values()))
        await self._reset.namespaces()
        await self._cluster_admin.extend(())
        await self._cluster_admin.hook(self._hooked)
        self._notify("deploying the components")
        token = await self._reset.token(self._stack.token)
        chassis = await self._reset.certificate(TLS_SECRET, TRUST, self._stack.certificate)
        served = await self._reset.certificate(SERVICES_TLS, SERVICES_CA, self._stack.service_certificate)
        stack = self._stack = dataclasses.replace(
            self._stack, token=token, certificate=chassis, service_certificate=served
        )
        await make_first_objects(self._admin, self._rollout, self._fit, stack, self._reset.made)
        objects = manifests(stack)
        last = [obj for obj in objects if is_deployed_last(stack, obj)]
        await self._rollout.apply([obj for obj in objects if obj not in last])
        await self._rollout.ready(self._replacements.check_early)
        await kinds_served(self._admin, stack)
        await self._pods.find()
        self._notify("starting the components anew")
        await asyncio.gather(*(self._pods.signal(name, KILL) for name in self._pods.kept()))
        await self._reset.boards()
        await self._chassis.open(speed=self.pace.speed)
        await self._begin_recording()
        for host, pod in self._pods.agents.items():
            await self._pod_hosts.follow(host, pod, stack.token)
            await self._nodes.follow(host, self._target.namespace, pod, stack.token)
        readiness = self._readiness()
        await self._replacements.begin()
        await asyncio.gather(*(self._pods.signal(name, START) for name in self._pods.kept()))
        await self._bring(last)
        announced = announced_devices(stack, self._hosts(), await self.hardware.table())
        await readiness.reached(announced, self._replacements.check, self._notify)
        await self._settle_default_scheduler()
        await self._replacements.steady()

    async def _bring(self, last: Sequence[Object]) -> None:
        """Deploy what cannot be killed and started, and what manifests bring: for the first time, here and now."""
        if last:
            self._notify("deploying yours")
            await self._rollout.apply(last, besides=True)
            await self._rollout.ready(self._replacements.check)
            await self._pods.find()
        await self._replacements.apply(manifest_objects(self._stack), self._notify)
        self._following.append(asyncio.create_task(self._replacements.watch(), name="replacements"))

    async def _settle_default_scheduler(self) -> None:
        """By now all of ours is scheduled."""
        if self._stack.is_replaced(DEFAULT_SCHEDULER):
            await self._cluster_admin.kill(DEFAULT_SCHEDULER)
        settings = [*await addressed_extenders(self._stack, self._admin), *self._deployment.settings]
        if settings:
            self._notify("giving the default scheduler its extenders")
            await self._cluster_admin.extend(settings)
            await self._rollout.ready(self._replacements.check)  # a service has its pods back

    async def _begin_recording(self) -> None:
        self._recording = asyncio.create_task(self._recorder.run(), name="recorder")
        await self._recorder.synced()
        await self._nodes.open()
        self.api_faults.follow()
        begin_s = self.clock.now() - self.journal.elapsed_s
        follower = LogFollower(self._admin, self._target.namespace, self.records, begin_s, self._nodes.on_record)
        for name, pod in self._pods.pods.items():
            if logs_records(self._stack, name.partition("/")[0]):
                self._following.append(asyncio.create_task(follower.run(name, pod), name=f"log/{name}"))

    def _readiness(self) -> Readiness:
        """Return what is awaited of the nodes, from now on."""
        hosts, managed = {node: host for host, node in self._hosts().items()}, self._stack.registering(self._hosts())
        others, known = self._stack.is_replaced(self._stack.node_component() or ""), (self.records, self._hooked)
        return Readiness(self._admin, self.journal, *known, hosts=hosts, managed=managed, others=others)

    async def close(self) -> None:
        """Stop watching, start what is down, remove what the scenario made. The stack stays for the next one."""
        await self._switches.close()
        await self.api_faults.close()
        tasks = [*self._following, *([self._recording] if self._recording is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._nodes.close()
        await self._pod_hosts.close()
        extended = self._deployment.settings or extender_entries(self._stack)
        if extended or self._stack.is_replaced(DEFAULT_SCHEDULER):
            with contextlib.suppress(RequirementError):
                await self._cluster_admin.restore()
        with contextlib.suppress(ApiError, UnavailableError, RequirementError):
            await self._reset.scenario_objects()
            await self._replacements.remove()
        await self._chassis.close()
        await self._gate.close()

    async def remove(self) -> None:
        """Take the whole stack out of the cluster, before ``close``."""
        await self._reset.scenario_objects()
        await self._replacements.remove()
        await self._rollout.remove(manifests(self._stack), list(self._target.namespaces.values()))

    # What the runner asks

    def node_of(self, host: str) -> str:
        """Return the node of a host.

        Raises ValueError naming the hosts.
        """
        if host not in self._target.nodes:
            raise ValueError(f"host {host!r}: {must_be(host, self._target.nodes)}")
        return self._target.nodes[host]

    def components(self) -> Sequence[str]:
        """Return what can be killed and started, or is at least there."""
        return self._switches.components()

    def cut(self, component: str) -> None:
        """Begin to kill it: from outside it cannot be stopped at the very line."""
        self._switches.cut(component)

    async def kill(self, component: str) -> None:
        """Kill -9.

        Raises ValueError naming the components, CapabilityError for what nobody may kill here.
        """
        await self._switches.kill(component)

    async def start(self, component: str) -> None:
        """Start a killed component anew; one that lives lives on.

        Raises ValueError naming the components, CapabilityError for what nobody may start here.
        """
        await self._switches.start(component)

    async def pod_resources(self, host: str) -> tuple[PodDevices, ...]:
        """podresources v1 List of that host's kubelet."""
        named = {real: name for name, real in self._target.namespaces.items()}
        found = await self._nodes.pod_resources(host)
        return tuple(replace(pod, namespace=named.get(pod.namespace, pod.namespace)) for pod in found)

    def ready(self) -> dict[str, Any]:
        """Return where the cluster is; chassis and hosts are reached by nobody but the harness."""
        return {
            "api": self._gate.url,
            "kubeconfig": str(self._target.kubeconfig or ""),
            "context": self._target.context,
            "chassis": {},
            "nodes": {node: {"env": {}} for node in self._hosts().values()},
        }

    async def artefacts(self) -> Mapping[str, str]:
        """Logs that the API does not have, and in somebody's cluster, of which the scenario sees its own namespace
        only, those of our components."""
        found = dict(await self._cluster_admin.logs())
        if self._target.namespaces:
            with contextlib.suppress(ApiError, UnavailableError):
                pods = (await self._admin.list(PODS, namespace=self._target.namespace)).items
                found |= await logs_of(self._admin, pods)
        return found
