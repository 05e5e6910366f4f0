"""What components answer over HTTP, extender and webhooks, and a recording in a chassis' place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from mews.harness.catalogue.files import shipped
from mews.harness.clusters import open_cluster
from mews.harness.ports.cluster import ReachableCluster
from mews.harness.replay.folders import Replayable
from mews.harness.replay.replies import RecordedReply
from mews.harness.replay.server import ReplayServer
from mews.harness.scenario.loader import parse_scenario
from mews.kube.serving import serve_on
from mews.listening.http import HttpListener
from mews.listening.ports import held_port
from tests.fuzz.faces import POD, address_of, as_json, on_a_loop
from tests.fuzz.judge import Face
from tests.fuzz.requests import Sent

SCENARIO = """
apiVersion: mews/v1
kind: Scenario
metadata: {name: services}
hardware: demo
stack: {gpushare: {unit: GiB, nodes: [host-2]}, koordinator: {nodes: [host-3], webhook: true}}
"""
EXTENDER, SUMMARIES = "/gpushare-scheduler", "/apis/v1/plugins/DeviceShare/nodeDeviceSummaries"


def extender() -> list[Sent]:
    """Requests of a scheduler."""
    pod = {**POD, "metadata": {"name": "p", "namespace": "default", "uid": "u"}}
    node = {"metadata": {"name": "host-2"}, "status": {"allocatable": {"aliyun.com/gpu-mem": "8"}}}
    bind = {"PodName": "p", "PodNamespace": "default", "PodUID": "u", "Node": "host-2"}
    return [
        as_json("POST", f"{EXTENDER}/filter", {"Pod": pod, "NodeNames": ["host-2"]}),
        as_json("POST", f"{EXTENDER}/filter", {"Pod": pod, "Nodes": {"items": [node]}}),
        as_json("POST", f"{EXTENDER}/bind", bind),
        *(Sent("GET", path) for path in ("/version", "/metrics", f"{EXTENDER}/inspect", f"{EXTENDER}/inspect/host-2")),
    ]


def summaries() -> list[Sent]:
    """Requests of an operator."""
    return [Sent("GET", path) for path in ("/metrics", SUMMARIES, f"{SUMMARIES}/host-3")]


def reviews() -> list[Sent]:
    """Requests of the API server."""

    def review(resource: str, body: dict[str, Any]) -> dict[str, Any]:
        request = {"uid": "u", "operation": "CREATE", "namespace": "default", "name": "p", "object": body}
        head = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}
        return {**head, "request": {**request, "resource": {"group": "", "version": "v1", "resource": resource}}}

    labels = {"koordinator.sh/gpu-core": "50"}
    pod = {**POD, "metadata": {"name": "p", "namespace": "default", "labels": labels}}
    binding = {"metadata": {"name": "p"}, "target": {"name": "host-3"}}
    return [
        as_json("POST", "/mutate-pod", review("pods", pod)),
        as_json("POST", "/validate-binding", review("pods", binding)),
    ]


REQUESTS = {"gpushare-extender": extender, "koord-scheduler": summaries, "koord-webhook": reviews}


REFUSING = {"gpushare-extender": b'{"Error":'}


class Services:
    """Each service of a cluster, on a port of its own."""

    def __init__(self, cluster: ReachableCluster) -> None:
        self._cluster = cluster
        self.listeners: dict[str, HttpListener] = {}

    async def open(self) -> None:
        """Listen for each."""
        for name in REQUESTS:
            call = partial(self._cluster.ports.services.call, name)  # type: ignore[attr-defined]
            self.listeners[name] = await serve_on(held_port(), call)

    async def close(self) -> None:
        """Listen no more, and end the cluster."""
        for listener in self.listeners.values():
            await listener.close()
        await self._cluster.close()


async def _open() -> Services:
    scenario = parse_scenario(SCENARIO, shipped("hardware", "demo").parent / "services.yaml")
    services = Services(await open_cluster(scenario, seed=1))
    await services.open()
    return services


@contextmanager
def services() -> Iterator[list[Face]]:
    """Extender, scheduler and webhooks of the systems."""
    with on_a_loop(_open, Services.close) as served:
        yield [
            Face(f"service {name}", listener.address, REQUESTS[name](), refusing=REFUSING.get(name, b""))
            for name, listener in served.listeners.items()
        ]


@contextmanager
def recordings() -> Iterator[list[Face]]:
    """A recording of two requests."""
    kinds = {"content-type": "application/json"}
    replies = (
        RecordedReply("GET", "/resources", False, {}, "", 200, kinds, "[]"),
        RecordedReply("POST", "/allocation", False, {}, '{"a":"b"}', 200, kinds, "true"),
    )
    server = ReplayServer(Replayable("resource-pool", replies))
    server.start()
    try:
        yield [
            Face(
                "recording",
                address_of(server.url),
                [Sent("GET", "/resources"), as_json("POST", "/allocation", {"a": "b"})],
            )
        ]
    finally:
        server.stop()
