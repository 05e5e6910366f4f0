"""Law 96: a host sees what its chassis does to its devices: streams, and a fleet of hosts that overlooks it."""

from __future__ import annotations

from typing import Any

import pytest

from mews.emulator.host.fleet import Hosts
from mews.harness.invariants.bounds import Bounds
from mews.harness.invariants.judge import InvariantJudge
from mews.harness.journal import Line
from tests.harness.invariants.law_runs import PlantedRow, check_found, each_planted

Said = tuple[float, str, str, str, dict[str, Any]]
ROW = {"device": "a", "uuid": "GPU-a", "gpuid": "0-a"}
SHOWS = {**ROW, "kind": "GPU", "bdf": "01:00.0", "minor": 0, "healthy": True}
TABLE = (0.0, "host", "host/h", "table", {"devices": {"0-a": SHOWS}})
EMPTY = (0.0, "host", "host/h", "table", {"devices": {}})
LATER = (9.0, "step", "s", "passed", {"step": 1, "do": "wait"})


def chassis(event: str, t: float = 5.0) -> Said:
    port, host = (None, None) if event == "detached" else ("1", "h")
    return (
        t,
        "chassis",
        "chassis/A",
        event,
        {**ROW, "port": port, "host": host, "old_port": "1" if host is None else None, "old_host": "h"},
    )


def host(event: str, t: float = 5.0) -> Said:
    return (t, "host", "host/h", event, {**SHOWS, "healthy": False})


def named(*said: Said) -> list[tuple[int | None, int | None]]:
    judge = InvariantJudge(Bounds())
    for number, (t, layer, actor, event, fields) in enumerate(said):
        judge.on_line(Line(number, t, layer, actor, event, fields))
    found = [each for each in judge.violations if each.invariant == 96]
    return [(each.first and each.first.number, each.after and each.after.number) for each in found]


HELD_BACK = (1.0, "fault", "chassis/A", "added", {"fault": "f", "kind": "events-out-of-order", "spec": {}, "count": 1})
OFF = (1.0, "host", "host/h", "powered-off", {})


@pytest.mark.parametrize("event", ["attached", "detached", "link-down"])
def test_the_line_is_named_that_comes_in_the_place_of_the_hosts(event: str) -> None:
    assert named(TABLE, chassis(event), LATER) == [(2, 1)]
    assert named(TABLE, chassis(event), host("link-down"), LATER) == []
    assert named(TABLE, chassis(event), host("link-down", 9.0)) == [(2, 1)]


def test_what_is_attached_with_its_link_down_is_seen_when_the_link_comes_up() -> None:
    down, up = chassis("link-down", 2.0), chassis("link-up", 3.0)
    seen = (down, host("link-down", 2.0))
    assert named(TABLE, *seen, chassis("attached"), LATER) == []
    assert named(TABLE, *seen, up, chassis("attached"), LATER) == [(5, 4)]
    assert named(TABLE, *seen, chassis("inserted", 3.0), chassis("attached"), LATER) == [(5, 4)]


def test_a_host_sees_nothing_that_is_off_that_is_not_emulated_or_that_had_no_such_device() -> None:
    assert named(TABLE, OFF, chassis("attached"), LATER) == []
    assert named(TABLE, OFF, (2.0, "host", "host/h", "powered-on", {}), chassis("attached"), LATER) == [(4, 3)]
    assert named(chassis("attached"), LATER) == []
    assert named(EMPTY, chassis("link-down"), LATER) == []
    assert named(TABLE, chassis("link-up"), LATER) == []  # it may have been plugged in anew meanwhile


def test_nothing_is_claimed_of_a_chassis_whose_events_come_late() -> None:
    assert named(TABLE, HELD_BACK, chassis("attached"), LATER) == []


def a_link_that_goes_down_is_overlooked(patch: pytest.MonkeyPatch) -> None:
    real = Hosts.on_event

    def on_event(self: Any, chassis: str, number: int, event: str, *rest: Any) -> None:
        real(self, chassis, number, "unheard" if event == "link-down" else event, *rest)

    patch.setattr(Hosts, "on_event", on_event)


@each_planted(
    [(a_link_that_goes_down_is_overlooked, 96, "31", "is link-down at chassis/A, and host", "passed", "link-down")]
)
def test_the_law_finds_it_and_names_the_lines(monkeypatch: pytest.MonkeyPatch, row: PlantedRow) -> None:
    check_found(monkeypatch, row)


def test_a_node_of_a_host_that_has_shown_nothing_breaks_96() -> None:
    row = {"uuid": "GPU-a", "gpuid": "0-a", "port": "1", "host": "h"}
    boxes = (0.0, "chassis", "chassis/A", "table", {"pool": "p", "ports": {"1": "h"}, "devices": {"a": row}})
    node = (1.0, "api", "node/h", "created", {"allocatable": {}})
    assert named(boxes, node) == [(1, None)]
    assert named(boxes, TABLE, node) == []
    assert named(boxes, (1.0, "api", "node/of-nobody", "created", {"allocatable": {}})) == []
