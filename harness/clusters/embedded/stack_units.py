"""The software of a scenario as units: controllers, schedulers, the systems of its stack, and what the user brings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from mews.emulator.hardware.inventory import Hardware
from mews.harness.api_faults.control import ApiFaults
from mews.harness.api_faults.rpcs import PausableService
from mews.harness.clusters.embedded.checkpoints import StoredCheckpoint
from mews.harness.clusters.embedded.forwarding import ForwardedService
from mews.harness.clusters.embedded.hook_sockets import NodeHookSocket
from mews.harness.clusters.embedded.program_proxies import ProgramProxies
from mews.harness.clusters.embedded.replacement_processes import ReplacementProcesses
from mews.harness.clusters.ports import ClusterPorts, KillableDraLink, ReleasedNvml
from mews.harness.clusters.unit import Unit
from mews.harness.errors import RequirementError
from mews.harness.ports.cluster import DEFAULT_SCHEDULER
from mews.harness.ports.fence import Fence
from mews.harness.run_context import RunContext
from mews.harness.scenario.device_features import device_features
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.stack import VOLUME_PROVISIONER, DefaultSchedulerOptions
from mews.kube.chassis.port import ChassisApi
from mews.kube.component import Context, Runnable
from mews.kube.deviceplugin.port import DevicePluginLink
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.emulated.controllers.service_names import ServiceNames
from mews.kube.runtimehook.port import RunningEnvironment
from mews.kube.scheduling.config import SchedulerConfig, SchedulerProfile
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.extenders import SchedulerExtender, settings_of
from mews.kube.scheduling.plugins import Strategy, default_plugins
from mews.kube.scheduling.plugins.any_node import any_node_profile
from mews.kube.scheduling.scheduler import Scheduler
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.gpu_driver import GpuDriver
from mews.kube.system.ports import NodeAccess, Ports
from mews.kube.system.services import ServicePort
from mews.kube.system.system import Component

if TYPE_CHECKING:
    from mews.harness.clusters.programs.control_plane import Program


class _ChassisClients(Mapping[str, ChassisApi]):
    """Name -> client of each chassis, made when it is asked for: each of a thousand nodes has few of hundreds."""

    def __init__(self, inventory: Hardware, make: Callable[[str], ChassisApi]) -> None:
        self._inventory = inventory
        self._make = make
        self._made: dict[str, ChassisApi] = {}

    def __getitem__(self, name: str) -> ChassisApi:
        if name not in self._made:
            if name not in self:
                raise KeyError(name)
            self._made[name] = self._make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return any(spec.name == name for spec in self._inventory.chassis)

    def __iter__(self) -> Iterator[str]:
        return (spec.name for spec in self._inventory.chassis)

    def __len__(self) -> int:
        return len(self._inventory.chassis)


@dataclass(frozen=True, slots=True)
class StackUnits:
    """Makes the units of one cluster's components. ``measures``: system -> what its components measure themselves
    with."""

    scenario: Scenario
    inventory: Hardware
    _: KW_ONLY
    ports: ClusterPorts
    run: RunContext
    systems: Sequence[ConfiguredSystem]
    replacements: ReplacementProcesses
    faults: ApiFaults
    proxies: ProgramProxies
    measures: Mapping[str, Any]
    folders: bool = False
    """Claims of the default class get folders as volumes."""
    environments: Callable[[str], Sequence[RunningEnvironment]] = lambda host: ()
    """What the containers of a host run with now."""

    def context(self, actor: str, fence: Fence) -> Context:
        """Return what one incarnation of a component works with."""
        log = logging.getLogger(f"mews.run.{actor}")
        return Context(
            fence.around(self.faults.around(actor, self.ports.kube(actor))), self.run.clock, self.run.rng(actor), log
        )

    def controllers(self) -> Unit:
        """kube-controller-manager where the control plane has it or the scenario wants it, else ours.

        Raises RequirementError where it is wanted and not found.
        """
        wanted = self.scenario.stack.controllers
        real = self._real("controller-manager", wanted.model_dump())
        if real is None and wanted.program == "kube-controller-manager":
            raise RequirementError(
                "stack.controllers: need kube-controller-manager, in KUBEBUILDER_ASSETS or on PATH, and wall-clock time"
            )
        return Unit("controller-manager", self.run.journal, real or self._our_controllers)

    def _real(
        self, component: str, options: Mapping[str, Any], extenders: Sequence[Mapping[str, Any]] = ()
    ) -> Program | None:
        """Return the program of Kubernetes in that component's place, behind a proxy where one is wanted."""
        path = self.proxies.kubeconfig(component)
        real = self.ports.program(component, options, extenders=extenders, kubeconfig=path)
        if real is not None:
            self.proxies.stand_between(component)
        return real

    def _our_controllers(self, fence: Fence) -> Runnable:
        run = self.scenario.stack.controllers.run
        authority = None if self.ports.processes is None else self.ports.processes.authority()
        context = self.context("controller-manager", fence)
        devices = device_features(self.scenario)
        return ControllerManager(context, self.run.pace, controllers=run, authority=authority, devices=devices)

    def units(self) -> list[Unit]:
        """Return all of them, in the order in which they are started; those that a manifest brings are left out."""
        units = [Unit(name, self.run.journal, make) for name, make in self.replacements.extender_programs()]
        if self.scenario.stack.default_scheduler is not None:
            units += self._own_or(DEFAULT_SCHEDULER, self._default_scheduler)
        if self.folders:
            units.append(Unit(VOLUME_PROVISIONER, self.run.journal, self._provisioner))
        named = False
        for configured in self.systems:
            units += self._system(configured)
            if configured.system.service_names and not named:
                named = True
                units += self._service_names()
        return units if named else [*units, *self._service_names()]

    def _system(self, configured: ConfiguredSystem) -> Iterator[Unit]:
        for name, component in configured.components():
            if component.program is not None:
                theirs = self.replacements.foreign(name, component.program(configured.configuration))
                yield from self._own_or(name, partial(self._restarted, name, theirs))
                continue
            if component.nodes is None:
                ours = partial(self._component, configured, component, name)
                yield from self._own_or(name, ours, service=component.service)
                continue
            for node in component.nodes(configured.configuration):
                on_node = partial(self._component_on, configured, component, name, node)
                yield from self._own_or(name, on_node, node)

    def _own_or(
        self, component: str, ours: Callable[[], Unit], host: str | None = None, *, service: str = ""
    ) -> list[Unit]:
        """Return the unit of the user's program for a component, of ours without one; none where a manifest brings
        it."""
        if self.replacements.loaded.is_elsewhere(component):
            return []
        theirs = self.replacements.program(component, host, serves=bool(service))
        if theirs is None:
            return [ours()]
        if service:
            theirs = self._forwarded(theirs, component, service)
        return [Unit(f"{component}/{host}" if host else component, self.run.journal, theirs)]

    def _restarted(self, name: str, program: Program) -> Unit:
        """Return the unit of a program that its Deployment starts again when it ends."""
        unit = Unit(name, self.run.journal, program)
        unit.revives = True
        return unit

    def _forwarded(self, program: Program, component: str, service: str) -> Program:
        port = self.replacements.port(component)

        def make(fence: Fence) -> Runnable:
            return ForwardedService(program(fence), self._service(component, service, fence), port)

        return make

    def _service(self, component: str, service: str, fence: Fence) -> ServicePort:
        """Return where one incarnation of a component serves; its requests may be paused."""
        port = self.ports.services.port(service, fence)
        return PausableService(port, self.faults.gate(component), service)

    def _component(self, configured: ConfiguredSystem, component: Component, name: str) -> Unit:
        parts = self.replacements.loaded.parts(name)

        def make(fence: Fence) -> Runnable:
            ports = self._ports(configured, name, fence, parts)
            if component.service:
                ports = replace(ports, service=self._service(name, component.service, fence))
            return component.make(ports, configured.configuration)

        return Unit(name, self.run.journal, make)

    def _component_on(self, configured: ConfiguredSystem, component: Component, name: str, host: str) -> Unit:
        """Return this node's instance of a component that every node has."""
        actor, parts = f"{name}/{host}", self.replacements.loaded.parts(name)
        links: list[DevicePluginLink] = []
        libraries: list[ReleasedNvml] = []
        sockets: list[NodeHookSocket] = []
        drivers: list[KillableDraLink] = []

        def make(fence: Fence) -> Runnable:
            link = self.ports.plugins.link(host)
            links.append(link)
            nvml = self.ports.hosts.nvml(host, actor)
            hooks = NodeHookSocket(partial(self.ports.kubelets.serve_hooks, host), partial(self.environments, host))
            sockets.append(hooks)
            dra = self.ports.plugins.dra_link(host)
            drivers.extend(() if dra is None else (dra,))
            libraries.extend(() if nvml is None else (nvml,))
            node = replace(
                self._node(host, link, fence),
                nvml=None if nvml is None else fence.around(nvml),
                hooks=fence.around(hooks),
                dra=None if dra is None else fence.around(dra),
            )
            ports = replace(self._ports(configured, actor, fence, parts), node=node)
            return component.make(ports, configured.configuration)

        async def bury() -> None:
            while links:
                closing = self.ports.plugins.bury(links.pop())
                if closing is not None:
                    await closing
            while drivers:
                drivers.pop().kill()
            while sockets:
                await sockets.pop().kill()
            while libraries:
                libraries.pop().release()

        return Unit(actor, self.run.journal, make, bury=bury)

    def _ports(
        self, configured: ConfiguredSystem, actor: str, fence: Fence, parts: Mapping[str, Callable[..., Any]]
    ) -> Ports:
        measures = self.measures.get(configured.system.name)
        devices = device_features(self.scenario)
        return Ports(
            self.context(actor, fence), partial(self._chassis, fence), measures=measures, parts=parts, devices=devices
        )

    def _node(self, host: str, link: DevicePluginLink, fence: Fence) -> NodeAccess:
        return NodeAccess(
            host,
            link=fence.around(link),
            pod_resources=fence.around(self.ports.kubelets.pod_resources(host)),
            files=fence.around(self.ports.hosts.files(host)),
            driver=self._driver(host, fence),
            checkpoint=fence.around(StoredCheckpoint(self.ports.kubelets.checkpoint(host))),
            extras=self.ports.hosts.extras(host),
        )

    def _driver(self, host: str, fence: Fence) -> GpuDriver | None:
        driver = self.ports.hosts.driver(host)
        return None if driver is None else fence.around(driver)

    def _chassis(self, fence: Fence, timeout_s: float) -> Mapping[str, ChassisApi]:
        def client(name: str) -> ChassisApi:
            return fence.around(self.ports.chassis.client(name, self.run.dialect, timeout_s=timeout_s))

        return _ChassisClients(self.inventory, client)

    def _default_scheduler(self) -> Unit:
        """kube-scheduler where the control plane has it; ours where it has not, or is given a plugin of the user's.

        Raises RequirementError for extenders without kube-scheduler.
        """
        options = self.scenario.stack.default_scheduler or DefaultSchedulerOptions()
        plugin = self.replacements.loaded.parts(DEFAULT_SCHEDULER).get("plugin")
        extenders = [*self._own_extenders(), *self.replacements.extenders()]
        if plugin is None:
            real = self._real(DEFAULT_SCHEDULER, options.for_program(), extenders)
            if real is not None:
                return Unit(DEFAULT_SCHEDULER, self.run.journal, real)
        if options.program == "kube-scheduler":
            raise RequirementError(
                "stack.defaultScheduler: need kube-scheduler, in KUBEBUILDER_ASSETS or on PATH, without plugins, and "
                "wall-clock time"
            )
        if self.replacements.extenders():
            raise RequirementError(
                "stack.extenders: need kube-scheduler, in KUBEBUILDER_ASSETS or on PATH, without options"
            )
        profile = default_profile(options, device_features(self.scenario))
        if plugin is not None:
            profile = replace(profile, plugins=(*profile.plugins, plugin))
        config = SchedulerConfig((profile,))

        def make(fence: Fence) -> Runnable:
            asked = [SchedulerExtender(settings_of(each), self.ports.services.post) for each in extenders]
            return Scheduler(self.context(DEFAULT_SCHEDULER, fence), config, asked)

        return Unit(DEFAULT_SCHEDULER, self.run.journal, make)

    def _provisioner(self, fence: Fence) -> Runnable:
        from mews.kube.emulated.controllers.folder_provisioner import FolderProvisioner, NoFolders

        context, processes = self.context(VOLUME_PROVISIONER, fence), self.ports.processes
        if processes is None:
            return FolderProvisioner(context, NoFolders())
        from mews.harness.clusters.embedded.volume_folders import VolumeFolders

        return FolderProvisioner(context, VolumeFolders(processes.volumes))

    def _own_extenders(self) -> list[dict[str, Any]]:
        """Return the extenders that the stack's systems bring, as kube-scheduler's configuration has them."""
        return [
            {**self.ports.services.place(each.service, each.path), **each.config}
            for configured in self.systems
            for each in configured.system.extenders(configured.configuration)
        ]

    def _service_names(self) -> list[Unit]:
        processes = self.ports.processes
        if processes is None:
            return []
        name, file = "service-names", processes.names_file
        return [Unit(name, self.run.journal, lambda fence: ServiceNames(self.context(name, fence), file))]


def default_profile(options: DefaultSchedulerOptions, devices: DeviceFeatures = DEFAULT_FEATURES) -> SchedulerProfile:
    """Return the default scheduler's profile. ``scoring: random`` takes any node that fits, by the seed: what the KOD2
    paper says of it (section 5.2). ``devices``: what it honours in the allocation of resource claims."""
    given = options.given()
    scoring = given.pop("scoring", "default")
    if "strategy" in given:
        given["strategy"] = Strategy(given["strategy"])
    if options.device_binding_timeout_s is not None:
        devices = replace(devices, binding_timeout_s=options.device_binding_timeout_s)
    plugins = default_plugins(**given, devices=devices)
    if scoring == "random":
        return any_node_profile(DEFAULT_SCHEDULER, plugins)
    return SchedulerProfile(DEFAULT_SCHEDULER, plugins)
