"""Policies in CEL, and webhooks that are not there."""

# One case a line.
# ruff: noqa: E501

from collections.abc import Iterator
from typing import Any

from tests.differential.areas.admission import SETTLED_S, box, config_map, pod
from tests.differential.areas.bodies import opened
from tests.differential.model import APPLY, MERGE, Case, Sent

N = "/api/v1/namespaces/policies"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"


def policy(
    name: str, *validations: dict[str, Any], rules: list[dict[str, Any]] | None = None, **spec: Any
) -> dict[str, Any]:
    constraints = {
        "resourceRules": rules
        or [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "policies"}},
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
    "cel.bind(n, 1, n == 1)", "[1].reverse() == [1]", "math.greatest(1, 2) == 2", "1 == 1.0", "[1, 'a'].size() == 2", "object.spec", "object.spec.x", "dyn(true)", "true ? object.x : object.y",
    "authorizer.path('/x').allowed()", "authorizer.group(1).resource('x').check('get').allowed()", "authorizer.requestResource.x == 1", "authorizer == 1", "namespaceObject.spec.x == 1", "request.options.x.y", "request.userInfo.extra.a == 'b'",
    "oldObject.x && 1", "'a'.matches('(')", "duration('x') == duration('1s')", "timestamp('x') == timestamp('y')", "optional.of(1).value() == 'a'", "has(request.x)", "Object{a: 1} == null", "ip('1.2.3.4') == '1.2.3.4'", "type(1) == 1",
    "request.kind == request.resource", "[1, 2].map(x, x + 'a') == []", "object.all(k, k)", "1 in 2", "'a' in request.userInfo.groups && 1 in request.userInfo.groups", "string(object) + 1 == 'a'",
    "'%d'.format(['a']) == 'a'", "'%s %s'.format(['a']) == 'a'", "'%s'.format(['a', 'b']) == 'a'", "'%q'.format(['a']) == 'a'", "'%f'.format([1]) == 'a'", "'%x'.format([1.5]) == 'a'", "'%b'.format(['a']) == 'a'", "'%'.format(['a']) == 'a'", "'%e'.format([true]) == ''", "'%o'.format([true]) == ''",
    "'%s'.format([quantity('1')]) == ''", "'%.s'.format(['a']) == ''", "quantity('1').x == 1", "authorizer.x == 1",
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
            after_s=SETTLED_S if index == 0 else 0.0,
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
    "namespaceObject.metadata.name == 'policies'", "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == 'policies'", "oldObject == null", "authorizer.group('').resource('pods').namespace('policies').check('create').allowed()",
    "authorizer.requestResource.check('create').allowed()", "!authorizer.serviceAccount('policies', 'default').group('').resource('pods').check('list').allowed()", "authorizer.path('/healthz').check('get').allowed()",
    "object.data.a.matches('^[a-z]$')", "object.data.a.upperAscii() == 'B'", "quantity('1Gi').isGreaterThan(quantity('1Mi'))", "[1, 2, 3].sum() == 6", "['a', 'b'].join('-') == 'a-b'",
    "1 / (size(object.data) - 1) == 1", "[1, 2][5] == 1", "int(object.data.a) == 1", "object.data.a == 'zzz'", "object.metadata.foo.bar == 1", "object.data.a.size() > 5", "request.dryRun == false", "string(1) == '1'", "duration('1h') > duration('1m')",
    "timestamp('2024-01-01T00:00:00Z').getFullYear() == 2024", "ip('10.0.0.1').family() == 4", "cidr('10.0.0.0/8').containsIP('10.1.2.3')", "url('https://a.b:80/c').getHostname() == 'a.b'", "'%s-%d'.format(['a', 1]) == 'a-1'",
    "type(object.data) == map", "dyn(1) == 1.0", "object.data.exists(k, k == 'a')", "object.data.map(k, k) == ['a']", "request.options.kind == 'CreateOptions'", "!has(object.immutable)", "isSemver('1.2.3')", "sets.contains([1, 2], [1])",
    "has(object.data.a.b)", "object.data.a.b == 1", "has(object.metadata.managedFields.x)", "object.metadata.managedFields.x == 1", "uint(object.data.a) == 1u", "double(object.data.a) == 1.0", "bool(object.data.a)", "duration(object.data.a) == duration('1s')", "timestamp(object.data.a) == timestamp(0)",
    "object.data.a.matches(object.data.a + '(')", "quantity(object.data.a) == quantity('1')", "ip(object.data.a).family() == 4", "cidr(object.data.a).prefixLength() == 4", "url(object.data.a).getHost() == 'a'", "semver(object.data.a).major() == 1", "object.data.a + 1 == 'b1'", "object.data.a < 1", "object.data[1] == 'b'", "object.data.a[0] == 'b'",
    "optional.of(2).optMap(x, x * 2).value() == 4", "object.?data.?a.optMap(x, x + 'c') == optional.of('bc')", "optional.none().value() == 1", "object.?data.nope.hasValue()", "object.data[?'a'].orValue('x') == 'b'", "{'a': 1, 'a': 2}.size() == 1", "{'a': 1}.transformMap(k, v, v + 1) == {'a': 2}", "[1, 2].transformList(i, v, i * v) == [0, 2]",
    "authorizer.requestResource.check('a').allowed() && authorizer.requestResource.check('b').allowed() && authorizer.requestResource.check('c').allowed()", "[1, 2, 3, 4].all(x, authorizer.requestResource.check('get').allowed())", "authorizer.path('').check('get').allowed()", "authorizer.group('apps').resource('deployments').namespace('x').name('y').subresource('scale').check('update').reason() == ''",
    "authorizer.serviceAccount('Bad_', 'x').group('').resource('pods').check('list').allowed()", "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c').check('list').allowed()", "9223372036854775807 + int('1') == 0", "1u - uint('2') == 0u", "-9223372036854775808 / int('-1') == 0", "5 % int('0') == 0",
    "'abc'.substring(2, 1) == ''", "'abc'.charAt(9) == ''", "'a'.indexOf('b', 5) == 1", "[].max() == 1", "[1, 2].exists_one(x, x > 1)", "[1, 2].all(x, 1 / (x - 1) == 1)", "[1, 2].exists(x, 1 / (x - 1) == 1)", "'%s'.format([object.data]) == 'x'", "string(1.0) == '1'", "string(1e30) == '1e+30'", "string(timestamp('2024-01-01T00:00:00.5Z')) == '2024-01-01T00:00:00.5Z'",
    "request.namespace == 'policies' && request.subResource == ''", "request.name.size() == 1 && request.resource.group == ''", "namespaceObject.status.phase == 'x'", "object.metadata.namespace == 'policies'", "object.kind == 'ConfigMap'", "type(object.data.a)", "int(object.metadata.name) == 1", "lists.range(1) == 1", "format.dns1123Label().validate('A_').hasValue()", "isIP('::ffff:1.2.3.4')", "'a-b'.split('-') == ['a', 'b']", "b'a' == bytes('a')", "timestamp('2024-01-01T00:00:00Z') - timestamp('2023-01-01T00:00:00Z') == duration('8760h')",
)  # fmt: skip


