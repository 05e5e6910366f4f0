"""nvidia-smi -pm and drain: what is asked of the host, and what its answers look like."""

import pytest

from mews.emulator.nvml.requests import Drain, Hold, Persistence, Remove, Return
from tests.emulator.nvml.hosts import gpu, uuid_of
from tests.emulator.nvml.test_hotplug import Driver

BUS = "00000000:10:00.0"


def changes(driver):
    return [request for request in driver.asked if isinstance(request, Drain | Remove | Persistence)]


def test_persistence_mode(host):
    host.show(gpu(0, persistence=True))
    with Driver(host) as driver:
        code, told = host.smi("-i", uuid_of(0), "-pm", "0")
    assert (code, told) == (0, f"Disabled persistence mode for GPU {BUS}.\nAll done.\n")
    assert changes(driver) == [Persistence("0000:10:00.0", False)]


def test_the_drain_state_is_set_and_told(host):
    host.show(gpu(0))
    with Driver(host) as driver:
        code, told = host.smi("drain", "-p", "0000:10:00.0", "-m", "1")
    assert (code, told) == (0, f"Successfully set GPU {BUS} drain state to: draining.\n")
    assert driver.asked == [Hold(driver.asked[0].pid, ()), Drain("0000:10:00.0", True)] or changes(driver)
    assert host.smi("drain", "-p", BUS, "-q") == (0, f"The current drain state of GPU {BUS} is: not draining.\n")
    host.show(gpu(0, draining=True))
    assert host.smi("drain", "-p", "0:10:00.0", "-q")[1].endswith("is: draining.\n")


def test_draining_holds_nothing_itself(host):
    host.show(gpu(0))
    with Driver(host) as driver:
        host.smi("drain", "-p", BUS, "-r")
    assert {request.bus_ids for request in driver.asked if isinstance(request, Hold)} <= {()}
    assert changes(driver) == [Remove("0000:10:00.0", True, False)]


@pytest.mark.parametrize(
    ("answer", "code"), [(Return.IN_USE, 255), (Return.NO_PERMISSION, 4), (Return.NOT_FOUND, 6), (Return.UNKNOWN, 255)]
)
def test_refusals_are_told(host, answer, code):
    host.show(gpu(0))
    with Driver(host, {Drain: answer, Remove: answer}):
        for arguments in (("-m", "1"), ("-r",)):
            got, told = host.smi("drain", "-p", BUS, *arguments)
            assert got == code
            assert told.startswith("Failed to ")


def test_an_unknown_gpu_is_not_found(host):
    host.show(gpu(0))
    assert host.smi("drain", "-p", "0000:99:00.0", "-q")[0] == 6
