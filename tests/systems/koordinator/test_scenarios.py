"""The shipped scenarios of Koordinator: one verdict with and without a device plugin of nvidia.com/gpu beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario

FOLDER = Path(__file__).parents[3] / "scenarios" / "koordinator"
SCENARIOS = sorted(path.name for path in FOLDER.glob("*.yaml"))
PLUGIN = "stack.koordinator.devicePlugin=true"


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_passes_with_a_device_plugin_beside_it(name: str) -> None:
    path = FOLDER / name
    run = Engine(RunOptions()).run(load_scenario(path, [PLUGIN]))
    assert run.result.verdict == "passed", run.result.reason


def test_all_but_those_about_a_plugin_s_own_pods_run_without_one_as_they_are() -> None:
    """Every shipped scenario is run as it is by ``tests.scenarios``."""
    with_one = [name for name in SCENARIOS if load_scenario(FOLDER / name).stack.systems["koordinator"].device_plugin]
    names = ["21-adopted", "27-kubelet-restart", "28-upgrade", "32-ended-pods-hold-nothing"]
    assert with_one == [f"{name}.yaml" for name in names]


@pytest.mark.wall
def test_hooks_and_nvml_are_real_ones_in_wall_clock_time() -> None:
    run = Engine(RunOptions(time="wall")).run(load_scenario(FOLDER / "20-koordlet.yaml"))
    assert run.result.verdict == "passed", run.result.reason
    started = [line.fields for line in run.lines if line.event == "container-started"]
    found = {each["pod"]: each["env"].get("NVIDIA_VISIBLE_DEVICES") for each in started}
    assert found["default/c"] == "0,2"
    assert {found["default/a"], found["default/b"]} <= {"0", "1"}
