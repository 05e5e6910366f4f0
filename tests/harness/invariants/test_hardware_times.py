"""Laws 1001, 1002 and 1009, and what laws 73 and 96 know of a run's hardware: streams of chassis and hosts."""

from __future__ import annotations

from typing import Any

import pytest

from mews.emulator.hardware.chassis_profiles import PROFILES
from mews.emulator.hardware.latency import parse_latency
from mews.emulator.inventory.reading import parse_hardware
from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.judge import InvariantJudge
from mews.harness.invariants.reactions import built_in, hardware_spans
from mews.harness.journal import Line

BOX, HOST = "chassis/A", "host/h"
SPANS = {
    (BOX, "attach"): (5.0, 10.0),
    (BOX, "detach"): (2.0, 2.0),
    (BOX, "lie"): (15.0, 18.0),
    **{(HOST, arrow): (1.0, 2.0) for arrow in ("link", "function", "driver", "node", "nvml")},
}
DEVICE = {"device": "a", "uuid": "GPU-a", "gpuid": "0-a"}
SHOWN = {**DEVICE, "kind": "GPU", "bdf": "01:00.0", "minor": 0, "healthy": False}
ROW = {"uuid": "GPU-a", "gpuid": "0-a", "port": None, "host": None}
Said = tuple[float, str, str, str, dict[str, Any]]


def chassis(t: float, event: str, **fields: Any) -> Said:
    place = {"port": "1", "host": "h", "old_port": None, "old_host": None}
    return t, "chassis", BOX, event, {**DEVICE, **place, **fields}


def begun(t: float, number: int = 1, kind: str = "attach") -> Said:
    return chassis(t, f"{kind}-begun", operation=number)


def finished(t: float, number: int = 1, kind: str = "attach", **fields: Any) -> Said:
    told = {"answer": "true", "truth": True, "reason": "", "kind": kind, "operation": number, **fields}
    return chassis(t, "operation-finished", **told)


def fault(t: float, event: str, kind: str, actor: str = BOX, **fields: Any) -> Said:
    return t, "fault", actor, event, {"fault": "f1", "kind": kind, "count": 1, "fired": 1, "left": 0, **fields}


def host(t: float, event: str, **fields: Any) -> Said:
    return t, "host", HOST, event, {**SHOWN, **fields}


def table(devices: dict[str, Any] | None = None) -> Said:
    return 0.0, "host", HOST, "table", {"devices": {} if devices is None else devices}


def later(t: float) -> Said:
    return t, "step", "s", "passed", {"step": 1, "do": "wait"}


def named(law: int, *said: Said, **bounds: Any) -> list[tuple[int | None, int | None]]:
    """The numbers of the lines that the law's breaches name: the first wrong one, and the one it was due before."""
    judge = InvariantJudge(Bounds(**{"spans": SPANS, **bounds}))
    start = (0.0, "chassis", BOX, "table", {"pool": "p", "ports": {"1": "h"}, "devices": {"a": ROW}})
    for number, (t, layer, actor, event, fields) in enumerate((start, *said)):
        judge.on_line(Line(number, t, layer, actor, event, fields))
    judge.pass_time(1e6)
    found = [each for each in judge.violations if each.invariant == law]
    return [(each.first and each.first.number, each.overdue and each.overdue.number) for each in found]


@pytest.mark.parametrize("took_s", [5.0, 7.0, 10.0])
def test_an_operation_that_takes_what_its_profile_says_is_well(took_s: float) -> None:
    assert named(1001, begun(3.0), finished(3.0 + took_s), later(90.0)) == []


def test_one_that_takes_less_or_more_is_named() -> None:
    assert named(1001, begun(3.0), finished(7.0), later(90.0)) == [(2, None)]
    assert named(1001, begun(3.0), finished(14.0), later(90.0)) == [(2, 2)]


