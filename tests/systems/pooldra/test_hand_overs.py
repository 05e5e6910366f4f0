"""Each way to hand a device over bears each disturbance: no device is lost, doubled or stranded.

Each file of ``scenarios/fabric`` looks at one hand-over; here all of them meet the same disturbances. The laws of the
pool driver are judged all the while; in the end the pool offers each device once, and no host has one.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import mews.scenarios
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.report.run import Run
from mews.harness.scenario.loader import parse_scenario

FABRIC = Path(mews.scenarios.__file__).parent / "fabric"
HAND_OVERS = ("in-place", "reallocate", "move")
HEAD = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: hand-over}
hardware: fabric
steps:
  - wait: {object: {apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: pooldra-chassis-0-pool}, spec: {devices: {$len: 4}}}}
    timeout: 1m
  - apply:
      - {apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu.nvidia.com}, spec: {selectors: [{cel: {expression: "device.driver == 'gpu.nvidia.com'"}}]}}
      - {apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: one}, spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}}
      - {apiVersion: resource.k8s.io/v1, kind: ResourceClaimTemplate, metadata: {name: three}, spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 3}}]}}}}
"""  # noqa: E501 - the objects of a scenario, one a line
NOTHING_LEFT = """
  - wait:
      - count: {kind: Pod, is: 0}
      - count: {kind: ResourceClaim, is: 0}
      - hosts: {free: 4}
      - {object: {apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: pooldra-chassis-0-pool}, spec: {devices: {$len: 4}}}}
    timeout: 10m
  - hold: {for: 60s, check: {hosts: {free: 4}}}
"""  # noqa: E501
SLOW = "- fault: {chassis: A, add: {kind: slow-operation, operation: attach, extra_s: 20, count: 1}}"
BEGUN = "- wait: {journal: {occurs: [{layer: chassis, event: attach-begun}]}}\n    timeout: 1m"
RUNS = "- wait: {pod: {name: first, phase: Running}}\n    timeout: 3m"
CASES = {
    "a device dies on its way": """
  - fault: {chassis: A, add: {kind: link-down, device: "000100", after_s: 5}}
  - fault: {host: host-2, add: {kind: layer-slow, arrow: nvml, delay_s: 30, device: "000100"}}
  - apply: [POD first one]
  - wait: {pod: {name: first, phase: Running}}
    timeout: 6m
  - delete: {kind: Pod, name: first}
  - fault: {clear: all}
""",
    "the node dies": f"""
  {SLOW}
  - apply: [POD first one]
  {BEGUN}
  - host: {{host: host-2, do: machine-power, 'on': false}}
  - sleep: 10m
  - host: {{host: host-2, do: machine-power, 'on': true}}
  - wait: {{node: {{host: host-2, ready: true}}}}
    timeout: 3m
  - wait: {{pod: {{name: first, phase: Running}}}}
    timeout: 10m
  - delete: {{kind: Pod, name: first}}
""",
    "the node dies with the device": """
  - apply: [POD first one]
  - wait: {pod: {name: first, phase: Running}}
    timeout: 3m
  - host: {host: host-2, do: machine-power, 'on': false}
  - sleep: 10m
  - host: {host: host-2, do: machine-power, 'on': true}
  - wait: {node: {host: host-2, ready: true}}
    timeout: 3m
  - delete: {kind: Pod, name: first}
    timeout: 10m
""",
    "the claim is deleted meanwhile": f"""
  {SLOW}
  - apply: [POD first one]
  {BEGUN}
  - delete: {{kind: Pod, name: first}}
  - wait: {{count: {{kind: ResourceClaim, is: 0}}}}
    timeout: 1m
  - wait: {{journal: {{occurs: [{{layer: chassis, event: attached}}]}}}}
    timeout: 1m
""",
    "the claim is deleted once the device is attached": """
  - apply: [POD first one]
  - wait: {journal: {occurs: [{layer: chassis, event: attached}]}}
    timeout: 1m
  - delete: {kind: Pod, name: first}
""",
    "two pods want the last device": """
  - apply: [POD many three]
  - wait: {pod: {name: many, phase: Running}}
    timeout: 3m
  - apply: [POD first one, POD second one]
  - wait: {count: {kind: Pod, matching: {metadata: {name: {$in: [first, second]}}, status: {phase: Running}}, is: 1}}
    timeout: 3m
  - delete: {kind: Pod, name: many}
  - wait: {count: {kind: Pod, matching: {metadata: {name: {$in: [first, second]}}, status: {phase: Running}}, is: 2}}
    timeout: 5m
  - delete: {kind: Pod, name: first}
  - delete: {kind: Pod, name: second}
""",
    "the attach is refused": """
  - fault: {chassis: A, add: {kind: half-applied-attach, count: 2}}
  - apply: [POD first one]
  - wait: {pod: {name: first, phase: Running}}
    timeout: 6m
  - delete: {kind: Pod, name: first}
""",
    "answers are lost": """
  - fault: {chassis: A, add: {kind: dropped-connection, operation: attach, when: after, count: 1}}
  - fault: {chassis: A, add: {kind: dropped-connection, operation: detach, when: after, count: 1}}
  - apply: [POD first one]
  - wait: {pod: {name: first, phase: Running}}
    timeout: 6m
  - delete: {kind: Pod, name: first}
""",
    "the binding takes too long": """
  - fault: {chassis: A, add: {kind: slow-operation, operation: attach, extra_s: 90, count: 1}}
  - apply: [POD first one]
  - wait: {pod: {name: first, phase: Running}}
    timeout: 10m
  - delete: {kind: Pod, name: first}
""",
}
"""What happens."""
TWO_SCHEDULERS = f"""
  {SLOW}
  - apply:
      - {{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {{name: stolen}}, spec: {{devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: gpu.nvidia.com}}}}]}}}}}}
      - POD first one
  WAIT
  - patch:
      apiVersion: resource.k8s.io/v1
      kind: ResourceClaim
      name: stolen
      subresource: status
      body:
        status:
          reservedFor: [{{resource: pods, name: another, uid: a-uid}}]
          allocation:
            allocationTimestamp: "STAMP"
            nodeSelector: {{nodeSelectorTerms: [{{matchFields: [{{key: metadata.name, operator: In, values: [host-2]}}]}}]}}
            devices: {{results: [{{request: gpu, driver: gpu.nvidia.com, pool: chassis-0, device: gpu-9b342b50-cd03-5f52-f5e9-8e307c1554d2}}]}}
  - wait: {{count: {{kind: ResourceClaim, matching: {{metadata: {{name: stolen}}, status: {{devices: {{$exact: [{{conditions: {{$contains: [{{reason: TakenByAnother, status: "True"}}]}}}}]}}}}}}, is: 1}}}}
    timeout: 10s
  - wait: {{pod: {{name: first, phase: Running}}}}
    timeout: 3m
  - delete: {{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, name: stolen}}
  - delete: {{kind: Pod, name: first}}
"""  # noqa: E501
"""The second scheduler gives a claim what another one has: the API server takes it."""


