"""The laws of the pool: whose a device is, when a pod is bound to it, how it goes, and that it comes back.

One model of all devices replays the journal; each law looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from mews.kube.dra.claim_lines import ALLOCATED, FREED, RESERVED
from mews.kube.system.invariant import Breach, Invariant, RunState
from mews.kube.system.journal import Line
from mews.systems.pooldra.config import PoolDraConfig
from mews.systems.pooldra.journal import LET_GO, OFFERED
from mews.systems.pooldra.names import HandOver


class _Gpu(Struct):
    """A device: the host that it is on, whether it was shown there, and whether that host has let go of it since;
    ``is_down``: it has no link, so that no listing has it, and nobody can detach it; ``up``: since when it has one
    again."""

    host: str = ""
    attached: Line | None = None
    shown: Line | None = None
    let_go: Line | None = None
    is_down: bool = False
    up: Line | None = None


class _Claim(Struct):
    """A claim that has devices: UUIDs by their names ``pool/device``, "" where no slice has shown which it is."""

    name: str
    allocated: Line
    gpus: dict[str, str]
    pods: list[str] = field(default_factory=list)


class PoolModel:
    """What the lines have said so far. Each law hands it each line; a line is taken in once."""

    def __init__(self, config: PoolDraConfig) -> None:
        self.pools = frozenset(each.pool for each in config.chassis)
        self.gpus: dict[str, _Gpu] = {}
        self.claims: dict[str, _Claim] = {}
        self.prepared: dict[str, dict[str, Line]] = {}
        """UUID -> the claims (by uid) that are prepared with it."""
        self.offers: dict[str, Line] = {}
        self.lost_hosts: set[str] = set()
        self.restarted: Line | None = None
        """The last line of a component or a fault: clocks begin anew."""
        self.freed: dict[str, Line] = {}
        """UUID -> when the last claim gave it back."""
        self._names: dict[str, str] = {}
        self._uuids: dict[str, str] = {}
        """By GPUID."""
        self._last = -1

    def take(self, line: Line) -> None:
        """Take in a line."""
        if line.number == self._last:
            return
        self._last = line.number
        if line.layer in ("component", "fault"):
            self.restarted = line
            kind, _, host = line.actor.partition("/")
            if kind == "kubelet":
                self._lose(host, line.event != "started")
        elif line.layer == "host" and line.event in ("powered-off", "powered-on"):
            self.restarted = line
            self._lose(line.actor.partition("/")[2], line.event == "powered-off")
        elif line.layer in ("chassis", "host"):
            self._hardware(line)
        elif line.event in (ALLOCATED, RESERVED, FREED):
            self._claim(line)
        elif line.event in ("claim-prepared", "claim-unprepared"):
            self._prepare(line)
        elif line.event == LET_GO:
            self.gpu(line.fields["gpu"]).let_go = line
        elif line.event == OFFERED:
            self.offers[line.actor] = line
            self._names |= {f"{line.fields['pool']}/{name}": uuid for name, uuid in line.fields["gpus"].items()}

    def uuid_of(self, line: Line) -> str:
        """Return the UUID of a line's device. A chassis may have lost it: then the last that was told counts."""
        gpuid = str(line.fields.get("gpuid"))
        if line.fields.get("uuid"):
            self._uuids[gpuid] = str(line.fields["uuid"])
        return self._uuids.get(gpuid, "")

    def gpu(self, uuid: str) -> _Gpu:
        """Return what is known of a device."""
        return self.gpus.setdefault(uuid, _Gpu())

    def claims_of(self, uuid: str) -> list[_Claim]:
        """Return the claims that have a device, under whatever name."""
        return [each for each in self.claims.values() if uuid in each.gpus.values()]

    def used(self) -> set[str]:
        """Return the devices that claims have."""
        return {uuid for each in self.claims.values() for uuid in each.gpus.values()}

    def _lose(self, host: str, is_lost: bool) -> None:
        self.lost_hosts.add(host) if is_lost else self.lost_hosts.discard(host)

    def _hardware(self, line: Line) -> None:
        if line.event == "table":
            for row in line.fields["devices"].values() if line.layer == "chassis" else ():
                if row.get("uuid"):
                    self._uuids[row["gpuid"]] = row["uuid"]
                    self.gpus[row["uuid"]] = _Gpu(str(row.get("host") or ""), line if row.get("host") else None, line)
            return
        gpu = self.gpu(self.uuid_of(line))
        if line.event == "attached":
            gpu.host, gpu.attached, gpu.shown, gpu.let_go = str(line.fields["host"] or ""), line, None, None
        elif line.event in ("detached", "removed", "edited"):
            gpu.host, gpu.attached, gpu.shown, gpu.let_go = str(line.fields["host"] or ""), None, None, None
        elif line.event == "nvml-visible":
            gpu.shown = line
        elif line.layer == "chassis" and line.event in ("link-down", "link-up"):
            gpu.is_down, gpu.up = line.event == "link-down", line

    def _claim(self, line: Line) -> None:
        uid = str(line.fields["uid"])
        if line.event == FREED:
            for uuid in self.claims.pop(uid).gpus.values() if uid in self.claims else ():
                self.freed[uuid] = line
        elif line.event == RESERVED:
            if uid in self.claims:
                self.claims[uid].pods = list(line.fields["pods"])
        else:
            names = [str(each).partition("/")[2] for each in line.fields["alone"]]
            found = {name: self._names.get(name, "") for name in names}
            self.claims[uid] = _Claim(str(line.fields["claim"]), line, found)

    def _prepare(self, line: Line) -> None:
        uid = str(line.fields["uid"])
        for each in self.prepared.values():
            each.pop(uid, None)
        for name in line.fields.get("alone", ()) if line.event == "claim-prepared" else ():
            if uuid := self._names.get(str(name), ""):
                self.prepared.setdefault(uuid, {})[uid] = line
                if uid in self.claims:  # a name of a node may be another device's than when it was allocated
                    self.claims[uid].gpus[str(name)] = uuid


