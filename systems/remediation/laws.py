"""The laws of the remediation: who may be sent away, which GPU is reset, how many nodes, and that they come back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mews.kube.system.invariant import Breach, Invariant, ObservedHolding, RunState
from mews.kube.system.journal import Line
from mews.systems.remediation.config import APPLICATION_XIDS, DEVICE, RemediationConfig
from mews.systems.remediation.journal import BEGUN, BROKEN, EVICTING, GIVEN_UP, MENDED, OVER
from mews.systems.remediation.records import Cordon

_ENDED = frozenset({("api", MENDED), ("api", GIVEN_UP)})


class _Devices:
    """What GPUs are called: UUID of the GPUIDs of the hosts, by the hosts' own events."""

    events = frozenset({("host", "table"), ("host", "driver-bound"), ("host", "nvml-visible")})

    def __init__(self) -> None:
        self._uuids: dict[str, str] = {}

    def take(self, line: Line) -> None:
        if line.layer != "host":
            return
        for row in line.fields["devices"].values() if line.event == "table" else (line.fields,):
            if row.get("gpuid") and row.get("uuid"):
                self._uuids[row["gpuid"]] = row["uuid"]

    def held(self, holding: ObservedHolding) -> set[str]:
        """Return the UUIDs of all that is held there, wholly or in part."""
        return {self._uuids.get(device, device) for device in (*holding.devices, *holding.parts_of)}


class SentAwayForTheirGpu(Invariant[RunState]):
    """With ``drain: device``, a pod is evicted because of a GPU that it holds itself. With ``drain: node``, it is
    evicted because of a GPU of its node. Either way the GPU is broken: the driver has reported an XID of it, or has
    lost it, since it was mended."""

    number = 80
    name = "nobody is sent away but from a broken GPU"
    events = frozenset({("host", "xid"), ("host", "lost"), ("api", MENDED), ("api", EVICTING), *_Devices.events})

    def __init__(self, config: RemediationConfig) -> None:
        self._config = config
        self._devices = _Devices()
        self._broken: dict[str, Line] = {}
        self._mended: dict[str, Line] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge each pod that is marked."""
        self._devices.take(line)
        if line.layer == "host" and line.event in ("xid", "lost"):
            if line.fields.get("xid") not in APPLICATION_XIDS:
                self._broken[line.fields["uuid"]] = line
        elif line.event == MENDED:
            self._broken.pop(line.fields["gpu"], None)
            self._mended[line.fields["gpu"]] = line
        elif line.event == EVICTING:
            yield from self._judge(line, state)

    def _judge(self, line: Line, state: RunState) -> Iterator[Breach]:
        gpu, uid, pod = line.fields["gpu"], line.fields["uid"], line.fields["pod"]
        if gpu not in self._broken:
            what = f"{pod} is sent away for {gpu}, which is not broken"
            yield Breach((uid, gpu, "whole"), what, line, after=self._mended.get(gpu))
        holdings = [each for each in state.live_holdings() if each.uid == uid]
        if self._config.drain == DEVICE and not any(gpu in self._devices.held(each) for each in holdings):
            held = sorted(device for each in holdings for device in self._devices.held(each))
            what = f"{pod} is sent away for {gpu}, and holds {', '.join(held) or 'no device'}"
            yield Breach((uid, gpu), what, line, after=self._broken.get(gpu))


class ResetUnused(Invariant[RunState]):
    """A reset takes the GPU away from everything that runs on it."""

    number = 81
    name = "no GPU is reset that a pod holds"
    events = frozenset({("api", BROKEN), *_ENDED, ("host", "lost"), ("host", "driver-unbound"), *_Devices.events})

    def __init__(self) -> None:
        self._devices = _Devices()
        self._open: dict[str, Line] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge the driver's letting go of a GPU that is to be mended."""
        self._devices.take(line)
        if line.event == BROKEN:
            self._open[line.fields["gpu"]] = line
        elif line.event in (MENDED, GIVEN_UP):
            self._open.pop(line.fields["gpu"], None)
        elif line.event == "lost":
            self._open.pop(line.fields["uuid"], None)  # What becomes of it is its own doing.
        elif line.event == "driver-unbound" and line.fields["uuid"] in self._open:
            gpu = line.fields["uuid"]
            after = self._open[gpu]
            pods = [each.pod for each in state.live_holdings() if gpu in self._devices.held(each)]
            if pods:
                what = f"{gpu} is reset, and {', '.join(sorted(set(pods)))} hold it"
                yield Breach((gpu,), what, line, after=after)


