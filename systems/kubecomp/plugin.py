"""FalconResources: the scheduler plugin that places pods on pools of devices (seed paper sections IV-C, V-A).

A node that is short of devices may be chosen all the same: Permit then holds the pod, without holding up the cycle,
until Reconfig-Mgr has moved devices there and the node shows them.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.api.errors import ApiError, UnavailableError
from mews.kube.api.objects import Object, name_of, uid_of
from mews.kube.api.resources import CONFIGMAPS, NODES, PODS
from mews.kube.clock import rest
from mews.kube.component import record
from mews.kube.pulse import Pulse
from mews.kube.scheduling.config import SchedulerProfile, TieBreak
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.framework import (
    SKIP,
    SUCCESS,
    Action,
    CycleState,
    Handle,
    PluginFactory,
    Status,
    Wake,
    unresolvable,
    unschedulable,
    wait,
)
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.points import ANY_CHANGE
from mews.systems.kubecomp import policy, published
from mews.systems.kubecomp.annotations import PodAnnotations, are_on
from mews.systems.kubecomp.config import KubeCompConfig, Topology
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.metrics import KubeCompMemoryMetrics, KubeCompMetrics, Phase, loop_time
from mews.systems.kubecomp.pending_queue import PendingQueue
from mews.systems.kubecomp.policy import Policy
from mews.systems.kubecomp.pool_view import PoolView
from mews.systems.kubecomp.records import POOL_PREFIX, pool_state

NAME = "FalconResources"

_FIRST_RETRY_S = 10.0
_LAST_RETRY_S = 300.0
_SETTLE_S = 0.1
_CLEARING_S = 5.0


class _Held(Struct):
    """A pod between Reserve and the end of its attempt. Times in the metrics' seconds."""

    pod: PodInfo
    node: str
    req: int
    frozen: int | None = None
    """It holds up the cycle, and this is what the node's other pods asked for when that began."""
    noted: bool = False
    allowed: bool = False


class _Asked(Struct):
    """A pod that devices are moved for, until it is bound, in however many attempts."""

    node: str
    req: int
    attached_s: float | None = None
    """When they were all seen on the node's ports."""


class _Attempt(Struct, frozen=True):
    """What PreFilter found: devices asked, free devices by pool, when it began."""

    req: int
    free: Mapping[str, int]
    begun_s: float


NodeScore = Callable[[int, int], int]
"""Devices that the pod asks for, devices that the node has available for it (may be below 0) -> a score, the higher the
better; stretched to 0-100 over the nodes."""
NODE_SCORE = "the devices requested and those available"
"""What it is called with, in words (``load_callable``)."""


