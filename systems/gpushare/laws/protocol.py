"""The laws of GPU Share's protocol: promises in a node's ledger, annotations, bindings and containers, in their order.

A part of a GPU is promised in the ledger, then the pod is annotated and bound, then its containers are given the part,
then the annotations call it assigned.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.gpushare import names
from mews.systems.gpushare.config import EVICT
from mews.systems.gpushare.journal import GPUS, PROMISES, UNHEALTHY, WITHHELD
from mews.systems.gpushare.laws.mended import SharedAgain
from mews.systems.gpushare.promise_books import PromiseBooks

EXTENDER = "extender"
SEEN_S = 2.0
"""Within which whoever promises has seen what others wrote: a watch that lags, a look at NVML."""


class PromisesFit(Invariant[RunState]):
    """The promises to bound pods that have not ended never exceed their GPU. A promise that never becomes a binding
    does not bind anybody."""

    number = 40
    name = "what is promised of a shared GPU never exceeds it"
    events = frozenset({("api", GPUS), *PromiseBooks.events})

    def __init__(self, books: PromiseBooks, known: str = "") -> None:
        self._known = known
        self._books = books
        self._sizes: dict[tuple[str, str], int] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge the sums whenever a promise or a binding is made."""
        self._books.take(line)
        node = line.actor.partition("/")[2]
        if line.event == GPUS:
            self._sizes |= {(node, gpu): memory for gpu, memory in line.fields["gpus"].items()}
        elif line.event == PROMISES:
            yield from self._judge(line, node)
        elif line.event == "bound":
            yield from self._judge(line, line.fields["node"])

    def _judge(self, line: Line, node: str) -> Iterator[Breach]:
        for gpu, promises in self._books.sums(node).items():
            total, size = sum(each.memory for each in promises), self._sizes.get((node, gpu))
            if size is not None and total > size:
                pods = ", ".join(sorted(each.pod for each in promises))
                what = f"{gpu} of {node} has {size}, and {total} of it are promised to {pods}"
                last = max((each.line for each in promises if each.line is not line), default=None, key=_number)
                yield Breach((node, gpu, str(total)), what, line, after=last, known=self._known)


class PromiseFirst(Invariant[RunState]):
    """A component promises a part of a GPU in the ledger before it names that GPU in a pod's annotations or binds the
    pod. Of two replicas, one is refused there."""

    number = 41
    name = "a pod's annotations name the GPU that the ledger promised to it before"
    events = PromiseBooks.events

    def __init__(self, books: PromiseBooks) -> None:
        self._books = books
        self._doubts: list[tuple[Line, str, str]] = []
        self._stood: dict[tuple[str, str], float] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge annotations; where lines of two watches may be exchanged, once those of the other had their time. A
        promise may be struck out again within that time: one that stood at any moment of it counts."""
        self._books.take(line)
        lag_s = state.bound_s("lag_s") or 0.0
        if line.event == PROMISES:
            if lag_s:
                self._remember(line.t, lag_s)
            self._doubts = [each for each in self._doubts if not self._is_promised(each[1], each[2])]
        elif line.event == "annotations" and line.actor.startswith("pod/"):
            uid, gpu = line.fields["uid"], line.fields["annotations"].get(names.UUID)
            pod = self._books.pods.get(uid)
            if gpu is None or pod is None or pod.given or self._is_promised(uid, gpu):
                return
            if not lag_s or line.t - self._stood.get((uid, gpu), -math.inf) > lag_s:
                self._doubts.append((line, uid, gpu))
                yield from self._judge(line.t, lag_s)

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge what could not be judged before."""
        if self._doubts:
            yield from self._judge(t, state.bound_s("lag_s") or 0.0)

    def _remember(self, t: float, lag_s: float) -> None:
        """Until when promises stood that were struck out or replaced lately."""
        self._stood = {key: until for key, until in self._stood.items() if t - until <= lag_s}
        self._stood |= {(uid, had.gpu): t for uid, had in self._books.before.items() if had is not None}

    def _is_promised(self, uid: str, gpu: str) -> bool:
        promise = self._books.promises.get(uid)
        return promise is not None and promise.gpu == gpu

    def _judge(self, t: float, lag_s: float) -> Iterator[Breach]:
        due = [each for each in self._doubts if t - each[0].t >= lag_s]
        self._doubts = [each for each in self._doubts if t - each[0].t < lag_s]
        for line, uid, gpu in due:
            promise = self._books.promises.get(uid)
            says = "promises it nothing" if promise is None else f"promises it {promise.gpu}"
            pod = line.actor.removeprefix("pod/")
            what = f"{pod} is annotated with {gpu}, and the ledger {says}"
            owner = self._books.pods.get(uid)
            bound = owner.bound if owner is not None else None
            after = promise.line if promise is not None else bound
            yield Breach((uid, gpu), what, line, after=after)


