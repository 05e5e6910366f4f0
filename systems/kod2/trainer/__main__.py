"""One task of a training job, server or worker as TF_CONFIG says."""

from __future__ import annotations

import asyncio
import logging
import os
import sys

from mews.systems.kod2.errors import Kod2ConfigError
from mews.systems.kod2.trainer.names import own_address, split
from mews.systems.kod2.trainer.server import Server
from mews.systems.kod2.trainer.settings import TrainerSettings, read_settings
from mews.systems.kod2.trainer.worker import Worker


async def play(settings: TrainerSettings) -> None:
    """Be that task: a worker until the training is done, a server for ever."""
    if settings.role == "worker":
        await Worker(settings).run()
        return
    name, port = split(settings.address)
    await Server(settings).serve(await own_address(name), port)


def main() -> int:
    """0 when a worker's training is done, 2 for an environment that cannot be read."""
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s", stream=sys.stdout)
    try:
        settings = read_settings(os.environ)
    except Kod2ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    asyncio.run(play(settings))
    return 0


if __name__ == "__main__":
    sys.exit(main())
