"""A service port for who asks a component's handler without a network."""

from __future__ import annotations

import asyncio

from mews.kube.system.services import HttpHandler


class KeptHandler:
    """A service port that keeps the handler."""

    def __init__(self) -> None:
        self.handler: asyncio.Future[HttpHandler] = asyncio.get_running_loop().create_future()

    async def serve(self, handler: HttpHandler) -> None:
        """Until cancelled."""
        self.handler.set_result(handler)
        await asyncio.get_running_loop().create_future()
