"""Admission: limit ranges, quotas, Pod Security, classes, policies in CEL."""

# One case a line.
# ruff: noqa: E501

from collections.abc import Iterator
from typing import Any

from tests.differential.areas.bodies import opened
from tests.differential.model import APPLY, MERGE, Case, Sent

N = "/api/v1/namespaces/admission"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_SETTLED_S = 1.5
"""How long the real server's informers take to see a policy, a quota, a range."""


def _pod(name: str, *containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": list(containers) or [{"name": "c", "image": "x"}], **spec},
    }


def _box(
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
        after_s = _SETTLED_S if index == 0 else 0.0
        yield Sent(
            f"limits {number}: pod {index}", "POST", f"{place}/pods", _pod(f"p{index}", *containers), after_s=after_s
        )


_ALL_BOXES = (
    (_box(),),
    (_box(requests={"cpu": "1"}),),
    (_box(limits={"cpu": "1", "memory": "1Gi"}),),
    (_box(requests={"cpu": "100m", "memory": "64Mi"}, limits={"cpu": "500m", "memory": "128Mi"}),),
    (_box(requests={"cpu": "3"}, limits={"cpu": "4"}),),
    (_box("a", requests={"cpu": "500m"}), _box("b", limits={"memory": "300Mi"})),
    (_box(requests={"cpu": "10m"}, limits={"cpu": "2"}),),
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
    Sent("claims: too large", "POST", f"{N}/persistentvolumeclaims", _CLAIM, after_s=_SETTLED_S),
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
        after_s = _SETTLED_S if index == 0 else 0.3
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


def _map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


_QUOTAS = (
    *_counted(1, {"pods": "2"}, {"pods": "0"}, *((_PODS, _pod(f"p{n}")) for n in range(3))),
    *_counted(
        2,
        {"requests.cpu": "1", "limits.memory": "1Gi", "cpu": "1"},
        {"requests.cpu": "200m", "limits.memory": "0", "cpu": "200m"},
        (_PODS, _pod("none")),
        (_PODS, _pod("a", _box(requests={"cpu": "500m"}, limits={"memory": "512Mi"}))),
        (_PODS, _pod("b", _box(requests={"cpu": "500m"}, limits={"memory": "512Mi"}))),
        (_PODS, _pod("c", _box("one", limits={"memory": "1Gi"}), _box("two", requests={"cpu": "1"}))),
        (_PODS, _pod("d", _box(requests={"cpu": "300m"}, limits={"memory": "512Mi"}))),
    ),
    *_counted(
        3,
        {"count/configmaps": "2", "configmaps": "5", "services": "1"},
        {"count/configmaps": "1", "configmaps": "1", "services": "0"},
        (_MAPS, _map("a")),
        (_MAPS, _map("b")),
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
        (_PODS, _pod("a", _box(requests={"cpu": "1"}))),
        (_PODS, _pod("b")),
        (_PODS, _pod("c")),
        scopes=["BestEffort"],
    ),
    *_counted(
        6,
        {"pods": "0"},
        {"pods": "0"},
        (_PODS, _pod("a")),
        (_PODS, _pod("b", activeDeadlineSeconds=5)),
        scopes=["Terminating"],
    ),
    *_counted(
        7,
        {"pods": "0"},
        {"pods": "0"},
        (_PODS, _pod("a")),
        (_PODS, _pod("b", priorityClassName="system-node-critical")),
        scopeSelector={
            "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]
        },
    ),
    *_counted(
        8,
        {"requests.nvidia.com/gpu": "2"},
        {"requests.nvidia.com/gpu": "0"},
        (_PODS, _pod("a", _box(limits={"nvidia.com/gpu": "2"}))),
        (_PODS, _pod("b", _box(limits={"nvidia.com/gpu": "1"}))),
        (_PODS, _pod("c")),
    ),
    Sent("quota: namespace without a count", "POST", "/api/v1/namespaces", _namespace("admission-q9")),
    Sent(
        "quota: without a count", "POST", "/api/v1/namespaces/admission-q9/resourcequotas", _quota("q", {"pods": "1"})
    ),
    Sent("quota: status unknown", "POST", "/api/v1/namespaces/admission-q9/pods", _pod("p"), after_s=_SETTLED_S),
)

_BAD = _pod("bad", _box("c", securityContext={"runAsUser": 0, "capabilities": {"add": ["NET_ADMIN", "CHOWN"]}, "seccompProfile": {"type": "Unconfined"}}, ports=[{"containerPort": 1, "hostPort": 1}]), _box("d", securityContext={"runAsNonRoot": False}), hostNetwork=True, hostPID=True, volumes=[{"name": "h", "hostPath": {"path": "/x"}}])  # fmt: skip
_GOOD = _pod("good", _box("c", securityContext={"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}), securityContext={"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}})  # fmt: skip
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
    "probe": {"containers": [_box(livenessProbe={"httpGet": {"host": "h", "port": 1}})]},
    "ports": {
        "containers": [
            _box("a", ports=[{"containerPort": 1, "hostPort": 8}]),
            _box("b", ports=[{"containerPort": 1, "hostPort": 9}]),
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
            f"security: {pod['metadata']['name']} pod in {level}",
            "POST",
            f"/api/v1/namespaces/admission-{level}/pods",
            pod,
        )
        for level in ("baseline", "restricted", "warns")
        for pod in (_BAD, _GOOD, _pod("plain"), *(_pod(name, **part) for name, part in _PARTS.items()))
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
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_box()]}},
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
    Sent("security: dry run", "POST", "/api/v1/namespaces/admission-restricted/pods?dryRun=All", _pod("dry")),
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
    Sent("runtime class: pod", "POST", f"{N}/pods", _pod("rc", runtimeClassName="admission"), after_s=_SETTLED_S),
    Sent("runtime class: missing", "POST", f"{N}/pods", _pod("rc2", runtimeClassName="none")),
    Sent("runtime class: other overhead", "POST", f"{N}/pods", _pod("rc3", runtimeClassName="admission", overhead={"cpu": "1"})),
    Sent("runtime class: other selector", "POST", f"{N}/pods", _pod("rc4", runtimeClassName="admission", nodeSelector={"a": "c"})),
    Sent("overhead without a class", "POST", f"{N}/pods", _pod("rc5", overhead={"cpu": "1"})),
    Sent("priority: default class", "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "admission-default"}, "value": 7, "globalDefault": True}),
    Sent("priority: second default class", "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "admission-default2"}, "value": 8, "globalDefault": True}, after_s=_SETTLED_S),
    Sent("priority: pod of the default", "POST", f"{N}/pods", _pod("pri")),
    Sent("priority: default away", "DELETE", "/apis/scheduling.k8s.io/v1/priorityclasses/admission-default"),
    Sent("priority: no class", "POST", f"{N}/pods", {**_pod("pri2", priorityClassName="nope"), "metadata": {"generateName": "gen-"}}),
    Sent("ingress class", "POST", "/apis/networking.k8s.io/v1/ingressclasses", {"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": "admission", "annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}, "spec": {"controller": "a.b/c"}}),
    Sent("ingress of the default class", "POST", "/apis/networking.k8s.io/v1/namespaces/admission/ingresses", {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}, after_s=_SETTLED_S),
    Sent("ingress class away", "DELETE", "/apis/networking.k8s.io/v1/ingressclasses/admission"),
    Sent("protected namespace, dry", "DELETE", "/api/v1/namespaces/kube-system?dryRun=All"),
    Sent("protected namespace", "DELETE", "/api/v1/namespaces/kube-public"),
    Sent("missing namespace", "POST", "/api/v1/namespaces/admission-none/configmaps", _map("a")),
)  # fmt: skip


def policy(
    name: str, *validations: dict[str, Any], rules: list[dict[str, Any]] | None = None, **spec: Any
) -> dict[str, Any]:
    constraints = {
        "resourceRules": rules
        or [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "admission"}},
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {"matchConstraints": constraints, "validations": list(validations), **spec},
    }


def binding(name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"], **spec},
    }


_BROKEN = (
    "object.data.x == 1 &&", "foo", "1 + 'a' == 2", "object.data.size()", "'x'", "", "object.foo.bar(1)", "request.foo == 1",
    "variables.x == 1", "params.x == 1", "namespaceObject.x == 1", "authorizer.foo()", "has(object)", "self.x",
    "[1].all(x, y)", "1 == 'a'", "foo(1)", "request.userInfo.x == 1", "!1", "size(1) == 2", "'a'.size() == 'b'",
)  # fmt: skip
_INVALID = (
    *(Sent(f"policy refused: {source}", "POST", POLICIES, policy("bad", {"expression": source})) for source in _BROKEN),
    Sent("policy refused: message", "POST", POLICIES, policy("bad", {"expression": "true", "messageExpression": "1"})),
    Sent("policy refused: nothing to do", "POST", POLICIES, policy("bad", failurePolicy="x")),
    Sent(
        "policy refused: many faults",
        "POST",
        POLICIES,
        policy(
            "bad",
            {"expression": "true", "reason": "Foo", "message": " \n"},
            {"message": "m"},
            matchConditions=[
                {"name": "", "expression": "1"},
                {"name": "a b", "expression": "foo"},
                {"name": "c", "expression": ""},
            ],
            variables=[{"name": "x-y", "expression": "1"}, {"name": "ok", "expression": "foo"}],
            auditAnnotations=[{"key": "", "valueExpression": ""}, {"key": "a", "valueExpression": "1"}],
            paramKind={"apiVersion": "", "kind": ""},
        ),
    ),
    Sent(
        "policy refused: rules",
        "POST",
        POLICIES,
        policy(
            "bad",
            {"expression": "true"},
            rules=[
                {
                    "apiGroups": [],
                    "apiVersions": ["*", "v1"],
                    "operations": ["*", "CREATE"],
                    "resources": ["*", "pods", "*/x"],
                    "scope": "x",
                }
            ],
        ),
    ),
    Sent(
        "binding refused: actions",
        "POST",
        BINDINGS,
        binding(
            "bad",
            validationActions=["Deny", "Warn", "Foo", "Audit", "Audit"],
            policyName="",
            paramRef={"name": "x", "selector": {}},
        ),
    ),
    Sent(
        "binding refused: nothing",
        "POST",
        BINDINGS,
        binding("bad", validationActions=[], policyName="A_b", paramRef={}),
    ),
)

_MAPS_HERE = f"{N}/configmaps"


def _tried(title: str, made: dict[str, Any], bound: dict[str, Any], *asked: Case) -> Iterator[Case]:
    """A policy with its binding, requests that it is about, and its end."""
    name = made["metadata"]["name"]
    yield Sent(f"{title}: policy", "POST", POLICIES, made)
    yield Sent(f"{title}: binding", "POST", BINDINGS, bound)
    for index, case in enumerate(asked):
        assert isinstance(case, Sent)
        yield Sent(
            f"{title}: {case.name}",
            case.method,
            case.path,
            case.body,
            case.content_type,
            after_s=_SETTLED_S if index == 0 else 0.0,
            headers=case.headers,
        )
    yield Sent(f"{title}: binding away", "DELETE", f"{BINDINGS}/{bound['metadata']['name']}")
    yield Sent(f"{title}: policy away", "DELETE", f"{POLICIES}/{name}")


_ENDS = "object.metadata.name.endsWith('x')"
_JANE = {"Impersonate-User": "jane", "Impersonate-Group": "system:masters"}
_EVALUATED = (
    "object.data.a == 'b'", "has(object.data) && 'a' in object.data", "object.data.nope == 'b'", "object.data.?nope.orValue('z') == 'z'",
    "size(object.data) == 1 && object.data.all(k, object.data[k] != '')", "request.operation == 'CREATE' && request.name == 'm'",
    "request.userInfo.username == 'admin'", "'system:masters' in request.userInfo.groups", "request.kind.kind == 'ConfigMap' && request.resource.resource == 'configmaps'",
    "namespaceObject.metadata.name == 'admission'", "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'admission'", "oldObject == null", "authorizer.group('').resource('pods').namespace('admission').check('create').allowed()",
    "authorizer.requestResource.check('create').allowed()", "!authorizer.serviceAccount('admission', 'default').group('').resource('pods').check('list').allowed()", "authorizer.path('/healthz').check('get').allowed()",
    "object.data.a.matches('^[a-z]$')", "object.data.a.upperAscii() == 'B'", "quantity('1Gi').isGreaterThan(quantity('1Mi'))", "[1, 2, 3].sum() == 6", "['a', 'b'].join('-') == 'a-b'",
    "1 / (size(object.data) - 1) == 1", "[1, 2][5] == 1", "int(object.data.a) == 1", "object.data.a == 'zzz'", "object.metadata.foo.bar == 1", "object.data.a.size() > 5", "request.dryRun == false", "string(1) == '1'", "duration('1h') > duration('1m')",
    "timestamp('2024-01-01T00:00:00Z').getFullYear() == 2024", "ip('10.0.0.1').family() == 4", "cidr('10.0.0.0/8').containsIP('10.1.2.3')", "url('https://a.b:80/c').getHostname() == 'a.b'", "'%s-%d'.format(['a', 1]) == 'a-1'",
    "type(object.data) == map", "dyn(1) == 1.0", "object.data.exists(k, k == 'a')", "object.data.map(k, k) == ['a']", "request.options.kind == 'CreateOptions'", "!has(object.immutable)", "isSemver('1.2.3')", "sets.contains([1, 2], [1])",
)  # fmt: skip
_POLICIES = (
    *(
        case
        for index, source in enumerate(_EVALUATED)
        for case in _tried(f"expression {index}", policy(f"e{index}", {"expression": source}), binding(f"e{index}"), Sent(source, "POST", f"{_MAPS_HERE}?dryRun=All", _map("m", a="b")))
    ),
    *_tried(
        "message", policy("message", {"expression": _ENDS, "message": "must end in x"}, {"expression": _ENDS, "messageExpression": "'not ' + object.metadata.name", "reason": "Forbidden"}), binding("message"),
        Sent("refused", "POST", _MAPS_HERE, _map("a")), Sent("passed", "POST", _MAPS_HERE, _map("ax")), Sent("applied", "PATCH", f"{_MAPS_HERE}/b?fieldManager=me", _map("b"), APPLY), Sent("patched", "PATCH", f"{_MAPS_HERE}/ax", {"data": {"a": "b"}}, MERGE), Sent("deleted", "DELETE", f"{_MAPS_HERE}/ax"),
    ),
    *_tried("reason", policy("reason", {"expression": "false", "messageExpression": "'not ' + object.metadata.name", "reason": "Forbidden"}), binding("reason"), Sent("refused", "POST", _MAPS_HERE, _map("a"))),
    *_tried("too large", policy("large", {"expression": "false", "message": "no", "reason": "RequestEntityTooLarge"}), binding("large"), Sent("refused", "POST", _MAPS_HERE, _map("a"))),
    *_tried("bad message", policy("badmessage", {"expression": "false", "messageExpression": "object.nope"}), binding("badmessage"), Sent("refused", "POST", _MAPS_HERE, _map("a"))),
    *_tried("warn", policy("warn", {"expression": "false", "message": "hm"}, {"expression": "object.nope == 1"}), binding("warn", validationActions=["Warn", "Audit"]), Sent("warned", "POST", f"{_MAPS_HERE}?dryRun=All", _map("w"))),
    *_tried("audit", policy("audit", {"expression": "false", "message": "hm"}), binding("audit", validationActions=["Audit"]), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", _map("w"))),
    *_tried("ignore", policy("ignore", {"expression": "object.nope == 1"}, failurePolicy="Ignore"), binding("ignore"), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", _map("w"))),
    *_tried("variables", policy("variables", {"expression": "variables.short && variables.bad == 1"}, variables=[{"name": "short", "expression": "size(object.metadata.name) < 5"}, {"name": "bad", "expression": "object.nope"}]), binding("variables"), Sent("refused", "POST", _MAPS_HERE, _map("toolong")), Sent("failed", "POST", _MAPS_HERE, _map("a"))),
    *_tried("conditions", policy("conditions", {"expression": "false"}, matchConditions=[{"name": "skip", "expression": "object.metadata.name != 'skipped'"}, {"name": "broken", "expression": "!has(object.data.broken) || object.nope == 1"}]), binding("conditions"), Sent("refused", "POST", _MAPS_HERE, _map("a")), Sent("skipped", "POST", f"{_MAPS_HERE}?dryRun=All", _map("skipped")), Sent("broken", "POST", _MAPS_HERE, _map("b", broken="x"))),
    *_tried("selected", policy("selected", {"expression": "false"}), binding("selected", matchResources={"objectSelector": {"matchLabels": {"a": "b"}}}), Sent("refused", "POST", _MAPS_HERE, {**_map("a"), "metadata": {"name": "a", "labels": {"a": "b"}}}), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", _map("a"))),
    *_tried("user", policy("user", {"expression": "request.userInfo.username != 'jane'"}), binding("user"), Sent("refused", "POST", _MAPS_HERE, _map("a"), headers=_JANE), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", _map("a"))),
    *_tried("update", policy("update", {"expression": "oldObject == null || object.data.a == oldObject.data.a", "message": "keep a"}), binding("update"), Sent("created", "POST", _MAPS_HERE, _map("up", a="b")), Sent("changed", "PATCH", f"{_MAPS_HERE}/up", {"data": {"a": "c"}}, MERGE), Sent("kept", "PATCH", f"{_MAPS_HERE}/up", {"data": {"b": "c"}}, MERGE), Sent("deletion fails", "DELETE", f"{_MAPS_HERE}/up")),
    Sent("update: clear", "DELETE", f"{_MAPS_HERE}/up", after_s=_SETTLED_S),
    *_tried("scale", policy("scale", {"expression": "object.spec.replicas <= 2", "messageExpression": "'not ' + string(object.spec.replicas)"}, rules=[{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments", "deployments/scale"]}]), binding("scale"), Sent("created", "POST", "/apis/apps/v1/namespaces/admission/deployments", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "s"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [_box()]}}}}), Sent("scaled too far", "PATCH", "/apis/apps/v1/namespaces/admission/deployments/s/scale", {"spec": {"replicas": 3}}, MERGE), Sent("scaled", "PATCH", "/apis/apps/v1/namespaces/admission/deployments/s/scale", {"spec": {"replicas": 2}}, MERGE)),
    *_tried("evict", policy("evict", {"expression": "false", "message": "stay"}, rules=[{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods/eviction", "pods/binding"]}]), binding("evict"), Sent("created", "POST", f"{N}/pods", _pod("ev")), Sent("evicted", "POST", f"{N}/pods/ev/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "ev"}}), Sent("bound", "POST", f"{N}/pods/ev/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "ev"}, "target": {"kind": "Node", "name": "n"}}), Sent("deleted", "DELETE", f"{N}/pods/ev")),
)  # fmt: skip

_PARAMS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
_MOST = {
    "expression": "!has(params.data) || size(object.data) <= int(params.data.most)",
    "messageExpression": "'at most ' + params.data.most",
}
_PARAMETERS = (
    Sent("parameters: one", "POST", _MAPS_HERE, {**_map("limit", most="1"), "metadata": {"name": "limit", "labels": {"limits": "yes"}}}),
    *_tried("by name", policy("byname", _MOST, **_PARAMS), binding("byname", paramRef={"name": "limit", "namespace": "admission", "parameterNotFoundAction": "Deny"}), Sent("refused", "POST", _MAPS_HERE, _map("p", a="1", b="2")), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", _map("p", a="1"))),
    *_tried("by label", policy("bylabel", _MOST, **_PARAMS), binding("bylabel", paramRef={"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"}), Sent("refused", "POST", _MAPS_HERE, _map("p", a="1", b="2"))),
    *_tried("not found, denied", policy("nfd", _MOST, **_PARAMS), binding("nfd", paramRef={"name": "none", "namespace": "admission", "parameterNotFoundAction": "Deny"}), Sent("refused", "POST", _MAPS_HERE, _map("p", a="1"))),
    *_tried("not found, allowed", policy("nfa", _MOST, **_PARAMS), binding("nfa", paramRef={"name": "none", "namespace": "admission", "parameterNotFoundAction": "Allow"}), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", _map("p", a="1", b="2"))),
    *_tried("no reference", policy("nor", {"expression": "params == null"}, **_PARAMS), binding("nor"), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", _map("p"))),
    *_tried("unknown kind", policy("unk", {"expression": "true"}, paramKind={"apiVersion": "a.b/v1", "kind": "Nope"}), binding("unk", paramRef={"name": "x", "parameterNotFoundAction": "Deny"}), Sent("refused", "POST", _MAPS_HERE, _map("p"))),
)  # fmt: skip


def _webhook(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "admission"}},
        **more,
    }


def _configuration(*webhooks: dict[str, Any], kind: str = "ValidatingWebhookConfiguration") -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "admission"},
        "webhooks": list(webhooks),
    }


_HOOKS = (
    *(
        Sent(f"webhook refused: {title}", "POST", WEBHOOKS, _configuration(_webhook(**{"name": "a.b.c", **more})))
        for title, more in (
            ("name", {"name": "a"}), ("no name", {"name": ""}), ("effects", {"sideEffects": "Some"}), ("versions", {"admissionReviewVersions": ["v9"]}), ("timeout", {"timeoutSeconds": 31}), ("http", {"clientConfig": {"url": "http://a/b"}}), ("both", {"clientConfig": {"url": "https://a/b", "service": {"name": "s", "namespace": "n"}}}), ("neither", {"clientConfig": {}}), ("service", {"clientConfig": {"service": {"name": "", "namespace": "", "port": 0, "path": "x"}}}), ("condition", {"matchConditions": [{"name": "a", "expression": "foo"}]}), ("policy", {"failurePolicy": "Perhaps", "matchPolicy": "Roughly"}), ("user", {"clientConfig": {"url": "https://u@a/b?c#d"}}),
        )
    ),
    Sent("webhook refused: twice", "POST", WEBHOOKS, _configuration(_webhook("a.b.c"), _webhook("a.b.c"))),
    Sent("webhook: nobody there", "POST", WEBHOOKS, _configuration(_webhook("a.b.c"))),
    Sent("webhook: refused", "POST", f"{_MAPS_HERE}?dryRun=All", _map("h"), after_s=_SETTLED_S),
    Sent("webhook: away", "DELETE", f"{WEBHOOKS}/admission"),
    Sent("webhook: ignored", "POST", WEBHOOKS, _configuration(_webhook("a.b.c", failurePolicy="Ignore"))),
    Sent("webhook: passed", "POST", f"{_MAPS_HERE}?dryRun=All", _map("h"), after_s=_SETTLED_S),
    Sent("webhook: ignored away", "DELETE", f"{WEBHOOKS}/admission"),
    Sent("webhook: conditions", "POST", WEBHOOKS, _configuration(_webhook("a.b.c", matchConditions=[{"name": "never", "expression": "object.metadata.name == 'never'"}, {"name": "broken", "expression": "!has(object.data) || object.nope == 1"}]))),
    Sent("webhook: unmet", "POST", f"{_MAPS_HERE}?dryRun=All", _map("h"), after_s=_SETTLED_S),
    Sent("webhook: condition fails", "POST", f"{_MAPS_HERE}?dryRun=All", _map("never", a="b")),
    Sent("webhook: conditions away", "DELETE", f"{WEBHOOKS}/admission"),
    Sent("webhook: dry run with effects", "POST", WEBHOOKS, _configuration(_webhook("a.b.c", clientConfig={"service": {"namespace": "admission", "name": "none"}}))),
    Sent("webhook: no service", "POST", f"{_MAPS_HERE}?dryRun=All", _map("h"), after_s=_SETTLED_S),
    Sent("webhook: service away", "DELETE", f"{WEBHOOKS}/admission"),
    Sent("mutating webhook: nobody there", "POST", MUTATING, _configuration(_webhook("a.b.c"), kind="MutatingWebhookConfiguration")),
    Sent("mutating webhook: refused", "POST", f"{_MAPS_HERE}?dryRun=All", _map("h"), after_s=_SETTLED_S),
    Sent("mutating webhook: away", "DELETE", f"{MUTATING}/admission"),
)  # fmt: skip

CASES: tuple[Case, ...] = (
    opened("admission"),
    *_LIMITED,
    *_CLAIMS,
    *_QUOTAS,
    *_SECURITY,
    *_CLASSES,
    *_INVALID,
    *_POLICIES,
    *_PARAMETERS,
    *_HOOKS,
)
