"""The addresses of a cluster's pods: on loopback, no two clusters of a machine have the same ones."""

from __future__ import annotations

import socket

from mews.harness.errors import RequirementError
from mews.kube.emulated.kubelet.podnet.addresses import PodSubnet

_FIRST, _LAST = 77, 253
_PORT = 65533
"""Of the socket that is the lock; its address has no pod."""


class PodRange:
    """Holds 127.N.0.0/16 and 127.N+1.0.0/16 (a pod's own address and its 127.0.0.1), from 127.77 on.

    A UDP socket that nobody reads is the lock: like loopback, it belongs to a network namespace, and the kernel frees
    it even if the process is killed. Raises RequirementError if every range is taken.
    """

    def __init__(self) -> None:
        self._lock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for second in range(_FIRST, _LAST + 1, 2):
            try:
                self._lock.bind((f"127.{second}.255.254", _PORT))
            except OSError:
                continue
            self.prefix = f"127.{second}"
            return
        self._lock.close()
        raise RequirementError(
            f"no loopback addresses for pods are left: 127.{_FIRST} to 127.{_LAST + 1} are in use (mews down)"
        )

    def release(self) -> None:
        """Let another cluster have the range."""
        self._lock.close()


class PodAddresses:
    """Where the pods of a cluster listen, and by which addresses they are known if not by these. A range is taken when
    the first address is asked for: both methods raise RequirementError if none is left."""

    def __init__(self) -> None:
        self._taken: PodRange | None = None
        self._shown = ""

    def of_node(self, number: int) -> str:
        """Return how the addresses of a node's pods begin, as the cluster knows them."""
        return f"{self._shown or self._range()}.{number}"

    def know_by(self, prefix: str) -> PodSubnet:
        """From now on pods are known by addresses that begin so; returns where they listen."""
        self._shown = prefix
        return PodSubnet(prefix, self._range())

    def _range(self) -> str:
        if self._taken is None:
            self._taken = PodRange()
        return self._taken.prefix

    def release(self) -> None:
        """Let another cluster have the range."""
        if self._taken is not None:
            self._taken.release()
            self._taken = None
