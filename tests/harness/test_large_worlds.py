"""What a large world costs, counted and not timed: listings parsed, hosts' files read, hosts judged."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mews.emulator.host.tree import HostTree
from mews.harness.engine import Engine
from mews.harness.invariants import visible
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario
from mews.kube.chassis import h3api
from mews.kube.chassis.parsed import ParsedBodies

GPUS = 8
SCENARIO = """\
apiVersion: mews/v1
kind: Scenario
metadata: {name: large}
hardware: hardware.json
bounds: {scheduled_s: 120}
steps:
  - wait: {settled: {}}
    timeout: 2m
  - apply:
      kind: Pod
      metadata: {name: trainer}
      spec:
        schedulerName: kubecomp-scheduler
        restartPolicy: Never
        terminationGracePeriodSeconds: 1
        containers:
          - {name: main, image: mews/gpu-hold, resources: {limits: {falcon.com/gpu: "ASKED"}}}
  - wait: {gpus: {pod: trainer, count: ASKED}}
    timeout: 3m
  - assert: {moves: 1}
"""


def pool(hosts: int, chassis: int, *, apart: bool, slots: int) -> dict[str, Any]:
    """Chassis for four hosts each, a pool each (``apart``), or all hosts cabled to each chassis of one pool."""
    names = [f"host-{number}" for number in range(1, hosts + 1)]
    boxes = []
    for number in range(chassis):
        cabled = names[4 * number : 4 * number + 4] if apart else names
        devices = [
            {
                "id": f"{slot:04X}",
                "uuid": f"GPU-{number:08x}-0000-4000-8000-{slot:012x}",
                "port": str((slot + number * slots) % len(cabled) + 1),
            }
            for slot in range(slots)
        ]
        place = {"name": f"C{number}", "index": number, "pool": f"pool-{number}" if apart else "pool-0", "slots": slots}
        ports = {str(port): host for port, host in enumerate(cabled, 1)}
        boxes.append({**place, "ports": ports, "devices": devices})
    document = {"apiVersion": "mews/v1", "kind": "Hardware", "metadata": {"name": "large"}, "profile": "falcon-4005"}
    return {**document, "hosts": [{"name": name, "cpus": 64} for name in names], "chassis": boxes}


def run(folder: Path, hardware: dict[str, Any], asked: int) -> Any:
    """One pod that asks for a GPU more than a host has, to its end."""
    (folder / "hardware.json").write_text(json.dumps(hardware))
    (folder / "scenario.yaml").write_text(SCENARIO.replace("ASKED", str(asked)))
    return Engine(RunOptions()).run(load_scenario(folder / "scenario.yaml"), 1)


def counting(monkeypatch: pytest.MonkeyPatch, counts: Counter[str]) -> None:
    """Count what the world does from now on."""
    parsed, read, judged = h3api._parsed, HostTree.read, visible._wrong_on

    def parse(body: bytes) -> Any:
        counts["listings"] += 1
        return parsed(body)

    def read_file(self: HostTree, path: str) -> bytes:
        counts["files"] += 1
        return read(self, path)

    def judge(host: str, state: Any) -> Any:
        counts["judged"] += 1
        return judged(host, state)

    monkeypatch.setattr(h3api, "_listings", ParsedBodies(parse))
    monkeypatch.setattr(HostTree, "read", read_file)
    monkeypatch.setattr(visible, "_wrong_on", judge)


def test_a_pod_on_a_hundred_hosts_costs_what_changes_and_not_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts: Counter[str] = Counter()
    counting(monkeypatch, counts)
    made = run(tmp_path, pool(100, 25, apart=True, slots=32), GPUS + 1)
    assert made.result.verdict == "passed", made.result.reason
    # Each chassis' own listing, and what one of them shows after a detach and after an attach
    assert counts["listings"] == 25 + 2
    # Ten seconds of polls would be four files a GPU each second; they are read once, and again where a GPU moves
    assert counts["files"] < 12 * 100 * GPUS
    # A few lines of each host and node
    assert counts["judged"] < 20 * 100


def test_hosts_cabled_to_forty_chassis_of_32_slots_work(tmp_path: Path) -> None:
    """More slots than a thousand numbers a chassis leave room for; ten GPUs a host, the rest is free."""
    hardware = pool(4, 40, apart=False, slots=32)
    for box in hardware["chassis"]:
        for device in box["devices"][1:]:
            del device["port"]
        box["devices"][0]["port"] = str(box["index"] % 4 + 1)
    made = run(tmp_path, hardware, 40 // 4 + 1)
    assert made.result.verdict == "passed", made.result.reason
