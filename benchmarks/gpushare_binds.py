"""GPU Share: pods bound per second by the unmodified kube-scheduler on the real API server, with and without the
extender in one run; the extender is a process of its own, asked under TLS."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bind_rate import bound_per_s
from benchmarks.common import progress, report
from mews.certificates import Certificates, make_certificates
from mews.harness.clusters.control_plane.kubernetes import KubernetesControlPlane
from mews.harness.clusters.control_plane.servers import Servers
from mews.harness.clusters.programs.finding import SCHEDULER, find
from mews.harness.errors import RequirementError
from mews.harness.manifests.kube_scheduler import configuration, extender_place
from mews.harness.options import check_available
from mews.harness.package import copy_to
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.port import KubeApi
from mews.systems.gpushare import names
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.policy import SharedGpu
from mews.systems.gpushare.records import gpus_text
from mews.systems.gpushare.system import extender_config

NODES_N, GPUS, PODS_N = 100, 8, 500
SIZE = 80
DEADLINE_S = 300.0
_UNTHROTTLED = {"qps": 5000, "burst": 5000}
_LOOPBACK = "127.0.0.1"


def binds() -> None:
    """Both, where the programs are found."""
    try:
        check_available("control-plane")
    except RequirementError as lacks:
        progress(f"gpushare: binds through kube-scheduler are left out: {lacks}")
        return
    program = find(SCHEDULER)
    if program is None:
        progress("gpushare: binds through kube-scheduler are left out: it is not found")
        return
    progress(f"gpushare: {PODS_N} pods onto {NODES_N} nodes with {GPUS} GPUs, by kube-scheduler without and with us")
    servers = Servers()
    try:
        alone = asyncio.run(_rate(servers, program, extended=False))
        both = asyncio.run(_rate(servers, program, extended=True))
    finally:
        servers.stop()
    report("gpushare binds without extender", alone, "pods/s")
    report("gpushare binds with extender", both, "pods/s", baseline=alone, baseline_name="without, in the same run")


async def _rate(servers: Servers, program: str, *, extended: bool) -> float:
    with tempfile.TemporaryDirectory(prefix="mews-bench-") as name:
        folder = Path(name)
        plane = KubernetesControlPlane(folder, servers=servers, speed=1.0)
        await plane.open({}, ())
        kubeconfig, started = folder / "kubeconfig", []
        plane.write_kubeconfig(kubeconfig)
        kube = plane.kube("bench")
        try:
            await _furnish(kube)
            entries = []
            if extended:
                entry, process = await _extender(folder, kubeconfig)
                entries.append(entry)
                started.append(process)
            config = folder / "scheduler.json"
            config.write_text(json.dumps(configuration(str(kubeconfig), entries, _UNTHROTTLED)), encoding="utf-8")
            flags = [f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"]
            argv = [program, f"--config={config}", *flags, "--secure-port=0"]

            async def begin() -> None:
                started.append(_started(argv))

            return await bound_per_s(kube, begin, PODS_N, DEADLINE_S)
        finally:
            for process in started:
                process.kill()
                process.wait()
            await plane.close()


async def _furnish(kube: KubeApi) -> None:
    for number in range(NODES_N):
        name = f"node-{number:03}"
        gpus = [SharedGpu(index, f"GPU-{number}-{index}", SIZE) for index in range(GPUS)]
        shown = {names.NODE_GPUS: gpus_text(gpus)}
        await kube.create(NODES, {"metadata": {"name": name, "annotations": shown}})
        room = {"cpu": "192", "memory": "1Ti", "pods": "110"}
        room |= {names.MEMORY_RESOURCE: str(SIZE * GPUS), names.COUNT_RESOURCE: str(GPUS)}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        await kube.patch(NODES, name, {"status": status}, subresource="status")
        await kube.patch(NODES, name, {"spec": {"taints": None}})
    for number in range(PODS_N):
        container = {"name": "c", "image": "x", "resources": {"limits": {names.MEMORY_RESOURCE: "10"}}}
        body: dict[str, Any] = {"metadata": {"name": f"p-{number:04}"}, "spec": {"containers": [container]}}
        await kube.create(PODS, body, namespace="default")


async def _extender(folder: Path, kubeconfig: Path) -> tuple[dict[str, Any], subprocess.Popen[bytes]]:
    """Return its entry in the configuration, and its process, which answers by now."""
    certificates: Certificates = make_certificates(folder, time.time())
    with socket.create_server((_LOOPBACK, 0)) as free:
        port = free.getsockname()[1]
    argv = [sys.executable, "-m", "mews.systems.gpushare", "extender", "--kubeconfig", str(kubeconfig)]
    argv += ["--port", str(port), "--certificate", str(certificates.certificate), "--key", str(certificates.key)]
    copy_to(folder / "package" / "mews")
    process = _started(argv, PYTHONPATH=str(folder / "package"))
    async with asyncio.timeout(60.0):
        while True:
            try:
                _, writer = await asyncio.open_connection(_LOOPBACK, port)
            except OSError:
                await asyncio.sleep(0.1)
                continue
            writer.close()
            break
    place = extender_place(
        f"https://{_LOOPBACK}:{port}/gpushare-scheduler", certificates.authority.read_text(encoding="ascii"), _LOOPBACK
    )
    return {**place, **extender_config(GpuShareConfig())}, process


def _started(argv: list[str], **env: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **env})
