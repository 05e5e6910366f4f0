"""What is set acts, or is refused in one line: options of a scenario, of a configuration file, and what pods say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario
from mews.systems.koordinator.__main__ import config_of
from mews.systems.koordinator.admission import has_devices, mutated, refused_binding
from mews.systems.koordinator.devices import NodeDeviceReport, as_object, parse
from mews.systems.koordinator.errors import BadDeviceError, InvalidRequestError, KoordinatorConfigError
from mews.systems.koordinator.gangs import gang_of
from mews.systems.koordinator.names import ISOLATION, MIN_AVAILABLE, PARTITION_POLICY, POD_GROUP, RATIO
from mews.systems.koordinator.requests import ask_of
from tests.systems.koordinator.cluster import gpus

SHIPPED = Path(__file__).parents[3] / "scenarios" / "koordinator" / "01-shared.yaml"


@pytest.mark.parametrize(
    ("option", "value", "line"),
    [
        ("schedulerAccount", "me", "schedulerAccount: belongs to the webhook: requires webhook: true"),
        ("pollS", 20, "pollS: 20: must not be above reportS, 10"),
        ("reportS", 5, "reportS: must be left out, because no node has a koordlet"),
        ("hookFailurePolicy", "Fail", "hookFailurePolicy: must be left out, because no node has a koordlet"),
        ("devicePlugin", True, "devicePlugin: must be left out, because no node has a koordlet"),
        ("adoptEnv", "nobody", "adoptEnv"),
        ("leaderElect", "yes", "leaderElect"),
        ("deviceChoice", "best", "deviceChoice"),
        ("deviceWeights", {RATIO: 0}, f"deviceWeights: {RATIO}: 0: must be a weight from 1 to 100"),
        ("deviceWeights", {RATIO: 101}, f"deviceWeights: {RATIO}: 101: must be a weight from 1 to 100"),
        ("deviceWeights", {RATIO: True}, f"deviceWeights: {RATIO}: True: must be a weight from 1 to 100"),
        ("deviceWeights", {RATIO: "1"}, f"deviceWeights: {RATIO}: '1': must be a weight from 1 to 100"),
        ("deviceWeights", {"cpu": 1}, f"deviceWeights: 'cpu': must be a resource of a device, such as {RATIO}"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused_in_one_line(option: str, value: Any, line: str) -> None:
    places = {f"stack.koordinator.{option}": value}
    if "no node" in line:
        places["stack.koordinator.nodes"] = []
    with pytest.raises(ScenarioError) as refused:
        load_scenario(SHIPPED, places)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value).strip()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("koordlet: {report_s: soon}", "koordlet: report_s: 'soon': must be seconds above 0"),
        ("koordlet: {poll_s: 0}", "koordlet: poll_s: 0: must be seconds above 0"),
        ("koordlet: {adopt: nvidia.com/gpu}", "koordlet: adopt: 'nvidia.com/gpu': must be a list of texts"),
        ("koordlet: {adopt_env: 'no'}", "koordlet: adopt_env: 'no': must be true or false"),
        ("koordlet: {seed_names: 1}", "koordlet: seed_names: 1: must be true or false"),
        ("koordlet: {kinds: [{type: xpu, vendor: '0x1', resource: xpu}]}", "resource: 'xpu': must be DOMAIN/NAME"),
        (
            "koordlet: {kinds: [{type: xpu, vendor: '0x1', resource: nvidia.com/gpu}]}",
            "must be DOMAIN/NAME, and no GPU's",
        ),
        ("device_weights: [1]", "device_weights: [1]: must be a mapping of resources to weights"),
        (f"device_weights: {{{RATIO}: -1}}", f"device_weights: {RATIO}: -1: must be a weight from 1 to 100"),
        (
            "device_choice: most",
            "device_choice: 'most': must be one of auto, minor, leastAllocated, mostAllocated, bandw",
        ),
        ("nodes: four", "nodes: 'four': must be a list of texts"),
        ("device_plugin: 'no'", "device_plugin: 'no': must be true or false"),
        ("leader_elect: 1", "leader_elect: 1: must be true or false"),
        ("scheduler_account: 3", "scheduler_account: 3: must be a text"),
        ("hook_failure_policy: Perhaps", "hook_failure_policy: 'Perhaps': must be one of Ignore, Fail"),
    ],
)
def test_a_value_of_a_file_that_its_field_cannot_have_is_refused_in_one_line(
    text: str, line: str, tmp_path: Path
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(KoordinatorConfigError) as refused:
        config_of(file)
    assert line in str(refused.value)


def test_a_gang_s_size_without_its_name_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="must come with the name of a gang"):
        gang_of({MIN_AVAILABLE: "2"})
    assert gang_of({MIN_AVAILABLE: "2", POD_GROUP: "g"}) is not None


def test_isolation_by_something_unknown_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="'else': must be HAMi-core"):
        ask_of({"koordinator.sh/gpu": 50}, {}, labels={ISOLATION: "else"})
    assert ask_of({"koordinator.sh/gpu": 50}, {}, labels={ISOLATION: "HAMi-core"})


def test_a_policy_of_partitions_that_is_not_known_makes_a_device_object_unreadable() -> None:
    device = dict(as_object(NodeDeviceReport("n", gpus("n", 1))))
    for policy, honours in (("Honor", True), ("Prefer", False)):
        device["metadata"]["labels"] = {PARTITION_POLICY: policy}
        assert parse(device).honours_partitions == honours
    device["metadata"]["labels"] = {PARTITION_POLICY: "honour"}
    with pytest.raises(BadDeviceError, match="'honour': must be Honor or Prefer"):
        parse(device)


def test_the_webhook_knows_a_new_kind_of_device_by_its_name_alone() -> None:
    asked = {"requests": {"koordinator.sh/xpu": "100", "cpu": "1"}}
    pod = {"metadata": {"name": "a", "namespace": "d"}, "spec": {"containers": [{"name": "c", "resources": asked}]}}
    assert has_devices(pod)
    made = mutated(pod, scheduler="koord-scheduler", device_plugin=False)
    assert made["spec"]["schedulerName"] == "koord-scheduler"
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"koordinator.sh/xpu": "100"}
    assert refused_binding(pod, "somebody", accounts=("system:koord-scheduler",))
