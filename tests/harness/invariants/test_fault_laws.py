"""Laws 72 to 75: faults strike as they were declared, and hardware speaks the journal's words."""

from __future__ import annotations

from typing import Any

import pytest

from mews.emulator.chassis.faults import board as chassis_board
from mews.emulator.host import events as host_events
from mews.emulator.host.faults.board import HostFaults
from mews.harness.invariants.fault_counts import FaultCounts
from mews.harness.invariants.fault_strikes import FaultStrikes
from mews.harness.invariants.invariant import ObservedState
from mews.harness.invariants.layer_strikes import LayerStrikes
from mews.harness.invariants.vocabulary import Vocabulary
from mews.harness.journal import Line
from mews.kube.system.invariant import Breach, Invariant
from tests.harness.invariants.law_runs import PlantedRow, check_found, each_planted

CHASSIS, HOST = "chassis/A", "host/host-1"
Said = tuple[float, str, str, str, dict[str, Any]]
PLACE = {"device": "a", "uuid": "GPU-a", "gpuid": "0-a", "port": "1", "host": "h", "old_port": None, "old_host": None}
FUNCTION = {"device": "a", "uuid": "GPU-a", "gpuid": "0-a", "kind": "GPU", "bdf": "01:00.0", "minor": 0}


def judged(law: Invariant[Any], *said: Said) -> list[Breach]:
    state, found = ObservedState(), list[Breach]()
    for number, (t, layer, actor, event, fields) in enumerate(said):
        if law.events is None or (layer, event) in law.events:
            found += law.on_line(Line(number, t, layer, actor, event, fields), state)
    return [*found, *law.on_time(said[-1][0] + 1, state)]


def numbers(found: list[Breach]) -> list[tuple[int | None, int | None]]:
    return [(one.first and one.first.number, one.after and one.after.number) for one in found]


def added(kind: str, t: float = 0, *, count: int | None = 1, at: str = CHASSIS, name: str = "f1", **spec: Any) -> Said:
    return (t, "fault", at, "added", {"fault": name, "kind": kind, "spec": spec, "count": count})


def fired(kind: str, t: float, *, time: int = 1, left: int | None = 0, at: str = CHASSIS, **more: Any) -> Said:
    return (t, "fault", at, "fired", {"fault": "f1", "kind": kind, "fired": time, "left": left, "excuses": {}, **more})


def cleared(t: float, kind: str = "timeout") -> Said:
    return (t, "fault", CHASSIS, "cleared", {"fault": "f1", "kind": kind})


def begun(t: float, operation: int = 1, kind: str = "attach") -> Said:
    return (t, "chassis", CHASSIS, f"{kind}-begun", {**PLACE, "operation": operation})


def done(t: float, answer: str = "true", *, truth: bool = True, reason: str = "", operation: int = 1) -> Said:
    said = {**PLACE, "operation": operation, "kind": "attach", "answer": answer, "truth": truth, "reason": reason}
    return (t, "chassis", CHASSIS, "operation-finished", said)


def rose(t: float, event: str, *, healthy: bool = False) -> Said:
    return (t, "host", HOST, event, {**FUNCTION, "healthy": healthy})


TIMED = [added("link-down", 1, after_s=4), fired("link-down", 5), (9, "step", "s", "passed", {"step": 1})]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param(TIMED, [], id="in its time"),
        pytest.param([TIMED[0], TIMED[2]], [(1, 0)], id="never"),
        pytest.param([TIMED[0], fired("link-down", 3), TIMED[2]], [(1, 0)], id="too early"),
        pytest.param([TIMED[0], cleared(3), TIMED[2]], [], id="cleared before"),
        pytest.param([TIMED[0], (2, "chassis", CHASSIS, "table", {}), TIMED[2]], [], id="reset before"),
        pytest.param([added("timeout", after_s=4), TIMED[2]], [], id="no time of its own"),
        pytest.param([added("management-reboot", operation="read"), TIMED[2]], [], id="waits for an operation"),
        pytest.param([added("events-out-of-order"), TIMED[0], TIMED[2]], [], id="lines come late"),
        pytest.param(
            [added("events-out-of-order"), TIMED[0], fired("link-down", 1), TIMED[2]], [], id="both lines came late"
        ),
    ],
)
def test_a_fault_with_a_time_strikes_then(said: list[Said], named: list[object]) -> None:
    assert numbers(judged(FaultCounts(), *said)) == named


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([fired("timeout", 1, left=1), fired("timeout", 2, time=2)], [], id="two of two"),
        pytest.param([fired("timeout", 1, time=2, left=0)], [(1, 0)], id="counts one twice"),
        pytest.param([fired("timeout", 1, left=2)], [(1, 0)], id="leaves too many"),
        pytest.param(
            [fired("timeout", 1, left=1), fired("timeout", 2, time=2), fired("timeout", 3, time=3, left=-1)],
            [(3, 0)],
            id="once too often",
        ),
        pytest.param([fired("http-error", 1, left=1)], [(1, 0)], id="as another kind"),
        pytest.param([cleared(1), fired("timeout", 2, left=1)], [(2, 1)], id="after it was cleared"),
    ],
)
def test_a_fault_fires_as_often_as_it_may(said: list[Said], named: list[object]) -> None:
    assert numbers(judged(FaultCounts(), added("timeout", count=2), *said)) == named


