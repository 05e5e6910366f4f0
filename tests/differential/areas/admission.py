"""Built-in admission: limit ranges, quotas, Pod Security, classes."""

# One case a line.
# ruff: noqa: E501

from collections.abc import Iterator
from typing import Any

from tests.differential.areas.bodies import opened
from tests.differential.model import MERGE, Case, Sent

N = "/api/v1/namespaces/admission"
SETTLED_S = 1.5
"""How long the real server's informers take to see a policy, a quota, a range."""


def pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": list(containers) or [{"name": "c", "image": "x"}], **spec},
    }


def box(
    name: str = "c", requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **more: Any
) -> dict[str, Any]:
    given = {key: value for key, value in (("requests", requests), ("limits", limits)) if value}
    return {"name": name, "image": "x", **({"resources": given} if given else {}), **more}


def _namespace(name: str, **labels: str) -> dict[str, Any]:
    shown = {f"pod-security.kubernetes.io/{key.replace('_', '-')}": value for key, value in labels.items()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": shown}}


def _ranges(name: str, *limits: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": name}, "spec": {"limits": list(limits)}}


def _ranged(number: int, limits: tuple[dict[str, Any], ...], *boxes: tuple[dict[str, Any], ...]) -> Iterator[Case]:
    place = f"/api/v1/namespaces/admission-lr{number}"
    yield Sent(f"limits {number}: namespace", "POST", "/api/v1/namespaces", _namespace(f"admission-lr{number}"))
    yield Sent(f"limits {number}: range", "POST", f"{place}/limitranges", _ranges("r", *limits))
    for index, containers in enumerate(boxes):
        after_s = SETTLED_S if index == 0 else 0.0
        yield Sent(
            f"limits {number}: pod {index}", "POST", f"{place}/pods", pod(f"p{index}", *containers), after_s=after_s
        )


_ALL_BOXES = (
    (box(),),
    (box(requests={"cpu": "1"}),),
    (box(limits={"cpu": "1", "memory": "1Gi"}),),
    (box(requests={"cpu": "100m", "memory": "64Mi"}, limits={"cpu": "500m", "memory": "128Mi"}),),
    (box(requests={"cpu": "3"}, limits={"cpu": "4"}),),
    (box("a", requests={"cpu": "500m"}), box("b", limits={"memory": "300Mi"})),
    (box(requests={"cpu": "10m"}, limits={"cpu": "2"}),),
)
_LIMITED = (
    *_ranged(
        1,
        ({"type": "Container", "default": {"cpu": "500m", "memory": "512Mi"}, "defaultRequest": {"cpu": "250m"}},),
        *_ALL_BOXES,
    ),
    *_ranged(2, ({"type": "Container", "min": {"cpu": "200m"}},), *_ALL_BOXES),
    *_ranged(3, ({"type": "Container", "max": {"cpu": "2"}},), *_ALL_BOXES),
    *_ranged(4, ({"type": "Container", "maxLimitRequestRatio": {"cpu": "3"}},), *_ALL_BOXES),
    *_ranged(5, ({"type": "Pod", "max": {"memory": "256Mi"}},), *_ALL_BOXES),
    *_ranged(6, ({"type": "Pod", "min": {"cpu": "300m"}},), *_ALL_BOXES),
    *_ranged(7, ({"type": "Pod", "maxLimitRequestRatio": {"cpu": "2"}},), *_ALL_BOXES),
)

_CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "c"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}},
}
_CLAIMS = (
    Sent(
        "claims: range",
        "POST",
        f"{N}/limitranges",
        _ranges("claims", {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "4Gi"}}),
    ),
    Sent("claims: too large", "POST", f"{N}/persistentvolumeclaims", _CLAIM, after_s=SETTLED_S),
    Sent(
        "claims: too small",
        "POST",
        f"{N}/persistentvolumeclaims",
        {**_CLAIM, "spec": {**_CLAIM["spec"], "resources": {"requests": {"storage": "1Mi"}}}},
    ),  # type: ignore[dict-item]
    Sent("claims: range away", "DELETE", f"{N}/limitranges/claims"),
)


