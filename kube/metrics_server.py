"""Serves /metrics of a component for Prometheus. Not for virtual runs: imports prometheus_client.

In plain HTTP to everybody who reaches the port, unless a certificate and a token are named; never to web pages, nor by
names that are not the server's (``mews.callers``).
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import choose_encoder

from mews.callers import callers
from mews.kube.metrics_options import MetricsOptions
from mews.listening.wsgi import ThreadedHttp


class MetricsServer:
    """Serves a registry on threads of its own until stopped.

    Raises OSError where it cannot listen there, or the certificate cannot be used.
    """

    def __init__(self, registry: CollectorRegistry, options: MetricsOptions) -> None:
        context = None
        if options.certificate is not None:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(options.certificate, options.key)
        self._app = make_wsgi_app(registry)
        let_in = callers(options.host, options.allow_hosts)
        self._server = ThreadedHttp(
            self._answer, options.host, options.port, callers=let_in, tls=context, token=options.token
        )

    @property
    def port(self) -> int:
        """The port, also where it was chosen by the system."""
        return self._server.port

    def stop(self) -> None:
        """End it."""
        self._server.stop()

    def _answer(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if not _is_readable(environ.get("HTTP_ACCEPT", "")):
            environ = {**environ, "HTTP_ACCEPT": ""}
        answer: Iterable[bytes] = self._app(environ, start)
        return answer


def _is_readable(accept: str) -> bool:
    """Return whether prometheus_client finds its way through it; what is no version makes it raise."""
    try:
        choose_encoder(accept)
    except (TypeError, ValueError):
        return False
    return True
