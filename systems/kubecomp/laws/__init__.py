"""The laws of KubeComp's protocol, each a model that replays a run's lines (contract kubecomp.md section 2)."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.system.invariant import Invariant, RunState
from mews.systems.kubecomp.config import KubeCompConfig
from mews.systems.kubecomp.laws.announcing import AnnouncedAgain
from mews.systems.kubecomp.laws.answering import AnswersEachRequest
from mews.systems.kubecomp.laws.board import Board
from mews.systems.kubecomp.laws.choice import EnoughFirst
from mews.systems.kubecomp.laws.consent import AnsweredOnce, ConsentBeforeDetach, NeedsAreKept
from mews.systems.kubecomp.laws.counted import PoolIsCounted
from mews.systems.kubecomp.laws.listed import ListsWhatIsThere
from mews.systems.kubecomp.laws.permit import PermitEnds
from mews.systems.kubecomp.laws.promptly import ActsAtOnce, ClearsWhatItWrote, WaitsItsPatience
from mews.systems.kubecomp.laws.removal import OffItsHost
from mews.systems.kubecomp.laws.reported import WaitIsReported
from mews.systems.kubecomp.laws.shortage import OnlyForShortage
from mews.systems.kubecomp.laws.spared import AwaitedAreSpared, OffItsListAtOnce, RescansForCause
from mews.systems.kubecomp.laws.tried import WaitIsServed
from mews.systems.kubecomp.laws.undone import GoesBack
from mews.systems.kubecomp.laws.written import WrittenFirst

LAWS = (
    ConsentBeforeDetach,
    OffItsHost,
    NeedsAreKept,
    AnsweredOnce,
    AnnouncedAgain,
    PermitEnds,
    OnlyForShortage,
    WrittenFirst,
    AnswersEachRequest,
    ListsWhatIsThere,
    EnoughFirst,
    WaitIsServed,
    WaitsItsPatience,
    ActsAtOnce,
    ClearsWhatItWrote,
    WaitIsReported,
    PoolIsCounted,
    AwaitedAreSpared,
    OffItsListAtOnce,
    RescansForCause,
    GoesBack,
)


def laws(config: KubeCompConfig) -> Sequence[Invariant[RunState]]:
    """Return all of them for one run, over one board."""
    board = Board()
    return [law(config, board) for law in LAWS]
