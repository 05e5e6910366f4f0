"""The emulator's clock and event feed, on threads."""

from __future__ import annotations

import threading
import time

import pytest

from mews.emulator.chassis.events import ChassisEvent
from mews.emulator.clock import EmulatedClock
from mews.emulator.feed import KEPT, EventFeed


def event(number: int) -> ChassisEvent:
    return ChassisEvent(number, float(number), "A", "table-changed", {"device": "d0"})


def test_emulated_time_never_jumps_when_the_speed_changes():
    clock = EmulatedClock(1000)
    before = clock.now()
    clock.speed = 0.001
    assert 0 <= clock.now() - before < 100
    assert clock.speed == 0.001


@pytest.mark.parametrize("speed", [0, -1, 1e9, float("nan")])
def test_a_speed_that_cannot_be_is_refused(speed: float):
    with pytest.raises(ValueError, match="must be above 0"):
        EmulatedClock(speed)


def test_a_wait_ends_at_its_emulated_time():
    clock = EmulatedClock(10_000)
    due = clock.now() + 100
    assert clock.wait_until(lambda: due)
    assert clock.now() >= due


@pytest.mark.wall
@pytest.mark.parametrize("far_s", [1000.0, 1e300, float("inf")])
@pytest.mark.parametrize("how", ["speed", "stir", "stop"])
def test_a_wait_is_cut_short_by_speed_by_a_changed_due_time_and_by_the_end(how: str, far_s: float):
    clock = EmulatedClock(1)
    due = [clock.now() + far_s]
    ended: list[bool] = []
    waiter = threading.Thread(target=lambda: ended.append(clock.wait_until(lambda: due[0])))
    waiter.start()
    if how == "speed":
        due[0] = min(due[0], 1000.0)  # for ever is for ever at any speed
        clock.speed = 1e6
    elif how == "stop":
        clock.stop()
    else:
        due[0] = 0.0
        clock.stir()
    waiter.join(timeout=30)
    assert ended == [how != "stop"]


def test_events_are_numbered_over_all_chassis_and_read_since_one():
    feed = EventFeed()
    for number in (1, 2, 3):
        feed.emit(event(number))
    assert [told["seq"] for told in feed.since(1)] == [2, 3]
    assert feed.since(3) == []
    assert feed.wait(2, 0) == feed.since(2)


def test_only_the_latest_events_are_kept():
    feed = EventFeed()
    for number in range(KEPT + 5):
        feed.emit(event(number))
    assert [told["seq"] for told in feed.since(0)][:1] == [6]
    assert len(feed.since(0)) == KEPT


@pytest.mark.wall
def test_a_reader_is_woken_by_an_event_and_by_the_end():
    feed = EventFeed()
    got: list[object] = []

    def read() -> None:
        got.append(feed.wait(0, 60))
        got.append(feed.wait(1, 60))

    reader = threading.Thread(target=read)
    begun = time.monotonic()
    reader.start()
    feed.emit(event(1))
    while not got:
        assert time.monotonic() - begun < 30
    feed.close()
    reader.join(timeout=30)
    assert [len(got[0]), got[1]] == [1, None]