class NothingOfWithheld(Invariant[RunState]):
    """A GPU that the pool wants back is withheld in the ledger itself, so that no later promise names it. A broken GPU
    is noticed within moments. Pods with earlier promises keep the GPU."""

    number = 43
    name = "nothing is promised of a GPU that is withheld or broken"
    events = frozenset({("api", GPUS), ("api", UNHEALTHY), ("api", WITHHELD), *PromiseBooks.events})

    def __init__(self, books: PromiseBooks) -> None:
        self._books = books
        self._withheld: dict[str, Line] = {}
        self._broken: dict[tuple[str, str], Line] = {}
        self._order: dict[str, Sequence[str]] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge new promises to pods on their way to a node."""
        self._books.take(line)
        node = line.actor.partition("/")[2]
        if line.event == WITHHELD:
            self._withheld[node] = line
        elif line.event == GPUS:
            self._order[node] = tuple(line.fields["gpus"])
            self._note(node, "plugin", line.fields["unusable"], line)
        elif line.event == UNHEALTHY:
            gpus = self._order.get(node, ())
            self._note(node, "marked", [gpus[i] for i in line.fields["indices"] if i < len(gpus)], line)
        elif line.event == PROMISES:
            yield from self._judge(line, node, SEEN_S + (state.bound_s("lag_s") or 0.0))

    def _note(self, node: str, by: str, gpus: Sequence[str], line: Line) -> None:
        for key in [key for key in self._broken if key[0] == f"{node}/{by}" and key[1] not in gpus]:
            del self._broken[key]
        for gpu in gpus:
            self._broken.setdefault((f"{node}/{by}", gpu), line)

    def _judge(self, line: Line, node: str, seen_s: float) -> Iterator[Breach]:
        withheld = self._withheld.get(node)
        for uid, row in line.fields["made"].items():
            had, pod = self._books.before.get(uid), self._books.pods.get(uid)
            # One that is bound may be told the GPU of another by its kubelet: that is written down as it is.
            if pod is None or pod.bound is not None or (had is not None and had.gpu == row["gpu"]):
                continue
            gpu, key = row["gpu"], (uid, row["gpu"])
            if withheld is not None and gpu in withheld.fields["gpus"]:
                yield Breach(key, f"{row['pod']} is promised part of {gpu}, which is withheld", line, after=withheld)
            for by in ("plugin", "marked"):
                broken = self._broken.get((f"{node}/{by}", gpu))
                if broken is not None and line.t - broken.t > seen_s:
                    yield Breach(key, f"{row['pod']} is promised part of {gpu}, which is broken", line, after=broken)


class EndedGiveBack(Invariant[RunState]):
    """A component that makes a promise removes the promises to ended pods: their memory is free for others."""

    number = 44
    name = "a new promise strikes out those of pods that have ended"
    events = PromiseBooks.events

    def __init__(self, books: PromiseBooks) -> None:
        self._books = books

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a ledger in which a pod on its way to the node is promised something."""
        self._books.take(line)
        if line.event != PROMISES or not any(self._is_unbound(uid) for uid in line.fields["made"]):
            return
        seen_s, node = SEEN_S + (state.bound_s("lag_s") or 0.0), line.actor.partition("/")[2]
        for uid, promise in self._books.promises.items():
            pod = self._books.pods.get(uid)
            if promise.node != node or pod is None or pod.over is None or line.t - pod.over.t <= seen_s:
                continue
            what = f"the ledger of {node} has {promise.memory} of {promise.gpu} for {promise.pod}, which has ended"
            yield Breach((uid, node), what, line, after=pod.over)

    def _is_unbound(self, uid: str) -> bool:
        pod = self._books.pods.get(uid)
        return pod is not None and pod.bound is None


