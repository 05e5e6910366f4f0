"""Upstream's own unit tables, as situations: ours decides as they expect, but for those that are listed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mews.systems.koordinator import policy
from mews.systems.koordinator.allocations import DeviceAllocation
from mews.systems.koordinator.devices import NodeDevice, NodeDeviceReport
from mews.systems.koordinator.errors import InvalidRequest
from mews.systems.koordinator.node_choice import sized
from mews.systems.koordinator.requests import ask_of, parse_demands
from mews.systems.koordinator.scoring import DEFAULT_WEIGHTS, normalized, score
from mews.systems.koordinator.usage import NodeUse, PodUse, gpu_resources
from tests.systems.koordinator.upstream.comparing import ours
from tests.systems.koordinator.upstream.drawing import CORE, HINT, MEMORY, RATIO, RDMA, SPEC
from tests.systems.koordinator.upstream.situations import (
    COUNTS,
    GIB,
    NOT_EQUAL,
    PLACEMENTS,
    SHARES,
    VALID,
    Placement,
)

Outcome = tuple[str, Any, Any]
"""Name of a situation, what upstream expects, what ours does."""


def placements() -> Iterator[Outcome]:
    for name, placement in PLACEMENTS.items():
        yield name, _expected(placement), _given(placement)


def _expected(placement: Placement) -> Any:
    if placement.gpus is None:
        return None
    return list(placement.gpus), dict(placement.nics)


def _given(placement: Placement) -> Any:
    answer = ours(placement.case())
    if answer["verdict"] != "given":
        return None
    given = answer["given"]
    nics = {minor: _function(minor, buses) for minor, _, buses in given.get("rdma", ())}
    return [minor for minor, _, _ in given.get("gpu", ())], nics


def _function(minor: int, buses: list[str]) -> int | None:
    if not buses:
        return None
    (bus,) = buses
    _, slot, rest = bus.split(":")
    assert int(slot, 16) == minor
    return int(rest[:2], 16) * 8 + int(rest[3:])


def requests() -> Iterator[Outcome]:
    for valid, rows in VALID.items():
        for asked in rows:
            yield "+".join(asked), valid, bool(_demands(asked))
    for asked, count, each in SHARES:
        (demand,) = parse_demands(asked)
        yield f"shares of {asked}", (count, dict(each)), (demand.count, dict(demand.each))
    for amount, hint, count, each in COUNTS:
        ask = ask_of({RDMA: amount}, {HINT: json.dumps({"rdma": hint})} if hint else {})
        assert ask is not None
        found = sized(ask, ask.demands[0], _adapters())
        yield f"{amount} of adapters, {hint}", (count, {RDMA: each}), (found.count, dict(found.each))


def _demands(asked: Mapping[str, int]) -> Any:
    try:
        return parse_demands(asked)
    except InvalidRequest:
        return ()


def _adapters() -> NodeDeviceReport:
    types = ["fakeW"] * 4 + ["fakeS"]
    listed = (NodeDevice("rdma", n, f"N{n}", True, {RDMA: 100}, labels={"type": t}) for n, t in enumerate(types, 1))
    return NodeDeviceReport("n", tuple(listed))


def requirements() -> Iterator[Outcome]:
    """parseGPURequirements."""
    half, whole = {"koordinator.sh/gpu": 50}, {"koordinator.sh/gpu": 200}
    yield "no GPUs", None, _gpus_of({RDMA: 100}, {})
    yield "a partition spec that is none", "invalid", _gpus_of(whole, {SPEC: "{"})
    yield "without hints", (1, False, None, ""), _gpus_of(half, {})
    spec, hint = {"allocatePolicy": "Restricted"}, {"gpu": {"requiredTopologyScope": "NUMANode"}}
    found = _gpus_of(whole, {SPEC: json.dumps(spec), HINT: json.dumps(hint)})
    yield "with hints", (2, True, True, "NUMANode"), found


def _gpus_of(asked: Mapping[str, int], notes: Mapping[str, str]) -> Any:
    try:
        ask = ask_of(asked, notes)
    except InvalidRequest:
        return "invalid"
    demand = ask.demand("gpu") if ask else None
    if ask is None or demand is None:
        return None
    spec = ask.partition
    return demand.count, demand.whole_devices, spec.restricted if spec else None, ask.hint("gpu").scope


def scores() -> Iterator[Outcome]:
    """scoring_test.go; 975 of 1,000 are ten GPUs in one there, and so are 950 of an adapter."""
    for asked, free, strategy, expected in (
        (50, 100, "leastAllocated", 50), (50, 0, "leastAllocated", 0),
        (30, 50, "leastAllocated", 20), (30, 50, "mostAllocated", 80),
    ):  # fmt: skip
        found = score({RATIO: asked}, {RATIO: 100}, {RATIO: free}, DEFAULT_WEIGHTS, strategy)  # type: ignore[arg-type]
        yield f"{asked} beside {free}, {strategy}", expected, found
    for name, expected, of, used, asked, strategy in (
        ("idle", 0, (100,), 0, 100, "leastAllocated"),
        ("two GPUs, idle", 75, (100, 100), 0, 50, "leastAllocated"),
        ("the rest", 25, (100,), 25, 50, "leastAllocated"),
        ("the rest, most allocated", 75, (100,), 25, 50, "mostAllocated"),
    ):
        ask, use = ask_of({CORE: asked, RATIO: asked}, {}), _used(of, used)
        assert ask is not None
        yield name, expected, policy.node_score(ask, use, choice=strategy)  # type: ignore[arg-type]
    several = ask_of({CORE: 50, RATIO: 50, RDMA: 25}, {})
    assert several is not None
    yield "several types", 184, policy.node_score(several, _used((1000,), 25, adapters=50))
    for given, found in (([0], [0]), ([10], [100]), ([200, 10], [100, 5])):
        yield f"normalized {given}", found, list(normalized({str(n): one for n, one in enumerate(given)}).values())


def _used(of: tuple[int, ...], used: int, *, adapters: int = 0) -> NodeUse:
    gpus = [NodeDevice("gpu", n, f"G{n}", True, {CORE: c, RATIO: c, MEMORY: 16 * GIB}) for n, c in enumerate(of)]
    nic = NodeDevice("rdma", 0, "N0", True, {RDMA: 1000})
    use = NodeUse.of(NodeDeviceReport("n", (*gpus, nic)))
    given = DeviceAllocation("gpu", 0, {CORE: used, RATIO: used, MEMORY: 4 * GIB}, "G0")
    others = (DeviceAllocation("rdma", 0, {RDMA: adapters}, "N0"),) if adapters else ()
    return use.plus(PodUse("u", "d/u", (given, *others))) if used else use


def memory() -> Iterator[Outcome]:
    """fillGPUTotalMem."""
    gpu = NodeDevice("gpu", 0, "G0", True, gpu_resources(32 * GIB))
    both = {CORE: 50, MEMORY: 16 * GIB, RATIO: 50}
    for asked in ({CORE: 50, RATIO: 50}, {CORE: 50, MEMORY: 16 * GIB}):
        (demand,) = parse_demands(asked)
        yield f"{asked} on a GPU", both, demand.on(gpu)


def test_ours_decides_as_upstreams_unit_tables_expect_but_for_those_that_are_listed() -> None:
    outcomes = [*placements(), *requests(), *requirements(), *scores(), *memory()]
    differing = {name: (expected, found) for name, expected, found in outcomes if expected != found}
    assert differing.keys() == NOT_EQUAL.keys(), differing
    assert len(outcomes) >= 100
    assert len(differing) * 100 <= 5 * len(outcomes)


def test_a_situation_that_is_expected_otherwise_is_seen() -> None:
    wrong = Placement(PLACEMENTS["near: a GPU"].server, PLACEMENTS["near: a GPU"].asks, (1,), {1: 0})
    assert _given(wrong) != _expected(wrong)