class MarkedFirst(Invariant[RunState]):
    """A node is marked, and cordoned where required, in one write before any of its pods is evicted. Otherwise, pods
    that come to the node during this would be evicted again, and more nodes than permitted would lose pods."""

    number = 84
    name = "pods are sent away from nodes that are worked on"
    events = frozenset({("api", BEGUN), ("api", OVER), ("api", EVICTING)})

    def __init__(self) -> None:
        self._over: dict[str, Line] = {}
        self._begun: set[str] = set()

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Judge each pod that is marked; not where the lines of two watches may be exchanged."""
        if line.event == BEGUN:
            self._begun.add(line.actor)
        elif line.event == OVER:
            self._begun.discard(line.actor)
            self._over[line.actor] = line
        elif line.actor not in self._begun and not state.bound_s("lag_s"):
            what = f"{line.fields['pod']} is sent away, and its node is not worked on"
            yield Breach((line.fields["uid"],), what, line, after=self._over.get(line.actor))


class NodesAtATime(Invariant[RunState]):
    """A breaker limits how many nodes are worked on: however many GPUs break, so many nodes go on as before."""

    number = 82
    name = "no more nodes are worked on at a time than the share permits"
    events = frozenset({("api", BEGUN), ("api", OVER)})

    def __init__(self, config: RemediationConfig) -> None:
        self._config = config
        self._begun: dict[str, Line] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Count the nodes."""
        if line.event == OVER:
            self._begun.pop(line.actor, None)
            return
        last = max(self._begun.values(), default=None, key=lambda each: each.number)
        self._begun.setdefault(line.actor, line)
        most = self._config.nodes_at_a_time(len(self._config.nodes))
        if len(self._begun) > most:
            what = f"{len(self._begun)} of {len(self._config.nodes)} nodes are worked on, and at most {most} may be"
            yield Breach((line.actor,), what, line, after=last)


class NodesComeBack(Invariant[RunState]):
    """A node is cordoned while something is to be done for its GPUs, and not for longer."""

    number = 83
    name = "a node is given back once its GPUs are mended or given up"
    events = frozenset({("api", BROKEN), ("api", BEGUN), ("api", OVER), *_ENDED})

    def __init__(self) -> None:
        self._open: dict[str, set[str]] = {}
        self._begun: dict[str, Line] = {}
        self._idle: dict[str, Line] = {}

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Note what is to be done on which node."""
        node = line.actor
        if line.event == BROKEN:
            self._open.setdefault(node, set()).add(line.fields["gpu"])
            self._idle.pop(node, None)
        elif line.event in (MENDED, GIVEN_UP):
            self._open.get(node, set()).discard(line.fields["gpu"])
            if not self._open.get(node) and node in self._begun:
                self._idle[node] = line
        elif line.event == BEGUN:
            self._begun[node] = line
        elif line.event == OVER:
            self._begun.pop(node, None)
            self._idle.pop(node, None)
        return iter(())

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge the nodes on which nothing is to be done."""
        bound_s = state.bound_s("uncordon_s")
        for node, line in self._idle.items():
            if bound_s is not None and t - state.clock_from(self.number, line.t) > bound_s:
                cordoned = self._begun[node].fields["cordon"] == Cordon.OURS.value
                how = "is still cordoned" if cordoned else "is still worked on"
                what = f"{node.partition('/')[2]} {how} {bound_s:g} s after its last GPU was mended or given up"
                yield Breach((node, str(line.number)), what, self._begun[node], after=line)


def laws(config: RemediationConfig) -> Sequence[Invariant[RunState]]:
    """Return all of them, for one run."""
    return (SentAwayForTheirGpu(config), ResetUnused(), NodesAtATime(config), NodesComeBack(), MarkedFirst())
