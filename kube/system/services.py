"""How components answer HTTP requests of others in the cluster: by the name of a service, behind which there may be
several of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct


class ServiceReply(Struct, frozen=True):
    """An answer: its status, body and media type."""

    status: int
    body: bytes
    content_type: str = "application/json"


HttpHandler = Callable[[str, str, bytes], Awaitable[ServiceReply]]
"""``handler(method, path, body)``."""


class ServicePort(Protocol):
    """What a component of a service serves on."""

    async def serve(self, handler: HttpHandler) -> None:
        """Answer requests with it until cancelled."""
        ...

    async def reached(self) -> None:
        """Return once others reach what is served."""
        ...

    async def superseded(self) -> None:
        """Return once there is another certificate than the one that it shows; never where it shows none."""
        ...

    def renew(self) -> None:
        """Show that one from now on.

        Raises OSError where it cannot be used, or not yet.
        """
        ...

    def client_config(self, namespace: str, path: str) -> dict[str, Any]:
        """Return where an API server finds that path of the service, as a webhook's ``clientConfig`` says it;
        ``namespace`` is the system's.

        Raises ValueError, one line, where it is not served under TLS.
        """
        ...


class ExtenderService(Struct, frozen=True):
    """A scheduler extender that a system brings: ``service`` is the name of it (``Component.service``), ``config`` its
    entry in a KubeSchedulerConfiguration but for ``urlPrefix``, which is where the service is, with ``path`` behind."""

    service: str
    path: str
    config: Mapping[str, object]