def test_the_second_begins_when_the_first_has_ended() -> None:
    first, second = (begun(0.0), begun(1.0, 2, "detach")), finished(8.0)
    assert named(1001, *first, second, finished(10.0, 2, "detach"), later(90.0)) == []
    assert named(1001, *first, second, finished(8.5, 2, "detach"), later(90.0)) == [(4, None)]


def test_what_is_refused_at_once_takes_no_time_and_what_is_cancelled_is_not_judged() -> None:
    assert named(1001, begun(3.0), finished(3.0, truth=False, answer="false", reason="busy"), later(90.0)) == []
    assert named(1001, begun(3.0), finished(4.0, truth=False, answer="false", reason="cancelled"), later(90.0)) == []
    # Its work goes on, so that nobody knows when the next one is begun.
    cancelled = begun(3.0), finished(4.0, truth=False, answer="false", reason="cancelled")
    assert named(1001, *cancelled, begun(4.0, 2), finished(18.0, 2), later(90.0)) == []
    assert named(1001, *cancelled, begun(40.0, 2), finished(44.0, 2), later(90.0)) == [(4, None)]


@pytest.mark.parametrize(
    ("kind", "spec", "told", "well_s", "wrong_s"),
    [
        ("slow-operation", {"extra_s": 20.0}, {}, 26.0, 7.0),
        ("slow-operation", {"factor": 2.0, "extra_s": 0.0}, {}, 19.0, 7.0),
        ("never-trains", {"wait_s": 11.0}, {"truth": False, "answer": "false", "reason": "link-down"}, 11.0, 7.0),
        ("layout-busy", {}, {"truth": False, "answer": "false", "reason": "busy"}, 0.0, 7.0),
        ("lying-result", {}, {"answer": "false"}, 7.0, 16.0),
        ("lying-result", {"latency": 40.0}, {"answer": "false"}, 40.0, None),
    ],
)
def test_a_fault_stretches_an_operation_as_its_spec_says(
    kind: str, spec: dict[str, Any], told: dict[str, Any], well_s: float, wrong_s: float | None
) -> None:
    added = fault(1.0, "added", kind, spec=spec)
    fired = fault(3.0, "fired", kind, operation=1, excuses={})
    assert named(1001, added, fired, begun(3.0), finished(3.0 + well_s, **told), later(90.0)) == []
    if wrong_s is not None:
        wrong = named(1001, added, fired, begun(3.0), finished(3.0 + wrong_s, **told), later(90.0))
        assert [first for first, _ in wrong] == [4]


def test_a_lie_by_nature_takes_its_own_time() -> None:
    fired = fault(3.0, "fired", "lying-result", operation=1, excuses={}, built_in=True)
    assert named(1001, fired, begun(3.0), finished(19.0, answer="false"), later(90.0)) == []
    assert named(1001, fired, begun(3.0), finished(10.0, answer="false"), later(90.0)) == [(3, None)]


@pytest.mark.parametrize(("back_s", "wrong"), [(60.0, False), (55.0, True)])
def test_a_chassis_is_back_when_it_said_unless_somebody_clears_the_fault(back_s: float, wrong: bool) -> None:
    down = 10.0, "chassis", BOX, "down", {"until_s": 60.0}
    up = back_s, "chassis", BOX, "up", {}
    assert named(1001, down, up, later(90.0)) == ([(2, None)] if wrong else [])
    cleared = fault(back_s, "cleared", "management-reboot")
    assert named(1001, down, up, cleared, later(90.0)) == []


def test_a_chassis_comes_back_from_where_it_was_and_when_its_fault_is_cleared() -> None:
    down, up = (10.0, "chassis", BOX, "down", {"until_s": 60.0}), (60.0, "chassis", BOX, "up", {})
    cleared = fault(20.0, "cleared", "management-reboot")
    assert named(1001, up, later(90.0)) == [(1, None)]
    assert named(1001, down, cleared, up, later(90.0)) == [(2, None)]
    assert named(1001, down, fault(20.0, "cleared", "link-down"), up, later(90.0)) == []
    late = fault(1.0, "added", "events-out-of-order", spec={})
    assert named(1001, late, down, cleared, (70.0, *up[1:]), up, later(90.0)) == []


