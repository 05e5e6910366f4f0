"""The embedded API server as a process of its own: ``python -m benchmarks.api_server FOLDER [NODES PODS [X]]``.

Serves over TLS to the bearer of a token, and over http beside it; ``FOLDER/ready.json`` tells where. With numbers the
store holds that many nodes and bound pods before it serves; with a third word our controllers run in the same process,
over HTTP as in ``mews up``, and have read all of it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
from pathlib import Path
from typing import Any

from mews.certificates import make_certificates
from mews.kube.api.resources import NODES, PODS
from mews.kube.client.http import HttpKube
from mews.kube.clock import Clock, Pace
from mews.kube.component import Context
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store
from mews.kube.emulated.apiserver.server import ApiServer
from mews.kube.emulated.controllers.manager import ControllerManager
from mews.kube.emulated.core.store.store import Store

TOKEN = "bench"
SETTLE_S = 30.0
"""Below the grace of nodes whose kubelets do not report."""


def node(name: str) -> dict[str, Any]:
    """Return a Ready node as kubelets keep it."""
    room = {"cpu": "192", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": "16"}
    info = dict.fromkeys(("kubeletVersion", "osImage", "kernelVersion", "containerRuntimeVersion"), "v1.34.2")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}]
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "status": {
            "capacity": room, "allocatable": room, "conditions": [ready], "addresses": addresses, "nodeInfo": info,
        },
    }  # fmt: skip


def pod(name: str, node_name: str = "") -> dict[str, Any]:
    """Return a pod that asks for one GPU."""
    resources = {"requests": {"cpu": "100m"}, "limits": {"nvidia.com/gpu": "1"}}
    container = {"name": "main", "image": "mews/train", "resources": resources}
    spec: dict[str, Any] = {"containers": [container], **({"nodeName": node_name} if node_name else {})}
    return {"metadata": {"name": name, "labels": {"app": "bench"}}, "spec": spec}


async def fill(store: Store, nodes: int, pods: int) -> None:
    """Nodes with their status, pods bound and running, with their owners as if they had come over HTTP."""
    store.keeps_owners = True
    kube = InProcessKube(store)
    for number in range(nodes):
        await kube.create(NODES, node(f"node-{number}"))
        await kube.patch(NODES, f"node-{number}", {"status": node(f"node-{number}")["status"]}, subresource="status")
    for number in range(pods):
        name = f"pod-{number}"
        await kube.create(PODS, pod(name, f"node-{number % max(nodes, 1)}"), namespace="default")
        condition = {"type": "Ready", "status": "True", "lastTransitionTime": store.timestamp()}
        status = {"phase": "Running", "podIP": "10.1.0.1", "conditions": [condition]}
        await kube.patch(PODS, name, {"status": status}, namespace="default", subresource="status")


async def idle_controllers(url: str, clock: Clock) -> asyncio.Task[None]:
    """Ours, once they have read all pods; they find nothing to do for as long as nodes may be silent."""
    context = Context(HttpKube(url), clock, random.Random(2), logging.getLogger("controllers"))
    manager = ControllerManager(context, Pace(1.0))
    running = asyncio.create_task(manager.run())
    await asyncio.sleep(SETTLE_S)
    return running


async def main() -> None:
    """Serve until terminated."""
    folder = Path(sys.argv[1])
    clock = Clock.wall()
    store = fresh_store(clock.now, random.Random(1))
    if len(sys.argv) > 2:
        await fill(store, int(sys.argv[2]), int(sys.argv[3]))
    made = make_certificates(folder, clock.now())
    secure = ApiServer(store, tokens={TOKEN: "admin"}, ssl_context=made.server_context())
    plain = ApiServer(store)
    await secure.start()
    await plain.start()
    running = await idle_controllers(plain.url, clock) if len(sys.argv) > 4 else None
    ready = {"https": secure.url, "http": plain.url, "authority": str(made.authority), "token": TOKEN}
    (folder / "ready.part").write_text(json.dumps(ready))
    (folder / "ready.part").rename(folder / "ready.json")
    await (asyncio.Event().wait() if running is None else running)


if __name__ == "__main__":
    asyncio.run(main())
