"""Invariant 3: no whole device is given to two live pods."""

from __future__ import annotations

from collections.abc import Iterator

from mews.harness.invariants.scene import Scene
from mews.harness.invariants.verdict import Breach
from mews.harness.invariants.world import Holding
from mews.harness.journal import Line


class SingleHolder:
    """Judged at every allocation, over all nodes for devices of a chassis (a stale announcement crosses nodes), per
    node and resource for the devices of somebody else's plugin. Containers of one pod may pass a device on."""

    number = 3
    name = "no whole device is given to two live pods"

    def hear(self, line: Line, scene: Scene) -> Iterator[Breach]:
        """Judge an allocation."""
        if line.layer != "kubelet" or line.event != "allocated":
            return
        mine = scene.world.holdings.get((line.fields["uid"], line.fields["container"], line.fields["resource"]))
        if mine is None:
            return
        for device in mine.devices:
            for other in scene.world.holders(device):
                if other.uid != mine.uid and _same_thing(device, mine, other, scene):
                    has = f"{other.pod} on {other.host} has it"
                    what = f"device {device} was given to {mine.pod} on {mine.host} while {has}"
                    yield Breach((device, mine.uid, other.uid), what, line, device)

    def tick(self, t: float, scene: Scene) -> Iterator[Breach]:
        """Nothing to do with time."""
        return iter(())


def _same_thing(device: str, one: Holding, other: Holding, scene: Scene) -> bool:
    return device in scene.world.devices or (one.host, one.resource) == (other.host, other.resource)
