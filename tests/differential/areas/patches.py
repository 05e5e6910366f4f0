"""JSON, merge, strategic merge and apply patches, with the ownership of fields."""

# One case a line.
# ruff: noqa: E501

from typing import Any

from tests.differential.areas.bodies import RICH, configmap, opened, place, pod, template, workload
from tests.differential.model import APPLY, JSON_PATCH, MERGE, STRATEGIC, Case, Sent

N = place("patches")
A, P = f"{N}/configmaps/a", f"{N}/pods/rich"
D = "/apis/apps/v1/namespaces/patches/deployments"

_TWICE = (
    b"\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice, name: twice}\ndata:\n  a: '1'\n  b: '2'\n  a: '3'\n"
)


def _json(name: str, *operations: dict[str, Any]) -> Sent:
    return Sent(f"json patch {name}", "PATCH", A, list(operations), JSON_PATCH)


def _strategic(name: str, body: object, path: str = P) -> Sent:
    return Sent(f"strategic {name}", "PATCH", path, body, STRATEGIC)


def _apply(name: str, manager: str, body: dict[str, Any], path: str = f"{N}/configmaps/s", query: str = "") -> Sent:
    return Sent(f"apply {name}", "PATCH", f"{path}?fieldManager={manager}{query}", body, APPLY, owned=True)


def _applied(name: str, /, replicas: int | None = None, image: str = "busybox:1", **env: str) -> dict[str, Any]:
    container = {"name": "c", "image": image, "env": [{"name": key, "value": value} for key, value in env.items()]}
    body = workload(name, template=template(containers=[container]))
    if replicas is not None:
        body["spec"]["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", **body}


