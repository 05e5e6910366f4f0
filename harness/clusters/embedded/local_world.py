"""The embedded cluster in one process under virtual time: every port in process, nothing opened."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.chassis.inventory import Hardware
from mews.emulator.host.events import HostEvent
from mews.harness.chassis_feed import ChassisFeed
from mews.harness.clusters.control_plane.port import Program
from mews.harness.host_feed import HostFeed
from mews.harness.journal import Journal
from mews.harness.ports.chassis import LOCAL_PASSWORD, LocalFleet
from mews.harness.ports.deviceplugin import LocalKubeletFolder, LocalLink, LocalPodResources
from mews.harness.ports.hardware_control import LocalHardwareControl
from mews.harness.ports.hosts import LocalHosts, LocalUsers
from mews.kube.chassis.dialects import speak
from mews.kube.chassis.port import ChassisApi
from mews.kube.chassis.redfish import Account
from mews.kube.clock import Clock, Pace
from mews.kube.deviceplugin.port import DevicePluginLink
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.store.store import Store
from mews.kube.emulated.apiserver.wire.kubelets import KubeletDirectory
from mews.kube.emulated.kubelet.devices import MemoryCheckpoint
from mews.kube.emulated.kubelet.runtime import Runtime
from mews.kube.emulated.kubelet.users import Users
from mews.systems.kubecomp.config import AllocateConfig
from mews.systems.kubecomp.device_manager import Confirm
from mews.systems.kubecomp.sysfs import SysfsConfirm


class LocalWorld:
    """World in process."""

    name = "embedded"
    time = "virtual"

    def __init__(
        self, hardware: Hardware, *, journal: Journal, clock: Clock, pace: Pace, seed: int | str, rng: random.Random
    ) -> None:
        self._journal = journal
        self._store = Store(clock.now, rng)
        self._kubelets: KubeletDirectory | None = None
        self._feeds = {spec.name: ChassisFeed(journal, spec) for spec in hardware.chassis}
        self._host_feeds = {host.name: HostFeed(journal, host.name) for host in hardware.hosts}
        self._hosts = LocalHosts(hardware, pace=pace, seed=seed, listener=self._hear_host)
        self._fleet = LocalFleet(hardware, pace=pace, seed=seed, listener=self._hear)
        self._folders = {host.name: LocalKubeletFolder() for host in hardware.hosts}
        self._checkpoints = {host.name: MemoryCheckpoint() for host in hardware.hosts}
        self.hardware = LocalHardwareControl(self._fleet, self._hosts)

    async def open(self, kubelets: KubeletDirectory) -> None:
        """Write the tables; all else is there."""
        self._kubelets = kubelets
        for feed in self._feeds.values():
            feed.begin()
        self._hosts.begin()

    def _hear(self, event: ChassisEvent) -> None:
        self._feeds[event.chassis].hear(event.number, event.event, event.fields)
        self._hosts.hear(event)

    def _hear_host(self, event: HostEvent) -> None:
        self._host_feeds[event.host].hear(event.event, event.fields)

    def kube(self, actor: str) -> InProcessKube:
        """The store, as that actor."""
        return InProcessKube(self._store, f"system:{actor}", kubelets=self._kubelets)

    def kubelet_address(self, host: str) -> tuple[str, int] | None:
        """Kubelets are asked in process."""
        return None

    def program(
        self, component: str, options: Mapping[str, Any], *, extenders: Sequence[Mapping[str, Any]] = ()
    ) -> Program | None:
        """No processes under virtual time."""
        return None

    def chassis(self, name: str, dialect: str, *, timeout_s: float) -> ChassisApi:
        """The chassis' dialect without a socket."""
        transport = self._fleet.transport(name, dialect, timeout_s=timeout_s)
        return speak(dialect, transport, Account("admin", LOCAL_PASSWORD), patience_s=timeout_s)

    def folder(self, host: str) -> LocalKubeletFolder:
        """The node's folder."""
        return self._folders[host]

    def checkpoint(self, host: str) -> MemoryCheckpoint:
        """In memory; it outlives the kubelet."""
        return self._checkpoints[host]

    def link(self, host: str) -> LocalLink:
        """A link of one plugin incarnation."""
        return self._folders[host].link()

    def bury(self, link: DevicePluginLink) -> None:
        """Its streams end."""
        assert isinstance(link, LocalLink)
        link.kill()

    def pod_resources(self, host: str) -> LocalPodResources:
        """The node's podresources."""
        return self._folders[host].pod_resources()

    def confirm(self, host: str) -> Confirm:
        """By the host's files, as values."""
        return SysfsConfirm(self._hosts.tree(host))

    def allocate(self, host: str) -> AllocateConfig:
        """Simulated containers load no library."""
        return AllocateConfig()

    def users(self, host: str) -> Users:
        """The host itself."""
        return LocalUsers(self._hosts, host)

    def lacks(self, requirement: str) -> str | None:
        """There are no files and no programs."""
        return f"there is no {requirement} in virtual time"

    async def kill_hosts(self) -> None:
        """Raises ValueError: the hosts are values here."""
        raise ValueError("hosts: have no process of their own in virtual time")

    async def start_hosts(self) -> None:
        """Nothing was killed."""

    def processes(self) -> Runtime | None:
        """No processes under virtual time."""
        return None

    def names_file(self) -> Path | None:
        """Nobody to look anything up."""
        return None

    def network(self, number: int) -> str:
        """As kind numbers its nodes."""
        return f"10.244.{number}"

    def scratch(self) -> Path:
        """Nothing is written."""
        raise RuntimeError("in virtual time nothing is written")

    async def kill_chassis(self, name: str) -> None:
        """Connections end, new ones are refused."""
        self._fleet.kill(name)

    async def start_chassis(self, name: str) -> None:
        """It comes back with its table."""
        self._fleet.start(name)

    def ready(self) -> dict[str, Any]:
        """Nothing of it can be reached."""
        raise RuntimeError("in virtual time no other process can reach the cluster")

    async def close(self) -> None:
        """Cancel the hardware's timers."""
        self._hosts.close()
        self._fleet.close()
