"""What several scenarios of one run share, since it is dear to start: a control plane, a kind cluster."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from mews.harness.clusters.control_plane.servers import Servers
    from mews.harness.clusters.kind.machine import KindMachine


class Shared:
    """Started with the first scenario that needs it, handed on empty to each later one, ended by ``close``.

    Used by one scenario at a time; outlives their event loops. ``keep``: a kind cluster outlives even this; ``tell``
    hears what takes its time.
    """

    def __init__(self, *, keep: bool = False, tell: Callable[[str], None] = lambda _: None) -> None:
        self.tell = tell
        self._keep = keep
        self._servers: Servers | None = None
        self._kind: KindMachine | None = None

    def servers(self) -> Servers:
        """The real etcd and kube-apiserver."""
        if self._servers is None:
            from mews.harness.clusters.control_plane.servers import Servers

            self._servers = Servers()
        return self._servers

    def kind(self) -> KindMachine:
        """The kind cluster, created when its place is asked for."""
        if self._kind is None:
            from mews.harness.clusters.kind.machine import KindMachine

            self._kind = KindMachine(keep=self._keep, tell=self.tell)
        return self._kind

    def close(self) -> None:
        """End it all."""
        kind, self._kind = self._kind, None
        if kind is not None:
            kind.close()
        servers, self._servers = self._servers, None
        if servers is not None:
            servers.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
