"""KubeComp's policy as traces are played by it: ``policy`` decides, a chassis moves, and no component runs.

The scheduler's part is here; ``simulated_pool`` is Reconfig-Mgr's.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence, Set
from typing import Any

from msgspec import Struct

from mews.kube.scheduling.bare_nodes import BareNode
from mews.kube.system.simulation import JobSpot, SimulatedCluster, SimulatedJob, SimulatedNode, TracePolicy
from mews.systems.kubecomp import policy, published
from mews.systems.kubecomp.config import PERMIT_BOUND
from mews.systems.kubecomp.faults import ALL_FAULTS, MODES, KubeCompFault, chosen_faults
from mews.systems.kubecomp.policy import Policy
from mews.systems.kubecomp.simulated_pool import (
    AwaitedDevices,
    DemandNote,
    FrozenCycle,
    PooledNode,
    SimulatedPool,
    SimulationRules,
)

_FIRST_RETRY_S, _LAST_RETRY_S = 10.0, 300.0
"""After these a job is tried again that a corrected Permit's bound gave up, as the plugin does it."""

NOT_IN_TRACES: Mapping[KubeCompFault, str] = {
    KubeCompFault.NO_JOURNAL: "in a trace nothing crashes between detach and attach",
    KubeCompFault.UNKNOWN_ID: "in a trace no kubelet asks for a device that is not there",
    KubeCompFault.FIRST_CONTAINER: "a job of a trace has one container",
}
"""Faults that no trace can show, and why."""
SHOWN = tuple(name for name in ALL_FAULTS if name not in NOT_IN_TRACES)

_OPTIONS = {
    "policy": "branches of equation 1 that are on: both, best-fit, least-demand or none",
    "scoring": "profile: equation 1 and the default Score plugins; alone: it is the only one",
    "partial": "true: move what there is where there are too few candidates",
    "mode": "corrected, or public: the published implementation with its faults; with --retry kube",
    "faults": f"of mode=public, with commas between: {', '.join(SHOWN)}; default: all of these",
    "permit": f"of mode=public, Permit's bound for n devices, in seconds: {', '.join(published.PERMIT_BOUNDS)}",
    "strict_fcfs": "true: no job is placed before one that came earlier",
}
_LEFT_OUT = (
    "hosts that refuse a device or give it up slowly, preemption, crashes; a move that was begun is finished; of the "
    f"published faults {', '.join(NOT_IN_TRACES)}, and what becomes of a job whose device is taken from it"
)


class _Held(Struct, eq=False):
    """What a placed job holds: its node, how many devices it asked for, and which it has once it runs."""

    key: str
    node: PooledNode
    req: int
    gpuids: tuple[str, ...] = ()


