"""An operator on kopf, unmodified: definitions, peering, finalizers, timers, status and events over both faces."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mews.kube.api.errors import NotFoundError
from mews.kube.api.resources import CRDS, EVENTS, Resource
from mews.kube.client.http import HttpKube
from tests.kube.emulated.apiserver.faces import DEADLINE_S, Face, face

pytestmark = pytest.mark.wall

OPERATOR = Path(__file__).with_name("widgets_operator.py")
OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
WIDGETS = Resource("mews.test", "v1", "widgets", "Widget")
PEERINGS = Resource("kopf.dev", "v1", "kopfpeerings", "KopfPeering")


def definition(resource: Resource, *, status: bool) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": OPEN, "status": OPEN}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()}
    spec = {"group": resource.group, "scope": "Namespaced", "names": names}
    versions = [{**version, **({"subresources": {"status": {}}} if status else {})}]
    return {"metadata": {"name": f"{resource.plural}.{resource.group}"}, "spec": {**spec, "versions": versions}}


@contextmanager
def operator(face: Face, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "kopf", "run", "--peering=default", "--namespace=default", str(OPERATOR)]
    with log.open("wb") as output:
        environment = {**os.environ, "KUBECONFIG": str(face.kubeconfig)}
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


class Cluster:
    """Our own client on the server's loop, to look at what the operator did."""

    def __init__(self, served: Face) -> None:
        self._served = served
        self.log = served.kubeconfig.with_name("operator.log")

    def ask(self, act: Callable[[HttpKube], Any]) -> Any:
        async def asked() -> Any:
            kube = HttpKube.from_kubeconfig(str(self._served.kubeconfig), "mews")
            try:
                return await act(kube)
            finally:
                await kube.close()

        return self._served.wait(asked())

    def create(self, resource: Resource, obj: dict[str, Any]) -> None:
        self.ask(lambda kube: kube.create(resource, obj, namespace="default" if resource.namespaced else None))

    def until(self, what: str, holds: Callable[[], Any]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            assert time.monotonic() < deadline, f"waited for {what}; the operator said:\n{self.log.read_text()}"
            time.sleep(0.05)

    def status(self, resource: Resource, name: str) -> dict[str, Any]:
        found = self.ask(lambda kube: kube.get(resource, name, namespace="default"))
        return found.get("status") or {}

    def gone(self, name: str) -> bool:
        try:
            self.status(WIDGETS, name)
        except NotFoundError:
            return True
        return False

    def reasons(self) -> set[str]:
        found = self.ask(lambda kube: kube.list(EVENTS, namespace="default"))
        return {event["reason"] for event in found.items}


@pytest.mark.parametrize("way", ["http", "tls"])
def test_a_kopf_operator_handles_the_whole_life_of_its_objects(way: str, tmp_path: Path) -> None:
    with face(tmp_path, tls=way == "tls") as served:
        cluster = Cluster(served)
        for resource, status in ((WIDGETS, True), (PEERINGS, False)):
            cluster.create(CRDS, definition(resource, status=status))
        cluster.create(PEERINGS, {"metadata": {"name": "default"}})
        cluster.create(WIDGETS, {"metadata": {"name": "w"}, "spec": {"size": 1}})
        with operator(served, cluster.log) as process:
            cluster.until("the creation's handler", lambda: "created" in cluster.status(WIDGETS, "w"))
            cluster.until("the timer", lambda: cluster.status(WIDGETS, "w").get("ticks") == 3)
            assert cluster.status(WIDGETS, "w")["created"] == {"said": "size 1"}
            assert len(cluster.status(PEERINGS, "default")) == 1
            cluster.ask(lambda kube: kube.patch(WIDGETS, "w", {"spec": {"size": 2}}, namespace="default"))
            cluster.until("the update's handler", lambda: cluster.status(WIDGETS, "w").get("resized") == "1->2")
            cluster.ask(lambda kube: kube.delete(WIDGETS, "w", namespace="default"))
            cluster.until("the finalizer to go", lambda: cluster.gone("w"))
            cluster.until("the events", lambda: cluster.reasons() >= {"Greeted", "Dismissed"})
            process.terminate()
            assert process.wait(DEADLINE_S) == 0, cluster.log.read_text()
        assert cluster.status(PEERINGS, "default") == {}
        said = cluster.log.read_text()
        assert "Traceback" not in said and "[ERROR" not in said, said