def _quota(name: str, hard: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": hard, **spec}}


def _counted(
    number: int, hard: dict[str, str], used: dict[str, str], *asked: tuple[str, dict[str, Any]], **spec: Any
) -> Iterator[Case]:
    """A quota whose status is written by hand, as nobody counts for a bare server, and what then comes in."""
    place, quota = f"/api/v1/namespaces/admission-q{number}", _quota("q", hard, **spec)
    yield Sent(f"quota {number}: namespace", "POST", "/api/v1/namespaces", _namespace(f"admission-q{number}"))
    yield Sent(f"quota {number}: quota", "POST", f"{place}/resourcequotas", quota)
    yield Sent(
        f"quota {number}: status",
        "PUT",
        f"{place}/resourcequotas/q/status",
        {**quota, "status": {"hard": hard, "used": used}},
        after_s=0.2,
    )
    for index, (path, body) in enumerate(asked):
        after_s = SETTLED_S if index == 0 else 0.3
        yield Sent(
            f"quota {number}: {index} {body['kind']}",
            "POST",
            path.replace("NS", f"admission-q{number}"),
            body,
            after_s=after_s,
        )
        yield Sent(f"quota {number}: {index} used", "GET", f"{place}/resourcequotas/q")


_PODS, _SERVICES, _MAPS = (
    "/api/v1/namespaces/NS/pods",
    "/api/v1/namespaces/NS/services",
    "/api/v1/namespaces/NS/configmaps",
)


def _service(name: str, kind: str = "ClusterIP", ports: int = 1) -> dict[str, Any]:
    given = [{} if kind == "ClusterIP" else {"nodePort": 30100 + 10 * ord(name) % 100 + port} for port in range(ports)]
    listed = [{"name": f"p{port}", "port": 80 + port, **given[port]} for port in range(ports)]
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"type": kind, "ports": listed}}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


_QUOTAS = (
    *_counted(1, {"pods": "2"}, {"pods": "0"}, *((_PODS, pod(f"p{n}")) for n in range(3))),
    *_counted(
        2,
        {"requests.cpu": "1", "limits.memory": "1Gi", "cpu": "1"},
        {"requests.cpu": "200m", "limits.memory": "0", "cpu": "200m"},
        (_PODS, pod("none")),
        (_PODS, pod("a", box(requests={"cpu": "500m"}, limits={"memory": "512Mi"}))),
        (_PODS, pod("b", box(requests={"cpu": "500m"}, limits={"memory": "512Mi"}))),
        (_PODS, pod("c", box("one", limits={"memory": "1Gi"}), box("two", requests={"cpu": "1"}))),
        (_PODS, pod("d", box(requests={"cpu": "300m"}, limits={"memory": "512Mi"}))),
    ),
    *_counted(
        3,
        {"count/configmaps": "2", "configmaps": "5", "services": "1"},
        {"count/configmaps": "1", "configmaps": "1", "services": "0"},
        (_MAPS, config_map("a")),
        (_MAPS, config_map("b")),
        (_SERVICES, _service("s")),
        (_SERVICES, _service("t")),
    ),
    *_counted(
        4,
        {"services.nodeports": "2", "services.loadbalancers": "1"},
        {"services.nodeports": "0", "services.loadbalancers": "0"},
        (_SERVICES, _service("a", "LoadBalancer", 2)),
        (_SERVICES, _service("b", "NodePort")),
        (_SERVICES, _service("c")),
    ),
    *_counted(
        5,
        {"pods": "1"},
        {"pods": "0"},
        (_PODS, pod("a", box(requests={"cpu": "1"}))),
        (_PODS, pod("b")),
        (_PODS, pod("c")),
        scopes=["BestEffort"],
    ),
    *_counted(
        6,
        {"pods": "0"},
        {"pods": "0"},
        (_PODS, pod("a")),
        (_PODS, pod("b", activeDeadlineSeconds=5)),
        scopes=["Terminating"],
    ),
    *_counted(
        7,
        {"pods": "0"},
        {"pods": "0"},
        (_PODS, pod("a")),
        (_PODS, pod("b", priorityClassName="system-node-critical")),
        scopeSelector={
            "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]
        },
    ),
    *_counted(
        8,
        {"requests.nvidia.com/gpu": "2"},
        {"requests.nvidia.com/gpu": "0"},
        (_PODS, pod("a", box(limits={"nvidia.com/gpu": "2"}))),
        (_PODS, pod("b", box(limits={"nvidia.com/gpu": "1"}))),
        (_PODS, pod("c")),
    ),
    Sent("quota: namespace without a count", "POST", "/api/v1/namespaces", _namespace("admission-q9")),
    Sent(
        "quota: without a count", "POST", "/api/v1/namespaces/admission-q9/resourcequotas", _quota("q", {"pods": "1"})
    ),
    Sent("quota: status unknown", "POST", "/api/v1/namespaces/admission-q9/pods", pod("p"), after_s=SETTLED_S),
)

