"""The public Reconfig-Mgr and DisagGPU-DevMgr in the place of ours, in every combination (``tests.programs``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import parse_scenario
from tests.programs import foreign_program

pytestmark = pytest.mark.wall

ROOT = Path(__file__).parents[3]
FOLDER = Path(__file__).parent / "mixed"
MANAGER, PLUGIN = "reconfig-manager", "device-manager"


def public(component: str) -> Mapping[str, Any]:
    """The component's public program as ``stack.replace`` has it; the test is skipped without it."""
    if component == MANAGER:
        mounts = {"/etc/kubernetes/reconfig-mgr-config.yaml": "reconfig-mgr.yaml"}
        return {"process": [str(foreign_program("kubecomp/app"))], "mounts": mounts}
    mounts = {"/etc/kubernetes/device-plugin-config.yaml": "device-plugin.yaml"}
    program = str(foreign_program("kubecomp/server"))
    return {"process": [program], "env": {"NODE_IP": "{node}"}, "mounts": mounts}


def chassis(**more: Any) -> Mapping[str, Any]:
    """The demo's, with six, two and four GPUs on its ports."""
    document = yaml.safe_load((ROOT / "fixtures/hardware/demo.yaml").read_text(encoding="utf-8"))
    (box,) = document["chassis"]
    for device in box["devices"]:
        if device["id"] in ("000700", "000800"):
            device["port"] = "1"
    return {**box, **more}


def run(*components: str, options: Mapping[str, Any] | None = None, patience: str | None = None, **more: Any) -> Run:
    """The scenario with those components' public programs, and a chassis that they can speak to. ``patience``: how long
    a step waits, where it is to end well: a minute is six seconds here, and a loaded machine may need more."""
    document = yaml.safe_load((FOLDER / "scenario.yaml").read_text(encoding="utf-8"))
    for step in document["steps"]:
        if patience and "wait" in step:
            step["timeout"] = patience
    document["hardware"] = {"file": "demo", "chassis": [chassis(**more)]}
    document["stack"] = {"replace": {"kubecomp": {name: dict(public(name)) for name in components}}}
    document["stack"] |= {"kubecomp": dict(options)} if options else {}
    scenario = parse_scenario(yaml.safe_dump(document), FOLDER / "scenario.yaml")
    return Engine(RunOptions(time="wall", speed=10.0, dialect="resource-pool")).run(scenario)


def moved(ended: Run) -> Sequence[str]:
    """The devices that were attached somewhere else, as their chassis calls them."""
    return [line.fields["device"] for line in ended.lines if (line.layer, line.event) == ("chassis", "attached")]


@pytest.mark.parametrize("components", [(), (MANAGER,), (MANAGER, PLUGIN)], ids=lambda names: "+".join(names) or "ours")
def test_a_pod_gets_free_devices_and_nobody_loses_one(components: Sequence[str]) -> None:
    ended = run(*components, patience="10m")
    assert ended.result.verdict == "passed", ended.result.report
    assert len(moved(ended)) == 2
    assert set(moved(ended)) <= {"000900", "000A00", "000B00", "000C00"}


def test_ours_moves_nothing_where_a_public_plugin_says_not_what_pods_hold() -> None:
    ended = run(PLUGIN)
    assert ended.result.verdict == "failed"
    assert ended.result.violations == (), ended.result.report
    assert "step 4 wait" in str(ended.result.reason)
    assert moved(ended) == []


@pytest.mark.parametrize(
    ("options", "more"), [({}, {"prefixed": True}), ({"scheduler": {"marks_all": False}}, {})], ids=["ids", "marks"]
)
def test_without_the_public_names_a_running_pod_loses_its_devices(options: Any, more: Any) -> None:
    ended = run(MANAGER, options=options, **more)
    assert ended.result.verdict == "failed"
    assert set(moved(ended)) == {"000500", "000600"}
    assert any("000500" in str(violation) for violation in ended.result.violations), ended.result.report
