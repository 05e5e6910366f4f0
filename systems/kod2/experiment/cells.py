"""The 20 cells of the KOD2 paper, section 5: jobs of four models at five batch sizes.

Assumed, since no value is given: how long a gradient takes, what it weighs, the network, the requests of each job
(seeded, different from job to job), the bounds of its workers, and one pass over the 60,000 images per job.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from msgspec import Struct

from mews.systems.kod2.experiment.simulation import TrainJob
from mews.systems.kod2.model import ClusterState, ElasticJob, NodeRoom, TaskRequest
from mews.systems.kod2.training import TrainingShape

IMAGES = 60_000
BATCHES = (8, 16, 32, 64, 128)
JOBS, EVERY_S = 10, 30.0
_GIB = 2**30


class Network(Struct, frozen=True):
    """A model: ``gflop`` forward and backward per image, ``parameters`` in millions."""

    gflop: float
    parameters: float


MODELS: dict[str, Network] = {
    "CNN-rand": Network(0.15, 1.0),
    "VGG-16": Network(0.94, 15.0),
    "ResNet-50": Network(3.9, 23.5),
    "ResNext-110": Network(5.4, 17.0),
}


class Assumptions(Struct, frozen=True):
    """What the paper does not say. ``core_gflops``: what one core computes; ``link_mb_s``: between nodes, ``bus_mb_s``:
    within one; ``server_mb_s``: how fast a server applies gradients; ``epochs``: passes over the images. Requests are
    drawn per job: worker cores, memory (GiB), workers wanted, of which at least ``least``, at most ``spare`` more."""

    core_gflops: float = 30.0
    link_mb_s: float = 117.0
    bus_mb_s: float = 3000.0
    server_mb_s: float = 4000.0
    epochs: float = 1.0
    worker_cores: tuple[int, ...] = (1, 2, 3, 4)
    worker_gib: tuple[int, ...] = (1, 2, 4)
    server_cores: tuple[int, ...] = (1, 2)
    workers: tuple[int, ...] = (3, 4, 5, 6)
    least: int = 1
    spare: int = 2
    deadline_s: float = 10800.0


CORES_GFLOPS = (15.0, 30.0, 60.0, 120.0, 240.0)
DEADLINES_S = (3600.0, 7200.0, 10800.0)
"""Under which of the assumptions that matter most the experiment is repeated."""


def cluster() -> ClusterState:
    """Three workers of ten cores and 32 GiB (Table 2)."""
    whole = (10_000, 32 * _GIB, 110)
    return ClusterState(tuple(NodeRoom(f"host-{number}", whole, whole) for number in (1, 2, 3)))


def shape_of(model: str, batch: int, cores: int, given: Assumptions) -> TrainingShape:
    """Return how a job of that model trains with workers of so many cores."""
    network = MODELS[model]
    megabytes = 2 * 4 * network.parameters  # gradients there, parameters back, four bytes each
    return TrainingShape(
        steps=given.epochs * IMAGES / batch,
        step_s=batch * network.gflop / (given.core_gflops * cores),
        near_s=megabytes / given.bus_mb_s,
        far_s=megabytes / given.link_mb_s,
        server_rate=1.0 / (0.001 + megabytes / given.server_mb_s),
    )


def jobs_of(model: str, batch: int, seed: int, given: Assumptions) -> list[TrainJob]:
    """Return the ten jobs of a cell, one every 30 s. A seed draws the same requests in every cell."""
    rng = random.Random(f"{seed}/requests")
    return [_job(number, model, batch, rng, given) for number in range(JOBS)]


def _job(number: int, model: str, batch: int, rng: random.Random, given: Assumptions) -> TrainJob:
    cores, memory = rng.choice(given.worker_cores), rng.choice(given.worker_gib)
    wanted, server = rng.choice(given.workers), rng.choice(given.server_cores)
    job = ElasticJob(
        key=f"default/job-{number}",
        arrived_s=number * EVERY_S,
        fixed=(("ps-0", TaskRequest((server * 1000, 2 * _GIB, 1))),),
        worker=TaskRequest((cores * 1000, memory * _GIB, 1)),
        minimum=min(given.least, wanted),
        wanted=wanted,
        maximum=wanted + given.spare,
    )
    return TrainJob(job, shape_of(model, batch, cores, given))


def cells() -> Iterator[tuple[str, int]]:
    """(model, batch), in the order of the paper's figures."""
    for batch in BATCHES:
        for model in MODELS:
            yield model, batch