_BAD = pod("bad", box("c", securityContext={"runAsUser": 0, "capabilities": {"add": ["NET_ADMIN", "CHOWN"]}, "seccompProfile": {"type": "Unconfined"}}, ports=[{"containerPort": 1, "hostPort": 1}]), box("d", securityContext={"runAsNonRoot": False}), hostNetwork=True, hostPID=True, volumes=[{"name": "h", "hostPath": {"path": "/x"}}])  # fmt: skip
_GOOD = pod("good", box("c", securityContext={"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}), securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})  # fmt: skip
_PARTS: dict[str, dict[str, Any]] = {
    "sysctl": {
        "securityContext": {
            "sysctls": [{"name": "kernel.msgmax", "value": "1"}, {"name": "net.ipv4.tcp_rmem", "value": "1"}]
        }
    },
    "selinux": {"securityContext": {"seLinuxOptions": {"type": "spc_t", "user": "u"}}},
    "apparmor": {"securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
    "seccomp": {"securityContext": {"seccompProfile": {"type": "Unconfined"}}},
    "root": {"securityContext": {"runAsUser": 0, "runAsNonRoot": False}},
    "volumes": {
        "volumes": [
            {"name": "a", "nfs": {"server": "s", "path": "/p"}},
            {"name": "b", "hostPath": {"path": "/p"}},
            {"name": "c", "emptyDir": {}},
        ]
    },
    "windows": {"os": {"name": "windows"}},
    "probe": {"containers": [box(livenessProbe={"httpGet": {"host": "h", "port": 1}})]},
    "ports": {
        "containers": [
            box("a", ports=[{"containerPort": 1, "hostPort": 8}]),
            box("b", ports=[{"containerPort": 1, "hostPort": 9}]),
        ]
    },
}
_SECURITY = (
    *(
        Sent(
            f"security: namespace {level}",
            "POST",
            "/api/v1/namespaces",
            _namespace(f"admission-{level}", enforce=level),
        )
        for level in ("baseline", "restricted")
    ),
    Sent(
        "security: namespace that warns",
        "POST",
        "/api/v1/namespaces",
        _namespace("admission-warns", warn="restricted", audit="baseline", warn_version="v1.30"),
    ),
    *(
        Sent(
            f"security: {made['metadata']['name']} pod in {level}",
            "POST",
            f"/api/v1/namespaces/admission-{level}/pods",
            made,
        )
        for level in ("baseline", "restricted", "warns")
        for made in (_BAD, _GOOD, pod("plain"), *(pod(name, **part) for name, part in _PARTS.items()))
    ),
    *(
        Sent(
            f"security: deployment in {level}",
            "POST",
            f"/apis/apps/v1/namespaces/admission-{level}/deployments",
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "d"},
                "spec": {
                    "selector": {"matchLabels": {"a": "b"}},
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [box()]}},
                },
            },
        )
        for level in ("restricted", "warns")
    ),
    Sent("security: unknown level", "POST", "/api/v1/namespaces", _namespace("admission-odd", enforce="strict")),
    Sent(
        "security: unknown version",
        "POST",
        "/api/v1/namespaces",
        _namespace("admission-odd", enforce="baseline", enforce_version="1.2", warn="x"),
    ),
    Sent(
        "security: enforce what pods violate",
        "PATCH",
        "/api/v1/namespaces/admission-baseline",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}},
        content_type=MERGE,
    ),
    Sent(
        "security: relax",
        "PATCH",
        "/api/v1/namespaces/admission-baseline",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
        content_type=MERGE,
    ),
    Sent(
        "security: label of a pod that violates",
        "PATCH",
        "/api/v1/namespaces/admission-warns/pods/plain",
        {"metadata": {"labels": {"a": "b"}}},
        content_type=MERGE,
    ),
    Sent("security: dry run", "POST", "/api/v1/namespaces/admission-restricted/pods?dryRun=All", pod("dry")),
)

