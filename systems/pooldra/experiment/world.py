"""A pool under load as a scenario: 8 hosts, 64 GPUs behind four chassis, pods that come, run and go. Pure.

Lengths, sizes and arrivals hang on load and seed alone, so that every hand-over gets the same pods and the same faults.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

HOSTS, CHASSIS, SLOTS = 8, 4, 16
GPUS = CHASSIS * SLOTS
SIZES: Mapping[int, float] = {1: 0.3, 2: 0.25, 4: 0.25, 8: 0.2}
"""GPUs of a pod -> how often."""
MEAN_GPUS = sum(size * share for size, share in SIZES.items())
MEAN_S = 450.0
SHORTEST_S = 30.0
FILL_S = 150.0
"""Within which the pods come that are there at first; they are not counted."""
COUNTED = 12
"""Pods that come once the pool is filled."""
LOADS = (0.5, 0.7, 0.85, 0.95)
"""GPU seconds asked for in a second, over the GPUs that there are."""
POLL_S, POOL_POLL_S = 60, 15
"""How often a node's driver looks at its GPUs though NVML reports no change, and the pool's at the chassis."""
RETURNED_S = 600
"""Sixteen GPUs of a chassis go back one after the other, 7 s each, between others that come."""
HAND_OVERS = ("in-place", "move", "reallocate")
FAULTS = 4
FIRST, COUNTED_POD = "early", "pod"


class Arrival(Struct, frozen=True):
    """A pod: when it comes, how many GPUs it asks for, how long it runs, in seconds."""

    name: str
    at_s: float
    gpus: int
    runs_s: float


def arrivals(load: float, seed: int) -> list[Arrival]:
    """Return those that are there at first, so many that the load is on, then a Poisson stream."""
    rng = random.Random(f"attach-before-bind/{load}/{seed}")
    found: list[Arrival] = []
    gpus = 0
    while gpus < load * GPUS - MEAN_GPUS / 2:
        each = _pod(f"{FIRST}-{len(found)}", rng.uniform(0.0, FILL_S / 3), rng)
        found.append(each)
        gpus += each.gpus
    at_s = FILL_S
    for number in range(COUNTED):
        at_s += rng.expovariate(load * GPUS / (MEAN_GPUS * MEAN_S))
        found.append(_pod(f"{COUNTED_POD}-{number}", at_s, rng))
    return sorted(found, key=lambda pod: (pod.at_s, pod.name))


def _pod(name: str, at_s: float, rng: random.Random) -> Arrival:
    (gpus,) = rng.choices(list(SIZES), list(SIZES.values()))
    return Arrival(name, round(at_s, 3), gpus, max(SHORTEST_S, round(rng.expovariate(1 / MEAN_S), 3)))


def faults(until_s: float, seed: int) -> list[tuple[float, list[dict[str, Any]]]]:
    """(when, steps): errors of the chassis, connections that drop before or after the effect, GPUs that never train, a
    driver of the pool or of a node restarted."""
    rng = random.Random(f"attach-before-bind/faults/{seed}")
    return sorted(((rng.uniform(FILL_S, until_s), _fault(rng)) for _ in range(FAULTS)), key=lambda each: each[0])


def _fault(rng: random.Random) -> list[dict[str, Any]]:
    chassis = "ABCD"[rng.randrange(CHASSIS)]
    operation = rng.choice(("attach", "detach"))
    count = rng.randint(1, 3)
    kind = rng.randrange(5)
    if kind == 0:
        return [_of(chassis, {"kind": "http-error", "operation": operation, "when": "before", "count": count})]
    if kind in (1, 2):
        when = "after" if kind == 1 else "before"
        add = {"kind": "dropped-connection", "operation": operation, "when": when, "count": count}
        return [_of(chassis, add)]
    if kind == 3:
        return [_of(chassis, {"kind": "never-trains", "count": 1})]
    who = "pool-driver" if rng.random() < 0.5 else f"pool-node-driver/host-{rng.randint(1, HOSTS)}"
    return [{"restart": who}]


def _of(chassis: str, add: dict[str, Any]) -> dict[str, Any]:
    return {"fault": {"chassis": chassis, "add": add}}


def scenario(hand_over: str, load: float, *, with_faults: bool, seed: int) -> dict[str, Any]:
    """Return the scenario as its file would have it."""
    pods = arrivals(load, seed)
    timed: list[tuple[float, list[dict[str, Any]]]] = [(pod.at_s, [{"apply": _body(pod)}]) for pod in pods]
    if with_faults:
        timed += faults(pods[-1].at_s, seed)
    pool = {"handOver": hand_over, "pollS": POLL_S, "poolPollS": POOL_POLL_S}
    return {
        "apiVersion": "mews/v1",
        "kind": "Scenario",
        "metadata": {"name": f"attach-before-bind-{hand_over}"},
        "hardware": hardware(),
        "timeout": "24h",
        "bounds": {"returned_s": RETURNED_S},
        "stack": {"kubecomp": None, "kubernetes": "1.37", "pooldra": pool},
        "steps": [*_first_steps(), *_in_time([*timed, _quiet(pods)]), *_last_steps(len(pods))],
        "finally": [{"fault": {"clear": "all"}}],
    }


def _first_steps() -> list[dict[str, Any]]:
    group = "resource.k8s.io/v1"
    selector = {"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}
    made: list[dict[str, Any]] = [
        {"apiVersion": group, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}
    ]
    for size in SIZES:
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": size}}
        spec = {"spec": {"devices": {"requests": [request]}}}
        kind = "ResourceClaimTemplate"
        made.append({"apiVersion": group, "kind": kind, "metadata": {"name": f"gpus-{size}"}, "spec": spec})
    return [{"sleep": "20s"}, {"apply": made}]


def _quiet(pods: Sequence[Arrival]) -> tuple[float, list[dict[str, Any]]]:
    """Return when there is something to look at: before then the last pod cannot have ended."""
    return max(pod.at_s + pod.runs_s for pod in pods), []


def _in_time(timed: Sequence[tuple[float, list[dict[str, Any]]]]) -> list[dict[str, Any]]:
    steps: list[dict[str, Any]] = []
    now_s = 0.0
    for at_s, what in sorted(timed, key=lambda each: each[0]):
        if at_s > now_s:
            steps.append({"sleep": f"{at_s - now_s:.3f}s"})
            now_s = at_s
        steps += what
    return steps


def _last_steps(pods: int) -> list[dict[str, Any]]:
    ended = {"count": {"kind": "Pod", "matching": {"status": {"phase": "Succeeded"}}, "is": pods}}
    return [
        {"fault": {"clear": "all"}},
        {"wait": ended, "timeout": "12h"},
        {"wait": {"hosts": {"free": GPUS}}, "timeout": "10m"},
    ]


def _body(pod: Arrival) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"name": pod.name, "annotations": {"mews.dev/duration-s": str(pod.runs_s)}},
        "spec": {
            "restartPolicy": "Never",
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": f"gpus-{pod.gpus}"}],
            "containers": [{"name": "main", "image": "mews/train", "resources": {"claims": [{"name": "gpu"}]}}],
        },
    }


def hardware() -> dict[str, Any]:
    """Two hosts are cabled to each chassis, so that a claim has GPUs of one; none is attached at first."""
    hosts = [f"host-{number}" for number in range(1, HOSTS + 1)]
    each = HOSTS // CHASSIS
    boxes = [_chassis(index, hosts[each * index : each * (index + 1)]) for index in range(CHASSIS)]
    return {
        "apiVersion": "mews/v1",
        "kind": "Hardware",
        "metadata": {"name": "attach-before-bind"},
        "profile": "falcon-4005",
        "hosts": [{"name": host, "cpus": 64, "memory_mib": 524288} for host in hosts],
        "chassis": boxes,
    }


def _chassis(index: int, hosts: Sequence[str]) -> dict[str, Any]:
    rng = random.Random(f"attach-before-bind/chassis/{index}")
    devices = []
    for slot in range(1, SLOTS + 1):
        digits = f"{rng.getrandbits(128):032x}"
        uuid = "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        name = f"{slot:04x}00"
        serial = f"{1_320_000_000_000 + 1000 * index + slot}"
        devices.append({"id": name, "uuid": uuid, "kind": "GPU", "model": "V100", "serial": serial, "port": None})
    ports = {str(number): host for number, host in enumerate(hosts, start=1)}
    return {"name": "ABCD"[index], "index": index, "slots": SLOTS, "ports": ports, "devices": devices}
