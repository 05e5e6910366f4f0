"""What several scenarios of one run share, since it is dear to start: a control plane, a kind cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from mews.harness.errors import BadInput, Lacks

if TYPE_CHECKING:
    from mews.harness.clusters.control_plane.servers import Servers
    from mews.harness.clusters.kind.cluster import KindCluster
    from mews.harness.clusters.kubeconfig.cluster import KubeconfigCluster


class ClusterSession:
    """Started with the first scenario that needs it, handed on empty to each later one, ended by ``close``.

    Used by one scenario at a time; outlives their event loops. ``keep``: a kind cluster outlives even this; ``tell``
    hears what takes its time.
    """

    def __init__(self, *, keep: bool = False, tell: Callable[[str], None] = lambda _: None) -> None:
        self.tell = tell
        self._keep = keep
        self._servers: Servers | None = None
        self._kind: KindCluster | None = None
        self._site: KubeconfigCluster | None = None

    def servers(self) -> Servers:
        """The real etcd and kube-apiserver."""
        if self._servers is None:
            from mews.harness.clusters.control_plane.servers import Servers

            self._servers = Servers()
        return self._servers

    def kind(self) -> KindCluster:
        """The kind cluster, created when its place is asked for."""
        if self._kind is None:
            from mews.harness.clusters.kind.cluster import KindCluster

            self._kind = KindCluster(keep=self._keep, tell=self.tell)
        return self._kind

    def site(self, kubeconfig: Path | None, context: str | None) -> KubeconfigCluster:
        """Somebody's cluster, always the same one."""
        if self._site is None:
            from mews.harness.clusters.kubeconfig.cluster import KubeconfigCluster

            self._site = KubeconfigCluster(kubeconfig, context, keep=self._keep, tell=self.tell)
        return self._site

    def close(self) -> None:
        """End it all.

        Raises Lacks for what cannot be ended, after the rest was.
        """
        with contextlib.ExitStack() as ending:
            servers, self._servers = self._servers, None
            if servers is not None:
                ending.callback(servers.stop)
            kind, self._kind = self._kind, None
            if kind is not None:
                ending.callback(kind.close)
            site, self._site = self._site, None
            if site is not None:
                ending.callback(site.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        except Lacks as left:
            if isinstance(error, Lacks | BadInput):  # why it ended is not forgotten over what is left
                raise type(error)(f"{error}\n{left}") from error
            raise
