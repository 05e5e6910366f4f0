"""Which host is cabled to which port. No dialect lists it, so it is concluded from counts.

The node at a port offers as many devices as the chassis has on that port, and its count follows when one moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from mews.harness.recording.histories import NodeHistory
from mews.harness.recording.tables import ChassisHistory

LAG_S = 30.0
"""A node announces what its chassis gave it within that time."""


class Cabling(Struct, frozen=True):
    """Chassis and port -> host. ``certain``: whether only this assignment explains the counts."""

    hosts: Mapping[tuple[str, str], str]
    certain: bool = True

    def host(self, chassis: str, port: str | None) -> str | None:
        """Return the host at a port; None where none is known."""
        return None if port is None else self.hosts.get((chassis, port))

    def ports_of(self, host: str) -> list[tuple[str, str]]:
        """Return the ports of a host."""
        return [place for place, name in self.hosts.items() if name == host]


def concluded_cabling(
    chassis: Sequence[ChassisHistory], nodes: Sequence[NodeHistory], resource: str, ended: float
) -> Cabling:
    """Return an assignment that no exchange of two hosts improves; of equally good ones the one in the order of ports
    and names. With several chassis each is assigned by itself: a node then offers what all of them give it.
    """
    offering = [node for node in nodes if resource in node.offered]
    hosts: dict[tuple[str, str], str] = {}
    certain = True
    for box in chassis:
        several = len(chassis) > 1
        best, unique = _best(box, offering, resource, ended, several=several)
        hosts |= {(box.name, port): name for port, name in best.items()}
        certain = certain and unique
    return Cabling(hosts, certain)


def _best(
    box: ChassisHistory, nodes: Sequence[NodeHistory], resource: str, ended: float, *, several: bool
) -> tuple[dict[str, str], bool]:
    moments = _moments(box, ended)
    costs = {
        (port, node.name): sum(_mismatch(box, port, node, resource, t, several=several) for t in moments)
        for port in box.ports
        for node in nodes
    }
    free = [node.name for node in nodes]
    found: dict[str, str] = {}
    # Ports with devices first: one without may be a spare that no host is cabled to.
    for port in sorted(box.ports, key=lambda each: not any(box.on_port(each, t) for t in moments)):
        if free:
            found[port] = min(free, key=lambda name: costs[port, name])
            free.remove(found[port])
    while (better := _swapped(found, free, costs, below=0)) is not None:
        found, free = better
    return found, _swapped(found, free, costs, below=1) is None


def _swapped(
    found: Mapping[str, str], free: Sequence[str], costs: Mapping[tuple[str, str], int], *, below: int
) -> tuple[dict[str, str], list[str]] | None:
    """Return the same with two hosts exchanged, or one for a host that is left, at a difference in cost below that."""
    for port, name in found.items():
        for other, its in found.items():
            if port < other:
                more = costs[port, its] + costs[other, name] - costs[port, name] - costs[other, its]
                if more < below:
                    return {**found, port: its, other: name}, list(free)
        for spare in free:
            if costs[port, spare] - costs[port, name] < below:
                return {**found, port: spare}, [name, *(each for each in free if each != spare)]
    return None


def _moments(box: ChassisHistory, ended: float) -> list[float]:
    """Return when the counts have settled: before each change, and at the end."""
    times = sorted({change.at for change in box.changes})
    settled = [before for before, after in pairwise(times) if after - before > LAG_S]
    begun = [times[0] - 1e-3] if times else []
    return [*begun, *(t + LAG_S for t in settled), ended]


def _mismatch(box: ChassisHistory, port: str, node: NodeHistory, resource: str, t: float, *, several: bool) -> int:
    there, offered = len(box.on_port(port, t)), node.offers(resource, t)
    return max(0, there - offered) if several else abs(there - offered)
