"""Setters of the library: what is asked of the host, what it answers, and what the getters show afterwards."""

import pytest

from mews.emulator.nvml.requests import Persistence, Return, SetGpu, decode_request, encode_request
from mews.emulator.telemetry.controls import BoardControls
from tests.emulator.nvml.hosts import gpu
from tests.emulator.nvml.test_hotplug import Client, Driver

BUS = "0000:10:00.0"
HANDLE = "(p.nvmlInit(), kept.setdefault('h', p.nvmlDeviceGetHandleByIndex(0)))"
CALLS = {
    "p.nvmlDeviceSetPowerManagementLimit(kept['h'], 150000)": ("power-limit", 150000),
    "p.nvmlDeviceSetGpuLockedClocks(kept['h'], 900, 1200)": ("gpu-clocks", 900, 1200),
    "p.nvmlDeviceResetGpuLockedClocks(kept['h'])": ("gpu-clocks",),
    "p.nvmlDeviceSetMemoryLockedClocks(kept['h'], 877, 877)": ("memory-clocks", 877, 877),
    "p.nvmlDeviceResetMemoryLockedClocks(kept['h'])": ("memory-clocks",),
    "p.nvmlDeviceSetApplicationsClocks(kept['h'], 877, 1365)": ("applications-clocks", 877, 1365),
    "p.nvmlDeviceResetApplicationsClocks(kept['h'])": ("applications-clocks",),
    "p.nvmlDeviceSetComputeMode(kept['h'], p.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS)": ("compute-mode", 3),
    "p.nvmlDeviceSetEccMode(kept['h'], 0)": ("ecc", 0),
    "p.nvmlDeviceClearEccErrorCounts(kept['h'], p.NVML_VOLATILE_ECC)": ("ecc-errors", 0),
    "p.nvmlDeviceSetFanSpeed_v2(kept['h'], 1, 70)": ("fan", 70),
    "p.nvmlDeviceSetDefaultFanSpeed_v2(kept['h'], 0)": ("fan",),
    "p.nvmlDeviceSetFanControlPolicy(kept['h'], 0, 0)": ("fan",),
}


def settings(driver):
    return [request for request in driver.asked if isinstance(request, SetGpu | Persistence)]


@pytest.mark.parametrize("call", CALLS)
def test_a_setter_asks_the_host_with_what_it_was_given(host, call):
    name, *numbers = CALLS[call]
    host.show(gpu(0))
    with Driver(host) as driver, Client(host) as client:
        client.ask(HANDLE)
        assert client.ask(call) in ("None", "0")  # as pynvml returns it
    assert settings(driver) == [SetGpu(BUS, name, tuple(numbers))]
    assert decode_request(encode_request(settings(driver)[0])) == settings(driver)[0]


@pytest.mark.parametrize(("answer", "error"), [
    (Return.INVALID_ARGUMENT, "NVMLError_InvalidArgument"), (Return.NOT_SUPPORTED, "NVMLError_NotSupported"),
    (Return.GPU_IS_LOST, "NVMLError_GpuIsLost"), (Return.NO_PERMISSION, "NVMLError_NoPermission"),
])  # fmt: skip
def test_the_hosts_answer_is_the_calls(host, answer, error):
    host.show(gpu(0))
    with Driver(host, {SetGpu: answer}), Client(host) as client:
        client.ask(HANDLE)
        assert {client.ask(call) for call in CALLS} == {error}


def test_a_container_without_rights_sets_nothing(host):
    host.show(gpu(0))
    with Driver(host) as driver, Client(host, MEWS_NVML_RIGHTS="none") as client:
        client.ask(HANDLE)
        asked = [*CALLS, "p.nvmlDeviceSetPersistenceMode(kept['h'], 1)"]
        assert {client.ask(call) for call in asked} == {"NVMLError_NoPermission"}
    assert settings(driver) == []


