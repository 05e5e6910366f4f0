"""nvidia-smi's options that set something: what is asked, what is printed, and the exit codes."""

import re

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
    "--reset-ecc-errors=AGGREGATE": (("ecc-errors", 1), f"Reset aggregate ECC errors to zero for GPU {BUS}.\n"),
    "-pl 150 -sc GPU": (("power-limit", 150_000), f"Power limit for GPU {BUS} was set to 150.00 W from 250.00 W.\n"),
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


def test_other_refusals_have_the_librarys_words(host):
    host.show(gpu(0))
    with Driver(host, {SetGpu: Return.NO_PERMISSION}):
        assert host.smi("-pl", "150") == (
            4,
            f"Failed to set the power limit for GPU {BUS}: Insufficient Permissions\n"
            "Terminating early due to previous errors.\n",
        )


MOVES_ON = "Treating as warning and moving on.\n"
LACKING = {
    "-pl 150": f"Changing power management limit is not supported in current scope for GPU: {BUS}.\n",
    "-ac 877,1365": f"Setting applications clocks is not supported for GPU {BUS}.\n",
    "-rac": f"Setting applications clocks is not supported for GPU {BUS}.\n",
    "-lgc 900": f"Setting locked GPU clocks is not supported for GPU {BUS}.\n",
    "-lmc 877": f"Setting locked Memory clocks is not supported for GPU {BUS}.\n",
}


@pytest.mark.parametrize("options", LACKING)
def test_what_a_gpu_does_not_support_is_a_warning_unless_those_are_errors(host, options):
    """The words and the exit code are those that scripts around real boards quote."""
    host.show(gpu(0, persistence=True))
    with Driver(host, {SetGpu: Return.NOT_SUPPORTED}):
        assert host.smi(*options.split()) == (0, f"{LACKING[options]}{MOVES_ON}All done.\n")
        code, told = host.smi(*options.split(), "--error-on-warning")
    assert (code, told) == (3, f"{LACKING[options]}Terminating early due to previous errors.\n")


def test_the_words_about_a_scope_came_with_the_scope(host):
    host.show(gpu(0), driver_version="535.104.05")
    with Driver(host, {SetGpu: Return.NOT_SUPPORTED}):
        told = host.smi("-pl", "150")[1]
    assert told.startswith(f"Changing power management limit is not supported for GPU: {BUS}.\n")


def test_clocks_that_a_gpu_does_not_list_are_a_warning_and_the_next_gpu_is_set(host):
    host.show(*LASTING)
    with Driver(host, {SetGpu: Return.INVALID_ARGUMENT}) as driver:
        code, told = host.smi("-ac", "877,1")
        assert host.smi("-ac", "877,1", "-eow")[0] == 2
    assert (code, told.count(MOVES_ON)) == (0, 2)
    assert told.startswith(f'Specified clock combination "(MEM 877, SM 1)" is not supported for GPU {BUS}. Run ')
    assert [each.bus_id[5:7] for each in settings(driver)] == ["10", "11", "10"]


@pytest.mark.parametrize("options", ["--gom=0", "--auto-boost-default 1", "--auto-boost-permission=RESTRICTED"])
def test_what_only_old_boards_had_is_not_supported_by_any(host, options):
    host.show(gpu(0, "H100-SXM"))
    with Driver(host) as driver:
        code, told = host.smi(*options.split())
    assert (code, told.splitlines()[1:]) == (0, [MOVES_ON.strip(), "All done."])
    assert re.match(rf"Setting the .+ is not supported for GPU {BUS}\.$", told.splitlines()[0])
    assert settings(driver) == []


def test_a_target_temperature_is_set_within_its_bounds(host):
    host.show(gpu(0, "RTX 3090", persistence=True), gpu(1, "H100-SXM"))
    with Driver(host, {SetGpu: Return.INVALID_ARGUMENT}) as driver:
        code, told = host.smi("--gpu-target-temp=100", "-i", "0")
        other = host.smi("-gtt", "70", "-i", "1")[1]
    assert (code, told.splitlines()[0]) == (
        2,
        f"Provided target temperature 100 C is not valid, it should be between 65 C and 91 C for GPU {BUS}",
    )
    assert other.startswith(f"Setting the target temperature is not supported for GPU {OTHER}.\n")
    assert settings(driver) == [SetGpu("0000:10:00.0", "target-temperature", (100,))]


def test_a_target_temperature_that_was_set_is_said_and_shown(host):
    host.show(gpu(0, "RTX 3090", persistence=True))
    with Driver(host):
        told = host.smi("-gtt", "70")
    assert told == (0, f"Target temperature for GPU {BUS} was set to 70 C from 83 C.\nAll done.\n")
    host.show(gpu(0, "RTX 3090", controls=BoardControls(target_c=70)))
    assert re.search(r"GPU Target Temperature +: 70 C", host.smi("-q", "-d", "TEMPERATURE")[1])


def test_a_module_has_no_limit_of_its_own(host):
    host.show(gpu(0))
    with Driver(host) as driver:
        assert host.smi("-pl", "150", "--scope=1") == (
            0,
            f"Changing power management limit is not supported in current scope for GPU: {BUS}.\n{MOVES_ON}All done.\n",
        )
        assert host.smi("-pl", "150", "-sc", "2")[0] == host.smi("-sc", "0")[0] == 2
    assert settings(driver) == []


@pytest.mark.parametrize("options", [
    "-pl x", "-pl -5", "-pl=", "-pl nan", "-lgc 900,", "-lgc ,900", "-lgc 900,1200,1", "-lgc 1.5", "-ac 877",
    "-gtt x", "-gtt -1", "--gom 3", "--auto-boost-default 2", "--auto-boost-permission=no", "-sc", "-gtt",
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
