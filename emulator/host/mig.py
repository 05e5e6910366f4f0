"""MIG of a host's GPUs: the mode and the instances, as the driver changes them (NVML API reference, "Multi Instance GPU
Management"; MIG User Guide, "Enable MIG Mode").

Ampere resets the GPU to change the mode; while a program has it open the new mode is pending. Later models change at
once, and their mode lasts until the machine is switched off; Ampere keeps it on the board. Instances end with every
reset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from msgspec.structs import replace

from mews.emulator.hardware.cards import gpu_profile
from mews.emulator.host.errors import (
    BadWriteError,
    DeviceInUseError,
    NoRoomLeftError,
    NoSuchDeviceError,
    NotSupportedError,
)
from mews.emulator.host.holders import Holder
from mews.emulator.nvml.mig import instances as rules
from mews.emulator.nvml.mig.instances import (
    InstanceInUseError,
    MigRefusalError,
    MigState,
    NoInstanceError,
    NoRoomError,
)
from mews.emulator.nvml.mig.models import mig_table
from mews.emulator.nvml.mig.table import MigTable

if TYPE_CHECKING:
    from mews.emulator.host.function import Function
    from mews.emulator.host.host import Host

MigAct = Literal["mode", "create-gpu", "destroy-gpu", "create-compute", "destroy-compute"]
MIG_ACTS: tuple[str, ...] = get_args(MigAct)
"""What can be done, by name."""
_NUMBERS = {"mode": (1,), "create-gpu": (1, 2), "destroy-gpu": (1,), "create-compute": (2, 3), "destroy-compute": (2,)}
ARCH_AMPERE = 7


def change_mig(host: Host, function: Function, act: str, numbers: Sequence[int], asker: Sequence[str] = ()) -> int:
    """Change MIG of a GPU that the driver has, for a program whose holds are ``asker``.

    Returns the ID of what was created; of ``mode``, 0 if the mode is as asked for and 1 if programs keep the GPU from
    it; else 0. Raises NotSupportedError for models without MIG and while the mode is off, BadWriteError for unknown
    profiles and placements, NoRoomLeftError, NoSuchDeviceError for unknown instances, DeviceInUseError.
    """
    if act not in MIG_ACTS or len(numbers) not in _NUMBERS[act]:
        raise BadWriteError(f"MIG action {act[:40]!r} with {len(numbers)} numbers: is not one of {', '.join(MIG_ACTS)}")
    profile = gpu_profile(function.device.model)
    table = mig_table(profile)
    if table is None:
        raise NotSupportedError(f"{profile.name}: this model has no MIG")
    if act == "mode":
        return _set_mode(host, function, numbers[0], by_reset=profile.architecture <= ARCH_AMPERE, asker=asker)
    if not function.mig.enabled:
        raise NotSupportedError(f"{function.bdf}: MIG mode is off")
    try:
        state, made = _changed(host, function, table, act, numbers)
    except (InstanceInUseError, NoRoomError, NoInstanceError, MigRefusalError) as refusal:
        raise _refused(refusal) from None
    function.mig = state
    host.events.emit("mig-instances", function, act=act, instances=_listed(state, table))
    return made


def _changed(host: Host, function: Function, table: MigTable, act: str, numbers: Sequence[int]) -> tuple[MigState, int]:
    mig = function.mig
    match act, tuple(numbers):
        case "create-gpu", (profile_id, *start):
            mig = rules.created(mig, table, profile_id, *start)
            return mig, mig.instances[-1].id
        case "destroy-gpu", (instance,):
            return rules.destroyed(mig, instance), 0
        case "create-compute", (instance, profile_id, *start):
            mig = rules.compute_created(mig, table, function.device.uuid, instance, profile_id, *start)
            return mig, mig.instance(instance).compute[-1].id
        case _, (instance, compute):
            found = next((one for one in mig.instance(instance).compute if one.id == compute), None)
            if found is not None and host.holders.of(found.uuid):
                raise DeviceInUseError(f"{found.uuid}: {len(host.holders.of(found.uuid))} processes use it")
            return rules.compute_destroyed(mig, instance, compute), 0
    raise BadWriteError(f"MIG action {act!r}: takes other numbers")


def _refused(refusal: MigRefusalError) -> Exception:
    if isinstance(refusal, InstanceInUseError):
        return DeviceInUseError(str(refusal))
    if isinstance(refusal, NoRoomError):
        return NoRoomLeftError(str(refusal))
    return NoSuchDeviceError(str(refusal)) if isinstance(refusal, NoInstanceError) else BadWriteError(str(refusal))


def _set_mode(host: Host, function: Function, wanted: int, *, by_reset: bool, asker: Sequence[str]) -> int:
    if wanted not in (0, 1):
        raise BadWriteError(f"MIG mode {wanted}: must be 0 or 1")
    on, mig = bool(wanted), function.mig
    if on == mig.enabled:
        function.mig = replace(mig, pending=on)
        return 0
    # Without a reset only those that compute stand against it; a reset needs everybody to let go.
    users = host.holders.of(function.device.uuid, but=asker)
    blocked = bool(mig.instances) or any(by_reset or user.computing for user in users)
    if blocked:
        function.mig = replace(mig, pending=on) if by_reset else mig
        host.versions.changed()
        return 1
    function.mig = mig.switched(on)
    host.events.emit("mig-mode", function, on=on)
    return 0


def powered_off(function: Function) -> None:
    """The driver is gone with the machine: boards later than Ampere forget the mode."""
    if function.is_gpu and gpu_profile(function.device.model).architecture > ARCH_AMPERE:
        function.mig = function.mig.switched(False)


def kept_mode(function: Function) -> bool | None:
    """Return the mode that the board takes along to another host: Ampere has it in its inforom (MIG User Guide, "Enable
    MIG Mode"); None for boards that forget it."""
    keeps = function.is_gpu and gpu_profile(function.device.model).architecture <= ARCH_AMPERE
    return function.mig.pending if keeps else None


def holding_whole(holder: Holder, functions: Iterable[Function]) -> Holder:
    """Return the holder with the GPUs of the MIG devices that it uses: who has a part of a GPU has the GPU open."""
    whole = [f.device.uuid for f in functions if any(one.uuid in holder.uuids for _, one in f.mig.devices())]
    return replace(holder, uuids=tuple(dict.fromkeys((*holder.uuids, *whole)))) if whole else holder


def _listed(state: MigState, table: MigTable) -> list[str]:
    """Return what an event says of the instances: their profiles with the IDs of their compute instances."""
    shown = []
    for each in sorted(state.instances, key=lambda one: one.id):
        profile = table.by_id(each.profile_id)
        compute = ",".join(str(one.id) for one in each.compute)
        shown.append(f"{each.id}:{'' if profile is None else profile.name}" + (f"/{compute}" if compute else ""))
    return shown
