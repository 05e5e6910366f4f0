"""What a host says to its boards' telemetry, and what it shows of a board of which nothing is known yet."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from mews.emulator.hardware.cards import gpu_profile
from mews.emulator.host.function import BringUpStage, Function
from mews.emulator.host.holders import Holder
from mews.emulator.host.host import Host
from mews.emulator.nvml.mig.lines import idle_mib
from mews.emulator.nvml.mig.models import mig_table
from mews.emulator.nvml.mig.table import compute_profiles
from mews.emulator.telemetry.chassis import BoardReport
from mews.emulator.telemetry.gpu import DriverCounts, GpuTelemetry, filled_mib
from mews.emulator.telemetry.load import GpuLoad
from mews.emulator.telemetry.parts import BoardPart, BoardParts
from mews.emulator.telemetry.record import BoardRecord


def computing_on(host: Host, function: Function) -> list[Holder]:
    """Return the processes that work on a GPU."""
    return [holder for holder in host.holders.of(function.device.uuid) if holder.computing]


def report_of(host: Host) -> Mapping[str, BoardReport]:
    """UUID -> what works on each of the host's boards and what its driver has counted; boards without a driver are left
    out."""
    return {
        function.device.uuid: BoardReport(
            _loads(host, function),
            _counts(function),
            function.controls,
            function.ecc_wanted,
            function.accounting,
            _parts(host, function),
        )
        for function in host.bus.functions()
        if function.is_gpu and function.plugged and function.stage >= BringUpStage.DRIVER
    }


def _parts(host: Host, function: Function) -> BoardParts | None:
    table = mig_table(gpu_profile(function.device.model)) if function.mig.enabled else None
    if table is None:
        return None
    made = []
    most = max(profile.slices for profile in table.profiles)
    on: dict[int, tuple[str, ...]] = {
        instance.id: tuple(
            f"{host.spec.name}/{holder.key}"
            for holder in computing_on(host, function)
            if {compute.uuid for compute in instance.compute}.intersection(holder.uuids)
        )
        for instance in function.mig.instances
    }
    for instance, compute in function.mig.devices():
        parent = table.by_id(instance.profile_id)
        assert parent is not None, "its profile is one of the model's"
        found = next(each for each in compute_profiles(table, parent) if each.slices == compute.slices)
        part = BoardPart(
            uuid=compute.uuid,
            profile=found.name,
            instance=instance.id,
            compute=compute.id,
            memory_mib=parent.memory_mib,
            multiprocessors=found.multiprocessors,
            percent=100 * parent.slices / most,
            idle_mib=idle_mib(table, instance),
            processes=on[instance.id],
        )
        made.append(part)
    return tuple(made)


def _loads(host: Host, function: Function) -> dict[str, GpuLoad]:
    return {} if function.lost else {holder.key: holder.load for holder in computing_on(host, function)}


def _counts(function: Function) -> DriverCounts:
    """Return the load of the driver, and after ``+`` what had been counted before: other counters begin at zero,
    too."""
    ecc = function.ecc
    before = f"{ecc.total_corrected - ecc.corrected}.{ecc.total_uncorrected - ecc.uncorrected}"
    session = f"{function.number}.{function.loads}+{before}"
    return DriverCounts(session, ecc.corrected, ecc.uncorrected, function.ecc_clears)


def filled_alone(host: Host, function: Function) -> list[tuple[str, int]]:
    """Return the processes of ``record_alone``, with the memory that each uses, in MiB: all that many readers ask of
    it."""
    filled = filled_mib(gpu_profile(function.device.model), _loads(host, function))
    return [(f"{host.spec.name}/{key}", memory_mib) for key, memory_mib in filled.items()]


def record_alone(host: Host, function: Function, at_ns: int) -> BoardRecord:
    """Return the board's record as it would begin now: for hosts without a chassis."""
    board = GpuTelemetry(function.device.uuid, gpu_profile(function.device.model), seed="", at_ns=at_ns, powered=True)
    for key, load in _loads(host, function).items():
        board.begin(f"{host.spec.name}/{key}", load, at_ns)
    ecc = function.ecc
    cleared = ecc.cleared_corrected, ecc.cleared_uncorrected
    earlier = ecc.total_corrected - ecc.corrected, ecc.total_uncorrected - ecc.uncorrected
    board.counted(DriverCounts("cleared", *cleared, clears=function.ecc_clears))
    board.counted(DriverCounts("earlier", earlier[0] - cleared[0], earlier[1] - cleared[1]))
    if function.ecc_mode is not None:
        board.correct_errors(function.ecc_mode)
    board.counted(replace(_counts(function), clears=0))
    if function.ecc_wanted is not None:
        board.correct_errors(function.ecc_wanted)
    board.control(function.controls, at_ns)
    return board.record(at_ns)
