"""`nvidia-smi -q` and `-q -x`: which elements a model has with a driver, in which form."""

import os
import re
import sys
import xml.etree.ElementTree as tree
from pathlib import Path

import pytest

from mews.emulator.hardware.drivers import CUDA_OF_BRANCH, branch_of
from mews.emulator.hardware.gpu_profiles import PROFILES, profile_of
from mews.emulator.nvml.state import NvmlHost, render
from tests.emulator.nvml.hosts import gpu

LEAST_PERCENT = 95.0
MEASURED = {"a100": ("A100-SXM4-40GB", 1), "h100": ("H100-SXM", 8), "l40s": ("L40S", 1), "gb200": ("GB200", 4)}
"""The boards that were captured, and how many a host had."""

FORMS = (
    (re.compile(r"GPU-[0-9a-f-]{36}"), "UUID"),
    (re.compile(r"[0-9A-F]{8}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-9]"), "BDF"),
    (re.compile(r"0x[0-9a-fA-F]+"), "HEX"),
)
NUMBER = re.compile(r"-?\d+(\.\d+)?")


def captures():
    folder = os.environ.get("MEWS_DATA_DIR")
    found = sorted((Path(folder) / "nvidia-smi").glob("*.txt")) if folder else []
    known = [path for path in found if path.name.partition("-")[0] in MEASURED]
    return [pytest.param(path, id=path.stem) for path in known] or [
        pytest.param(None, marks=pytest.mark.skip("needs the measured data: set MEWS_DATA_DIR to the data directory"))
    ]


def form_of(text):
    text = (text or "").strip()
    return next((word for pattern, word in FORMS if pattern.fullmatch(text)), NUMBER.sub("#", text))


def forms_of(xml):
    """Path of every element -> the forms of its values."""
    found = {}

    def walk(element, path):
        found.setdefault(path, set()).add("node" if len(element) else form_of(element.text))
        for child in element:
            walk(child, f"{path}/{child.tag}")

    root = tree.fromstring(xml)
    walk(root, root.tag)
    return found


def shown(host, model, driver, count=1, **more):
    host.show(*(gpu(n, model, **more) for n in range(count)), driver_version=driver)
    code, text = host.smi("-q", "-x")
    assert code == 0, text
    return text


def of_gpu(host, model, driver, **more):
    return tree.fromstring(shown(host, model, driver, **more)).find("gpu")


@pytest.mark.parametrize("path", captures())
def test_real_outputs_have_the_same_elements_in_the_same_form(host, path, record_property, capsys):
    head, *lines = path.read_text().splitlines()
    model, count = MEASURED[path.name.partition("-")[0]]
    text = shown(host, model, path.stem.partition("-")[2], count)
    wanted = {name: set(forms.split(" | ")) for name, _, forms in (line.partition("\t") for line in lines)}
    there = forms_of(text)
    other = [name for name in wanted if not wanted[name] & there.get(name, set())]
    percent = 100 * (1 - len(other) / len(wanted))
    with capsys.disabled():
        sys.stdout.write(f"\n{path.stem} as {model}: {percent:.1f} % of {len(wanted)} elements in the same form\n")
    record_property("percent", percent)
    assert percent >= LEAST_PERCENT, [(name, wanted[name], there.get(name)) for name in other]
    assert [name for name in there if name not in wanted] == []
    assert re.search(r"nvsmi_device_v\d+\.dtd", head)[0] in text


@pytest.mark.parametrize("branch", CUDA_OF_BRANCH)
@pytest.mark.parametrize("model", ["V100", "T4", "A30", "B200", "RTX PRO 6000"])
def test_every_branch_shows_every_generation(host, model, branch):
    one = of_gpu(host, model, f"{branch}.40.01")
    assert one.findtext("product_name") == PROFILES[model].name
    assert one.findtext("temperature/gpu_temp").endswith(" C")


