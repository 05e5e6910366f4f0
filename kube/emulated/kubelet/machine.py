"""One emulated node as a machine: what outlives its kubelets, and how each start of its kubelet is put together."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from mews.kube.clock import Pace
from mews.kube.component import Context
from mews.kube.dra.port import DraRegistry
from mews.kube.emulated.kubelet.api import EmulatedKubeletApi
from mews.kube.emulated.kubelet.container_hooks import ContainerHooks
from mews.kube.emulated.kubelet.containerd import Containerd
from mews.kube.emulated.kubelet.devices import CheckpointStore, DeviceManager, ManagerPodResources
from mews.kube.emulated.kubelet.devices.folder import KubeletFolder
from mews.kube.emulated.kubelet.dra.manager import DraManager
from mews.kube.emulated.kubelet.dra.no_drivers import NoDrivers
from mews.kube.emulated.kubelet.dra.state_store import DraStateStore, MemoryDraState
from mews.kube.emulated.kubelet.images import ImageBook
from mews.kube.emulated.kubelet.kubelet import Kubelet
from mews.kube.emulated.kubelet.kubelet_journal import KubeletJournal, silent
from mews.kube.emulated.kubelet.node import NodeSpec
from mews.kube.emulated.kubelet.timings import MEASURED, Timings
from mews.kube.releases.feature_gates import FeatureGates
from mews.kube.system.profile import Overhead

__all__ = ["KubeletFolder", "KubeletProcess", "Machine"]


class Machine(Struct, frozen=True):
    """What a node keeps over the deaths of its kubelet: containers, device-plugins folder, checkpoint; ``dra`` and
    ``dra_state`` likewise for drivers of dynamic resource allocation."""

    spec: NodeSpec
    containerd: Containerd
    folder: KubeletFolder
    checkpoint: CheckpointStore
    images: ImageBook
    pace: Pace
    overhead: Overhead | None = None
    note: KubeletJournal = silent
    timings: Timings = MEASURED
    dra: DraRegistry = field(default_factory=NoDrivers)
    dra_state: DraStateStore = field(default_factory=MemoryDraState)
    dra_health_state: DraStateStore = field(default_factory=MemoryDraState)
    gates: FeatureGates = FeatureGates()
    hooks: ContainerHooks | None = None
    """In the place of a CRI proxy; it outlives kubelets."""
    faults: tuple[str, ...] = ()
    """Those of ``KUBELET_FAULTS`` that its kubelets have."""

    async def reboot(self) -> None:
        """The machine restarts; kill its kubelet and its plugins first and start them after."""
        await self.containerd.reboot()

    def api(self) -> EmulatedKubeletApi:
        """Logs and commands of its pods."""
        return EmulatedKubeletApi(self.containerd, self.spec)

    def kubelet(
        self, context: Context, *, note: KubeletJournal | None = None, booting_for_s: float = 0.0
    ) -> KubeletProcess:
        """Return a new start of its kubelet; ``note`` in place of the machine's, fenced like the rest of that
        incarnation. ``booting_for_s``: for so many seconds of the loop it has been booting."""
        return KubeletProcess(self, context, note or self.note, booting_for_s)


class KubeletProcess:
    """One start of a kubelet with its device manager: a Component."""

    def __init__(self, machine: Machine, context: Context, note: KubeletJournal, booting_for_s: float) -> None:
        self._machine = machine
        self._context = context
        self._note = note
        self._booting_for_s = booting_for_s
        self.kubelet: Kubelet | None = None
        self.devices: DeviceManager | None = None

    async def run(self) -> None:
        """Run until cancelled; then its connections and sockets are closed, and its containers run on."""
        machine = self._machine
        devices = DeviceManager(
            dialer=machine.folder,
            checkpoint=machine.checkpoint,
            pace=machine.pace,
            rng=self._context.rng,
            active_pods=lambda: kubelet.active_pods(),
            node_allocatable=lambda: kubelet.allocatable(),
            log=self._context.log,
            note=self._note,
            faults=machine.faults,
        )
        dra = DraManager(
            self._context,
            machine.pace,
            machine.dra,
            machine.dra_state,
            node=machine.spec.name,
            active_pods=lambda: kubelet.active_pods(),
            note=self._note,
            gates=machine.gates,
            health_store=machine.dra_health_state,
            wake=lambda uids: kubelet.health_changed(uids),
        )
        resources = ManagerPodResources(
            devices, find_pod=lambda namespace, name: kubelet.known_pod(namespace, name), claims=dra
        )

        async def open_sockets() -> None:
            await machine.folder.start(devices, resources)

        kubelet = Kubelet(
            self._context,
            replace(machine.spec, boots=machine.containerd.boots),
            devices,
            machine.containerd,
            machine.pace,
            images=machine.images,
            dra=dra,
            overhead=machine.overhead,
            note=self._note,
            timings=machine.timings,
            open_sockets=open_sockets,
            hooks=machine.hooks,
            booting_for_s=self._booting_for_s,
        )
        self.kubelet, self.devices = kubelet, devices
        try:
            await kubelet.run()
        finally:
            await machine.folder.stop()
            await devices.close()
