"""Deletion: grace, finalizers, propagation, preconditions, collections, eviction."""

# One case a line.
# ruff: noqa: E501

from typing import Any

from tests.differential.areas.bodies import configmap, labelled, named, opened, place, pod, workload
from tests.differential.model import MERGE, STRATEGIC, TABLE, YAML, Case, Sent

N = place("deletion")
APPS = "/apis/apps/v1/namespaces/deletion"
JOBS = "/apis/batch/v1/namespaces/deletion/jobs"
OTHER_UID = "11111111-2222-4333-8444-555555555555"


def held(obj: dict[str, Any]) -> dict[str, Any]:
    """An object that a finalizer holds."""
    return {**obj, "metadata": {**obj["metadata"], "finalizers": ["mews.test/a"]}}


def _eviction(name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}, **more}


def _delete(name: str, path: str, body: Any = None) -> Sent:
    return Sent(name, "DELETE", f"{N}/{path}", body)


def _made(obj: dict[str, Any], what: str = "configmaps") -> Sent:
    return Sent(f"make {what} {obj['metadata']['name']}", "POST", f"{N}/{what}", obj)


CASES: tuple[Case, ...] = (
    opened("deletion"),
    *(_made(configmap(name)) for name in ("a", "b", "c", "d")),
    _delete("missing", "configmaps/nobody"),
    _delete("precondition on the uid", "configmaps/a", {"preconditions": {"uid": OTHER_UID}}),
    _delete("precondition on the version", "configmaps/a", {"preconditions": {"resourceVersion": "1"}}),
    _delete("bad policy", "configmaps/a", {"propagationPolicy": "Sideways"}),
    _delete("bad policy in the query", "configmaps/a?propagationPolicy=Sideways"),
    _delete("two policies", "configmaps/a", {"propagationPolicy": "Orphan", "orphanDependents": True}),
    _delete("bad dry run", "configmaps/a", {"dryRun": ["x"]}),
    _delete("bad dry run in the query", "configmaps/a?dryRun=x"),
    _delete("bad grace", "configmaps/a?gracePeriodSeconds=x"),
    _delete("grace is text", "configmaps/a", {"gracePeriodSeconds": "x"}),
    _delete("body of another kind", "configmaps/a", {"apiVersion": "v1", "kind": "Pod"}),
    _delete("body is a list", "configmaps/a", [1]),
    Sent("body is no json", "DELETE", f"{N}/configmaps/a", raw=b"{x"),
    _delete("as a trial", "configmaps/a", {"dryRun": ["All"]}),
    _delete("as a trial by the query", "configmaps/a?dryRun=All"),
    Sent("without a content type", "DELETE", f"{N}/configmaps/d", {"propagationPolicy": "Background"}, content_type=""),
    Sent("as yaml", "DELETE", f"{N}/configmaps/c", accept=YAML),
    Sent("as a table", "DELETE", f"{N}/configmaps/b", accept=TABLE),
    _delete("foreground", "configmaps/a", {"propagationPolicy": "Foreground"}),
    _delete("foreground again", "configmaps/a", {"propagationPolicy": "Foreground"}),
    Sent("lift the foreground", "PATCH", f"{N}/configmaps/a", {"metadata": {"finalizers": None}}, MERGE),
    Sent("gone", "GET", f"{N}/configmaps/a"),
    _made(configmap("o")),
    _delete("orphan", "configmaps/o", {"propagationPolicy": "Orphan"}),
    Sent("lift the orphan", "PATCH", f"{N}/configmaps/o", [{"op": "remove", "path": "/metadata/finalizers"}], "application/json-patch+json"),
    _made(held(configmap("h"))),
    _delete("held", "configmaps/h"),
    _delete("held again", "configmaps/h"),
    Sent("held stays", "GET", f"{N}/configmaps/h"),
    Sent("make what is leaving", "POST", f"{N}/configmaps", configmap("h")),
    Sent("add a finalizer", "PATCH", f"{N}/configmaps/h", {"metadata": {"finalizers": ["mews.test/a", "mews.test/b"]}}, MERGE),
    Sent("change what is held", "PATCH", f"{N}/configmaps/h", {"data": {"x": "1"}}, MERGE),
    Sent("undelete", "PATCH", f"{N}/configmaps/h", {"metadata": {"deletionTimestamp": None}}, MERGE),
    Sent("lift the finalizer", "PATCH", f"{N}/configmaps/h", {"metadata": {"finalizers": None}}, MERGE),
    _made(pod("p", nodeName="n1"), "pods"),
    _delete("pod", "pods/p"),
    _delete("pod sooner", "pods/p", {"gracePeriodSeconds": 5}),
    _delete("pod later", "pods/p", {"gracePeriodSeconds": 50}),
    _delete("pod with negative grace", "pods/p", {"gracePeriodSeconds": -1}),
    Sent("bind a leaving pod", "POST", f"{N}/pods/p/binding", {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}),
    _delete("pod now", "pods/p", {"gracePeriodSeconds": 0}),
    _made(pod("u"), "pods"),
    _delete("pod unassigned", "pods/u"),
    _made(pod("f", nodeName="n1"), "pods"),
    Sent("fail it", "PATCH", f"{N}/pods/f/status", {"status": {"phase": "Failed"}}, STRATEGIC),
    _delete("pod failed", "pods/f"),
    _made(held(pod("hp", nodeName="n1")), "pods"),
    _delete("pod held", "pods/hp", {"gracePeriodSeconds": 0}),
    Sent("release it", "PATCH", f"{N}/pods/hp", {"metadata": {"finalizers": []}}, MERGE),
    _made(pod("dry", nodeName="n1"), "pods"),
    _delete("pod as a trial", "pods/dry?dryRun=All"),
    _made(labelled(pod("e", nodeName="n1"), app="e"), "pods"),
    Sent("evict as a trial", "POST", f"{N}/pods/e/eviction?dryRun=All", _eviction("e")),
    Sent("evict another name", "POST", f"{N}/pods/e/eviction", _eviction("x")),
    Sent("evict missing", "POST", f"{N}/pods/nobody/eviction", _eviction("nobody")),
    Sent("evict with a precondition", "POST", f"{N}/pods/e/eviction", _eviction("e", deleteOptions={"preconditions": {"uid": OTHER_UID}})),
    Sent("evict as another kind", "POST", f"{N}/pods/e/eviction", {"apiVersion": "policy/v9", "kind": "Eviction", "metadata": {"name": "e"}}),
    Sent("evict", "POST", f"{N}/pods/e/eviction", _eviction("e")),
    Sent("evicted pod", "GET", f"{N}/pods/e"),
    _made(labelled(pod("g", nodeName="n1"), app="g"), "pods"),
    Sent("run it", "PATCH", f"{N}/pods/g/status", {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}, STRATEGIC),
    Sent("budget", "POST", "/apis/policy/v1/namespaces/deletion/poddisruptionbudgets", named("b", minAvailable=1, selector={"matchLabels": {"app": "g"}})),
    Sent("evict against a budget that nobody has seen", "POST", f"{N}/pods/g/eviction", _eviction("g")),
    Sent("budget seen", "PATCH", "/apis/policy/v1/namespaces/deletion/poddisruptionbudgets/b/status", {"status": {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}}, MERGE),
    Sent("evict against a budget", "POST", f"{N}/pods/g/eviction", _eviction("g")),
    Sent("delete budget", "DELETE", "/apis/policy/v1/namespaces/deletion/poddisruptionbudgets/b"),
    *(_made(labelled(configmap(f"l{i}"), set="x"), "configmaps") for i in range(3)),
    Sent("collection as a trial", "DELETE", f"{N}/configmaps?labelSelector=set%3Dx&dryRun=All"),
    Sent("collection of nothing", "DELETE", f"{N}/configmaps?labelSelector=none"),
    Sent("collection by a bad selector", "DELETE", f"{N}/configmaps?labelSelector=a%20b"),
    Sent("collection by name", "DELETE", f"{N}/configmaps?fieldSelector=metadata.name%3Dl0"),
    Sent("collection", "DELETE", f"{N}/configmaps?labelSelector=set%3Dx"),
    Sent("collection is gone", "GET", f"{N}/configmaps"),
    Sent("protected namespace", "DELETE", "/api/v1/namespaces/kube-system"),
    Sent("default namespace", "DELETE", "/api/v1/namespaces/default"),
    Sent("missing namespace", "DELETE", "/api/v1/namespaces/nobody"),
    Sent("job", "POST", JOBS, named("j", template={"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox:1"}]}})),
    Sent("delete job without a policy", "DELETE", f"{JOBS}/j"),
    Sent("lift the job", "PATCH", f"{JOBS}/j", {"metadata": {"finalizers": None}}, MERGE),
    Sent("deployment", "POST", f"{APPS}/deployments", workload("d")),
    Sent("delete deployment", "DELETE", f"{APPS}/deployments/d", {"propagationPolicy": "Background"}),
    Sent("stateful set", "POST", f"{APPS}/statefulsets", workload("s", serviceName="svc")),
    Sent("delete stateful set", "DELETE", f"{APPS}/statefulsets/s"),
    *(_made(named(name, **spec), what) for what, name, spec in (
        ("services", "s", {"ports": [{"port": 80}]}), ("serviceaccounts", "s", {}), ("resourcequotas", "s", {"hard": {"pods": "90"}}),
        ("limitranges", "s", {"limits": []}), ("persistentvolumeclaims", "s", {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}),
    )),
    *(_delete(f"delete {what} s", f"{what}/s") for what in ("services", "serviceaccounts", "resourcequotas", "limitranges", "persistentvolumeclaims")),
    Sent("delete node", "DELETE", "/api/v1/nodes/nobody"),
)  # fmt: skip