def test_a_chassis_that_is_killed_drops_what_it_was_at() -> None:
    lost = finished(4.0, truth=False, answer="dropped")
    killed = 4.0, "component", BOX, "killed", {}
    assert named(1001, begun(3.0), lost, killed, later(90.0)) == []


def test_nothing_is_judged_where_nobody_knows_the_hardware_or_lines_come_late() -> None:
    wrong = begun(3.0), finished(90.0), later(95.0)
    assert named(1001, *wrong) and not named(1001, *wrong, spans={}) and not named(1001, *wrong, lag_s=2.0)
    assert not named(1002, table(), chassis(3.0, "attached"), later(90.0), spans={})
    assert not named(1002, table(), chassis(3.0, "attached"), later(90.0), lag_s=2.0)


def test_the_spans_of_a_file_are_those_of_its_profiles() -> None:
    gpu = {"id": "0", "uuid": "GPU-h"}
    own = {"name": "h", "profile": {"driver": {"uniform": [1, 3]}, "pciehp": False}, "devices": [gpu]}
    box = {"name": "A", "profile": "falcon-4005", "ports": {"1": "h"}, "devices": []}
    head = {"apiVersion": "mews/v1", "kind": "Hardware"}
    found = parse_hardware({**head, "metadata": {"name": "x"}, "hosts": [own], "chassis": [box]}, "a test")
    spans, profile = hardware_spans(found, 2.0), PROFILES["falcon-4005"].profile("A")
    assert spans[BOX, "attach"] == (profile.attach.shortest_s / 2, profile.attach.longest_s / 2)
    assert spans[BOX, "lie"] == (12.5 / 2, 18.2 / 2)
    assert spans[HOST, "driver"] == (0.5, 1.5)
    assert (HOST, "function") not in spans
    assert built_in(found) == {HOST: ("h-0",)}


@pytest.mark.parametrize(
    ("value", "shortest_s"),
    [
        (3, 3.0),
        ({"uniform": [1, 2]}, 1.0),
        ({"normal": {"mean": 5, "sd": 1, "min": 2, "max": 9}}, 2.0),
        ({"gamma": {"shift": 4, "shape": 2, "scale": 1, "max": 9}}, 4.0),
    ],
)
def test_no_draw_is_shorter_than_the_shortest(value: Any, shortest_s: float) -> None:
    assert parse_latency(value).shortest_s == shortest_s


RISES = ("link-up", "function-added", "driver-bound", "nvml-visible")


def rise(t: float, until: int = 4, apart_s: float = 1.5) -> list[Said]:
    """The layers come up one after the other; NVML is two arrows above the driver."""
    found = [host(t + apart_s * place, event) for place, event in enumerate(RISES[:3], 1)]
    return [*found, host(t + apart_s * 5, RISES[3], healthy=True)][:until]


def test_layers_that_come_up_in_their_time_are_well() -> None:
    assert named(1002, table(), chassis(3.0, "attached"), *rise(3.0), later(90.0)) == []


@pytest.mark.parametrize("until", [0, 1, 2, 3])
def test_a_layer_that_does_not_come_is_named(until: int) -> None:
    said = table(), chassis(3.0, "attached"), *rise(3.0, until), later(90.0)
    assert named(1002, *said) == [(2 + until, len(said))]


@pytest.mark.parametrize("apart_s", [0.5, 2.5])
def test_a_layer_that_comes_too_soon_or_too_late_is_named(apart_s: float) -> None:
    said = table(), chassis(3.0, "attached"), host(3.0 + apart_s, "link-up"), *rise(3.0 + apart_s)[1:], later(90.0)
    assert 3 in {first for first, _ in named(1002, *said)}


