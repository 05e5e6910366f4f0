"""The word of upstream's dynamicresources plugin where no pod has resource claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mews.kube.scheduling import messages
from mews.kube.scheduling.framework import CycleState, Handle, PostFilterResult, Status, Wake, unschedulable
from mews.kube.scheduling.podinfo import PodInfo


class DynamicResources:
    """PostFilter: pods here have no claims, so none could be given back to make another fit."""

    name = "DynamicResources"

    def __init__(self, handle: Handle) -> None:
        pass

    def post_filter(self, state: CycleState, pod: PodInfo, refusals: Mapping[str, Status]) -> PostFilterResult:
        """Always unschedulable."""
        return PostFilterResult(unschedulable(messages.NO_CLAIMS))

    def wakes_on(self) -> Sequence[Wake]:
        """It refuses nothing."""
        return ()
