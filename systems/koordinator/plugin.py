"""DeviceShare: the scheduler plugin that gives pods devices and parts of them (contract koordinator.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from mews.kube.api.objects import Object, annotations_of, name_of, uid_of
from mews.kube.api.resources import NODES, PODS
from mews.kube.component import record
from mews.kube.scheduling.config import SchedulerProfile
from mews.kube.scheduling.devices.features import DEFAULT_FEATURES, DeviceFeatures
from mews.kube.scheduling.framework import (
    SKIP,
    SUCCESS,
    Action,
    Code,
    CycleState,
    Handle,
    Status,
    Wake,
    unresolvable,
    unschedulable,
    wait,
)
from mews.kube.scheduling.nodeinfo import NodeInfo
from mews.kube.scheduling.plugins import default_plugins
from mews.kube.scheduling.podinfo import Amounts, PodInfo
from mews.systems.koordinator import policy
from mews.systems.koordinator.allocations import allocations_text
from mews.systems.koordinator.cache import NodeDeviceCache, exclusive_of
from mews.systems.koordinator.config import KoordinatorConfig
from mews.systems.koordinator.coscheduling import Coscheduling
from mews.systems.koordinator.device_watch import DeviceWatch
from mews.systems.koordinator.errors import BadDeviceError, InvalidRequestError
from mews.systems.koordinator.gang_plans import GangPlan, Gangs, GangState, gang_key, one_node, refusal
from mews.systems.koordinator.gangs import GangPlacement, place_gang
from mews.systems.koordinator.left_allocations import LeftAllocations
from mews.systems.koordinator.names import DEVICES, DOMAIN, VENDORS, today
from mews.systems.koordinator.offers import still_offered
from mews.systems.koordinator.pod_notes import DeviceNotes
from mews.systems.koordinator.policy import NoDevices, insufficient
from mews.systems.koordinator.requests import DeviceAsk, ask_of, device_type
from mews.systems.koordinator.scoring import weights_of
from mews.systems.koordinator.unsupported import unsupported
from mews.systems.koordinator.usage import NodeUse, PodUse

NAME = "DeviceShare"
COUNTED_GROUPS = tuple(name.partition("/")[0] for name in (DOMAIN, *VENDORS))
"""Groups of extended resources whose sums this plugin looks at, in NodeResourcesFit's place."""
_LINK_STEP = 1_000_000
"""What one MB/s of the slowest link outweighs: far more than the scores of all types of devices together."""
_UNSETTLED = "devices that an earlier scheduler gave and did not bind are being taken back"


class _Attempt(Struct, frozen=True):
    """What PreFilter found, and what is supposed of nodes: pods that are not there, pods that are there as well."""

    ask: DeviceAsk | None
    counted: Amounts
    gang: GangState | None = None
    plan: GangPlan | None = None
    gone: frozenset[str] = frozenset()
    more: Mapping[str, tuple[PodInfo, ...]] = field(default_factory=dict)


