"""The requests that are put to both servers, in order. Data: name -> what is sent."""

# One request a line.
# ruff: noqa: E501

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

N = "/api/v1/namespaces/diff"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY = "application/apply-patch+yaml"
CUSTOM = "/apis/diff.mews.test/v1/namespaces/diff/jobs"


@dataclass(frozen=True)
class Sent:
    """One request; ``raw`` goes out as it is, ``body`` as JSON. A watch ends by its timeoutSeconds."""

    name: str
    method: str
    path: str
    body: Any = None
    content_type: str = "application/json"
    accept: str = "application/json"
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)


def pod(name: str, /, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "busybox:1"}], **spec},
    }


def configmap(name: str, /, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


RICH = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "rich", "labels": {"app": "x"}},
    "spec": {
        "schedulerName": "kubecomp-scheduler",
        "containers": [
            {
                "name": "main",
                "image": "registry.test/a/b",
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                ],
                "ports": [{"containerPort": 80}],
                "livenessProbe": {"httpGet": {"path": "/", "port": 80}},
                "resources": {
                    "limits": {"cpu": "0.5", "memory": "1024Mi", "falcon.com/gpu": 2},
                    "requests": {"cpu": "1e-1"},
                },
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            },
            {"name": "side", "image": "registry.test/c@sha256:" + "0" * 64},
        ],
        "initContainers": [{"name": "init", "image": "i:latest"}],
        "volumes": [{"name": "v"}, {"name": "c", "configMap": {"name": "x"}}],
        "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
        "nodeSelector": {"a": "b"},
    },
}

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "jobs.diff.mews.test"},
    "spec": {
        "group": "diff.mews.test",
        "scope": "Namespaced",
        "names": {"plural": "jobs", "kind": "DiffJob", "shortNames": ["dj"]},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"},
                    {"name": "Phase", "type": "string", "jsonPath": ".status.phase", "priority": 1},
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["replicas"],
                                "properties": {
                                    "replicas": {"type": "integer", "minimum": 1},
                                    "mode": {"type": "string", "enum": ["a", "b"], "default": "a"},
                                    "name": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 5},
                                    "list": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                                },
                            },
                            "status": {"type": "object", "properties": {"phase": {"type": "string"}}},
                        },
                    }
                },
            }
        ],
    },
}


def job(name: str, /, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "diff.mews.test/v1", "kind": "DiffJob", "metadata": {"name": name}, "spec": spec}


def event(name: str, /, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "namespace": "diff", "name": "p"},
        "reason": "Tested",
        "message": "hello",
        "type": "Normal",
        "source": {"component": "me", "host": "h"},
        "count": 3,
        **more,
    }


