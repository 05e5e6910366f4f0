"""What the pod workers of a kubelet ask of its DRA manager."""

from __future__ import annotations

from typing import Any, Protocol

from mews.kube.api.objects import Object
from mews.kube.deviceplugin.port import Allocation


class Claims(Protocol):
    """``mews.kube.emulated.kubelet.dra.manager.DraManager``."""

    async def run(self) -> None:
        """Register drivers, and look after claims whose pods are gone, until cancelled."""
        ...

    async def prepare(self, pod: Object) -> None:
        """Have all claims of a pod ready.

        Raises DraError.
        """
        ...

    async def unprepare(self, pod: Object) -> None:
        """Give up the pod's claims.

        Raises DraError.
        """
        ...

    def allocation(self, pod: Object, container: str) -> Allocation:
        """Return what the claims of a container give it.

        Raises StartError.
        """
        ...

    @property
    def shows_health(self) -> bool:
        """Whether pods show the health of their devices."""
        ...

    def with_health(self, pod: Object, status: dict[str, Any]) -> dict[str, Any]:
        """Return a pod's status with the health of its devices."""
        ...
