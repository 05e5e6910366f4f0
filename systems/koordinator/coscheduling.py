"""Koordinator's Coscheduling: pods of a gang that is named by its own annotations, or by a PodGroup, are let through
when enough of them wait (v1.6.0, pkg/scheduler/plugins/coscheduling).

Each pod is placed by itself, on any node. The gangs of the design, which are on one node, are DeviceShare's. The status
of a PodGroup is not written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from mews.kube.api.objects import Object, is_terminal, name_of, namespace_of, node_name_of, uid_of
from mews.kube.api.resources import PODS
from mews.kube.component import record
from mews.kube.scheduling.framework import (
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Handle,
    PostFilterResult,
    Status,
    Wake,
    unresolvable,
    unschedulable,
    wait,
)
from mews.kube.scheduling.podinfo import PodInfo
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.gang_terms import (
    ONCE_SATISFIED,
    ONLY_WAITING,
    STRICT,
    GangTerms,
    gang_id,
    needs_pod_group,
    terms_of_group,
    terms_of_pod,
)
from mews.systems.koordinator.names import POD_GROUPS

NAME = "Coscheduling"
_AT_ONCE_S = 0.001
"""A wait of 0 seconds ends at once."""


class _GangGroup(Struct, eq=False):
    """Gangs that go together, often one alone. After one of a strict gang had no room nobody of it is tried (``valid``)
    until all were in this ``cycle``: meanwhile others may have the room. ``totals`` by gang, ``tried`` in which cycle
    by uid; ``satisfied``: it was let through once."""

    cycle: int = 1
    valid: bool = True
    satisfied: bool = False
    totals: dict[str, int] = field(default_factory=dict)
    tried: dict[str, int] = field(default_factory=dict)

    def renew(self) -> None:
        """Begin another cycle where all have been tried in this one."""
        if sum(cycle == self.cycle for cycle in self.tried.values()) == sum(self.totals.values()):
            self.cycle += 1
            self.valid = True


class _Gang(Struct, eq=False):
    """``children`` by uid, ``waiting`` at Permit, ``bound``."""

    terms: GangTerms | None = None
    group: _GangGroup = field(default_factory=_GangGroup)
    children: dict[str, Object] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    bound: set[str] = field(default_factory=set)

    @property
    def goes_on(self) -> bool:
        """Whether its pods are held no more."""
        return self.group.satisfied and self.terms is not None and self.terms.match_policy == ONCE_SATISFIED

    @property
    def enough(self) -> bool:
        """Whether as many wait as are to be let through together."""
        if self.terms is None:
            return False
        bound = 0 if self.terms.match_policy in (ONLY_WAITING, ONCE_SATISFIED) else len(self.bound)
        return self.goes_on or len(self.waiting) + bound >= self.terms.least


class _Attempt(Struct, frozen=True):
    """What of PreFilter counts where no node fits: the gang is spared, or its cycle."""

    skip_reject: bool = False
    skip_invalid: bool = False


class Coscheduling:
    """One per profile."""

    name = NAME

    def __init__(self, handle: Handle, *, config: KoordinatorConfig) -> None:
        self._handle = handle
        self._config = config
        self._gangs: dict[str, _Gang] = {}
        self._pod_groups: dict[str, GangTerms] = {}
        self._groups: dict[tuple[str, ...], _GangGroup] = {}
        handle.informer(POD_GROUPS).on_change(self._group_changed)
        handle.informer(PODS).on_change(self._pod_changed)

    def wakes_on(self) -> Sequence[Wake]:
        """A pod came, was bound or went; groups wake their pods by name."""
        return (Wake(PODS, Action.ADD | Action.DELETE),)

    # The cycle

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Refuse a pod whose gang is not known yet, or has too few pods."""
        key = gang_id(pod.pod)
        if not key:
            return SKIP
        gang = self._gangs.get(key)
        if gang is None or gang.terms is None:
            return unresolvable(f"gang has not init, gangName: {key}, podName: {pod.key}")
        if gang.goes_on:
            return SUCCESS
        state.data[NAME] = _Attempt(skip_invalid=len(gang.children) < gang.terms.least)
        if len(gang.children) < gang.terms.least:
            return unresolvable(f"gang child pod not collect enough, gangName: {key}, podName: {pod.key}")
        return self._in_cycle(state, pod, gang, key)

    def _in_cycle(self, state: CycleState, pod: PodInfo, gang: _Gang, key: str) -> Status:
        """Refuse one of a strict gang that was tried in this cycle, or while the cycle has come to nothing."""
        assert gang.terms is not None, "it was asked before"
        group = gang.group
        group.renew()
        tried, group.tried[pod.uid] = group.tried.get(pod.uid, 0), group.cycle
        if gang.terms.mode != STRICT or (pod.pod.get("status") or {}).get("nominatedNodeName"):
            return SUCCESS
        if not group.valid:
            state.data[NAME] = _Attempt(skip_reject=True)
            return unresolvable(f"gang scheduleCycle not valid, gangName: {key}, podName: {pod.key}")
        if tried >= group.cycle:
            cycles = f"podCycle: {tried}, gangCycle: {group.cycle}"
            return unresolvable(f"pod's schedule cycle too large, gangName: {key}, podName: {pod.key}, {cycles}")
        return SUCCESS

    def post_filter(self, state: CycleState, pod: PodInfo, refusals: Mapping[str, Status]) -> PostFilterResult:
        """No node fits one of a strict gang: those that wait give their room back."""
        key = gang_id(pod.pod)
        gang = self._gangs.get(key)
        if gang is None or gang.terms is None or gang.goes_on or gang.terms.mode != STRICT:
            return PostFilterResult(unschedulable())
        attempt: _Attempt = state.data.get(NAME) or _Attempt()
        if attempt.skip_reject:
            return PostFilterResult(unschedulable())
        message = f'Gang "{key}" gets rejected due to member Pod "{pod.name}" is unschedulable'
        self._reject(gang, message, skip_invalid=attempt.skip_invalid)
        return PostFilterResult(unschedulable(f'Gang "{key}" gets rejected due to pod is unschedulable'))

    # Beside the cycle

    async def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Hold the pod until every gang of its group has as many here as it must."""
        gang = self._gangs.get(gang_id(pod.pod))
        if gang is None or gang.terms is None:
            return SUCCESS
        gang.waiting.add(pod.uid)
        group = [self._gangs.get(key) for key in gang.terms.group]
        if not all(each is not None and each.enough for each in group):
            wait_s = self._config.gang_wait_s if gang.terms.wait_s is None else gang.terms.wait_s
            return wait(max(wait_s, _AT_ONCE_S))
        record(self._handle.context.log, "gang-permitted", gang=gang.terms.key, pods=len(gang.waiting))
        for each in group:
            assert each is not None, "it has enough"
            each.group.satisfied = True
            self._allow(each, besides=pod.uid)
        return SUCCESS

    def _allow(self, gang: _Gang, *, besides: str) -> None:
        for uid in sorted(gang.waiting - {besides}):
            waiting = self._handle.waiting_pod(uid)
            if waiting is not None:
                waiting.allow(NAME)

    async def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """One of a strict gang is not bound: the others do not wait for it."""
        gang = self._gangs.get(gang_id(pod.pod))
        if gang is None or gang.terms is None:
            return
        gang.waiting.discard(pod.uid)
        if not gang.goes_on and gang.terms.mode == STRICT:
            self._reject(gang, f'Gang "{gang.terms.key}" gets rejected due to Pod "{pod.name}" in Unreserve')

    async def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """It waits no more."""
        gang = self._gangs.get(gang_id(pod.pod))
        if gang is not None:
            gang.waiting.discard(pod.uid)
            gang.bound.add(pod.uid)

    def _reject(self, gang: _Gang, message: str, *, skip_invalid: bool = False) -> None:
        """All of its group give their room back, and, unless it is too few as yet, this cycle has come to nothing."""
        gang.group.valid = gang.group.valid and skip_invalid
        for key in gang.terms.group if gang.terms is not None else ():
            other = self._gangs.get(key)
            for uid in sorted(other.waiting) if other is not None else ():
                waiting = self._handle.waiting_pod(uid)
                if waiting is not None:
                    waiting.reject(NAME, message)

    # Changes

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self._remove(old)
        if new is None or (new["spec"].get("schedulerName") or "") != self._handle.scheduler_name:
            return
        key = gang_id(new)
        if not key:
            return
        gang = self._gangs.setdefault(key, _Gang())
        if gang.terms is None:  # as upstream: the first pod that says it right says it for all
            self._begin(gang, self._pod_groups.get(key) if needs_pod_group(new) else terms_of_pod(new))
        if node_name_of(new) and not is_terminal(new):
            gang.bound.add(uid_of(new))
            gang.group.satisfied = True
        is_new = uid_of(new) not in gang.children
        gang.children[uid_of(new)] = new
        if is_new:
            self._activate(gang)

    def _begin(self, gang: _Gang, terms: GangTerms | None) -> None:
        gang.terms = terms
        if terms is None:
            return
        gang.group = self._groups.setdefault(tuple(sorted(terms.group)), _GangGroup())
        gang.group.totals[terms.key] = terms.total

    def _remove(self, pod: Object) -> None:
        key, uid = gang_id(pod), uid_of(pod)
        gang = self._gangs.get(key)
        if gang is None:
            return
        gang.children.pop(uid, None)
        gang.waiting.discard(uid)
        gang.bound.discard(uid)
        gang.group.tried.pop(uid, None)
        if not gang.children and not needs_pod_group(pod):
            self._forget(key)

    def _forget(self, key: str) -> None:
        gang = self._gangs.pop(key, None)
        if gang is not None and gang.terms is not None:
            gang.group.totals.pop(key, None)
            if not gang.group.totals:
                self._groups.pop(tuple(sorted(gang.terms.group)), None)

    def _group_changed(self, old: Object | None, new: Object | None) -> None:
        group = new or old or {}
        key = f"{namespace_of(group)}/{name_of(group)}"
        if new is None:
            self._pod_groups.pop(key, None)
            self._forget(key)
            return
        self._pod_groups[key] = terms_of_group(new)
        gang = self._gangs.setdefault(key, _Gang())
        self._begin(gang, self._pod_groups[key])
        self._activate(gang)

    def _activate(self, gang: _Gang) -> None:
        self._handle.activate([uid for uid, pod in gang.children.items() if not node_name_of(pod)])
