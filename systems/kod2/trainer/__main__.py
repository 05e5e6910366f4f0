"""One task of a training job: server, worker, chief or evaluator, as TF_CONFIG says."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

from mews.systems.kod2.errors import Kod2ConfigError
from mews.systems.kod2.trainer.evaluator import Evaluator
from mews.systems.kod2.trainer.names import own_address, split
from mews.systems.kod2.trainer.server import Server
from mews.systems.kod2.trainer.settings import TrainerSettings, read_settings
from mews.systems.kod2.trainer.worker import LoneWorker, Worker


async def play(settings: TrainerSettings) -> None:
    """Be that task: a worker, a chief or an evaluator until the training is done, a server for ever."""
    if settings.role != "ps":
        await _client(settings).run()
        return
    name, port = split(settings.address)
    await Server(settings).serve(await own_address(name), port)


def _client(settings: TrainerSettings) -> Worker | LoneWorker | Evaluator:
    if settings.role == "evaluator":
        return Evaluator(settings)
    return Worker(settings) if settings.servers else LoneWorker(settings)


def main() -> int:
    """0 when a worker's training is done, 2 for an environment that cannot be read."""
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
    try:
        settings = read_settings(os.environ)
    except Kod2ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    # The first process of a container ignores the signal otherwise, and is killed after its pod's grace period.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    asyncio.run(play(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
