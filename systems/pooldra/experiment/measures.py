"""What a run's journal says of the pods of a pool, and of the GPUs that were moved for them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from mews.kube.dra.claim_lines import ALLOCATED, FREED
from mews.kube.system.journal import Line
from mews.systems.pooldra.journal import OFFERED


class _Claim(Struct):
    """A claim's GPUs by UUID: those that it has, and those that it had and gave up to be allocated anew."""

    gpus: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    is_lost: bool = False
    was_prepared: bool = False


class _Gpu(Struct):
    """Whether a GPU that is on a host has been prepared for a claim there."""

    is_on_host: bool = False
    was_used: bool = False


class Measures(Struct):
    """``waits_s``: from a counted pod's creation until it runs. ``lost``: claims whose GPU another claim was given once
    it had been attached for them; ``doubled``: allocations of a GPU that another claim had; ``in_vain``: GPUs that went
    back without having been prepared for any claim; ``moves``: attaches; ``violations`` of laws."""

    waits_s: list[float] = field(default_factory=list)
    pods: int = 0
    moves: int = 0
    in_vain: int = 0
    lost: int = 0
    doubled: int = 0
    violations: int = 0


def measured(lines: Iterable[Line], counted: str) -> Measures:
    """Return the measures of a run; ``counted``: how the names of the pods begin whose waits count."""
    reading = _Reading(counted)
    for line in lines:
        reading.take(line)
    return reading.found


class _Reading:
    def __init__(self, counted: str) -> None:
        self.found = Measures()
        self._counted = counted
        self._names: dict[str, str] = {}
        self._created: dict[str, float] = {}
        self._claims: dict[str, _Claim] = {}
        self._gpus: dict[str, _Gpu] = {}

    def take(self, line: Line) -> None:
        if line.layer == "api" and line.actor.startswith("pod/"):
            self._pod(line)
        elif line.layer == "chassis" and line.event in ("attached", "detached"):
            self._moved(str(line.fields["uuid"]), on_host=line.event == "attached")
        elif line.event == OFFERED:
            self._names |= {f"{line.fields['pool']}/{name}": uuid for name, uuid in line.fields["gpus"].items()}
        elif line.event == ALLOCATED:
            self._allocated(line.fields)
        elif line.event == FREED and str(line.fields["uid"]) in self._claims:
            self._freed(str(line.fields["uid"]))
        elif line.event == "claim-prepared":
            self._claims.setdefault(str(line.fields["uid"]), _Claim()).was_prepared = True
            for name in line.fields["alone"]:
                self._gpus.setdefault(self._names.get(str(name), ""), _Gpu()).was_used = True
        elif line.layer == "invariant" and line.event == "violated":
            self.found.violations += 1

    def _pod(self, line: Line) -> None:
        name = line.actor.rpartition("/")[2]
        if line.event == "created":
            self._created[name] = line.t
        elif line.event == "phase" and line.fields["phase"] == "Running" and name in self._created:
            waited_s = line.t - self._created.pop(name)
            self.found.pods += 1
            if name.startswith(self._counted):
                self.found.waits_s.append(round(waited_s, 3))

    def _moved(self, uuid: str, *, on_host: bool) -> None:
        gpu = self._gpus.setdefault(uuid, _Gpu())
        self.found.moves += on_host
        self.found.in_vain += not on_host and gpu.is_on_host and not gpu.was_used
        gpu.is_on_host, gpu.was_used = on_host, False

    def _freed(self, uid: str) -> None:
        claim = self._claims[uid]
        if claim.was_prepared:
            del self._claims[uid]  # its pod has ended
        else:
            claim.before, claim.gpus = claim.gpus, frozenset()

    def _allocated(self, fields: Mapping[str, Any]) -> None:
        uid = str(fields["uid"])
        names = [str(each).partition("/")[2] for each in fields["alone"]]
        gpus = frozenset(filter(None, (self._names.get(name, "") for name in names)))
        claim = self._claims.setdefault(uid, _Claim())
        for other_uid, other in self._claims.items():
            if other_uid == uid:
                continue
            self.found.doubled += len(gpus & other.gpus)
            if gpus & other.before and not other.gpus and not other.is_lost:
                other.is_lost = True
                self.found.lost += self._gives_up(other)
        claim.gpus, claim.before, claim.is_lost = gpus, frozenset(), False

    def _gives_up(self, claim: _Claim) -> bool:
        """Return whether what it gave up is on a host: it was attached for it."""
        return any(self._gpus.get(uuid, _Gpu()).is_on_host for uuid in claim.before)
