"""The loopback addresses of a cluster's pods: no two clusters of a machine have the same ones."""

from __future__ import annotations

import socket

from mews.harness.errors import RequirementError

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
