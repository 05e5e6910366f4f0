"""koord-scheduler and koord-manager of Koordinator v1.6.0 in the place of ours, in every combination.

``python -m tests.systems.koordinator.mixed`` builds them; without them these tests are skipped.
"""

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
from tests.systems.koordinator.mixed.programs import place

pytestmark = pytest.mark.wall

FOLDER = Path(__file__).parent / "mixed"
SCHEDULER, MANAGER = "koord-scheduler", "koord-webhook"
GATES = "--feature-gates=AllAlpha=false,AllBeta=false,PodMutatingWebhook=true,PodValidatingWebhook=true"


def program(name: str) -> str:
    """The program's path; the test is skipped without it."""
    if not place(name).is_file():
        pytest.skip(f"{place(name)} is not there: python -m tests.systems.koordinator.mixed builds it")
    return str(place(name))


def theirs(component: str, config: str = "scheduler.yaml") -> Mapping[str, Any]:
    """The component's own program as ``stack.replace`` has it. The manager ends where a kind that it watches is not
    there yet; as in its pod it is started again."""
    if component == SCHEDULER:
        argv = [
            program("koord-scheduler"),
            "--config=/etc/koordinator/scheduler.yaml",
            "--port={port}",
            "--secure-port=0",
        ]
        return {"process": [*argv, "--feature-gates="], "mounts": {"/etc/koordinator/scheduler.yaml": config}}
    manager = [program("koord-manager"), GATES, "--enable-leader-election=false", "--metrics-addr=:0"]
    again = ["sh", "-c", 'while ! "$@"; do sleep 1; done', "sh"]
    env = {"WEBHOOK_PORT": "{port}", "WEBHOOK_HOST": "127.0.0.1", "POD_NAMESPACE": "koordinator-system"}
    return {"process": [*again, *manager, "--health-probe-addr=:0"], "env": env}


def run(*components: str, config: str = "scheduler.yaml", webhook: bool = True) -> Run:
    """The scenario with those components' own programs; ``webhook``: with ours, or what takes its place."""
    document = yaml.safe_load((FOLDER / "scenario.yaml").read_text(encoding="utf-8"))
    replaced = {component: dict(theirs(component, config)) for component in components}
    document["stack"]["koordinator"]["webhook"] = webhook
    document["stack"]["replace"] = {"koordinator": replaced}
    scenario = parse_scenario(yaml.safe_dump(document), FOLDER / "scenario.yaml")
    return Engine(RunOptions(time="wall", speed=10.0)).run(scenario)


def given(ended: Run) -> Sequence[str]:
    """The pods that were given devices by their annotation."""
    key = "scheduling.koordinator.sh/device-allocated"
    lines = [line for line in ended.lines if line.event == "annotations" and key in line.fields["annotations"]]
    return [line.actor.rpartition("/")[2] for line in lines]


def test_the_scenario_passes_with_ours_alone() -> None:
    ended = run()
    assert ended.result.verdict == "passed", ended.result.report


def is_well(ended: Run) -> None:
    """No law is broken, no device held twice among them, and each pod was given its devices."""
    assert ended.result.verdict == "passed", ended.result.report
    assert ended.result.violations == ()
    assert set(given(ended)) == {"a", "b", "c", "d"}


def test_their_scheduler_gives_each_pod_its_devices_beside_our_koordlet() -> None:
    is_well(run(SCHEDULER, webhook=False))


@pytest.mark.nightly
@pytest.mark.parametrize("components", [(MANAGER,), (SCHEDULER, MANAGER)], ids="+".join)
def test_their_manager_runs_beside_ours_and_beside_their_scheduler(components: Sequence[str]) -> None:
    is_well(run(*components))


@pytest.mark.nightly
def test_our_webhook_lets_no_scheduler_bind_that_is_not_its_own() -> None:
    ended = run(SCHEDULER)
    assert ended.result.verdict == "failed"
    assert "only system:serviceaccount:koordinator-system:koord-scheduler may bind it" in str(ended.result.report)
    assert "Insufficient" not in str(ended.result.report)


def test_their_scheduler_without_its_device_plugin_gives_no_pod_a_device() -> None:
    ended = run(SCHEDULER, config="without-devices.yaml", webhook=False)
    assert ended.result.verdict == "failed"
    assert "each has a GPU" in str(ended.result.reason)
    assert given(ended) == []