def test_a_branch_renames_and_drops_and_deprecates(host):
    old, middle, new = (of_gpu(host, "A30", release) for release in ("525.60.13", "535.54.03", "570.86.15"))
    assert old.find("clocks_throttle_reasons") is not None and old.find("clocks_event_reasons") is None
    assert old.findtext("power_readings/power_draw") == middle.findtext("gpu_power_readings/power_draw")
    assert middle.findtext("gpu_module_id") == new.findtext("platformInfo/module_id") == "1"
    assert middle.findtext("ecc_errors/volatile/sram_uncorrectable") == "0"
    assert new.findtext("ecc_errors/volatile/sram_uncorrectable_parity") == "0"
    assert new.findtext("applications_clocks/graphics_clock") == "1440 MHz"
    gone = of_gpu(host, "A30", "590.44.01").findtext("applications_clocks/graphics_clock")
    assert gone == "Requested functionality has been deprecated"
    assert of_gpu(host, "A30", "595.91.07").findtext("applications_clocks/graphics_clock") == "N/A"


@pytest.mark.parametrize(
    ("release", "there"), [("580.105.08", False), ("580.173.02", True), ("590.44.01", False), ("595.91.07", True)]
)
def test_what_came_within_a_branch_is_there_from_that_release_on(host, release, there):
    assert (of_gpu(host, "H100", release).find("remapped_rows/remapped_row_corr_inactive") is not None) == there


def test_models_differ_by_what_they_can(host):
    volta, ampere, ada = (of_gpu(host, model, "570.86.15") for model in ("V100", "A30", "L4"))
    assert volta.findtext("addressing_mode") == "None" and ampere.findtext("addressing_mode") == "HMM"
    assert volta.findtext("remapped_rows") == "N/A" and volta.findtext("retired_pages/pending_blacklist") == "No"
    assert ampere.findtext("retired_pages/pending_blacklist") == "N/A"
    assert volta.find("ecc_errors/volatile/double_bit/device_memory") is not None
    assert (
        ampere.findtext("temperature/gpu_temp_tlimit") == "N/A"
        and ampere.find("temperature/gpu_temp_max_threshold") is not None
    )
    assert (
        ada.findtext("temperature/gpu_temp_tlimit").endswith(" C")
        and ada.find("temperature/gpu_temp_max_threshold") is None
    )
    assert ampere.findtext("gpu_power_readings/average_power_draw") == "N/A"
    assert ada.findtext("gpu_power_readings/average_power_draw") == ada.findtext(
        "gpu_power_readings/instant_power_draw"
    )
    assert ada.findtext("fabric/state") == "N/A"
    grace = of_gpu(host, "GB200", "580.173.02")
    assert grace.findtext("addressing_mode") == "ATS" and grace.findtext("c2c_mode") == "Enabled"
    assert grace.findtext("fabric/state") == "Completed" and grace.findtext("fabric/health/summary") == "Healthy"


def test_details_follow_the_state(host):
    cool, hot = (of_gpu(host, "L4", "570.86.15", temperature_c=degrees) for degrees in (40, 90))
    assert (cool.findtext("temperature/gpu_temp_tlimit"), hot.findtext("temperature/gpu_temp_tlimit")) == (
        "53 C",
        "3 C",
    )
    assert (
        of_gpu(host, "A30", "570.86.15", ecc_enabled=False).findtext("ecc_errors/aggregate/sram_threshold_exceeded")
        == "N/A"
    )


def test_d_shows_the_named_sections_alone(host):
    host.show(gpu(0, "A30"))
    code, text = host.smi("-q", "-d", "memory,ECC")
    assert code == 0
    assert [line.strip() for line in text.splitlines() if re.match(r"^    \S", line)] == [
        "FB Memory Usage", "BAR1 Memory Usage", "Conf Compute Protected Memory Usage", "ECC Mode", "ECC Errors",
    ]  # fmt: skip
    code, text = host.smi("-q", "-d", "MEMORY,COLOUR")
    assert code == 2 and "COLOUR" in text and "SUPPORTED_CLOCKS" in text
    assert host.smi("-d", "MEMORY")[0] == 2


def test_an_unknown_driver_is_refused_with_the_branches_there_are():
    with pytest.raises(ValueError, match=r"driver '312\.4': must be a release .* 520, 525"):
        render(NvmlHost(driver_version="312.4"))
    assert branch_of("580.95") == 580


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("NVIDIA GB200", "GB200"),
        ("rtx 6000", "RTX 6000 ADA"),
        ("H100 SXM5", "H100-SXM"),
        ("nvidia l4", "L4"),
        ("h20", "H20"),
    ],
)
def test_new_models_are_found_by_the_names_in_use(name, key):
    assert profile_of(name) is PROFILES[key]