class DeviceShare:
    """One per profile."""

    name = NAME
    weight = 20

    def __init__(self, handle: Handle, *, config: KoordinatorConfig, cache: NodeDeviceCache | None = None) -> None:
        self._handle = handle
        self._config = config
        self._choice, self._weights = config.device_choice, weights_of(config.device_weights, "device_weights")
        self._cache = cache if cache is not None else NodeDeviceCache()
        self._notes = DeviceNotes(handle.context.kube)
        self._gangs = Gangs(handle.scheduler_name)
        self._left = LeftAllocations(handle, self._notes, self._cache)
        self._watch = DeviceWatch(handle, self._cache)
        handle.informer(PODS).on_change(self._pod_changed)

    def wakes_on(self) -> Sequence[Wake]:
        """Return a pod with devices went; a Device came or changed; a node changed."""
        return (
            Wake(PODS, Action.DELETE),
            Wake(DEVICES, Action.ADD | Action.UPDATE),
            Wake(NODES, Action.ADD | Action.UPDATE),
        )

    def _ask_of(self, pod: PodInfo) -> DeviceAsk | None:
        return ask_of(pod.requests, annotations_of(pod.pod), self._cache.kinds, pod.labels)

    # The cycle

    def pre_filter(self, state: CycleState, pod: PodInfo) -> Status:
        """Read and translate what is asked; what no node could serve is unresolvable. A gang is judged as one."""
        refused = unsupported(pod.labels, annotations_of(pod.pod))
        if refused:
            return unresolvable(refused)
        try:
            ask, gang = self._ask_of(pod), self._gangs.state(pod)
            node = one_node(gang) if gang is not None else ""
        except InvalidRequestError as invalid:
            return unresolvable(str(invalid))
        counted = {name: value for name, value in pod.requests.items() if name.partition("/")[0] in COUNTED_GROUPS}
        if ask is None and not counted and gang is None:
            return SKIP
        if self._left and ask is not None:
            return unresolvable(_UNSETTLED)
        plan = self._gangs.plan_of(pod)
        state.data[NAME] = _Attempt(ask, counted, gang, plan)
        if plan is not None:
            return Status(nodes=frozenset((plan.node,)))
        incomplete = refusal(gang) if gang is not None else ""
        if incomplete:
            return unresolvable(incomplete)
        return Status(nodes=frozenset((node,))) if node else SUCCESS

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """What if another pod were on the node: one that was taken off, or one that waits for room there."""
        attempt: _Attempt | None = state.data.get(NAME)
        if attempt is None:
            return
        if other.uid in attempt.gone:
            state.data[NAME] = replace(attempt, gone=attempt.gone - {other.uid})
        elif self._cache.node_of(other.uid) != node.name:
            more = {**attempt.more, node.name: (*attempt.more.get(node.name, ()), other)}
            state.data[NAME] = replace(attempt, more=more)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """What if a pod were not on the node."""
        attempt: _Attempt | None = state.data.get(NAME)
        if attempt is not None:
            more = {name: tuple(each for each in pods if each.uid != other.uid) for name, pods in attempt.more.items()}
            state.data[NAME] = replace(attempt, gone=attempt.gone | {other.uid}, more=more)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status:
        """Devices for the pod, or for all of its gang."""
        attempt: _Attempt = state.data[NAME]
        counted: Amounts = attempt.counted
        if attempt.plan is None and attempt.gang is not None:
            counted = attempt.gang.requests()
        short = self._short(counted, node)
        if not short.ok or attempt.plan is not None:
            return short
        if attempt.gang is None and attempt.ask is None:
            return SUCCESS
        answer = self._answer(attempt, self._supposed(attempt, node.name), filtering=True)
        if isinstance(answer, NoDevices):
            return unresolvable(answer.reason) if answer.hopeless else unschedulable(answer.reason)
        return SUCCESS

    def _short(self, counted: Amounts, node: NodeInfo) -> Status:
        """Sums that the node lists, as its kubelet will look at them. It takes an extended resource that it does not
        know for none; so do we of devices, which are what the Device says, and of nothing else."""
        reasons, code = [], Code.UNSCHEDULABLE
        for name, wanted in counted.items():
            there = node.allocatable.get(name)
            if there is None and device_type(today(name), self._cache.kinds):
                continue
            taken = len(node.pods) if name == "pods" else node.requested.get(name, 0)
            if wanted > (there or 0) - taken:
                reasons.append(f"Insufficient {name}")
                code = Code.UNRESOLVABLE if wanted > (there or 0) else code
        return Status(code, tuple(reasons)) if reasons else SUCCESS

    def _supposed(self, attempt: _Attempt, node: str) -> NodeUse | None:
        use = self._cache.use(node)
        if use is None:
            return None
        for uid in attempt.gone:
            use = use.minus(uid)
        for other in attempt.more.get(node, ()):
            use = self._with(use, other, node)
        return use

    def _with(self, use: NodeUse, other: PodInfo, node: str) -> NodeUse:
        """Return it with a pod that waits for room there: as it would be served now, else once those are gone that are
        going, else once all are that are weaker. What becomes free one by one must not go to others before it is
        enough. One that has its devices by now is nominated for a moment more: what it has is what counts."""
        if other.uid in use.pods:
            return use
        try:
            ask = self._ask_of(other)
        except InvalidRequestError:
            return use
        if ask is None:
            return use
        weaker = [each for each in self._handle.nodes[node].pods.values() if each.priority < other.priority]
        going = [each.uid for each in weaker if each.deleting]
        for uids in ([], going, [each.uid for each in weaker]):
            left = use
            for uid in uids:
                left = left.minus(uid)
            given = policy.allocate(ask, left, choice=self._choice, weights=self._weights)
            if not isinstance(given, NoDevices):
                return use.plus(_use_of(other, given))
        return use

    def _answer(self, attempt: _Attempt, use: NodeUse | None, *, filtering: bool = False) -> GangPlacement | NoDevices:
        """Devices for the pod (by ""), or for all of its gang by uid; ``use`` is None on a node without a Device.
        ``filtering``: those alone by which a node is chosen."""
        if attempt.gang is None:
            if attempt.ask is None:
                return {"": ()}
            if use is None:
                return NoDevices(insufficient(attempt.ask.demands[0].type), hopeless=True)
            decide = policy.filtered if filtering else policy.allocate
            given = decide(attempt.ask, use, choice=self._choice, weights=self._weights)
            return given if isinstance(given, NoDevices) else {"": given}
        try:
            members = attempt.gang.members(self._ask_of)
        except InvalidRequestError as invalid:
            return NoDevices(str(invalid), hopeless=True)
        if not members:
            return {}
        if use is None:
            return NoDevices(insufficient(members[0].ask.demands[0].type), hopeless=True)
        key = "gang", members, self._choice
        if key not in use.memo:
            use.memo[key] = place_gang(members, use, choice=self._choice, weights=self._weights)
        answer: GangPlacement | NoDevices = use.memo[key]
        return answer

    # Scores

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Sequence[NodeInfo]) -> Status:
        """Skip pods without devices."""
        attempt: _Attempt | None = state.data.get(NAME)
        return SKIP if attempt is None or attempt.ask is None or attempt.plan is not None else SUCCESS

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int:
        """Return the slowest link of the devices that the pod, or its gang, would get, in MB/s; below it, upstream's
        score of how full the node's devices would be."""
        attempt: _Attempt = state.data[NAME]
        use = self._supposed(attempt, node.name)
        if use is None:
            return 0
        if attempt.gang is not None:
            members = attempt.gang.members(self._ask_of)
            return self._worth([each.ask for each in members], self._answer(attempt, use), use)
        assert attempt.ask is not None, "pre_score skips pods without devices"
        key = "score", attempt.ask, self._choice
        if key not in use.memo:
            use.memo[key] = self._worth([attempt.ask], self._answer(attempt, use), use)
        worth: int = use.memo[key]
        return worth

    def _worth(self, asks: Sequence[DeviceAsk], answer: GangPlacement | NoDevices, use: NodeUse) -> int:
        """Return that of a gang the mean of its pods."""
        if isinstance(answer, NoDevices) or not asks:
            return 0
        given = tuple(each for one in answer.values() for each in one)
        slowest = policy.quality(given, use)[0] if self._by_bandwidth(use) else 0
        scores = [policy.node_score(ask, use, choice=self._choice, weights=self._weights) for ask in asks]
        return slowest * _LINK_STEP + sum(scores) // len(scores)

    def _by_bandwidth(self, use: NodeUse) -> bool:
        return self._choice == "bandwidth" or (self._choice == "auto" and bool(use.report.links))

    def normalize(self, state: CycleState, pod: PodInfo, scores: Mapping[str, int]) -> Mapping[str, int]:
        """Return them as upstream where links are alike, the highest 100; else by the rank of the links first."""
        links = {value // _LINK_STEP for value in scores.values()}
        if len(links) == 1:
            return policy.normalized({name: value % _LINK_STEP for name, value in scores.items()})
        ranks = {value: number for number, value in enumerate(sorted(set(scores.values())))}
        return {name: ranks[value] * 100 // (len(ranks) - 1) for name, value in scores.items()}

    # Reserve and what follows

    def reserve(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Count the devices; for the first pod of a gang, those of all of it."""
        attempt: _Attempt | None = state.data.get(NAME)
        if attempt is None or attempt.plan is not None:
            return SUCCESS
        answer = self._beside_nominated(attempt, pod, node)
        if isinstance(answer, NoDevices):
            return unschedulable(answer.reason)
        if attempt.gang is not None:
            self._plan(attempt.gang, answer, pod, node)
        elif attempt.ask is not None:
            self._cache.reserve(node, _use_of(pod, answer[""]))
        return SUCCESS

    def _beside_nominated(self, attempt: _Attempt, pod: PodInfo, node: str) -> GangPlacement | NoDevices:
        """Rather devices that leave room for the pods that wait for room there and are no less important."""
        waiting = tuple(
            other for other in self._handle.nominated(node) if other.priority >= pod.priority and other.uid != pod.uid
        )
        if waiting:
            answer = self._answer(attempt, self._supposed(replace(attempt, more={node: waiting}), node))
            if not isinstance(answer, NoDevices):
                return answer
        return self._answer(attempt, self._cache.use(node))

    def _plan(self, gang: GangState, answer: GangPlacement, pod: PodInfo, node: str) -> None:
        placement = {each.uid: answer.get(each.uid, ()) for each in gang.pending}
        for each in gang.pending:
            if placement[each.uid]:
                self._cache.reserve(node, _use_of(each, placement[each.uid]))
        key = gang_key(pod.pod)
        assert key is not None, "it is a pod of a gang"
        self._gangs.plans[key] = GangPlan(node, placement, gang.needed)
        record(self._handle.context.log, "gang-planned", gang=gang.label.name, node=node, pods=len(placement))
        self._handle.activate([each.uid for each in gang.pending if each.uid != pod.uid])

    async def permit(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """A pod of a gang waits until as many as must be placed at once are here."""
        plan = self._gangs.plan_of(pod)
        if plan is None:
            return SUCCESS
        plan.waiting.add(pod.uid)
        if len(plan.waiting) < plan.needed:
            return wait(self._config.gang_wait_s)
        for uid in sorted(plan.waiting - plan.passed):
            waiting = self._handle.waiting_pod(uid)
            if waiting is not None and uid != pod.uid:
                waiting.allow(NAME)
        plan.passed |= plan.waiting
        return SUCCESS

    async def pre_bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Write onto the pod what it has; not where the Device does not show it as healthy any more. That is read anew
        once it is written: what this scheduler watches may be old (``mews.systems.koordinator.withdrawals``)."""
        given = self._given(pod.uid)
        if given is None:
            return SUCCESS
        use = self._cache.use(node)
        if use is None or not use.offers(given.allocations):
            return unschedulable(insufficient(given.allocations[0].type))
        await self._notes.write(pod, allocations_text(given.allocations))
        if not await still_offered(self._handle.context.kube, node, given.allocations, self._cache):
            return unschedulable(insufficient(given.allocations[0].type))
        return SUCCESS

    async def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:
        """Bind a pod with devices at the version that bears them; others are not this plugin's."""
        if self._given(pod.uid) is None:
            return SKIP
        await self._notes.bind(pod, node)
        return SUCCESS

    async def post_bind(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Bound: its place in the plan of its gang is taken."""
        self._notes.forget(pod.uid)
        if self._gangs.plan_of(pod) is not None:
            self._leave(pod)

    async def unreserve(self, state: CycleState, pod: PodInfo, node: str) -> None:
        """Give the devices back; if the gang is short of a pod now, all of its."""
        plan = self._gangs.plan_of(pod)
        if plan is not None:
            self._drop_plan(pod, plan)
        self._cache.unreserve(pod.uid)
        await self._notes.clear(pod)

    def _given(self, uid: str) -> PodUse | None:
        use = self._cache.nodes.get(self._cache.node_of(uid))
        return use.pods.get(uid) if use is not None else None

    def _leave(self, pod: PodInfo) -> None:
        key = gang_key(pod.pod)
        plan = self._gangs.plans.get(key) if key is not None else None
        if key is None or plan is None:
            return
        plan.placement = {uid: given for uid, given in plan.placement.items() if uid != pod.uid}
        plan.waiting.discard(pod.uid)
        plan.needed = max(plan.needed - 1, 1)
        if not plan.placement:
            del self._gangs.plans[key]

    def _drop_plan(self, pod: PodInfo, plan: GangPlan) -> None:
        """None of the rest goes there: those at Permit are rejected, and nothing is set aside any more."""
        key = gang_key(pod.pod)
        assert key is not None, "it is in the plan of a gang"
        del self._gangs.plans[key]
        self._give_up(plan, f"gang {key[1]} is not placed: {pod.name} was given up", besides=pod.uid)

    def _give_up(self, plan: GangPlan, why: str, *, besides: str = "") -> None:
        """Those that wait are rejected, what is set aside for others is given back; those let through go on."""
        for uid in sorted(plan.placement.keys() - plan.passed - {besides}):
            waiting = self._handle.waiting_pod(uid)
            if waiting is not None:
                waiting.reject(NAME, why)
            else:
                self._cache.unreserve(uid)

    # Changes

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None and (new is None or uid_of(old) != uid_of(new)):
            self._gangs.remove_pod(old)
            self._cache.remove_pod(uid_of(old))
            self._left.forget(uid_of(old))
            self._drop_gone(old)
        if new is None:
            return
        try:
            self._cache.set_pod(new)
        except BadDeviceError as bad:
            record(self._handle.context.log, "allocation-unreadable", pod=name_of(new), error=str(bad))
        key = gang_key(new)
        if self._gangs.set_pod(new) and key is not None:
            self._handle.activate(self._gangs.pending(key))
        self._left.note(new)

    def _drop_gone(self, pod: Object) -> None:
        """A pod of a plan is gone: the plan has one pod less, and is dropped if that is too few."""
        key = gang_key(pod)
        plan = self._gangs.plans.get(key) if key is not None else None
        if key is None or plan is None or uid_of(pod) not in plan.placement:
            return
        plan.placement = {uid: given for uid, given in plan.placement.items() if uid != uid_of(pod)}
        plan.waiting.discard(uid_of(pod))
        if len(plan.placement) >= plan.needed:
            return
        del self._gangs.plans[key]
        self._give_up(plan, f"gang {key[1]} is not placed: {name_of(pod)} is gone")


def _use_of(pod: PodInfo, given: Sequence[object]) -> PodUse:
    return PodUse(pod.uid, pod.key, tuple(given), exclusive_of(annotations_of(pod.pod)))  # type: ignore[arg-type]


def koordinator_profile(
    config: KoordinatorConfig, cache: NodeDeviceCache | None = None, devices: DeviceFeatures = DEFAULT_FEATURES
) -> SchedulerProfile:
    """Return the scheduler's profile: the default plugins, and DeviceShare, whose word on a node counts most.

    DeviceShare binds before the default binder does; NodeResourcesFit leaves it the groups of the devices' resources.
    ``devices`` is what the cluster's feature gates let it do with claimed devices.
    """
    *plugins, binder = default_plugins(ignored_resource_groups=COUNTED_GROUPS, devices=devices)
    return SchedulerProfile(
        scheduler_name=config.scheduler_name,
        plugins=(
            *plugins,
            partial(Coscheduling, config=config),
            partial(DeviceShare, config=config, cache=cache),
            binder,
        ),
    )
