"""A KubeComp pod and a Koordinator pod compete for one GPU: never both, whoever comes first and by however much."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mews.harness.engine import Engine
from mews.harness.invariants.systems import judged_systems
from mews.harness.journal import Line
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario
from mews.kube.api.objects import Object
from mews.kube.system.configured import ConfiguredSystem
from mews.kube.system.facility import Facility
from mews.kube.system.invariant import ClusterObjects
from mews.systems.koordinator.koordlet import Koordlet
from mews.systems.koordinator.names import ALLOCATED, CORE, RATIO
from mews.systems.koordinator.options import KoordinatorOptions
from mews.systems.koordinator.system import SYSTEM, configure
from tests.harness.invariants.stream import Stream

CONTEST = """
apiVersion: mews/v1
kind: Scenario
metadata: {{name: contest}}
hardware:
  metadata: {{name: contest}}
  hosts: [{{name: whole}}, {{name: parts}}]
  chassis:
    - name: A
      index: 0
      slots: 2
      ports: {{"1": whole, "2": parts}}
      devices: [{{id: "000100", uuid: GPU-1, model: V100-16GB, port: "2"}}]
stack: {{koordinator: {{nodes: [parts]}}}}
bounds: {{scheduled_s: 30}}
steps:
  - wait:
      - object: {{kind: Node, metadata: {{name: parts}}, status: {{allocatable: {{koordinator.sh/gpu-core: "100"}}}}}}
    timeout: 1m
  - sleep: 10s
  - apply: {first}
  - sleep: {after_s}s
  - apply: {second}
  - sleep: 2m
"""
TRAINER = (
    "{kind: Pod, metadata: {name: trainer}, spec: {schedulerName: kubecomp-scheduler, restartPolicy: Never,"
    " containers: [{name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: 1}}}]}}"
)
PART = (
    "{kind: Pod, metadata: {name: part}, spec: {schedulerName: koord-scheduler,"
    " containers: [{name: main, image: mews/gpu-hold, resources: {limits: {koordinator.sh/gpu: 30}}}]}}"
)


def contest(folder: Path, first: str, after_s: float, second: str) -> Any:
    path = folder / "contest.yaml"
    path.write_text(CONTEST.format(first=first, after_s=after_s, second=second))
    return Engine(RunOptions()).run(load_scenario(path))


def bound(lines: list[Line]) -> Iterator[str]:
    for line in lines:
        if line.event == "bound" and line.actor in ("pod/default/trainer", "pod/default/part"):
            yield line.actor.rpartition("/")[2]


@pytest.mark.parametrize("after_s", [0.0, 0.5, 2.9, 3.0, 3.1, 6.0])
def test_the_part_comes_after_the_trainer(tmp_path: Path, after_s: float) -> None:
    run = contest(tmp_path, TRAINER, after_s, PART)
    assert run.result.verdict == "passed", run.result.reason
    assert len(list(bound(run.lines))) == 1


@pytest.mark.parametrize("after_s", [0.0, 0.5, 3.0])
def test_the_trainer_comes_after_the_part(tmp_path: Path, after_s: float) -> None:
    run = contest(tmp_path, PART, after_s, TRAINER)
    assert run.result.verdict == "passed", run.result.reason
    assert list(bound(run.lines)) == ["part"]


def test_a_koordlet_that_lets_go_of_what_a_pod_holds_meets_the_host_s_own_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Koordlet, "_held_by", lambda *_: [])
    run = contest(tmp_path, PART, 3.0, TRAINER)
    refusals = [str(line.fields["message"]) for line in run.lines if line.fields.get("reason") == "ReconfigRefused"]
    assert refusals and all("in use by main" in each for each in refusals)
    assert list(bound(run.lines)) == ["part"]


def placed(name: str, core: int) -> Object:
    device = {"minor": 0, "id": "GPU-a", "resources": {CORE: core, RATIO: core}}
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "annotations": {ALLOCATED: json.dumps({"gpu": [device]})},
        },
        "spec": {"nodeName": "host-1", "containers": [{"name": "main"}]},
        "status": {"phase": "Running"},
    }


def judged(*devices: str) -> Stream:
    config = configure(KoordinatorOptions(), Facility())
    systems = judged_systems((ConfiguredSystem(SYSTEM, KoordinatorOptions(), config),), [])
    return Stream(dict.fromkeys(devices, "1"), systems, **{**SYSTEM.judging.bounds, "unlisted_s": 15.0})


@pytest.mark.parametrize("core", [30, 100])
def test_the_invariants_of_every_run_know_what_a_pod_has(core: int) -> None:
    stream = judged("a")
    pods = {"default/p": placed("p", core)}
    stream.judge.on_objects(stream.t, ClusterObjects({}, pods, stream.t))
    assert stream.numbers() == []
    stream.allocate("host-1", "trainer", ["a"])
    stream.judge.on_objects(stream.t, ClusterObjects({}, pods, stream.t))
    assert stream.numbers() == [3]
    stream.detach("a")
    assert 2 in stream.numbers()


def test_a_device_that_a_plugin_gave_to_another_pod_is_one_however_the_resource_is_called() -> None:
    stream = judged()
    given = {"pod": "default/old", "uid": "old", "container": "main", "resource": "nvidia.com/gpu"}
    stream.kubelet("host-1", "allocated", **given, devices=["GPU-a"])
    stream.judge.on_objects(stream.t, ClusterObjects({}, {"default/p": placed("p", 100)}, stream.t))
    assert stream.numbers() == [3]
