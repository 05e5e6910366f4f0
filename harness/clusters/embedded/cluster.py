"""A cluster of emulated nodes, put together: kubelets, controllers, schedulers, systems and the hardware.

How its parts reach each other, and what its API is, lies in its ports: in process, over sockets with our API server,
or over sockets with the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mews.emulator.hardware.inventory import Hardware
from mews.harness.api_faults.control import ApiFaults
from mews.harness.backends import DEFAULT_BACKEND
from mews.harness.clusters.embedded.first_objects import create_manifests, make_first_objects
from mews.harness.clusters.embedded.hardware_processes import HOSTS, HardwareProcesses
from mews.harness.clusters.embedded.host_power import PoweredHosts
from mews.harness.clusters.embedded.machines import EmulatedMachines
from mews.harness.clusters.embedded.program_proxies import ProgramProxies
from mews.harness.clusters.embedded.readiness import check_programs, nodes_ready, to_announce, while_they_run
from mews.harness.clusters.embedded.replacement_processes import ReplacementProcesses
from mews.harness.clusters.embedded.stack_units import StackUnits
from mews.harness.clusters.embedded.stall_watch import StallWatch
from mews.harness.clusters.embedded.system_measures import SystemMeasures
from mews.harness.clusters.own_failures import OwnFailureLines
from mews.harness.clusters.ports import ClusterPorts
from mews.harness.clusters.unit import Unit
from mews.harness.errors import RequirementError
from mews.harness.journal import LINES_KEPT
from mews.harness.ports.cluster import ComponentsCrashedError
from mews.harness.recorder import Recorder, Records
from mews.harness.run_context import RunContext
from mews.harness.scenario.brought import BroughtPrograms
from mews.harness.scenario.facility import facility_of
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.requirements import components_struck
from mews.harness.systems import watched_by
from mews.kube.deviceplugin.port import PodDevices
from mews.kube.emulated.ports.kubelets import Kubelets
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.kinds import install_kind
from mews.names import must_be


class EmbeddedCluster:
    """A Cluster of emulated nodes. ``await open()`` before use: then nodes are Ready and devices announced; without
    ``devices``, ``await announced()`` goes on from there."""

    def __init__(
        self,
        scenario: Scenario,
        hardware: Hardware,
        *,
        name: str,
        run: RunContext,
        ports: ClusterPorts,
        kubelets: Kubelets,
        monitored: bool = False,
    ) -> None:
        """``monitored``: the systems measure themselves for Prometheus, and nothing is known of it to ``metrics``."""
        self.name = name
        self.time = "virtual" if ports.processes is None else "wall"
        self.journal = run.journal
        self.clock = run.clock
        self.pace = self.kubelet_pace = run.pace
        self.dialect = run.dialect
        self.parts_are_ours = scenario.stack.is_ours
        self.hardware = ports.hardware
        self.ports = ports
        self._run = run
        self._failures = OwnFailureLines(run.journal)
        self._logs = Records(lambda: run.journal.elapsed_s, failed=self._failures.note)
        self.records = self._logs.journal
        self._scenario = scenario
        self._inventory = hardware
        facility = partial(facility_of, hardware, dialect=run.dialect, speed=run.speed)
        self.systems: Sequence[ConfiguredSystem] = scenario.stack.configured(facility())
        self.measures = SystemMeasures(self.systems, ports.services, monitored=monitored)
        self.kube = ports.kube("admin")
        self.api_faults = ApiFaults(
            self.kube,
            run.journal,
            run.pace,
            run.rng("api-faults"),
            lambda name, frozen: name in self._units and self._units[name].freeze(frozen=frozen),
        )
        struck = components_struck(scenario)
        self._proxies = ProgramProxies(self.api_faults, ports.processes, lambda name: monitored or name in struck)
        self._replacements = ReplacementProcesses(
            scenario,
            ports,
            self._proxies,
            dialect=run.dialect,
            facility=lambda urls, ca_file: facility(endpoints=urls, ca_file=ca_file),
        )
        self._stack = StackUnits(
            scenario,
            hardware,
            ports=ports,
            run=run,
            systems=self.systems,
            replacements=self._replacements,
            faults=self.api_faults,
            proxies=self._proxies,
            measures=self.measures.kept,
            folders=scenario.stack.storage == "folder" and name == DEFAULT_BACKEND,
            environments=lambda host: self._machines.machines[host].containerd.environments(),
        )
        self._recorder = Recorder(ports.kube("recorder"), run.journal, watched=watched_by(self.systems))
        self._machines = EmulatedMachines(
            scenario,
            hardware.hosts,
            ports=ports,
            run=run,
            systems=self.systems,
            faults=self.api_faults,
            recorder=self._recorder,
            context=self._stack.context,
        )
        kubelets.find = self._machines.api
        self._controllers = self._stack.controllers()
        self._units = {unit.name: unit for unit in (*self._machines.kubelets.values(), *self._stack.units())}
        kubelets.find_component = partial(_component_runs, self._units, self._controllers)
        self._power = PoweredHosts(run.journal, self._machines.machines, self._units)
        self._hardware_processes = HardwareProcesses([spec.name for spec in hardware.chassis], ports, run.journal)
        self._recording: asyncio.Task[None] | None = None
        self._stalls = StallWatch(run.journal)

    # Beginning and end

    async def open(self, *, devices: bool = True) -> None:
        """Start everything, wait until every node is Ready and shows the devices that are on its ports; without
        ``devices`` the nodes alone: schedulers and systems start with ``announced``."""
        self._logs.begin()
        self._failures.begin()
        await self._proxies.open()
        for each in self.systems:
            for definition in each.system.kinds():
                await install_kind(self.kube, definition)
        self._recording = asyncio.create_task(self._recorder.run(), name="recorder")
        await self._recorder.synced()
        await make_first_objects(self.kube, self.systems, folders=self._stack.folders)
        manifests = (*self._replacements.first_objects(self.systems), *self._replacements.objects())
        if manifests:
            self._controllers.start()  # pods are refused until one of them has made their account
        attended = bool(self._scenario.stack.controllers.names("serviceaccount-controller"))
        await create_manifests(self.kube, manifests, accounts_are_made=attended)
        if devices:
            await self.announced()
        else:
            for unit in (self._controllers, *self._machines.kubelets.values()):
                unit.start()
            await self._nodes_ready({name: {} for name in self._machines.machines})
        check_programs(self._all_units())

    async def announced(self) -> None:
        """Start all that does not run yet, wait until every node shows the devices that are on its ports.

        Raises RequirementError, ComponentsCrashedError.
        """
        for unit in self._all_units():
            unit.start()
        await self._nodes_ready(to_announce(self._machines.machines, self.systems, await self.hardware.table()))

    async def _nodes_ready(self, wanted: Mapping[str, Mapping[str, int]]) -> None:
        try:
            # Who crashes while a cluster comes up stays down, unless it is one that starts it again.
            brought = None if self._controllers.revives else BroughtPrograms(self._scenario.stack, self.journal)
            await while_they_run(nodes_ready(self.kube, wanted, self.pace), self.journal, brought)
        except (RequirementError, ComponentsCrashedError) as error:
            check_programs(self._all_units())
            crashes = () if isinstance(error, ComponentsCrashedError) else self.crashes()
            if isinstance(error, RequirementError) and not crashes and self.time != "virtual":
                raise  # this machine may be too slow
            text = "; ".join((str(error), *crashes))
            self.journal.write("step", self._scenario.name, "failed", step=0, do="start", reason=text.splitlines()[0])
            raise ComponentsCrashedError(text, self) from None

    def _all_units(self) -> tuple[Unit, ...]:
        return (self._controllers, *self._units.values())

    async def close(self) -> None:
        """Stop everything and give everything back."""
        self.api_faults.close()
        await self._power.close()
        for unit in reversed(self._all_units()):
            await unit.close()
        if self._recording is not None:
            self._recording.cancel()
            await asyncio.gather(self._recording, return_exceptions=True)
        for machine in self._machines.machines.values():
            await machine.containerd.close()
        await self._proxies.close()
        await self.ports.close()
        self._failures.end()
        self._logs.end()

    # What the runner asks

    def lacks(self, requirement: str) -> str | None:
        """Logs, exec, kill and cut are there; root is not asked of anybody; FUSE and NVML are asked of the hosts."""
        if requirement in ("logs", "exec", "kill", "cut", self.time):
            return None
        if requirement in ("virtual", "wall"):
            return f"this run is in {self.time} time"
        if requirement in ("fuse", "nvml"):
            return self.ports.hosts.lacks(requirement)
        return f"--cluster {self.name} has no {requirement}"

    def node_of(self, host: str) -> str:
        """Nodes bear their hosts' names.

        Raises ValueError naming those there are.
        """
        if host not in self._machines.machines:
            raise ValueError(f"host {host!r}: {must_be(host, self._machines.machines)}")
        return host

    async def artefacts(self) -> Mapping[str, str]:
        """Return no logs: the records have all that our kubelets say."""
        return {}

    def components(self) -> Sequence[str]:
        """Return what can be killed and started."""
        return (*self._units, *self._hardware_processes.names())

    def crashes(self) -> Sequence[str]:
        """Components that died without being killed, and of what."""
        return [f"{unit.name}: {unit.crash!r}" for unit in self._all_units() if unit.crash]

    def keep_alive(self) -> None:
        """From now on what crashes is started again, and of journal and records the latest are remembered."""
        for journal in (self.journal, self.records):
            journal.keep_latest(LINES_KEPT)
        for unit in self._all_units():
            unit.revives = True

    def cut(self, component: str) -> None:
        """Fence a component off at once; a chassis' process cannot be."""
        if component in self._units:
            self._units[component].cut()

    async def kill(self, component: str) -> None:
        """Kill -9.

        Raises ValueError naming the components.
        """
        if component in self._units:
            await self._units[component].kill()
        elif component in (*self._hardware_processes.names(), HOSTS):
            await self._hardware_processes.kill(component)
        else:
            raise ValueError(f"component {component!r}: {must_be(component, self.components())}")

    async def start(self, component: str) -> None:
        """Start a killed component anew; one that runs stays. Raises ValueError as ``kill``, or if its host is off."""
        self._power.check_on(component)
        if component in self._units:
            self._units[component].start()
        elif component in (*self._hardware_processes.names(), HOSTS):
            await self._hardware_processes.start(component)
        else:
            raise ValueError(f"component {component!r}: {must_be(component, self.components())}")

    def metrics(self) -> Mapping[str, Any]:
        """Return what the systems measured of themselves, over all incarnations of their components."""
        return self.measures.measured()

    async def pod_resources(self, host: str) -> tuple[PodDevices, ...]:
        """podresources v1 List of that host's kubelet, whoever else waits for its answer."""
        return await self._machines.pod_resources(self.node_of(host))

    def ready(self) -> dict[str, Any]:
        """Return where other processes reach everything.

        Raises RuntimeError in virtual time, where nothing can be reached.
        """
        ready = self.ports.needed_processes().ready()
        return {**ready, "proxies": found} if (found := self._proxies.ready()) else ready

    def stalled(self, since_line: int) -> bool:
        """Return whether only rests are pending, and all that were when the journal last grew have gone round since."""
        return self._stalls.stalled(since_line)


def _component_runs(units: Mapping[str, Unit], controllers: Unit, component: str) -> bool:
    """Return whether a component, as the API server names it, runs: a scheduler may have either name."""
    if component == controllers.name:
        return controllers.running
    return any(name in units and units[name].running for name in (component, f"default-{component}"))