AFTERMATH = fired("read-aftermath", 1)


def test_a_fault_that_was_added_to_a_chassis_while_it_was_down_is_forgotten_as_it_begins() -> None:
    begins = (1.0, "component", CHASSIS, "started", {})
    aftermath = added("read-aftermath", name="f2"), (2.0, "fault", CHASSIS, "fired", {**AFTERMATH[4], "fault": "f2"})
    assert not judged(FaultCounts(), added("timeout"), begins, *aftermath, fired("partial-list", 1))


def test_a_fault_that_is_added_to_a_chassis_that_is_down_is_reported() -> None:
    dies, begins = ((t, "component", CHASSIS, event, {}) for t, event in ((1.0, "killed"), (3.0, "started")))
    assert numbers(judged(FaultCounts(), dies, added("timeout", 2))) == [(1, 0)]
    assert not judged(FaultCounts(), dies, begins, added("timeout", 4))
    assert not judged(FaultCounts(), dies, added("timeout", 2, at="chassis/B"))


def test_what_nobody_has_added_fires_only_by_nature_or_as_aftermath() -> None:
    other = added("timeout", name="f0")
    assert numbers(judged(FaultCounts(), other, fired("partial-list", 1))) == [(1, None)]
    assert not judged(FaultCounts(), other, fired("lying-result", 1, built_in=True))
    assert numbers(judged(FaultCounts(), fired("lying-result", 1, built_in=True, time=2))) == [(0, None)]
    aftermath = fired("read-aftermath", 1, built_in=True)
    planted = (2.0, "fault", CHASSIS, "fired", {**fired("partial-list", 2)[4], "fault": "f2"})
    assert not judged(FaultCounts(), other, aftermath, planted)
    assert numbers(judged(FaultCounts(), fired("xid", 1, at=HOST))) == [(0, None)]


STRUCK = fired("timeout", 1, operation=1)


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([added("timeout"), STRUCK, begun(1), done(2, "dropped")], [], id="strikes"),
        pytest.param([added("timeout"), begun(1), done(2)], [(1, 0)], id="passes"),
        pytest.param([added("timeout", operation="detach"), begun(1), done(2)], [], id="another operation"),
        pytest.param([added("timeout", device="b"), begun(1), done(2)], [], id="another device"),
        pytest.param([added("timeout", expires_s=0.5), begun(1), done(2)], [], id="is over"),
        pytest.param([added("timeout", probability=0.5), begun(1), done(2)], [], id="by chance"),
        pytest.param(
            [added("timeout", device="b"), STRUCK, begun(1), done(2, "dropped")], [(1, 0)], id="the wrong one"
        ),
        pytest.param([added("timeout", skip=1), begun(1), done(2)], [], id="lets reads pass, which nobody sees"),
        pytest.param(
            [added("timeout", skip=1, operation="attach"), STRUCK, begun(1), done(2, "dropped")],
            [(1, 0)],
            id="too soon",
        ),
        pytest.param(
            [added("timeout", skip=1, operation="attach"), begun(1), done(2), begun(3, 2), done(4, operation=2)],
            [(3, 0)],
            id="skips one, and another",
        ),
        pytest.param([added("never-trains"), begun(1), done(2, "false", truth=False, reason="port")], [], id="refused"),
    ],
)
def test_a_fault_strikes_the_operations_that_its_spec_admits(said: list[Said], named: list[object]) -> None:
    assert numbers(judged(FaultStrikes(), *said)) == named


