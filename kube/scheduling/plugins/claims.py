"""The word of upstream's dynamicresources plugin where no pod has resource claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mews.kube.scheduling import messages
from mews.kube.scheduling.framework import (
    SKIP,
    CycleState,
    Handle,
    PostFilterResult,
    Status,
    Wake,
    error,
    unschedulable,
)
from mews.kube.scheduling.podinfo import PodInfo


class DynamicResources:
    """PostFilter: pods here have no claims, so none could be given back to make another fit."""

    name = "DynamicResources"

    def __init__(self, handle: Handle) -> None:
        pass

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Notes that it was asked."""
        state.data[self.name] = True
        return SKIP

    def post_filter(self, state: CycleState, pod: PodInfo, refusals: Mapping[str, Status]) -> PostFilterResult:
        """Unschedulable; upstream's error "not found" where an earlier plugin's PreFilter refused the pod outright."""
        if self.name not in state.data:
            return PostFilterResult(error(messages.NO_STATE))
        return PostFilterResult(unschedulable(messages.NO_CLAIMS))

    def wakes_on(self) -> Sequence[Wake]:
        """It refuses nothing."""
        return ()
