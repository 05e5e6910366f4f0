"""How fast the GPUs of a pod, and of a gang, reach each other, by how they are chosen. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from mews.kube.system.comparing import compared, picked
from mews.kube.system.experiment import Comparison, Experiment, ExperimentPart, Figure, Panel, Row, Series, Tables
from mews.kube.system.statistics import half_width
from mews.systems.koordinator.allocations import DeviceAllocation
from mews.systems.koordinator.devices import NodeDeviceReport
from mews.systems.koordinator.experiment.nodes import cube_mesh, nvswitch, pcie_only
from mews.systems.koordinator.gangs import GangMember, place_gang
from mews.systems.koordinator.names import GPU, NVIDIA
from mews.systems.koordinator.policy import NoDevices, allocate
from mews.systems.koordinator.requests import DeviceAsk, ask_of
from mews.systems.koordinator.selection import Bandwidth
from mews.systems.koordinator.usage import NodeUse, PodUse

SERVERS: Mapping[str, Callable[[], NodeDeviceReport]] = {
    "V100, hybrid cube mesh": cube_mesh,
    "A100, NVSwitch": nvswitch,
    "PCIe only": pcie_only,
}
ASKS: Mapping[str, tuple[int, ...]] = {"one pod, 2": (2,), "one pod, 4": (4,), "gang, 2 + 2": (2, 2)}
"""How many GPUs the pods ask for that must come together."""

WAYS = ("kubelet", "minor", "best")
TAKEN = (0, 1, 2, 3, 4)
"""How many of the eight GPUs others have."""


def tasks(seeds: range) -> list[int]:
    """Which GPUs others have, and which the kubelet takes, hang on the seed."""
    return list(seeds)


def run(seed: int) -> list[dict[str, Any]]:
    """Return every server, number of GPUs taken, and ask, in all three ways: the slowest pair and the sum over the
    pairs."""
    found = []
    for server, make in SERVERS.items():
        report = make()
        bandwidth = Bandwidth(report.links, GPU)
        for taken in TAKEN:
            rng = random.Random(f"links/{seed}/{server}/{taken}")
            use, free = _occupied(report, taken, rng)
            for ask, counts in ASKS.items():
                for way in WAYS:
                    minors = _chosen(way, use, free, counts, rng)
                    slowest, total = bandwidth.quality(sorted(minors))
                    row = {"server": server, "taken": taken, "ask": ask, "way": way, "seed": seed}
                    found.append({**row, "slowest_mb_s": slowest, "sum_mb_s": total})
    return found


def _occupied(report: NodeDeviceReport, taken: int, rng: random.Random) -> tuple[NodeUse, list[int]]:
    gpus = report.of_type(GPU)
    others = rng.sample(gpus, taken)
    held = tuple(DeviceAllocation(GPU, each.minor, each.resources, each.id) for each in others)
    use = NodeUse.of(report)
    if held:
        use = use.plus(PodUse("others", "default/others", held))
    return use, [each.minor for each in gpus if each not in others]


def _chosen(way: str, use: NodeUse, free: Sequence[int], counts: Sequence[int], rng: random.Random) -> list[int]:
    """Return the minors that the pods get together."""
    if way == "kubelet":
        return rng.sample(list(free), sum(counts))
    if way == "best" and len(counts) > 1:
        members = [GangMember(f"pod-{n}", f"{n}", _ask(count)) for n, count in enumerate(counts)]
        placed = place_gang(members, use)
        assert not isinstance(placed, NoDevices), "four of eight GPUs are free"
        return [each.minor for given in placed.values() for each in given]
    minors: list[int] = []
    for number, count in enumerate(counts):
        given = allocate(_ask(count), use, choice="minor" if way == "minor" else "bandwidth")
        assert not isinstance(given, NoDevices), "four of eight GPUs are free"
        minors += [each.minor for each in given]
        use = use.plus(PodUse(f"pod-{number}", f"default/pod-{number}", given))
    return minors


def _ask(count: int) -> DeviceAsk:
    ask = ask_of({NVIDIA: count}, {})
    assert ask is not None, "it asks for GPUs"
    return ask


def rows(seeds: range, results: Sequence[Sequence[Row]]) -> list[Row]:
    """Return one a choice."""
    return [row for result in results for row in result]


def _values(table: Sequence[Row], server: str, ask: str, way: str) -> list[float]:
    return [row["slowest_mb_s"] / 1000.0 for row in picked(table, server=server, ask=ask, way=way)]


def comparisons(tables: Tables) -> list[Comparison]:
    """Return the slowest pair of each ask, each way."""
    table = tables["rows"]
    return [
        compared(f"slowest pair, GB/s: {server}; {ask}; {way}", _values(table, server, ask, way))
        for server in SERVERS
        for ask in ASKS
        for way in WAYS
    ]


def figures(tables: Tables) -> list[Figure]:
    """Return a panel a server, bars by ask."""
    table = tables["rows"]
    panels = []
    for server in SERVERS:
        series = []
        for way in WAYS:
            cells = [_values(table, server, ask, way) for ask in ASKS]
            spread = tuple(half_width(each) if len(each) > 1 else 0.0 for each in cells)
            series.append(Series(way, tuple(map(fmean, cells)), spread))
        panels.append(Panel(server, tuple(series), places=tuple(ASKS)))
    return [Figure("koordinator-links", "bars", "slowest pair, GB/s", tuple(panels))]


NOTES = (
    "Eight GPUs, of which others have none to four by chance. kubelet: any free ones, as it takes them of a plugin "
    "without preference; minor: the lowest numbers, as the proposal's text; best: the scheduler's own choice, a "
    "gang jointly. A gang's pairs are all those of its GPUs together.",
    "The proposal gives the motive and no figures. Links as NVIDIA publishes them. {rows} seeds.",
)

LINKS = Experiment(
    name="koordinator-links",
    summary="bandwidth of the chosen GPUs: the kubelet's, by minor number, the best; one pod and gangs",
    parts=(ExperimentPart("rows", "every server, occupation and ask", 40, tasks, run, rows),),
    title="Bandwidth of the chosen GPUs",
    notes=NOTES,
    figures=figures,
    comparisons=comparisons,
)
"""Why devices are chosen by their links."""
