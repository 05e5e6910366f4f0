"""Every fault of the emulator is found as the clauses that it breaks, and as no others; without one, all hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from mews.emulator.chassis.faults.registry import OURS as FAULTS
from mews.emulator.serve import ChassisServer
from mews.harness.conformance.clause import Clause
from mews.harness.conformance.judge import PASSED, SKIPPED
from tests.harness.conformance.judging import BRISK, IDLE, broken, ca_of, judged, served, url_of

pytestmark = pytest.mark.wall

EVER = {"count": None}
H3API, POOL, REDFISH = "h3api", "resource-pool", "redfish"
SECTION = {H3API: 2, POOL: 3, REDFISH: 4}

CASES: list[tuple[dict[str, Any], dict[str, set[str]]]] = [
    ({"kind": "slow-operation", "extra_s": 2.3, "operation": "attach"}, {H3API: {"times"}, POOL: set()}),
    ({"kind": "slow-operation", "extra_s": 2.3, "operation": "read"}, {H3API: {"times"}, POOL: set()}),
    (
        {"kind": "lying-result", "operation": "attach", **EVER},
        {H3API: {"truth-attach"}, POOL: set(), REDFISH: {"server-errors", "truth-attach"}},
    ),
    (
        {"kind": "lying-result", "operation": "attach", "says": False, **EVER},
        {H3API: {"truth-attach"}, POOL: set(), REDFISH: {"server-errors"}},
    ),
    (
        {"kind": "lying-result", "operation": "detach", **EVER},
        {H3API: {"truth-detach"}, POOL: set(), REDFISH: {"server-errors"}},
    ),
    ({"kind": "dropped-connection", "operation": "attach", "when": "after"}, {H3API: {"answers"}, POOL: {"answers"}}),
    ({"kind": "dropped-connection", "operation": "attach", "when": "before"}, {H3API: {"answers"}, POOL: {"answers"}}),
    ({"kind": "dropped-connection", "operation": "detach", "when": "before"}, {H3API: {"answers"}, POOL: {"answers"}}),
    ({"kind": "dropped-connection", "operation": "read"}, {H3API: {"answers"}, POOL: {"answers"}}),
    ({"kind": "timeout", "operation": "attach", "hold_s": 1.0}, {H3API: {"answers"}, POOL: {"answers"}}),
    ({"kind": "http-error", "operation": "read", "status": 502}, {H3API: {"server-errors"}, POOL: {"server-errors"}}),
    ({"kind": "http-error", "operation": "attach"}, {H3API: {"server-errors"}, POOL: {"server-errors"}}),
    (
        {"kind": "http-error", "operation": "detach", "when": "after"},
        {H3API: {"server-errors"}, POOL: {"server-errors"}},
    ),
    ({"kind": "partial-list", "skip": 4}, {H3API: {"complete"}, POOL: {"complete"}}),
    ({"kind": "half-applied-attach"}, {H3API: {"attach"}, POOL: {"attach"}}),
    ({"kind": "half-applied-attach", **EVER}, {H3API: {"attach"}, POOL: {"attach"}}),
    ({"kind": "never-trains", "wait_s": 0.0}, {H3API: {"attach"}, POOL: {"attach", "server-errors"}}),
    (
        {"kind": "management-reboot", "operation": "attach", "down_s": 2.0},  # the next read falls within it
        {H3API: {"answers"}, POOL: {"answers"}, REDFISH: {"answers", "server-errors"}},
    ),
    (
        {"kind": "concurrent-editor", "operation": "attach", "edit": "000900", "port": "1", **EVER},
        {H3API: {"alone"}, POOL: {"alone"}},
    ),
    ({"kind": "wrong-uuid"}, {H3API: {"uuid"}, POOL: {"uuid"}}),
    ({"kind": "wrong-uuid", "uuid": ""}, {H3API: {"uuid"}, POOL: {"uuid"}}),
    ({"kind": "lost-uuid", "device": "000C00"}, {H3API: set(), POOL: set()}),
    ({"kind": "events-out-of-order"}, {H3API: set(), POOL: set()}),
    # Long enough for a read on a slow machine to fall within it, short enough for a fast one to be still reading.
    ({"kind": "read-aftermath", "within_s": 0.3, "partial": 0.0, **EVER}, {H3API: {"answers"}, POOL: {"answers"}}),
]


OF_FM: list[tuple[dict[str, Any], set[str]]] = [
    ({"kind": "token-ends", "operation": "attach"}, {"truth-attach"}),  # the answer to the request made again
    ({"kind": "token-ends", "operation": "detach", "when": "before"}, set()),
    ({"kind": "listed-twice", **EVER}, {"one-place"}),
    ({"kind": "unknown-host", **EVER}, set()),
    ({"kind": "dropped-connection", "operation": "attach", "when": "after"}, {"answers"}),
    ({"kind": "partial-list", "skip": 4}, {"complete"}),
    ({"kind": "wrong-uuid"}, {"uuid"}),
]
"""What a fabric manager's clauses make of faults."""

OF_CDIM: list[tuple[dict[str, Any], set[str]]] = [
    ({"kind": "layout-busy", "count": 2}, set()),  # a layout that meets another one is asked for again
    ({"kind": "layout-half-done", "operation": "attach"}, {"truth-attach"}),
    ({"kind": "layout-half-done", "operation": "attach", "when": "before"}, {"attach"}),
    ({"kind": "layout-half-done", "operation": "detach", "ends": "SUSPENDED"}, {"truth-detach"}),
    ({"kind": "listed-twice", **EVER}, {"one-place"}),
    ({"kind": "unknown-host", **EVER}, set()),
    ({"kind": "dropped-connection", "operation": "attach", "when": "after"}, {"answers"}),
    ({"kind": "lying-result", "operation": "detach"}, {"truth-detach"}),
    ({"kind": "wrong-uuid"}, {"uuid"}),
]
"""What the clauses of configuration manager and layout-apply make of faults."""