def _all_tried() -> Iterator[Case]:
    """Each expression in a policy of its own, about the objects with its number; all are there before one is asked.

    The real server compiles them together, in a moment that depends on its load: the last one tells when it has.
    """
    numbered = [*((f"e{index}", source) for index, source in enumerate(_EVALUATED)), ("last", "false")]
    for name, source in numbered:
        made = policy(name, {"expression": source})
        made["spec"]["matchConstraints"]["objectSelector"] = {"matchLabels": {"case": name}}
        yield Sent(f"expression {name}: policy", "POST", POLICIES, made)
        yield Sent(f"expression {name}: binding", "POST", BINDINGS, binding(name))
    for name, source in (numbered[-1], *numbered[:-1]):
        body = {**config_map("m", a="b"), "metadata": {"name": "m", "labels": {"case": name}}}
        until = 422 if name == "last" else 0
        yield Sent(f"expression {name}: {source}", "POST", f"{_MAPS_HERE}?dryRun=All", body, until=until)
    for name, _ in numbered:
        yield Sent(f"expression {name}: binding away", "DELETE", f"{BINDINGS}/{name}")
        yield Sent(f"expression {name}: policy away", "DELETE", f"{POLICIES}/{name}")


_POLICIES = (
    *_all_tried(),
    *_tried(
        "message", policy("message", {"expression": _ENDS, "message": "must end in x"}, {"expression": _ENDS, "messageExpression": "'not ' + object.metadata.name", "reason": "Forbidden"}), binding("message"),
        Sent("refused", "POST", _MAPS_HERE, config_map("a")), Sent("passed", "POST", _MAPS_HERE, config_map("ax")), Sent("applied", "PATCH", f"{_MAPS_HERE}/b?fieldManager=me", config_map("b"), APPLY), Sent("patched", "PATCH", f"{_MAPS_HERE}/ax", {"data": {"a": "b"}}, MERGE), Sent("deleted", "DELETE", f"{_MAPS_HERE}/ax"),
    ),
    *_tried("reason", policy("reason", {"expression": "false", "messageExpression": "'not ' + object.metadata.name", "reason": "Forbidden"}), binding("reason"), Sent("refused", "POST", _MAPS_HERE, config_map("a"))),
    *_tried("too large", policy("large", {"expression": "false", "message": "no", "reason": "RequestEntityTooLarge"}), binding("large"), Sent("refused", "POST", _MAPS_HERE, config_map("a"))),
    *_tried("bad message", policy("badmessage", {"expression": "false", "messageExpression": "object.nope"}), binding("badmessage"), Sent("refused", "POST", _MAPS_HERE, config_map("a"))),
    *_tried("warn", policy("warn", {"expression": "false", "message": "hm"}, {"expression": "object.nope == 1"}), binding("warn", validationActions=["Warn", "Audit"]), Sent("warned", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("w"))),
    *_tried("audit", policy("audit", {"expression": "false", "message": "hm"}), binding("audit", validationActions=["Audit"]), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("w"))),
    *_tried("ignore", policy("ignore", {"expression": "object.nope == 1"}, failurePolicy="Ignore"), binding("ignore"), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("w"))),
    *_tried("variables", policy("variables", {"expression": "variables.short && variables.bad == 1"}, variables=[{"name": "short", "expression": "size(object.metadata.name) < 5"}, {"name": "bad", "expression": "object.nope"}]), binding("variables"), Sent("refused", "POST", _MAPS_HERE, config_map("toolong")), Sent("failed", "POST", _MAPS_HERE, config_map("a"))),
    *_tried("conditions", policy("conditions", {"expression": "false"}, matchConditions=[{"name": "skip", "expression": "object.metadata.name != 'skipped'"}, {"name": "broken", "expression": "!has(object.data.broken) || object.nope == 1"}]), binding("conditions"), Sent("refused", "POST", _MAPS_HERE, config_map("a")), Sent("skipped", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("skipped")), Sent("broken", "POST", _MAPS_HERE, config_map("b", broken="x"))),
    *_tried("selected", policy("selected", {"expression": "false"}), binding("selected", matchResources={"objectSelector": {"matchLabels": {"a": "b"}}}), Sent("refused", "POST", _MAPS_HERE, {**config_map("a"), "metadata": {"name": "a", "labels": {"a": "b"}}}), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("a"))),
    *_tried("user", policy("user", {"expression": "request.userInfo.username != 'jane'"}), binding("user"), Sent("refused", "POST", _MAPS_HERE, config_map("a"), headers=_JANE), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("a"))),
    *_tried("update", policy("update", {"expression": "oldObject == null || object.data.a == oldObject.data.a", "message": "keep a"}), binding("update"), Sent("created", "POST", _MAPS_HERE, config_map("up", a="b")), Sent("changed", "PATCH", f"{_MAPS_HERE}/up", {"data": {"a": "c"}}, MERGE), Sent("kept", "PATCH", f"{_MAPS_HERE}/up", {"data": {"b": "c"}}, MERGE), Sent("deletion fails", "DELETE", f"{_MAPS_HERE}/up")),
    Sent("update: clear", "DELETE", f"{_MAPS_HERE}/up", after_s=SETTLED_S),
    *_tried("scale", policy("scale", {"expression": "object.spec.replicas <= 2", "messageExpression": "'not ' + string(object.spec.replicas)"}, rules=[{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["deployments", "deployments/scale"]}]), binding("scale"), Sent("created", "POST", "/apis/apps/v1/namespaces/policies/deployments", {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "s"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [box()]}}}}), Sent("scaled too far", "PATCH", "/apis/apps/v1/namespaces/policies/deployments/s/scale", {"spec": {"replicas": 3}}, MERGE), Sent("scaled", "PATCH", "/apis/apps/v1/namespaces/policies/deployments/s/scale", {"spec": {"replicas": 2}}, MERGE)),
    *_tried("evict", policy("evict", {"expression": "false", "message": "stay"}, rules=[{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["pods/eviction", "pods/binding"]}]), binding("evict"), Sent("created", "POST", f"{N}/pods", pod("ev")), Sent("evicted", "POST", f"{N}/pods/ev/eviction", {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "ev"}}), Sent("bound", "POST", f"{N}/pods/ev/binding", {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "ev"}, "target": {"kind": "Node", "name": "n"}}), Sent("deleted", "DELETE", f"{N}/pods/ev")),
)  # fmt: skip