class _PoolLaw(Invariant[RunState]):
    """What all of them share. A watch that lags shows lines in another order than they came about: not judged then."""

    number = 0
    name = ""

    def __init__(self, model: PoolModel, config: PoolDraConfig) -> None:
        self._model = model
        self._config = config

    def on_line(self, line: Line, state: RunState) -> Iterator[Breach]:
        """Take the line in, and judge it."""
        self._model.take(line)
        if not state.bound_s("lag_s"):
            yield from self._judge(line)

    def _judge(self, line: Line) -> Iterator[Breach]:
        return iter(())


class BoundOnceShown(_PoolLaw):
    """A pod is bound once its node's host has shown each device of a pool that its claims have. Where a claim is
    allocated again, no claim has a device of a pool by then."""

    number = 90
    name = "no pod is bound before its host shows the devices of its claims"

    def _judge(self, line: Line) -> Iterator[Breach]:
        if line.layer != "api" or line.event != "bound":
            return
        namespace, _, pod = line.actor.partition("/")[2].partition("/")
        for uid, claim in self._model.claims.items():
            if pod not in claim.pods or claim.name.partition("/")[0] != namespace:
                continue
            for name, uuid in claim.gpus.items():
                if name.partition("/")[0] not in self._model.pools:
                    continue
                gpu = self._model.gpu(uuid)
                if self._config.hand_over is HandOver.REALLOCATE:
                    what = f"pod {pod} is bound, and {claim.name} has {uuid} of the pool and not of its node"
                elif gpu.shown is None or gpu.host != line.fields["node"]:
                    what = f"pod {pod} is bound to {line.fields['node']}, which does not show {uuid} of {claim.name}"
                else:
                    continue
                yield Breach((uid, line.actor, uuid), what, line, after=claim.allocated)


class LetGoFirst(_PoolLaw):
    """A host releases a device before it is detached, and no claim on the device is prepared then. A host that is lost
    is not asked."""

    number = 91
    name = "a device is detached once its host has let go of it"

    def _judge(self, line: Line) -> Iterator[Breach]:
        if line.layer != "chassis" or line.event != "detach-begun":
            return
        uuid = self._model.uuid_of(line)
        gpu = self._model.gpu(uuid)
        host = gpu.host
        if gpu.let_go is None and host not in self._model.lost_hosts:
            yield Breach((uuid, str(line.number)), f"{uuid} is detached from {host}, which has not let go of it", line)
        for uid, prepared in self._model.prepared.get(uuid, {}).items():
            if uid in self._model.claims and prepared.actor.partition("/")[2] == host:
                what = f"{uuid} is detached from {host}, and {prepared.fields['claim']} is prepared with it"
                yield Breach((uuid, uid), what, line, after=prepared)