class FalconResources:
    """One per profile. ``now`` is the clock of the phase metrics; a benchmark may bring its own. ``score`` takes the
    place of equation 1."""

    name = NAME
    weight = 1

    def __init__(
        self,
        handle: Handle,
        *,
        config: KubeCompConfig,
        metrics: KubeCompMetrics | None = None,
        now: Callable[[], float] = loop_time,
        score: NodeScore | None = None,
    ) -> None:
        self._handle = handle
        self._config = config
        self._resource = config.resource
        chosen = Policy(config.policy)
        self._score: NodeScore = score or (lambda req, available: policy.score(req, available, chosen))
        self._strict_fcfs = config.strict_fcfs
        self._topology = Topology(config)
        self._counts_advertised = config.has(KubeCompFault.ADVERTISED_IS_ALL)
        self._pools = PoolView(self._topology, config.resource, advertised=self._counts_advertised)
        self._line = PendingQueue(handle.scheduler_name)
        self._notes = PodAnnotations(handle.context, handle.scheduler_name, marks=config.marks_all)
        self._metrics: KubeCompMetrics = metrics if metrics is not None else KubeCompMemoryMetrics()
        self._now = now
        self._held: dict[str, _Held] = {}
        self._asked: dict[str, _Asked] = {}
        self._retries: dict[str, int] = {}
        self._thawed = Pulse()
        self._namespace = config.namespace
        handle.informer(CONFIGMAPS, config.namespace).on_change(self._config_map_changed)
        handle.informer(NODES).on_change(lambda old, new: self._recheck())
        handle.informer(PODS).on_change(self._pod_changed)

    def wakes_on(self) -> Sequence[Wake]:
        """Return a pod that holds devices went; a pool or a node grew; with strict order, the pod ahead was bound."""
        if self._config.has(KubeCompFault.SHORT_PERMIT):
            return ANY_CHANGE  # it registers no events, so that all of them wake its pods
        bound = (Wake(PODS, Action.ADD),) if self._strict_fcfs else ()
        return (
            Wake(PODS, Action.DELETE, self._frees_devices),
            Wake(NODES, Action.ADD),
            Wake(CONFIGMAPS, Action.ADD | Action.UPDATE, _pool_grew, namespace=self._namespace),
            *bound,
        )

    def _frees_devices(self, pod: PodInfo, old: Object | None, new: Object | None) -> bool:
        return self._strict_fcfs or (old is not None and policy.required(old, self._resource) > 0)

    @property
    def cycle_held(self) -> bool:
        """Whether a pod holds up the cycle; a corrected Permit never does."""
        return any(held.frozen is not None for held in self._held.values())

    async def cycle_free(self) -> None:
        """Return once no pod does."""
        while self.cycle_held:
            await self._thawed.wait()

    def _requested(self, pod: PodInfo) -> int:
        if self._config.has(KubeCompFault.FIRST_CONTAINER):
            return published.required(pod.pod, self._resource)
        return pod.request(self._resource)

    # The cycle

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Refuse the pod when no pool has enough free devices; skip pods that ask for none. The published one does not
        skip them: while a device is in flight a pool may have -1, which is too few for them, too."""
        begun_s = self._now()
        if are_on(pod.pod) and pod.uid not in self._held and self._clears:
            # Left by an earlier attempt or incarnation: Reconfig-Mgr must not act on it.
            self._handle.spawn(self._notes.clear(pod, unless=lambda: pod.uid in self._held))
        if self._strict_fcfs and (ahead := self._line.ahead_of(pod.uid)) is not None:
            return unresolvable(f"Pod {pod.name} waits for {ahead}, which came earlier.")
        req = self._requested(pod)
        if not req and not self._counts_advertised:
            return SKIP
        free = {pool: self._pools.free(pool, self._handle.nodes, besides=pod.uid) for pool in self._topology.pools}
        if req:
            state.data[NAME] = _Attempt(req, free, begun_s)
        message = (published if self._counts_advertised else policy).prefilter_message(pod.name, req, free)
        if message is not None:
            return unschedulable(message)
        return SUCCESS if req else SKIP

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """What if another pod were on the node: its pool has that many fewer."""
        self._suppose(state, node, -other.request(self._resource))

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """What if a pod were not on the node: its pool has that many more."""
        self._suppose(state, node, other.request(self._resource))

    def _suppose(self, state: CycleState, node: NodeInfo, more: int) -> None:
        attempt, pool = state.data.get(NAME), self._topology.pool_of(node.name)
        if attempt is not None and pool is not None:
            free = {**attempt.free, pool: attempt.free[pool] + more}
            state.data[NAME] = replace(attempt, free=free)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Drop nodes outside all pools, and those whose pool has too few free devices."""
        attempt: _Attempt = state.data[NAME]
        pool = self._topology.pool_of(node.name)
        if pool is None:
            return unresolvable(f"node(s) had no pool of {self._resource}")
        if holder := self._topology.lent_to(node.name):
            return unresolvable(f"node(s) had their devices handed out by {holder}")
        if not policy.pool_fits(attempt.req, attempt.free[pool]):
            return unschedulable(f"Insufficient {self._resource} in the pool")
        return SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Equation 1; 0 everywhere for a pod that asks for none."""
        attempt: _Attempt | None = state.data.get(NAME)
        if attempt is None:
            return 0
        return self._score(attempt.req, self._pools.available(node, besides=pod.uid))

    def normalize(self, state: CycleState, pod: PodInfo, scores: Mapping[str, int]) -> Mapping[str, int]:
        """Stretched to 0-100."""
        return policy.normalise(scores)

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Remember who was assumed where."""
        attempt: _Attempt | None = state.data.get(NAME)
        if attempt is not None:
            held = self._held[pod.uid] = _Held(pod, node, attempt.req)
            if self._config.has(KubeCompFault.BLOCKING_PERMIT) and self._available(held) < held.req:
                info = self._handle.nodes.get(node)
                held.frozen = self._pools.requested(info, besides=pod.uid) if info is not None else 0
        return SUCCESS

    # Beside the cycle

    async def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Let the pod through when the node has enough; else annotate it, tell of it and hold it. Node selection has
        ended; in virtual time it costs what is said of the published one."""
        attempt: _Attempt | None = state.data.get(NAME)
        if attempt is not None:
            if self._config.mode == "public":
                chance = random.Random(f"selection/{pod.uid}")
                await asyncio.sleep(published.selection_s(chance, len(self._config.nodes)))
            self._metrics.observe(Phase.NODE_SELECTION, self._now() - attempt.begun_s, pod.key)
        held = self._held.get(pod.uid)
        if held is None:
            return SUCCESS
        shortfall = policy.demand(held.req, self._available(held))
        if not shortfall:
            return SUCCESS
        held.noted = True
        if pod.uid not in self._asked or self._asked[pod.uid].node != node:
            self._asked[pod.uid] = _Asked(node, held.req)
        record(self._handle.context.log, "reconfiguration-wanted", pod=pod.key, node=node, demand=shortfall)
        await self._notes.write(pod, node, shortfall)
        self._recheck()
        if held.frozen is not None:
            self._handle.spawn(self._look(held))
        if self._config.has(KubeCompFault.SHORT_PERMIT):
            return wait(published.permit_bound_s(shortfall, self._config.permit_bound))
        return wait(policy.permit_bound_s(shortfall))

    async def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """The attempt is over: nothing is wanted any more; a pod that waited in vain is tried again after a while."""
        held = self._held.pop(pod.uid, None)
        if held is None:
            return
        self._thawed.beat()
        if not self._config.has(KubeCompFault.SHORT_PERMIT):
            self._handle.spawn(self._retry_later(pod.uid))
        # The room it held is given back when this returns: others that wait may have enough then.
        self._handle.spawn(self._recheck_soon())
        if held.noted and self._clears:
            await self._notes.clear(pod)

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Return the last look: devices may have been withdrawn since the node was chosen. Then the pod is marked,
        before anybody sees it bound."""
        held = self._held.get(pod.uid)
        if held is not None and self._available(held) < held.req:
            return unschedulable(f"Insufficient {self._resource}")
        if self._config.marks_all and not (held and held.noted):
            await self._notes.mark(pod, uses=held is not None)
        return SUCCESS

    async def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Bound: nothing is wanted any more."""
        held = self._held.pop(pod.uid, None)
        self._thawed.beat()
        self._retries.pop(pod.uid, None)
        asked = self._asked.pop(pod.uid, None)
        if held is None:
            return
        if asked is not None and asked.attached_s is not None and asked.node == node:
            self._metrics.observe(Phase.DETECTION_BINDING, self._now() - asked.attached_s)
        if (held.noted or are_on(pod.pod)) and self._clears:
            try:
                await self._notes.clear(pod)
            except (ApiError, UnavailableError) as error:
                # Nobody acts on the annotations of a bound pod, but people read them.
                record(self._handle.context.log, "annotations-left", pod=pod.key, error=str(error))
                self._handle.spawn(self._clear_later(pod))

    async def _clear_later(self, pod: PodInfo) -> None:
        """As often as it takes: nobody else does."""
        while True:
            await rest(_CLEARING_S)
            with suppress(ApiError, UnavailableError):
                await self._notes.clear(pod)
                return

    # Changes

    @property
    def _clears(self) -> bool:
        return not self._config.has(KubeCompFault.STALE_DEMAND)

    def _available(self, held: _Held) -> int:
        info = self._handle.nodes.get(held.node)
        if info is None:
            return 0
        return self._pools.available(info, besides=held.pod.uid, requested=held.frozen)

    def _config_map_changed(self, old: Object | None, new: Object | None) -> None:
        self._pools.on_change(old, new)
        self._recheck()

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if self._strict_fcfs and self._line.on_change(old, new) and (first := self._line.first()) is not None:
            self._handle.activate([first])
        if new is None and old is not None:
            self._asked.pop(uid_of(old), None)
        self._recheck()

    def _recheck(self) -> None:
        """Let go of every held pod whose node has enough by now."""
        for uid, asked in self._asked.items():
            self._note_attached(uid, asked)
        for held in self._held.values():
            if held.noted and not held.allowed and held.frozen is None:
                self._let_go(held)

    def _let_go(self, held: _Held) -> None:
        """If its node has enough."""
        waiting = self._handle.waiting_pod(held.pod.uid)
        if waiting is not None and self._available(held) >= held.req:
            held.allowed = True
            record(self._handle.context.log, "devices-there", pod=held.pod.key, node=held.node)
            waiting.allow(NAME)

    async def _look(self, held: _Held) -> None:
        """The published Permit's loop: it reads what the node can give once a second."""
        while self._held.get(held.pod.uid) is held and not held.allowed:
            self._let_go(held)
            await rest(published.LOOK_S)

    def _note_attached(self, uid: str, asked: _Asked) -> None:
        """Detection and binding begins when the last device is on the node's ports."""
        info = self._handle.nodes.get(asked.node)
        if asked.attached_s is None and info is not None:
            own = asked.req if uid in self._held else 0
            others = info.requested.get(self._resource, 0) - own
            if self._pools.attached(asked.node) - others >= asked.req:
                asked.attached_s = self._now()

    async def _recheck_soon(self) -> None:
        await rest(_SETTLE_S)
        self._recheck()

    async def _retry_later(self, uid: str) -> None:
        tries = self._retries.get(uid, 0)
        self._retries[uid] = tries + 1
        await rest(min(_FIRST_RETRY_S * 2.0 ** min(tries, 10), _LAST_RETRY_S))
        self._handle.activate([uid])