class PooledPlacer:
    """Jobs on pools of devices that move. ``branches`` of equation 1 that are off leave ties to chance."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        rng: random.Random,
        *,
        branches: Policy,
        scoring: str,
        rules: SimulationRules,
    ) -> None:
        if cluster.moves is None:
            raise ValueError("policy kubecomp: nothing can move: the hardware has no chassis")
        self._moves = cluster.moves
        self._branches = branches
        self._with_profile = scoring == "profile"
        self._rules = rules
        self._rng = rng
        self._ties = None if policy.ties_by_name(branches) else rng
        self.gives_up = self._has(KubeCompFault.BLOCKING_PERMIT) or self._has(KubeCompFault.SHORT_PERMIT)
        self.woke = False
        self._numbers = 0
        self._frozen = 0
        self._notes: dict[int, DemandNote] = {}
        self._tries: dict[int, int] = {}
        self._jobs: dict[str, SimulatedJob] = {}
        self._pools: dict[str, SimulatedPool] = {}
        self._nodes = [self._node(node) for node in cluster.nodes if node.pool is not None]
        for pool, devices in cluster.free.items():
            if pool in self._pools:
                self._pools[pool].devices.update((device.gpuid, None) for device in devices)

    def _has(self, fault: KubeCompFault) -> bool:
        return fault in self._rules.faults

    def _node(self, node: SimulatedNode) -> PooledNode:
        usable = {device.gpuid for device in node.devices}
        books = BareNode(node.name, node.cpu_milli, node.memory_mib)
        made = PooledNode(node.name, books, str(node.pool), usable)
        if made.pool not in self._pools:
            self._pools[made.pool] = SimulatedPool(made.pool, self._moves, self._rules, self._rng)
        pool = self._pools[made.pool]
        pool.nodes.append(made)
        pool.devices.update((gpuid, made.name) for gpuid in sorted(usable))
        return made

    @property
    def moved(self) -> int:
        """Devices that were moved."""
        return sum(pool.moved for pool in self._pools.values())

    @property
    def reconfigurations(self) -> int:
        """How often any were."""
        return sum(pool.reconfigurations for pool in self._pools.values())

    @property
    def holds_cycle(self) -> bool:
        """Whether a job waits at a Permit that holds up everybody."""
        return self._frozen > 0

    # ------------------------------------------------------------------------------------------------------ scheduling

    def could_ever(self, job: SimulatedJob) -> bool:
        """Return whether a pool has as many devices, and a node of it the rest."""
        return any(
            policy.pool_fits(job.devices, len(self._pools[node.pool].devices))
            and job.cpu_milli <= node.books.cpu_milli
            and job.memory_mib <= node.books.memory_mib
            for node in self._nodes
        )

    def place(self, job: SimulatedJob, now_s: float) -> JobSpot | None:
        """PreFilter, Filter and Score; the job is assumed on its node."""
        req, cpu, memory = job.devices, job.cpu_milli, job.memory_mib
        free = {name: policy.pool_free(pool.size, (pool.requested,)) for name, pool in self._pools.items()}
        if policy.prefilter_message(job.name, req, free) is not None:
            return None
        fitting = [
            node for node in self._nodes if policy.pool_fits(req, free[node.pool]) and node.books.fits(cpu, memory)
        ]
        if not fitting:
            return None
        node = fitting[0] if len(fitting) == 1 else self._best(fitting, job)
        return self._assume(job, node, now_s)

    def _best(self, fitting: Sequence[PooledNode], job: SimulatedJob) -> PooledNode:
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
    def _available(node: PooledNode) -> int:
        return policy.available(len(node.usable), (node.requested,))

    def _assume(self, job: SimulatedJob, node: PooledNode, now_s: float) -> JobSpot:
        self._numbers += 1
        key = f"{self._numbers}/{job.name}"
        req = job.devices
        shortfall = policy.demand(req, self._available(node))
        node.books.take(job.cpu_milli, job.memory_mib)
        node.requested += req
        spot = JobSpot(node.name, not shortfall, token=_Held(key, node, req))
        if shortfall:
            self._wait(job, AwaitedDevices(key, node, req, spot), shortfall, now_s)
        else:
            self._bind(spot)
        return spot

    def _wait(self, job: SimulatedJob, awaited: AwaitedDevices, shortfall: int, now_s: float) -> None:
        """Reserve and Permit: the job is annotated, and held until its node has enough."""
        if self.gives_up:
            if self._has(KubeCompFault.SHORT_PERMIT):
                awaited.ends_s = now_s + published.permit_bound_s(shortfall, self._rules.permit_bound)
            else:
                awaited.ends_s = now_s + policy.permit_bound_s(shortfall)
            if self._has(KubeCompFault.BLOCKING_PERMIT):
                awaited.frozen = FrozenCycle(awaited.node.requested - awaited.req, now_s)
                self._frozen += 1
            self._jobs[awaited.key] = job
        note = self._notes.get(id(job)) or DemandNote(awaited.node, shortfall)
        note.node, note.demand = awaited.node, shortfall
        if self._has(KubeCompFault.STALE_DEMAND):
            self._notes[id(job)] = note
        self._pools[awaited.node.pool].wait(awaited, note, now_s)

    def _bind(self, spot: JobSpot) -> None:
        """The kubelet gives devices that nobody holds, whichever it comes upon: which of them a node has left decides
        which chassis is next."""
        held: _Held = spot.token
        node = held.node
        free = sorted(node.usable - node.held.keys())
        held.gpuids = tuple(free if held.req >= len(free) else self._rng.sample(free, held.req))
        spot.idle = len(free)
        node.held.update(dict.fromkeys(held.gpuids, held.key))
        if held.req:
            self._pools[node.pool].bind(held.key, spot)

    def release(self, job: SimulatedJob, spot: JobSpot, now_s: float) -> None:
        """Its room is free, and its devices are nobody's."""
        held: _Held = spot.token
        self._unbook(job, held)
        for gpuid in held.gpuids:
            del held.node.held[gpuid]
        for kept in (self._notes, self._tries):
            kept.pop(id(job), None)  # another job may get that id
        self._pools[held.node.pool].free(held.key, now_s)

    @staticmethod
    def _unbook(job: SimulatedJob, held: _Held) -> None:
        held.node.books.take(job.cpu_milli, job.memory_mib, -1)
        held.node.requested -= held.req

    # ------------------------------------------------------------------------------------------------------------ time

    def next_s(self) -> float | None:
        """Return when something happens in any of the pools."""
        return min((at_s for pool in self._pools.values() if (at_s := pool.next_s()) is not None), default=None)

    def advance(self, now_s: float) -> Sequence[JobSpot]:
        """Steps of reconfigurations that are due; jobs whose devices are there, or that Permit has given up."""
        settled = [each for pool in self._pools.values() for each in pool.advance(now_s)]
        for awaited in settled:
            self._frozen -= awaited.frozen is not None
            job = self._jobs.pop(awaited.key, None)
            if awaited.spot.ready:
                self._bind(awaited.spot)
            elif job is not None:
                self._give_up(job, awaited)
        # What the corrected plugin wakes its jobs by is that one ends; the published one's are woken by any change.
        grew = [pool for pool in self._pools.values() if pool.changed]
        for pool in grew:
            pool.changed = False
        self.woke = bool(grew) and self._has(KubeCompFault.SHORT_PERMIT)
        return [awaited.spot for awaited in settled]

    def _give_up(self, job: SimulatedJob, awaited: AwaitedDevices) -> None:
        """Unreserve."""
        spot = awaited.spot
        self._unbook(job, spot.token)
        if not self._has(KubeCompFault.SHORT_PERMIT):
            tries = self._tries[id(job)] = self._tries.get(id(job), 0) + 1
            spot.retry_s = min(_FIRST_RETRY_S * 2.0 ** min(tries - 1, 10), _LAST_RETRY_S)


