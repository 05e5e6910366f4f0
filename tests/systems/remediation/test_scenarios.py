"""The scenarios of the remediation pass, keep to options that make sense, and notice one-line faults."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario, parse_scenario
from mews.systems.remediation import policy
from mews.systems.remediation.config import RemediationConfig
from tests.crash_points.account import bases, sample
from tests.crash_points.systems import SYSTEMS
from tests.crash_points.trial import try_point

FOLDER = Path(__file__).parents[3] / "scenarios" / "remediation"


def run(name: str) -> Run:
    (path,) = FOLDER.glob(f"{name}-*.yaml")
    return Engine(RunOptions()).run(load_scenario(path))


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_scenario_passes_in_virtual_time(path: Path) -> None:
    result = Engine(RunOptions()).run(load_scenario(path)).result
    assert (result.verdict, result.violations) == ("passed", ()), result.report


def without_remediation(document: dict[str, Any]) -> None:
    document["stack"]["remediation"] = None


def test_without_it_the_pods_of_a_broken_gpu_stay() -> None:
    path = FOLDER / "03-shared-gpu.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    without_remediation(document)
    ended = Engine(RunOptions()).run(parse_scenario(yaml.safe_dump(document), path))
    assert ended.result.verdict == "failed"
    assert not [line for line in ended.lines if line.layer == "api" and line.actor.startswith("remediation")]


def every_pod(config: RemediationConfig, incident: Any, on_node: Any) -> list[Any]:
    return [pod for pod in on_node if not policy.stays(config, pod)]


def nobody(config: RemediationConfig, incident: Any, on_node: Any) -> list[Any]:
    return []


@pytest.mark.parametrize(("fault", "law"), [(every_pod, 80), (nobody, 0)])
def test_who_is_sent_away_wrongly_is_noticed(
    fault: Callable[..., Any], law: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy, "to_go", fault)
    ended = run("01")
    assert ended.result.verdict == "failed"
    assert not law or any(str(law) in str(each) for each in ended.result.violations), ended.result.violations


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"scope": "rack"}, "scope"),
        ({"scope": "device", "drain": "node"}, "drain: node requires scope: node"),
        ({"share": 0}, "share"),
        ({"evictions": {"*": "Now"}}, "evictions"),
        ({"nodes": ["nowhere"]}, "nodes: 'nowhere': must be one of"),
        ({"speed": 3}, "speed"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], why: str) -> None:
    path = FOLDER / "01-xid-is-mended.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["stack"]["remediation"] = options
    with pytest.raises((ScenarioError, ValueError), match=why):
        Engine(RunOptions()).run(parse_scenario(yaml.safe_dump(document), path))


@pytest.mark.parametrize("name", SYSTEMS["remediation"])
def test_no_crash_leaves_a_pod_on_a_broken_gpu_or_a_node_cordoned(name: str) -> None:
    (base,) = bases([name])
    points = [point for point in base.points() if "remediation" in point.incidents[0].what]
    failed = {}
    for point in sample(points, 4, seed=5):
        outcome = try_point(base.scenario, point, pending=base.outcome.excused)
        if outcome.problems:
            failed[str(point)] = outcome.problems
    assert failed == {}
