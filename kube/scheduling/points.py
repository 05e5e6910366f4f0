"""A profile at work: its plugins sorted by the points they take part in. Decides; waits for nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import takewhile
from typing import Any, Generic, Protocol, cast

from mews.kube.api.resources import NODES, PODS
from mews.kube.scheduling.alike import FoundOfNodes, PodsAlike, SigningPlugin
from mews.kube.scheduling.config import SchedulerProfile
from mews.kube.scheduling.errors import PluginDefinitionError, ProfileError
from mews.kube.scheduling.framework import (
    SUCCESS,
    Bind,
    Code,
    CycleState,
    Filter,
    Handle,
    HoldsCycle,
    Normalize,
    Permit,
    Plugin,
    PostBind,
    PostFilter,
    PreBind,
    PreEnqueue,
    PreFilter,
    PreScore,
    QueueSort,
    Reserve,
    Score,
    Status,
    Unreserve,
    Wake,
    Wakes,
    WhatIf,
)
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.scores import MAX_SCORE
from mews.kube.scheduling.verdict import failed

FilterCall = Callable[[CycleState, PodInfo, NodeInfo], Status]
ANY_CHANGE = (Wake(NODES), Wake(PODS))


class ExtensionPoints:
    """Made once per profile. Raises PluginDefinitionError and ProfileError for plugins that cannot work together."""

    def __init__(self, profile: SchedulerProfile, handle: Handle) -> None:
        self.profile = profile
        plugins = [factory(handle) for factory in profile.plugins]
        self.names = [_name(plugin) for plugin in plugins]
        if len(set(self.names)) < len(plugins):
            raise ProfileError(f"profile {profile.scheduler_name!r}: plugins {self.names}: a name may appear once only")

        def at(point: Any) -> list[Any]:
            return [plugin for plugin in plugins if _provides(plugin, point)]

        self.pre_enqueue: list[PreEnqueue] = at(PreEnqueue)
        self.queue_sort: list[QueueSort] = at(QueueSort)
        self.pre_filter: list[PreFilter] = at(PreFilter)
        self.filter: list[Filter] = at(Filter)
        self.post_filter: list[PostFilter] = at(PostFilter)
        self.pre_score: list[PreScore] = at(PreScore)
        self.score = self._weighted(at(Score))
        self.reserve: list[Reserve] = at(Reserve)
        self.unreserve: list[Unreserve] = at(Unreserve)[::-1]
        self.permit: list[Permit] = at(Permit)
        self.pre_bind: list[PreBind] = at(PreBind)
        self.bind: list[Bind] = at(Bind)
        self.post_bind: list[PostBind] = at(PostBind)
        self.what_if: list[WhatIf] = at(WhatIf)
        self.holds_cycle: list[HoldsCycle] = at(HoldsCycle)
        self.wakes = {p.name: tuple(cast(Wakes, p).wakes_on()) if _provides(p, Wakes) else ANY_CHANGE for p in plugins}
        self._verdicts: PodsAlike[Status] = PodsAlike()
        self._own_scores: PodsAlike[int] = PodsAlike()
        if not self.bind:
            raise ProfileError(f"profile {profile.scheduler_name!r}: no plugin binds; add DefaultBinder")

    def _weighted(self, scorers: list[Score]) -> list[tuple[Score, int, Normalize | None]]:
        """Return the plugins that score, with their weights, and again where they normalise."""
        weights = self.profile.score_weights
        if weights is None:
            weights = {plugin.name: int(getattr(plugin, "weight", 1)) for plugin in scorers}
        unknown = sorted(set(weights) - {plugin.name for plugin in scorers})
        if unknown:
            raise ProfileError(
                f"profile {self.profile.scheduler_name!r}: score_weights {unknown}: no such Score plugin"
            )
        return [
            (plugin, weights[plugin.name], cast(Normalize, plugin) if _provides(plugin, Normalize) else None)
            for plugin in scorers
            if weights.get(plugin.name)
        ]

    def may_queue(self, pod: PodInfo) -> Status:
        """Return the first PreEnqueue refusal, or SUCCESS."""
        for plugin in self.pre_enqueue:
            status = plugin.pre_enqueue(pod)
            if not status.ok:
                return status.by(plugin.name)
        return SUCCESS

    def look_at(self, state: CycleState, pod: PodInfo) -> tuple[Status, list[str]]:
        """Run PreFilter: a refusal, or SUCCESS with the nodes left (None: all) and who narrowed them.

        An unschedulable verdict lets the others look too, since preemption may follow; any other failure ends it.
        """
        refused = SUCCESS
        nodes: frozenset[str] | None = None
        narrowed_by: list[str] = []
        skipped: list[str] = []
        for plugin in self.pre_filter:
            status = plugin.pre_filter(state, pod)
            if status.code is Code.SKIP:
                skipped.append(plugin.name)
            elif status.code is Code.UNSCHEDULABLE:
                refused = status.by(plugin.name)
            elif not status.ok:
                refused = failed(f'running PreFilter plugin "{plugin.name}"', plugin.name, status)
                break
            elif status.nodes is not None:
                nodes = status.nodes if nodes is None else nodes & status.nodes
                narrowed_by.append(plugin.name)
        state.skip_filter = frozenset(skipped)
        return (Status(nodes=nodes) if refused.ok else refused), narrowed_by

    def filters(self, state: CycleState) -> list[tuple[str, FilterCall]]:
        """Return the filters that matter for this pod."""
        skipped = state.skip_filter
        return [(plugin.name, plugin.filter) for plugin in self.filter if plugin.name not in skipped]

    def verdicts(
        self, state: CycleState, pod: PodInfo
    ) -> tuple[FoundOfNodes[Status] | None, list[tuple[str, FilterCall]], list[tuple[str, FilterCall]]]:
        """Return what the first of these filters said of nodes for pods like this one, None where the very first goes
        by more than pod and node; those filters, and the others, which are asked each time."""
        skipped = state.skip_filter
        plugins = [plugin for plugin in self.filter if plugin.name not in skipped]
        signing = list(takewhile(lambda plugin: _provides(plugin, SigningPlugin), plugins))
        known = self._verdicts.of(signing, pod) if signing else None
        calls: list[tuple[str, FilterCall]] = [(plugin.name, plugin.filter) for plugin in plugins]
        return known, calls[: len(signing)], calls[len(signing) :]

    def suppose(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo, *, there: bool) -> None:
        """Put a pod on a copy of a node or take it off, and tell the plugins whose state counts pods."""
        if there:
            node.add(other)
            for plugin in self.what_if:
                plugin.add_pod(state, pod, other, node)
        else:
            node.remove(other.uid)
            for plugin in self.what_if:
                plugin.remove_pod(state, pod, other, node)

    def scores(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> dict[str, int]:
        """PreScore, Score, Normalize, weights: node -> total."""
        skipped = set()
        for plugin in self.pre_score:
            status = plugin.pre_score(state, pod, nodes)
            if status.code is Code.SKIP:
                skipped.add(plugin.name)
        state.skip_score = frozenset(skipped)
        scorers = [scorer for scorer in self.score if scorer[0].name not in skipped]
        alone = [(scorer, weight) for scorer, weight, normalizer in scorers if _is_alone(scorer, normalizer)]
        total = self._alone(alone, state, pod, nodes)
        for scorer, weight, normalizer in scorers:
            if _is_alone(scorer, normalizer):
                continue
            score = scorer.score
            part = {node.name: score(state, pod, node) for node in nodes}
            if normalizer is not None:
                part = dict(normalizer.normalize(state, pod, part))
            _check_range(scorer, part)
            for name, value in part.items():
                total[name] += weight * value
        return total

    def _alone(
        self, scorers: Sequence[tuple[Score, int]], state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]
    ) -> dict[str, int]:
        """Return the weighted sum of those whose score of a node follows from pod and node: asked again where that
        changed."""
        known = self._own_scores.of([scorer for scorer, _ in scorers], pod)
        assert known is not None
        total: dict[str, int] = {}
        for node, value in zip(nodes, known.each(nodes), strict=True):
            if value is None:
                value = 0
                for scorer, weight in scorers:
                    score = scorer.score(state, pod, node)
                    _check_range(scorer, {node.name: score})
                    value += weight * score
                known.put(node, value)
            total[node.name] = value
        return total


def _is_alone(scorer: Score, normalizer: Normalize | None) -> bool:
    return normalizer is None and _provides(scorer, SigningPlugin)


def _check_range(scorer: Score, scores: Mapping[str, int]) -> None:
    if min(scores.values()) < 0 or max(scores.values()) > MAX_SCORE:
        raise ValueError(f"plugin {scorer.name!r} scores {scores}: must be 0 to {MAX_SCORE} when normalised")


def _provides(plugin: Plugin, point: type) -> bool:
    """Return what ``isinstance`` says of a runtime-checkable Protocol, which collects the members anew for every
    plugin: with twenty plugins and fourteen points that was a tenth of a short run."""
    return all(getattr(plugin, member, None) is not None for member in _members(point))


@cache
def _members(point: type) -> tuple[str, ...]:
    own = [base for base in point.__mro__ if base not in (object, Protocol, Generic)]
    names = (name for base in own for name in (*vars(base), *vars(base).get("__annotations__", ())))
    return tuple(dict.fromkeys(name for name in names if not name.startswith("_")))


def _name(plugin: Plugin) -> str:
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not name:
        raise PluginDefinitionError(f"plugin {plugin!r}: needs a name")
    return name