_PARAMS = {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}
_MOST = {
    "expression": "!has(params.data) || size(object.data) <= int(params.data.most)",
    "messageExpression": "'at most ' + params.data.most",
}
_PARAMETERS = (
    Sent("parameters: one", "POST", _MAPS_HERE, {**config_map("limit", most="1"), "metadata": {"name": "limit", "labels": {"limits": "yes"}}}),
    *_tried("by name", policy("byname", _MOST, **_PARAMS), binding("byname", paramRef={"name": "limit", "namespace": "policies", "parameterNotFoundAction": "Deny"}), Sent("refused", "POST", _MAPS_HERE, config_map("p", a="1", b="2")), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("p", a="1"))),
    *_tried("by label", policy("bylabel", _MOST, **_PARAMS), binding("bylabel", paramRef={"selector": {"matchLabels": {"limits": "yes"}}, "parameterNotFoundAction": "Deny"}), Sent("refused", "POST", _MAPS_HERE, config_map("p", a="1", b="2"))),
    *_tried("not found, denied", policy("nfd", _MOST, **_PARAMS), binding("nfd", paramRef={"name": "none", "namespace": "policies", "parameterNotFoundAction": "Deny"}), Sent("refused", "POST", _MAPS_HERE, config_map("p", a="1"))),
    *_tried("not found, allowed", policy("nfa", _MOST, **_PARAMS), binding("nfa", paramRef={"name": "none", "namespace": "policies", "parameterNotFoundAction": "Allow"}), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("p", a="1", b="2"))),
    *_tried("no reference", policy("nor", {"expression": "params == null"}, **_PARAMS), binding("nor"), Sent("passed", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("p"))),
    *_tried("unknown kind", policy("unk", {"expression": "true"}, paramKind={"apiVersion": "a.b/v1", "kind": "Nope"}), binding("unk", paramRef={"name": "x", "parameterNotFoundAction": "Deny"}), Sent("refused", "POST", _MAPS_HERE, config_map("p"))),
)  # fmt: skip


