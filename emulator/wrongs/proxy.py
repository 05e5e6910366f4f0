"""A proxy that stands in front of a chassis and is wrong on purpose."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from mews.callers import callers
from mews.emulator.dialects.strangers import gate
from mews.emulator.tls import made_for_a_while
from mews.emulator.wrongs.front import WrongServer
from mews.emulator.wrongs.registry import played
from mews.emulator.wrongs.upstream import Upstream
from mews.emulator.wrongs.wrong import Wrong


class WrongProxy:
    """``url`` is where clients find it: with TLS where the chassis has it, by a certificate in the file ``ca``.

    ``context`` is how the chassis' own certificate is judged. Raises OSError for a port that cannot be had.
    """

    def __init__(
        self,
        upstream: str,
        wrongs: Sequence[Wrong],
        *,
        listen: tuple[str, int] = ("127.0.0.1", 0),
        context: ssl.SSLContext | None = None,
        seed: int | str = 0,
        patience_s: float = 60.0,
        allow_hosts: Sequence[str] = (),
        wait: Callable[[float], object] | None = None,
    ) -> None:
        secure = urlsplit(upstream).scheme == "https"
        behind = Upstream(
            upstream.rstrip("/"), (context or ssl.create_default_context()) if secure else None, patience_s
        )
        ask = played(wrongs, behind.ask, seed=seed, wait=wait)
        identity = made_for_a_while() if secure else None
        self.ca: Path | None = None if identity is None else identity.certificate
        host, port = listen
        self._server = WrongServer(ask, host, port, tls=identity, admit=gate(callers(host, allow_hosts)))
        shown = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if secure else 'http'}://{shown}:{self._server.port}"

    def start(self) -> None:
        """Serve, on threads of its own."""
        self._server.start()

    def stop(self) -> None:
        """Close the port."""
        self._server.stop()
