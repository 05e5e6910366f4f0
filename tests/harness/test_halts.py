"""Places at which a run stops, and the loop that can be held there."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mews.harness.clock import HaltingLoop, run_virtual
from mews.harness.errors import BadInputError
from mews.harness.halts import Halt, break_place
from mews.harness.journal import Journal, Line


def line(number, layer="api", event="bound", actor="pod/default/a", **fields):
    return Line(number, 1.0, layer, actor, event, fields)


@pytest.mark.parametrize(
    ("text", "reached", "passed_by"),
    [
        ("7", line(7), line(6)),
        ("0", line(0), None),
        ("violation", line(3, "invariant", "violated", "9"), line(3, "invariant", "known", "9")),
        ("step:2", line(3, "step", "begun", step=2), line(3, "step", "passed", step=2)),
        ("it runs", line(3, "step", "begun", step=4, name="it runs"), line(3, "step", "begun", step=4)),
    ],
)
def test_a_place_is_reached_by_its_line_alone(text, reached, passed_by):
    place = break_place(text)
    assert place.is_reached(reached)
    assert passed_by is None or not place.is_reached(passed_by)


@pytest.mark.parametrize("text", ["", " ", "-1", "step:", "step:0", "step:-1", "step:two"])
def test_what_is_no_place_is_refused(text):
    with pytest.raises(BadInputError, match="--break-at"):
        break_place(text)


def test_it_stops_once_and_also_at_a_line_that_is_there_already():
    journal, stops = Journal(lambda: 0.0), []
    journal.write("api", "pod/default/a", "created")
    halt = Halt(break_place("0"), lambda at, world: stops.append((at.number, world)))
    halt.watch(journal, "world", lambda hold: hold())
    journal.write("api", "pod/default/a", "bound")
    assert stops == [(0, "world")]


def history(seed, *, hold_at=None):
    """What a little world of tasks and timers does in turn; and the times at which it was held."""
    told, held = [], []

    async def worker(name, rng):
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HaltingLoop) == (hold_at is not None)
        for number in range(6):
            told.append((loop.time(), name, number))
            if len(told) == hold_at:
                loop.hold_next(lambda: held.append((loop.time(), len(told))))
            await asyncio.sleep(rng.choice((0, 0, 0.5, 1)))

    async def main():
        rng = random.Random(seed)
        await asyncio.gather(*(worker(name, random.Random(rng.random())) for name in "abcd"))

    run_virtual(main, order=seed % 3, halts=hold_at is not None)
    return told, held


@given(st.integers(0, 10_000), st.integers(1, 24))
def test_a_loop_that_was_held_does_what_it_would_have_done(seed, hold_at):
    told, held = history(seed, hold_at=hold_at)
    assert told == history(seed)[0]
    assert held == [(told[hold_at - 1][0], hold_at)]  # before anything else, and before time passes


def test_what_holding_raises_ends_the_run():
    async def main():
        def interrupt():
            raise KeyboardInterrupt

        asyncio.get_running_loop().hold_next(interrupt)
        await asyncio.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        run_virtual(main, halts=True)
