"""The ports of a wall-clock cluster: a real HTTP API, chassis and hosts in processes of their own, unix sockets."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mews.certificates import Certificates, ClusterCertificates
from mews.emulator.hardware.inventory import Hardware
from mews.harness.clusters.embedded.chassis_process import ChassisProcess
from mews.harness.clusters.embedded.node_addresses import node_address
from mews.harness.clusters.embedded.served_chassis import ServedChassis
from mews.harness.clusters.embedded.served_hosts import ServedHardware, ServedHosts
from mews.harness.clusters.embedded.served_process import with_scenario_folder
from mews.harness.clusters.embedded.trust import RunTrust
from mews.harness.leftovers import OWNER, RuntimeFolder, make_memory_folder, make_runtime_folder
from mews.harness.options import ServingOptions
from mews.harness.run_context import RunContext

if TYPE_CHECKING:
    from mews.harness.clusters.embedded.served_engine import ServedEngine
    from mews.harness.clusters.embedded.served_kubelets import ServedKubelets
    from mews.harness.clusters.embedded.served_services import ServedServices
    from mews.harness.clusters.ports import ClusterPorts
    from mews.harness.clusters.programs.control_plane import ControlPlane, Program
    from mews.kube.emulated.kubelet.podnet.callers import Callers
    from mews.kube.emulated.kubelet.podnet.network import PodNetwork
    from mews.kube.emulated.kubelet.process import ProcessRuntime
    from mews.kube.emulated.kubelet.runtime import EnginePort
    from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes
    from mews.kube.emulated.ports.kubelets import KubeletDirectory

MakeControlPlane = Callable[[Path, "ClusterCertificates | None"], "ControlPlane"]
"""In the cluster's own folder, with the run's certificates (there once it is opened), None for plain HTTP."""


class ServedPorts:
    """Makes the ports, and is the ProcessesPort among them. ``await begin()``, then ``await open()`` before
    ``ports``.

    Everything lies in a short folder of its own, since a socket's path has at most 107 bytes; the user's ``folder``
    gets the kubeconfig, the file of whom to trust, and keeps the chassis' tables.

    What the emulator's processes do not need is imported and made while they start: it takes as long as they do.
    ``containers`` names what asks for real containers, "" where nothing does.
    """

    def __init__(
        self,
        hardware: Hardware,
        document: Mapping[str, Any],
        run: RunContext,
        *,
        control_plane: MakeControlPlane,
        serving: ServingOptions,
        folder: Path | None = None,
        containers: str = "",
    ) -> None:
        self.scratch = make_runtime_folder("mews-")
        self._owned = RuntimeFolder(self.scratch)
        self._hardware = hardware
        self._run = run
        self._kubeconfig = (folder or self.scratch) / "kubeconfig"
        nodes = [name for number, host in enumerate(hardware.hosts) for name in (host.name, node_address(number))]
        self._trust = RunTrust(self.scratch, (folder or self.scratch) / "ca.crt", serving, run.clock, nodes=nodes)
        self._make_control_plane = control_plane
        self._made: ControlPlane | None = None
        env = with_scenario_folder(self._owned.env())
        options = self._trust.process_options("--insecure")
        process = ChassisProcess(self.scratch, document, run, keep=folder, env=env, options=options)
        self._chassis = ServedChassis(process, hardware, run)
        options = self._trust.process_options("--plain-control")
        self._hosts = ServedHosts(
            self.scratch, self._chassis.hardware_file, self._chassis.ready_file, run, env=env, options=options
        )
        self.names_file = self.scratch / "hosts"
        self.volumes = (folder or self.scratch).absolute() / "volumes"
        self.runtime: ProcessRuntime
        self.pod_volumes: PodVolumes
        self._served_kubelets: ServedKubelets | None = None
        self._services: ServedServices
        self._starting: list[asyncio.Future[None]] = []
        self._containers = containers
        self._host_allowed = serving.host_access
        self._engine: ServedEngine | None = None
        self._has_network = False
        self._network: PodNetwork | None = None
        self.callers: Callers | None = None
        self._memory: RuntimeFolder | None = None

    def ports(self) -> ClusterPorts:
        """Return all of them."""
        from mews.harness.clusters.ports import ClusterPorts

        names = [host.name for host in self._hardware.hosts]
        return ClusterPorts(
            kube=self._control_plane.kube,
            hardware=ServedHardware(self._chassis.control, self._hosts, names),
            chassis=self._chassis,
            hosts=self._hosts,
            kubelets=self._kubelets,
            plugins=self._kubelets,
            services=self._services,
            close=self.close,
            host_server=self._hosts,
            processes=self,
        )

    async def begin(self) -> None:
        """Start chassis and hosts; ``open`` waits for them.

        Raises RequirementError where containers are asked for and there is no engine for them.
        """
        if self._containers:
            from mews.harness.clusters.embedded.served_engine import ServedEngine

            self._engine = await asyncio.to_thread(
                ServedEngine.connect, self.scratch, self._containers, host_allowed=self._host_allowed
            )
        self._starting = [asyncio.ensure_future(self._chassis.begin()), asyncio.ensure_future(self._hosts.start())]
        await asyncio.sleep(0)  # now the processes are there; the hosts' waits for the chassis

    async def open(self, kubelets: KubeletDirectory) -> None:
        """Start the API server; follow the chassis from their first event on.

        Raises RequirementError, also where the folder has so long a name that no socket can lie in it.
        """
        # Meanwhile: a process takes longer to start than certificates to be made, and waits for them at need.
        certifying = asyncio.ensure_future(self._trust.make())
        await asyncio.sleep(0)
        self._make_own_parts()
        self._has_network = not await asyncio.to_thread(self._network_lacking)
        await certifying
        self._made = self._make_control_plane(self.scratch, self._trust.cluster)
        self.runtime = self._process_runtime(self._made)
        await self._control_plane.open(kubelets, [host.name for host in self._hardware.hosts])
        if self._network is not None and self._network.subnet.is_hidden:
            self._control_plane.find_pods(self._network.place_of)
        beginning, booting = self._starting
        await beginning
        self._control_plane.write_kubeconfig(self._kubeconfig)
        self._trust.write(self._control_plane.authority())
        self._chassis.begin_feeds(await self._chassis.control().table())
        await booting
        await self._hosts.open()
        for host in self._hardware.hosts:
            driver = self._hosts.driver_root(host.name)
            if driver is not None:
                self._kubelets.show_driver(host.name, driver)
        self._chassis.follow()

    def _make_own_parts(self) -> None:
        from mews.harness.clusters.embedded.served_kubelets import ServedKubelets
        from mews.harness.clusters.embedded.served_services import ServedServices

        self._services = ServedServices(self._run.rng("services"), self._trust.certificates)
        self._served_kubelets = ServedKubelets(self.scratch, self._hardware, self._kubelet_address)

    def _process_runtime(self, control_plane: ControlPlane) -> ProcessRuntime:
        from mews.harness.systems import find_program
        from mews.kube.emulated.controllers.service_names import HOSTS_FILE, POD_NAMES
        from mews.kube.emulated.kubelet.cgroups import Cgroups
        from mews.kube.emulated.kubelet.in_cluster import InCluster
        from mews.kube.emulated.kubelet.pod_roots import PodRoots
        from mews.kube.emulated.kubelet.podnet.callers import Callers
        from mews.kube.emulated.kubelet.process import ProcessRuntime
        from mews.kube.emulated.kubelet.volumes.host_paths import NodeHostPaths
        from mews.kube.emulated.kubelet.volumes.pod_volumes import PodVolumes

        known = {HOSTS_FILE: str(self.names_file), OWNER: str(self.scratch)}
        access = InCluster(control_plane, self.scratch / "accounts")
        if self._engine is not None:
            self._engine.serve(
                access,
                lambda: control_plane.kube("kubelet"),
                names=self.names_file,
                volumes=self.volumes,
                speed=self._run.speed,
            )
        folder = self.scratch / "pods"
        host_paths = NodeHostPaths(self._kubelets.node_folder, self._files_of)
        self.pod_volumes = PodVolumes(
            access.kube,
            folder,
            host_paths,
            provisioned=self.volumes,
            tokens=access,
            speed=self._run.speed,
            memory=self._in_memory,
        )
        network, names = self._pod_network(control_plane), self.names_file
        self._network = network
        if network is not None:
            self.callers = Callers()
            self.callers.find(network.place_of)
        roots = PodRoots(
            folder, self.pod_volumes, names=names if network is None else names.with_name(POD_NAMES),
            shared=[self.scratch], host_allowed=self._host_allowed, network=network,
        )  # fmt: skip
        return ProcessRuntime(
            folder, known, speed=self._run.speed, programs=find_program, in_cluster=access, roots=roots,
            groups=Cgroups(self.scratch.name),
        )  # fmt: skip

    def _in_memory(self) -> Path | None:
        if self._memory is None:
            self._memory = make_memory_folder()
        return None if self._memory is None else self._memory.folder

    @staticmethod
    def _network_lacking() -> str:
        from mews.kube.emulated.kubelet.mount_namespace import filters_lacking

        return filters_lacking()

    def _pod_network(self, control_plane: ControlPlane) -> PodNetwork | None:
        """Return that of the pods that run as processes; None where this machine cannot give them one."""
        from mews.kube.emulated.controllers.service_names import TABLE
        from mews.kube.emulated.kubelet.node import KUBELET_PORT
        from mews.kube.emulated.kubelet.podnet.network import PodNetwork
        from mews.kube.emulated.kubelet.podnet.service_table import ServiceTable

        if not self._has_network:
            return None

        def api() -> tuple[str, int]:
            found = urlsplit(control_plane.url)
            return str(found.hostname), int(found.port or 0)

        def kubelets() -> dict[tuple[str, int, str], list[tuple[str, int]]]:
            places = [control_plane.kubelet_place(host.name) for host in self._hardware.hosts]
            found = enumerate(places)
            return {(node_address(at), KUBELET_PORT, "TCP"): [place] for at, place in found if place is not None}

        table = ServiceTable(self.names_file.with_name(TABLE), api, kubelets)
        # Containers have this machine's network, and listen at its addresses.
        shown = control_plane.pod_prefix if self._engine is None else ""
        subnet = self._kubelets.addresses.know_by(shown) if shown else None
        return PodNetwork(table, self._run.rng("pod-network"), subnet)

    def engine(self, host: str) -> EnginePort | None:
        """Return what runs real images on that host."""
        if self._engine is None:
            return None
        return self._engine.port(host, self._files_of(host))

    def _files_of(self, host: str) -> Path:
        return self._hosts.driver_root(host) or self._hosts.root(host)

    @property
    def _control_plane(self) -> ControlPlane:
        if self._made is None:
            raise RuntimeError("the control plane is not there before the cluster is opened")
        return self._made

    @property
    def _kubelets(self) -> ServedKubelets:
        if self._served_kubelets is None:
            raise RuntimeError("the kubelets have no folders before the cluster is opened")
        return self._served_kubelets

    def _kubelet_address(self, host: str) -> tuple[str, int] | None:
        return self._control_plane.kubelet_address(host)

    def program(
        self,
        component: str,
        options: Mapping[str, Any],
        *,
        extenders: Sequence[Mapping[str, Any]] = (),
        kubeconfig: Path | None = None,
    ) -> Program | None:
        """Return the real program in a component's place."""
        return self._control_plane.program(
            component, options, extenders=extenders, kubeconfig=kubeconfig, callers=self.callers
        )

    @property
    def certificates(self) -> Certificates | None:
        """Those of the run's own servers."""
        return self._trust.certificates

    def authority(self) -> str | None:
        """Return the certificates by which the API server is known."""
        return self._control_plane.authority()

    def ready(self) -> dict[str, Any]:
        """Return where everything is, as ``mews up`` writes it."""
        return {
            "api": self._control_plane.url,
            "kubeconfig": str(self._kubeconfig),
            "ca": self._trust.ca,
            "logs": str(self.scratch),
            **self._chassis.ready(),
            "hosts": self._hosts.control_ready(),
            "services": self._services.ready(),
            "nodes": {host.name: self._node(host.name) for host in self._hardware.hosts},
        }

    def _node(self, host: str) -> dict[str, Any]:
        files = self._hosts.root(host)
        driver_root = self._hosts.driver_root(host)
        place = self._control_plane.kubelet_place(host) or self._control_plane.kubelet_address(host)
        return {
            **self._kubelets.ready(host),
            "sysfs": str(files / "sys"),
            "root": str(files),
            "driver_root": None if driver_root is None else str(driver_root),
            "kubelet": None if place is None else f"https://{place[0]}:{place[1]}",
            "env": self._hosts.env(host),
        }

    async def close(self) -> None:
        """Give everything back: processes, sockets, the folder."""
        for starting in self._starting:
            starting.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)
        if self._engine is not None:
            await self._engine.close()
        await self._chassis.stop_following()
        if self._served_kubelets is not None:
            await self._services.close()
            await self._served_kubelets.close()
        await self._chassis.close_clients()
        closing = [] if self._made is None else [self._made.close()]
        await asyncio.gather(self._hosts.close(), self._chassis.stop(), *closing)
        if self.callers is not None:
            await asyncio.to_thread(self.callers.close)
        await asyncio.to_thread(shutil.rmtree, self.volumes, ignore_errors=True)
        self._kubeconfig.unlink(missing_ok=True)
        self._trust.remove()
        if self._memory is not None:
            await asyncio.to_thread(self._memory.release)
        await asyncio.to_thread(self._owned.release)
