"""The instances of one GPU as a frozen value, and the rules of creating and destroying them (NVML API reference,
"Multi Instance GPU Management"). Placements are chosen as the driver does: where the least room is left beside them.
"""

from __future__ import annotations

import uuid

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.nvml.mig.table import MigComputeProfile, MigProfile, MigTable, compute_profiles, instance_id

MEDIA_ENGINES = ("decoder", "encoder", "jpeg", "ofa")


class MigRefusalError(Exception):
    """Instances stay as they are. The base of the refusals below."""


class UnknownProfileError(MigRefusalError):
    """The model, or the GPU instance, has no such profile or placement."""


class NoRoomError(MigRefusalError):
    """What is left of the GPU, or of the GPU instance, is too small."""


class NoInstanceError(MigRefusalError):
    """There is no such instance."""


class InstanceInUseError(MigRefusalError):
    """The GPU instance has compute instances."""


class ComputeInstance(Struct, frozen=True):
    """Part of a GPU instance's multiprocessors, ``slices`` of them from ``start`` on. Programs see it as a device.

    ``serial`` tells it from others that had its ID before.
    """

    id: int
    slices: int
    start: int
    uuid: str
    serial: int


class GpuInstance(Struct, frozen=True):
    """Part of a GPU: ``size`` units of its memory from ``start`` on."""

    id: int
    profile_id: int
    start: int
    size: int
    serial: int
    compute: tuple[ComputeInstance, ...] = ()


class MigState(Struct, frozen=True):
    """MIG of one GPU. ``pending``: the mode from the next reset on. ``made`` counts all instances ever created."""

    enabled: bool = False
    pending: bool = False
    instances: tuple[GpuInstance, ...] = ()
    made: int = 0

    def instance(self, instance: int) -> GpuInstance:
        """Return the GPU instance of that ID. Raises NoInstanceError."""
        for each in self.instances:
            if each.id == instance:
                return each
        raise NoInstanceError(f"GPU instance {instance}: does not exist")

    def devices(self) -> tuple[tuple[GpuInstance, ComputeInstance], ...]:
        """Return all compute instances with theirs, in the order in which programs number them."""
        ordered = sorted(self.instances, key=lambda each: each.id)
        return tuple((each, one) for each in ordered for one in sorted(each.compute, key=lambda found: found.id))

    def switched(self, on: bool) -> MigState:
        """The mode takes effect: without instances."""
        return replace(self, enabled=on, pending=on, instances=())


NO_MIG = MigState()


def room_for(state: MigState, table: MigTable, profile: MigProfile) -> tuple[int, ...]:
    """Return the starts at which another GPU instance of a profile fits now."""
    if len(state.instances) >= table.most or _engines_taken(state, table, profile):
        return ()
    used = _used(state)
    taken = sum(found.slices for each in state.instances if (found := table.by_id(each.profile_id)) is not None)
    if taken + profile.slices > max(each.slices for each in table.profiles):
        return ()
    return tuple(start for start in profile.starts if not used & set(range(start, start + profile.size)))


def _engines_taken(state: MigState, table: MigTable, profile: MigProfile) -> bool:
    """Too few of the media engines are left. The largest profile has all of them."""
    present = [found for each in state.instances if (found := table.by_id(each.profile_id)) is not None]
    whole = max(table.profiles, key=lambda each: each.size).engines
    names = MEDIA_ENGINES if table.counted_engines else ("ofa",)
    return any(
        getattr(profile.engines, name) + sum(getattr(each.engines, name) for each in present) > getattr(whole, name)
        for name in names
    )


def remaining(state: MigState, table: MigTable, profile: MigProfile) -> int:
    """Return how many more GPU instances of a profile fit (nvmlDeviceGetGpuInstanceRemainingCapacity)."""
    count = 0
    while count < profile.count and (starts := room_for(state, table, profile)):
        state = _placed(state, table, profile, _best(state, table, profile, starts))
        count += 1
    return count


def created(state: MigState, table: MigTable, profile_id: int, start: int | None = None) -> MigState:
    """Return the state with one more GPU instance, the last of ``instances``.

    Raises UnknownProfileError, NoRoomError.
    """
    profile = table.by_id(profile_id)
    if profile is None or (start is not None and start not in profile.starts):
        raise UnknownProfileError(f"profile {profile_id}, placement {start}: not of this model")
    starts = room_for(state, table, profile)
    if not starts or (start is not None and start not in starts):
        raise NoRoomError(f"{profile.name}: no room for another one")
    return _placed(state, table, profile, _best(state, table, profile, starts) if start is None else start)


