"""A program of the user's that serves in the place of a component of ours: requests for the service are passed on to
it."""

from __future__ import annotations

import asyncio
import contextlib

from mews.kube.component import Runnable
from mews.kube.system.services import ServicePort, ServiceReply

_LOOPBACK, _LOOK_S = "127.0.0.1", 0.05


class ForwardedService:
    """Component: a program that listens on a port of loopback, and its service, which answers once it listens.

    The address that others know stays the service's own, whichever of several programs behind it is killed.
    """

    def __init__(self, program: Runnable, service: ServicePort, port: int) -> None:
        self._program = program
        self._service = service
        self._port = port

    async def run(self) -> None:
        """Run it. Raises what the program raises."""
        async with asyncio.TaskGroup() as group:
            program = group.create_task(self._program.run())
            serving = group.create_task(self._serve())
            program.add_done_callback(lambda done: serving.cancel())

    async def _serve(self) -> None:
        from aiohttp import ClientError, ClientSession

        await self._listening()
        async with ClientSession(f"http://{_LOOPBACK}:{self._port}") as session:

            async def forward(method: str, path: str, body: bytes) -> ServiceReply:
                try:
                    headers = {"Content-Type": "application/json"}
                    async with session.request(method, path, data=body, headers=headers) as answer:
                        return ServiceReply(answer.status, await answer.read(), answer.content_type)
                except (ClientError, OSError) as failed:
                    raise ConnectionError(f"port {self._port}: {failed}") from failed

            await self._service.serve(forward)

    async def _listening(self) -> None:
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(_LOOPBACK, self._port)
                writer.close()
                return
            await asyncio.sleep(_LOOK_S)