def pod(name: str, template: str, scheduler: str) -> str:
    """A pod with a claim of that template, on host-2; as YAML of one line."""
    spec = {
        "terminationGracePeriodSeconds": 2,
        "nodeSelector": {"kubernetes.io/hostname": "host-2"},
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
        "containers": [{"name": "main", "image": "mews/gpu-hold", "resources": {"claims": [{"name": "gpu"}]}}],
        **({"schedulerName": scheduler} if scheduler else {}),
    }
    value = {"kind": "Pod", "metadata": {"name": name}, "spec": spec}
    return yaml.safe_dump(value, default_flow_style=True, width=10_000).strip()


def played(hand_over: str, steps: str, **stack: object) -> Run:
    """The scenario of these steps in virtual time, in which ``POD NAME TEMPLATE [SCHEDULER]`` stands for a pod."""
    text = HEAD + steps + NOTHING_LEFT
    document = yaml.safe_load(re.sub(r"POD (\w+) (\w+)(?: ([\w-]+))?", lambda found: pod(*found.groups("")), text))
    document["stack"] = {
        "kubecomp": None,
        "kubernetes": "1.37",
        "pooldra": {"handOver": hand_over},
        "defaultScheduler": {"deviceBindingTimeoutS": 60},
        **stack,
    }
    document["finally"] = [{"fault": {"clear": "all"}}]
    scenario = parse_scenario(yaml.safe_dump(document, sort_keys=False), FABRIC / "hand-over.yaml")
    return Engine(RunOptions()).run(scenario)


@pytest.mark.parametrize("hand_over", HAND_OVERS)
@pytest.mark.parametrize("case", CASES)
def test_no_device_is_lost_doubled_or_stranded(hand_over: str, case: str) -> None:
    ended = played(hand_over, CASES[case])
    assert (ended.result.verdict, ended.result.reason, ended.result.violations) == ("passed", "", ()), (
        ended.result.reason
    )


LATER = pytest.param(BEGUN, "2999-01-01T00:00:00Z", id="while the first is attached")
BEFORE = pytest.param(RUNS, "2000-01-01T00:00:00Z", id="once the first runs, as if before it")


@pytest.mark.parametrize("hand_over", HAND_OVERS)
@pytest.mark.parametrize(("wait", "stamp"), [LATER, BEFORE])
def test_of_two_claims_with_one_device_the_second_fails_at_once(hand_over: str, wait: str, stamp: str) -> None:
    """That both have it is the wrong of two schedulers, which laws 29 and 92 name; one alone is prepared with it."""
    ended = played(hand_over, TWO_SCHEDULERS.replace("WAIT", wait).replace("STAMP", stamp))
    assert {each["invariant"] for each in ended.result.violations} <= {29, 92}, ended.result.reason
    assert not [line for line in ended.lines if (line.layer, line.event) == ("step", "failed")]
    prepared = [line.fields["claim"] for line in ended.lines if line.event == "claim-prepared"]
    assert len(prepared) == 1 and prepared[0].startswith("default/first-")
