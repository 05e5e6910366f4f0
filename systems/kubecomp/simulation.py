"""KubeComp's policy as traces are played by it: ``policy`` decides, a chassis moves, and no component runs.

One pool serves one reconfiguration at a time, as Reconfig-Mgr does: it reads all chassis of the pool, takes the
candidates in the order of Algorithm 1, and moves them one after the other while the shortfall, asked anew before each,
lasts. A device is detached, looked for, attached and looked for again; one that could not be moved is left alone then.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from mews.kube.scheduling.bare_nodes import BareNode
from mews.kube.system.simulation import (
    DeviceMoves,
    JobSpot,
    SimulatedCluster,
    SimulatedJob,
    SimulatedNode,
    TracePolicy,
)
from mews.systems.kubecomp import policy
from mews.systems.kubecomp.config import Timing
from mews.systems.kubecomp.policy import Claim, Gpu, NodeHoldings, Policy

_OPTIONS = {
    "policy": "branches of equation 1 that are on: both, best-fit, least-demand or none",
    "scoring": "profile: the default Score plugins beside equation 1; alone: it is the only one",
    "partial": "true: move what there is where there are too few candidates",
}
_LEFT_OUT = (
    "faults of the published implementation (mode: public), hosts that refuse a device or give it up slowly, "
    "preemption, crashes; a move that was begun is finished"
)


@dataclass(slots=True, eq=False)
class _PooledNode:
    """A node: its books, the devices that it can hand out, those that jobs hold, and what jobs asked for in all."""

    books: BareNode
    pool: str
    usable: set[str]
    held: dict[str, str] = field(default_factory=dict)
    requested: int = 0
    awaited: list[_Awaited] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.books.name


@dataclass(slots=True, eq=False)
class _Awaited:
    """A job that was sent to a node which is short of devices."""

    key: str
    node: _PooledNode
    req: int
    spot: JobSpot


@dataclass(slots=True, eq=False)
class _Pool:
    """A pool's devices, and its one reconfiguration: ``due_s`` is when its next step happens, None while there is
    nothing to do; it ``rests`` for ``delay_s`` where there were too few candidates. ``arriving``: devices that are
    attached and not usable yet."""

    name: str
    nodes: list[_PooledNode]
    devices: dict[str, str | None]
    line: deque[_Awaited] = field(default_factory=deque)
    serving: _Awaited | None = None
    chosen: list[Gpu] = field(default_factory=list)
    due_s: float | None = None
    counted: bool = False
    rests: bool = False
    delay_s: float = 0.0
    arriving: list[tuple[float, str, _PooledNode]] = field(default_factory=list)

    @property
    def requested(self) -> int:
        return sum(node.requested for node in self.nodes)


@dataclass(slots=True, eq=False)
class _Held:
    """What a placed job holds: its node, how many devices it asked for, and which it has once it runs."""

    key: str
    node: _PooledNode
    req: int
    gpuids: tuple[str, ...] = ()


class PooledPlacer:
    """Jobs on pools of devices that move. ``branches`` of equation 1 that are off leave ties to chance."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        rng: random.Random,
        *,
        branches: Policy = Policy.BOTH,
        scoring: str = "profile",
        partial: bool = False,
    ) -> None:
        if cluster.moves is None:
            raise ValueError("policy kubecomp: nothing can move: the hardware has no chassis")
        self._moves: DeviceMoves = cluster.moves
        self._branches = branches
        self._with_profile = scoring == "profile"
        self._partial = partial
        self._ties = None if policy.ties_by_name(branches) else rng
        self._timing = Timing()
        self.moved = 0
        self.reconfigurations = 0
        self._numbers = 0
        self._pools: dict[str, _Pool] = {}
        self._nodes = [self._node(node) for node in cluster.nodes if node.pool is not None]
        for pool, devices in cluster.free.items():
            if pool in self._pools:
                self._pools[pool].devices.update((device.gpuid, None) for device in devices)

    def _node(self, node: SimulatedNode) -> _PooledNode:
        usable = {device.gpuid for device in node.devices}
        made = _PooledNode(BareNode(node.name, node.cpu_milli, node.memory_mib), str(node.pool), usable)
        pool = self._pools.setdefault(made.pool, _Pool(made.pool, [], {}))
        pool.nodes.append(made)
        pool.devices.update((gpuid, made.name) for gpuid in sorted(usable))
        return made

    # ------------------------------------------------------------------------------------------------------ scheduling

    def could_ever(self, job: SimulatedJob) -> bool:
        """Whether a pool has as many devices, and a node of it the rest."""
        return any(
            policy.pool_fits(job.devices, len(self._pools[node.pool].devices))
            and job.cpu_milli <= node.books.cpu_milli
            and job.memory_mib <= node.books.memory_mib
            for node in self._nodes
        )

    def place(self, job: SimulatedJob, now_s: float) -> JobSpot | None:
        """PreFilter, Filter and Score; the job is assumed on its node."""
        req, cpu, memory = job.devices, job.cpu_milli, job.memory_mib
        free = {name: policy.pool_free(len(pool.devices), (pool.requested,)) for name, pool in self._pools.items()}
        if policy.prefilter_message(job.name, req, free) is not None:
            return None
        fitting = [
            node for node in self._nodes if policy.pool_fits(req, free[node.pool]) and node.books.fits(cpu, memory)
        ]
        if not fitting:
            return None
        node = fitting[0] if len(fitting) == 1 else self._best(fitting, job)
        return self._assume(job, node, now_s)

    def _best(self, fitting: Sequence[_PooledNode], job: SimulatedJob) -> _PooledNode:
        req = job.devices
        scores: dict[str, int] = dict.fromkeys((node.name for node in fitting), 0)
        if req:
            raw = {node.name: policy.score(req, self._available(node), self._branches) for node in fitting}
            scores = policy.normalise(raw)
        if self._with_profile or not req:
            for node in fitting:
                scores[node.name] += node.books.score(job.cpu_milli, job.memory_mib)
        highest = max(scores.values())
        equals = sorted((node for node in fitting if scores[node.name] == highest), key=lambda node: node.name)
        return equals[0] if self._ties is None or len(equals) == 1 else self._ties.choice(equals)

    @staticmethod
    def _available(node: _PooledNode) -> int:
        return policy.available(len(node.usable), (node.requested,))

    def _assume(self, job: SimulatedJob, node: _PooledNode, now_s: float) -> JobSpot:
        self._numbers += 1
        key = f"{self._numbers}/{job.name}"
        req = job.devices
        shortfall = policy.demand(req, self._available(node))
        node.books.take(job.cpu_milli, job.memory_mib)
        node.requested += req
        spot = JobSpot(node.name, not shortfall, token=_Held(key, node, req))
        if shortfall:
            awaited = _Awaited(key, node, req, spot)
            node.awaited.append(awaited)
            pool = self._pools[node.pool]
            pool.line.append(awaited)
            if pool.serving is None:
                self._serve(pool, now_s)
        else:
            self._allocate(spot)
        return spot

    def _allocate(self, spot: JobSpot) -> None:
        """The kubelet gives devices that nobody holds, the first by their IDs."""
        held: _Held = spot.token
        node = held.node
        free = sorted(node.usable - node.held.keys())
        held.gpuids = tuple(free[: held.req])
        spot.idle = len(free)
        node.held.update(dict.fromkeys(held.gpuids, held.key))

    def release(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """Its room is free, and its devices are nobody's."""
        held: _Held = spot.token
        node = held.node
        node.books.take(job.cpu_milli, job.memory_mib, -1)
        node.requested -= held.req
        for gpuid in held.gpuids:
            del node.held[gpuid]
        pool = self._pools[node.pool]
        if pool.rests and pool.due_s is not None:
            # It had too few candidates: there are more now.
            pool.due_s = min(pool.due_s, now_s + self._timing.requeue_first_s)
            pool.delay_s = self._timing.requeue_first_s

    # -------------------------------------------------------------------------------------------------- reconfiguration

    def next_s(self) -> float | None:
        """When a pool's next step happens, or a device is there."""
        times = [pool.due_s for pool in self._pools.values() if pool.due_s is not None]
        times += [at_s for pool in self._pools.values() for at_s, _, _ in pool.arriving]
        if any(self._satisfied(awaited) for pool in self._pools.values() for awaited in pool.line):
            return 0.0
        return min(times, default=None)

    def _satisfied(self, awaited: _Awaited) -> bool:
        others = awaited.node.requested - awaited.req
        return policy.available(len(awaited.node.usable), (others,)) >= awaited.req

    def advance(self, now_s: float) -> Sequence[JobSpot]:
        """Steps of reconfigurations that are due; jobs whose devices are there."""
        ready: list[JobSpot] = []
        for pool in self._pools.values():
            while pool.due_s is not None and pool.due_s <= now_s:
                self._step(pool, pool.due_s)
            for at_s, gpuid, node in list(pool.arriving):
                if at_s <= now_s:
                    pool.arriving.remove((at_s, gpuid, node))
                    node.usable.add(gpuid)
            for awaited in list(pool.line):
                if self._satisfied(awaited):
                    pool.line.remove(awaited)
                    awaited.node.awaited.remove(awaited)
                    awaited.spot.ready = True
                    self._allocate(awaited.spot)
                    ready.append(awaited.spot)
            if pool.serving is None:
                self._serve(pool, now_s)
        return ready

    def _serve(self, pool: _Pool, now_s: float) -> None:
        """Begin with the first that lacks something beyond what is on its way."""
        pool.serving, pool.chosen, pool.due_s = None, [], None
        pool.counted, pool.rests, pool.delay_s = False, False, 0.0
        for awaited in pool.line:
            if self._shortfall(pool, awaited):
                pool.serving = awaited
                pool.due_s = self._moves.read(pool.name, now_s)
                return

    def _shortfall(self, pool: _Pool, awaited: _Awaited) -> int:
        """The single-move rule, on what is on the node's ports."""
        if awaited.spot.ready:
            return 0
        attached = len(awaited.node.usable) + sum(node is awaited.node for _, _, node in pool.arriving)
        return policy.demand(awaited.req, policy.available(attached, (awaited.node.requested - awaited.req,)))

    def _step(self, pool: _Pool, now_s: float) -> None:
        """The reading is there, or a move has ended: plan, or move the next."""
        awaited = pool.serving
        shortfall = 0 if awaited is None else self._shortfall(pool, awaited)
        if awaited is None or not shortfall:
            self._serve(pool, now_s)
            return
        if pool.rests:
            pool.rests, pool.due_s = False, self._moves.read(pool.name, now_s)
            return
        if not pool.chosen:
            pool.chosen = self._plan(pool, awaited, shortfall)
        if not pool.chosen:
            first_s, last_s = self._timing.requeue_first_s, self._timing.requeue_last_s
            pool.delay_s = min(2 * pool.delay_s, last_s) if pool.delay_s else first_s
            pool.rests, pool.due_s = True, now_s + pool.delay_s
            return
        pool.delay_s = 0.0
        pool.due_s = self._move(pool, awaited, pool.chosen.pop(0), now_s)

    def _plan(self, pool: _Pool, awaited: _Awaited, shortfall: int) -> list[Gpu]:
        gpus = [
            Gpu(gpuid, node or "", None if node is None else "port")
            for gpuid, node in pool.devices.items()
            if not any(gpuid == each for _, each, _ in pool.arriving)
        ]
        holdings = {node.name: NodeHoldings(node.held, fresh=True) for node in pool.nodes}
        claims = {node.name: _claims(node) for node in pool.nodes}
        out_of_reach = {gpu.gpuid for gpu in gpus if not self._moves.can_reach(gpu.gpuid, awaited.node.name)}
        found = policy.candidates(gpus, awaited.node.name, holdings=holdings, claims=claims, out_of_reach=out_of_reach)
        return list(policy.plan(found, shortfall, partial=self._partial))

    def _move(self, pool: _Pool, awaited: _Awaited, gpu: Gpu, now_s: float) -> float:
        """One device from where it is to the node; when it is over."""
        node = awaited.node
        if not pool.counted:
            pool.counted = True
            self.reconfigurations += 1
        origin = next((each for each in pool.nodes if each.name == gpu.node), None)
        if origin is not None:
            if gpu.gpuid in origin.held or self._keeps(origin):
                return now_s  # its node needs it by now: planned anew
            origin.usable.discard(gpu.gpuid)
            now_s, _ = self._until(gpu.gpuid, None, now_s, lambda at_s: self._moves.detach(gpu.gpuid, at_s))
            pool.devices[gpu.gpuid] = self._moves.node_of(gpu.gpuid, now_s)
            if pool.devices[gpu.gpuid] is not None:
                origin.usable.add(gpu.gpuid)
                return now_s
        now_s, attached_s = self._until(
            gpu.gpuid, node.name, now_s, lambda at_s: self._moves.attach(gpu.gpuid, node.name, at_s)
        )
        pool.devices[gpu.gpuid] = self._moves.node_of(gpu.gpuid, now_s)
        if pool.devices[gpu.gpuid] == node.name:
            self.moved += 1
            pool.arriving.append((self._moves.usable_s(node.name, attached_s), gpu.gpuid, node))
        return now_s

    def _until(
        self, gpuid: str, wanted: str | None, now_s: float, operate: Callable[[float], float]
    ) -> tuple[float, float]:
        """Try until the device is where it is wanted, as often as the mover does; when a reading has shown it, and when
        the chassis had answered."""
        answered_s = now_s
        for attempt in range(self._timing.retries):
            if attempt:
                now_s += self._timing.retry_backoff_s * 2 ** (attempt - 1)
            answered_s = operate(now_s)
            now_s = self._moves.read_one(gpuid, answered_s)
            if self._moves.node_of(gpuid, now_s) == wanted:
                break
            now_s += self._timing.read_back_bound_s
        return now_s, answered_s

    @staticmethod
    def _keeps(node: _PooledNode) -> bool:
        """Whether the node has no device to spare beyond what its jobs need."""
        free = len(node.usable) - len(node.held)
        return free <= policy.kept_back(_claims(node), node.held)


def _claims(node: _PooledNode) -> list[Claim]:
    return [Claim(awaited.key, node.name, awaited.req, bound=False) for awaited in node.awaited]


def _placer(cluster: SimulatedCluster, rng: random.Random, options: Mapping[str, str]) -> PooledPlacer:
    chosen = options.get("policy", Policy.BOTH)
    if chosen not in list(Policy):
        raise ValueError(f"policy: {chosen!r}: must be one of {', '.join(Policy)}")
    scoring, partial = options.get("scoring", "profile"), options.get("partial", "false")
    if scoring not in ("profile", "alone"):
        raise ValueError(f"scoring: {scoring!r}: must be one of profile, alone")
    if partial not in ("true", "false"):
        raise ValueError(f"partial: {partial!r}: must be true or false")
    return PooledPlacer(cluster, rng, branches=Policy(chosen), scoring=scoring, partial=partial == "true")


TRACE_POLICY = TracePolicy(
    "kubecomp",
    "nodes share the devices of their pool, which move to where jobs wait for them",
    placer=_placer,
    options=_OPTIONS,
    left_out=_LEFT_OUT,
    moves=True,
)