def test_a_handle_that_is_gone_and_an_unknown_fan_ask_nothing(host):
    host.show(gpu(0))
    with Driver(host) as driver, Client(host) as client:
        client.ask(HANDLE)
        for call in ("SetFanSpeed_v2(kept['h'], 2, 50)", "SetDefaultFanSpeed_v2(kept['h'], 9)"):
            assert client.ask(f"p.nvmlDevice{call}") == "NVMLError_InvalidArgument"
        assert client.ask("p.nvmlDeviceSetFanControlPolicy(kept['h'], 0, 2)") == "NVMLError_InvalidArgument"
        host.show(gpu(1))
        assert client.ask("p.nvmlDeviceSetPowerManagementLimit(kept['h'], 150000)") == "NVMLError_GpuIsLost"
    assert settings(driver) == []


def test_the_second_version_of_the_power_limit_has_a_version_and_a_scope(host):
    host.show(gpu(0))
    code = (
        "import ctypes as c, pynvml as p\n"
        "class V(c.Structure): _fields_ = [('version', c.c_uint), ('scope', c.c_ubyte), ('mw', c.c_uint)]\n"
        "p.nvmlInit(); h = p.nvmlDeviceGetHandleByIndex(0)\n"
        "lib = c.CDLL('libnvidia-ml.so.1')\n"
        "good = c.sizeof(V) | 2 << 24\n"
        "for value in (V(good, 0, 150000), V(good, 1, 150000), V(1, 0, 150000)):\n"
        "    print(lib.nvmlDeviceSetPowerManagementLimit_v2(h, c.byref(value)))\n"
        "print(lib.nvmlDeviceSetPowerManagementLimit_v2(h, None))\n"
    )
    with Driver(host) as driver:
        assert host.python(code).split() == ["0", "3", "25", "2"]
    assert settings(driver) == [SetGpu(BUS, "power-limit", (150_000,))]


def test_getters_show_what_was_set(host):
    controls = BoardControls(power_limit_mw=150_000, applications=(877, 1200))
    host.show(gpu(0, controls=controls, compute_mode=3, ecc_enabled=True, ecc_pending=False))
    with Client(host) as client:
        client.ask(HANDLE)
        told = {
            "PowerManagementLimit(kept['h'])": "150000",
            "EnforcedPowerLimit(kept['h'])": "150000",
            "PowerManagementDefaultLimit(kept['h'])": "250000",
            "ApplicationsClock(kept['h'], p.NVML_CLOCK_SM)": "1200",
            "ApplicationsClock(kept['h'], p.NVML_CLOCK_MEM)": "877",
            "DefaultApplicationsClock(kept['h'], p.NVML_CLOCK_SM)": "1380",
            "Clock(kept['h'], p.NVML_CLOCK_SM, p.NVML_CLOCK_ID_APP_CLOCK_TARGET)": "1200",
            "ComputeMode(kept['h'])": "3",
            "EccMode(kept['h'])": "[1, 0]",
        }
        assert {call: client.ask(f"p.nvmlDeviceGet{call}") for call in told} == told
        fields = "[v.value.uiVal for v in p.nvmlDeviceGetFieldValues(kept['h'], [1, 2])]"
        assert client.ask(fields) == "[1, 0]"


def test_a_fan_turns_as_it_was_told_and_its_policy_says_so(host):
    with Client(host) as client:
        for fan, told in ((None, "0"), (70, "1")):
            host.show(gpu(0, model="RTX 3090", controls=BoardControls(fan=fan)))
            client.ask(HANDLE)
            policy = (
                "(lambda c: (p.nvmlDeviceGetFanControlPolicy_v2(kept['h'], 0, p.byref(c)), c.value)[1])(p.c_uint())"
            )
            assert client.ask(policy) == told
        assert client.ask("p.nvmlDeviceGetFanSpeed_v2(kept['h'], 1)") == "70"


def test_a_wrong_argument_is_looked_at_once_the_library_is_initialised(host):
    host.show(gpu(0))
    wrong = (
        "SetPersistenceMode(kept['h'], 2)",
        "SetFanSpeed_v2(kept['h'], 2, 50)",
        "SetDefaultFanSpeed_v2(kept['h'], 9)",
    )
    with Driver(host) as driver, Client(host) as client:
        client.ask(HANDLE)
        assert {client.ask(f"p.nvmlDevice{call}") for call in wrong} == {"NVMLError_InvalidArgument"}
        client.ask("p.nvmlShutdown()")
        assert {client.ask(f"p.nvmlDevice{call}") for call in wrong} == {"NVMLError_Uninitialized"}
    assert settings(driver) == []