@pytest.mark.parametrize(
    "excuse",
    [
        host(5.0, "stuck", arrow="function"),
        host(5.0, "link-down"),
        fault(5.0, "fired", "layer-slow", HOST, gpuid="0-a"),
        chassis(5.0, "detached", port=None, host=None, old_host="h"),
        (5.0, "host", HOST, "powered-off", {}),
        (5.0, "component", "chassis/B", "killed", {}),
    ],
)
def test_a_layer_that_something_keeps_is_not_awaited(excuse: Said) -> None:
    assert named(1002, table(), chassis(3.0, "attached"), *rise(3.0, 1), excuse, later(90.0)) == []


def test_a_host_that_is_off_or_has_the_device_already_trains_nothing() -> None:
    off = 1.0, "host", HOST, "powered-off", {}
    assert named(1002, table(), off, chassis(3.0, "attached"), later(90.0)) == []
    there = table({"0-a": {**SHOWN, "healthy": True}})
    assert named(1002, there, chassis(3.0, "link-up"), later(90.0)) == []


def test_a_driver_that_an_operator_took_does_not_come_by_itself() -> None:
    taken = host(20.0, "nvml-hidden"), host(20.0, "driver-unbound")
    back = host(30.0, "link-down"), host(31.0, "link-up"), host(32.5, "function-added")
    start = table(), chassis(3.0, "attached"), *rise(3.0)
    assert named(1002, *start, *taken, *back, later(90.0)) == []
    removed = *taken, host(20.0, "function-removed")
    assert named(1002, *start, *removed, *back, later(90.0)) == [(len(start) + 6, len(start) + 7)]


def test_an_adapter_has_no_nvml() -> None:
    said = [host(3.0 + 1.5 * place, event, kind="RDMA", minor=None) for place, event in enumerate(RISES[:3], 1)]
    assert named(1002, table(), chassis(3.0, "attached"), *said, later(90.0)) == []


def test_nvml_knows_a_gpu_again_when_the_fault_is_over() -> None:
    added = fault(1.0, "added", "nvml-unknown-error", HOST, spec={"for_s": 4.0})
    fired = fault(10.5, "fired", "nvml-unknown-error", HOST, gpuid="0-a")
    start = table(), added, chassis(3.0, "attached"), *rise(3.0, 3), fired, host(10.5, "nvml-visible")
    assert named(1002, *start, host(14.5, "nvml-recovered"), later(90.0)) == []
    assert named(1002, *start, later(90.0)) == [(7, 9)]
    assert named(1002, *start, host(12.0, "driver-unbound"), later(90.0)) == []
    assert named(1002, *start, fault(12.0, "cleared", "nvml-unknown-error", HOST), later(90.0)) == []


def test_a_host_shows_from_the_start_what_it_has() -> None:
    own = {"built_in": {HOST: ("h-0",)}}
    assert named(96, table({"h-0": SHOWN}), later(9.0), **own) == []
    assert named(96, table(), later(9.0), **own) == [(1, None)]
    assert named(96, table({"h-0": SHOWN, "0-a": SHOWN}), later(9.0), **own) == [(1, None)]
    assert named(96, table(), later(9.0)) == []


@pytest.mark.parametrize(("after", "before", "wrong"), [("h", None, True), ("h", "h", False)])
def test_a_host_sees_that_another_editor_takes_its_device(after: str, before: str | None, wrong: bool) -> None:
    there = table({"0-a": {**SHOWN, "healthy": True}})
    edited = chassis(3.0, "edited", host=before, old_host=after, cause="edit")
    assert bool(named(96, there, edited, later(9.0))) is wrong
    assert not named(96, there, edited, host(3.0, "lost"), later(9.0))


