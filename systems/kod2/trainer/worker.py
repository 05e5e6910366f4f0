"""A worker: pulls the parameters, computes a gradient on a batch of its own, pushes it, for ever until told to stop."""

from __future__ import annotations

import asyncio
import logging

import numpy

from mews.kube.clock import rest
from mews.systems.kod2.trainer.names import resolve, split
from mews.systems.kod2.trainer.network import batch, gradient
from mews.systems.kod2.trainer.settings import TrainerSettings, slice_of
from mews.systems.kod2.trainer.wire import TrainerMessage, Vector, receive, send

log = logging.getLogger("worker")

_RETRY_S = 0.2

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Worker:
    """``run`` until the servers say that all steps are done. A server that goes away is waited for."""

    def __init__(self, settings: TrainerSettings) -> None:
        self._settings = settings
        self._rng = numpy.random.default_rng(1000 + settings.index)
        self._links: list[Connection] = []
        self.steps = 0

    async def run(self) -> None:
        """Train; connection losses are retried for ever."""
        while True:
            try:
                if await self._train():
                    log.info("training finished, %d steps of mine", self.steps)
                    return
            except (EOFError, OSError, ValueError) as error:
                log.info("a server is gone (%s), connecting again", type(error).__name__)
            finally:
                self._hang_up()
            await rest(_RETRY_S)

    async def _train(self) -> bool:
        for address in self._settings.servers:
            name, port = split(address)
            link = await asyncio.open_connection(await resolve(name), port)
            self._links.append(link)
            await send(link[1], {"worker": f"worker-{self._settings.index}"})
        answers = [await receive(reader) for reader, _ in self._links]
        while not answers[0].fields["done"]:
            parameters = numpy.concatenate([answer.vector for answer in answers])
            answers = await self._step(parameters)
        return True

    async def _step(self, parameters: Vector) -> list[TrainerMessage]:
        pictures, kinds = batch(self._settings.batch, self._rng)
        loss, slope = gradient(parameters, pictures, kinds)
        await asyncio.sleep(self._settings.pause_s)
        for index, (_, writer) in enumerate(self._links):
            await send(writer, {"loss": loss}, slope[slice_of(index, len(self._links))])
        answers = [await receive(reader) for reader, _ in self._links]
        self.steps += 1
        if self.steps % self._settings.log_every == 0:
            log.info("step %d of mine, %d of all, loss %.4f", self.steps, answers[0].fields["step"], loss)
        return answers

    def _hang_up(self) -> None:
        for _, writer in self._links:
            writer.close()
        self._links.clear()
