"""A parameter server: holds one slice of the parameters, applies gradients as they come."""

from __future__ import annotations

import asyncio
import logging

from mews.systems.kod2.trainer.network import initial
from mews.systems.kod2.trainer.settings import TrainerSettings, slice_of
from mews.systems.kod2.trainer.wire import TrainerMessage, receive, send

log = logging.getLogger("ps")


class Server:
    """``serve`` on an address until cancelled. Its log tells step, loss and workers every ``settings.log_every``."""

    def __init__(self, settings: TrainerSettings) -> None:
        self._settings = settings
        self._parameters = initial()[slice_of(settings.index, len(settings.servers))].copy()
        self._workers: dict[asyncio.StreamWriter, str] = {}
        self._enough = asyncio.Event()
        self._smooth: float | None = None
        self.step = 0

    async def serve(self, host: str, port: int) -> None:
        """Accept workers until cancelled."""
        server = await asyncio.start_server(self._talk, host, port)
        log.info("serving %d parameters on %s:%d", len(self._parameters), host, port)
        async with server:
            await server.serve_forever()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            name = str((await receive(reader)).fields["worker"])
            self._workers[writer] = name
            log.info("%s joins, %d workers", name, len(self._workers))
            if len(self._workers) >= self._settings.quorum:
                self._enough.set()
            await self._enough.wait()
            await self._answer(writer)
            while True:
                self._apply(await receive(reader))
                await self._answer(writer)
        except (EOFError, OSError, ValueError, KeyError) as error:
            log.info("%s leaves (%s), %d workers", self._workers.get(writer, "somebody"), type(error).__name__,
                     len(self._workers) - 1)  # fmt: skip
        finally:
            self._workers.pop(writer, None)
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter) -> None:
        done = self.step >= self._settings.steps
        await send(writer, {"step": self.step, "done": done}, self._parameters)

    def _apply(self, message: TrainerMessage) -> None:
        if len(message.vector) != len(self._parameters):
            raise ValueError(f"a gradient of {len(message.vector)} numbers, not {len(self._parameters)}")
        self._parameters -= self._settings.rate * message.vector
        self.step += 1
        loss = float(message.fields["loss"])
        self._smooth = loss if self._smooth is None else 0.95 * self._smooth + 0.05 * loss
        if self.step % self._settings.log_every == 0 or self.step == self._settings.steps:
            log.info("step %d loss %.4f workers %d", self.step, self._smooth, len(self._workers))
