"""Names in a scenario that can stand for nothing are refused when it is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mews.harness.scenario.errors import ScenarioError
from mews.harness.scenario.loader import load_scenario

HEAD = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: one}
hardware: unattached
"""
HOSTS = "must be one of host-1, host-2"
POD = "{kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: %s, resources: {limits: {cpu: %s}}}]}}"
CRD = """\
objects:
  - kind: CustomResourceDefinition
    metadata: {name: unicorns.example.com}
    spec:
      group: example.com
      scope: Namespaced
      names: {plural: unicorns, singular: unicorn, kind: Unicorn, listKind: UnicornList}
      versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""

WRONG = [
    (
        "kill: schedular",
        "steps.0.kill: 'schedular': must be one of scheduler, ",
    ),
    ("kill: operator", "steps.0.kill: 'operator': must be one of"),
    ("start: kubelet/host-3", "steps.0.start: 'kubelet/host-3': must be one of kubelet/host-1"),
    ("restart: device-manager", "steps.0.restart: 'device-manager': must be one of"),
    ("restart: chassis/B", "steps.0.restart: 'chassis/B': must be one of"),
    ("kill: {component: reconfig, at: {layer: chassis}}", "steps.0.kill.component: 'reconfig': must be one of"),
    ("kill: {component: scheduler, at: {layer: chasis}}", "steps.0.kill.at.layer: 'chasis': must be one of chassis, "),
    ("host: {host: host-9, do: rescan}", f"steps.0.host.host: 'host-9': {HOSTS}"),
    ('host: {host: host-1, do: drain, device: "9"}', "steps.0.host.device: '9': must be one of 0-000100, 000100"),
    ("fault: {clear: B}", "steps.0.fault.clear: 'B': must be one of"),
    ("fault: {chassis: B, add: {kind: timeout}}", "steps.0.fault.chassis: 'B': must be one of *, A"),
    ("fault: {host: host-3, add: {kind: driver-fails}}", "steps.0.fault.host: 'host-3': must be one of host-1"),
    (
        'fault: {add: {kind: never-trains, device: "7"}}',
        "fault never-trains: device '7': must be one of 000700, ",
    ),
    (
        'fault: {host: host-1, add: {kind: xid, device: "7", xid: 48}}',
        "fault xid: device '7': must be one of 000700, ",
    ),
    (
        'fault: {chassis: A, add: {kind: concurrent-editor, edit: "000100", port: "9"}}',
        "fault concurrent-editor: port '9': must be one of 1, 2, 3",
    ),
    (
        'chassis: {edit: {chassis: B, device: "000100", port: null}}',
        "steps.0.chassis.edit.chassis: 'B': must be one of A",
    ),
    (
        'chassis: {edit: {chassis: A, device: "1", port: null}}',
        "steps.0.chassis.edit.device: '1': must be one of 000100, ",
    ),
    (
        'chassis: {edit: {chassis: A, device: "000100", port: "9"}}',
        "steps.0.chassis.edit.port: '9': must be one of 1, 2",
    ),
    (
        'chassis: {edit: {chassis: A, device: "000100", port: "3"}}',
        "steps.0.chassis.edit.port: '3': must be one of 1, 2",
    ),
    (
        'chassis: {edit: {chassis: A, device: "000100", port: 3}}',
        "steps.0.chassis.edit.port: 3: must be text",
    ),
    ('chassis: {edit: {chassis: A, device: "000100", host: h}}', f"steps.0.chassis.edit.host: 'h': {HOSTS}"),
    ("apply: {kind: Pood, metadata: {name: a}}", "steps.0.apply.kind: 'Pood': neither built in nor defined by the"),
    (
        "apply: {kind: Pod, apiVersion: v2, metadata: {name: a}}",
        "steps.0.apply.kind: 'Pod': apiVersion must be one of v1",
    ),
    ("create: [{kind: TFJob, metadata: {name: a}}]", "steps.0.create.0.kind: 'TFJob': neither built in nor defined"),
    ("delete: {kind: Deploy, name: a}", "steps.0.delete.kind: 'Deploy': neither built in nor defined"),
    ("patch: {kind: pod, name: a, body: {}}", "steps.0.patch.kind: 'pod': neither built in nor defined"),
    (
        "delete: {kind: HorizontalPodAutoscaler, name: a}",
        "apiVersion must be one of autoscaling/v1, autoscaling/v2 (apiVersion not given)",
    ),
    (
        f"apply: {POD % ('mews/gpu-chek', 1)}",
        "containers.0.image: 'mews/gpu-chek': Mews has no such image; it has mews/",
    ),
    (f"apply: {POD % ('Busy Box', 1)}", "containers.0.image: 'Busy Box': must be an image, such as busybox:1.36"),
    (f"apply: {POD % ('busybox', '4x')}", "resources.limits.cpu: '4x': must be a quantity from 0 on, such as 2, 500m"),
    (f"apply: {POD % ('busybox', -1)}", "resources.limits.cpu: -1: must be a quantity from 0 on"),
    ("apply: {file: pods.yaml}", "steps.0.apply.file: 'pods.yaml': no such file"),
    ("wait: {pod: {name: a, node: host-5}}", f"steps.0.wait.pod.node: 'host-5': {HOSTS}"),
    ("assert: [{moves: 0}, {node: {host: h}}]", f"steps.0.assert.1.node.host: 'h': {HOSTS}"),
    ("wait: {node: {host: host-1, allocatable: {cpu: 4x}}}", "steps.0.wait.node.allocatable.cpu: '4x': must be a"),
    ("wait: {hosts: {host-4: 1}}", "steps.0.wait.hosts.host-4: 'host-4': must be one of host-1, host-2, free"),
    ("wait: {host: {host-4: {}}}", f"steps.0.wait.host.host-4: 'host-4': {HOSTS}"),
    (
        "wait: {host: {host-1: {devices: {1-000100: {}}}}}",
        "steps.0.wait.host.host-1.devices.1-000100: '1-000100': must be one of 0-000100",
    ),
    ("wait: {table: {B: {}}}", "steps.0.wait.table.B: 'B': must be one of A"),
    ('wait: {table: {A: {"9": {}}}}', "steps.0.wait.table.A.9: '9': must be one of 000100"),
    ('wait: {table: {A: {"000100": {host: h}}}}', f"steps.0.wait.table.A.000100.host: 'h': {HOSTS}"),
    ('wait: {table: {A: {"000100": {port: "7"}}}}', "steps.0.wait.table.A.000100.port: '7': must be one of 1, 2, 3"),
    ("wait: {gpus: {pod: a, count: 1, host: h}}", f"steps.0.wait.gpus.host: 'h': {HOSTS}"),
    (
        'wait: {gpus: {pod: a, count: 1, devices: {$exact: ["000100"]}}}',
        "steps.0.wait.gpus.devices.$exact.0: '000100': must be one of 0-000100",
    ),
    ("wait: {object: {kind: Nod, metadata: {name: a}}}", "steps.0.wait.object.kind: 'Nod': neither built in nor"),
    ("wait: {absent: {kind: Podd, name: a}}", "steps.0.wait.absent.kind: 'Podd': neither built in nor defined"),
    ("wait: {count: {kind: Podd, is: 1}}", "steps.0.wait.count.kind: 'Podd': neither built in nor defined"),
    ("wait: {journal: {occurs: [{layer: hots}]}}", "steps.0.wait.journal.occurs.0.layer: 'hots': must be one of"),
    ("wait: {journal: {since: then}}", "steps.0.wait.journal.since: 'then': no step up to here has that name"),
    ("hold: {for: 1s, check: {hosts: {h: 1}}}", "steps.0.hold.check.hosts.h: 'h': must be one of host-1, host-2, free"),
]
"""A step, and the complaint behind the file and its line."""

WRONG_WORKLOADS = [
    ("jobs: [{job: a, arrival: 0, cpus: many}]", "workload.jobs.0.cpus: 'many': must be a quantity from 0 on"),
    (
        "types: {t: {memory: 1GiB}}, jobs: [{job: a, arrival: 0}]",
        "workload.types.t.memory: '1GiB': must be a quantity from 0 on",
    ),
    ("types: {t: {}}, jobs: [{job: a, arrival: 0, type: u}]", "workload.jobs.0.type: 'u': must be one of t"),
    (
        "jobs: [{job: a, arrival: 0}], pod: {image: mews/trian}",
        "workload.pod.image: 'mews/trian': Mews has no such image",
    ),
]


def _refusal(folder: Path, text: str) -> str:
    path = folder / "one.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as raised:
        load_scenario(path)
    return str(raised.value)


@pytest.mark.parametrize(("step", "complaint"), WRONG, ids=[step[:60] for step, _ in WRONG])
def test_a_step_that_names_what_is_not_there_is_refused_in_one_line_with_its_place(tmp_path, step, complaint):
    message = _refusal(tmp_path, f"{HEAD}steps:\n  - {step}\n")
    assert message.startswith(f"{tmp_path / 'one.yaml'}:6: steps.0.")
    assert complaint in message
    assert "\n" not in message


@pytest.mark.parametrize(("workload", "complaint"), WRONG_WORKLOADS)
def test_a_workload_that_names_what_is_not_there_is_refused_likewise(tmp_path, workload, complaint):
    assert _refusal(tmp_path, f"{HEAD}workload: {{{workload}}}\n").startswith(f"{tmp_path / 'one.yaml'}:5: {complaint}")


def test_hardware_in_the_scenario_is_told_by_the_scenarios_own_lines(tmp_path):
    inline = "hardware:\n  metadata: {name: x}\n  hosts: [{name: h}]\n  chassis:\n  - name: A\n    ports: {1: i}\n"
    message = _refusal(tmp_path, HEAD.replace("hardware: unattached\n", inline))
    assert message == f"{tmp_path / 'one.yaml'}:9: hardware.chassis[0].ports.1: 'i': must be null or one of the hosts h"


def test_an_override_that_names_what_is_not_there_is_named_as_such(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(f"{HEAD}steps:\n  - kill: scheduler\n")
    with pytest.raises(ScenarioError, match=r"^--set steps\.0\.kill=nobody: steps\.0\.kill: 'nobody': must be one of"):
        load_scenario(path, ["steps.0.kill=nobody"])


@pytest.mark.parametrize(
    "text",
    [
        f"{CRD}steps:\n  - apply: {{kind: Unicorn, metadata: {{name: u}}}}\n",
        "stack: {kod2: {}}\nsteps:\n  - apply: {kind: TFJob, metadata: {name: t}}\n  - kill: operator\n",
        "requires: {cluster: [kubeconfig]}\nsteps:\n  - apply: {kind: Unicorn, metadata: {name: u}}\n",
        "stack: {replace: {scheduler: {process: [x]}}}\nsteps:\n  - apply: {kind: Unicorn, metadata: {name: u}}\n",
        "steps:\n  - {name: begin, sleep: 1}\n  - wait: {journal: {since: begin}}\n",
        "steps:\n  - wait: {pod: {name: a, node: {$not: host-2}}}\n",
        "steps:\n  - wait: {table: {A: {$count: {of: {host: host-1}, is: 2}}}}\n",
        f"steps:\n  - apply: {POD % ('registry.example.com:5000/team/app:2', '500m')}\n",
    ],
)
def test_what_is_there_or_only_a_cluster_can_tell_is_left_alone(tmp_path, text):
    path = tmp_path / "one.yaml"
    path.write_text(HEAD + text)
    load_scenario(path)


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_misspelt_component_is_bad_input_before_anything_starts(tmp_path, command):
    path = tmp_path / "one.yaml"
    path.write_text(f"{HEAD}steps:\n  - kill: schedular\n")
    argv = [sys.executable, "-m", "mews.harness.cli", command, str(path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"{path}:6: steps.0.kill: 'schedular': must be one of scheduler, ")
    assert done.stderr.count("\n") == 1