WALKING = {"4.taken-block", "4.ready-to-remove", "4.patch-bad", "4.patch-mixed", "4.patch-nothing"}


def moves(clause: Clause) -> bool:
    """Of Redfish only what needs no walk through all resources: faults are about the table."""
    return not clause.id.startswith("4.") or (clause.changes and clause.id not in WALKING) or clause.last


@pytest.fixture(scope="module")
def shared() -> Iterator[ChassisServer]:
    with served() as server:
        yield server


@pytest.fixture
def server(shared: ChassisServer) -> ChassisServer:
    """As it is at the start."""
    with shared.rack.box("A") as box:
        box.reset(shared.rack.clock.now())
    return shared


def known(server: ChassisServer) -> dict[str, Any]:
    return {"credentials": ("admin", server.password), "ca": ca_of(server)}


def name(case: Any) -> str:
    return " ".join(map(str, case.values())) if "kind" in case else "breaks"


@pytest.mark.parametrize("dialect", [H3API, POOL, REDFISH])
@pytest.mark.parametrize(("spec", "expected"), CASES, ids=name)
def test_a_fault_is_found_as_the_clauses_that_it_breaks(dialect, spec, expected, server):
    with server.rack.box("A") as box:
        box.faults.add(spec, server.rack.clock.now())
    results = judged(url_of(server, dialect), dialect, **known(server), only=moves)
    wanted = expected.get(dialect, expected[POOL])
    assert broken(results) == {f"{SECTION[dialect]}.{word}" for word in wanted}, told(results)


@pytest.mark.parametrize("dialect", [H3API, POOL, REDFISH])
def test_a_device_that_falls_off_its_link_on_the_way_is_lost(dialect, server):
    def fall() -> None:
        with server.rack.box("A") as box:
            box.faults.add({"kind": "link-down", "device": "000C00"}, server.rack.clock.now())

    results = judged(
        url_of(server, dialect),
        dialect,
        **known(server),
        only=moves,
        listed=fall,
    )
    assert broken(results) == {f"{SECTION[dialect]}.lost"}, told(results)


@pytest.mark.parametrize("dialect", [H3API, POOL])
def test_a_list_that_shows_the_past_is_not_fresh(dialect, server):
    with server.rack.box("A") as box:
        box.faults.add({"kind": "stale-list", "age_s": 0.2, "count": None}, server.rack.clock.now())
    results = judged(url_of(server, dialect), dialect, limits=replace(BRISK, settle_s=2.0))
    assert f"{SECTION[dialect]}.fresh" in broken(results), told(results)


def test_every_fault_of_the_registry_is_among_the_cases():
    cases = {spec["kind"] for spec, _ in (*CASES, *OF_FM, *OF_CDIM)}
    assert cases | {"stale-list", "link-down"} == set(FAULTS)


@pytest.mark.parametrize(("spec", "expected"), OF_FM, ids=str)
def test_a_fault_of_a_fabric_manager_is_found_as_the_clause_that_it_breaks(spec, expected, server):
    with server.rack.box("A") as box:
        box.faults.add(spec, server.rack.clock.now())
    results = judged(url_of(server, "fm"), "fm", **known(server))
    assert broken(results) == {f"5.{word}" for word in expected}, told(results)


@pytest.mark.parametrize(("spec", "expected"), OF_CDIM, ids=str)
def test_a_fault_of_layouts_is_found_as_the_clause_that_it_breaks(spec, expected, server):
    with server.rack.box("A") as box:
        box.faults.add(spec, server.rack.clock.now())
    results = judged(url_of(server, "cdim"), "cdim", **known(server))
    assert broken(results) == {f"6.{word}" for word in expected}, told(results)


@pytest.mark.parametrize("dialect", [H3API, POOL])
def test_without_a_fault_every_clause_that_can_be_judged_holds(dialect, server):
    results = judged(url_of(server, dialect), dialect)
    assert broken(results) == set(), told(results)
    open_ones = {clause for clause, result in results.items() if result.verdict == SKIPPED}
    assert open_ones == {H3API: {"2.host-lag"}, POOL: {"3.null", "3.persistence", "3.start-file"}}[dialect]


@pytest.mark.parametrize("dialect", [H3API, POOL])
def test_read_only_sends_nothing_but_get_and_changes_nothing(dialect, server):
    seq = server.rack.feed.seq
    results = judged(url_of(server, dialect), dialect, changes=False)
    assert server.rack.feed.since(seq) == []
    sent = {exchange.method for result in results.values() for exchange in result.exchanges}
    assert sent == {"GET"}
    assert {result.verdict for result in results.values()} == {PASSED, SKIPPED}


def test_an_empty_chassis_is_null_in_resource_pool(server):
    with server.rack.box("A") as box:
        for device in box.table.devices():
            box.edits.remove(device, server.rack.clock.now())
    assert judged(url_of(server, POOL), POOL, changes=False)["3.null"].verdict == PASSED


def test_the_idle_devices_are_the_only_ones_that_move(server):
    seq = server.rack.feed.seq
    judged(url_of(server, POOL), POOL)
    moved = {event["device"] for event in server.rack.feed.since(seq) if event["event"] == "table-changed"}
    assert moved
    assert moved <= set(IDLE)


def told(results):
    return {clause: result.reason for clause, result in results.items() if not result.good}
