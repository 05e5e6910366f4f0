"""nvidia-smi's options that set something: what is asked, what is printed, and the exit codes."""

import pytest

from mews.emulator.nvml.requests import Persistence, Return, SetGpu
from mews.emulator.telemetry.controls import BoardControls
from tests.emulator.nvml.hosts import gpu
from tests.emulator.nvml.test_hotplug import Driver
from tests.emulator.nvml.test_setters import settings

BUS, OTHER = "00000000:10:00.0", "00000000:11:00.0"
LASTING = [gpu(0, persistence=True), gpu(1, persistence=True)]
CASES = {
    "-pl 150": (("power-limit", 150_000), f"Power limit for GPU {BUS} was set to 150.00 W from 250.00 W.\n"),
    "--power-limit=150.5": (
        ("power-limit", 150_500),
        f"Power limit for GPU {BUS} was set to 150.50 W from 250.00 W.\n",
    ),
    "-lgc 900,1200": (
        ("gpu-clocks", 900, 1200),
        f'GPU clocks set to "(gpuClkMin 900, gpuClkMax 1200)" for GPU {BUS}\n',
    ),
    "--lock-gpu-clocks=900": (
        ("gpu-clocks", 900, 900),
        f'GPU clocks set to "(gpuClkMin 900, gpuClkMax 900)" for GPU {BUS}\n',
    ),
    "-rgc": (("gpu-clocks",), ""),
    "-lmc 810,877": (
        ("memory-clocks", 810, 877),
        f'Memory clocks set to "(memClkMin 810, memClkMax 877)" for GPU {BUS}\n',
    ),
    "--reset-memory-clocks": (("memory-clocks",), ""),
    "-ac 877,1365": (
        ("applications-clocks", 877, 1365),
        f'Applications clocks set to "(MEM 877, SM 1365)" for GPU {BUS}\n',
    ),
    "-rac": (("applications-clocks",), ""),
    "-c 3": (("compute-mode", 3), f"Set compute mode to EXCLUSIVE_PROCESS for GPU {BUS}.\n"),
    "-c DEFAULT": (("compute-mode", 0), f"Set compute mode to DEFAULT for GPU {BUS}.\n"),
    "-e 0": (("ecc", 0), f"Disabled ECC support for GPU {BUS}.\n"),
    "--ecc-config=ENABLED": (("ecc", 1), f"Enabled ECC support for GPU {BUS}.\n"),
    "-p 0": (("ecc-errors", 0), f"Reset volatile ECC errors to zero for GPU {BUS}.\n"),
}


@pytest.mark.parametrize("options", CASES)
def test_an_option_asks_the_host_and_says_what_was_done(host, options):
    (name, *numbers), told = CASES[options]
    host.show(*LASTING)
    with Driver(host) as driver:
        got = host.smi("-i", "0", *options.split())
    after = "Reboot required.\n" if name == "ecc" else ""
    assert got == (0, f"{told}All done.\n{after}")
    assert settings(driver) == [SetGpu("0000:10:00.0", name, tuple(numbers))]


def test_without_i_all_gpus_are_set_and_several_options_go_in_order(host):
    host.show(*LASTING)
    with Driver(host) as driver:
        code, told = host.smi("-lgc", "900,1200", "-pl", "150", "-pm", "1")
    assert code == 0
    assert told.count("was set to 150.00 W") == 2
    asked = [(each.bus_id[5:7], getattr(each, "name", "persistence")) for each in settings(driver)]
    assert asked == [("10", "persistence"), ("11", "persistence"), ("10", "power-limit"), ("11", "power-limit"),
                     ("10", "gpu-clocks"), ("11", "gpu-clocks")]  # fmt: skip


@pytest.mark.parametrize("options", ["-pl 150", "-lgc 900", "-ac 877,1365"])
def test_without_persistence_mode_it_says_that_the_setting_will_be_lost(host, options):
    host.show(gpu(0))
    with Driver(host):
        told = host.smi(*options.split())[1]
    assert f"\nWarning: persistence mode is disabled on device {BUS}." in told
    assert told.endswith("All done.\n")


@pytest.mark.parametrize("options", ["-e 0", "-c 3", "-rgc"])
def test_what_outlasts_the_driver_warns_of_nothing(host, options):
    host.show(gpu(0))
    with Driver(host):
        assert "Warning" not in host.smi(*options.split())[1]


@pytest.mark.parametrize(("options", "words"), [
    ("-pl 500", "Provided power limit 500.00 W is not a valid power limit which should be between 100.00 W and "
                f"250.00 W for GPU {BUS}\n"),
    ("-ac 877,1", f'Specified clock combination "(MEM 877, SM 1)" is not supported for GPU {BUS}.'),
    ("-lgc 900,1", f"Failed to lock the GPU clocks for GPU {BUS}: Invalid Argument\n"),
])  # fmt: skip
def test_a_refused_value_is_explained_and_ends_the_command(host, options, words):
    host.show(*LASTING)
    with Driver(host, {SetGpu: Return.INVALID_ARGUMENT}) as driver:
        code, told = host.smi(*options.split())
    assert code == 2
    assert told.startswith(words)
    assert told.endswith("Terminating early due to previous errors.\n")
    assert len(settings(driver)) == 1


@pytest.mark.parametrize(("answer", "code", "why"), [
    (Return.NO_PERMISSION, 4, "Insufficient Permissions"), (Return.NOT_SUPPORTED, 3, "Not Supported"),
])  # fmt: skip
def test_other_refusals_have_the_librarys_words(host, answer, code, why):
    host.show(gpu(0))
    with Driver(host, {SetGpu: answer}):
        assert host.smi("-pl", "150") == (
            code, f"Failed to set the power limit for GPU {BUS}: {why}\nTerminating early due to previous errors.\n"
        )  # fmt: skip


@pytest.mark.parametrize("options", [
    "-pl x", "-pl -5", "-pl=", "-pl nan", "-lgc 900,", "-lgc ,900", "-lgc 900,1200,1", "-lgc 1.5", "-ac 877",
    "-pl", "-ac", "-c 4", "-c exclusive", "-e 2", "-e on", "-p 2", "-lgc 99999999999",
])  # fmt: skip
def test_a_value_that_is_none_changes_nothing(host, options):
    host.show(gpu(0))
    with Driver(host) as driver:
        code, told = host.smi(*options.split())
    assert code == 2, told
    assert settings(driver) == []
    assert told.count("\n") <= 2


def test_one_wrong_value_keeps_the_others_from_being_set(host):
    host.show(gpu(0))
    with Driver(host) as driver:
        assert host.smi("-pl", "150", "-lgc", "x")[0] == 2
    assert [each for each in settings(driver) if not isinstance(each, Persistence)] == []


def test_queries_show_what_was_set(host):
    controls = BoardControls(power_limit_mw=150_000, applications=(877, 1200))
    host.show(gpu(0, controls=controls, compute_mode=3, ecc_enabled=True, ecc_pending=False))
    names = "power.limit,power.default_limit,clocks.applications.gr,compute_mode,ecc.mode.current,ecc.mode.pending"
    told = host.smi(f"--query-gpu={names}", "--format=csv,noheader")[1]
    assert told == "150.00 W, 250.00 W, 1200 MHz, Exclusive_Process, Enabled, Disabled\n"