def _webhook(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": "https://127.0.0.1:1/x"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "policies"}},
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
    Sent("webhook: refused", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("h"), after_s=SETTLED_S),
    Sent("webhook: away", "DELETE", f"{WEBHOOKS}/admission"),
    Sent("webhook: ignored", "POST", WEBHOOKS, _configuration(_webhook("a.b.c", failurePolicy="Ignore"))),
    Sent("webhook: passed", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("h"), after_s=SETTLED_S),
    Sent("webhook: ignored away", "DELETE", f"{WEBHOOKS}/admission"),
    Sent("webhook: conditions", "POST", WEBHOOKS, _configuration(_webhook("a.b.c", matchConditions=[{"name": "never", "expression": "object.metadata.name == 'never'"}, {"name": "broken", "expression": "!has(object.data) || object.nope == 1"}]))),
    Sent("webhook: unmet", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("h"), after_s=SETTLED_S),
    Sent("webhook: condition fails", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("never", a="b")),
    Sent("webhook: conditions away", "DELETE", f"{WEBHOOKS}/admission"),
    Sent("webhook: dry run with effects", "POST", WEBHOOKS, _configuration(_webhook("a.b.c", clientConfig={"service": {"namespace": "policies", "name": "none"}}))),
    Sent("webhook: no service", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("h"), after_s=SETTLED_S),
    Sent("webhook: service away", "DELETE", f"{WEBHOOKS}/admission"),
    Sent("mutating webhook: nobody there", "POST", MUTATING, _configuration(_webhook("a.b.c"), kind="MutatingWebhookConfiguration")),
    Sent("mutating webhook: refused", "POST", f"{_MAPS_HERE}?dryRun=All", config_map("h"), after_s=SETTLED_S),
    Sent("mutating webhook: away", "DELETE", f"{MUTATING}/admission"),
)  # fmt: skip

CASES: tuple[Case, ...] = (opened("policies"), *_INVALID, *_POLICIES, *_PARAMETERS, *_HOOKS)
