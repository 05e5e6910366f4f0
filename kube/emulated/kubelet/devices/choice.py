"""Which devices a container gets: pure, in two steps around the plugin's GetPreferredAllocation.

Order and texts are those of contract kubelet.md sections 3 and 4 (upstream pkg/kubelet/cm/devicemanager/manager.go,
topology policy none).
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.emulated.kubelet.devices.errors import DeviceAllocationError
from mews.kube.emulated.kubelet.devices.order import common, shuffled, union, without


class Need(Struct, frozen=True):
    """What one container asks of one resource, and what the kubelet knows about that resource.

    ``pod_uid`` and ``container`` are for messages; ``held``: the container's own devices from an earlier admission,
    None without; ``reusable``: left by init containers of the pod; ``healthy``: None while no list of a plugin is
    known; ``allocated``: given to anyone.
    """

    pod_uid: str
    container: str
    resource: str
    required: int
    held: tuple[str, ...] | None
    reusable: tuple[str, ...]
    healthy: tuple[str, ...] | None
    allocated: tuple[str, ...]


class Choice(Struct, frozen=True):
    """Devices chosen so far, how many are missing, and from which free ones they come."""

    chosen: tuple[str, ...]
    missing: int
    free: tuple[str, ...]
    required: int

    @property
    def available(self) -> tuple[str, ...]:
        """``available_deviceIDs`` of GetPreferredAllocation: with the reused ones."""
        return union(self.free, self.chosen)

    def taking(self, candidates: Sequence[str], rng: random.Random) -> Choice:
        """Return the choice with as many of the candidates as are missing, in Go's order."""
        taken = shuffled(without(candidates, self.chosen), rng)[: self.missing]
        return replace(self, chosen=self.chosen + tuple(taken), missing=self.missing - len(taken))


def begin(need: Need, rng: random.Random) -> Choice | None:
    """Reused devices first; None when the container already holds what it needs.

    The result with ``missing`` 0 is final, else ``complete`` it.

    Raises DeviceAllocationError with the text of section 4.
    """
    _check(need)
    held = need.held or ()
    if need.required == len(held):
        return None
    choice = Choice((), need.required - len(held), (), need.required).taking(need.reusable, rng)
    if choice.missing == 0:
        return choice
    free = without(need.healthy or (), union(need.allocated, choice.chosen))
    if len(free) < choice.missing:
        raise DeviceAllocationError(
            f"requested number of devices unavailable for {need.resource}. "
            f"Requested: {choice.missing}, Available: {len(free)}"
        )
    return replace(choice, free=free)


def complete(choice: Choice, preferred: Sequence[str], rng: random.Random) -> Choice:
    """Return the plugin's preference as far as it is free, the rest in Go's order."""
    return choice.taking(common(preferred, choice.free), rng).taking(choice.free, rng)


def _check(need: Need) -> None:
    """The checks in upstream's order: health comes before numbers."""
    if need.held is not None and len(need.held) != need.required:
        raise DeviceAllocationError(
            f'pod "{need.pod_uid}" container "{need.container}" changed request for resource "{need.resource}" '
            f"from {len(need.held)} to {need.required}"
        )
    if need.healthy is None:
        raise DeviceAllocationError(f"cannot allocate unregistered device {need.resource}")
    if not need.healthy:
        raise DeviceAllocationError(f"no healthy devices present; cannot allocate unhealthy devices {need.resource}")
    if without(need.held or (), need.healthy):
        raise DeviceAllocationError(
            f"previously allocated devices are no longer healthy; cannot allocate unhealthy devices {need.resource}"
        )
