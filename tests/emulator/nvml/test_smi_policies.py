"""nvidia-smi's commands about what NVML mostly has no calls for, and its text of options."""

import re

import pytest

from mews.emulator.nvml.driver_settings import DriverSettings
from mews.emulator.nvml.requests import Return, SetGpu
from tests.emulator.nvml.hosts import gpu, uuid_of
from tests.emulator.nvml.test_hotplug import Driver

BUS, SHOWN = "0000:10:00.0", "00000000:10:00.0"


def settings_of(driver):
    return [request for request in driver.asked if isinstance(request, SetGpu)]


@pytest.mark.parametrize(
    ("words", "name", "number", "text"),
    [
        (("compute-policy", "--set-timeslice", "2"), "timeslice", 2, f"Set timeslice to MEDIUM for GPU {SHOWN}."),
        (("compute-policy", "--set-timeslice=SHORT"), "timeslice", 1, f"Set timeslice to SHORT for GPU {SHOWN}."),
        (("boost-slider", "--vboost", "4"), "boost", 4, f"Set vboost to 4 for GPU {SHOWN}."),
        (("gpm", "-s", "1"), "gpm-streaming", 1, f"Enabled GPM streaming for GPU {SHOWN}."),
        (("-lmcd", "2000"), "memory-clocks-deferred", 2000,
         'Memory clocks set to "memClk 2000" for GPU 00000000:10:00.0 from the next load of its driver on\nAll done.'),
    ],
)  # fmt: skip
def test_a_setting_is_asked_of_the_host(host, words, name, number, text):
    host.show(gpu(0, "H100-SXM", persistence=True))
    with Driver(host) as driver:
        assert host.smi(*words) == (0, text + "\n")
    assert settings_of(driver) == [SetGpu(BUS, name, (number,))]
    code, _ = host.smi(*words, MEWS_NVML_RIGHTS="none")
    assert code == Return.NO_PERMISSION


@pytest.mark.parametrize(
    ("words", "most"),
    [(("compute-policy", "--set-timeslice"), 3), (("boost-slider", "--vboost"), 4), (("gpm", "-s"), 1)],
)
@pytest.mark.parametrize("wrong", ["", "-1", "x", "1x", "99999999999"])
def test_a_value_that_is_none_changes_nothing(host, words, most, wrong):
    host.show(gpu(0, "H100-SXM"))
    with Driver(host) as driver:
        for value in (wrong, str(most + 1)):
            code, text = host.smi(*words, value)
            assert (code, len(text.splitlines())) == (2, 1) and text.startswith(f"Usage: {words[0]}")
    assert settings_of(driver) == []


def test_lists_show_what_was_set(host):
    set_so = DriverSettings(timeslice=3, boost=2, streaming=True, deferred_mhz=1500)
    host.show(gpu(0, "H100-SXM", settings=set_so), gpu(1, "H100-SXM"), driver_version="580.105.08")
    rows = host.smi("compute-policy", "-l")[1].splitlines()
    assert [row.split() for row in rows[4:6]] == [
        ["|", "0", "Timeslice", "Long", "|"],
        ["|", "1", "Timeslice", "Default", "|"],
    ]
    assert len({len(row) for row in rows}) == 1
    rows = host.smi("boost-slider", "-l")[1].splitlines()
    assert [row.split()[-2] for row in rows if "vboost" in row] == ["2", "0"] and len({len(row) for row in rows}) == 1
    assert host.smi("gpm", "-g", "-i", "0") == (0, "GPU 0: GPM streaming is enabled\n")
    assert host.smi("gpm", "-g", "-i", uuid_of(1)) == (0, "GPU 1: GPM streaming is disabled\n")
    for board, shown in (("0", "1500 MHz"), ("1", "N/A")):
        clocks = host.smi("-q", "-d", "CLOCK", "-i", board)[1].partition("Deferred Clocks\n")[2]
        assert re.match(rf" +Memory +: {shown}\n", clocks)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("A100", ("boost-slider", "-l")),
        ("B300", ("boost-slider", "-l")),
        ("A100", ("gpm", "-g")),
        ("H100", ("power-profiles", "-l")),
        ("T4", ("conf-compute", "-grs")),
        ("H100", ("vgpu",)),
        ("H100", ("vgpu", "-q")),
    ],
)
def test_what_a_board_does_not_have_is_said(host, model, words):
    host.show(gpu(0, model))
    code, text = host.smi(*words)
    assert (code, len(text.splitlines())) == (3, 1)


def test_confidential_computing_is_off(host):
    host.show(gpu(0, "H100"))
    assert host.smi("conf-compute", "-f") == (0, "CC status: OFF\n")
    assert host.smi("conf-compute", "-grs") == (0, "Confidential Compute GPUs Ready state: not-ready\n")
    assert host.smi("conf-compute", "-d") == (0, "DevTools Mode: OFF\n")
    assert "    GPU CC Capabilities        : CC Capable\n" in host.smi("conf-compute", "-q")[1]
    code, text = host.smi("conf-compute", "-srs", "1")
    assert (code, text) == (3, "Unable to set Confidential Compute GPUs Ready state: Not Supported\n")


