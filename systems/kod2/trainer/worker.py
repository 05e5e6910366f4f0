"""A worker: pulls the parameters, computes a gradient on a batch of its own, pushes it, for ever until told to stop."""

from __future__ import annotations

import asyncio
import logging

import numpy

from mews.kube.clock import rest
from mews.systems.kod2.trainer.checkpoint import CheckpointFile
from mews.systems.kod2.trainer.links import ServerLinks
from mews.systems.kod2.trainer.network import SIZE, batch, gradient, initial
from mews.systems.kod2.trainer.settings import TrainerSettings
from mews.systems.kod2.trainer.wire import TrainerMessage, Vector

log = logging.getLogger("worker")

_RETRY_S = 0.2


class Worker:
    """``run`` until the servers say that all steps are done. A server that goes away is waited for. Chief and master
    are workers, too."""

    def __init__(self, settings: TrainerSettings) -> None:
        self._settings = settings
        self._rng = numpy.random.default_rng((2000 if settings.role != "worker" else 1000) + settings.index)
        self._links = ServerLinks(settings.servers)
        self.steps = 0

    async def run(self) -> None:
        """Train; connection losses are retried for ever."""
        while True:
            try:
                await self._train()
            except (EOFError, OSError, ValueError) as error:
                log.info("a server is gone (%s), connecting again", type(error).__name__)
            else:
                log.info("training finished, %d steps of mine", self.steps)
                return
            finally:
                self._links.hang_up()
            await rest(_RETRY_S)

    async def _train(self) -> None:
        await self._links.connect({"worker": self._settings.task})
        answer = await self._links.pull()
        while not answer.fields["done"]:
            answer = await self._step(answer.vector)

    async def _step(self, parameters: Vector) -> TrainerMessage:
        pictures, kinds = batch(self._settings.batch, self._rng)
        loss, slope = gradient(parameters, pictures, kinds)
        await asyncio.sleep(self._settings.pause_s)
        await self._links.push({"loss": loss}, slope)
        answer = await self._links.pull()
        self.steps += 1
        if self.steps % self._settings.log_every == 0:
            log.info("step %d of mine, %d of all, loss %.4f", self.steps, answer.fields["step"], loss)
        return answer


class LoneWorker:
    """A task of a job without servers: trains by itself, all steps of it."""

    def __init__(self, settings: TrainerSettings) -> None:
        self._settings = settings
        self._rng = numpy.random.default_rng(1000 + settings.index)
        self._checkpoint = CheckpointFile(settings.checkpoints, settings.task)
        kept = self._checkpoint.load(SIZE)
        self._parameters = initial() if kept is None else kept.parameters
        self.step = 0 if kept is None else kept.step

    async def run(self) -> None:
        """Train until all steps are done."""
        if self.step:
            log.info("goes on at step %d, from its checkpoint", self.step)
        while self.step < self._settings.steps:
            pictures, kinds = batch(self._settings.batch, self._rng)
            loss, slope = gradient(self._parameters, pictures, kinds)
            await asyncio.sleep(self._settings.pause_s)
            self._parameters -= self._settings.rate * slope
            self.step += 1
            if self.step % self._settings.log_every == 0 or self.step == self._settings.steps:
                log.info("step %d loss %.4f by itself", self.step, loss)
                self._checkpoint.save(self.step, self._parameters)
        log.info("training finished, %d steps in all", self.step)