@pytest.mark.parametrize(
    ("kind", "spec", "answer", "truth", "is_well"),
    [
        ("timeout", {}, "dropped", True, True),
        ("timeout", {"when": "before"}, "dropped", True, False),
        ("dropped-connection", {}, "true", True, False),
        ("http-error", {}, "error", False, True),
        ("http-error", {}, "error", True, False),
        ("http-error", {"when": "after"}, "error", True, True),
        ("token-ends", {}, "error", True, True),
        ("token-ends", {"when": "before"}, "error", True, False),
        ("token-ends", {}, "true", True, False),
        ("layout-half-done", {}, "true", True, True),
        ("layout-half-done", {"when": "before"}, "false", False, True),
        ("layout-half-done", {"when": "before"}, "true", True, False),
        ("layout-busy", {}, "false", False, False),
        ("layout-busy", {}, "true", True, False),
        ("lying-result", {}, "false", True, True),
        ("lying-result", {}, "true", True, False),
        ("half-applied-attach", {}, "true", False, True),
        ("half-applied-attach", {"says": False}, "true", False, False),
        ("never-trains", {}, "true", True, False),
        ("slow-operation", {"extra_s": 3}, "true", True, True),
        ("slow-operation", {"extra_s": 5}, "true", True, False),
    ],
)
def test_a_fault_shows_in_the_answer(kind: str, spec: dict[str, Any], answer: str, truth: bool, is_well: bool) -> None:
    said = [added(kind, **spec), fired(kind, 1, operation=1), begun(1), done(4, answer, truth=truth)]
    assert numbers(judged(FaultStrikes(), *said)) == ([] if is_well else [(3, 2)])


@pytest.mark.parametrize(
    ("spec", "shown", "is_well"),
    [({"uuid": ""}, "", True), ({"uuid": ""}, "GPU-b", False), ({}, "GPU-b", True), ({"uuid": "GPU-c"}, "", False)],
)
def test_a_device_has_the_uuid_that_a_fault_gives_it(spec: dict[str, Any], shown: str, is_well: bool) -> None:
    changed = (4, "chassis", CHASSIS, "device-changed", {**PLACE, "uuid": shown, "old_uuid": "GPU-a"})
    said = [added("wrong-uuid", **spec), fired("wrong-uuid", 1, operation=1), begun(1), done(4)]
    assert numbers(judged(FaultStrikes(), *said, changed)) == ([] if is_well else [(4, 0)])
    assert not judged(FaultStrikes(), *said, (9, *changed[1:]))


def test_without_a_fault_the_answer_is_what_happened() -> None:
    assert numbers(judged(FaultStrikes(), begun(1), done(2, "dropped"))) == [(1, 0)]
    killed = (2.0, "component", CHASSIS, "killed", {})
    assert not judged(FaultStrikes(), begun(1), done(2, "dropped"), killed)
    assert numbers(judged(FaultStrikes(), begun(1), done(1.5, "dropped"), killed)) == [(1, 0)]
    down = (1.5, "chassis", CHASSIS, "down", {"until_s": 3})
    assert not judged(FaultStrikes(), begun(1), down, done(2, "dropped"))
    assert not judged(FaultStrikes(), begun(1), done(2, "false", truth=True, reason="cancelled"))


@pytest.mark.parametrize(("said", "named"), [([], [(1, 0)]), ([fired("events-out-of-order", 1)], [])])
def test_a_change_that_is_to_come_late_is_held(said: list[Said], named: list[object]) -> None:
    changed = (2.0, "chassis", CHASSIS, "detached", PLACE)
    assert numbers(judged(FaultStrikes(), added("events-out-of-order", count=2), *said, changed)) == named


CUT = added("layer-cut", at=HOST, count=None, arrow="driver")
SLOWED = added("layer-slow", at=HOST, arrow="function", delay_s=2)
CLIMB = [rose(1, "link-up"), rose(2, "function-added"), rose(3, "driver-bound"), rose(4, "nvml-visible", healthy=True)]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([CUT, *CLIMB], [(3, 0)], id="comes up though cut"),
        pytest.param([*CLIMB[:2], CUT, *CLIMB[2:]], [], id="had begun"),
        pytest.param([CUT, *CLIMB[:3], (3.0, "host", HOST, "rescanned", {"below": None})], [], id="by a rescan"),
        pytest.param([CUT, *CLIMB[:3], (4.0, "host", HOST, "rescanned", {"below": None})], [(3, 0)], id="before one"),
        pytest.param([added("layer-cut", at=HOST, arrow="driver", device="b"), *CLIMB], [], id="another device"),
        pytest.param([added("driver-fails", at=HOST), *CLIMB], [(3, 0)], id="driver"),
        pytest.param([added("layer-slow", at=HOST, arrow="nvml", delay_s=2), *CLIMB], [(4, 0)], id="not slowed"),
        pytest.param(
            [SLOWED, CLIMB[0], fired("layer-slow", 1, at=HOST, gpuid="0-a"), *CLIMB[1:]],
            [(3, 0)],
            id="slowed too little",
        ),
        pytest.param([added("nvml-unknown-error", at=HOST), *CLIMB], [(4, 0)], id="NVML knows it"),
    ],
)
def test_a_layer_that_a_fault_strikes_shows_it(said: list[Said], named: list[object]) -> None:
    assert numbers(judged(LayerStrikes(), *said)) == named


