"""Steps of a live session name what there is by now."""

import asyncio

import pytest

from mews.emulator.hardware.inventory import DeviceSpec
from mews.harness.live.step_answer import StepAnswer
from tests.harness.live.sessions import in_session

EDIT = {"chassis": {"edit": {"chassis": "A", "device": "000F00", "host": "host-2"}}}
CLEAR = {"fault": {"clear": "all"}}
FAULT = {"fault": {"chassis": "A", "add": {"kind": "timeout", "device": "000F00"}}}


@pytest.mark.parametrize("step", [EDIT, FAULT])
def test_a_device_that_was_put_in_may_be_named(step):
    async def play(session):
        with pytest.raises(ValueError, match="'000F00'"):
            await session.perform(step)
        fleet = session.cluster.hardware._fleet
        box = fleet.fleet.box("A")
        box.edits.remove("000100", fleet.pace.now())
        box.edits.insert(DeviceSpec(id="000F00", uuid="GPU-new"), fleet.pace.now())
        return await session.perform(step)

    assert in_session(play) == StepAnswer()


WAIT = {"wait": {"pod": {"name": "nobody", "phase": "Running"}}, "timeout": "10m"}
KILL_AT = {"kill": {"component": "scheduler", "at": {"event": "never"}}, "timeout": "10m"}


@pytest.mark.parametrize("waiting", [WAIT, {"sleep": "10m"}, KILL_AT], ids=lambda step: next(iter(step)))
def test_a_step_that_waits_delays_no_other(waiting):
    async def play(session):
        other = asyncio.create_task(session.perform(waiting))
        await asyncio.sleep(1)
        begun_s = session.journal.elapsed_s
        done = await session.perform(CLEAR)
        await session.snapshot("meanwhile")
        still_waiting = not other.done()
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
        return done, still_waiting, session.journal.elapsed_s - begun_s

    done, still_waiting, took_s = in_session(play)
    assert done == StepAnswer() and still_waiting and took_s < 5


def test_what_changes_components_goes_one_at_a_time():
    async def play(session):
        steps = [session.perform({"restart": "scheduler"}) for _ in range(3)]
        answers = await asyncio.gather(*steps)
        return answers, [line.event for line in session.journal.lines() if line.layer == "step"]

    answers, events = in_session(play)
    assert answers == [StepAnswer()] * 3
    assert events == ["begun", "passed"] * 3
