"""Somebody else's extender and device plugin in the place of ours, in the same scenarios.

``MEWS_GPUSHARE_EXTENDER`` and ``MEWS_GPUSHARE_DEVICE_PLUGIN`` name the public project's binaries; where they are not
named those tests are skipped. A small Go extender of the tests (``goextender``) shows that the way is there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import parse_scenario
from tests.emulator.nvml.gobuild import built

pytestmark = pytest.mark.wall

FOLDER = Path(__file__).parents[3] / "scenarios" / "gpushare"
COMPLAINTS = sorted(FOLDER.glob("extender-*.yaml"))
OF_PLUGINS = sorted(FOLDER.glob("device-plugin-*.yaml"))
EXTENDER, DEVICE_PLUGIN = "MEWS_GPUSHARE_EXTENDER", "MEWS_GPUSHARE_DEVICE_PLUGIN"
USUAL = "/var/lib/kubelet/device-plugins"
# The public plugin has its folder compiled in: it gets the node's there, in a mount namespace of its own.
MOUNTED = f'mount -t tmpfs none /var/lib && mkdir -p {USUAL} && mount --bind "$0" {USUAL} && exec "$@"'


def complaint(path: Path) -> str:
    """What the scenario is about, in its first line."""
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ")


def run(
    path: Path, component: str, process: Sequence[str], env: Mapping[str, str], *, patience: str | None = None
) -> Run:
    """The scenario with that program in the component's place; ``patience``: the most that a step is waited for."""
    document: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    for step in document["steps"] if patience else ():
        if "timeout" in step:
            step["timeout"] = patience
    document["stack"]["replace"] = {"gpushare": {component: {"process": list(process), "env": dict(env)}}}
    scenario = parse_scenario(yaml.safe_dump(document), path)
    return Engine(RunOptions(time="wall", speed=10.0)).run(scenario)


def binary(variable: str) -> str:
    """The program that it names; else the test is skipped."""
    named = os.environ.get(variable)
    if not named:
        pytest.skip(f"{variable} names no binary of the public project")
    if not os.access(named, os.X_OK) or not os.path.isfile(named):
        pytest.fail(f"{variable}: {named}: must be an executable file")
    return named


def test_a_go_extender_takes_the_place_of_ours() -> None:
    (path,) = FOLDER.glob("extender-218-*.yaml")
    ended = run(path, "gpushare-extender", [str(built(Path(__file__).parent / "goextender"))], {"PORT": "{port}"})
    assert ended.result.verdict == "passed", ended.result.reason


def test_one_with_a_known_fault_is_found_out_by_the_scenario_of_that_complaint() -> None:
    (path,) = FOLDER.glob("extender-218-*.yaml")
    program = str(built(Path(__file__).parent / "goextender"))
    ended = run(path, "gpushare-extender", [program], {"PORT": "{port}", "FAULT": "218"}, patience="20s")
    assert ended.result.verdict == "failed"
    assert complaint(path).startswith("gpushare-scheduler-extender #218: ")
    assert "FailedScheduling" in str(ended.result.reason)


@pytest.mark.parametrize("path", COMPLAINTS, ids=lambda path: path.stem)
def test_the_public_extender_is_judged_by_the_same_scenarios(path: Path) -> None:
    ended = run(path, "gpushare-extender", [binary(EXTENDER)], {"PORT": "{port}"})
    if ended.result.verdict == "failed":
        pytest.xfail(f"{complaint(path)}: {ended.result.reason}")
    assert ended.result.verdict == "passed", ended.result.reason


@pytest.mark.parametrize("path", [*COMPLAINTS, *OF_PLUGINS], ids=lambda path: path.stem)
def test_the_public_device_plugin_is_judged_by_the_same_scenarios(path: Path) -> None:
    program = [binary(DEVICE_PLUGIN), "--logtostderr", "--v=5", "--memory-unit=GiB"]
    argv = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", MOUNTED, "{device_plugins}", *program]
    ended = run(path, "gpushare-device-plugin", argv, {"NODE_NAME": "{node}"})
    if ended.result.verdict == "failed":
        pytest.xfail(f"{complaint(path)}: {ended.result.reason}")
    assert ended.result.verdict == "passed", ended.result.reason


def test_every_complaint_names_its_number() -> None:
    for path in FOLDER.glob("*-[0-9]*-*.yaml"):
        number = re.search(r"-(\d+)-", path.stem)
        assert number is not None
        if path.stem.startswith(("extender-", "device-plugin-")):
            assert f"#{number[1]}" in complaint(path)
