"""`nvidia-smi -q` as text, against what was captured of an H100 with and without MIG (driver 590.48.01).

The captures hold each line once: of lines with the same depth, label and form the first alone.
"""

import os
import re
from pathlib import Path

import pytest

from mews.emulator.hardware.gpu_profiles import PROFILES
from mews.emulator.nvml.mig.instances import NO_MIG, MigState, compute_created, created
from mews.emulator.nvml.mig.models import mig_table
from tests.emulator.nvml.hosts import gpu, uuid_of

RELEASE = "590.48.01"
GONE = "Requested functionality has been deprecated"


def captured_text(name):
    """(depth, label, form) of each line."""
    folder = os.environ.get("MEWS_DATA_DIR")
    if not folder:
        pytest.skip("needs the measured data: set MEWS_DATA_DIR to the data directory")
    text = (Path(folder) / "nvidia-smi" / name).read_text()
    part = text.partition("## -q text, idle: indentation, key, form\n")[2].partition("\n## ")[0]
    return [tuple(line.split("\t")) for line in part.splitlines() if line.strip()]


def shown_text(text):
    """(depth, label with # for numbers) of each line."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("=")]
    labels = [re.sub(r"^GPU [0-9A-F:.]+$", "GPU #", line.strip().partition(" : ")[0].strip()) for line in lines]
    depths = [(len(line) - len(line.lstrip())) // 4 for line in lines]
    return [(str(depth), re.sub(r"\d+", "#", label)) for depth, label in zip(depths, labels, strict=True)]


def divided():
    """One instance, of a seventh."""
    table = mig_table(PROFILES["H100-SXM"])
    state = created(MigState(enabled=True, pending=True), table, 19)
    return compute_created(state, table, uuid_of(0), state.instances[0].id, 0)


@pytest.mark.parametrize(
    ("file", "mig"), [("cli-h100-590.48.01.txt", NO_MIG), ("cli-h100-mig-590.48.01.txt", divided())]
)
def test_the_lines_are_those_of_the_real_one(host, file, mig):
    host.show(gpu(0, "H100-SXM", mig=mig), switched=True, driver_version=RELEASE)
    wanted = [(depth, label) for depth, label, *_ in captured_text(file)]
    shown = shown_text(host.smi("-q")[1])
    rest = iter(shown)
    missing = [one for one in wanted if one not in rest and one not in shown]
    assert missing == []
    assert {one for one in shown if one not in wanted} == set()


@pytest.mark.parametrize(
    ("release", "width", "display", "inactive"),
    [("530.30.02", 42, "Enabled", 0), ("580.105.08", 50, "N/A", 0), (RELEASE, 50, GONE, 0),
     ("580.173.02", 55, GONE, 2), ("595.80", 55, GONE, 2), ("595.91.07", 55, "N/A", 2)],
)  # fmt: skip
def test_a_release_has_its_own_width_and_lines(host, release, width, display, inactive):
    host.show(gpu(0, "L40S"), driver_version=release)
    text = host.smi("-q")[1]
    assert {len(line.partition(" : ")[0]) + 1 for line in text.splitlines() if re.search(r"\w +: ", line)} == {width}
    assert f"{'    Display Mode':<{width}}: {display}\n" in text and text.count("Inactive ") == inactive
    shown = host.smi("--query-gpu=display_mode", "--format=csv,noheader")[1].strip("[]\n")
    assert shown == display


@pytest.mark.parametrize(("release", "line"), [("570.86.15", "|"), ("580.173.02", "+")])
def test_the_frame_of_the_table_follows_the_branch(host, release, line):
    host.show(gpu(0), driver_version=release)
    lines = host.smi()[1].splitlines()
    assert lines[3] == f"{line}{'-' * 41}+{'-' * 24}+{'-' * 22}+"
    assert lines[12] == ("" if line == "+" else " " * 89)


def test_csv_is_that_of_an_h200_and_an_l40s_without_a_rack(host):
    names = "display_mode,pcie.link.gen.hostmax,platform.chassis_serial_number,platform.host_id,platform.peer_type"
    host.show(gpu(0, "H200"), driver_version="580.173.02")
    asked = host.smi(f"--query-gpu={names},clocks.applications.memory", "--format=csv,noheader")[1]
    assert asked == f"[{GONE}], [N/A], , 1, Direct Connected, 3201 MHz\n"
    host.show(gpu(0, "L40S"), driver_version="595.80")
    asked = host.smi(f"--query-gpu={names},platform.gpu_fabric_guid,power.management", "--format=csv,noheader")[1]
    assert asked == f"[{GONE}], [N/A], , 1, Direct Connected, 0x0000000000000000, [{GONE}]\n"
    assert host.smi("--query-gpu=power_smoothing.window_multiplier", "--format=csv")[0] == 2