def test_a_device_is_stuck_by_a_fault_that_fires_on_it() -> None:
    stuck = (2.0, "host", HOST, "stuck", {**FUNCTION, "healthy": False, "arrow": "driver"})
    assert not judged(LayerStrikes(), *CLIMB[:2], fired("layer-cut", 2, at=HOST, gpuid="0-a"), stuck)
    assert numbers(judged(LayerStrikes(), *CLIMB[:2], fired("layer-cut", 2, at=HOST, gpuid="0-b"), stuck)) == [(3, 1)]


@pytest.mark.parametrize(
    ("said", "what"),
    [
        ((0.0, "host", HOST, "driver-up", FUNCTION), "no such event"),
        ((0.0, "host", HOST, "link-up", FUNCTION), "without healthy"),
        ((0.0, "host", HOST, "link-up", {**FUNCTION, "healthy": True, "on": True}), "with on"),
        ((0.0, "host", HOST, "link-up", {**FUNCTION, "healthy": True, "gpuid": ""}), "of no device"),
        ((0.0, "chassis", CHASSIS, "edited", PLACE), "without cause"),
        ((0.0, "kubelet", "kubelet/n", "allocated", {}), "without container"),
    ],
)
def test_a_line_that_the_journal_does_not_know_is_named(said: Said, what: str) -> None:
    [breach] = judged(Vocabulary(), said)
    assert what in breach.what
    assert breach.first is not None


def test_lines_of_others_are_theirs() -> None:
    assert not judged(Vocabulary(), (0.0, "api", "job/a", "something", {}))


def no_operation_is_admitted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chassis_board, "admits", lambda *_: False)


def no_layer_is_cut(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HostFaults, "cuts", lambda *_: False)


def a_layer_has_another_name(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(host_events.ROSE, "driver", "driver-up")  # type: ignore[misc]


def nothing_happens_in_its_time(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(chassis_board.FaultBoard, "happen", lambda *_: None)


@each_planted(
    [
        (no_operation_is_admitted, 73, "18-", "passes fault", "attach-begun", "added"),
        (no_layer_is_cut, 74, "32-", "comes up, and was cut", "driver-bound", "added"),
        (a_layer_has_another_name, 75, "03-", "no such event", "driver-up", ""),
        (nothing_happens_in_its_time, 72, "31-", "was to strike", "failed", "added"),
    ]
)
def test_a_planted_fault_is_named(monkeypatch: pytest.MonkeyPatch, row: PlantedRow) -> None:
    check_found(monkeypatch, row)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        *((message, False) for message in ("", "('ps-0', 'Failed')", "None", "<Pod a>", "<a.Pod object at 0x1>")),
        *((message, True) for message in ("Stopping container main", "None of 3 nodes fit", "<none> is no address")),
    ],
)
def test_an_event_says_something(message: str, says: bool) -> None:
    fields = {"type": "Normal", "reason": "Killing", "object": "pod/default/a", "message": message}
    assert bool(judged(Vocabulary(), (0.0, "api", "kubelet/h1", "event", fields))) is not says


CLEARED = (5.0, "fault", HOST, "cleared", {"fault": "f1", "kind": "layer-cut"})


@pytest.mark.parametrize(
    ("said", "named"),
    [
        pytest.param([CLEARED], [(5, None)], id="it stays stuck"),
        pytest.param([CLEARED, rose(5, "driver-bound")], [], id="it comes up"),
        pytest.param([rose(4, "driver-bound"), CLEARED], [], id="it had come up"),
        pytest.param([(4.0, "host", HOST, "powered-off", {}), CLEARED], [], id="its host is off"),
        pytest.param([added("driver-fails", at=HOST, name="f2"), CLEARED], [], id="another fault is there"),
    ],
)
def test_a_device_that_nothing_keeps_any_more_comes_up(said: list[Said], named: list[object]) -> None:
    stuck = (2.0, "host", HOST, "stuck", {**FUNCTION, "healthy": False, "arrow": "driver"})
    before = [CUT, *CLIMB[:2], fired("layer-cut", 2, at=HOST, gpuid="0-a"), stuck]
    later = (9.0, "host", HOST, "rescanned", {"below": None})
    assert numbers(judged(LayerStrikes(), *before, *said, later)) == named
