"""What NVML shows of a host, derived from its state (``mews.emulator.nvml.state``) and its boards' telemetry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from mews.emulator.hardware.cards import gpu_profile
from mews.emulator.hardware.gpu_profile import GpuProfile
from mews.emulator.host.function import Function
from mews.emulator.host.holders import Holder
from mews.emulator.host.host import Host
from mews.emulator.host.joints import joints, shown_gpus
from mews.emulator.host.telemetry import computing_on, filled_alone, record_alone
from mews.emulator.nvml.mig.lines import idle_mib
from mews.emulator.nvml.mig.models import mig_table
from mews.emulator.nvml.recovery import recovery_action
from mews.emulator.nvml.state import EccCounts, NvmlAccount, NvmlGpu, NvmlHost, NvmlProcess, StateClock
from mews.emulator.telemetry.accounting import AccountedProcess
from mews.emulator.telemetry.physics import FILLED_PERCENT
from mews.emulator.telemetry.record import BoardRecord
from mews.emulator.telemetry.units import ns

NO_RECORDS: Mapping[str, BoardRecord] = MappingProxyType({})


def shown_profile(function: Function) -> GpuProfile:
    """Return the model of a GPU, with the memory of this one."""
    profile = gpu_profile(function.device.model)
    given = function.device.memory_mib
    return profile if given is None else replace(profile, memory_mib=given)


def nvml_host(
    host: Host,
    *,
    dev_root: str = "",
    records: Mapping[str, BoardRecord] = NO_RECORDS,
    now_s: float | None = None,
    clock: StateClock | None = None,
) -> NvmlHost:
    """Return the state for the library at a time, by the records of the boards' chassis; GPUs in order of bus address,
    as NVML numbers them. ``clock`` maps the records' time for readers that go on by themselves."""
    shown = shown_gpus(host)
    at_ns = ns(host.now_s if now_s is None else now_s)
    joined = joints(host, shown)
    events = host.events.driver_events.last()
    gpus = tuple(
        replace(
            _gpu(host, function, index, records, at_ns),
            link_ends=joined.link_ends[index],
            recovery=recovery_action(events, function.bdf),
        )
        for index, function in enumerate(shown)
    )
    return NvmlHost(
        gpus=gpus,
        topology=joined.matrix,
        levels=joined.levels,
        switched=joined.switched,
        driver_version=host.spec.driver,
        dev_root=dev_root,
        events=events,
        clock=clock,
    )


def _gpu(host: Host, function: Function, index: int, records: Mapping[str, BoardRecord], at_ns: int) -> NvmlGpu:
    profile = shown_profile(function)
    record = records.get(function.device.uuid) or record_alone(host, function, at_ns)
    record, processes = _known(host, function, record)
    reading, counters = record.reading(profile, at_ns), record.counters
    ecc_enabled, ecc_pending = record.ecc
    if function.ecc_wanted is not None:
        ecc_pending = function.ecc_wanted  # the record may not have it yet
    return NvmlGpu(
        index=index,
        minor=function.minor or 0,
        bus_id=function.bdf,
        uuid=function.device.uuid,
        profile=profile,
        serial=function.device.serial,
        numa_node=function.numa_node,
        cpus=host.cpus_near(function.numa_node),
        utilization_percent=reading.utilization_percent,
        memory_used_mib=reading.memory_used_mib if not function.mig.enabled else _filled_mib(function, processes),
        power_mw=reading.power_mw,
        temperature_c=round(reading.temperature_c),
        sm_clock_mhz=reading.sm_clock_mhz,
        energy_mj=reading.energy_mj,
        persistence=function.persistence,
        controls=function.controls,
        compute_mode=function.compute_mode,
        draining=function.draining,
        lost=function.lost,
        unknown_error=function.failing,
        ecc=EccCounts(
            counters.ecc_volatile_corrected,
            counters.ecc_volatile_uncorrected,
            counters.ecc_aggregate_corrected,
            counters.ecc_aggregate_uncorrected,
        ),
        accounting=bool(function.accounting),
        accounted=_accounted(host, record.accounted),
        ecc_enabled=ecc_enabled,
        ecc_pending=ecc_pending,
        processes=processes,
        record=record,
        mig=function.mig,
        link_threshold=function.link_threshold or 0,
        link_bandwidth=function.link_bandwidth,
        settings=function.settings,
    )


def _accounted(host: Host, known: Iterable[AccountedProcess]) -> tuple[NvmlAccount, ...]:
    """Return the accounts of this host's processes, by the pids that it gave them."""
    shown = []
    for account in known:
        prefix, _, key = account.key.partition("/")
        holder = host.holders.known(key) if prefix == host.spec.name else None
        if holder is not None:
            shown.append(NvmlAccount(holder.pid, account))
    return tuple(shown)


def processes_on(host: Host, function: Function) -> tuple[NvmlProcess, ...]:
    """Return the processes that work on a GPU, with its memory that they use."""
    if not computing_on(host, function):
        return ()
    holders = {f"{host.spec.name}/{holder.key}": holder for holder in computing_on(host, function)}
    return _processes(holders, filled_alone(host, function))


def _known(host: Host, function: Function, record: BoardRecord) -> tuple[BoardRecord, tuple[NvmlProcess, ...]]:
    """Return the record without processes that have ended since, and all processes, its own first and in its order: a
    span's shares are theirs. The others have only just begun."""
    holders = {f"{host.spec.name}/{holder.key}": holder for holder in computing_on(host, function)}
    kept = [place for place, (key, _) in enumerate(record.processes) if key in holders]
    if len(kept) < len(record.processes):
        spans = tuple(replace(span, shares=tuple(span.shares[place] for place in kept)) for span in record.spans)
        record = replace(record, spans=spans, processes=tuple(record.processes[place] for place in kept))
    return record, tuple(_placed(function, holders, each) for each in _processes(dict(holders), record.processes))


def _placed(function: Function, holders: Mapping[str, Holder], process: NvmlProcess) -> NvmlProcess:
    """Return the process where it runs: on the MIG device that its holder names, with no more memory than that has."""
    if not function.mig.enabled:
        return process
    named = {uuid for holder in holders.values() if holder.pid == process.pid for uuid in holder.uuids}
    table = mig_table(shown_profile(function))
    for instance, compute in function.mig.devices():
        profile = None if table is None else table.by_id(instance.profile_id)
        if compute.uuid not in named or profile is None:
            continue
        most_mib = profile.memory_mib * FILLED_PERCENT // 100
        used_mib = min(process.used_mib, most_mib)
        return replace(process, used_mib=used_mib, gpu_instance=instance.id, compute_instance=compute.id)
    return process


def _filled_mib(function: Function, processes: Iterable[NvmlProcess]) -> int:
    table = mig_table(shown_profile(function))
    idle = sum(idle_mib(table, each) for each in function.mig.instances) if table is not None else 0
    return idle + sum(process.used_mib for process in processes)


def _processes(holders: dict[str, Holder], filled: Iterable[tuple[str, int]]) -> tuple[NvmlProcess, ...]:
    shown = [
        NvmlProcess(holder.pid, holder.name, memory_mib)
        for holder, memory_mib in ((holders.pop(key), memory_mib) for key, memory_mib in filled)
    ]
    return (*shown, *(NvmlProcess(holder.pid, holder.name) for holder in holders.values()))