def _pool_grew(pod: PodInfo, old: Object | None, new: Object | None) -> bool:
    """A pool has more devices than before."""
    if new is None or not name_of(new).startswith(POOL_PREFIX):
        return False
    before, after = pool_state(old), pool_state(new)
    return after is not None and len(after.devices) > (len(before.devices) if before else 0)


def kubecomp_profile(
    config: KubeCompConfig,
    *,
    policy: str | None = None,
    strict_fcfs: bool | None = None,
    metrics: KubeCompMetrics | None = None,
    now: Callable[[], float] = loop_time,
    score: NodeScore | None = None,
    devices: DeviceFeatures = DEFAULT_FEATURES,
) -> SchedulerProfile:
    """Return the scheduler profile of contract section 1: the default plugins and FalconResources beside them.

    With ``scoring: profile`` the default plugins score too, so that of nodes that equation 1 finds equal the less
    loaded is taken; with ``alone`` FalconResources alone scores. NodeResourcesFit leaves the pooled resource's group
    alone; every node is looked at. ``policy`` and ``strict_fcfs`` override the configuration's; ``score`` takes the
    place of equation 1; ``devices`` is what the cluster's feature gates let it do with claimed devices.
    """
    changed = replace(
        config,
        policy=config.policy if policy is None else policy,
        strict_fcfs=config.strict_fcfs if strict_fcfs is None else strict_fcfs,
    )
    by_name = _ties_by_name(changed.policy)
    return SchedulerProfile(
        scheduler_name=config.scheduler_name,
        plugins=(
            *default_plugins(ignored_resource_groups=(config.resource_group,), devices=devices),
            partial(FalconResources, config=changed, metrics=metrics, now=now, score=score),
        ),
        score_weights={NAME: 1} if config.scoring == "alone" else None,
        ties=TieBreak.BY_NAME if by_name else TieBreak.RANDOM,
        percentage_of_nodes_to_score=100,
    )


def profile_with(
    config: KubeCompConfig, plugin: PluginFactory, devices: DeviceFeatures = DEFAULT_FEATURES
) -> SchedulerProfile:
    """KubeComp's scheduler with another plugin than its own: the default plugins and that one, as it weighs itself."""
    fitting = default_plugins(ignored_resource_groups=(config.resource_group,), devices=devices)
    return SchedulerProfile(config.scheduler_name, (*fitting, plugin))


def _ties_by_name(value: str) -> bool:
    return policy.ties_by_name(Policy(value))
