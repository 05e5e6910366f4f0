"""How the API server reaches the kubelets for logs and commands."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mews.kube.api.objects import Object
from mews.kube.client.port import ExecResult
from mews.kube.emulated.streaming.standard_streams import StreamSession

if TYPE_CHECKING:
    from mews.kube.emulated.streaming.port_forward import Dial
    from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage


class KubeletApi(Protocol):
    """What one kubelet answers about its pods. Raises ``ApiError`` for what it must refuse."""

    def log(
        self,
        namespace: str,
        pod: str,
        container: str,
        *,
        follow: bool = False,
        previous: bool = False,
        tail_lines: int | None = None,
        since: float | None = None,
        timestamps: bool = False,
        limit_bytes: int | None = None,
    ) -> AsyncIterator[bytes]:
        """Return the container's log in chunks; with ``follow`` until the container ends; ``since`` in unix seconds."""
        ...

    async def exec(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> ExecResult:
        """Run a command in a running container."""
        ...

    def command(self, namespace: str, pod: str, container: str, command: Sequence[str]) -> StreamSession:
        """Return a command in a running container, to be run with a client's streams."""
        ...

    def attachment(self, namespace: str, pod: str, container: str) -> StreamSession:
        """Return a client's connection to the streams of a running container."""
        ...

    def ports(self, namespace: str, pod: str) -> Dial:
        """Return what connects to the ports of a pod."""
        ...

    def pods(self) -> Sequence[Object]:
        """Return the pods that it runs."""
        ...

    def addresses(self) -> Collection[str]:
        """Return the addresses that it gave to them."""
        ...

    def usage(self) -> Sequence[PodUsage]:
        """Return what they use."""
        ...

    def node_usage(self) -> ContainerUsage:
        """Return what the node uses as a whole, for itself and for all that ever ran on it."""
        ...

    async def summary(self, *, now: float, files: bool) -> Mapping[str, Any]:
        """Return node and pods as ``/stats/summary`` shows them, with ``files`` or CPU and memory alone."""
        ...

    def probe_counts(self) -> Mapping[tuple[str, str, str, str, str, str], int]:
        """(namespace, pod, container, uid, type, result) of their probes -> how often."""
        ...


class KubeletDirectory(Protocol):
    """Finds the kubelet of a node, and what else of the cluster runs."""

    def kubelet_of(self, node: str) -> KubeletApi | None:
        """Return None while no kubelet runs there."""
        ...

    def runs(self, component: str) -> bool:
        """Return whether ``scheduler`` or ``controller-manager`` does."""
        ...


class NoKubelets:
    """The directory of a cluster in which no kubelet runs."""

    def kubelet_of(self, node: str) -> KubeletApi | None:
        """Return None, since no node has a kubelet."""
        return None

    def runs(self, component: str) -> bool:
        """Return False, since nothing runs."""
        return False


class Kubelets:
    """The KubeletDirectory, for an API server that is there before the kubelets are."""

    def __init__(self) -> None:
        self.find: Callable[[str], KubeletApi | None] = lambda node: None
        self.find_component: Callable[[str], bool] = lambda component: False

    def kubelet_of(self, node: str) -> KubeletApi | None:
        """Return None while no kubelet runs there."""
        return self.find(node)

    def runs(self, component: str) -> bool:
        """Return whether ``scheduler`` or ``controller-manager`` does."""
        return self.find_component(component)
