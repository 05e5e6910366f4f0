"""The emulated machines of a cluster's nodes, each with its container runtime and its kubelet."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mews.emulator.hardware.inventory import HostSpec
from mews.harness.api_faults.control import ApiFaults
from mews.harness.api_faults.rpcs import PausableFolder, PausableRegistry
from mews.harness.clusters.embedded.checkpoints import JournaledCheckpoint
from mews.harness.clusters.embedded.node_addresses import node_address
from mews.harness.clusters.embedded.node_runtimes import NodeRuntimes
from mews.harness.clusters.ports import ClusterPorts
from mews.harness.clusters.unit import Unit
from mews.harness.ports.fence import Fence
from mews.harness.recorder import Recorder
from mews.harness.run_context import RunContext
from mews.harness.scenario.model import Scenario
from mews.harness.scenario.stack import INSTANT
from mews.harness.systems import find_profile, find_program, images_of
from mews.kube.component import Context, Runnable
from mews.kube.deviceplugin.port import PodDevices
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.images import load_images
from mews.kube.emulated.kubelet.machine import Machine
from mews.kube.emulated.kubelet.node import KUBELET_PORT, NodeSpec
from mews.kube.emulated.kubelet.programs import PlayedPrograms
from mews.kube.emulated.kubelet.simulated import SimulatedRuntime
from mews.kube.emulated.ports.kubelets import KubeletApi
from mews.kube.system.configured import ConfiguredSystem, provider_id_of
from mews.kube.system.profile import Overhead


class EmulatedMachines:
    """``machines`` and the ``kubelets`` that run on them, by host; ``context``: what an incarnation works with."""

    def __init__(
        self,
        scenario: Scenario,
        hosts: Sequence[HostSpec],
        *,
        ports: ClusterPorts,
        run: RunContext,
        systems: Sequence[ConfiguredSystem],
        faults: ApiFaults,
        recorder: Recorder,
        context: Callable[[str, Fence], Context],
    ) -> None:
        self._scenario = scenario
        self._ports = ports
        self._run = run
        self._systems = systems
        self._faults = faults
        self._recorder = recorder
        self._context = context
        self._programs = PlayedPrograms(run.pace, find_program)
        self._images = load_images(
            further=images_of(systems), own=scenario.images, unknown=scenario.unknown_images or "fail"
        )
        self._runtimes = NodeRuntimes(ports, systems, scenario.folder)
        self._folders: dict[str, PausableFolder] = {}
        self._started: set[str] = set()
        self.machines = {host.name: self._made(number, host) for number, host in enumerate(hosts)}
        self.kubelets = {host: self._unit(host) for host in self.machines}

    def api(self, node: str) -> KubeletApi | None:
        """Return logs and commands of a node, while its kubelet runs."""
        unit = self.kubelets.get(node)
        return self.machines[node].api() if unit is not None and unit.running else None

    async def pod_resources(self, host: str) -> tuple[PodDevices, ...]:
        """podresources v1 List of that host's kubelet, whoever else waits for its answer."""
        unpaused = self._folders[host].unpaused
        if unpaused is not None and self._faults.strikes(f"kubelet/{host}"):
            return await unpaused.list()
        return await self._ports.kubelets.pod_resources(host).list()

    def _made(self, number: int, host: HostSpec) -> Machine:
        rng = self._run.rng(f"containerd/{host.name}")
        note = self._recorder.kubelet(host.name)
        processes = self._ports.processes
        containerd = Containerd(
            self._run.clock,
            rng,
            simulated=self._runtimes.reporting(SimulatedRuntime(self._run.pace, self._programs), host.name),
            processes=None if processes is None else self._runtimes.prepared(processes, host.name),
            engine=None if processes is None else self._runtimes.engine(processes, host.name),
            volumes=None if processes is None else processes.pod_volumes,
            network=self._ports.kubelets.network(number + 1),
        )
        kubelets, gate = self._ports.kubelets, self._faults.gate(f"kubelet/{host.name}")
        self._folders[host.name] = PausableFolder(kubelets.folder(host.name), gate)
        return Machine(
            spec=self._node_spec(number, host), containerd=containerd,
            folder=self._folders[host.name],
            checkpoint=JournaledCheckpoint(kubelets.checkpoint(host.name), note),
            dra=PausableRegistry(kubelets.dra(host.name), gate),
            dra_state=kubelets.dra_state(host.name), dra_health_state=kubelets.dra_health_state(host.name), note=note,
            images=self._images, pace=self._run.pace, overhead=self._overhead(host.name),
            hooks=self._runtimes.hooks(host.name), faults=self._scenario.stack.kubelet.faults,
            gates=self._scenario.stack.release.gates,
        )  # fmt: skip

    def _node_spec(self, number: int, host: HostSpec) -> NodeSpec:
        address, port = self._ports.kubelets.address(host.name) or (node_address(number), KUBELET_PORT)
        version, known = self._scenario.stack.git_version, provider_id_of(host.name, self._systems)
        return NodeSpec(host.name, host.cpus, host.memory_mib, address, port, version=version, provider_id=known)

    def _overhead(self, host: str) -> Overhead | None:
        profile = self._scenario.stack.profile
        if profile is None or profile == INSTANT:
            return None
        return find_profile(profile)(self._run.rng(f"{profile}/{host}"))

    def _unit(self, host: str) -> Unit:
        name = f"kubelet/{host}"

        def make(fence: Fence) -> Runnable:
            # In wall-clock time the machines were switched on with the chassis, and boot while the API server starts.
            first = self._ports.processes is not None and host not in self._started
            booting_s = self._run.journal.elapsed_s if first else 0.0
            self._started.add(host)
            return self.machines[host].kubelet(self._context(name, fence), booting_for_s=booting_s)

        return Unit(name, self._run.journal, make)
