"""Sequences of chance with kubelets, koordlet and hooks: what a pod's annotation says is what its container sees, and
what the Device object says."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario
from mews.systems.koordinator.allocations import parse_allocations
from mews.systems.koordinator.names import ALLOCATED, DEVICES, VISIBLE

ASKS: tuple[dict[str, str], ...] = (
    {"koordinator.sh/gpu": "30"},
    {"koordinator.sh/gpu": "70"},
    {"koordinator.sh/gpu": "100"},
    {"koordinator.sh/gpu": "200"},
    {"koordinator.sh/gpu-memory": "3Gi"},
    {"koordinator.sh/gpu-core": "20", "koordinator.sh/gpu-memory-ratio": "60"},
)
RESTARTS = ("koord-scheduler", "koordlet/four", "kubelet/four")
DEVICE = {"kind": DEVICES.kind, "apiVersion": DEVICES.api_version}
THERE = {"metadata": {"name": "four"}, **DEVICE}


def steps_of(seed: int) -> list[dict[str, Any]]:
    """Pods come and go; parts of the system start anew; the Device is deleted."""
    rng, made, steps = random.Random(seed), list[str](), list[dict[str, Any]]()
    for number in range(rng.randint(8, 16)):
        what = rng.choice(("pod", "pod", "pod", "remove", "restart", "restart", "device", "wait"))
        if what == "remove" and made:
            steps.append({"delete": {"kind": "Pod", "name": made.pop(rng.randrange(len(made)))}})
        elif what == "restart":
            steps.append({"restart": rng.choice(RESTARTS)})
        elif what == "device":
            steps += [{"wait": [{"object": THERE}], "timeout": "1m"}, {"delete": {**DEVICE, "name": "four"}}]
        elif what == "wait":
            steps.append({"sleep": rng.choice(("1s", "7s", "20s"))})
        else:
            made.append(f"p{number}")
            steps.append({"apply": _pod(made[-1], rng.choice(ASKS))})
    # Whoever waits for room is asked no more: the rest is settled.
    return [*steps, {"sleep": "45s"}]


def _pod(name: str, limits: dict[str, str]) -> dict[str, Any]:
    container = {"name": "main", "image": "mews/gpu-hold", "resources": {"limits": limits}}
    spec = {"schedulerName": "koord-scheduler", "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"kind": "Pod", "metadata": {"name": name}, "spec": spec}


def run(steps: list[dict[str, Any]], folder: Path) -> Any:
    options = {"nodes": ["four"], "hookFailurePolicy": "Fail", "reportS": 5}
    document = {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": "sequence"},
        "hardware": "seed-004",
        "stack": {"kubecomp": None, "koordinator": options},
        "steps": [{"wait": [{"object": THERE}], "timeout": "1m"}, *steps],
    }
    path = folder / "sequence.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return Engine(RunOptions()).run(load_scenario(path))


def happens_whole(seed: int, folder: Path) -> int:
    """Raises AssertionError; the number of containers that were looked at."""
    steps = steps_of(seed)
    first = run(steps, folder)
    assert first.result.verdict == "passed", f"seed {seed}: {first.result.reason} {first.result.violations}"
    given: dict[str, str] = {}
    names: dict[str, str] = {}
    looked = 0
    for line in first.lines:
        if line.event == "annotations" and ALLOCATED in (line.fields.get("annotations") or {}):
            given[line.fields["uid"]] = line.fields["annotations"][ALLOCATED]
        elif line.event == "container-started":
            minors = sorted(each.minor for each in parse_allocations(given[line.fields["uid"]]))
            seen = line.fields["env"][VISIBLE]
            assert seen == ",".join(map(str, minors)), f"seed {seed}: {line.fields['pod']} sees {seen}, has {minors}"
            names[line.fields["uid"]] = line.fields["pod"].partition("/")[2]
            looked += 1
    gone = {step["delete"]["name"] for step in steps if "delete" in step}
    entries = [
        {"name": name, "uuid": uid, "minors": {"$exact": sorted(a.minor for a in parse_allocations(given[uid]))}}
        for uid, name in sorted(names.items(), key=lambda pair: pair[1])
        if name not in gone
    ]
    if entries:
        status = {"allocations": {"$contains": [{"type": "gpu", "entries": {"$unordered": entries}}]}}
        shown = {"wait": [{"object": {**DEVICE, "metadata": {"name": "four"}, "status": status}}], "timeout": "10s"}
        second = run([*steps, shown], folder)
        assert second.result.verdict == "passed", f"seed {seed}: {second.result.reason} {json.dumps(entries)}"
    return looked


@pytest.mark.parametrize("seed", range(3))
def test_annotation_environment_and_device_object_agree_whatever_happens(seed: int, tmp_path: Path) -> None:
    assert happens_whole(seed, tmp_path) > 0