REQUESTS: tuple[Sent, ...] = (
    Sent("namespace missing", "POST", f"{N}/configmaps", configmap("a")),
    Sent("create namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "diff"}}),
    Sent("create namespace again", "POST", "/api/v1/namespaces", {"metadata": {"name": "diff"}}),
    Sent("protected namespace", "DELETE", "/api/v1/namespaces/kube-system"),
    Sent("unknown group", "GET", "/apis/nothing.test/v1/things"),
    Sent("unknown resource", "GET", "/api/v1/podlings"),
    Sent("unknown subresource", "GET", f"{N}/pods/a/frob"),
    Sent("put a collection", "PUT", f"{N}/pods", pod("a")),
    Sent("post an object", "POST", f"{N}/pods/a", pod("a")),
    Sent("xml", "GET", f"{N}/pods", accept="application/xml"),
    Sent("trailing slash", "GET", f"{N}/pods/"),
    Sent("create configmap", "POST", f"{N}/configmaps", configmap("a", x="1")),
    Sent("create it again", "POST", f"{N}/configmaps", configmap("a", x="1")),
    Sent("bad json", "POST", f"{N}/configmaps", raw=b"{nonsense"),
    Sent("body is a list", "POST", f"{N}/configmaps", raw=b"[]"),
    Sent("wrong kind", "POST", f"{N}/configmaps", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}),
    Sent("wrong version", "POST", f"{N}/configmaps", {"apiVersion": "v2", "kind": "ConfigMap"}),
    Sent("other namespace", "POST", f"{N}/configmaps", {"metadata": {"name": "b", "namespace": "other"}}),
    Sent("no name", "POST", f"{N}/configmaps", {"metadata": {}}),
    Sent("bad name", "POST", f"{N}/configmaps", {"metadata": {"name": "B_"}}),
    Sent("bad label", "POST", f"{N}/configmaps", {"metadata": {"name": "b", "labels": {"a": "-x-"}}}),
    Sent("bad label key", "POST", f"{N}/configmaps", {"metadata": {"name": "b", "labels": {"a b": "x"}}}),
    Sent("label is a number", "POST", f"{N}/configmaps", {"metadata": {"name": "b", "labels": {"a": 1}}}),
    Sent("version on create", "POST", f"{N}/configmaps", {"metadata": {"name": "b", "resourceVersion": "1"}}),
    Sent("unknown media type", "POST", f"{N}/configmaps", raw=b"x", content_type="text/plain"),
    Sent("yaml body", "POST", f"{N}/configmaps", raw=b"metadata: {name: yam}\ndata: {a: '1'}\n", content_type="application/yaml"),
    Sent("bad dry run", "POST", f"{N}/configmaps?dryRun=x", configmap("b")),
    Sent("dry run", "POST", f"{N}/configmaps?dryRun=All", configmap("b")),
    Sent("bad field validation", "POST", f"{N}/configmaps?fieldValidation=x", configmap("b")),
    Sent("get configmap", "GET", f"{N}/configmaps/a"),
    Sent("get as yaml", "GET", f"{N}/configmaps/nothing", accept="application/yaml"),
    Sent("get table", "GET", f"{N}/configmaps/a", accept=TABLE),
    Sent("list configmaps", "GET", f"{N}/configmaps?limit=500"),
    Sent("list table", "GET", f"{N}/configmaps?limit=500", accept=TABLE),
    Sent("list metadata", "GET", f"{N}/configmaps", accept=PARTIAL),
    Sent("list a page", "GET", f"{N}/configmaps?limit=1"),
    Sent("list future", "GET", f"{N}/configmaps?resourceVersion=999999999"),
    Sent("list garbage version", "GET", f"{N}/configmaps?resourceVersion=abc"),
    Sent("list bad label selector", "GET", f"{N}/configmaps?labelSelector=a%20b"),
    Sent("list bad field selector", "GET", f"{N}/configmaps?fieldSelector=data.x%3D1"),
    Sent("list bad pod field selector", "GET", f"{N}/pods?fieldSelector=spec.foo%3D1"),
    Sent("list bad limit", "GET", f"{N}/configmaps?limit=x"),
    Sent("merge patch", "PATCH", f"{N}/configmaps/a", {"data": {"y": "2"}}, MERGE),
    Sent("merge patch nothing", "PATCH", f"{N}/configmaps/a", {"data": {"y": "2"}}, MERGE),
    Sent("strategic patch", "PATCH", f"{N}/configmaps/a", {"data": {"y": None}}, STRATEGIC),
    Sent("json patch", "PATCH", f"{N}/configmaps/a", [{"op": "add", "path": "/data/z", "value": "3"}], JSON_PATCH),
    Sent("json patch fails", "PATCH", f"{N}/configmaps/a", [{"op": "remove", "path": "/data/q"}], JSON_PATCH),
    Sent("json patch test", "PATCH", f"{N}/configmaps/a", [{"op": "test", "path": "/data/z", "value": "4"}], JSON_PATCH),
    Sent("json patch replace missing", "PATCH", f"{N}/configmaps/a", [{"op": "replace", "path": "/data/n", "value": "1"}], JSON_PATCH),
    Sent("json patch no list", "PATCH", f"{N}/configmaps/a", {"a": 1}, JSON_PATCH),
    Sent("merge patch a list", "PATCH", f"{N}/configmaps/a", [1], MERGE),
    Sent("patch unknown media", "PATCH", f"{N}/configmaps/a", {}, "application/json"),
    Sent("patch missing", "PATCH", f"{N}/configmaps/nobody", {}, MERGE),
    Sent("patch renames", "PATCH", f"{N}/configmaps/a", {"metadata": {"name": "b"}}, MERGE),
    Sent("patch stale", "PATCH", f"{N}/configmaps/a", {"metadata": {"resourceVersion": "1"}}, MERGE),
    Sent("patch force", "PATCH", f"{N}/configmaps/a?force=true", {}, MERGE),
    Sent("put names differ", "PUT", f"{N}/configmaps/a", configmap("b")),
    Sent("put missing", "PUT", f"{N}/configmaps/b", configmap("b")),
    Sent("put stale", "PUT", f"{N}/configmaps/a", {"metadata": {"name": "a", "resourceVersion": "1"}}),
    Sent("put wrong uid", "PUT", f"{N}/configmaps/a", {"metadata": {"name": "a", "uid": "11111111-2222-4333-8444-555555555555"}}),
    Sent("put unconditional", "PUT", f"{N}/configmaps/a", configmap("a", only="this")),
    Sent("lease by put", "PUT", "/apis/coordination.k8s.io/v1/namespaces/diff/leases/l", {"metadata": {"name": "l"}, "spec": {"leaseDurationSeconds": 5}}),
    Sent("lease without version", "PUT", "/apis/coordination.k8s.io/v1/namespaces/diff/leases/l", {"metadata": {"name": "l"}, "spec": {}}),
    Sent("lease table", "GET", "/apis/coordination.k8s.io/v1/namespaces/diff/leases", accept=TABLE),
    Sent("apply without manager", "PATCH", f"{N}/configmaps/s", configmap("s"), APPLY),
    Sent("apply", "PATCH", f"{N}/configmaps/s?fieldManager=one", configmap("s", a="1", b="1"), APPLY),
    Sent("apply the same", "PATCH", f"{N}/configmaps/s?fieldManager=two", configmap("s", a="1"), APPLY),
    Sent("apply a conflict", "PATCH", f"{N}/configmaps/s?fieldManager=two", configmap("s", a="2", b="2"), APPLY),
    Sent("apply by force", "PATCH", f"{N}/configmaps/s?fieldManager=two&force=true", configmap("s", a="2"), APPLY),
    Sent("apply fewer", "PATCH", f"{N}/configmaps/s?fieldManager=one", configmap("s"), APPLY),
    Sent("apply managed fields", "PATCH", f"{N}/configmaps/s?fieldManager=one", {**configmap("s"), "metadata": {"name": "s", "managedFields": [{"manager": "x"}]}}, APPLY),
    Sent("create pod", "POST", f"{N}/pods", pod("p")),
    Sent("create rich pod", "POST", f"{N}/pods", RICH),
    Sent("create gated pod", "POST", f"{N}/pods", pod("gated", schedulingGates=[{"name": "a/b"}])),
    Sent("pod without containers", "POST", f"{N}/pods", {"metadata": {"name": "x"}, "spec": {}}),
    Sent("pod without image", "POST", f"{N}/pods", {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c"}]}}),
    Sent("pod container names", "POST", f"{N}/pods", {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c", "image": "i"}, {"name": "c", "image": "i"}, {"name": "C", "image": "i"}]}}),
    Sent("pod restart policy", "POST", f"{N}/pods", pod("x", restartPolicy="Sometimes")),
    Sent("pod no class", "POST", f"{N}/pods", pod("x", priorityClassName="none")),
    Sent("pod priority", "POST", f"{N}/pods", pod("x", priority=7)),
    Sent("pod half a gpu", "POST", f"{N}/pods", pod("x", containers=[{"name": "c", "image": "i", "resources": {"limits": {"falcon.com/gpu": "500m"}}}])),
    Sent("pod gpu request only", "POST", f"{N}/pods", pod("x", containers=[{"name": "c", "image": "i", "resources": {"requests": {"falcon.com/gpu": "1"}}}])),
    Sent("pod gpu overcommit", "POST", f"{N}/pods", pod("x", containers=[{"name": "c", "image": "i", "resources": {"limits": {"falcon.com/gpu": "1"}, "requests": {"falcon.com/gpu": "2"}}}])),
    Sent("pod cpu over limit", "POST", f"{N}/pods", pod("x", containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}}])),
    Sent("pod bad quantity", "POST", f"{N}/pods", pod("x", containers=[{"name": "c", "image": "i", "resources": {"limits": {"cpu": "one"}}}])),
    Sent("pod strange resource", "POST", f"{N}/pods", pod("x", containers=[{"name": "c", "image": "i", "resources": {"limits": {"gpus": "1"}}}])),
    Sent("pod table", "GET", f"{N}/pods", accept=TABLE),
    Sent("pod spec is fixed", "PATCH", f"{N}/pods/p", {"spec": {"hostNetwork": True}}, MERGE),
    Sent("pod image may change", "PATCH", f"{N}/pods/p", {"spec": {"containers": [{"name": "c", "image": "busybox:2"}]}}, STRATEGIC),
    Sent("pod gate added", "PATCH", f"{N}/pods/p", {"spec": {"schedulingGates": [{"name": "a/b"}]}}, MERGE),
    Sent("pod gate lifted", "PATCH", f"{N}/pods/gated", {"spec": {"schedulingGates": None}}, MERGE),
    Sent("strategic without key", "PATCH", f"{N}/pods/p", {"spec": {"containers": [{"image": "x"}]}}, STRATEGIC),
    Sent("pod new env first", "PATCH", f"{N}/pods/rich", {"metadata": {"labels": {"n": "1"}, "finalizers": ["mews.test/b"]}}, STRATEGIC),
    Sent("bind without a name", "POST", f"{N}/pods/p/binding", {"target": {"kind": "Node"}}),
    Sent("bind without a node", "POST", f"{N}/pods/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node"}}),
    Sent("bind to a pod", "POST", f"{N}/pods/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Pod", "name": "x"}}),
    Sent("bind", "POST", f"{N}/pods/p/binding", {"metadata": {"name": "p", "annotations": {"a/b": "c"}}, "target": {"kind": "Node", "name": "n1"}}),
    Sent("bind again", "POST", f"{N}/pods/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n2"}}),
    Sent("bind missing", "POST", f"{N}/pods/nobody/binding", {"metadata": {"name": "nobody"}, "target": {"kind": "Node", "name": "n2"}}),
    Sent("bound pod", "GET", f"{N}/pods/p"),
    Sent("pods of the node", "GET", "/api/v1/pods?fieldSelector=spec.nodeName%3Dn1", accept=TABLE),
    Sent("log of unassigned", "GET", f"{N}/pods/gated/log"),
    Sent("log of many containers", "GET", f"{N}/pods/rich/log"),
    Sent("log of a wrong container", "GET", f"{N}/pods/rich/log?container=z"),
    Sent("status patch", "PATCH", f"{N}/pods/p/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC),
    Sent("evict", "POST", f"{N}/pods/p/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}),
    Sent("evicted pod", "GET", f"{N}/pods/p"),
    Sent("delete pod sooner", "DELETE", f"{N}/pods/p", {"gracePeriodSeconds": 5}),
    Sent("delete pod later", "DELETE", f"{N}/pods/p", {"gracePeriodSeconds": 50}),
    Sent("delete pod now", "DELETE", f"{N}/pods/p", {"gracePeriodSeconds": 0}),
    Sent("delete held pod", "DELETE", f"{N}/pods/rich"),
    Sent("add a finalizer", "PATCH", f"{N}/pods/rich", {"metadata": {"finalizers": ["mews.test/b", "mews.test/c"]}}, MERGE),
    Sent("lift the finalizer", "PATCH", f"{N}/pods/rich", {"metadata": {"finalizers": None}}, MERGE),
    Sent("delete gated pod", "DELETE", f"{N}/pods/gated"),
    Sent("delete missing", "DELETE", f"{N}/pods/gated"),
    Sent("delete precondition", "DELETE", f"{N}/configmaps/a", {"preconditions": {"uid": "11111111-2222-4333-8444-555555555555"}}),
    Sent("delete precondition version", "DELETE", f"{N}/configmaps/a", {"preconditions": {"resourceVersion": "1"}}),
    Sent("delete bad policy", "DELETE", f"{N}/configmaps/a", {"propagationPolicy": "Sideways"}),
    Sent("delete foreground", "DELETE", f"{N}/configmaps/a", {"propagationPolicy": "Foreground"}),
    Sent("delete configmap", "DELETE", f"{N}/configmaps/s", {"propagationPolicy": "Background"}),
    Sent("delete collection", "DELETE", f"{N}/configmaps?labelSelector=none"),
    Sent("create event", "POST", f"{N}/events", event("e")),
    Sent("new event", "GET", "/apis/events.k8s.io/v1/namespaces/diff/events/e"),
    Sent("event elsewhere", "POST", f"{N}/events", event("f", involvedObject={"kind": "Pod", "namespace": "other", "name": "p"})),
    Sent("event table", "GET", f"{N}/events", accept=TABLE),
    Sent("new event incomplete", "POST", "/apis/events.k8s.io/v1/namespaces/diff/events", {"metadata": {"name": "g"}, "eventTime": "2026-01-01T00:00:00.000000Z", "regarding": {"namespace": "diff"}}),
    Sent("create node", "POST", "/api/v1/nodes", {"metadata": {"name": "diff-node"}, "status": {"capacity": {"cpu": "4", "memory": "1Gi"}}}),
    Sent("node status", "PATCH", "/api/v1/nodes/diff-node/status", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC),
    Sent("node cordon", "PATCH", "/api/v1/nodes/diff-node", {"spec": {"unschedulable": True}}, STRATEGIC),
    Sent("node table", "GET", "/api/v1/nodes", accept=TABLE),
    Sent("nodes schedulable", "GET", "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dfalse"),
    Sent("delete node", "DELETE", "/api/v1/nodes/diff-node"),
    Sent("priority class", "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "diff-high"}, "value": 10}),
    Sent("priority class table", "GET", "/apis/scheduling.k8s.io/v1/priorityclasses/diff-high", accept=TABLE),
    Sent("priority class changes", "PATCH", "/apis/scheduling.k8s.io/v1/priorityclasses/diff-high", {"value": 11}, MERGE),
    Sent("system class", "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "system-mine"}, "value": 10}),
    Sent("class too high", "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "diff-top"}, "value": 1000000001}),
    Sent("delete class", "DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/diff-high"),
    Sent("secret", "POST", f"{N}/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "b"}}),
    Sent("secret table", "GET", f"{N}/secrets", accept=TABLE),
    Sent("bad crd", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {**CRD, "metadata": {"name": "wrong"}}),
    Sent("create crd", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD),
    Sent("created crd", "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobs.diff.mews.test"),
    Sent("crd table", "GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", accept=TABLE),
    Sent("create job", "POST", CUSTOM, job("j", replicas=2, what="else")),
    Sent("job wrong type", "POST", CUSTOM, job("k", replicas="two")),
    Sent("job not required", "POST", CUSTOM, job("k")),
    Sent("job minimum", "POST", CUSTOM, job("k", replicas=0)),
    Sent("job enum", "POST", CUSTOM, job("k", replicas=1, mode="c")),
    Sent("job pattern", "POST", CUSTOM, job("k", replicas=1, name="A")),
    Sent("job length", "POST", CUSTOM, job("k", replicas=1, name="abcdefgh")),
    Sent("job items", "POST", CUSTOM, job("k", replicas=1, list=["a", "b", "c"])),
    Sent("job put without version", "PUT", f"{CUSTOM}/j", job("j", replicas=3)),
    Sent("job status", "PATCH", f"{CUSTOM}/j/status", {"status": {"phase": "Running"}, "spec": {"replicas": 9}}, MERGE),
    Sent("job spec", "PATCH", f"{CUSTOM}/j", {"status": {"phase": "Other"}, "spec": {"replicas": 4}}, MERGE),
    Sent("job strategic", "PATCH", f"{CUSTOM}/j", {}, STRATEGIC),
    Sent("job table", "GET", CUSTOM, accept=TABLE),
    Sent("job list", "GET", CUSTOM),
    Sent("job missing", "GET", f"{CUSTOM}/nobody"),
    Sent("job unknown selector", "GET", f"{CUSTOM}?fieldSelector=spec.replicas%3D4"),
    Sent("delete job", "DELETE", f"{CUSTOM}/j"),
    Sent("delete crd", "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/jobs.diff.mews.test"),
    Sent("watch the configmaps", "GET", f"{N}/configmaps?watch=true&timeoutSeconds=1"),
    Sent("watch too old", "GET", f"{N}/pods?watch=true&timeoutSeconds=1&resourceVersion=1"),
    Sent("watch garbage", "GET", f"{N}/pods?watch=true&timeoutSeconds=1&resourceVersion=abc"),
    Sent("watch a table", "GET", f"{N}/events?watch=true&timeoutSeconds=1", accept=TABLE),
    Sent("watch with initial events", "GET", f"{N}/secrets?watch=true&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"),
    Sent("core group", "GET", "/api"),
    Sent("apps group", "GET", "/apis/apps"),
    Sent("core resources", "GET", "/api/v1"),
    Sent("healthz", "GET", "/healthz", accept="*/*"),
    Sent("anonymous", "GET", f"{N}/pods", headers={"Authorization": ""}),
    Sent("wrong token", "GET", f"{N}/pods", headers={"Authorization": "Bearer wrong"}),
)  # fmt: skip
