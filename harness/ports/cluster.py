"""The narrow view that the scenario runner has of a running cluster with its hardware.

``EmbeddedCluster`` (emulated nodes) and ``RealCluster`` (nodes of a real cluster) implement it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from mews.harness.journal import Journal
from mews.kube.client.port import KubeApi
from mews.kube.clock import Clock, Pace
from mews.kube.deviceplugin.port import PodDevices
from mews.kube.system.configured import ConfiguredSystem

DEFAULT_SCHEDULER = "default-scheduler"
"""The component that places pods which ask for no scheduler of their own."""
DEVICE_ENV = "NVIDIA_VISIBLE_DEVICES"
"""Where containers learn of their devices in a stack that pools none: as NVIDIA's container toolkit has it."""


class ComponentsCrashedError(Exception):
    """The cluster did not come up since components, ours or the user's, ended, or in virtual time did not do it.
    ``cluster``: what there was of it, with its journal; None where nothing was seen of it."""

    def __init__(self, text: str, cluster: Cluster | None = None) -> None:
        super().__init__(text)
        self.cluster = cluster


class ComponentFaultControl(Protocol):
    """The faults between the components of one cluster and its API (``mews.harness.api_faults.control.ApiFaults``)."""

    def clients(self) -> list[str]:
        """Return the components that may have faults, sorted."""
        ...

    async def add(self, component: str, spec: Mapping[str, Any]) -> object:
        """Put a fault in place.

        Raises ValueError naming what is allowed.
        """
        ...

    def clear(self, component: str | None = None) -> Awaitable[None] | None:
        """Take away those of one component, or all; to be awaited where that takes time."""
        ...

    def listed(self) -> dict[str, list[dict[str, Any]]]:
        """Component -> the faults in place there, as a chassis lists its own."""
        ...


