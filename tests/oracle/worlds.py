"""The clusters and pods of random worlds: one for each system, and one where all four work side by side."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

SYSTEMS = ("kubecomp", "gpushare", "koordinator", "kod2", "mixed")
"""What ``--system`` of the sweeps takes; ``mixed`` has pods of all four systems."""

_SHARING = {"id": "0", "uuid": "GPU-shared-0", "model": "P100-16GB", "memory_mib": 16276}
_FINE = {"id": "0", "uuid": "GPU-fine-0", "model": "V100-16GB", "memory_mib": 8192}
_POOLED = [
    {"id": f"000{number}00", "uuid": f"GPU-{number}", "model": "V100-16GB", "port": port}
    for number, port in ((1, "1"), (2, "2"), (3, "2"), (4, "3"))
]


def cluster(system: str, rng: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Hardware and stack of a world of that system: two nodes of a pool, one whose GPUs are shared, one whose GPUs are
    given out in parts, and one of the pool whose GPUs are lent to GPU Share in some worlds."""
    second = [{**_SHARING, "id": "1", "uuid": "GPU-shared-1"}] if rng.random() < 0.5 else []
    finer = [{**_FINE, "id": "1", "uuid": "GPU-fine-1"}] if rng.random() < 0.5 else []
    hardware = {
        "metadata": {"name": "side-by-side"},
        "hosts": [
            {"name": "pool-1", "cpus": 16},
            {"name": "pool-2", "cpus": 16},
            {"name": "lent", "cpus": 16},
            {"name": "sharing", "cpus": 16, "devices": [_SHARING, *second]},
            {"name": "fine", "cpus": 16, "devices": [_FINE, *finer]},
        ],
        "chassis": [
            {
                "name": "A",
                "index": 0,
                "slots": 6,
                "ports": {"1": "pool-1", "2": "pool-2", "3": "lent"},
                "devices": _POOLED,
            }
        ],
    }
    return hardware, _stack(system, rng)


def _stack(system: str, rng: random.Random) -> dict[str, Any]:
    shares = {
        "unit": rng.choice(("GiB", "256MiB")),
        "nodes": rng.choice((["sharing"], ["sharing", "lent"])),
        "onShared": rng.choice(("refuse", "evict")),
        "replicas": rng.choice((1, 1, 2)),
    }
    parts = {"nodes": ["fine"], "gangWaitS": rng.choice((20, 60)), "webhook": rng.random() < 0.3}
    alone = {"gpushare": shares, "koordinator": parts, "kod2": {}}
    if system == "mixed":
        return alone
    return {system: alone[system], **({} if rng.random() < 0.5 and system != "gpushare" else {"kubecomp": None})}


def workload(system: str, name: str, rng: random.Random) -> Mapping[str, Any]:
    """An object of a user's, of that system or (``mixed``) of any of them."""
    kinds = {"kubecomp": _pooled, "gpushare": _sharing, "koordinator": _partial, "kod2": _job}
    kind = rng.choice(sorted(kinds)) if system == "mixed" else system
    return kinds[kind](name, rng)


def _pod(name: str, limits: Mapping[str, str], rng: random.Random, *, scheduler: str = "") -> dict[str, Any]:
    duration_s = rng.choice((5, 20, 90, 100000))
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"mews.dev/duration-s": str(duration_s)}},
        "spec": {
            **({"schedulerName": scheduler} if scheduler else {}),
            "restartPolicy": rng.choice(("Never", "Never", "OnFailure")),
            "terminationGracePeriodSeconds": rng.choice((1, 1, 10)),
            "containers": [{"name": "main", "image": "mews/train", "resources": {"limits": dict(limits)}}],
        },
    }


def _pooled(name: str, rng: random.Random) -> dict[str, Any]:
    return _pod(name, {"falcon.com/gpu": str(rng.choice((1, 1, 2, 3)))}, rng, scheduler="kubecomp-scheduler")


def _sharing(name: str, rng: random.Random) -> dict[str, Any]:
    return _pod(name, {"aliyun.com/gpu-mem": str(rng.choice((3, 5, 7, 8, 15)))}, rng)


def _partial(name: str, rng: random.Random) -> dict[str, Any]:
    limits = rng.choice(
        (
            {"koordinator.sh/gpu": "50"},
            {"koordinator.sh/gpu": "25"},
            {"koordinator.sh/gpu": "100"},
            {"nvidia.com/gpu": "1"},
            {"koordinator.sh/gpu-core": "30", "koordinator.sh/gpu-memory-ratio": "60"},
            {"koordinator.sh/gpu-memory": "2Gi"},
        )
    )
    return _pod(name, limits, rng, scheduler="koord-scheduler")


def _job(name: str, rng: random.Random) -> dict[str, Any]:
    steps, least = str(rng.choice((100, 1000, 100000))), rng.randint(1, 3)
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {
            "elasticPolicy": {"minReplicas": least, "maxReplicas": least + rng.randint(0, 4)},
            "tfReplicaSpecs": {
                "PS": {"replicas": 1, "restartPolicy": "OnFailure", "template": _task(steps, "1")},
                "Worker": {
                    "replicas": least,
                    "restartPolicy": "OnFailure",
                    "template": _task(steps, rng.choice("246")),
                },
            },
        },
    }


def _task(steps: str, cpu: str) -> dict[str, Any]:
    requests = {"cpu": cpu, "memory": "1Gi"}
    main = {"name": "tensorflow", "image": "mews/tf-trainer", "resources": {"requests": requests}}
    return {
        "metadata": {"annotations": {"mews.dev/train-steps": steps}},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [main]},
    }


def scenario_text(system: str, rng: random.Random, length_s: float) -> str:
    """The scenario of a world, which does nothing by itself; YAML, of which JSON is a part."""
    hardware, stack = cluster(system, rng)
    return json.dumps(
        {
            "apiVersion": "mews/v1",
            "kind": "Scenario",
            "metadata": {"name": f"schedule-{system}"},
            "hardware": hardware,
            "stack": stack,
            "steps": [{"sleep": length_s}],
        }
    )
