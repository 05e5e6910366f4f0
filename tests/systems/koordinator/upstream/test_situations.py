"""Upstream's own unit tables, as situations: ours decides as they expect, but for those that are listed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mews.systems.koordinator import policy
from mews.systems.koordinator.admission import mutated
from mews.systems.koordinator.allocations import DeviceAllocation, allocations_text, parse_allocations
from mews.systems.koordinator.cache import NodeDeviceCache
from mews.systems.koordinator.devices import NodeDevice, NodeDeviceReport, amounts, parse
from mews.systems.koordinator.errors import BadDeviceError, InvalidRequestError
from mews.systems.koordinator.hints import hints_of
from mews.systems.koordinator.node_choice import sized
from mews.systems.koordinator.partition_tables import HOPPER
from mews.systems.koordinator.requests import ask_of, bytes_of, parse_demands, ratio_of
from mews.systems.koordinator.scoring import DEFAULT_WEIGHTS, normalized, score
from mews.systems.koordinator.usage import NodeUse, PodUse, gpu_resources
from mews.systems.koordinator.validation import refusal_of
from tests.systems.koordinator.upstream.comparing import ours
from tests.systems.koordinator.upstream.drawing import (
    CORE,
    FPGA,
    HINT,
    MEMORY,
    POLICY,
    RATIO,
    RDMA,
    SPEC,
    TABLE,
)
from tests.systems.koordinator.upstream.more_situations import (
    ADMITTED,
    ALL,
    ALLOCATED,
    CONVERTED,
    DEVICE_EVENTS,
    MADE,
    NOT_PLAYED,
    ON_NODE,
    POD_EVENTS,
    POLICIES,
    PRE_FILTER,
    RESERVE_POD,
    SPECS,
    TABLES,
    DeviceEvent,
    OnNode,
    PodEvent,
)
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
            yield f"valid: {dict(asked)}", valid, bool(_demands(asked))
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
    except InvalidRequestError:
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
    except InvalidRequestError:
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


def prefiltered() -> Iterator[Outcome]:
    for table, rows in (("asks", PRE_FILTER), ("is", CONVERTED)):
        for asked, expected in rows:
            yield f"{table}: {dict(asked)}", expected, _by_type(asked)


def _by_type(asked: Mapping[str, int]) -> Any:
    try:
        demands = parse_demands(asked)
    except InvalidRequestError:
        return "invalid"
    return {each.type: (each.count, dict(each.each)) for each in demands} or "skip"


def on_nodes() -> Iterator[Outcome]:
    for name, situation in ON_NODE.items():
        yield name, situation.expects, _given_on(situation)


def _given_on(situation: OnNode) -> Any:
    devices, taken = [], []
    for kind, shares in situation.free.items():
        for minor, share in enumerate(shares, situation.first):
            whole = _resources(kind, situation.memory * GIB)
            devices.append(NodeDevice(kind, minor, f"{kind}-{minor}", share is not None, whole))
            if share is not None and share < 100:
                used = {name: value * (100 - share) // 100 for name, value in whole.items()}
                taken.append(DeviceAllocation(kind, minor, used, f"{kind}-{minor}"))
    use = NodeUse.of(NodeDeviceReport("n", tuple(devices))).plus(PodUse("u", "d/u", tuple(taken)))
    ask = ask_of(situation.asks, {})
    assert ask is not None
    if situation.victims:
        assert isinstance(policy.filtered(ask, use, choice=situation.choice), policy.NoDevices)  # type: ignore[arg-type]
        use = use.minus("u")
    found = policy.filtered(ask, use, choice=situation.choice)  # type: ignore[arg-type]
    if isinstance(found, policy.NoDevices):
        return None
    return {
        kind: tuple(each.minor for each in found if each.type == kind)
        for kind in situation.free
        if kind in {each.type for each in found}
    }


def _resources(kind: str, memory: int) -> dict[str, int]:
    return gpu_resources(memory) if kind == "gpu" else {RDMA if kind == "rdma" else FPGA: 100}


def pod_events() -> Iterator[Outcome]:
    for name, event in POD_EVENTS.items():
        yield f"a pod is {name}", dict(event.free), _free_after(event)
    cache = NodeDeviceCache()
    cache.set_pod(_pod("Running", ""))
    yield "a pod of a node that is not known", [], list(cache.nodes)


def _free_after(event: PodEvent) -> Mapping[str, int]:
    cache = NodeDeviceCache()
    cache.set_device(_device({("gpu", 1): 16}))
    for phase in event.phases:
        if phase == "deleted":
            cache.remove_pod("u")
            continue
        try:
            cache.set_pod(_pod(phase, event.annotation))
        except BadDeviceError:
            assert event.annotation.startswith("incorrect")
    use = cache.use("n")
    assert use is not None
    return use.free(use.report.devices[0])


def _pod(phase: str, annotation: str) -> dict[str, Any]:
    notes = {"scheduling.koordinator.sh/device-allocated": annotation} if annotation else {}
    metadata = {"name": "test", "namespace": "default", "uid": "u", "annotations": notes}
    return {"metadata": metadata, "spec": {"nodeName": "n", "containers": []}, "status": {"phase": phase}}


def _device(listed: Mapping[tuple[str, int], int], **metadata: Any) -> dict[str, Any]:
    devices = [
        {"type": kind, "minor": minor, "id": f"{kind}-{minor}", "health": True}
        | {"resources": {name: str(value) for name, value in _resources(kind, memory * GIB).items()}}
        for (kind, minor), memory in listed.items()
    ]
    return {"metadata": {"name": "n", **metadata}, "spec": {"devices": devices}}


def device_events() -> Iterator[Outcome]:
    for name, event in DEVICE_EVENTS.items():
        yield (
            f"a Device: {name}",
            {slot: _resources(slot[0], gib * GIB) for slot, gib in event.free.items()},
            _after(event),
        )


def _after(event: DeviceEvent) -> Any:
    cache = NodeDeviceCache()
    for seen in event.seen:
        if seen is None:
            cache.remove_device("n")
        else:
            cache.set_device(_device(seen))
    use = cache.use("n")
    return {} if use is None else {(each.type, each.minor): use.free(each) for each in use.report.devices}


def annotations() -> Iterator[Outcome]:
    for text, expected in ALLOCATED:
        found = _or_invalid(lambda text=text: parse_allocations(text) if text else ())
        if found != "invalid":
            found = [(each.type, each.minor, dict(each.resources), each.id) for each in found]
        yield f"allocated {text}", expected, found
    whole = DeviceAllocation("gpu", 1, {CORE: 100, MEMORY: 16 * GIB, RATIO: 100})
    yield "an annotation is written", json.loads(ALL), json.loads(allocations_text([whole]))
    for text, spec in SPECS:
        partition = hints_of({SPEC: text} if text else {}).partition
        yield f"spec {text}", spec, None if partition is None else (partition.restricted, partition.bandwidth)
    for number, (text, expected) in enumerate(TABLES):
        found = _or_invalid(lambda text=text: parse(_device({}, annotations={TABLE: text})).partitions)
        if found != "invalid":
            found = [(each.minors, each.score, each.bandwidth) for each in found]
        yield f"table {number} of partitions", expected, found
    for word, honours in POLICIES:
        yield f"policy {word}", honours, parse(_device({}, labels={POLICY: word})).honours_partitions
    sizes = [len(each.minors) for each in HOPPER]
    yield "the table of Hopper servers", [1] * 8 + [2] * 4 + [4] * 2 + [8], sizes


def _or_invalid(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except BadDeviceError:
        return "invalid"


def webhooks() -> Iterator[Outcome]:
    for asked, message in ADMITTED:
        yield f"admitted {dict(asked)}", message, refusal_of(_asking(asked))
    note, message = RESERVE_POD
    yield "admitted with an annotation that nobody sets", message, refusal_of(_asking({}, {note: ""}))
    for asked, becomes in MADE:
        made = mutated(_asking(asked), scheduler="koord-scheduler", device_plugin=False)
        resources = made["spec"]["containers"][0]["resources"]
        found = {side: amounts(resources[side], side) for side in ("requests", "limits")}
        yield f"made of {dict(asked)}", {"requests": dict(becomes), "limits": dict(becomes)}, found


def _asking(asked: Mapping[str, int], notes: Mapping[str, str] | None = None) -> dict[str, Any]:
    quantities = {name: str(value) for name, value in asked.items()}
    container = {"name": "test-container-a", "resources": {"requests": quantities, "limits": dict(quantities)}}
    return {"metadata": {"name": "p", "annotations": dict(notes or {})}, "spec": {"containers": [container]}}


def books() -> Iterator[Outcome]:
    """service_test.go and the conversions of utils_test.go."""
    yield "half of a memory", 32 * GIB, bytes_of(50, 64 * GIB)
    yield "a memory's half", 50, ratio_of(32 * GIB, 64 * GIB)
    cache = NodeDeviceCache()
    cache.set_device(_device({("gpu", 0): 16, ("gpu", 1): 16, ("fpga", 2): 0}))
    half = {CORE: "49", RATIO: "49"}
    given = {
        "gpu": [{"minor": n, "resources": half} for n in (0, 1)],
        "fpga": [{"minor": 2, "resources": {FPGA: "51"}}],
    }
    cache.set_pod(_pod("Running", json.dumps(given)))
    summary = cache.summary()["n"]
    free = {
        kind: {minor: {n: v for n, v in each.items() if n != MEMORY} for minor, each in minors.items()}
        for kind, minors in summary["deviceFree"].items()
    }
    left = {CORE: "51", RATIO: "51"}
    yield "what is free in the books", {"gpu": {"0": left, "1": left}, "fpga": {"2": {FPGA: "49"}}}, free
    used = {"gpu": {"0": half, "1": half}, "fpga": {"2": {FPGA: "51"}}}
    yield "what is used in the books", used, summary["deviceUsed"]


_TABLES = (
    *(placements, requests, requirements, scores, memory, prefiltered, on_nodes),
    *(pod_events, device_events, annotations, webhooks, books),
)


def test_ours_decides_as_upstreams_unit_tables_expect_but_for_those_that_are_listed() -> None:
    outcomes = [outcome for table in _TABLES for outcome in table()]
    differing = {name: (expected, found) for name, expected, found in outcomes if expected != found}
    assert differing.keys() == NOT_EQUAL.keys(), differing
    assert len({name for name, _, _ in outcomes}) == len(outcomes)
    assert len(outcomes) >= 190
    assert len(differing) * 100 <= 3 * len(outcomes)


def test_each_table_that_is_left_out_says_why() -> None:
    assert all(reason for reason in NOT_PLAYED.values())


def test_a_situation_that_is_expected_otherwise_is_seen() -> None:
    wrong = Placement(PLACEMENTS["near: a GPU"].server, PLACEMENTS["near: a GPU"].asks, (1,), {1: 0})
    assert _given(wrong) != _expected(wrong)
