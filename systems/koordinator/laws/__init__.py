"""The laws of Koordinator's protocol, each a model that replays a run's lines (contract koordinator.md)."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.system.invariant import Invariant, RunState
from mews.systems.koordinator.allocation_books import AllocationBooks
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.laws.chosen import AsMuchAsAsked, FirstInTheTree
from mews.systems.koordinator.laws.listed import DevicesAsTheyAre, ListedAtOnce
from mews.systems.koordinator.laws.protocol import (
    IGNORE_POLICY,
    AloneMeansAlone,
    AnnotatedFirst,
    BrokenIsShown,
    EnvironmentsAgree,
    GangsWhole,
    GivenInHealth,
    GivenIsBound,
    JointHolds,
    SumsFit,
)

__all__ = ["IGNORE_POLICY", "laws"]


def laws(config: KoordinatorConfig) -> Sequence[Invariant[RunState]]:
    """Return those of this configuration."""
    books = AllocationBooks()
    return (
        EnvironmentsAgree(books, config.nodes, config.hook_failure_policy),
        GivenInHealth(books),
        SumsFit(books),
        GangsWhole(books),
        JointHolds(books),
        GivenIsBound(books),
        BrokenIsShown(books),
        AloneMeansAlone(books),
        AnnotatedFirst(books, config.scheduler_name),
        DevicesAsTheyAre(config.nodes),
        ListedAtOnce(config.nodes, config.koordlet.poll_s),
        AsMuchAsAsked(books, config.scheduler_name),
        FirstInTheTree(books, config),
    )
