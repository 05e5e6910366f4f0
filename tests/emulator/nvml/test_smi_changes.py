"""nvidia-smi -pm and drain: what is asked of the host, and what its answers look like."""

import pytest

from mews.emulator.nvml.requests import Drain, Hold, Persistence, Remove, ResetGpu, Return
from tests.emulator.nvml.hosts import gpu, uuid_of
from tests.emulator.nvml.test_hotplug import Driver

BUS = "00000000:10:00.0"


def changes(driver):
    return [request for request in driver.asked if isinstance(request, Drain | Remove | ResetGpu | Persistence)]


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


@pytest.mark.parametrize("option", ["-r", "--gpu-reset"])
def test_a_reset_is_asked_of_the_host(host, option):
    host.show(gpu(0))
    with Driver(host) as driver:
        code, told = host.smi(option, "-i", "0000:10:00.0")
    assert (code, told) == (0, f"GPU {BUS} was successfully reset.\nAll done.\n")
    assert changes(driver) == [ResetGpu("0000:10:00.0")]


@pytest.mark.parametrize(("answer", "code", "why"), [
    (Return.IN_USE, 255, "In use by another client"), (Return.GPU_IS_LOST, 15, "GPU is lost"),
])  # fmt: skip
def test_a_refused_reset_says_why(host, answer, code, why):
    host.show(gpu(0))
    with Driver(host, {ResetGpu: answer}):
        got, told = host.smi("-r", "-i", "0")
    assert got == code
    assert f"couldn't run for GPU {BUS}: {why}\n" in told
