"""A parameter server: holds one slice of the parameters, applies gradients as they come.

When it is started anew it goes on where it was: from its checkpoint, or from what its workers pulled last.
"""

from __future__ import annotations

import asyncio
import logging

from mews.listening.streams import serve_streams
from mews.systems.kod2.trainer.checkpoint import CheckpointFile
from mews.systems.kod2.trainer.network import initial
from mews.systems.kod2.trainer.settings import TrainerSettings, slice_of
from mews.systems.kod2.trainer.wire import TrainerMessage, Vector, receive, send

log = logging.getLogger("ps")


class Server:
    """``serve`` on an address until cancelled. Its log tells step, loss and workers every ``settings.log_every``."""

    def __init__(self, settings: TrainerSettings) -> None:
        self._settings = settings
        self._parameters = initial()[slice_of(settings.index, len(settings.servers))].copy()
        self._checkpoint = CheckpointFile(settings.checkpoints, f"ps-{settings.index}-of-{len(settings.servers)}")
        self._workers: dict[asyncio.StreamWriter, str] = {}
        self._enough = asyncio.Event()
        self._smooth: float | None = None
        self.step = 0
        kept = self._checkpoint.load(len(self._parameters))
        if kept is not None:
            self._go_on(kept.step, kept.parameters, "its checkpoint")

    async def serve(self, host: str, port: int) -> None:
        """Accept workers and evaluators until cancelled."""
        server = await serve_streams(self._talk, host, port)
        log.info("serving %d parameters on %s:%d", len(self._parameters), host, port)
        async with server:
            await server.serve_forever()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            hello = await receive(reader)
            if "evaluator" in hello.fields:
                await self._show(reader, writer)
            else:
                await self._train(hello, reader, writer)
        except (EOFError, OSError, ValueError, KeyError, TypeError) as error:
            log.info("%s leaves (%s), %d workers", self._workers.get(writer, "somebody"), type(error).__name__,
                     len(self._workers) - (writer in self._workers))  # fmt: skip
        finally:
            self._workers.pop(writer, None)
            writer.close()

    async def _show(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            await self._answer(writer)
            await receive(reader)

    async def _train(self, hello: TrainerMessage, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        name = str(hello.fields["worker"])
        self._workers[writer] = name
        log.info("%s joins, %d workers", name, len(self._workers))
        pulled = int(hello.fields.get("step") or 0)
        if pulled > self.step and len(hello.vector) == len(self._parameters):
            self._go_on(pulled, hello.vector, f"what {name} pulled last")
        if sum(task.startswith("worker-") for task in self._workers.values()) >= self._settings.quorum:
            self._enough.set()
        await self._enough.wait()
        await self._answer(writer)
        while True:
            self._apply(await receive(reader))
            await self._answer(writer)

    def _go_on(self, step: int, parameters: Vector, source: str) -> None:
        self._parameters = parameters.copy()
        self.step = step
        log.info("goes on at step %d, from %s", step, source)

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
            self._checkpoint.save(self.step, self._parameters)