CASES: tuple[Case, ...] = (
    opened("patches"),
    Sent("configmap", "POST", f"{N}/configmaps?fieldManager=me", configmap("a", x="1"), owned=True),
    Sent("merge", "PATCH", A, {"data": {"y": "2"}}, MERGE, owned=True),
    Sent("merge nothing", "PATCH", A, {"data": {"y": "2"}}, MERGE, owned=True),
    Sent("merge as a trial", "PATCH", f"{A}?dryRun=All", {"data": {"y": "3"}}, MERGE),
    Sent("merge null", "PATCH", A, {"data": {"y": None, "new": "1"}}, MERGE, owned=True),
    Sent("merge a list", "PATCH", A, [1], MERGE),
    Sent("merge bad json", "PATCH", A, raw=b"{x", content_type=MERGE),
    Sent("merge wrong type", "PATCH", A, {"data": {"y": 5}}, MERGE),
    Sent("merge unknown field", "PATCH", A, {"frob": 5}, MERGE),
    Sent("merge metadata away", "PATCH", A, {"metadata": None}, MERGE),
    Sent("unknown media", "PATCH", A, {}, "application/json"),
    Sent("missing", "PATCH", f"{N}/configmaps/nobody", {}, MERGE),
    Sent("renames", "PATCH", A, {"metadata": {"name": "b"}}, MERGE),
    Sent("moves", "PATCH", A, {"metadata": {"namespace": "b"}}, MERGE),
    Sent("other kind", "PATCH", A, {"kind": "Pod"}, MERGE),
    Sent("stale", "PATCH", A, {"metadata": {"resourceVersion": "1"}}, MERGE),
    Sent("force", "PATCH", f"{A}?force=true", {}, MERGE),
    Sent("bad dry run", "PATCH", f"{A}?dryRun=x", {}, MERGE),
    Sent("bad field validation", "PATCH", f"{A}?fieldValidation=x", {}, MERGE),
    _json("add", {"op": "add", "path": "/data/z", "value": "3"}),
    _json("remove missing", {"op": "remove", "path": "/data/q"}),
    _json("test", {"op": "test", "path": "/data/z", "value": "4"}),
    _json("test holds", {"op": "test", "path": "/data/z", "value": "3"}, {"op": "remove", "path": "/data/z"}),
    _json("replace missing", {"op": "replace", "path": "/data/n", "value": "1"}),
    _json("move", {"op": "move", "from": "/data/n", "path": "/data/m"}),
    _json("copy", {"op": "copy", "from": "/data/m", "path": "/data/k"}),
    _json("escaped", {"op": "add", "path": "/metadata/annotations", "value": {"a/b": "c"}}, {"op": "replace", "path": "/metadata/annotations/a~1b", "value": "d"}),
    _json("unknown operation", {"op": "frob", "path": "/data/n"}),
    _json("without a path", {"op": "add", "value": "1"}),
    _json("to nowhere", {"op": "add", "path": "/no/where", "value": "1"}),
    _json("wrong type", {"op": "add", "path": "/data/n", "value": 1}),
    _json("empty"),
    Sent("json patch no list", "PATCH", A, {"a": 1}, JSON_PATCH),
    Sent("json patch stale", "PATCH", A, [{"op": "add", "path": "/metadata/resourceVersion", "value": "1"}], JSON_PATCH),
    Sent("pod", "POST", f"{N}/pods?fieldManager=me", RICH, owned=True),
    _strategic("configmap", {"data": {"k": None, "l": "1"}}, A),
    _strategic("labels and finalizers", {"metadata": {"labels": {"n": "1"}, "finalizers": ["mews.test/b"]}}),
    _strategic("more finalizers", {"metadata": {"finalizers": ["mews.test/c"]}}),
    _strategic("fewer finalizers", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["mews.test/b", "mews.test/c"]}}),
    _strategic("image", {"spec": {"containers": [{"name": "side", "image": "i:2"}]}}),
    _strategic("without key", {"spec": {"containers": [{"image": "x"}]}}),
    _strategic("unknown directive", {"metadata": {"labels": {"$patch": "frob"}}}),
    _strategic("replace labels", {"metadata": {"labels": {"$patch": "replace", "only": "this"}}}),
    _strategic("wrong type", {"metadata": {"labels": []}}),
    _strategic("bad list", [1]),
    _strategic("deployment", {"spec": {"replicas": 1}}, f"{D}/nobody"),
    Sent("deployment", "POST", f"{D}?fieldManager=me", _applied("d", A="1"), owned=True),
    _strategic("new env first", {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "B", "value": "2"}]}]}}}}, f"{D}/d"),
    _strategic("env in order", {"spec": {"template": {"spec": {"containers": [{"name": "c", "$setElementOrder/env": [{"name": "A"}, {"name": "C"}, {"name": "B"}], "env": [{"name": "C", "value": "3"}]}]}}}}, f"{D}/d"),
    _strategic("env deleted", {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"$patch": "delete", "name": "B"}]}]}}}}, f"{D}/d"),
    _strategic("container added", {"spec": {"template": {"spec": {"containers": [{"name": "e", "image": "e"}]}}}}, f"{D}/d"),
    _strategic("container deleted", {"spec": {"template": {"spec": {"containers": [{"$patch": "delete", "name": "e"}]}}}}, f"{D}/d"),
    _strategic("retain keys", {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}, f"{D}/d"),
    _strategic("tolerations are atomic", {"spec": {"template": {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}}}, f"{D}/d"),
    _strategic("tolerations again", {"spec": {"template": {"spec": {"tolerations": [{"key": "b", "operator": "Exists"}]}}}}, f"{D}/d"),
    _strategic("volumes by name", {"spec": {"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}}}, f"{D}/d"),
    _strategic("volume of another source", {"spec": {"template": {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}}}}, f"{D}/d"),
    _strategic("ports by number", {"spec": {"template": {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}, {"containerPort": 81, "name": "b"}]}]}}}}, f"{D}/d"),
    _strategic("port changed", {"spec": {"template": {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80, "name": "a"}]}]}}}}, f"{D}/d"),
    _strategic("secrets by name", {"spec": {"template": {"spec": {"imagePullSecrets": [{"name": "p"}]}}}}, f"{D}/d"),
    _strategic("conditions by type", {"status": {"conditions": [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}]}}, f"{D}/d/status"),
    _strategic("condition changed", {"status": {"conditions": [{"type": "Available", "status": "False"}]}}, f"{D}/d/status"),
    Sent("apply without manager", "PATCH", f"{N}/configmaps/s", configmap("s"), APPLY),
    _apply("without a name", "one", {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "1"}}),
    _apply("under another name", "one", configmap("t")),
    *(_apply(f"with {name} for a name", "one", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}) for name in (True, 5)),
    Sent("apply nothing", "PATCH", f"{N}/configmaps/s?fieldManager=one", raw=b"", content_type=APPLY),
    _apply("creates", "one", configmap("s", a="1", b="1")),
    _apply("again", "one", configmap("s", a="1", b="1")),
    _apply("the same", "two", configmap("s", a="1")),
    _apply("a conflict", "two", configmap("s", a="2", b="2")),
    _apply("by force", "two", configmap("s", a="2"), query="&force=true"),
    _apply("fewer", "one", configmap("s")),
    _apply("as a trial", "three", configmap("s", q="1"), query="&dryRun=All"),
    _apply("managed fields", "one", {**configmap("s"), "metadata": {"name": "s", "managedFields": [{"manager": "x"}]}}),
    _apply("unknown field", "one", {**configmap("s"), "frob": 1}),
    _apply("unknown field strict", "one", {**configmap("s"), "frob": 1}, query="&fieldValidation=Strict"),
    _apply("wrong type", "one", {**configmap("s"), "data": 1}),
    _apply("without kind", "one", {"metadata": {"name": "s"}}),
    _apply("other name", "one", configmap("t")),
    _apply("other kind", "one", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "s"}}),
    _apply("with uid", "one", {**configmap("u"), "metadata": {"name": "u", "uid": "11111111-2222-4333-8444-555555555555"}}, f"{N}/configmaps/u"),
    _apply("stale", "one", {**configmap("s"), "metadata": {"name": "s", "resourceVersion": "1"}}),
    Sent("apply yaml", "PATCH", f"{N}/configmaps/yam?fieldManager=one", raw=b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yam}\ndata: {a: '1'}\n", content_type=APPLY, owned=True),
    Sent("apply yaml with keys twice", "PATCH", f"{N}/configmaps/twice?fieldManager=one&fieldValidation=Strict", raw=_TWICE, content_type=APPLY),
    Sent("apply yaml with keys twice and a warning", "PATCH", f"{N}/configmaps/twice?fieldManager=one&fieldValidation=Warn", raw=_TWICE, content_type=APPLY),
    Sent("apply yaml with keys twice unseen", "PATCH", f"{N}/configmaps/twice?fieldManager=one&fieldValidation=Ignore", raw=_TWICE, content_type=APPLY),
    Sent("apply bad yaml", "PATCH", f"{N}/configmaps/yam?fieldManager=one", raw=b"a: [", content_type=APPLY),
    Sent("update what was applied", "PATCH", f"{N}/configmaps/s?fieldManager=kubectl-edit", {"data": {"a": "9", "z": "1"}}, MERGE, owned=True),
    _apply("against an update", "two", configmap("s", a="2", z="2")),
    _apply("a deployment", "one", _applied("e", 2, A="1", B="2"), f"{D}/e"),
    _apply("its image", "two", _applied("e", image="busybox:2"), f"{D}/e"),
    _apply("its image by force", "two", _applied("e", image="busybox:2"), f"{D}/e", "&force=true"),
    _apply("less env", "one", _applied("e", 2, image="busybox:2", B="2"), f"{D}/e"),
    Sent("scale what was applied", "PATCH", f"{D}/e/scale?fieldManager=hpa", {"spec": {"replicas": 5}}, MERGE, owned=True),
    _apply("against a scale", "one", _applied("e", 2, image="busybox:2", B="2"), f"{D}/e"),
    _apply("without replicas", "one", _applied("e", image="busybox:2", B="2"), f"{D}/e"),
    _apply("env twice", "one", {**_applied("e"), "spec": {"template": {"spec": {"containers": [{"name": "c", "env": [{"name": "A"}, {"name": "A"}]}]}}}}, f"{D}/e"),
    _apply("container without name", "one", {**_applied("e"), "spec": {"template": {"spec": {"containers": [{"image": "c"}]}}}}, f"{D}/e"),
    _apply("its status", "kubelet", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "e"}, "status": {"replicas": 2}}, f"{D}/e/status"),
    _apply("a pod", "one", {**pod("ap"), "metadata": {"name": "ap", "finalizers": ["mews.test/a"], "labels": {"l": "1"}}}, f"{N}/pods/ap"),
    _apply("another finalizer", "two", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ap", "finalizers": ["mews.test/b"]}}, f"{N}/pods/ap"),
    _apply("no finalizer", "two", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ap"}}, f"{N}/pods/ap"),
    Sent("managed fields taken away", "PATCH", f"{N}/configmaps/s", [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}], JSON_PATCH, owned=True),
    Sent("managed fields set to garbage", "PATCH", f"{N}/configmaps/s", {"metadata": {"managedFields": [{"manager": "x", "operation": "Frob"}]}}, MERGE),
    Sent("by user agent", "PATCH", f"{N}/configmaps/s", {"data": {"ua": "1"}}, MERGE, headers={"User-Agent": "robot/v1 (linux)"}, owned=True),
    Sent("put by user agent", "PUT", f"{N}/configmaps/s", configmap("s", put="1"), headers={"User-Agent": "putter"}, owned=True),
)  # fmt: skip
