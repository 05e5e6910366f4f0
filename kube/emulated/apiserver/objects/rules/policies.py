"""Admission policies and webhook configurations: defaults and what is wrong with them (k8s.io/kubernetes
pkg/apis/admissionregistration/validation)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.cel.types import Type
from mews.kube.emulated.apiserver.objects.rules.affinity_faults import selector_faults
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.objects.rules.status_faults import policy_status_faults
from mews.kube.emulated.apiserver.store import names, refusals
from mews.kube.emulated.apiserver.store.refusals import FieldError, bad, required, unsupported
from mews.kube.emulated.apiserver.types.policy_expressions import WEBHOOK_VARIABLES, fault_of, policy_variables

Spec = Mapping[str, Any]

_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_POLICIES = ("Fail", "Ignore")
_MATCH_POLICIES = ("Equivalent", "Exact")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_ACTIONS = ("Audit", "Deny", "Warn")
_LONGEST_TIMEOUT_S = 30
_MOST_CONDITIONS = 64
_MESSAGES = frozenset(("Object", "JSONPatch"))
"""What the expressions of mutations may make."""


def _default_limits(limits: dict[str, Any], rules: Sequence[str]) -> None:
    limits.setdefault("matchPolicy", "Equivalent")
    limits.setdefault("namespaceSelector", {})
    limits.setdefault("objectSelector", {})
    for name in rules:
        for rule in limits.get(name) or ():
            rule.setdefault("scope", "*")


def _default_policy(policy: Object) -> None:
    spec = policy["spec"]
    spec.setdefault("failurePolicy", "Fail")
    if spec.get("matchConstraints") is not None:
        _default_limits(spec["matchConstraints"], ("resourceRules", "excludeResourceRules"))


def _default_binding(binding: Object) -> None:
    if binding["spec"].get("matchResources") is not None:
        _default_limits(binding["spec"]["matchResources"], ("resourceRules", "excludeResourceRules"))


def _default_webhooks(configuration: Object) -> None:
    mutating = configuration.get("kind") == "MutatingWebhookConfiguration"
    for webhook in configuration.get("webhooks") or ():
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("timeoutSeconds", 10)
        if mutating:
            webhook.setdefault("reinvocationPolicy", "Never")
        _default_limits(webhook, ("rules",))
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)


# Policies


def _expression_fault(
    path: str, expression: str, known: Mapping[str, Type], allowed: tuple[str, ...], text: str
) -> Iterator[FieldError]:
    from mews.kube.cel.expressions import compiled

    source = expression.strip()
    if not source:
        yield required(path, text)
        return
    fault = fault_of(compiled(source, known), allowed)
    if fault:
        yield bad(path, expression, fault)


def _policy_faults(policy: Object) -> list[FieldError]:
    spec = policy["spec"]
    found = [*_choice("spec.failurePolicy", spec.get("failurePolicy"), _POLICIES)]
    kind = spec.get("paramKind")
    if kind is not None:
        found += [required(f"spec.paramKind.{name}") for name in ("apiVersion", "kind") if not kind.get(name)]
    constraints = spec.get("matchConstraints")
    if constraints is None:
        found.append(required("spec.matchConstraints"))
    else:
        found += _limit_faults(constraints, "spec.matchConstraints", needs_rules=True)
    found += _condition_faults(spec, "spec", policy_variables(params=kind is not None))
    declared: dict[str, Type] = {}
    found += _variable_faults(spec, declared)
    known = policy_variables(params=kind is not None, variables=declared if spec.get("variables") else None)
    if policy.get("kind") == "MutatingAdmissionPolicy":
        return [*found, *_mutation_faults(spec, known)]
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        text = "validations or auditAnnotations must contain at least one item"
        return [*found, required("spec.validations", text), required("spec.auditAnnotations", text)]
    for index, validation in enumerate(spec.get("validations") or ()):
        found += _validation_faults(validation, f"spec.validations[{index}]", known)
    found += _annotation_faults(policy, known)
    return found


def _validation_faults(validation: Spec, path: str, known: Mapping[str, Type]) -> Iterator[FieldError]:
    yield from _expression_fault(
        f"{path}.expression", validation.get("expression") or "", known, ("bool",), "expression is not specified"
    )
    if (validation.get("messageExpression") or "").strip():
        plain = {name: kind for name, kind in known.items() if not name.startswith("authorizer")}
        yield from _expression_fault(
            f"{path}.messageExpression", validation["messageExpression"], plain, ("string",), ""
        )
    message = validation.get("message") or ""
    if message and not message.strip():
        yield bad(f"{path}.message", message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield bad(f"{path}.message", message, "must not contain line breaks")
    if validation.get("reason") is not None and validation["reason"] not in _REASONS:
        shown = tuple(reason for reason in _REASONS if reason != "Unauthorized")
        yield unsupported(f"{path}.reason", validation["reason"], shown)


def _variable_faults(spec: Spec, declared: dict[str, Type]) -> Iterator[FieldError]:
    from mews.kube.cel.expressions import compiled

    for index, variable in enumerate(spec.get("variables") or ()):
        path, name = f"spec.variables[{index}]", variable.get("name") or ""
        if not name:
            yield required(f"{path}.name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name):
            yield bad(f"{path}.name", name, "must be a valid CEL identifier")
        source = (variable.get("expression") or "").strip()
        if not source:
            yield required(f"{path}.expression", "expression is not specified")
            continue
        known = policy_variables(params=spec.get("paramKind") is not None, variables=declared)
        found = compiled(source, known)
        if found.fault:
            yield bad(f"{path}.expression", variable["expression"], f"compilation failed: {found.fault}")
        declared[name] = found.type


def _annotation_faults(policy: Object, known: Mapping[str, Type]) -> Iterator[FieldError]:
    for index, annotation in enumerate(policy["spec"].get("auditAnnotations") or ()):
        path = f"spec.auditAnnotations[{index}]"
        key = f"{policy['metadata'].get('name', '')}/{annotation.get('key') or ''}"
        for text in _qualified_faults(key):
            yield bad(f"{path}.key", key, text)
        yield from _expression_fault(
            f"{path}.valueExpression",
            annotation.get("valueExpression") or "",
            known,
            ("string", "null_type"),
            "valueExpression is not specified",
        )


_NAME_PART = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LONGEST_NAME = 63


def _qualified_faults(key: str) -> Iterator[str]:
    name = key.rpartition("/")[2]
    if not name:
        yield "name part must be non-empty"
    elif len(name) > _LONGEST_NAME:
        yield f"name part must be no more than {_LONGEST_NAME} bytes"
    if not re.fullmatch(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", name):
        yield _NAME_PART


def _condition_faults(spec: Spec, path: str, known: Mapping[str, Type]) -> Iterator[FieldError]:
    conditions, seen = spec.get("matchConditions") or (), set()
    if len(conditions) > _MOST_CONDITIONS:
        text = f"must have at most {_MOST_CONDITIONS} items"
        yield FieldError(f"{path}.matchConditions", "FieldValueTooMany", f"{len(conditions)}: {text}")
    for index, condition in enumerate(conditions):
        where, name = f"{path}.matchConditions[{index}]", condition.get("name") or ""
        yield from _expression_fault(f"{where}.expression", condition.get("expression") or "", known, ("bool",), "")
        if not name:
            yield required(f"{where}.name")
            continue
        for text in _qualified_faults(name):
            yield bad(f"{where}.name", name, text)
        if name in seen:
            yield refusals.duplicate(f"{where}.name", name)
        seen.add(name)


def _choice(path: str, value: str | None, allowed: Sequence[str]) -> Iterator[FieldError]:
    if value is not None and value not in allowed:
        yield unsupported(path, value, allowed)


def _limit_faults(limits: Spec, path: str, *, needs_rules: bool = False) -> Iterator[FieldError]:
    yield from _choice(f"{path}.matchPolicy", limits.get("matchPolicy"), _MATCH_POLICIES)
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_faults(limits.get(name) or {}, f"{path}.{name}")
    if needs_rules and not limits.get("resourceRules"):
        yield required(f"{path}.resourceRules")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(limits.get(name) or ()):
            yield from _rule_faults(rule, f"{path}.{name}[{index}]")


def _rule_faults(rule: Spec, path: str) -> Iterator[FieldError]:
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{path}.operations")
    elif "*" in operations and len(operations) > 1:
        yield bad(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        if operation not in _OPERATIONS:
            yield unsupported(f"{path}.operations[{index}]", operation, _OPERATIONS)
    for name, words in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            yield required(f"{path}.{name}")
        elif "*" in values and len(values) > 1:
            yield bad(f"{path}.{name}", values, f"if '*' is present, must not specify other {words}")
        for index, value in enumerate(values):
            if name == "apiVersions" and not value:
                yield required(f"{path}.{name}[{index}]")
    yield from _resource_faults(rule.get("resources") or [], f"{path}.resources")
    yield from _choice(f"{path}.scope", rule.get("scope"), _SCOPES)


def _resource_faults(resources: list[str], path: str) -> Iterator[FieldError]:
    if not resources:
        yield required(path)
        return
    whole, below = set(), set()
    for index, each in enumerate(resources):
        resource, slash, sub = each.partition("/")
        if not each:
            yield required(f"{path}[{index}]")
        elif each == "*/*" and len(resources) > 1:
            yield bad(path, resources, "if '*/*' is present, must not specify other resources")
        elif slash and sub in below:
            yield bad(f"{path}[{index}]", each, f"if '*/{sub}' is present, must not specify {each}")
        elif slash and resource in whole:
            yield bad(f"{path}[{index}]", each, f"if '{resource}/*' is present, must not specify {each}")
        if slash and sub == "*":
            whole.add(resource)
        if slash and resource == "*":
            below.add(sub)
    if "*" in resources and any("/" not in each for each in resources if each != "*"):
        yield bad(path, resources, "if '*' is present, must not specify other resources without subresources")


def _binding_faults(binding: Object) -> list[FieldError]:
    spec = binding["spec"]
    found, name = [], spec.get("policyName") or ""
    if not name:
        found.append(required("spec.policyName"))
    else:
        found += names.subdomain_faults("spec.policyName", name)
    if spec.get("paramRef") is not None:
        found += _reference_faults(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        found += _limit_faults(spec["matchResources"], "spec.matchResources")
    if binding.get("kind") == "ValidatingAdmissionPolicyBinding":
        found += _action_faults(spec.get("validationActions") or [], "spec.validationActions")
    return found


def _reference_faults(reference: Spec, path: str) -> Iterator[FieldError]:
    by_name, by_label = bool(reference.get("name")), reference.get("selector") is not None
    if by_name and by_label:
        for name in ("name", "selector"):
            yield refusals.forbidden_field(f"{path}.{name}", "name and selector are mutually exclusive")
    elif not by_name and not by_label:
        yield required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    if not action:
        yield required(f"{path}.parameterNotFoundAction")
    else:
        yield from _choice(f"{path}.parameterNotFoundAction", action, ("Allow", "Deny"))


def _action_faults(actions: list[str], path: str) -> Iterator[FieldError]:
    if not actions:
        yield required(path, "at least one validation action is required")
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield unsupported(f"{path}[{index}]", action, _ACTIONS)
        if action in actions[:index]:
            yield refusals.duplicate(f"{path}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        text = "must not contain both Deny and Warn (repeating the same validation failure information in the API "
        yield bad(path, actions, f"{text}response and headers serves no purpose)")


# Mutations


def _mutation_faults(spec: Spec, known: Mapping[str, Type]) -> Iterator[FieldError]:
    from mews.kube.cel.expressions import compiled

    if not spec.get("mutations"):
        yield required("spec.mutations", "mutations must contain at least one item")
    yield from _choice("spec.reinvocationPolicy", spec.get("reinvocationPolicy"), ("Never", "IfNeeded"))
    if not spec.get("reinvocationPolicy"):
        yield required("spec.reinvocationPolicy")
    for index, mutation in enumerate(spec.get("mutations") or ()):
        path, kind = f"spec.mutations[{index}]", mutation.get("patchType")
        if kind not in ("ApplyConfiguration", "JSONPatch"):
            yield unsupported(f"{path}.patchType", kind or "", ("ApplyConfiguration", "JSONPatch"))
            continue
        field = "applyConfiguration" if kind == "ApplyConfiguration" else "jsonPatch"
        source = ((mutation.get(field) or {}).get("expression") or "").strip()
        if not source:
            yield required(f"{path}.{field}.expression", "expression is not specified")
            continue
        allowed = ("Object",) if kind == "ApplyConfiguration" else ("list(JSONPatch)", "list(dyn)")
        fault = fault_of(compiled(source, known, _MESSAGES), allowed)
        if fault:
            yield bad(f"{path}.{field}.expression", mutation[field]["expression"], fault)


# Webhooks


def _webhook_faults(configuration: Object) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", webhook.get("name") or ""
        found += _one_webhook_faults(webhook, path)
        if name in seen:
            found.append(refusals.duplicate(f"{path}.name", name))
        seen.add(name)
    return found


def _one_webhook_faults(webhook: Spec, path: str) -> Iterator[FieldError]:
    yield from _webhook_name_faults(webhook.get("name") or "", f"{path}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from _rule_faults(rule, f"{path}.rules[{index}]")
    yield from _choice(f"{path}.failurePolicy", webhook.get("failurePolicy"), _POLICIES)
    yield from _choice(f"{path}.matchPolicy", webhook.get("matchPolicy"), _MATCH_POLICIES)
    effects = webhook.get("sideEffects")
    if effects is None:
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    else:
        yield from _choice(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun"))
    timeout_s = webhook.get("timeoutSeconds")
    if timeout_s is not None and not 1 <= timeout_s <= _LONGEST_TIMEOUT_S:
        yield bad(f"{path}.timeoutSeconds", timeout_s, "the timeout value must be between 1 and 30 seconds")
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_faults(webhook.get(name) or {}, f"{path}.{name}")
    yield from _client_faults(webhook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from _review_version_faults(webhook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions")
    yield from _choice(f"{path}.reinvocationPolicy", webhook.get("reinvocationPolicy"), ("IfNeeded", "Never"))
    yield from _condition_faults(webhook, path, WEBHOOK_VARIABLES)


def _review_version_faults(versions: list[str], path: str) -> Iterator[FieldError]:
    if not versions:
        yield required(path, "must specify one of v1, v1beta1")
        return
    for index, version in enumerate(versions):
        for text in names.dns_1035_faults(version):
            yield bad(f"{path}[{index}]", version, text)
        if version in versions[:index]:
            yield bad(f"{path}[{index}]", version, "duplicate version")
    if not any(version in ("v1", "v1beta1") for version in versions):
        yield bad(path, versions, "must include at least one of v1, v1beta1")


_LEAST_PARTS = 3


def _webhook_name_faults(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield required(path)
        return
    faults = names.subdomain_faults(path, name)
    yield from faults
    if not faults and len(name.split(".")) < _LEAST_PARTS:
        yield bad(path, name, "should be a domain with at least three segments separated by dots")


def _client_faults(client: Spec, path: str) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
        return
    if url is not None:
        yield from _url_faults(url, f"{path}.url")
        return
    service = service or {}
    for name in ("name", "namespace"):
        if not service.get(name):
            yield required(f"{path}.service.{name}")
    port = service.get("port", 443)
    if not 1 <= port <= (1 << 16) - 1:
        yield bad(f"{path}.service.port", port, "port is not valid: must be between 1 and 65535, inclusive")
    way = service.get("path")
    if way is not None and not way.startswith("/"):
        yield bad(f"{path}.service.path", way, "must start with a '/'")
    if way is not None and way != "/":
        for index, segment in enumerate(way[1:].removesuffix("/").split("/")):
            if not segment:
                yield bad(f"{path}.service.path", way, f"segment[{index}] may not be empty")


def _url_faults(url: str, path: str) -> Iterator[FieldError]:
    form = "; desired format: https://host[/path]"
    scheme, _, rest = url.partition("://")
    host = rest.partition("/")[0]
    if scheme != "https":
        shown = scheme if "://" in url else ""
        yield bad(path, shown, f"'https' is the only allowed URL scheme{form}")
    if not host:
        yield bad(path, "", f"host must be specified{form}")
    if "@" in host:
        yield bad(path, host.partition("@")[0], "user information is not permitted in the URL")
    if "#" in rest:
        yield bad(path, rest.partition("#")[2], "fragments are not permitted in the URL")
    if "?" in rest:
        yield bad(path, rest.partition("#")[0].partition("?")[2], "query parameters are not permitted in the URL")


POLICIES = Rules(default=_default_policy, validate=_policy_faults, validate_status=policy_status_faults)
BINDINGS = Rules(default=_default_binding, validate=_binding_faults)
WEBHOOKS = Rules(default=_default_webhooks, validate=_webhook_faults)
