"""Datagrams of a multicast group on a thread: each may be answered, none can stop the listener."""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import threading
from collections.abc import Callable, Iterable

LOG = logging.getLogger("mews.listening")
LONGEST = 2048
"""Bytes that are read of one; what is longer is cut off."""

Answer = Callable[[bytes], Iterable[bytes]]


class GroupListener:
    """Hears a group on a port that others may listen on, too, on all interfaces that can; answers go to the sender.

    Raises OSError where the port cannot be had, or no interface takes part in multicast.
    """

    def __init__(self, group: str, port: int, answer: Answer) -> None:
        self._answer = answer
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(("", port))
            self._join(group)
        except OSError:
            self._socket.close()
            raise
        self._stopped = False
        self._thread = threading.Thread(target=self._serve, name=f"datagrams-{port}", daemon=True)

    def _join(self, group: str) -> None:
        """On the loopback interface and on the one of the default route: either is enough."""
        failed: OSError | None = None
        joined = 0
        for interface in ("127.0.0.1", "0.0.0.0"):
            try:
                membership = struct.pack("4s4s", socket.inet_aton(group), socket.inet_aton(interface))
                self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
                joined += 1
            except OSError as error:
                failed = error
        if not joined and failed is not None:
            raise failed

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self._stopped = True
        with contextlib.suppress(OSError):  # "not connected": whoever reads is woken all the same
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:
            self._thread.join(timeout=5)
        self._socket.close()

    def _serve(self) -> None:
        while not self._stopped:
            try:
                asked, sender = self._socket.recvfrom(LONGEST)
                if self._stopped or not asked:
                    continue
                for reply in self._answer(asked):
                    self._socket.sendto(reply, sender)
            except OSError as error:
                LOG.debug("datagram: %s", error)
            except Exception as error:  # noqa: BLE001 - whatever a stranger sends, the next one is heard
                LOG.warning("datagram: cannot be answered: %r", error)
