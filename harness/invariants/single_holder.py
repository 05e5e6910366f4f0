"""Invariant 3: no whole device is given to two live pods."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.invariant import ObservedState
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, ClusterObjects, Invariant, ObservedHolding


class SingleHolder(Invariant[ObservedState]):
    """No two live pods hold the same whole device, and no pod holds whole a device of which another pod has parts. The
    law is judged at every allocation, and whenever a system reports that a pod holds devices. Devices of a chassis are
    compared over all nodes, because a stale announcement crosses nodes. All other devices are compared per node and
    resource. Containers of one pod may pass a device on."""

    number = 3
    name = "no whole device is given to two live pods"

    def on_line(self, line: Line, state: ObservedState) -> Iterator[Breach]:
        """Judge an allocation."""
        if line.layer != "kubelet" or line.event != "allocated":
            return
        mine = state.world.holdings.get((line.fields["uid"], line.fields["container"], line.fields["resource"]))
        if mine is not None and state.world.is_used(mine):
            yield from _given_twice(mine, state)

    def on_objects(self, t: float, objects: ClusterObjects, state: ObservedState) -> Iterator[Breach]:
        """Judge what systems say that pods hold since the pods changed."""
        if not state.systems.holds:
            return
        for mine in state.world.declare(objects, state.systems.holds):
            yield from _given_twice(mine, state)


def _given_twice(mine: ObservedHolding, state: ObservedState) -> Iterator[Breach]:
    # Sets first: a slice of memory is a device too, and a container may hold tens of thousands.
    own = frozenset(mine.devices)
    others = [(each, own.intersection(each.devices)) for each in state.world.all_holdings() if each.uid != mine.uid]
    shared = frozenset().union(*(common for _, common in others))
    for device in (each for each in mine.devices if each in shared):
        for other, common in others:
            if device in common and _same_thing(device, mine, other, state):
                has = f"{other.pod} on {other.host} has it"
                what = f"device {device} was given to {mine.pod} on {mine.host} while {has}"
                known = _known(mine, other, state)
                yield Breach((device, mine.uid, other.uid), what, mine.line, device, known=known)
    yield from _given_both_ways(mine, state)


def _known(mine: ObservedHolding, other: ObservedHolding, state: ObservedState) -> str:
    """Return why one of them has by a system what the other has by a kubelet, where that system is not to blame."""
    by_system = [(each.uid, each.container, each.resource) in state.world.declared for each in (mine, other)]
    return "" if by_system[0] == by_system[1] else state.systems.outside_known


def _given_both_ways(mine: ObservedHolding, state: ObservedState) -> Iterator[Breach]:
    for other in state.world.all_holdings():
        if other.uid == mine.uid:
            continue
        for device in sorted(set(mine.devices).intersection(other.parts_of)):
            what = f"device {device} was given whole to {mine.pod} while {other.pod} on {other.host} has parts of it"
            yield Breach((device, mine.uid, other.uid), what, mine.line, device)
        for device in sorted(set(mine.parts_of).intersection(other.devices)):
            what = f"parts of {device} were given to {mine.pod} while {other.pod} on {other.host} has it whole"
            yield Breach((device, mine.uid, other.uid), what, mine.line, device)


def _same_thing(device: str, one: ObservedHolding, other: ObservedHolding, state: ObservedState) -> bool:
    if device in state.world.devices:
        return True
    # What a system says that a pod holds goes by names of the node's own; what plugins announce, by each plugin's own.
    own = any((each.uid, each.container, each.resource) in state.world.declared for each in (one, other))
    return one.host == other.host and (own or one.resource == other.resource)
