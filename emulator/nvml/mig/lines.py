"""MIG in the state file (``mews.emulator.nvml.state``): the tables of the models there are, then what each GPU has.

``mig_table NUMBER MOST``, then its ``mig_profile NUMBER …`` and ``mig_compute NUMBER …`` lines come before the GPUs;
``mig_gi``, ``mig_ci``, ``mig_free`` and ``mig_compute_free`` lines are of one GPU. Memory is in MiB of profiles, and in
bytes of GPU instances.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mews.emulator.hardware.gpu_profile import MIB
from mews.emulator.nvml.mig.instances import GpuInstance, MigState, compute_room, remaining
from mews.emulator.nvml.mig.table import MigTable, compute_profiles

IDLE_MIB = 11
"""Memory that is in use of the smallest instance when nothing runs there; a half of an H100 has 44 MiB (MIG User
Guide, "MIG with CUDA MPS")."""


def table_lines(tables: Iterable[MigTable]) -> Iterator[str]:
    """Yield the profiles of each table, which are numbered from 0 in their order."""
    for number, table in enumerate(tables):
        yield f"mig_table {number} {table.most}"
        for each in table.profiles:
            engines = each.engines
            numbers: tuple[int, ...] = (
                each.number, each.id, each.slices, each.count, each.multiprocessors, each.memory_mib, engines.copy,
                engines.decoder, engines.encoder, engines.jpeg, engines.ofa, each.size, int(each.graphics),
            )  # fmt: skip
            yield f"mig_profile {number} {' '.join(map(str, numbers))} {_list(each.starts)} {each.name}"
            for one in compute_profiles(table, each):
                numbers = (each.id, one.id, one.slices, one.count, one.multiprocessors)
                yield f"mig_compute {number} {' '.join(map(str, numbers))} {_list(one.starts)} {one.name}"


def gpu_lines(state: MigState, table: MigTable, number: int) -> Iterator[str]:
    """Yield what a GPU has, whose model's table has that number."""
    yield f"mig_model {number}"
    if not (state.enabled or state.pending):
        return
    yield f"mig_mode {int(state.enabled)}"
    yield f"mig_pending {int(state.pending)}"
    if not state.enabled:
        return
    for profile in table.profiles:
        yield f"mig_free {profile.id} {remaining(state, table, profile)}"
    for each in sorted(state.instances, key=lambda one: one.id):
        parent = table.by_id(each.profile_id)
        assert parent is not None
        idle = idle_mib(table, each) * MIB
        yield f"mig_gi {each.id} {each.profile_id} {each.start} {each.size} {each.serial} {idle}"
        for one in compute_profiles(table, parent):
            yield f"mig_compute_free {each.id} {one.id} {len(compute_room(each, one))}"
        for compute in sorted(each.compute, key=lambda one: one.id):
            found = next(one for one in compute_profiles(table, parent) if one.slices == compute.slices)
            yield f"mig_ci {each.id} {compute.id} {found.id} {compute.start} {compute.serial} {compute.uuid}"


def idle_mib(table: MigTable, instance: GpuInstance) -> int:
    """Return the memory of a GPU instance that is in use when nothing runs there."""
    return IDLE_MIB * (instance.size // table.step)


def _list(starts: Iterable[int]) -> str:
    return ",".join(map(str, starts))
