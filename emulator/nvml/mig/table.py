"""The profiles of MIG: how the memory and the multiprocessors of one model can be divided.

Profiles have two numbers: ``number`` is the one of NVML's ``NVML_GPU_INSTANCE_PROFILE_*``, ``id`` the one that
``nvidia-smi mig -lgip`` lists. Placements count units of memory: eighths of most boards, twelfths of the RTX PRO 6000.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

COMPUTE_PROFILES = {1: 0, 2: 1, 3: 2, 4: 3, 7: 4}
"""Slices of a compute instance -> its profile's number and ID (``NVML_COMPUTE_INSTANCE_PROFILE_*``)."""


class MigEngines(Struct, frozen=True):
    """How many engines of each kind an instance has."""

    copy: int
    decoder: int = 0
    encoder: int = 0
    jpeg: int = 0
    ofa: int = 0


class MigProfile(Struct, frozen=True):
    """A GPU instance's profile. ``count``: how many fit on an empty GPU; ``size`` and ``starts``: its placements."""

    name: str
    number: int
    id: int
    slices: int
    count: int
    multiprocessors: int
    memory_mib: int
    engines: MigEngines
    size: int
    starts: tuple[int, ...]
    graphics: bool = False


class MigComputeProfile(Struct, frozen=True):
    """A compute instance's profile inside one GPU instance. ``id`` is also its number in NVML."""

    name: str
    id: int
    slices: int
    count: int
    multiprocessors: int
    starts: tuple[int, ...]


class MigTable(Struct, frozen=True):
    """All profiles of a model. ``most``: GPU instances that exist at a time; ``units`` of memory a GPU has; ``step``:
    units of the smallest instance. ``counted_engines``: every media engine belongs to one instance alone; other models
    have such an engine for optical flow only."""

    profiles: tuple[MigProfile, ...]
    most: int
    units: int
    step: int = 1
    counted_engines: bool = False

    def by_id(self, profile_id: int) -> MigProfile | None:
        """Return the profile of that ID; None where there is none."""
        return next((profile for profile in self.profiles if profile.id == profile_id), None)


def compute_profiles(table: MigTable, profile: MigProfile) -> Iterator[MigComputeProfile]:
    """Yield what the multiprocessors of a GPU instance can be divided into, smallest first.

    An instance that takes all of them has those that no smaller one can use, too.
    """
    least = min(each.multiprocessors // each.slices for each in table.profiles)
    for slices, number in COMPUTE_PROFILES.items():
        if slices > profile.slices:
            return
        if (slices, profile.slices) == (3, 4):  # three of four slices are no profile of any model
            continue
        whole = slices == profile.slices
        step = 4 if slices == 3 else slices
        starts = (0,) if whole else tuple(range(0, profile.slices - slices + 1, step))
        yield MigComputeProfile(
            name=profile.name if whole else f"{slices}c.{profile.name}",
            id=number,
            slices=slices,
            count=len(starts),
            multiprocessors=profile.multiprocessors if whole else slices * least,
            starts=starts,
        )


def instance_id(table: MigTable, profile: MigProfile, start: int) -> int:
    """Return the ID that a GPU instance of a profile gets at a placement.

    IDs number the nodes of the tree of halves, level by level. On boards with seven slices, the half with three of
    them comes first, as ``nvidia-smi mig -lgi`` of an H100 (driver 570.169) lists.
    """
    span = table.step
    while span < profile.size:
        span *= 2
    level = table.units // span
    place = start // span
    if table.units == 8 and table.step == 1:
        place = (place + level // 2) % level if level > 1 else 0
    return level - 1 + place
