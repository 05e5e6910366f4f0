"""Steps of a live session name what there is by now."""

import pytest

from mews.emulator.chassis.inventory import DeviceSpec
from mews.harness.live.step_answer import StepAnswer
from tests.harness.live.sessions import in_session

EDIT = {"chassis": {"edit": {"chassis": "A", "device": "000F00", "host": "host-2"}}}
FAULT = {"fault": {"chassis": "A", "add": {"kind": "timeout", "device": "000F00"}}}


@pytest.mark.parametrize("step", [EDIT, FAULT])
def test_a_device_that_was_put_in_may_be_named(step):
    async def play(session):
        with pytest.raises(ValueError, match="'000F00'"):
            await session.perform(step)
        fleet = session.cluster.hardware._fleet
        box = fleet.fleet.box("A")
        box.remove("000100", fleet.pace.now())
        box.insert(DeviceSpec(id="000F00", uuid="GPU-new"), fleet.pace.now())
        return await session.perform(step)

    assert in_session(play) == StepAnswer()