def _placed(state: MigState, table: MigTable, profile: MigProfile, start: int) -> MigState:
    made = state.made + 1
    fresh = GpuInstance(instance_id(table, profile, start), profile.id, start, profile.size, made)
    return replace(state, instances=(*state.instances, fresh), made=made)


def _used(state: MigState) -> set[int]:
    return {unit for each in state.instances for unit in range(each.start, each.start + each.size)}


def _best(state: MigState, table: MigTable, profile: MigProfile, starts: tuple[int, ...]) -> int:
    """Return where the halves, quarters and eighths around it have the fewest free places; the first of several."""
    used, smallest = _used(state), min(table.profiles, key=lambda each: (each.slices, each.size))
    free = [place for place in smallest.starts if place not in used]
    return min(starts, key=lambda start: _left(start, profile.size, table.units, free))


def _left(start: int, span: int, most: int, free: list[int]) -> tuple[int, ...]:
    """Return how many of the free places are in the part of that span around a start, in the part twice as large, and
    so on; then the start."""
    counts = []
    while span <= most:
        counts.append(sum(start // span * span <= place < (start // span + 1) * span for place in free))
        span *= 2
    return (*counts, start)


def destroyed(state: MigState, instance: int) -> MigState:
    """Return the state without a GPU instance. Raises NoInstanceError, InstanceInUseError."""
    found = state.instance(instance)
    if found.compute:
        raise InstanceInUseError(f"GPU instance {instance}: has compute instances")
    return replace(state, instances=tuple(each for each in state.instances if each is not found))


def compute_room(instance: GpuInstance, profile: MigComputeProfile) -> tuple[int, ...]:
    """Return the starts at which another compute instance of a profile fits now."""
    used = _compute_used(instance)
    return tuple(start for start in profile.starts if not used & set(range(start, start + profile.slices)))


def _compute_used(instance: GpuInstance) -> set[int]:
    return {place for each in instance.compute for place in range(each.start, each.start + each.slices)}


def compute_created(
    state: MigState, table: MigTable, gpu_uuid: str, instance: int, profile_id: int, start: int | None = None
) -> MigState:
    """Return the state with one more compute instance, the last of its GPU instance's.

    Raises NoInstanceError, UnknownProfileError, NoRoomError.
    """
    found = state.instance(instance)
    parent = table.by_id(found.profile_id)
    profiles = () if parent is None else compute_profiles(table, parent)
    profile = next((each for each in profiles if each.id == profile_id), None)
    if profile is None or (start is not None and start not in profile.starts):
        raise UnknownProfileError(f"compute profile {profile_id}, placement {start}: not of this GPU instance")
    starts = compute_room(found, profile)
    if not starts or (start is not None and start not in starts):
        raise NoRoomError(f"{profile.name}: no room for another one")
    number = next(n for n in range(8) if n not in {each.id for each in found.compute})
    used = _compute_used(found)
    free = [place for place in range(0 if parent is None else parent.slices) if place not in used]
    best = min(starts, key=lambda place: _left(place, profile.slices, 8, free))
    chosen, made = best if start is None else start, state.made + 1
    one = ComputeInstance(number, profile.slices, chosen, mig_uuid(gpu_uuid, found.id, number), made)
    return replace(_with(state, replace(found, compute=(*found.compute, one))), made=made)


def compute_destroyed(state: MigState, instance: int, compute: int) -> MigState:
    """Return the state without a compute instance. Raises NoInstanceError."""
    found = state.instance(instance)
    kept = tuple(each for each in found.compute if each.id != compute)
    if len(kept) == len(found.compute):
        raise NoInstanceError(f"compute instance {compute} of GPU instance {instance}: does not exist")
    return _with(state, replace(found, compute=kept))


def _with(state: MigState, instance: GpuInstance) -> MigState:
    same = tuple(instance if each.id == instance.id else each for each in state.instances)
    return replace(state, instances=same)


def mig_uuid(gpu_uuid: str, instance: int, compute: int) -> str:
    """Return the UUID of a MIG device: of version 5 as the driver's, made of the GPU's UUID and the instances' IDs."""
    return f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, f'{gpu_uuid}/{instance}/{compute}')}"