# ---------------------------------------------------------------------------------------------------------- its options


def _placer(cluster: SimulatedCluster, rng: random.Random, options: Mapping[str, str]) -> PooledPlacer:
    branches = _one_of("policy", options.get("policy", Policy.BOTH.value), tuple(Policy))
    scoring = _one_of("scoring", options.get("scoring", "profile"), ("profile", "alone"))
    mode = _one_of("mode", options.get("mode", MODES[0]), MODES)
    faults = _faults(mode, options.get("faults"))
    partial = _one_of("partial", options.get("partial", "true" if faults else "false"), ("true", "false"))
    _one_of("strict_fcfs", options.get("strict_fcfs", "false"), ("true", "false"))
    rules = SimulationRules(faults, partial=partial == "true", permit_bound=_permit(faults, options.get("permit")))
    return PooledPlacer(cluster, rng, branches=Policy(branches), scoring=scoring, rules=rules)


def _one_of(name: str, value: str, allowed: Sequence[str]) -> str:
    if value not in list(allowed):
        raise ValueError(f"{name}: {value!r}: must be one of {', '.join(allowed)}")
    return value


def _faults(mode: str, given: str | None) -> Set[KubeCompFault]:
    """Return those of the published implementation that are on."""
    if mode == "corrected":
        if given is not None:
            raise ValueError(f"faults: {given}: mode=corrected has none; give mode=public")
        return frozenset()
    named = SHOWN if given is None else chosen_faults(given.split(","))
    for name in named:
        if name in NOT_IN_TRACES:
            raise ValueError(f"faults: {name}: {NOT_IN_TRACES[KubeCompFault(name)]}; must be of {', '.join(SHOWN)}")
    return frozenset(map(KubeCompFault, named))


def _permit(faults: Set[KubeCompFault], given: str | None) -> str:
    """Permit's bound."""
    if given is not None and KubeCompFault.SHORT_PERMIT not in faults:
        raise ValueError(f"permit: {given}: requires mode=public with the fault {KubeCompFault.SHORT_PERMIT}")
    return _one_of("permit", PERMIT_BOUND if given is None else given, tuple(published.PERMIT_BOUNDS))


def _of_stack(options: Any) -> Mapping[str, str]:
    """``stack.kubecomp`` of a scenario as options of a trace."""
    config, timing = options.changes()
    if timing:
        raise ValueError(f"{', '.join(sorted(timing))}: a trace is played with the default periods")
    found = {name: str(config[name]) for name in ("policy", "scoring", "mode") if name in config}
    if config.get("strict_fcfs"):
        found["strict_fcfs"] = "true"
    if config.get("mode") != "public":
        return found | ({"partial": str(config["partial"]).lower()} if "partial" in config else {})
    if "permit_bound" in config:
        found["permit"] = config["permit_bound"]
    # Named ones are taken at their word; of all there are, or all but some, a trace plays those that it can show.
    listed = isinstance(options.faults, tuple)
    faults = tuple(name for name in config["faults"] if listed or name not in NOT_IN_TRACES)
    if not faults:
        raise ValueError(f"faults: {', '.join(config['faults'])}: no trace can show any of these")
    return found if faults == SHOWN else {**found, "faults": ",".join(faults)}


_PARTS = ("scheduler", "reconfigManager", "deviceManager", "config")
_HONOURED = ("policy", "scoring", "partial", "strict_fcfs")
_NAMES = ("resource", "device_env", "uuid_env", "plugin_socket", "scheduler_name", "namespace")

TRACE_POLICIES = (
    TracePolicy(
        "kubecomp",
        "nodes share the devices of their pool, which move to where jobs wait for them",
        placer=_placer,
        options=_OPTIONS,
        left_out=_LEFT_OUT,
        moves=True,
        of_stack=_of_stack,
        honours=(
            "mode",
            "faults",
            "permit.bound",
            "removal",
            *(f"{part}.{key}" for part in _PARTS for key in _HONOURED),
        ),
        indifferent={f"{part}.{key}": "names change no result" for part in _PARTS for key in _NAMES},
        order=lambda options: "fcfs" if options.get("strict_fcfs") == "true" else None,
    ),
)
