"""The bounds that follow from a run's configuration: latency profiles of its hardware, options of its systems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from mews.emulator.hardware.chassis_profiles import ChassisProfile
from mews.emulator.hardware.host_profiles import ARROWS, HostProfile
from mews.emulator.hardware.inventory import Hardware
from mews.emulator.hardware.latency import Latency
from mews.emulator.host.own_slots import own_chassis
from mews.kube.emulated.kubelet.timings import Timings
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.reaction import HardwareTimes, Reaction


def computed_bounds(systems: Iterable[ConfiguredSystem], hardware: Hardware, speed: float) -> Mapping[str, float]:
    """``allocatable_s`` and ``unattached_s`` for these systems on that hardware; {} where no system says how soon it
    follows. The slowest system counts, and on top of it the kubelets' node status loop, and their start where they have
    been away."""
    systems = list(systems)
    release_s = max((each.system.release_s(each.configuration) for each in systems), default=0.0)
    times = replace(hardware_times(hardware, speed), release_s=release_s)
    found = [each.system.judging.reaction(each.configuration, times) for each in systems]
    reactions: list[Reaction] = [each for each in found if each is not None]
    if not reactions:
        return {}
    kubelet = Timings()
    spread_s = kubelet.boot.high_s + kubelet.first_status.high_s + kubelet.tick.high_s
    return {
        "allocatable_s": max(each.notice_s for each in reactions) + max(spread_s, spread_s / speed),
        "unattached_s": max(each.repair_s for each in reactions),
    }


def hardware_times(hardware: Hardware, speed: float) -> HardwareTimes:
    """Return the longest that hardware takes by its profiles, in seconds of a clock of which one holds ``speed``
    emulated ones."""
    chassis = [each.profile for each in hardware.chassis]
    hosts = [each.profile for each in hardware.hosts]
    unnoticed = [each.link.longest_s for each in hosts if not each.pciehp]
    return HardwareTimes(
        read_s=max(map(_read_s, chassis), default=0.0) / speed,
        attach_s=max(map(_attach_s, chassis), default=0.0) / speed,
        detach_s=max((each.detach.longest_s for each in chassis), default=0.0) / speed,
        arrive_s=max(map(_arrive_s, hosts), default=0.0) / speed,
        leave_s=max((each.surprise.longest_s for each in hosts), default=0.0) / speed,
        unnoticed_s=max(unnoticed) / speed if unnoticed else None,
        devices=max((_within_reach(each.name, hardware) for each in hardware.hosts), default=1),
    )


def hardware_spans(hardware: Hardware, speed: float) -> Mapping[tuple[str, str], tuple[float, float]]:
    """Return ``Bounds.spans`` of that hardware, in seconds of a clock of which one holds ``speed`` emulated ones."""
    latencies: dict[tuple[str, str], Latency] = {}
    for each in hardware.chassis:
        actor = f"chassis/{each.name}"
        latencies |= {(actor, "attach"): each.profile.attach, (actor, "detach"): each.profile.detach}
        lying = next((quirk for quirk in each.profile.quirks if hasattr(quirk.get("latency"), "longest_s")), None)
        if lying is not None:
            latencies[actor, "lie"] = lying["latency"]
    for host in hardware.hosts:
        # Without hot-plug interrupts the kernel looks for a function when somebody tells it to.
        arrows = [arrow for arrow in ARROWS if arrow != "function" or host.profile.pciehp]
        latencies |= {(f"host/{host.name}", arrow): host.profile.arrow(arrow) for arrow in arrows}
    return {key: (each.shortest_s / speed, each.longest_s / speed) for key, each in latencies.items()}


def built_in(hardware: Hardware) -> Mapping[str, tuple[str, ...]]:
    """Return ``Bounds.built_in`` of that hardware."""
    return {
        f"host/{host.name}": tuple(own.gpuid(each.id) for own in own_chassis(host) for each in own.devices)
        for host in hardware.hosts
    }


def _read_s(profile: ChassisProfile) -> float:
    queue_s = max(_attach_s(profile), profile.detach.longest_s) if profile.reads_queue else 0.0
    return profile.read.longest_s + queue_s


def _attach_s(profile: ChassisProfile) -> float:
    """Return it by nature it may also lie, and take longer for it."""
    lying = [quirk for quirk in profile.quirks if hasattr(quirk.get("latency"), "longest_s")]
    lies_s: list[float] = [quirk["latency"].longest_s for quirk in lying]
    return max(profile.attach.longest_s, *lies_s, 0.0)


def _arrive_s(profile: HostProfile) -> float:
    return sum(profile.arrow(arrow).longest_s for arrow in ARROWS)


def _within_reach(host: str, hardware: Hardware) -> int:
    return sum(len(each.devices) for each in hardware.chassis if host in each.ports.values()) or 1
