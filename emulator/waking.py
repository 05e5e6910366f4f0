"""Ends servers that look only now and then whether they are to end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
from collections.abc import Callable

_LOOK_S = 0.02


def wake_while(stop: Callable[[], None], family: socket.AddressFamily, address: str | tuple[str, int]) -> None:
    """Call ``stop``, and knock on the server's ``address`` until it has returned: a loop that waits for connections
    would notice only with the next one, or after half a second."""
    stopping = threading.Thread(target=stop, name="stopping")
    stopping.start()
    stopping.join(_LOOK_S)
    while stopping.is_alive():
        # Once it has closed its port it is refused, and has only its requests to wait for.
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as knock:
            knock.settimeout(_LOOK_S)
            knock.connect(address)
        stopping.join(_LOOK_S)


def watch_lifeline() -> None:
    """End this process as by TERM when its standard input ends."""
    while os.read(0, 4096):  # not sys.stdin: who waits there holds its lock, and the interpreter cannot end
        pass
    os.kill(os.getpid(), signal.SIGTERM)
