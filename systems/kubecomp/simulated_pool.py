"""A pool of a trace: its devices, and its one reconfiguration at a time, as Reconfig-Mgr carries it out.

It reads all chassis of the pool, takes the candidates in the order of Algorithm 1, and moves them one after the other
while the shortfall, asked anew before each, lasts. A device is detached, looked for, attached and looked for again; one
that could not be moved is left alone then. With faults of the published implementation (``faults``) it does what that
does, by the same functions of ``published`` as the components.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Generator, Sequence, Set

from msgspec import Struct, field

from mews.kube.scheduling.bare_nodes import BareNode
from mews.kube.system.simulation import DeviceMoves, JobSpot
from mews.systems.kubecomp import policy, published
from mews.systems.kubecomp.config import PERMIT_BOUND, Timing
from mews.systems.kubecomp.faults import KubeCompFault
from mews.systems.kubecomp.policy import Claim, Gpu, NodeHoldings


class PooledNode(Struct, eq=False):
    """A node: its books, the devices that it can hand out, those that jobs hold, what jobs asked for in all, and those
    that wait here for devices."""

    name: str
    books: BareNode
    pool: str
    usable: set[str]
    held: dict[str, str] = field(default_factory=dict)
    requested: int = 0
    awaited: list[AwaitedDevices] = field(default_factory=list)


class FrozenCycle(Struct, eq=False):
    """A published Permit that holds up the cycle: ``others`` is what the node's other jobs asked for when it began, and
    stays so; ``look_s`` is when it next looks at the node's devices."""

    others: int
    look_s: float

    def looks(self, now_s: float) -> bool:
        """Return whether it looks just now; the looks before have seen nothing."""
        looked = False
        while self.look_s <= now_s:
            looked = self.look_s == now_s
            self.look_s += published.LOOK_S
        return looked


class AwaitedDevices(Struct, eq=False):
    """A job that was sent to a node which is short of devices. ``frozen``: it holds up the cycle; ``ends_s``: when
    Permit gives it up, None for never."""

    key: str
    node: PooledNode
    req: int
    spot: JobSpot
    frozen: FrozenCycle | None = None
    ends_s: float | None = None


class DemandNote(Struct, eq=False):
    """What a job's annotations ask for, however old they are."""

    node: PooledNode
    demand: int


Steps = Generator[float, float, None]
"""A reconfiguration: it yields when its next step happens, and is sent when it did."""


class SimulationRules(Struct, frozen=True):
    """What decides beside the policy: the faults of the published implementation that are on, its Permit's bound, and
    ``partial``."""

    faults: Set[KubeCompFault] = frozenset()
    permit_bound: str = PERMIT_BOUND
    partial: bool = False
    timing: Timing = field(default_factory=Timing)


