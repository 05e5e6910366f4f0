"""Memory under churn: a Deployment created and deleted again and again on ``mews up``, for some minutes.

``python -m benchmarks.soak [MINUTES]`` prints the resident memory at the start, every half minute and at the end, on
standard error, and the growth of the second half as a figure: history, events and watches are bounded, so that there is
none but for what Python's allocator keeps.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import tempfile
import time
from pathlib import Path
from statistics import linear_regression
from typing import Any

import yaml

from benchmarks.common import await_condition, process, progress, report
from mews.kube.api.errors import ApiError
from mews.kube.api.resources import DEPLOYMENTS, PODS
from mews.kube.client.http import HttpKube
from mews.kube.client.port import DeleteOptions

_MINUTES = 4.0
_REPLICAS = 3
_SAY_S = 30.0


def deployment(name: str) -> dict[str, Any]:
    """Three pods that are simulated for ever."""
    labels = {"app": name}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10"}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    body = {"replicas": _REPLICAS, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": body}


def resident_mib(pid: int) -> float:
    """Return what a process holds now."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def churn(kube: HttpKube, pid: int, lasts_s: float) -> tuple[list[float], int]:
    """Create and delete until the time is over; the memory over time, and how many lived."""
    began = said = time.monotonic()
    sizes, number = [resident_mib(pid)], 0
    progress(f"soak: {sizes[0]:.0f} MiB at the start")
    while time.monotonic() - began < lasts_s:
        number += 1
        name = f"soak-{number}"
        await kube.create(DEPLOYMENTS, deployment(name), namespace="default")
        for _ in range(100):
            pods = await kube.list(PODS, namespace="default", label_selector=f"app={name}")
            if len(pods.items) >= _REPLICAS:
                break
            await asyncio.sleep(0.05)
        await kube.delete(DEPLOYMENTS, name, namespace="default", options=DeleteOptions(propagation="Background"))
        try:
            await kube.delete_collection(
                PODS, namespace="default", label_selector=f"app={name}", options=DeleteOptions(grace_period_s=0)
            )
        except ApiError as error:
            progress(f"soak: {error}")
        if time.monotonic() - said >= _SAY_S:
            said = time.monotonic()
            sizes.append(resident_mib(pid))
            progress(f"soak: {sizes[-1]:.0f} MiB after {said - began:.0f} s, {number} Deployments")
    sizes.append(resident_mib(pid))
    progress(f"soak: {sizes[-1]:.0f} MiB at the end, {number} Deployments")
    return sizes, number


def slope_mib_per_min(sizes: list[float]) -> float:
    """Return the slope of the line that fits sizes taken every half minute best; 0 for a single one."""
    return linear_regression([_SAY_S / 60 * n for n in range(len(sizes))], sizes).slope if len(sizes) > 1 else 0.0


async def _soak(ready: dict[str, Any], token: str, lasts_s: float) -> tuple[list[float], int]:
    kube = HttpKube(ready["api"], token=token, ssl=ssl.create_default_context(cafile=ready["ca"]))
    try:
        return await churn(kube, int(ready["pid"]), lasts_s)
    finally:
        await kube.close()


def main(minutes: float = _MINUTES) -> None:
    """Measure it."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "mews.harness.cli", "up", "--stack", "none", "--name", "soak", "--dir", folder]
        with process(*argv):
            file = Path(folder) / "ready.json"
            await_condition(file.exists, "mews up", 600)
            ready = json.loads(file.read_text("utf-8"))
            config = yaml.safe_load(Path(ready["kubeconfig"]).read_text("utf-8"))
            sizes, number = asyncio.run(_soak(ready, config["users"][0]["user"]["token"], 60 * minutes))
    second = sizes[len(sizes) // 2 :]
    half = sizes[len(sizes) // 2]
    report("soak: memory at the end", sizes[-1], "MiB", baseline=sizes[0], baseline_name="at the start")
    report("soak: growth in the second half", sizes[-1] - half, "MiB")
    report("soak: slope of the second half", slope_mib_per_min(second), "MiB/min")
    report("soak: Deployments", number, "created and deleted")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else _MINUTES)