class OneClaimPerGpu(_PoolLaw):
    """A device with two names, one in the pool and one on its node, is prepared for one claim only. Where claims keep
    their device, it is allocated to one claim only."""

    number = 92
    name = "no device is given to two claims under two names"

    def _judge(self, line: Line) -> Iterator[Breach]:
        if line.event == "claim-prepared":
            for uuid, prepared in self._model.prepared.items():
                others = [each for uid, each in prepared.items() if uid != line.fields["uid"]]
                if line.fields["uid"] in prepared and others:
                    what = f"{uuid} is prepared for {line.fields['claim']} and {others[0].fields['claim']}"
                    yield Breach((uuid, str(line.number)), what, line, after=others[0])
        elif line.event == ALLOCATED and self._config.hand_over is not HandOver.REALLOCATE:
            for uuid in filter(None, self._model.claims[str(line.fields["uid"])].gpus.values()):
                both = self._model.claims_of(uuid)
                if len(both) > 1:
                    what = f"{uuid} is allocated to {' and '.join(each.name for each in both)}"
                    yield Breach((uuid, str(line.number)), what, line, after=both[0].allocated)


class OfferedOnce(_PoolLaw):
    """A device that no claim has is in one slice at most: in two slices it could be allocated twice."""

    number = 93
    name = "no free device is offered in two slices"

    def _judge(self, line: Line) -> Iterator[Breach]:
        if line.event != OFFERED:
            return
        for uuid in line.fields["gpus"].values():
            others = [
                other
                for actor, other in self._model.offers.items()
                if actor != line.actor and uuid in other.fields["gpus"].values()
            ]
            # Slices of one pool change one after the other, and none counts until all have: allocators see to that.
            others = [each for each in others if each.fields["pool"] != line.fields["pool"]]
            if others and not self._model.claims_of(uuid):
                what = f"{uuid} is offered in {line.actor} and {others[0].actor}"
                yield Breach((uuid, str(line.number)), what, line, after=others[0])


class ComesBack(_PoolLaw):
    """A device on a host goes back to the pool within ``returned_s`` once no claim has the device."""

    number = 94
    name = "what no claim uses goes back to the pool"
    of_time = True

    def on_time(self, t: float, state: RunState) -> Iterator[Breach]:
        """Judge the devices on hosts."""
        bound_s = state.bound_s("returned_s")
        if bound_s is None:
            return
        # Every line of a run comes here: what has not been on its host for so long cannot be late.
        late_s = t - bound_s - self._config.keep_s
        old = [
            (uuid, gpu, gpu.attached)
            for uuid, gpu in self._model.gpus.items()
            if gpu.attached is not None and gpu.attached.t < late_s and gpu.host and not gpu.is_down
        ]
        if not old:
            return
        restarted_s = self._model.restarted.t if self._model.restarted else 0.0
        used = self._model.used()
        for uuid, gpu, attached in old:
            if uuid in used:
                continue
            freed = self._model.freed.get(uuid, attached)
            up_s = gpu.up.t if gpu.up else 0.0
            since_s = state.clock_from(self.number, max(attached.t, freed.t, up_s, restarted_s))
            if t - since_s > bound_s + self._config.keep_s:
                what = f"{uuid} is on {gpu.host}, and no claim has had it for {t - since_s:.0f} s"
                yield Breach((uuid, str(freed.number)), what, attached, after=freed)


_LAWS = (BoundOnceShown, LetGoFirst, OneClaimPerGpu, OfferedOnce, ComesBack)


def laws(config: PoolDraConfig) -> Sequence[Invariant[RunState]]:
    """Return all of them, for one run."""
    model = PoolModel(config)
    return [law(model, config) for law in _LAWS]
