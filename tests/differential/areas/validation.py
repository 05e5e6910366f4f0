"""Bodies that are refused, warned about, or completed."""

# One case a line.
# ruff: noqa: E501

from dataclasses import replace

from tests.differential.areas.bodies import RICH, configmap, holding, named, opened, place, pod, template, workload
from tests.differential.model import MERGE, STRATEGIC, Case, Sent

N = place("validation")
APPS = "/apis/apps/v1/namespaces/validation"
JOBS = "/apis/batch/v1/namespaces/validation/jobs"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"


def _maps(name: str, body: object, query: str = "") -> Sent:
    return Sent(name, "POST", f"{N}/configmaps{query}", body)


def _pods(name: str, **spec: object) -> Sent:
    return Sent(name, "POST", f"{N}/pods", pod("x", **spec))


def _container(name: str, **more: object) -> Sent:
    return Sent(name, "POST", f"{N}/pods", pod("x", containers=[{"name": "c", "image": "i", **more}]))


_CASES: tuple[Sent, ...] = (
    opened("validation"),
    Sent("bad json", "POST", f"{N}/configmaps", raw=b"{nonsense"),
    Sent("cut json", "POST", f"{N}/configmaps", raw=b'{"metadata": {"name": "x"'),
    Sent("empty body", "POST", f"{N}/configmaps", raw=b""),
    Sent("body is a list", "POST", f"{N}/configmaps", raw=b"[]"),
    Sent("body is a string", "POST", f"{N}/configmaps", raw=b'"x"'),
    Sent("body is null", "POST", f"{N}/configmaps", raw=b"null"),
    Sent("bad yaml", "POST", f"{N}/configmaps", raw=b"a: [", content_type="application/yaml"),
    Sent("unknown media type", "POST", f"{N}/configmaps", raw=b"x", content_type="text/plain"),
    _maps("wrong kind", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}}),
    _maps("wrong version", {"apiVersion": "v2", "kind": "ConfigMap"}),
    _maps("wrong group", {"apiVersion": "apps/v1", "kind": "ConfigMap", "metadata": {"name": "b"}}),
    _maps("other namespace", {"metadata": {"name": "b", "namespace": "other"}}),
    _maps("no name", {"metadata": {}}),
    _maps("no metadata", {}),
    _maps("bad name", {"metadata": {"name": "B_"}}),
    _maps("long name", {"metadata": {"name": "x" * 254}}),
    _maps("bad generate name", {"metadata": {"generateName": "B_"}}),
    _maps("bad label", {"metadata": {"name": "b", "labels": {"a": "-x-"}}}),
    _maps("bad label key", {"metadata": {"name": "b", "labels": {"a b": "x"}}}),
    _maps("bad label prefix", {"metadata": {"name": "b", "labels": {"A_/b": "x"}}}),
    _maps("long label", {"metadata": {"name": "b", "labels": {"a": "x" * 64}}}),
    _maps("label is a number", {"metadata": {"name": "b", "labels": {"a": 1}}}),
    _maps("annotation is a list", {"metadata": {"name": "b", "annotations": {"a": []}}}),
    _maps("bad annotation key", {"metadata": {"name": "b", "annotations": {"a b": "x"}}}),
    _maps("bad finalizer", {"metadata": {"name": "b", "finalizers": ["x"]}}),
    _maps("bad owner", {"metadata": {"name": "b", "ownerReferences": [{"kind": "Pod", "name": "x"}]}}),
    _maps("two controllers", {"metadata": {"name": "b", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": n, "uid": n, "controller": True} for n in "xy"]}}),
    _maps("version on create", {"metadata": {"name": "b", "resourceVersion": "1"}}),
    _maps("metadata is text", {"metadata": "b"}),
    _maps("bad data key", {"metadata": {"name": "b"}, "data": {"a b": "x"}}),
    _maps("data is a number", {"metadata": {"name": "b"}, "data": {"a": 1}}),
    _maps("same key twice", {"metadata": {"name": "b"}, "data": {"a": "x"}, "binaryData": {"a": "eA=="}}),
    _maps("bad dry run", configmap("b"), "?dryRun=x"),
    _maps("bad field validation", configmap("b"), "?fieldValidation=x"),
    _maps("bad field manager", configmap("b"), "?fieldManager=" + "x" * 129),
    _maps("unknown field warned", {**configmap("w1"), "frob": 1, "metadata": {"name": "w1", "nick": "x"}}),
    _maps("unknown field ignored", {**configmap("w2"), "frob": 1}, "?fieldValidation=Ignore"),
    _maps("unknown field strict", {**configmap("w3"), "frob": 1}, "?fieldValidation=Strict"),
    Sent("duplicate field warned", "POST", f"{N}/configmaps", raw=b'{"metadata":{"name":"w4"},"data":{"a":"1","a":"2"}}'),
    Sent("duplicate field strict", "POST", f"{N}/configmaps?fieldValidation=Strict", raw=b'{"metadata":{"name":"w5"},"data":{"a":"1","a":"2"}}'),
    Sent("unknown field in a pod", "POST", f"{N}/pods?fieldValidation=Strict", pod("x", frob=1)),
    Sent("unknown field in a container", "POST", f"{N}/pods", pod("w6", containers=[{"name": "c", "image": "i", "frob": 1}])),
    Sent("unknown field in a patch", "PATCH", f"{N}/pods/w6?fieldValidation=Strict", {"spec": {"frob": 1}}, MERGE),
    Sent("case of fields", "POST", f"{N}/configmaps?fieldValidation=Strict", {"metadata": {"Name": "x"}, "Data": {"a": "b"}}),
    Sent("pod without containers", "POST", f"{N}/pods", {"metadata": {"name": "x"}, "spec": {}}),
    Sent("pod without spec", "POST", f"{N}/pods", {"metadata": {"name": "x"}}),
    Sent("pod without image", "POST", f"{N}/pods", {"metadata": {"name": "x"}, "spec": {"containers": [{"name": "c"}]}}),
    _pods("pod container names", containers=[{"name": n, "image": "i"} for n in ("c", "c", "C")]),
    _pods("pod restart policy", restartPolicy="Sometimes"),
    _pods("pod no class", priorityClassName="none"),
    _pods("pod priority", priority=7),
    _pods("pod priority is text", priority="high"),
    _pods("pod containers are a map", containers={"name": "c"}),
    _pods("pod grace", terminationGracePeriodSeconds=-5),
    _pods("pod deadline", activeDeadlineSeconds=0),
    _pods("pod dns policy", dnsPolicy="Never"),
    _pods("pod node selector", nodeSelector={"a b": "-"}),
    _pods("pod toleration", tolerations=[{"key": "a", "operator": "Exists", "value": "x"}, {"operator": "Equal", "value": "x"}, {"key": "b", "effect": "Maybe"}]),
    _pods("pod gates", schedulingGates=[{"name": "a b"}, {"name": ""}]),
    _pods("pod host name", hostname="A_B"),
    _pods("pod volume names", volumes=[{"name": "v"}, {"name": "v"}, {"name": "V"}]),
    _pods("pod two sources", volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/x"}}]),
    _pods("pod host path", volumes=[{"name": "v", "hostPath": {"path": "../x"}}, {"name": "w", "configMap": {}}]),
    _pods("pod affinity", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
    _pods("pod affinity operator", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Is"}]}]}}}),
    _pods("pod spread", topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "", "whenUnsatisfiable": "x"}]),
    _pods("ephemeral containers", ephemeralContainers=[{"name": "e", "image": "i"}]),
    _pods("pod names differ", nodeName="A_B"),
    _container("container pull policy", imagePullPolicy="Perhaps"),
    _container("container env name", env=[{"name": ""}, {"name": "A=B"}]),
    _container("container env twice", env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}], command=["x"], ports=[{"containerPort": 0}]),
    _container("container env source", env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
    _container("container env field", env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.frob"}}}]),
    _container("container ports", ports=[{"containerPort": 70000}, {"containerPort": 1, "protocol": "X"}, {"containerPort": 2, "name": "A_"}]),
    _container("container mounts", volumeMounts=[{"name": "none", "mountPath": "/x"}, {"name": "none", "mountPath": "/x"}, {"name": "v"}]),
    _container("container probe", livenessProbe={"httpGet": {"port": 0}, "exec": {"command": []}}),
    _container("container probe without handler", readinessProbe={"periodSeconds": -1}),
    _container("container image spaces", image=" i "),
    _container("container args are text", args="x"),
    Sent("pod half a gpu", "POST", f"{N}/pods", holding(limits={"falcon.com/gpu": "500m"})),
    Sent("pod gpu request only", "POST", f"{N}/pods", holding(requests={"falcon.com/gpu": "1"})),
    Sent("pod gpu overcommit", "POST", f"{N}/pods", holding(limits={"falcon.com/gpu": "1"}, requests={"falcon.com/gpu": "2"})),
    Sent("pod cpu over limit", "POST", f"{N}/pods", holding(limits={"cpu": "1"}, requests={"cpu": "2"})),
    Sent("pod bad quantity", "POST", f"{N}/pods", holding(limits={"cpu": "one"})),
    Sent("pod negative quantity", "POST", f"{N}/pods", holding(limits={"cpu": "-1"})),
    Sent("pod strange resource", "POST", f"{N}/pods", holding(limits={"gpus": "1"})),
    Sent("pod fractional bytes", "POST", f"{N}/pods?dryRun=All", holding(limits={"memory": "100m"})),
    Sent("rich pod as a trial", "POST", f"{N}/pods?dryRun=All&fieldValidation=Strict", RICH),
    Sent("deployment without selector", "POST", f"{APPS}/deployments", named("d", template=template())),
    Sent("deployment selects others", "POST", f"{APPS}/deployments", workload("d", selector={"matchLabels": {"app": "y"}})),
    Sent("deployment replicas", "POST", f"{APPS}/deployments", workload("d", replicas=-1)),
    Sent("deployment strategy", "POST", f"{APPS}/deployments", workload("d", strategy={"type": "Wild"})),
    Sent("deployment surge", "POST", f"{APPS}/deployments", workload("d", strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}})),
    Sent("deployment restart policy", "POST", f"{APPS}/deployments", workload("d", template=template(restartPolicy="Never"))),
    Sent("deployment without template", "POST", f"{APPS}/deployments", named("d", selector={"matchLabels": {"app": "x"}})),
    Sent("a deployment", "POST", f"{APPS}/deployments", workload("d")),
    Sent("selector is fixed", "PATCH", f"{APPS}/deployments/d", {"spec": {"selector": {"matchLabels": {"b": "c"}}, "template": {"metadata": {"labels": {"b": "c"}}}}}, MERGE),
    Sent("stateful set is fixed", "POST", f"{APPS}/statefulsets", workload("s", podManagementPolicy="Wild")),
    Sent("daemon set restart", "POST", f"{APPS}/daemonsets", workload("s", template=template(restartPolicy="OnFailure"))),
    Sent("job restart policy", "POST", JOBS, named("j", template=template())),
    Sent("job numbers", "POST", JOBS, named("j", parallelism=-1, completions=-1, backoffLimit=-1, template=template(restartPolicy="Never"))),
    Sent("job with a selector", "POST", JOBS, named("j", selector={"matchLabels": {"a": "b"}}, template=template(restartPolicy="Never"))),
    Sent("a job", "POST", JOBS, named("j", template=template(restartPolicy="Never"))),
    Sent("job completions are fixed", "PATCH", f"{JOBS}/j", {"spec": {"completions": 5}}, MERGE),
    Sent("cron job schedule", "POST", "/apis/batch/v1/namespaces/validation/cronjobs", named("cj", schedule="often", jobTemplate={"spec": {"template": template(restartPolicy="Never")}})),
    Sent("service ports", "POST", f"{N}/services", named("s", ports=[{"port": 0}, {"port": 80}, {"port": 80}])),
    Sent("service without ports", "POST", f"{N}/services", named("s")),
    Sent("service name", "POST", f"{N}/services", named("1s", ports=[{"port": 80}])),
    Sent("service type", "POST", f"{N}/services", named("s", type="Wild", ports=[{"port": 80}])),
    Sent("service address", "POST", f"{N}/services", named("s", clusterIP="1.2.3", ports=[{"port": 80}])),
    Sent("secret not base64", "POST", f"{N}/secrets", {"metadata": {"name": "s"}, "data": {"a": "!"}}),
    Sent("secret of a type", "POST", f"{N}/secrets", {"metadata": {"name": "s"}, "type": "kubernetes.io/tls"}),
    Sent("secret type is fixed", "POST", f"{N}/secrets", {"metadata": {"name": "s"}, "type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "eA=="}}),
    Sent("quota amounts", "POST", f"{N}/resourcequotas", named("q", hard={"pods": "-1"})),
    Sent("quota resources", "POST", f"{N}/resourcequotas", named("q", hard={"frob": "1"})),
    Sent("limits", "POST", f"{N}/limitranges", named("l", limits=[{"type": "Container", "max": {"cpu": "1"}, "min": {"cpu": "2"}}])),
    Sent("budget", "POST", "/apis/policy/v1/namespaces/validation/poddisruptionbudgets", named("b", minAvailable=1, maxUnavailable=1)),
    Sent("autoscaler", "POST", "/apis/autoscaling/v2/namespaces/validation/horizontalpodautoscalers", named("h", minReplicas=3, maxReplicas=1, scaleTargetRef={})),
    Sent("lease", "POST", "/apis/coordination.k8s.io/v1/namespaces/validation/leases", named("l", leaseDurationSeconds=0)),
    Sent("lease time", "POST", "/apis/coordination.k8s.io/v1/namespaces/validation/leases", named("l", renewTime="2026-01-01T00:00:00Z")),
    Sent("system class", "POST", CLASSES, {"metadata": {"name": "system-mine"}, "value": 10}),
    Sent("class too high", "POST", CLASSES, {"metadata": {"name": "validation-top"}, "value": 1000000001}),
    Sent("a class", "POST", CLASSES, {"metadata": {"name": "validation-high"}, "value": 10}),
    Sent("class changes", "PATCH", f"{CLASSES}/validation-high", {"value": 11}, MERGE),
    Sent("delete class", "DELETE", f"{CLASSES}/validation-high"),
    Sent("node taints", "POST", "/api/v1/nodes", named("validation-n", taints=[{"key": "a", "effect": "Maybe"}, {"key": "b b", "effect": "NoSchedule"}])),
    Sent("node name", "POST", "/api/v1/nodes", named("A_B")),
    Sent("namespace name", "POST", "/api/v1/namespaces", {"metadata": {"name": "a.b"}}),
    Sent("role", "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/validation/roles", {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["pods"]}]}),
    Sent("role binding", "POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/validation/rolebindings", {"metadata": {"name": "r"}, "roleRef": {"kind": "Wild"}}),
    Sent("claim", "POST", f"{N}/persistentvolumeclaims", named("c", accessModes=["Wild"])),
    Sent("event elsewhere", "POST", f"{N}/events", {"metadata": {"name": "f"}, "involvedObject": {"kind": "Pod", "namespace": "other", "name": "p"}}),
    Sent("new event incomplete", "POST", "/apis/events.k8s.io/v1/namespaces/validation/events", {"metadata": {"name": "g"}, "eventTime": "2026-01-01T00:00:00.000000Z", "regarding": {"namespace": "validation"}}),
    Sent("a pod", "POST", f"{N}/pods", pod("p")),
    Sent("pod spec is fixed", "PATCH", f"{N}/pods/p", {"spec": {"hostNetwork": True}}, MERGE),
    Sent("pod gate added", "PATCH", f"{N}/pods/p", {"spec": {"schedulingGates": [{"name": "a/b"}]}}, MERGE),
    Sent("pod container added", "PATCH", f"{N}/pods/p", {"spec": {"containers": [{"name": "d", "image": "i"}]}}, STRATEGIC),
    Sent("pod toleration added", "PATCH", f"{N}/pods/p", {"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}, STRATEGIC),
    Sent("pod uid is fixed", "PATCH", f"{N}/pods/p", {"metadata": {"uid": "x"}}, MERGE),
    Sent("pod creation is fixed", "PATCH", f"{N}/pods/p", {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}}, MERGE),
)  # fmt: skip

_STORED = ("open validation", "a deployment", "a job", "a class", "a pod", "unknown field in a container")


def _tried(sent: Sent) -> Sent:
    """As a trial, so that a body that one server lets pass is not in the way of those after it."""
    if sent.method != "POST" or sent.name in _STORED or "dryRun" in sent.path:
        return sent
    return replace(sent, path=f"{sent.path}{'&' if '?' in sent.path else '?'}dryRun=All")


CASES: tuple[Case, ...] = tuple(_tried(sent) for sent in _CASES)
