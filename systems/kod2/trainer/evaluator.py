"""An evaluator: reads what the servers hold from time to time, and says how good it is on pictures of its own."""

from __future__ import annotations

import logging

import numpy

from mews.kube.clock import rest
from mews.systems.kod2.trainer.links import ServerLinks
from mews.systems.kod2.trainer.network import batch, gradient
from mews.systems.kod2.trainer.settings import TrainerSettings
from mews.systems.kod2.trainer.wire import TrainerMessage

log = logging.getLogger("evaluator")

_RETRY_S = 0.2
_PICTURES = 512


class Evaluator:
    """``run`` until the training is done. ``losses`` are those it found: (step, loss)."""

    def __init__(self, settings: TrainerSettings) -> None:
        self._settings = settings
        self._pictures, self._kinds = batch(_PICTURES, numpy.random.default_rng(3000 + settings.index))
        self._links = ServerLinks(settings.servers)
        self.losses: list[tuple[int, float]] = []

    async def run(self) -> None:
        """Evaluate; a server that goes away is waited for."""
        while True:
            try:
                await self._evaluate()
            except (EOFError, OSError, ValueError) as error:
                log.info("a server is gone (%s), connecting again", type(error).__name__)
            else:
                log.info("evaluation finished")
                return
            finally:
                self._links.hang_up()
            await rest(_RETRY_S)

    async def _evaluate(self) -> None:
        await self._links.connect({"evaluator": self._settings.task})
        answer = await self._links.pull()
        self._look(answer)
        while not answer.fields["done"]:
            await rest(self._settings.eval_s)
            await self._links.push({})
            answer = await self._links.pull()
            self._look(answer)

    def _look(self, answer: TrainerMessage) -> None:
        loss, _ = gradient(answer.vector, self._pictures, self._kinds)
        self.losses.append((int(answer.fields["step"]), loss))
        log.info("evaluated step %d: loss %.4f", answer.fields["step"], loss)