class HardwareControl(Protocol):
    """The back door to the emulated chassis (dialect ``control``): what an engineer in front of the box could do."""

    async def table(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis name -> device ID -> ``{"uuid", "port", "host", "kind", "pool", "gpuid", …}``; port None: free."""
        ...

    async def edit(self, chassis: str, device: str, port: str | None) -> None:
        """Change the table at once, behind every client's back (another editor)."""
        ...

    async def fault(self, chassis: str, spec: Mapping[str, Any]) -> None:
        """Add a fault, for example ``{"kind": "lying-result", "count": 1}``.

        Raises ValueError naming what is allowed.
        """
        ...

    async def clear(self, name: str | None = None) -> None:
        """Undo all faults, or those of one chassis or host."""
        ...

    async def faults(self) -> dict[str, list[dict[str, Any]]]:
        """``chassis/A`` or ``host/host-1`` -> the faults in place there: ``{"fault", "kind", "spec", "fired", "left",
        …}``; ``spec`` is without the kind."""
        ...

    async def hosts(self) -> dict[str, dict[str, Any]]:
        """Host name -> what it sees: ``{"devices": {gpuid: row}, "holders": […], "waiting": […], "log": […]}``, rows
        with uuid, bdf, minor, stage, driver, node, nvml, healthy, … (``mews.emulator.host.function``)."""
        ...

    async def host_fault(self, host: str, spec: Mapping[str, Any]) -> None:
        """Add a fault to a host, for example ``{"kind": "xid", "device": "000100", "xid": 79}``.

        Raises ValueError naming what is allowed.
        """
        ...

    async def operate(self, host: str, action: Mapping[str, Any], wait_s: float = 0.0) -> str:
        """Return what an operator does on a host (``mews.emulator.host.act``): ``done``, the code of a refusal
        (``IN_USE``, ``NO_DEVICE``, …), or ``waiting`` when it still blocks after that many emulated seconds.

        Raises ValueError for what is no action.
        """
        ...

    async def telemetry(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Chassis -> device -> what its board shows now (``mews.emulator.telemetry.reading``), and what is ``set``."""
        ...

    async def set_telemetry(self, chassis: str, device: str, values: Mapping[str, Any]) -> None:
        """Set values of a board (``mews.emulator.telemetry.settings``); chassis and device may be ``all``.

        Raises ValueError naming what is allowed.
        """
        ...

    async def reset(self) -> None:
        """The table, the faults and the operations as they were at the start."""
        ...


class Cluster(Protocol):
    """A running cluster, its components and its hardware."""

    name: str
    time: str
    kube: KubeApi
    journal: Journal
    clock: Clock
    hardware: HardwareControl
    pace: Pace
    kubelet_pace: Pace
    """Of the kubelets: real ones take a second for a second."""
    dialect: str
    parts_are_ours: bool
    """Nothing of the user's, and no program of Kubernetes', is in the place of an included component."""
    systems: Sequence[ConfiguredSystem]
    """Those that run, in the order in which they start."""
    records: Journal
    """What components log, beside the journal: structured records by their event, warnings as ``log``."""

    @property
    def api_faults(self) -> ComponentFaultControl | None:
        """The faults between its components and the API; None where nothing can stand between them."""
        ...

    def lacks(self, requirement: str) -> str | None:
        """Return why a scenario's ``requires`` entry cannot be had here (it is then skipped with that reason), or None.

        The words: ``virtual``, ``wall`` (time), ``logs``, ``exec``, ``kill``,
        ``cut`` (a kill at the very journal line), ``root``, ``fuse``.
        """
        ...

    def node_of(self, host: str) -> str:
        """Return the node of a host that the scenario names."""
        ...

    async def artefacts(self) -> Mapping[str, str]:
        """Logs that the API does not have, by file name, for the artefacts of a failure."""
        ...

    def components(self) -> Sequence[str]:
        """Return what can be killed and restarted: ``scheduler``, ``reconfig-manager``, ``device-manager/host-1``,
        ``kubelet/host-1``, ``chassis/A``, ``default-scheduler``."""
        ...

    def cut(self, component: str) -> None:
        """Fence that incarnation's ports at once, from within a journal listener: the crash happens at that line.
        ``kill`` follows. Where this cannot be (kind), nothing happens and ``kill`` comes as soon as it can."""
        ...

    async def kill(self, component: str) -> None:
        """Kill -9: nothing of that incarnation gets out any more."""
        ...

    async def start(self, component: str) -> None:
        """Start a killed component anew."""
        ...

    def metrics(self) -> Mapping[str, Any]:
        """Return what the systems' components measured of themselves, by the names of ``SystemMeasuring.measured``; {}
        where nothing is known of it."""
        ...

    async def pod_resources(self, host: str) -> tuple[PodDevices, ...]:
        """podresources v1 List of that host's kubelet."""
        ...

    def stalled(self, since_line: int) -> bool:
        """Return whether nothing can happen any more: only periodic loops are left and, since that journal line, a
        whole round of them changed nothing. Always False in wall-clock time."""
        ...

    async def close(self) -> None:
        """Stop everything and give everything back."""
        ...


class MeasuresView(Protocol):
    """What the systems of a cluster show to Prometheus."""

    def exposing(self) -> Sequence[str]:
        """Return the systems whose measures ``exposition`` has."""
        ...

    async def exposition(self, system: str) -> bytes:
        """Return what the components of a system measure of themselves, in Prometheus' text form.

        Raises ValueError for a system that exposes nothing, ConnectionError where what would is down.
        """
        ...


class ReachableCluster(Cluster, Protocol):
    """A cluster that other processes can reach, in wall-clock time."""

    @property
    def measures(self) -> MeasuresView:
        """What its systems measure of themselves."""
        ...

    def keep_alive(self) -> None:
        """From now on a component that crashes is started again after a back-off; in a scenario it stays down."""
        ...

    async def announced(self) -> None:
        """Wait until every node shows the devices that are on its ports."""
        ...

    def ready(self) -> dict[str, Any]:
        """Return what ``mews up`` writes to ``ready.json``, without the pid (docs/api.md)::

        {"api", "kubeconfig", "chassis": {name: {dialect: url}}, "control": {"url", "token"},
         "nodes": {name: {"device_plugins": dir, "pod_resources": dir, "plugins_registry": dir,
         "plugins": dir, "cdi": dir, "sysfs": dir, "env": {…}}}}
        """
        ...
