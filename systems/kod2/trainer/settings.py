"""What a task is told by its environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.systems.kod2.errors import Kod2ConfigError
from mews.systems.kod2.podspec import QUORUM
from mews.systems.kod2.trainer.network import SIZE
from mews.systems.kod2.training import LEARNERS

ROLES = ("ps", *LEARNERS, "evaluator")


class TrainerSettings(Struct, frozen=True):
    """``servers`` and ``workers`` are the addresses of TF_CONFIG; without servers a task trains by itself.
    TRAIN_STEPS gradients in all of TRAIN_BATCH pictures at learning rate TRAIN_RATE; TRAIN_PAUSE_S more per step, as if
    the network were larger; a line every TRAIN_LOG_EVERY steps; KOD2_QUORUM workers before the first step; an evaluator
    looks every TRAIN_EVAL_S seconds; TRAIN_CHECKPOINTS is the folder where what was learnt is kept, if any."""

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
    eval_s: float = 1.0
    checkpoints: Path | None = None

    @property
    def task(self) -> str:
        """``<role>-<index>``."""
        return f"{self.role}-{self.index}"

    @property
    def address(self) -> str:
        """The ``name:port`` of a server, or of a worker."""
        return (self.servers if self.role == "ps" else self.workers)[self.index]


_FIELDS: dict[str, tuple[str, type]] = {
    "TRAIN_STEPS": ("steps", int),
    "TRAIN_BATCH": ("batch", int),
    "TRAIN_RATE": ("rate", float),
    "TRAIN_PAUSE_S": ("pause_s", float),
    "TRAIN_LOG_EVERY": ("log_every", int),
    "TRAIN_EVAL_S": ("eval_s", float),
    QUORUM: ("quorum", int),
}


def read_settings(env: Mapping[str, str]) -> TrainerSettings:
    """Return the settings in an environment. A job of one task has no TF_CONFIG.

    Raises ConfigError in one line.
    """
    role, index, servers, workers = _place(env["TF_CONFIG"]) if "TF_CONFIG" in env else ("worker", 0, (), ())
    given: dict[str, Any] = {}
    for name, (field, kind) in _FIELDS.items():
        if name in env:
            try:
                given[field] = kind(env[name])
            except ValueError as error:
                raise Kod2ConfigError(f"{name}: {env[name]!r}: must be a number") from error
    if env.get("TRAIN_CHECKPOINTS"):
        given["checkpoints"] = Path(env["TRAIN_CHECKPOINTS"])
    return TrainerSettings(role, index, servers, workers, **given)


def _place(text: str) -> tuple[str, int, tuple[str, ...], tuple[str, ...]]:
    try:
        config = json.loads(text)
        task, cluster = config["task"], config["cluster"]
        role, index = str(task["type"]), int(task["index"])
        servers, listed = tuple(cluster.get("ps") or ()), cluster.get("worker") or ()
        # With enableDynamicWorker each worker is told of itself alone: its index -> its address.
        workers = tuple(listed.values()) if isinstance(listed, Mapping) else tuple(listed)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Kod2ConfigError(f"TF_CONFIG: {text!r}: must name cluster and task: {error!r}") from error
    if role not in ROLES or (role == "evaluator" and not servers):
        raise Kod2ConfigError(
            f"TF_CONFIG: task {role!r} with {len(servers)} servers: must be one of {', '.join(ROLES)}; an evaluator "
            "reads what servers hold"
        )
    return role, index, servers, workers


def slice_of(index: int, servers: int) -> slice:
    """Return the parameters that one of so many servers holds."""
    share, more = divmod(SIZE, servers)
    start = index * share + min(index, more)
    return slice(start, start + share + (index < more))
