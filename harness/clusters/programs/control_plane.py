"""The Kubernetes side of a wall-clock cluster of emulated nodes: its API server and control plane."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from mews.harness.ports.fence import Fence
from mews.kube.client.port import KubeApi
from mews.kube.component import Runnable
from mews.kube.emulated.ports.kubelets import KubeletDirectory

if TYPE_CHECKING:
    from mews.kube.emulated.kubelet.podnet.callers import Callers, PlaceOf

Program = Callable[[Fence], Runnable]
"""Makes one incarnation of a component that is a program of its own."""

ADMIN = "admin"


def acting_as(actor: str) -> Mapping[str, str]:
    """Return the headers by which the administrator's token asks as that component: admission tells components apart,
    as it does in virtual time, where each asks as ``system:ACTOR``, too. All of them may do everything."""
    if actor == ADMIN:
        return {}
    return {"Impersonate-User": f"system:{actor}", "Impersonate-Group": "system:masters"}


class ControlPlane(Protocol):
    """``embedded``: our store and API server; ``control-plane``: the real ones."""

    name: str

    @property
    def url(self) -> str:
        """Where the API server is.

        Raises RuntimeError before it is opened.
        """
        ...

    async def open(self, kubelets: KubeletDirectory, hosts: Sequence[str]) -> None:
        """Make the API answer; it reaches the kubelets of the hosts by that directory.

        Raises RequirementError.
        """
        ...

    @property
    def pod_prefix(self) -> str:
        """The first two numbers of addresses by which pods of processes are to be known; "" for loopback addresses."""
        ...

    def find_pods(self, place_of: PlaceOf) -> None:
        """Once it is open, where pods are known by such addresses: reach them where that function says."""
        ...

    def kube(self, actor: str) -> KubeApi:
        """Return a client for one actor, which no other uses; ``close`` closes it."""
        ...

    def write_kubeconfig(self, path: Path) -> None:
        """The administrator's, readable by its owner alone."""
        ...

    def authority(self) -> str | None:
        """Return it in PEM, whom clients of this API trust; None where it is served in plain HTTP. Once it is open."""
        ...

    def kubelet_address(self, host: str) -> tuple[str, int] | None:
        """Return where the API server finds that host's kubelet; None where it needs no address."""
        ...

    def kubelet_place(self, host: str) -> tuple[str, int] | None:
        """Return where on this machine what is called at the node's address is answered; None where nothing is, or
        right there."""
        ...

    def program(
        self,
        component: str,
        options: Mapping[str, Any],
        *,
        extenders: Sequence[Mapping[str, Any]] = (),
        kubeconfig: Path | None = None,
        callers: Callers | None = None,
    ) -> Program | None:
        """Return the real program that takes the place of our ``default-scheduler`` or ``controller-manager``; None
        where ours runs, also for options that the real one cannot be given. ``extenders`` are the scheduler's;
        ``kubeconfig`` is another one than the administrator's, written before the program starts; by its ``callers`` it
        finds pods and Services."""
        ...

    async def close(self) -> None:
        """Give everything back."""
        ...