def test_a_fault_that_keeps_the_link_from_training_comes_in_the_place_of_its_line() -> None:
    struck = fault(3.0, "fired", "layer-slow", HOST, gpuid="0-a")
    assert named(96, table(), chassis(3.0, "attached"), later(9.0)) == [(3, None)]
    assert named(96, table(), chassis(3.0, "attached"), struck, later(9.0)) == []
    other = fault(3.0, "fired", "layer-slow", HOST, gpuid="0-b")
    assert named(96, table(), chassis(3.0, "attached"), other, later(9.0)) == [(3, None)]


def test_a_fault_that_may_break_a_law_names_the_device_that_it_strikes() -> None:
    fired = fault(3.0, "fired", "slow-operation", operation=1, excuses={"5": 1.0}, built_in=True)
    assert named(73, fired, begun(3.0), finished(9.0), later(90.0)) == [(1, None)]
    told = fault(3.0, "fired", "slow-operation", operation=1, excuses={"5": 1.0}, built_in=True, device="a")
    assert named(73, told, begun(3.0), finished(9.0), later(90.0)) == []


def test_a_fault_on_writes_is_followed_by_its_write() -> None:
    fired = fault(3.0, "fired", "lying-result", operation=1, excuses={}, built_in=True)
    assert named(73, fired, begun(3.0), finished(9.0, answer="false"), later(90.0)) == []
    assert named(73, fired, later(90.0)) == [(1, None)]
    reads = fault(3.0, "fired", "dropped-connection", operation=1, excuses={}, built_in=True)
    assert named(73, reads, later(90.0)) == []
    late = fault(1.0, "added", "events-out-of-order", spec={})
    assert named(73, late, fired, later(90.0)) == []


@pytest.mark.parametrize(
    ("kind", "spec", "wrong"),
    [
        ("layout-half-done", {}, True),
        ("layout-half-done", {"when": "before"}, False),
        ("dropped-connection", {"when": "before"}, False),
        ("half-applied-attach", {"says": False}, False),
        ("slow-operation", {"extra_s": 0.0}, True),
        ("", {}, True),
    ],
)
def test_only_a_fault_leaves_an_operation_without_effect(kind: str, spec: dict[str, Any], wrong: bool) -> None:
    answer = "dropped" if kind == "dropped-connection" else "false"
    struck = (fault(1.0, "added", kind, spec=spec), fault(3.0, "fired", kind, operation=1, excuses={})) if kind else ()
    said = *struck, begun(3.0), finished(9.0, truth=False, answer=answer), later(90.0)
    assert named(73, *said) == ([(len(said) - 1, None)] if wrong else [])


HIDDEN = host(9.0, "nvml-hidden")


STEP: Said = (0.1, "step", "s", "begun", {"step": 1, "do": "wait"})


def test_a_gpu_is_drained_before_it_is_taken() -> None:
    assert named(1009, STEP, HIDDEN, later(90.0)) == [(2, None)]
    assert named(1009, STEP, host(8.0, "draining", on=True), HIDDEN, later(90.0)) == []
    assert named(1009, STEP, host(7.0, "draining", on=True), host(8.0, "draining", on=False), HIDDEN, later(90.0)) == [
        (4, None)
    ]
    assert named(1009, HIDDEN) == [], "without the steps nobody knows what is done by hand"
    again = host(8.0, "draining", on=True), host(8.5, "driver-unbound"), HIDDEN
    assert named(1009, STEP, *again, later(90.0)) == [(4, None)]


@pytest.mark.parametrize(
    "excuse",
    [
        host(8.0, "xid", xid=48),
        host(8.0, "lost"),
        (8.0, "host", HOST, "powered-off", {}),
        (8.0, "step", "s", "begun", {"step": 2, "do": "host"}),
    ],
)
def test_a_broken_gpu_and_an_operator_need_no_drain(excuse: Said) -> None:
    assert named(1009, STEP, excuse, HIDDEN, later(90.0)) == []


def test_a_gpu_that_is_well_again_is_drained() -> None:
    assert named(1009, STEP, host(8.0, "xid", xid=48), host(8.5, "driver-bound"), HIDDEN, later(90.0)) == [(4, None)]
