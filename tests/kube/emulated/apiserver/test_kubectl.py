"""The real kubectl against the embedded API server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from mews.kube.api.resources import EVENTS, NODES, PODS
from mews.kube.client.port import DeleteOptions
from tests.kube.emulated.apiserver.serving import Served, serve

pytestmark = pytest.mark.wall

POD = """
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: one}}
spec:
  containers:
  - {name: c, image: "busybox:1", resources: {limits: {falcon.com/gpu: "2"}}}
"""
CONFIGMAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {speed: "%s"}
"""
CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tfjobs.mews.test}
spec:
  group: mews.test
  scope: Namespaced
  names: {plural: tfjobs, kind: TFJob, shortNames: [tj]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Workers, type: integer, jsonPath: .spec.workers}
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {workers: {type: integer}}}}
"""
TFJOB = """
apiVersion: mews.test/v1
kind: TFJob
metadata: {name: train}
spec: {workers: %d}
"""


def test_apply_creates_configures_and_leaves_alone(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        for speed, word in (("1", "created"), ("2", "configured"), ("2", "unchanged")):
            out = await served.kubectl("apply", "-f", "-", stdin=CONFIGMAP % speed)
            assert out == f"configmap/settings {word}\n"
        data = await served.kubectl("get", "cm", "settings", "-o", "jsonpath={.data.speed}")
        assert data == "2"
        assert "speed:\n----\n2" in await served.kubectl("describe", "cm", "settings")

    serve(tmp_path, check)


def test_apply_of_a_pod_changes_its_labels_only(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        assert await served.kubectl("apply", "-f", "-", stdin=POD) == "pod/a created\n"
        assert await served.kubectl("apply", "-f", "-", stdin=POD) == "pod/a unchanged\n"
        changed = POD.replace("app: one", "app: two")
        assert await served.kubectl("apply", "-f", "-", stdin=changed) == "pod/a configured\n"
        refused = await served.kubectl("apply", "-f", "-", stdin=POD.replace('"2"', '"3"'), ok=False)
        assert "pod updates may not change fields other than" in refused

    serve(tmp_path, check)


def test_server_side_apply_takes_over(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        await served.kubectl("apply", "-f", "-", stdin=CONFIGMAP % "1")
        await served.kubectl("apply", "--server-side", "-f", "-", stdin=CONFIGMAP % "1")
        assert await served.kubectl("get", "cm", "settings", "-o", "jsonpath={.data.speed}") == "1"  # and not emptied
        out = await served.kubectl("apply", "--server-side", "-f", "-", stdin=CONFIGMAP % "2")
        assert out == "configmap/settings serverside-applied\n"
        manager = ["--server-side", "--field-manager=other", "-f", "-"]
        refused = await served.kubectl("apply", *manager, stdin=CONFIGMAP % "3", ok=False)
        assert 'conflict with "kubectl": .data.speed' in refused
        await served.kubectl("apply", "--force-conflicts", *manager, stdin=CONFIGMAP % "3")
        assert await served.kubectl("get", "cm", "settings", "-o", "jsonpath={.data.speed}") == "3"

    serve(tmp_path, check)


def test_get_prints_tables_and_selects(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        await served.kubectl("create", "-f", "-", stdin=POD)
        await served.kube.bind("default", "a", "n1")
        header, row = (await served.kubectl("get", "pods", "-A", "-o", "wide")).splitlines()
        assert header.split()[:6] == ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        cells = row.split()
        assert cells[:5] == ["default", "a", "0/1", "Pending", "0"] and cells[7] == "n1"
        assert await served.kubectl("get", "pods", "-l", "app=one", "-o", "name") == "pod/a\n"
        assert await served.kubectl("get", "pods", "-l", "app=two", "-o", "name") == ""
        on_node = ["--field-selector", "spec.nodeName=n1", "-o", "jsonpath={.items[*].metadata.name}"]
        assert await served.kubectl("get", "pods", *on_node) == "a"
        shown = json.loads(await served.kubectl("get", "pod", "a", "-o", "json"))
        assert shown["spec"]["containers"][0]["resources"]["requests"] == {"falcon.com/gpu": "2"}
        assert "nodeName: n1" in await served.kubectl("get", "pod", "a", "-o", "yaml")
        missing = await served.kubectl("get", "pod", "b", ok=False)
        assert missing == 'Error from server (NotFound): pods "b" not found\n'

    serve(tmp_path, check)


def test_get_watch_prints_every_change(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        await served.kubectl("create", "-f", "-", stdin=POD)
        process = await served.kubectl_process("get", "pods", "-w", "--no-headers")
        assert process.stdout is not None
        try:
            first = await asyncio.wait_for(process.stdout.readline(), 60)
            await served.kube.bind("default", "a", "n1")
            await served.kube.patch(
                PODS, "a", {"status": {"phase": "Running"}}, namespace="default", subresource="status"
            )
            await served.kube.delete(PODS, "a", namespace="default")
            lines = [first] + [await asyncio.wait_for(process.stdout.readline(), 60) for _ in range(3)]
        finally:
            process.terminate()
            await process.communicate()
        assert [line.split()[2].decode() for line in lines] == ["Pending", "Pending", "Running", "Terminating"]

    serve(tmp_path, check)


def test_describe_shows_a_pod_its_events_and_its_node(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        await served.kube.create(NODES, {"metadata": {"name": "n1"}, "status": {"capacity": {"falcon.com/gpu": "4"}}})
        await served.kubectl("create", "-f", "-", stdin=POD)
        await served.kube.bind("default", "a", "n1")
        pod = await served.kube.get(PODS, "a", namespace="default")
        event = {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a", "uid": pod["metadata"]["uid"]},
            "reason": "Scheduled",
            "message": "Successfully assigned default/a to n1",
            "type": "Normal",
            "source": {"component": "kubecomp-scheduler"},
            "firstTimestamp": pod["metadata"]["creationTimestamp"],
            "lastTimestamp": pod["metadata"]["creationTimestamp"],
        }
        await served.kube.create(EVENTS, event, namespace="default")
        described = await served.kubectl("describe", "pod", "a")
        assert "falcon.com/gpu:  2" in described
        assert "kubecomp-scheduler  Successfully assigned default/a to n1" in described
        node = await served.kubectl("describe", "node", "n1")
        assert "node.kubernetes.io/not-ready:NoSchedule" in node
        assert "Non-terminated Pods:          (1 in total)" in node
        assert "Scheduled" in await served.kubectl("get", "events")

    serve(tmp_path, check)


def test_delete_waits_until_it_is_gone(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        await served.kubectl("create", "-f", "-", stdin=POD)
        await served.kube.bind("default", "a", "n1")
        process = await served.kubectl_process("delete", "pod", "a")
        async for event in served.kube.watch(PODS, namespace="default", timeout_s=20):
            if event.object["metadata"].get("deletionTimestamp"):
                break
        assert process.returncode is None
        await served.kube.delete(PODS, "a", namespace="default", options=DeleteOptions(grace_period_s=0))
        out, _ = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 0 and out.startswith(b'pod "a" deleted')

    serve(tmp_path, check)


def test_wait_for_a_condition_and_for_deletion(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        await served.kubectl("create", "-f", "-", stdin=POD)
        ready = await served.kubectl_process("wait", "--for=condition=Ready", "pod/a", "--timeout=20s")
        condition = {"type": "Ready", "status": "True"}
        await served.kube.patch(
            PODS, "a", {"status": {"conditions": [condition]}}, namespace="default", subresource="status"
        )
        out, _ = await asyncio.wait_for(ready.communicate(), 60)
        assert out == b"pod/a condition met\n"
        gone = await served.kubectl_process("wait", "--for=delete", "pod/a", "--timeout=20s")
        await served.kube.delete(PODS, "a", namespace="default")
        out, _ = await asyncio.wait_for(gone.communicate(), 60)
        assert gone.returncode == 0

    serve(tmp_path, check)


def test_logs_and_exec_reach_the_kubelet(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        await served.kubectl("create", "-f", "-", stdin=POD)
        assert await served.kubectl("logs", "a") == ""
        await served.kube.bind("default", "a", "n1")
        assert await served.kubectl("logs", "a") == "a/c one\ntwo\n"
        assert await served.kubectl("logs", "a", "--tail=1", "-f") == "two\nthree\n"
        assert await served.kubectl("exec", "a", "--", "echo", "hello", "there") == "hello there\n"
        failed = await served.kubectl("exec", "a", "--", "fail", ok=False)
        assert failed == "no\ncommand terminated with exit code 3\n"

    serve(tmp_path, check)


def test_label_annotate_patch_cordon_and_taint(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        await served.kube.create(NODES, {"metadata": {"name": "n1"}})
        assert await served.kubectl("label", "node", "n1", "zone=a") == "node/n1 labeled\n"
        assert await served.kubectl("annotate", "node", "n1", "why=because") == "node/n1 annotated\n"
        assert (
            await served.kubectl("patch", "node", "n1", "-p", '{"metadata":{"labels":{"zone":"b"}}}')
            == "node/n1 patched\n"
        )
        assert await served.kubectl("cordon", "n1") == "node/n1 cordoned\n"
        assert await served.kubectl("taint", "node", "n1", "a=b:NoSchedule") == "node/n1 tainted\n"
        node = await served.kube.get(NODES, "n1")
        assert node["metadata"]["labels"] == {"zone": "b"}
        assert node["spec"]["unschedulable"] is True
        assert [taint["key"] for taint in node["spec"]["taints"]] == ["node.kubernetes.io/not-ready", "a"] or [
            taint["key"] for taint in node["spec"]["taints"]
        ] == ["a", "node.kubernetes.io/not-ready"]
        assert "SchedulingDisabled" in await served.kubectl("get", "nodes")

    serve(tmp_path, check)


def test_typed_creates_arrive_as_protobuf(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        assert await served.kubectl("create", "namespace", "team") == "namespace/team created\n"
        await served.kubectl("create", "configmap", "c", "-n", "team", "--from-literal=a=b")
        await served.kubectl("create", "secret", "generic", "s", "-n", "team", "--from-literal=a=b")
        await served.kubectl("create", "serviceaccount", "robot", "-n", "team")
        await served.kubectl("create", "priorityclass", "high", "--value=100", "--description=x")
        await served.kubectl("create", "quota", "q", "-n", "team", "--hard=pods=2")
        await served.kubectl("create", "deployment", "web", "-n", "team", "--image=i:1", "--replicas=2", "--port=80")
        assert await served.kubectl("get", "cm", "c", "-n", "team", "-o", "jsonpath={.data.a}") == "b"
        assert await served.kubectl("get", "secret", "s", "-n", "team", "-o", "jsonpath={.data.a}") == "Yg=="
        assert await served.kubectl("get", "pc", "high", "-o", "jsonpath={.value}") == "100"
        spec = await served.kubectl("get", "deploy", "web", "-n", "team", "-o", "jsonpath={.spec.replicas} {..image}")
        assert spec == "2 i:1"
        assert await served.kubectl("delete", "namespace", "team") == 'namespace "team" deleted\n'
        assert "team" not in await served.kubectl("get", "ns")

    serve(tmp_path, check)


def test_a_custom_kind_lives_and_dies(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        await served.kubectl("apply", "-f", "-", stdin=CRD)
        await served.kubectl("wait", "--for=condition=established", "crd/tfjobs.mews.test")
        for workers, word in ((2, "created"), (3, "configured"), (3, "unchanged")):
            out = await served.kubectl("apply", "-f", "-", stdin=TFJOB % workers)
            assert out == f"tfjob.mews.test/train {word}\n"
        assert (await served.kubectl("get", "tj")).split() == ["NAME", "WORKERS", "train", "3"]
        assert "Workers:  3" in await served.kubectl("describe", "tj", "train")
        assert "tfjobs" in await served.kubectl("api-resources", "--api-group=mews.test")
        await served.kubectl("delete", "-f", "-", stdin=CRD)
        assert await served.kubectl("get", "tj", ok=False)  # worded by how fresh kubectl's cache is

    serve(tmp_path, check)


def test_version_and_raw_paths(tmp_path: Path) -> None:
    async def check(served: Served) -> None:
        assert "Server Version: v1.34.2" in await served.kubectl("version")
        assert await served.kubectl("get", "--raw", "/healthz") == "ok"
        resources = await served.kubectl("api-resources", "-o", "name")
        assert {"pods", "leases.coordination.k8s.io", "resourceslices.resource.k8s.io"} <= set(resources.split())

    serve(tmp_path, check)