def test_errors_of_the_slot_are_shown_and_cleared(host):
    host.show(gpu(0, "H100"), gpu(1, "H100"))
    code, text = host.smi("pci", "-gErrCnt", "-i", "1")
    first, *counters = text.splitlines()
    assert (code, first) == (0, f"GPU 1: NVIDIA H100 PCIe (UUID: {uuid_of(1)})")
    assert len(counters) == 14 and "    BAD_TLP: 0" in counters and "    REPLAY_COUNTER: 0" in counters
    code, text = host.smi("pci", "-cErrCnt", "-i", "0")
    assert code == 0 and "    BAD_TLP: cleared\n" in text and "    REPLAY_COUNTER: N/A\n" in text
    code, text = host.smi("pci", "-cErrCnt", "-i", "0", MEWS_NVML_RIGHTS="none")
    assert code == 4 and "    BAD_TLP: Insufficient Permissions\n" in text


def test_power_profiles_are_those_of_boards_of_blackwell(host):
    host.show(gpu(0, "GB200"), gpu(1, "B200"))
    names = ["0. Max-P", "1. Max-Q", "2. Compute", "3. Memory Bound", "5. Balanced", "6. LLM Inference"]
    names += ["7. LLM Training", "13. HPC"]
    assert host.smi("power-profiles", "-l") == (0, "".join(f"{name}\n" for name in names * 2))
    assert host.smi("power-profiles", "-gr", "-i", "0") == (0, "No profiles are currently requested.\n")
    assert host.smi("power-profiles", "-ge", "-i", "0") == (0, "No profiles are currently engaged.\n")
    code, text = host.smi("power-profiles", "-sr", "1")
    assert code == 3 and "is not emulated" in text


@pytest.mark.parametrize(("command", "columns"), [("encodersessions", 8), ("fbcsessions", 14)])
def test_no_sessions_are_a_line_of_dashes(host, command, columns):
    host.show(gpu(0), gpu(1))
    code, text = host.smi(command, "-c", "1")
    heads, rows = text.splitlines()[:2], text.splitlines()[2:]
    assert code == 0 and [row.split() for row in rows] == [[str(n), *["-"] * (columns - 1)] for n in range(2)]
    assert {len(line) for line in (*heads, *rows)} == {len(rows[0])}
    for words in (("-c", "0"), ("-c", "x"), ("-d", "0"), ("-x",), ("-c",)):
        assert host.smi(command, *words)[0] == 2


def test_commands_of_later_branches_are_unknown_to_earlier_ones(host):
    host.show(gpu(0, "H100"), driver_version="530.30.02")
    for command in ("c2c", "conf-compute", "gpm", "pci", "power-profiles", "prm", "rusd", "soc"):
        assert host.smi(command) == (
            2,
            f"Option \"{command}\" is not recognized. Please run 'nvidia-smi -h' for help.\n",
        )
        assert f"    {command} " not in host.smi("-h")[1]
    host.show(gpu(0, "H100"), driver_version="595.80.01")
    for command in ("c2c", "conf-compute", "gpm", "pci", "power-profiles", "prm", "rusd", "soc"):
        assert "not recognized" not in host.smi(command)[1] and f"\n    {command} " in host.smi("-h")[1]


def options_of(text):
    """The options of a text of help, in their order: brief, name, and whether a value follows."""
    found = re.findall(r"^ {3,11}(?:(-\w+),? +)?(--[a-z-]+)(=?)(?=\s|$)", text, re.MULTILINE)
    return [(brief, name, bool(value)) for brief, name, value in found]


def test_help_has_the_captured_options_in_their_order(captured, host):
    """The capture has those with a comma, or without a brief form, alone."""
    host.show(gpu(0, "H100-SXM"), driver_version="590.48.01")
    code, text = host.smi("-h")
    lines = [line.split("\t") for line in captured["options (short, long, takes a value)"] if line]
    wanted = [(brief, name, value == "value") for brief, name, value in lines]
    rest = iter(options_of(text))
    assert code == 0 and all(one in rest for one in wanted), wanted
    commands = re.findall(r"^    ([a-z][\w-]+) {2,}", text, re.MULTILINE)
    assert [name for name in captured["subcommands"] if name] == [
        name for name in commands if name not in ("c2c", "power-hint", "base-clocks")
    ]


def test_help_needs_no_driver_and_shows_all_then(host):
    code, text = host.smi("-h")
    assert code == 0 and "    soc " in text and "--get-hostname" in text
    assert host.smi("--help-query-gpu")[1].count('"kmd_version"') == 1
