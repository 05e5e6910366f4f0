"""What several scenarios of one run share, since it is dear to start: a control plane."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from mews.harness.clusters.control_plane.servers import Servers


class Shared:
    """Started with the first scenario that needs it, handed on empty to each later one, ended by ``close``.

    Used by one scenario at a time; outlives their event loops.
    """

    def __init__(self) -> None:
        self._servers: Servers | None = None

    def servers(self) -> Servers:
        """The real etcd and kube-apiserver."""
        if self._servers is None:
            from mews.harness.clusters.control_plane.servers import Servers

            self._servers = Servers()
        return self._servers

    def close(self) -> None:
        """End it all."""
        servers, self._servers = self._servers, None
        if servers is not None:
            servers.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
