"""The laws of KOD2's operator, each a model that replays a run's lines (contract kod2.md sections 1 and 2)."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.system.invariant import Invariant, RunState
from mews.systems.kod2.config import OperatorConfig, Scheduling
from mews.systems.kod2.job_books import JobBooks
from mews.systems.kod2.laws.announced import Announced
from mews.systems.kod2.laws.exits import ExitsAreReported
from mews.systems.kod2.laws.followed import FollowsUp
from mews.systems.kod2.laws.grown import GrowsIntoRoom
from mews.systems.kod2.laws.placed import PlacementsAgree
from mews.systems.kod2.laws.reasons import ReasonsAreTrue, RoomIsGivenBack
from mews.systems.kod2.laws.reported import ReportsWhatItDoes
from mews.systems.kod2.laws.scaling import (
    LITERAL_THRASH,
    LITERAL_WORKER_0,
    Cooldown,
    HeavierFirst,
    LeaderStays,
    OverIsOver,
    PlacedFirst,
    RetriesBounded,
    WithinBounds,
)
from mews.systems.kod2.laws.services import ServicesGoWithTasks
from mews.systems.kod2.laws.started import PlacedIsKept, PlacedIsStarted, RefusalsAreReported
from mews.systems.kod2.laws.statuses import StatusesAgree
from mews.systems.kod2.model import Mode

__all__ = ["LITERAL_THRASH", "LITERAL_WORKER_0", "laws"]


def laws(config: OperatorConfig) -> Sequence[Invariant[RunState]]:
    """Return those of this configuration; Kubeflow's operator, the baseline, scales nothing."""
    jobs = JobBooks()
    if config.scheduling != Scheduling.KOD2:
        return (OverIsOver(jobs, config.clean_pod_policy), StatusesAgree(jobs), ExitsAreReported(jobs))
    literal = config.mode == Mode.LITERAL
    return (
        WithinBounds(jobs),
        LeaderStays(jobs, LITERAL_WORKER_0 if literal else ""),
        HeavierFirst(jobs),
        OverIsOver(jobs, config.clean_pod_policy),
        Cooldown(jobs, config.cooldown_s, LITERAL_THRASH if literal else ""),
        PlacedFirst(jobs),
        RetriesBounded(jobs, gives_back=not literal),
        PlacementsAgree(jobs),
        ReportsWhatItDoes(jobs),
        StatusesAgree(jobs),
        Announced(),
        ExitsAreReported(jobs),
        ServicesGoWithTasks(jobs),
        FollowsUp(jobs),
        PlacedIsStarted(jobs),
        RefusalsAreReported(jobs),
        PlacedIsKept(jobs),
        GrowsIntoRoom(jobs, config),
        ReasonsAreTrue(jobs),
        RoomIsGivenBack(jobs),
    )
