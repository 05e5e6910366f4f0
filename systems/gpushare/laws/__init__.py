"""The laws of GPU Share's protocol, each a model that replays a run's lines (contract gpushare.md)."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.system.invariant import Invariant, RunState
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.invariants import MemoryAsked
from mews.systems.gpushare.laws.assigned import AssignedOnce, AssignedSoon
from mews.systems.gpushare.laws.noted import DecisionsStand, LooksAfterItsRest, PromisesStand
from mews.systems.gpushare.laws.protocol import (
    CalledWhenRoom,
    EndedGiveBack,
    NothingOfWithheld,
    PromiseFirst,
    PromisesFit,
    TightestFirst,
    WithheldOnce,
)
from mews.systems.gpushare.laws.shown import GpusShown, ListsAgree, OverUseOnce
from mews.systems.gpushare.promise_books import PromiseBooks

__all__ = ["FOREIGN_PLUGIN", "PLUGIN", "SEED_MATCH", "laws"]

SEED_MATCH = (
    "match: seed finds the pod of an Allocate by its amount and time alone, as the published design does, so that a "
    "container may be told the GPU that was promised to another pod"
)
"""Contract gpushare.md section 3; the upstream plugin's allocate.go."""
FOREIGN_PLUGIN = "the published device plugin calls a pod assigned inside Allocate, before the kubelet has its answer"
"""The upstream plugin's allocate.go."""

PLUGIN = "gpushare-device-plugin"


def laws(config: GpuShareConfig) -> Sequence[Invariant[RunState]]:
    """Return those of this configuration."""
    known = SEED_MATCH if config.match == "seed" else ""
    books = PromiseBooks()
    return (
        MemoryAsked(known),
        PromisesFit(books, known),
        PromiseFirst(books),
        AssignedOnce(books, config.memory_resource, known or (FOREIGN_PLUGIN if PLUGIN in config.foreign else "")),
        NothingOfWithheld(books),
        EndedGiveBack(books),
        TightestFirst(books),
        WithheldOnce(books, config.on_shared),
        CalledWhenRoom(books, config.memory_resource),
        *(() if known else (PromisesStand(books),)),
        *(() if PLUGIN in config.foreign else _of_the_plugin(books, config)),
    )


def _of_the_plugin(books: PromiseBooks, config: GpuShareConfig) -> Sequence[Invariant[RunState]]:
    """Return those that our own device plugin must keep."""
    return (
        AssignedSoon(books, config.memory_resource, config.settle_s),
        GpusShown(config.memory_resource, config.poll_s),
        DecisionsStand(books, config.memory_resource),
        LooksAfterItsRest(books, config.settle_s),
        ListsAgree(config.memory_resource, config.poll_s),
        OverUseOnce(),
    )
