"""What a task is told by its environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mews.systems.kod2.errors import Kod2ConfigError
from mews.systems.kod2.podspec import QUORUM
from mews.systems.kod2.trainer.network import SIZE


@dataclass(frozen=True, slots=True)
class TrainerSettings:
    """``servers`` and ``workers`` are the addresses of TF_CONFIG. TRAIN_STEPS gradients in all of TRAIN_BATCH pictures
    at learning rate TRAIN_RATE; TRAIN_PAUSE_S more per step, as if the network were larger; a line every
    TRAIN_LOG_EVERY steps; KOD2_QUORUM workers before the first step."""

    role: str
    index: int
    servers: tuple[str, ...]
    workers: tuple[str, ...]
    steps: int = 2000
    batch: int = 32
    rate: float = 0.01
    pause_s: float = 0.01
    log_every: int = 50
    quorum: int = 1

    @property
    def address(self) -> str:
        """The task's own ``name:port``."""
        return (self.servers if self.role == "ps" else self.workers)[self.index]


_FIELDS: dict[str, tuple[str, type]] = {
    "TRAIN_STEPS": ("steps", int),
    "TRAIN_BATCH": ("batch", int),
    "TRAIN_RATE": ("rate", float),
    "TRAIN_PAUSE_S": ("pause_s", float),
    "TRAIN_LOG_EVERY": ("log_every", int),
    QUORUM: ("quorum", int),
}


def read_settings(env: Mapping[str, str]) -> TrainerSettings:
    """The settings in an environment.

    Raises ConfigError in one line.
    """
    try:
        config = json.loads(env.get("TF_CONFIG", ""))
        task, cluster = config["task"], config["cluster"]
        role, index = str(task["type"]), int(task["index"])
        servers, workers = tuple(cluster.get("ps", ())), tuple(cluster.get("worker", ()))
    except (ValueError, KeyError, TypeError) as error:
        raise Kod2ConfigError(f"TF_CONFIG: {env.get('TF_CONFIG')!r}: must name cluster and task: {error!r}") from error
    if role not in ("ps", "worker") or not servers:
        raise Kod2ConfigError(f"TF_CONFIG: task {role!r} with {len(servers)} servers: this trainer plays ps and worker")
    given: dict[str, Any] = {}
    for name, (field, kind) in _FIELDS.items():
        if name in env:
            try:
                given[field] = kind(env[name])
            except ValueError as error:
                raise Kod2ConfigError(f"{name}: {env[name]!r}: must be a number") from error
    return TrainerSettings(role, index, servers, workers, **given)


def slice_of(index: int, servers: int) -> slice:
    """The parameters that one of so many servers holds."""
    share, more = divmod(SIZE, servers)
    start = index * share + min(index, more)
    return slice(start, start + share + (index < more))
