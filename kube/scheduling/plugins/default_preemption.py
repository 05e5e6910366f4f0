"""Makes room for more important pods (upstream defaultpreemption; asynchronous as in 1.34)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import condition_of, timestamp
from mews.kube.api.resources import PODS
from mews.kube.client.port import DeleteOptions, Preconditions
from mews.kube.component import record
from mews.kube.scheduling import messages
from mews.kube.scheduling.framework import (
    SUCCESS,
    Action,
    Code,
    CycleState,
    Handle,
    PostFilterResult,
    Status,
    Wake,
    unresolvable,
    unschedulable,
)
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.podstatus import patch_status
from mews.kube.scheduling.preemption import REASON, Candidate, candidates_wanted, going_by_preemption, pick, spare

_NOT_HELPFUL = unresolvable(messages.NOT_HELPFUL)
_NO_VICTIMS = unresolvable(messages.NO_VICTIMS)
_BUSY = unresolvable("waiting for the preemption for this pod to be finished")


class DefaultPreemption:
    """PostFilter: picks victims of lower priority, nominates their node and, beside the cycle, has them go."""

    name = "DefaultPreemption"

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._busy: set[str] = set()

    def pre_enqueue(self, pod: PodInfo) -> Status:
        """Not before its preemption has been carried out."""
        return _BUSY if pod.uid in self._busy else SUCCESS

    def post_filter(self, state: CycleState, pod: PodInfo, refusals: Mapping[str, Status]) -> PostFilterResult:
        """SUCCESS with the node to wait for, or why preemption does not help."""
        reason = self._ineligible(pod, refusals)
        if reason:
            return PostFilterResult(unschedulable(f"preemption: {reason}"))
        candidates, verdicts = self._search(state, pod, refusals)
        if not candidates:
            message = messages.no_fit(len(refusals), verdicts)
            return PostFilterResult(unschedulable(f"preemption: {message}"), nominated="")
        chosen = pick(candidates)
        self._busy.add(pod.uid)
        self._handle.spawn(self._carry_out(pod, chosen))
        return PostFilterResult(SUCCESS, nominated=chosen.node)

    def _ineligible(self, pod: PodInfo, refusals: Mapping[str, Status]) -> str:
        if not pod.preempts:
            return messages.NEVER
        node = self._handle.nodes.get(pod.nominated_node)
        if node is None or node.name not in refusals or refusals[node.name].code is Code.UNRESOLVABLE:
            return ""
        going = any(other.priority < pod.priority and going_by_preemption(other) for other in node.pods.values())
        return messages.TERMINATING if going else ""

    def _search(
        self, state: CycleState, pod: PodInfo, refusals: Mapping[str, Status]
    ) -> tuple[list[Candidate], dict[str, Status]]:
        """Candidates from a random start on, and why the other nodes are none."""
        hopeful = [node for node, status in refusals.items() if status.code is Code.UNSCHEDULABLE]
        verdicts = {node: _NOT_HELPFUL for node, status in refusals.items() if status.code is not Code.UNSCHEDULABLE}
        candidates: list[Candidate] = []
        if not hopeful:
            return candidates, verdicts
        start = self._handle.context.rng.randrange(len(hopeful))
        wanted = candidates_wanted(len(hopeful))
        for name in hopeful[start:] + hopeful[:start]:
            found = self._try(state, pod, name)
            if isinstance(found, Candidate):
                candidates.append(found)
                if len(candidates) >= wanted:
                    break
            else:
                verdicts[name] = found
        return candidates, verdicts

    def _try(self, state: CycleState, pod: PodInfo, name: str) -> Candidate | Status:
        """Return who would have to go from this node; a Status when that would not help."""
        node, state = self._handle.nodes[name].copy(), state.clone()
        weaker = [other for other in node.pods.values() if other.priority < pod.priority]
        if not weaker:
            return _NO_VICTIMS
        for other in weaker:
            self._handle.suppose(state, pod, other, node, there=False)
        status = self._handle.fits(state, pod, node)
        if not status.ok:
            return status

        def fits_with(other: PodInfo) -> bool:
            self._handle.suppose(state, pod, other, node, there=True)
            if self._handle.fits(state, pod, node).ok:
                return True
            self._handle.suppose(state, pod, other, node, there=False)
            return False

        return Candidate(name, spare(weaker, fits_with))

    async def _carry_out(self, pod: PodInfo, chosen: Candidate) -> None:
        """Have the victims go; the pod may be queued again just before the last one."""
        record(
            self._handle.context.log,
            "preempting",
            pod=pod.key,
            node=chosen.node,
            victims=[victim.key for victim in chosen.victims],
        )
        done = False
        try:
            for other in self._handle.nominated(chosen.node):
                if other.priority < pod.priority:
                    await self._denominate(other)
            for victim in chosen.victims:
                await self._mark(victim)
                if victim is chosen.victims[-1]:
                    self._busy.discard(pod.uid)
                await self._evict(victim, pod, chosen.node)
            done = True
        finally:
            self._busy.discard(pod.uid)
            if not done:
                self._handle.activate((pod.uid,))

    async def _denominate(self, other: PodInfo) -> None:
        self._handle.nominate(other, "")
        try:
            await patch_status(self._handle.context.kube, other.pod, nominated="")
        except NotFoundError:
            return
        self._handle.activate((other.uid,))

    async def _mark(self, victim: PodInfo) -> None:
        """Say on a running victim why it goes."""
        known = condition_of(victim.pod, "DisruptionTarget")
        disrupted = known is not None and known.get("status") == "True"
        if disrupted or victim.deleting or self._handle.waiting_pod(victim.uid) is not None:
            return
        context = self._handle.context
        condition = {
            "type": "DisruptionTarget",
            "observedGeneration": victim.pod["metadata"].get("generation"),
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": timestamp(context.clock.now()),
            "reason": REASON,
            "message": messages.preempting(self._handle.scheduler_name),
        }
        with suppress(NotFoundError):
            await patch_status(context.kube, victim.pod, condition=condition)

    async def _evict(self, victim: PodInfo, pod: PodInfo, node: str) -> None:
        """One held at Permit is rejected, any other deleted."""
        waiting = self._handle.waiting_pod(victim.uid)
        if waiting is not None:
            waiting.reject(self.name, "preempted")
        elif not victim.deleting:
            options = DeleteOptions(preconditions=Preconditions(uid=victim.uid))
            with suppress(NotFoundError):
                await self._handle.context.kube.delete(PODS, victim.name, namespace=victim.namespace, options=options)
        self._handle.events.record(
            victim,
            kind="Normal",
            reason="Preempted",
            action="Preempting",
            note=messages.preempted(pod.uid, node),
            related=pod,
        )

    def wakes_on(self) -> Sequence[Wake]:
        """Return a pod that is gone."""
        return (Wake(PODS, Action.DELETE),)
