"""The software of a scenario as units: controllers, schedulers, KubeComp, the operator, and what the user brings."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial

from mews.emulator.chassis.inventory import Hardware
from mews.harness.clusters.ports import ClusterPorts
from mews.harness.clusters.stack import default_profile, kod2_config
from mews.harness.clusters.unit import Unit
from mews.harness.clusters.yours import Yours
from mews.harness.errors import Lacks
from mews.harness.ports.fence import Fence
from mews.harness.run_context import RunContext
from mews.harness.scenario.model import Scenario
from mews.kube.chassis.port import ChassisApi
from mews.kube.component import Context, Runnable
from mews.kube.deviceplugin.port import DevicePluginLink
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.emulated.controllers.service_names import ServiceNames
from mews.kube.scheduling.config import Profile, SchedulerConfig
from mews.kube.scheduling.scheduler import Scheduler
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.device_manager import DeviceManager
from mews.systems.kubecomp.metrics import Recorder as Measures
from mews.systems.kubecomp.plugin import kubecomp_profile, profile_with
from mews.systems.kubecomp.reconfig_manager import ReconfigManager


@dataclass(frozen=True, slots=True)
class StackUnits:
    """Makes them, for one cluster."""

    scenario: Scenario
    inventory: Hardware
    _: KW_ONLY
    ports: ClusterPorts
    run: RunContext
    config: KubeCompConfig
    yours: Yours
    measures: Measures

    def context(self, actor: str, fence: Fence) -> Context:
        """What one incarnation of a component works with."""
        log = logging.getLogger(f"mews.run.{actor}")
        return Context(fence.around(self.ports.kube(actor)), self.run.clock, self.run.rng(actor), log)

    def controllers(self) -> Unit:
        """kube-controller-manager where the control plane has it or the scenario wants it, else ours.

        Raises Lacks where it is wanted and not found.
        """
        wanted = self.scenario.stack.controllers
        real = self.ports.program("controller-manager", wanted.model_dump())
        if real is None and wanted.program == "kube-controller-manager":
            raise Lacks(
                "stack.controllers: need kube-controller-manager, in KUBEBUILDER_ASSETS or on PATH, and wall-clock time"
            )
        return Unit("controller-manager", self.run.journal, real or self._our_controllers)

    def _our_controllers(self, fence: Fence) -> Runnable:
        run = self.scenario.stack.controllers.run
        return ControllerManager(self.context("controller-manager", fence), self.run.pace, controllers=run)

    def units(self) -> list[Unit]:
        """All of them, in the order in which they are started; those that a manifest brings are left out."""
        stack = self.scenario.stack
        units = [Unit(name, self.run.journal, make) for name, make in self.yours.extender_programs()]
        if stack.default_scheduler is not None:
            units += self._own_or("default-scheduler", self._default_scheduler)
        if stack.kod2 is not None:
            units.append(Unit("operator", self.run.journal, self._operator))
            units += self._service_names()
        if stack.kubecomp is None:
            return units
        if stack.kubecomp.scheduler is not None:
            units += self._own_or("scheduler", lambda: self._unit("scheduler", profile=self._kubecomp_profile()))
        if stack.kubecomp.reconfig_manager is not None:
            ours = self._reconfig_manager
            units += self._own_or("reconfig-manager", lambda: Unit("reconfig-manager", self.run.journal, ours))
        if stack.kubecomp.device_manager is not None:
            for node in self.config.nodes:
                units += self._own_or("device-manager", partial(self._device_manager_unit, node.name), node.name)
        return units

    def _operator(self, fence: Fence) -> Runnable:
        from mews.systems.kod2.operator import Operator  # a run without the operator need not load it

        config = kod2_config(self.scenario, self.run.pace)
        return Operator(self.context("operator", fence), config)

    def _own_or(self, component: str, ours: Callable[[], Unit], host: str | None = None) -> list[Unit]:
        """The unit of the user's program for a component, of ours without one; none where a manifest brings it."""
        if self.yours.brought.is_elsewhere(component):
            return []
        theirs = self.yours.program(component, host)
        if theirs is None:
            return [ours()]
        return [Unit(f"{component}/{host}" if host else component, self.run.journal, theirs)]

    def _default_scheduler(self) -> Unit:
        """kube-scheduler where the control plane has it; ours where it has not, or is given a plugin of the user's.

        Raises Lacks for extenders without kube-scheduler.
        """
        options, plugin = self.scenario.stack.default_scheduler or {}, self.yours.brought.plugin("default-scheduler")
        extenders = self.yours.extenders()
        if plugin is None:
            real = self.ports.program("default-scheduler", options, extenders=extenders)
            if real is not None:
                return Unit("default-scheduler", self.run.journal, real)
        if extenders:
            raise Lacks("stack.extenders: need kube-scheduler, in KUBEBUILDER_ASSETS or on PATH, without options")
        profile = default_profile(self.scenario)
        if plugin is not None:
            profile = replace(profile, plugins=(*profile.plugins, plugin))
        return self._unit("default-scheduler", profile=profile)

    def _kubecomp_profile(self) -> Profile:
        plugin = self.yours.brought.plugin("scheduler")
        if plugin is None:
            return kubecomp_profile(self.config, metrics=self.measures, score=self.yours.brought.policy())
        return profile_with(self.config, plugin)

    def _service_names(self) -> list[Unit]:
        processes = self.ports.processes
        if processes is None:
            return []
        name, file = "service-names", processes.names_file
        return [Unit(name, self.run.journal, lambda fence: ServiceNames(self.context(name, fence), file))]

    def _unit(self, name: str, *, profile: Profile) -> Unit:
        config = SchedulerConfig((profile,))
        return Unit(name, self.run.journal, lambda fence: Scheduler(self.context(name, fence), config))

    def _chassis(self, fence: Fence) -> dict[str, ChassisApi]:
        timeout_s = self.config.timing.chassis_timeout_s
        return {
            spec.name: fence.around(self.ports.chassis.client(spec.name, self.run.dialect, timeout_s=timeout_s))
            for spec in self.inventory.chassis
        }

    def _reconfig_manager(self, fence: Fence) -> Runnable:
        context = self.context("reconfig-manager", fence)
        return ReconfigManager(context, self.config, self._chassis(fence), self.measures)

    def _device_manager_unit(self, host: str) -> Unit:
        name = f"device-manager/{host}"
        links: list[DevicePluginLink] = []

        def make(fence: Fence) -> Runnable:
            link = self.ports.plugins.link(host)
            links.append(link)
            return DeviceManager(
                self.context(name, fence),
                replace(self.config, allocate=self.ports.hosts.allocate(host)),
                host,
                chassis=self._chassis(fence),
                link=fence.around(link),
                pod_resources=fence.around(self.ports.kubelets.pod_resources(host)),
                confirm=self.ports.hosts.confirm(host),
            )

        async def bury() -> None:
            while links:
                closing = self.ports.plugins.bury(links.pop())
                if closing is not None:
                    await closing

        return Unit(name, self.run.journal, make, bury=bury)
