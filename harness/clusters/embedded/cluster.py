"""A cluster of emulated nodes, put together: kubelets, controllers, schedulers, systems and the hardware.

How its parts reach each other, and what its API is, lies in its ports: in process, over sockets with our API server,
or over sockets with the real one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from mews.emulator.hardware.inventory import Hardware, HostSpec
from mews.harness.api_faults.control import ApiFaults
from mews.harness.api_faults.rpcs import PausableFolder, PausableRegistry
from mews.harness.backends import DEFAULT_BACKEND
from mews.harness.clock import VirtualLoop
from mews.harness.clusters.embedded.checkpoints import JournaledCheckpoint
from mews.harness.clusters.embedded.first_objects import make_first_objects
from mews.harness.clusters.embedded.host_power import PoweredHosts
from mews.harness.clusters.embedded.late_measures import LateMeasures
from mews.harness.clusters.embedded.node_addresses import node_address
from mews.harness.clusters.embedded.node_runtimes import NodeRuntimes
from mews.harness.clusters.embedded.program_proxies import ProgramProxies
from mews.harness.clusters.embedded.readiness import default_account_made, nodes_ready, while_they_run
from mews.harness.clusters.embedded.replacement_processes import ReplacementProcesses
from mews.harness.clusters.embedded.stack_units import StackUnits
from mews.harness.clusters.exposition import merged
from mews.harness.clusters.own_failures import OwnFailureLines
from mews.harness.clusters.ports import ClusterPorts
from mews.harness.clusters.unit import Unit
from mews.harness.errors import RequirementError
from mews.harness.journal import LINES_KEPT
from mews.harness.ports.cluster import ComponentsCrashedError
from mews.harness.ports.fence import Fence
from mews.harness.recorder import Recorder, Records
from mews.harness.run_context import RunContext
from mews.harness.scenario.brought import BroughtPrograms
from mews.harness.scenario.facility import facility_of
from mews.harness.scenario.kinds import complete, resource_of
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.requirements import components_struck
from mews.harness.scenario.stack import INSTANT
from mews.harness.systems import find_profile, find_program, images_of, watched_by
from mews.kube.api.resources import PODS
from mews.kube.component import Runnable
from mews.kube.deviceplugin.port import PodDevices
from mews.kube.emulated.apiserver.wire.kubelets import KubeletApi, Kubelets
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.machine import KubeletProcess, Machine
from mews.kube.emulated.kubelet.node import KUBELET_PORT, NodeSpec
from mews.kube.emulated.kubelet.programs import PlayedPrograms
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from mews.kube.system.configured import ConfiguredSystem, provider_id_of
from mews.kube.system.kinds import install_kind
from mews.kube.system.profile import Overhead
from mews.kube.system.system_parts import ExposedMeasures
from mews.names import must_be

HOSTS = "hosts"
"""The component that serves the hosts in wall-clock time."""


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
        self._exposed: dict[str, ExposedMeasures] = {
            each.system.name: LateMeasures(each.system.measuring.monitored)
            for each in self.systems
            if monitored and each.system.measuring.monitored
        }
        self._measures = {
            each.system.name: self._exposed.get(each.system.name) or each.system.measuring.measures()
            for each in self.systems
        }
        self.kube = ports.kube("admin")
        self.api_faults = ApiFaults(self.kube, run.journal, run.pace, run.rng("api-faults"), self._freeze)
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
            measures=self._measures,
            folders=scenario.stack.storage == "folder" and name == DEFAULT_BACKEND,
            environments=lambda host: self._machines[host].containerd.environments(),
        )
        kubelets.find = self.kubelet_of
        self._programs = PlayedPrograms(run.pace, find_program)
        self._recorder = Recorder(ports.kube("recorder"), run.journal, watched=watched_by(self.systems))
        self._images = load_images(
            further=images_of(self.systems), own=scenario.images, unknown=scenario.unknown_images or "fail"
        )
        self._runtimes = NodeRuntimes(ports, self.systems, scenario.folder)
        self._folders: dict[str, PausableFolder] = {}
        self._machines = {host.name: self._machine(number, host) for number, host in enumerate(hardware.hosts)}
        self._kubelets: dict[str, KubeletProcess] = {}
        self._controllers = self._stack.controllers()
        kubelets_units = [self._kubelet_unit(host) for host in self._machines]
        self._units = {unit.name: unit for unit in (*kubelets_units, *self._stack.units())}
        self._power = PoweredHosts(run.journal, self._machines, self._units)
        self._dead_chassis: set[str] = set()
        self._recording: asyncio.Task[None] | None = None
        self._quiet: tuple[int, float] = (-1, 0.0)

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
        await self._apply_manifests()
        if devices:
            await self.announced()
        else:
            for unit in (self._controllers, *(self._units[f"kubelet/{host}"] for host in self._machines)):
                unit.start()
            await self._nodes_ready({name: {} for name in self._machines})
        self._check_programs()

    async def announced(self) -> None:
        """Start all that does not run yet, wait until every node shows the devices that are on its ports.

        Raises RequirementError, ComponentsCrashedError.
        """
        for unit in (self._controllers, *self._units.values()):
            unit.start()
        await self._nodes_ready(await self._to_announce())

    async def _nodes_ready(self, wanted: Mapping[str, Mapping[str, int]]) -> None:
        try:
            # Who crashes while a cluster comes up stays down, unless it is one that starts it again.
            brought = None if self._controllers.revives else BroughtPrograms(self._scenario.stack, self.journal)
            await while_they_run(nodes_ready(self.kube, wanted, self.pace), self.journal, brought)
        except (RequirementError, ComponentsCrashedError) as error:
            self._check_programs()
            crashes = () if isinstance(error, ComponentsCrashedError) else self.crashes()
            if isinstance(error, RequirementError) and not crashes and self.time != "virtual":
                raise  # this machine may be too slow
            text = "; ".join((str(error), *crashes))
            self.journal.write("step", self._scenario.name, "failed", step=0, do="start", reason=text.splitlines()[0])
            raise ComponentsCrashedError(text, self) from None

    def _check_programs(self) -> None:
        """Raise RequirementError for a program that could not even be started."""
        for unit in (self._controllers, *self._units.values()):
            if isinstance(unit.crash, RequirementError):
                raise RequirementError(f"{unit.name}: {unit.crash}")

    async def _to_announce(self) -> dict[str, dict[str, int]]:
        """Node -> resource -> how many devices will be announced there: those on its ports."""
        wanted: dict[str, dict[str, int]] = {host.name: {} for host in self._inventory.hosts}
        rows = [row for table in (await self.hardware.table()).values() for row in table.values()]
        for each in self.systems:
            pooled, running = each.pooled, {component.name for _, component in each.components()}
            if pooled is None or pooled.announcer not in running:
                continue
            for row in rows:
                host = row["host"]
                if host is not None and row["kind"] == pooled.device_kind and host not in pooled.unannounced:
                    there = wanted[host]
                    there[pooled.resource] = there.get(pooled.resource, 0) + 1
        return wanted

    async def _apply_manifests(self) -> None:
        attended = self._scenario.stack.controllers.names("serviceaccount-controller")
        for given in (*self._replacements.first_objects(self.systems), *self._replacements.objects()):
            self._controllers.start()  # pods are refused until one of them has made their account
            resource = await resource_of(self.kube, given["kind"], given.get("apiVersion", ""))
            obj = complete(given, resource)
            namespace = obj["metadata"].get("namespace")
            if attended and resource == PODS and obj["spec"].get("serviceAccountName", "default") == "default":
                await default_account_made(self.kube, namespace or "default")
            await self.kube.create(resource, obj, namespace=namespace, field_manager="mews")

    async def close(self) -> None:
        """Stop everything and give everything back."""
        self.api_faults.close()
        await self._power.close()
        for unit in reversed((self._controllers, *self._units.values())):
            await unit.close()
        if self._recording is not None:
            self._recording.cancel()
            await asyncio.gather(self._recording, return_exceptions=True)
        for machine in self._machines.values():
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
        if host not in self._machines:
            raise ValueError(f"host {host!r}: {must_be(host, self._machines)}")
        return host

    async def artefacts(self) -> Mapping[str, str]:
        """Return None: the records have all that our kubelets say."""
        return {}

    def components(self) -> Sequence[str]:
        """Return what can be killed and started."""
        hosts = () if self.ports.host_server is None else (HOSTS,)
        return (*self._units, *(f"chassis/{spec.name}" for spec in self._inventory.chassis), *hosts)

    def crashes(self) -> Sequence[str]:
        """Components that died without being killed, and of what."""
        return [f"{unit.name}: {unit.crash!r}" for unit in (self._controllers, *self._units.values()) if unit.crash]

    def keep_alive(self) -> None:
        """From now on what crashes is started again, and of journal and records the latest are remembered."""
        for journal in (self.journal, self.records):
            journal.keep_latest(LINES_KEPT)
        for unit in (self._controllers, *self._units.values()):
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
            return
        if component == HOSTS:
            if self.ports.host_server is None:
                raise ValueError("hosts: do not run as processes in virtual time")
            await self.ports.host_server.kill()
            self.journal.write("component", component, "killed")
            return
        chassis = self._chassis_name(component)
        self._dead_chassis.add(chassis)
        await self.ports.chassis.kill(chassis)
        self.journal.write("component", component, "killed")

    def _freeze(self, component: str, frozen: bool) -> bool:
        return component in self._units and self._units[component].freeze(frozen=frozen)

    async def start(self, component: str) -> None:
        """Start a killed component anew; one that runs stays. Raises ValueError as ``kill``, or if its host is off."""
        self._power.check_on(component)
        if component in self._units:
            self._units[component].start()
            return
        if component == HOSTS:
            if self.ports.host_server is not None:
                await self.ports.host_server.start()
            self.journal.write("component", component, "started")
            return
        chassis = self._chassis_name(component)
        if chassis in self._dead_chassis:
            self._dead_chassis.discard(chassis)
            await self.ports.chassis.start(chassis)
            self.journal.write("component", component, "started")

    def _chassis_name(self, component: str) -> str:
        kind, _, name = component.partition("/")
        if kind != "chassis" or name not in {spec.name for spec in self._inventory.chassis}:
            raise ValueError(f"component {component!r}: {must_be(component, self.components())}")
        return name

    def metrics(self) -> Mapping[str, Any]:
        """Return what the systems measured of themselves, over all incarnations of their components."""
        found: dict[str, Any] = {}
        for each in [each for each in self.systems if each.system.name not in self._exposed]:
            found |= each.system.measuring.measured(self._measures[each.system.name])
        return found

    def exposing(self) -> Sequence[str]:
        """Return the systems whose measures ``exposition`` has."""
        served = [each.system.name for each in self.systems if each.system.measuring.service]
        return (*self._exposed, *served)

    async def exposition(self, system: str) -> bytes:
        """Return what the components of a system measure of themselves, in Prometheus' text form.

        Raises ValueError for a system that exposes nothing, ConnectionError where what would is down.
        """
        if system in self._exposed:
            return self._exposed[system].exposition()
        service = {each.system.name: each.system.measuring.service for each in self.systems}.get(system)
        if not service:
            raise ValueError(f"metrics of {system!r}: {must_be(system, self.exposing())}")
        replies = await self.ports.services.ask_all(service, "/metrics")
        if any(reply.status != 200 for reply in replies):
            raise ConnectionError(
                f"metrics of {system!r}: {service} has none: the component's replacement serves no /metrics"
            )
        return merged([reply.body.decode() for reply in replies]).encode()

    async def pod_resources(self, host: str) -> tuple[PodDevices, ...]:
        """podresources v1 List of that host's kubelet, whoever else waits for its answer."""
        unpaused = self._folders[self.node_of(host)].unpaused
        if unpaused is not None and self.api_faults.strikes(f"kubelet/{host}"):
            return await unpaused.list()
        return await self.ports.kubelets.pod_resources(host).list()

    def kubelet_of(self, node: str) -> KubeletApi | None:
        """Logs and commands of a node, while its kubelet runs."""
        unit = self._units.get(f"kubelet/{node}")
        return self._machines[node].api() if unit is not None and unit.running else None

    def ready(self) -> dict[str, Any]:
        """Return where other processes reach everything.

        Raises RuntimeError in virtual time, where nothing can be reached.
        """
        ready = self.ports.needed_processes().ready()
        return {**ready, "proxies": found} if (found := self._proxies.ready()) else ready

    def stalled(self, since_line: int) -> bool:
        """Return whether only rests are pending, and all that were when the journal last grew have gone round since."""
        loop = asyncio.get_running_loop()
        if not isinstance(loop, VirtualLoop) or len(self.journal) > since_line:
            return False
        horizon = loop.idle_until()
        if horizon is None:
            self._quiet = (-1, 0.0)
            return False
        if self._quiet[0] != since_line:
            self._quiet = (since_line, horizon)
        return loop.time() > self._quiet[1]

    # Putting together

    def _machine(self, number: int, host: HostSpec) -> Machine:
        rng = self._run.rng(f"containerd/{host.name}")
        note = self._recorder.kubelet(host.name)
        processes = self.ports.processes
        containerd = Containerd(
            self.clock,
            rng,
            simulated=self._runtimes.reporting(SimulatedRuntime(self.pace, self._programs), host.name),
            processes=None if processes is None else self._runtimes.prepared(processes, host.name),
            engine=None if processes is None else self._runtimes.engine(processes, host.name),
            volumes=None if processes is None else processes.pod_volumes,
            network=self.ports.kubelets.network(number + 1),
        )
        kubelets, gate = self.ports.kubelets, self.api_faults.gate(f"kubelet/{host.name}")
        self._folders[host.name] = PausableFolder(kubelets.folder(host.name), gate)
        return Machine(
            spec=self._node_spec(number, host), containerd=containerd,
            folder=self._folders[host.name],
            checkpoint=JournaledCheckpoint(kubelets.checkpoint(host.name), note),
            dra=PausableRegistry(kubelets.dra(host.name), gate),
            dra_state=kubelets.dra_state(host.name), dra_health_state=kubelets.dra_health_state(host.name), note=note,
            images=self._images, pace=self.pace, overhead=self._overhead(host.name),
            hooks=self._runtimes.hooks(host.name), faults=self._scenario.stack.kubelet.faults,
            gates=self._scenario.stack.release.gates,
        )  # fmt: skip

    def _node_spec(self, number: int, host: HostSpec) -> NodeSpec:
        address, port = self.ports.kubelets.address(host.name) or (node_address(number), KUBELET_PORT)
        version, known = self._scenario.stack.git_version, provider_id_of(host.name, self.systems)
        return NodeSpec(host.name, host.cpus, host.memory_mib, address, port, version=version, provider_id=known)

    def _overhead(self, host: str) -> Overhead | None:
        profile = self._scenario.stack.profile
        if profile is None or profile == INSTANT:
            return None
        return find_profile(profile)(self._run.rng(f"{profile}/{host}"))

    def _kubelet_unit(self, host: str) -> Unit:
        name = f"kubelet/{host}"

        def make(fence: Fence) -> Runnable:
            # In wall-clock time the machines were switched on with the chassis, and boot while the API server starts.
            first = self.time == "wall" and host not in self._kubelets
            booting_s = self.journal.elapsed_s if first else 0.0
            process = self._machines[host].kubelet(self._stack.context(name, fence), booting_for_s=booting_s)
            self._kubelets[host] = process
            return process

        return Unit(name, self.journal, make)