_CLASS = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "admission"},
    "handler": "h",
    "overhead": {"podFixed": {"cpu": "100m"}},
    "scheduling": {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]},
}
_CLASSES = (
    Sent("runtime class", "POST", "/apis/node.k8s.io/v1/runtimeclasses", _CLASS),
    Sent("runtime class: pod", "POST", f"{N}/pods", pod("rc", runtimeClassName="admission"), after_s=SETTLED_S),
    Sent("runtime class: missing", "POST", f"{N}/pods", pod("rc2", runtimeClassName="none")),
    Sent("runtime class: other overhead", "POST", f"{N}/pods", pod("rc3", runtimeClassName="admission", overhead={"cpu": "1"})),
    Sent("runtime class: other selector", "POST", f"{N}/pods", pod("rc4", runtimeClassName="admission", nodeSelector={"a": "c"})),
    Sent("overhead without a class", "POST", f"{N}/pods", pod("rc5", overhead={"cpu": "1"})),
    Sent("empty overhead without a class", "POST", f"{N}/pods", pod("rc6", overhead={})),
    Sent("empty overhead of a template", "POST", f"{N}/podtemplates", {"metadata": {"name": "rc6"}, "template": pod("rc6", overhead={})}),
    Sent("runtime class: empty overhead", "POST", f"{N}/pods", pod("rc7", runtimeClassName="admission", overhead={})),
    Sent("priority: default class", "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "admission-default"}, "value": 7, "globalDefault": True}),
    Sent("priority: second default class", "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "admission-default2"}, "value": 8, "globalDefault": True}, after_s=SETTLED_S),
    Sent("priority: pod of the default", "POST", f"{N}/pods", pod("pri")),
    Sent("priority: default away", "DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/admission-default"),
    Sent("priority: no class", "POST", f"{N}/pods", {**pod("pri2", priorityClassName="nope"), "metadata": {"generateName": "gen-"}}),
    Sent("ingress class", "POST", "/apis/networking.k8s.io/v1/ingressclasses", {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "admission", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}, "spec": {"controller": "a.b/c"}}),
    Sent("ingress of the default class", "POST", "/apis/networking.k8s.io/v1/namespaces/admission/ingresses", {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}, after_s=SETTLED_S),
    Sent("ingress class away", "DELETE", "/apis/networking.k8s.io/v1/ingressclasses/admission"),
    Sent("protected namespace, dry", "DELETE", "/api/v1/namespaces/kube-system?dryRun=All"),
    Sent("protected namespace", "DELETE", "/api/v1/namespaces/kube-public"),
    Sent("missing namespace", "POST", "/api/v1/namespaces/admission-none/configmaps", config_map("a")),
)  # fmt: skip

_EXTENDED = (
    *({f"{before}example.com/x": amount} for before in ("", "limits.", "requests.") for amount in ("1500m", "2")),
    {"count/pods": "1500m"},
)
_TOLERATED: tuple[dict[str, str], ...] = (
    {"key": "a", "operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Equal", "value": "b"},
    {"operator": "Exists", "value": "b"},
    {"key": "a b", "operator": "Other", "effect": "PreferNoSchedule"},
    {"operator": "Equal", "value": "b c"},
    {},
)


def _tolerant(name: str, toleration: dict[str, str], *, alternative: bool) -> dict[str, Any]:
    wanted = {"deviceClassName": "x", "tolerations": [toleration]}
    request = {"name": "r", **({"firstAvailable": [{"name": "s", **wanted}]} if alternative else {"exactly": wanted})}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}}


_AMOUNTS = (
    *(
        Sent(f"quota: amount {n}", "POST", f"{N}/resourcequotas", _quota(f"amount-{n}", hard))
        for n, hard in enumerate(_EXTENDED)
    ),
    *(
        Sent(f"claim: toleration {n}", "POST", "/apis/resource.k8s.io/v1/namespaces/admission/resourceclaims", _tolerant(f"c{n}", given, alternative=n % 2 == 1))
        for n, given in enumerate(_TOLERATED)
    ),
)  # fmt: skip

CASES: tuple[Case, ...] = (
    opened("admission"),
    *_LIMITED,
    *_CLAIMS,
    *_QUOTAS,
    *_SECURITY,
    *_CLASSES,
    *_AMOUNTS,
)
