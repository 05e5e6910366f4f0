"""Services over sockets: one address for each, on loopback, in front of the components that serve it."""

from __future__ import annotations

import asyncio
import random
import shutil
import socket
from functools import partial
from typing import Any

from mews.certificates import Certificates, certificates_in
from mews.harness.manifests.kube_scheduler import extender_place
from mews.harness.ports.fence import Fence
from mews.harness.ports.services import POST_TIMEOUT_S, LocalServicePort, LocalServices
from mews.kube.serving import ServedCertificate, serve_on
from mews.kube.system.services import HttpHandler, ServiceReply
from mews.listening.http import HttpListener
from mews.listening.ports import LOOPBACK, held_port


class ServedServices:
    """A ServicesPort. A service answers from its first component on; before that, its connections are refused. Under
    TLS where the run has ``certificates``."""

    def __init__(self, rng: random.Random, certificates: Certificates | None = None) -> None:
        self._local = LocalServices(rng)
        self._certificates = certificates
        self._shown: dict[str, ServedCertificate] = {}
        self._open: dict[str, asyncio.Event] = {}
        self._sockets: dict[str, socket.socket] = {}
        self._listeners: dict[str, HttpListener] = {}

    def port(self, service: str, fence: Fence) -> ServedServicePort:
        """Return where one incarnation of a component serves."""
        self._url(service)  # its address is known from now on, whenever it listens
        return ServedServicePort(self, self._local.port(service, fence), service)

    def ready(self) -> dict[str, str]:
        """Return where each service listens once it is asked for, as ready.json says it."""
        return {service: self._url(service) for service in sorted(self._sockets)}

    def _url(self, service: str) -> str:
        """Return it on a free port of loopback, the same for as long as the cluster lives."""
        if service not in self._sockets:
            # Bound now, so that nobody else gets the port; it listens once there is somebody to answer.
            self._sockets[service] = held_port()
        scheme = "http" if self._certificates is None else "https"
        return f"{scheme}://{LOOPBACK}:{self._sockets[service].getsockname()[1]}"

    def place(self, service: str, path: str) -> dict[str, Any]:
        """Return them as an extender's entry says it; under TLS the certificates must be made by now."""
        made = self.files(service)
        authority = None if made is None else made.authority.read_text(encoding="ascii")
        return extender_place(f"{self._url(service)}{path}", authority, LOOPBACK)

    def client_config(self, service: str, path: str) -> dict[str, Any]:
        """Return them as a webhook's entry says it. Raises ValueError without TLS."""
        return {"url": f"{self._url(service)}{path}", "caBundle": self._certificate(service).bundle()}

    def files(self, service: str) -> Certificates | None:
        """Return the service's own, at first the run's: they may be replaced while it serves. None without TLS."""
        if self._certificates is None:
            return None
        folder = self._certificates.authority.parent / f"service-{service}"
        found = certificates_in(folder)
        if not folder.exists():
            folder.mkdir(mode=0o700)
            for field in ("authority", "certificate", "key"):
                shutil.copy(getattr(self._certificates, field), getattr(found, field))
        return found

    def _certificate(self, service: str) -> ServedCertificate:
        files = self.files(service)
        if files is None:
            raise ValueError(f"webhooks of {service}: need TLS: run without --insecure")
        if service not in self._shown:
            self._shown[service] = ServedCertificate(files.certificate, files.key, files.authority)
        return self._shown[service]

    async def superseded(self, service: str) -> None:
        """Return once its files are others than those shown; never without TLS."""
        if self._certificates is None:
            await asyncio.get_running_loop().create_future()
        else:
            await self._certificate(service).superseded()

    def renew(self, service: str) -> None:
        """Show what they have. Raises OSError."""
        if self._certificates is not None:
            self._certificate(service).renew()

    async def post(self, url: str, body: bytes) -> tuple[int, bytes]:
        """Return them for our scheduler, in process."""
        for service in self._sockets:
            if url.startswith(f"{self._url(service)}/"):
                async with asyncio.timeout(POST_TIMEOUT_S):
                    reply = await self._local.call(service, "POST", url.removeprefix(self._url(service)), body)
                return reply.status, reply.body
        raise ConnectionError(f"{url}: no such service")

    async def ask_all(self, service: str, path: str) -> list[ServiceReply]:
        """GET a path of each that serves that name. Raises ConnectionError."""
        return await self._local.ask_all(service, path)

    async def listen(self, service: str) -> None:
        """Open the service to others; return once it is open."""
        if service in self._open:
            await self._open[service].wait()
            return
        opened = self._open[service] = asyncio.Event()
        self._url(service)
        tls = None if self._certificates is None else self._certificate(service).context
        self._listeners[service] = await serve_on(self._sockets[service], partial(self._local.call, service), tls=tls)
        opened.set()

    async def close(self) -> None:
        """Stop listening."""
        for listener in self._listeners.values():
            await listener.close()
        for held in self._sockets.values():
            held.close()


class ServedServicePort:
    """A ServicePort of one incarnation."""

    def __init__(self, services: ServedServices, local: LocalServicePort, service: str) -> None:
        self._services = services
        self._local = local
        self._service = service

    async def serve(self, handler: HttpHandler) -> None:
        """Answer with it until cancelled."""
        await self._services.listen(self._service)
        await self._local.serve(handler)

    async def reached(self) -> None:
        """Once it is open to others."""
        await self._services.listen(self._service)

    async def superseded(self) -> None:
        """Return once its files are others than those shown."""
        await self._services.superseded(self._service)

    def renew(self) -> None:
        """Show what they have. Raises OSError."""
        self._services.renew(self._service)

    def client_config(self, namespace: str, path: str) -> dict[str, Any]:
        """Return them by its address. Raises ValueError without TLS."""
        return self._services.client_config(self._service, path)
