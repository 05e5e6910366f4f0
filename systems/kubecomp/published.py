"""The published implementation's decisions, beside the corrected ones of ``policy``: values in, values out."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping

from msgspec import Struct, field

from mews.kube.api.objects import Object, annotations_of
from mews.kube.api.quantities import parse
from mews.kube.chassis.port import Listing
from mews.systems.kubecomp.listing import KnownChassis
from mews.systems.kubecomp.policy import NodeHoldings
from mews.systems.kubecomp.records import DEMAND, DST_NODE, GPU_DEMAND

PERMIT_BOUNDS: Mapping[str, tuple[float, float]] = {"10+30n": (10.0, 30.0), "15+5n": (15.0, 5.0)}
"""Permit's bound: seconds, and seconds for each missing device. The logs of the measured runs fit the first; the
published head has the second (contract kubecomp.md 3, point 2)."""

LOOK_S = 1.0
"""Permit's rest between two looks at the node."""

CACHED_SHARE = 22 / 73
CACHED_S = 0.027
ASKED_MEAN_S = 4.66
ASKED_LIMIT_S = 26.2
"""GPU availability update, 73 measured: in 22 of them nothing had to be asked; the others are multiples of the 0.4 s
that two calls of a client take which is throttled to five a second, exponential with this mean."""

SELECTION_S = 0.00017
SELECTION_PER_NODE_S = 0.00003
SELECTION_SPREAD = 0.5
"""Node selection has no published duration, only that none of it hangs on the GPUs moved: this is the median that our
own plugin takes by the machine's clock (``benchmarks.phases``, 2 to 100 nodes), with its spread as a logarithm's."""

SPIN_S = 0.4
"""Two calls of that client: one round over a pod that is Pending."""


def permit_bound_s(shortfall: int, bound: str) -> float:
    """Return how long Permit waits (fault 2), by one of ``PERMIT_BOUNDS``."""
    base_s, per_device_s = PERMIT_BOUNDS[bound]
    return base_s + per_device_s * shortfall


def pool_size(allocatable: Iterable[int]) -> int:
    """A pool is what its nodes advertise at the moment: nothing in flight, nothing unattached (fault 5)."""
    return sum(allocatable)


def prefilter_message(pod: str, req: int, free_by_pool: Mapping[str, int]) -> str | None:
    """Return why all pools together cannot take the pod, or None when they can; what is free may be below 0."""
    total = sum(free_by_pool.values())
    return None if total >= req else f"Pod {pod} requires {req} GPU but only {total} GPU in the pool."


def believed(listing: Listing | None, *, kind: str) -> KnownChassis:
    """What a reading shows is all there is; one that failed showed nothing (fault 5)."""
    entries = listing.devices if listing is not None else ()
    return KnownChassis({entry.device: entry for entry in entries if entry.kind == kind}, seen=True)


def required(pod: Object, resource: str) -> int:
    """Return what the first container asks for (fault 11)."""
    first = (pod.get("spec", {}).get("containers") or [{}])[0]
    amounts = first.get("resources") or {}
    text = {**(amounts.get("requests") or {}), **(amounts.get("limits") or {})}.get(resource, "0")
    return int(parse(str(text)))


def annotated_demand(pod: Object) -> tuple[str, int]:
    """Return the node and the number of devices that a pod's annotations ask for, however old they are (fault 3)."""
    found = annotations_of(pod)
    text = found.get(GPU_DEMAND, found.get(DEMAND, "0"))
    return found.get(DST_NODE, ""), int(text) if text.isdigit() else 0


class ExecCache(Struct):
    """What asking pods for their environment once has brought: pod -> its devices (fault 8)."""

    seen: dict[str, frozenset[str]] = field(default_factory=dict)

    def look(self, pods: Mapping[str, bool], held: Mapping[str, str]) -> bool:
        """Ask the pods (-> whether their containers run) that were never asked; whether there was any. An exec into a
        container that does not run fails, and that is kept."""
        new = [pod for pod in pods if pod not in self.seen]
        for pod in new:
            own = frozenset(gpuid for gpuid, holder in held.items() if holder == pod)
            self.seen[pod] = own if pods[pod] else frozenset()
        for gone in [pod for pod in self.seen if pod not in pods]:
            del self.seen[gone]
        return bool(new)

    def holdings(self) -> NodeHoldings:
        """Return it as it is believed: never stale."""
        return NodeHoldings({gpuid: pod for pod, own in self.seen.items() for gpuid in own}, fresh=True)


def selection_s(rng: random.Random, nodes: int) -> float:
    """Return how long the scheduler takes to select one of so many nodes."""
    return (SELECTION_S + SELECTION_PER_NODE_S * nodes) * rng.lognormvariate(0.0, SELECTION_SPREAD)


def update_s(rng: random.Random) -> float:
    """Return how long the update of GPU availability takes, as measured."""
    if rng.random() < CACHED_SHARE:
        return CACHED_S
    return min(rng.expovariate(1 / ASKED_MEAN_S), ASKED_LIMIT_S)
