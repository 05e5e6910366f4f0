"""A DRA driver and the kubelet of its node as ports (k8s.io/kubelet/pkg/apis/dra/v1 and pluginregistration/v1).

``DraPlugin`` is the driver: what the kubelet calls. ``DraLink`` is the node as a driver sees it. ``DraSocket`` is a
driver's registration as the kubelet sees it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from mews.kube.deviceplugin.port import Endpoint

CdiSpec = Mapping[str, Any]
"""A specification of the Container Device Interface: ``cdiVersion``, ``kind``, ``devices``, ``containerEdits``."""


class ClaimReference(Struct, frozen=True):
    """A claim as the kubelet names it; whoever wants more of it reads it from the API."""

    namespace: str
    uid: str
    name: str


class PreparedDevice(Struct, frozen=True):
    """A device that is ready: the requests that it answers (none: all), and how the container runtime knows it."""

    pool: str
    device: str
    requests: tuple[str, ...] = ()
    cdi_ids: tuple[str, ...] = ()
    share: str = ""


class PreparedClaim(Struct, frozen=True):
    """What a driver answers about one claim: its devices, or why not."""

    devices: tuple[PreparedDevice, ...] = ()
    error: str = ""


HEALTHY, UNHEALTHY, UNKNOWN = "Healthy", "Unhealthy", "Unknown"


class DeviceHealth(Struct, frozen=True):
    """How a device is, and why. After ``timeout_s`` without another report nobody knows; 0: the kubelet's default."""

    pool: str
    device: str
    health: str = UNKNOWN
    message: str = ""
    timeout_s: float = 0.0


class DraPlugin(Protocol):
    """What the kubelet calls. Both may raise PluginError, which fails all claims of the call."""

    async def prepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, PreparedClaim]:
        """NodePrepareResources: uid -> what became of the claim. The same claim again gets the same answer."""
        ...

    async def unprepare(self, claims: Sequence[ClaimReference]) -> Mapping[str, str]:
        """NodeUnprepareResources: uid -> why not, "" for done; done, too, for a claim that is not known."""
        ...


class HealthReporter(Protocol):
    """What reports how its devices are (k8s.io/kubelet/pkg/apis/dra-health/v1). A driver need not."""

    @property
    def reports_health(self) -> bool:
        """Whether ``watch_health`` may be called."""
        ...

    def watch_health(self) -> AsyncIterator[tuple[DeviceHealth, ...]]:
        """NodeWatchResources: each item names all devices. PluginError("Unimplemented", …) ends it for good."""
        ...


class ServedPlugin(DraPlugin, HealthReporter, Protocol):
    """What a driver serves on its socket."""


class CdiFolder(Protocol):
    """The folder in which the container runtime finds specifications."""

    def files(self) -> Mapping[str, CdiSpec]:
        """Return what is there, by name."""
        ...

    def write(self, name: str, spec: CdiSpec) -> None:
        """Put a file there, or another in its place."""
        ...

    def remove(self, name: str) -> None:
        """Take it away; a name that is not there changes nothing."""
        ...


class DraEndpoint(Endpoint, Protocol):
    """A driver that is being served."""

    async def registered(self) -> None:
        """Return once a kubelet can call it, where that is known."""
        ...


class DraLink(Protocol):
    """The node as one incarnation of a driver sees it."""

    @property
    def cdi(self) -> CdiFolder:
        """Where it leaves its specifications."""
        ...

    async def serve(self, driver: str, plugin: ServedPlugin) -> DraEndpoint:
        """Serve on a socket and have it registered, in place of a leftover."""
        ...


class DraSocket(ServedPlugin, Protocol):
    """One endpoint of a driver; calls raise PluginError("UnavailableError", …) once nobody is there."""

    @property
    def driver(self) -> str:
        """The driver's name."""
        ...

    @property
    def connected(self) -> bool:
        """Whether the other side is there."""
        ...


class DraRegistry(Protocol):
    """``plugins_registry`` and the CDI folders of one node; it outlives kubelets and drivers."""

    def sockets(self) -> Mapping[str, DraSocket]:
        """Path -> who serves there."""
        ...

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Have it called whenever a socket or a connection comes or goes; the result ends that."""
        ...

    def specs(self) -> Sequence[CdiSpec]:
        """Return all specifications, in order of their files."""
        ...