class TightestFirst(Invariant[RunState]):
    """A pod is promised the GPU with the least room that is enough, and the first of equal ones (contract gpushare.md
    section 2). The law judges what is certain: the memory of ended pods may count or not. It does not judge a node that
    changed a moment ago."""

    number = 45
    name = "a pod is promised the GPU that fits it best"
    events = frozenset({("api", GPUS), ("api", UNHEALTHY), ("api", WITHHELD), *PromiseBooks.events})

    def __init__(self, books: PromiseBooks) -> None:
        self._books = books
        self._sizes: dict[str, Mapping[str, int]] = {}
        self._changed: dict[str, float] = {}
        self._unusable: dict[tuple[str, str], frozenset[str]] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge a promise to a pod on its way to the node."""
        self._books.take(line)
        node = line.actor.partition("/")[2]
        if line.event == PROMISES:
            if not state.bound_s("lag_s") and line.t - self._changed.get(node, -math.inf) > SEEN_S:
                yield from self._judge(line, node)
        elif line.event in (GPUS, UNHEALTHY, WITHHELD):
            self._note(line, node)

    def _note(self, line: Line, node: str) -> None:
        fields, self._changed[node] = line.fields, line.t
        if line.event == GPUS:
            self._sizes[node] = fields["gpus"]
            self._unusable[node, GPUS] = frozenset(fields["unusable"])
        elif line.event == WITHHELD:
            self._unusable[node, WITHHELD] = frozenset(fields["gpus"])
        else:
            order = tuple(self._sizes.get(node, ()))
            self._unusable[node, UNHEALTHY] = frozenset(order[i] for i in fields["indices"] if i < len(order))

    def _judge(self, line: Line, node: str) -> Iterator[Breach]:
        if len(line.fields["made"]) != 1:
            return
        [(uid, row)] = line.fields["made"].items()
        pod, sizes = self._books.pods.get(uid), self._sizes.get(node, {})
        if pod is None or pod.bound is not None or row["gpu"] not in sizes or self._has_given(node):
            return
        least, most = (self._free(node, uid, ended=ended) for ended in (True, False))
        there = sizes.keys() - frozenset().union(*(self._unusable.get((node, by), frozenset()) for by in _SORTS))
        order = list(sizes)
        for gpu in (each for each in order if each in there and row["memory"] <= least[each]):
            alike = least[gpu] == most[gpu] == least[row["gpu"]] == most[row["gpu"]]
            if most[gpu] < least[row["gpu"]] or (alike and order.index(gpu) < order.index(row["gpu"])):
                what = f"{row['pod']} is promised {row['memory']} of {row['gpu']}, which has {least[row['gpu']]} free"
                before = [each.line for each in self._books.promises.values() if each.line is not line]
                last = max(before, default=None, key=_number)
                yield Breach((uid, node), f"{what}, when {gpu} has {most[gpu]}", line, after=last)
                return

    def _has_given(self, node: str) -> bool:
        """Return whether a pod there came with its annotations: no ledger has it."""
        pods = self._books.pods.values()
        return any(pod.given and (pod.bound is None or pod.bound.fields["node"] == node) for pod in pods)

    def _free(self, node: str, asking: str, *, ended: bool) -> dict[str, int]:
        """GPU -> what is free of it without the pod that asks. ``ended``: those that have ended still count."""
        free = dict(self._sizes[node])
        for uid, promise in self._books.promises.items():
            pod = self._books.pods.get(uid)
            counts = ended or pod is None or pod.over is None
            if promise.node == node and uid != asking and promise.gpu in free and counts:
                free[promise.gpu] -= promise.memory
        return free


_SORTS = (GPUS, UNHEALTHY, WITHHELD)


CALLED_S = 5.0
"""An extender that begins anew has called the waiting pods by then; another component has gone on with its work."""


_EVICTED, _BUDGETS = "EvictionByEvictionAPI", ("disruption budget", "PodDisruptionBudget")


class WithheldOnce(Invariant[RunState]):
    """A plugin that is asked to give a GPU back withholds it, and answers, for good. It withholds it again only for
    another request, even one from before it was shared again, or after a restart without a known answer. Unless it may
    evict (``onShared``), it refuses a GPU that pods share, and withholds it at no time. It evicts all of them or none:
    where a disruption budget protects one, the others stay as well. A GPU that was mended is shared again."""

    number = 46
    name = "a GPU is withheld once for each time that the pool asks for it"
    events = frozenset(
        {("api", event) for event in (WITHHELD, "asked", "refused", "condition")}
        | {("component", "started"), *PromiseBooks.events}
        | SharedAgain.events
    )

    def __init__(self, books: PromiseBooks, on_shared: str) -> None:
        self._books, self._evicts = books, on_shared == EVICT
        self._now: dict[str, frozenset[str]] = {}
        self._given_up: dict[tuple[str, str], Line] = {}
        self._asks: dict[tuple[str, str], int] = {}
        """Of a GPU that is withheld or was, the requests to its node since then."""
        self._started_s = -math.inf
        self._mended = SharedAgain()
        self._evicted: dict[str, Line] = {}
        """Node -> the first eviction of a pod there since one of its GPUs was asked for."""

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge what is withheld anew."""
        self._books.take(line)
        if (line.layer, line.event) in SharedAgain.events:
            self._mended.on_line(line)
        if line.layer == "component":
            self._given_up.clear()
            self._started_s = line.t
        elif line.event == "asked":
            node = line.fields.get("node")
            self._evicted.pop(str(node), None)
            self._given_up = {key: before for key, before in self._given_up.items() if key[0] != node}
            self._asks = {key: count + (key[0] == node) for key, count in self._asks.items()}
        elif line.event == "condition":
            self._note_eviction(line)
        elif line.event == "refused":
            yield from self._refused(line)
        elif line.event == WITHHELD:
            yield from self._withheld(line, line.actor.partition("/")[2], bool(state.bound_s("lag_s")))

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge GPUs that are kept back though they were mended."""
        return self._mended.on_time(t, state, self.number)

    def _withheld(self, line: Line, node: str, lags: bool) -> Iterator[Breach]:
        before, now = self._now.get(node, frozenset()), frozenset(line.fields["gpus"])
        self._now[node] = now
        for gpu in sorted(now - before):
            given_up = self._given_up.pop((node, gpu), None)
            asks = self._asks.get((node, gpu), 0)
            yield from self._shared(line, node, gpu, lags)
            self._asks[node, gpu] = 0
            if given_up is not None and not lags and asks == 0:
                what = f"{gpu} of {node} is withheld again, and nobody has asked for it since it was shared again"
                yield Breach((node, gpu, str(line.number)), what, line, after=given_up)
        if line.t - self._started_s > CALLED_S:
            self._given_up |= {(node, gpu): line for gpu in before - now}

    def _note_eviction(self, line: Line) -> None:
        uid = str(line.fields.get("uid")) if line.fields["reason"] == _EVICTED else ""
        pod, promise = self._books.pods.get(uid), self._books.promises.get(uid)
        if pod is not None and promise is not None and pod.bound is not None:
            self._evicted.setdefault(promise.node, line)

    def _refused(self, line: Line) -> Iterator[Breach]:
        evicted = self._evicted.get(str(line.fields["node"]))
        if evicted is not None and any(each in str(line.fields["reason"]) for each in _BUDGETS):
            what = f"{evicted.actor} is evicted for a GPU that {line.fields['node']} refuses for a disruption budget"
            yield Breach((evicted.actor, str(evicted.number)), what, evicted)

    def _shared(self, line: Line, node: str, gpu: str, lags: bool) -> Iterator[Breach]:
        promises = () if self._evicts or lags else self._books.sums(node).get(gpu, ())
        sharers = [each for each in promises if line.t - each.line.t > SEEN_S]
        if sharers:
            what = f"{gpu} of {node} is withheld, and {sharers[0].pod} shares it"
            yield Breach((node, gpu, "shared", str(line.number)), what, line, after=sharers[-1].line)


class CalledWhenRoom(Invariant[RunState]):
    """A restarted extender marks the waiting pods that fit a GPU of its ledger, or promises them one. It does not know
    which pods were refused before, and a scheduler asks again on a change."""

    number = 47
    name = "an extender that begins anew calls the pods that wait and fit"
    ours_alone = True
    of_time = True
    events = frozenset(
        {("api", GPUS), ("api", UNHEALTHY), ("api", WITHHELD), ("api", "condition"), *PromiseBooks.events}
        | {("component", event) for event in ("started", "killed", "crashed")}
        | {("step", event) for event in ("begun", "passed", "failed")}
    )

    def __init__(self, books: PromiseBooks, resource: str) -> None:
        self._books = books
        self._resource = resource
        self._sizes: dict[str, Mapping[str, int]] = {}
        self._doubtful: set[str] = set()
        """Nodes with GPUs that are withheld or broken."""
        self._waiting: dict[str, Line] = {}
        self._due: dict[str, Line] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Start and stop the clocks; the first line beyond one is where the call is missing."""
        self._books.take(line)
        overdue = [uid for uid, since in self._due.items() if line.t - since.t > CALLED_S]
        for uid in overdue:
            since = self._due.pop(uid)
            if uid in self._waiting and self._fits(uid) and not state.bound_s("lag_s"):
                pod = self._waiting[uid].actor.removeprefix("pod/")
                what = (
                    f"{pod} waits and fits, and nobody has called it {line.t - since.t:.1f} s after {since.actor} began"
                )
                yield Breach((uid, str(since.number)), what, line, after=since)
        if line.layer == "component":
            self._component(line)
        elif line.actor.startswith("pod/"):
            self._pod(line)
        elif line.event == GPUS:
            self._sizes[line.actor.partition("/")[2]] = line.fields["gpus"]
        elif line.event in (UNHEALTHY, WITHHELD):
            self._doubtful.add(line.actor.partition("/")[2])

    def _component(self, line: Line) -> None:
        self._due.clear()
        if line.event == "started" and line.actor.endswith(EXTENDER):
            self._due = {uid: line for uid in self._waiting if self._fits(uid)}

    def _pod(self, line: Line) -> None:
        uid = line.fields["uid"]
        if line.event == "condition" and line.fields["type"] == "PodScheduled" and line.fields["status"] == "False":
            self._waiting[uid] = line
        elif line.event in ("bound", "deleted"):
            self._waiting.pop(uid, None)
            self._due.pop(uid, None)
        elif line.event == "annotations" and names.ROOM in line.fields["annotations"]:
            self._due.pop(uid, None)

    def _fits(self, uid: str) -> bool:
        pod = self._books.pods.get(uid)
        wanted = (pod.created.fields.get("requests") or {}).get(self._resource, 0) if pod is not None else 0
        return wanted > 0 and any(
            wanted <= size - sum(each.memory for each in self._books.promises.values() if each.gpu == gpu)
            for node, gpus in self._sizes.items()
            if node not in self._doubtful
            for gpu, size in gpus.items()
        )


def _number(line: Line) -> int:
    return line.number