class SimulatedPool:
    """One pool. ``changed``: the devices that nodes can hand out have changed since it was last set to False."""

    def __init__(self, name: str, moves: DeviceMoves, rules: SimulationRules, rng: random.Random) -> None:
        self.name = name
        self.nodes: list[PooledNode] = []
        self.devices: dict[str, str | None] = {}
        self.moved = 0
        self.reconfigurations = 0
        self.changed = False
        self._moves = moves
        self._timing = rules.timing
        self._faults = rules.faults
        self._partial = rules.partial
        self._rng = rng
        self._line: deque[AwaitedDevices] = deque()
        self._notes: deque[DemandNote] = deque()
        self._steps: Steps | None = None
        self._due_s: float | None = None
        self._rests = False
        self._delay_s = 0.0
        self._refused: set[str] = set()
        self._arriving: list[tuple[float, str, PooledNode]] = []
        self._leaving: list[tuple[float, str, PooledNode]] = []
        self._bound: dict[str, JobSpot] = {}
        self._execs = published.ExecCache() if self._has(KubeCompFault.EXEC_HOLDERS) else None

    def _has(self, fault: KubeCompFault) -> bool:
        return fault in self._faults

    @property
    def requested(self) -> int:
        """What all jobs on its nodes asked for."""
        return sum(node.requested for node in self.nodes)

    @property
    def size(self) -> int:
        """All devices of the pool; for the published scheduler those that nodes advertise at the moment."""
        if self._has(KubeCompFault.ADVERTISED_IS_ALL):
            return published.pool_size(len(node.usable) for node in self.nodes)
        return len(self.devices)

    # ------------------------------------------------------------------------------------------------------------ jobs

    def wait(self, awaited: AwaitedDevices, note: DemandNote, now_s: float) -> None:
        """A job was sent to one of its nodes, which lacks devices; an event says so."""
        awaited.node.awaited.append(awaited)
        self._line.append(awaited)
        if self._has(KubeCompFault.STALE_DEMAND):
            self._notes.append(note)
        if self._steps is None:
            self._serve(now_s)

    def bind(self, key: str, spot: JobSpot) -> None:
        """A job that asks for devices is bound to one of its nodes."""
        self._bound[key] = spot

    def free(self, key: str, now_s: float) -> None:
        """A job has ended."""
        self._bound.pop(key, None)
        if self._rests and self._due_s is not None:
            # It had too few candidates: there are more now.
            self._due_s = min(self._due_s, now_s + self._timing.requeue_first_s)
            self._delay_s = self._timing.requeue_first_s

    # ------------------------------------------------------------------------------------------------------------ time

    def next_s(self) -> float | None:
        """Return when something happens next; 0 for now."""
        if not (self._line or self._arriving or self._leaving):
            return self._due_s
        looks = [each.frozen.look_s if each.frozen else 0.0 for each in self._line if self._satisfied(each)]
        times = [at_s for at_s, _, _ in (*self._arriving, *self._leaving)]
        times += [*looks, *(each.ends_s for each in self._line if each.ends_s is not None)]
        if self._due_s is not None:
            times.append(self._due_s)
        return min(times, default=None)

    @staticmethod
    def _satisfied(awaited: AwaitedDevices) -> bool:
        others = awaited.frozen.others if awaited.frozen else awaited.node.requested - awaited.req
        return policy.available(len(awaited.node.usable), (others,)) >= awaited.req

    def advance(self, now_s: float) -> list[AwaitedDevices]:
        """Do what is due; the jobs that wait no longer: they have their devices (``spot.ready``), or are given up."""
        while self._due_s is not None and self._due_s <= now_s:
            self._step(self._due_s)
        for at_s, gpuid, node in list(self._arriving):
            if at_s <= now_s:
                self._arriving.remove((at_s, gpuid, node))
                node.usable.add(gpuid)
                self.changed = True
        for at_s, gpuid, node in list(self._leaving):
            if at_s <= now_s:
                self._leaving.remove((at_s, gpuid, node))
                node.usable.discard(gpuid)
                self.changed = True
        settled = [each for each in self._line if self._settle(each, now_s)]
        for each in settled:
            self._line.remove(each)
            each.node.awaited.remove(each)
        if self._steps is None:
            self._serve(now_s)
        return settled

    def _settle(self, awaited: AwaitedDevices, now_s: float) -> bool:
        looks = awaited.frozen is None or awaited.frozen.looks(now_s)
        awaited.spot.ready = looks and self._satisfied(awaited)
        return awaited.spot.ready or (awaited.ends_s is not None and awaited.ends_s <= now_s)

    # -------------------------------------------------------------------------------------------------- reconfiguration

    def _serve(self, now_s: float) -> None:
        """Begin the next reconfiguration, if there is any."""
        self._steps = self._next(now_s)
        self._due_s = None if self._steps is None else next(self._steps)

    def _next(self, now_s: float) -> Steps | None:
        if self._has(KubeCompFault.STALE_DEMAND):
            return self._serve_note(self._notes.popleft(), now_s) if self._notes else None
        # The first that lacks something beyond what is on its way.
        awaited = next((each for each in self._line if self._shortfall(each)), None)
        return None if awaited is None else self._serve_job(awaited, now_s)

    def _step(self, now_s: float) -> None:
        assert self._steps is not None
        try:
            self._due_s = self._steps.send(now_s)
        except StopIteration:
            self._serve(now_s)

    def _shortfall(self, awaited: AwaitedDevices) -> int:
        """Return the single-move rule, on what is on the node's ports."""
        if awaited.spot.ready or awaited not in self._line:
            return 0
        attached = len(awaited.node.usable) + sum(node is awaited.node for _, _, node in self._arriving)
        return policy.demand(awaited.req, policy.available(attached, (awaited.node.requested - awaited.req,)))

    def _serve_job(self, awaited: AwaitedDevices, now_s: float) -> Steps:
        """Until the job lacks nothing; too few candidates: again after a rest."""
        began, self._delay_s = False, 0.0
        self._refused.clear()
        while self._shortfall(awaited):
            now_s = yield from self._ask_pods(now_s)
            now_s = yield self._moves.read(self.name, now_s)
            chosen = self._plan(awaited.node, self._shortfall(awaited))
            if not chosen:
                first_s, last_s = self._timing.requeue_first_s, self._timing.requeue_last_s
                self._delay_s = min(2 * self._delay_s, last_s) if self._delay_s else first_s
                self._rests = True
                now_s = yield now_s + self._delay_s
                self._rests = False
                continue
            self._delay_s = 0.0
            self.reconfigurations += not began
            began = True
            for gpu in chosen:
                if self._shortfall(awaited):
                    now_s = yield self._move(awaited.node, gpu, now_s)

    def _serve_note(self, note: DemandNote, now_s: float) -> Steps:
        """Yield what the annotations say once the pods were asked, whatever has come of the job (fault 3)."""
        now_s = yield from self._ask_pods(now_s)
        node, demand, before = note.node, note.demand, self.moved
        now_s = yield self._moves.read(self.name, now_s)
        chosen = self._plan(node, demand)
        for gpu in chosen:
            now_s = yield self._move(node, gpu, now_s)
        self.reconfigurations += self.moved > before

    def _ask_pods(self, now_s: float) -> Generator[float, float, float]:
        """Yield the published way to learn who holds what; the corrected one takes no time."""
        while self._has(KubeCompFault.PENDING_SPIN) and not all(self._running(now_s).values()):
            now_s = yield now_s + published.SPIN_S
        if self._execs is not None:
            held = {gpuid: key for node in self.nodes for gpuid, key in node.held.items()}
            self._execs.look(self._running(now_s), held)
            now_s = yield now_s + published.update_s(self._rng)
        return now_s

    def _running(self, now_s: float) -> dict[str, bool]:
        """Bound jobs that ask for devices -> whether they are shown Running."""
        return {key: spot.shown_s <= now_s for key, spot in self._bound.items()}

    def _plan(self, target: PooledNode, shortfall: int) -> Sequence[Gpu]:
        arriving = {gpuid for _, gpuid, _ in self._arriving}
        gpus = [
            Gpu(gpuid, node or "", None if node is None else "port")
            for gpuid, node in self.devices.items()
            if gpuid not in arriving
        ]
        believed = None if self._execs is None else self._execs.holdings()
        found = policy.candidates(
            gpus,
            target.name,
            holdings={node.name: believed or NodeHoldings(node.held, fresh=True) for node in self.nodes},
            claims={} if believed else {node.name: _claims(node) for node in self.nodes},
            excluded=self._refused,
            out_of_reach={gpu.gpuid for gpu in gpus if not self._moves.can_reach(gpu.gpuid, target.name)},
        )
        return policy.plan(found, shortfall, partial=self._partial)

    # ------------------------------------------------------------------------------------------------------ one device

    def _move(self, node: PooledNode, gpu: Gpu, now_s: float) -> float:
        """Return one device from where it is to the node; when it is over."""
        origin = next((each for each in self.nodes if each.name == gpu.node), None)
        if origin is not None:
            unasked = self._has(KubeCompFault.UNASKED_MOVE)
            if not unasked and (gpu.gpuid in origin.held or _keeps(origin)):
                self._refused.add(gpu.gpuid)
                return now_s  # its node needs it by now: planned anew without it
            if not unasked:
                origin.usable.discard(gpu.gpuid)
            now_s, detached_s = self._until(
                gpu.gpuid, None, now_s, lambda at_s: self._moves.detach(gpu.gpuid, at_s), self._timing.retries
            )
            self.devices[gpu.gpuid] = self._moves.node_of(gpu.gpuid, now_s)
            if self.devices[gpu.gpuid] is not None:
                origin.usable.add(gpu.gpuid)
                return now_s
            if unasked:
                # Nobody asked its node, which finds it gone as it would find it there.
                self._leaving.append((self._moves.usable_s(origin.name, gpu.gpuid, detached_s), gpu.gpuid, origin))
        tries = 1 if self._has(KubeCompFault.NO_RETRY) else self._timing.retries
        now_s, attached_s = self._until(
            gpu.gpuid, node.name, now_s, lambda at_s: self._moves.attach(gpu.gpuid, node.name, at_s), tries
        )
        self.devices[gpu.gpuid] = self._moves.node_of(gpu.gpuid, now_s)
        if self.devices[gpu.gpuid] == node.name:
            self.moved += 1
            self._arriving.append((self._moves.usable_s(node.name, gpu.gpuid, attached_s), gpu.gpuid, node))
        return now_s

    def _until(
        self, gpuid: str, wanted: str | None, now_s: float, operate: Callable[[float], float], tries: int
    ) -> tuple[float, float]:
        """Try until the device is where it is wanted, as often as the mover does; when a reading has shown it, and when
        the chassis had answered. Without read-back any answer is believed, and the first ends it (fault 6)."""
        if self._has(KubeCompFault.REPLY_BELIEVED):
            answered_s = operate(now_s)
            return answered_s, answered_s
        answered_s = now_s
        for attempt in range(tries):
            if attempt:
                now_s += self._timing.retry_backoff_s * 2 ** (attempt - 1)
            answered_s = operate(now_s)
            now_s = self._moves.read_one(gpuid, answered_s)
            if self._moves.node_of(gpuid, now_s) == wanted:
                break
            now_s += self._timing.read_back_bound_s
        return now_s, answered_s


def _keeps(node: PooledNode) -> bool:
    """Return whether the node has no device to spare beyond what its jobs need."""
    free = len(node.usable) - len(node.held)
    return free <= policy.kept_back(_claims(node), node.held)


def _claims(node: PooledNode) -> list[Claim]:
    return [Claim(awaited.key, node.name, awaited.req, bound=False) for awaited in node.awaited]
