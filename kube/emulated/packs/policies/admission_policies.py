"""Admission policies: defaults and what is wrong with them (pkg/apis/admissionregistration/validation)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.cel.types import Type
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.base import METADATA, RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError, bad, required, unsupported
from mews.kube.emulated.kinds.workloads.status_errors import policy_status_errors
from mews.kube.emulated.types.policy_expressions import error_of, policy_variables

Spec = Mapping[str, Any]

_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
_ACTIONS = ("Audit", "Deny", "Warn")
_MOST_CONDITIONS = 64
_MOST_ANNOTATIONS = 20
_MESSAGES = frozenset(("Object", "JSONPatch"))
"""What the expressions of mutations may make."""


def default_limits(limits: dict[str, Any], rules: Sequence[str]) -> None:
    """What a limit of what is matched means that says nothing."""
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
        default_limits(spec["matchConstraints"], ("resourceRules", "excludeResourceRules"))


def _default_binding(binding: Object) -> None:
    if binding["spec"].get("matchResources") is not None:
        default_limits(binding["spec"]["matchResources"], ("resourceRules", "excludeResourceRules"))


# Policies


def _expression_error(
    path: str, expression: str, known: Mapping[str, Type], allowed: tuple[str, ...], text: str
) -> Iterator[FieldError]:
    from mews.kube.cel.expressions import compiled

    source = expression.strip()
    if not source:
        yield required(path, text)
        return
    error = error_of(compiled(source, known), allowed)
    if error:
        yield bad(path, expression, error)


def _policy_errors(policy: Object) -> list[FieldError]:
    spec = policy["spec"]
    found = [*choice_errors("spec.failurePolicy", spec.get("failurePolicy"), FAILURE_POLICIES)]
    kind = spec.get("paramKind")
    if kind is not None:
        found += _kind_errors(kind, "spec.paramKind")
    constraints = spec.get("matchConstraints")
    if constraints is None:
        found.append(required("spec.matchConstraints"))
    else:
        found += _limit_errors(constraints, "spec.matchConstraints")
        if not constraints.get("resourceRules"):
            found.append(required("spec.matchConstraints.resourceRules"))
    found += condition_errors(spec, "spec", policy_variables(params=kind is not None))
    declared: dict[str, Type] = {}
    found += _variable_errors(spec, declared)
    known = policy_variables(params=kind is not None, variables=declared if spec.get("variables") else None)
    if not spec.get("validations") and not spec.get("auditAnnotations"):
        text = "validations or auditAnnotations must contain at least one item"
        return [*found, required("spec.validations", text), required("spec.auditAnnotations", text)]
    for index, validation in enumerate(spec.get("validations") or ()):
        found += _validation_errors(validation, f"spec.validations[{index}]", known)
    found += _annotation_errors(policy, known)
    return found


def _kind_errors(kind: Spec, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the kind of parameters."""
    version, name = kind.get("apiVersion") or "", kind.get("kind") or ""
    group, _, plain = version.rpartition("/") if version != "/" else ("", "", "")
    if not version:
        yield required(f"{path}.apiVersion")
    elif version.count("/") > 1:
        yield bad(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    else:
        if group and (texts := names.subdomain_texts(group)):
            yield bad(f"{path}.apiVersion", group, ",".join(texts))
        if not plain:
            yield bad(f"{path}.apiVersion", version, "version must be specified")
        elif texts := names.dns_1035_errors(plain):
            yield bad(f"{path}.apiVersion", plain, ",".join(texts))
    if not name:
        yield required(f"{path}.kind")
    elif texts := names.dns_1035_errors(name.lower()):
        yield bad(f"{path}.kind", name, f"may have mixed case, but should otherwise match: {','.join(texts)}")


def _validation_errors(validation: Spec, path: str, known: Mapping[str, Type]) -> Iterator[FieldError]:
    yield from _expression_error(
        f"{path}.expression", validation.get("expression") or "", known, ("bool",), "expression is not specified"
    )
    if validation.get("messageExpression") and not validation["messageExpression"].strip():
        yield bad(f"{path}.messageExpression", validation["messageExpression"], "must be non-empty if specified")
    if (validation.get("messageExpression") or "").strip():
        plain = {name: kind for name, kind in known.items() if not name.startswith("authorizer")}
        yield from _expression_error(
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


def _variable_errors(spec: Spec, declared: dict[str, Type]) -> Iterator[FieldError]:
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
        if found.error:
            yield bad(f"{path}.expression", variable["expression"], f"compilation failed: {found.error}")
        declared[name] = found.type


def _annotation_errors(policy: Object, known: Mapping[str, Type]) -> Iterator[FieldError]:
    annotations, seen = policy["spec"].get("auditAnnotations") or (), set[str]()
    if len(annotations) > _MOST_ANNOTATIONS:
        text = f"must not have more than {_MOST_ANNOTATIONS} auditAnnotations"
        yield bad("spec.auditAnnotations", annotations, text)
    for index, annotation in enumerate(annotations):
        path = f"spec.auditAnnotations[{index}]"
        key = f"{policy['metadata'].get('name', '')}/{annotation.get('key') or ''}"
        for text in names.qualified_texts(key):
            yield bad(f"{path}.key", key, text)
        yield from _expression_error(
            f"{path}.valueExpression",
            annotation.get("valueExpression") or "",
            known,
            ("string", "null_type"),
            "valueExpression is not specified",
        )
        if (key := annotation.get("key") or "") in seen:
            yield refusals.duplicate(f"{path}.key", key)
        seen.add(key)


def condition_errors(spec: Spec, path: str, known: Mapping[str, Type]) -> Iterator[FieldError]:
    """Yield what is wrong with conditions in CEL."""
    conditions, seen = spec.get("matchConditions") or (), set()
    if len(conditions) > _MOST_CONDITIONS:
        text = f"must have at most {_MOST_CONDITIONS} items"
        yield FieldError(f"{path}.matchConditions", "FieldValueTooMany", f"{len(conditions)}: {text}")
    for index, condition in enumerate(conditions):
        where, name = f"{path}.matchConditions[{index}]", condition.get("name") or ""
        yield from _expression_error(f"{where}.expression", condition.get("expression") or "", known, ("bool",), "")
        if not name:
            yield required(f"{where}.name")
            continue
        for text in names.qualified_texts(name):
            yield bad(f"{where}.name", name, text)
        if name in seen:
            yield refusals.duplicate(f"{where}.name", name)
        seen.add(name)


def choice_errors(path: str, value: str | None, allowed: Sequence[str]) -> Iterator[FieldError]:
    """Yield one of several, if it is said."""
    if value is not None and value not in allowed:
        yield unsupported(path, value, allowed)


def _limit_errors(limits: Spec, path: str) -> Iterator[FieldError]:
    yield from choice_errors(f"{path}.matchPolicy", limits.get("matchPolicy"), MATCH_POLICIES)
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_errors(limits.get(name) or {}, f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(limits.get(name) or ()):
            yield from _named_errors(rule.get("resourceNames") or [], f"{path}.{name}[{index}].resourceNames")
            yield from rule_errors(rule, f"{path}.{name}[{index}]")


def _named_errors(given: Sequence[str], path: str) -> Iterator[FieldError]:
    for index, name in enumerate(given):
        for text in names.segment_texts(name):
            yield bad(f"{path}[{index}]", name, text)
        if name in given[:index]:
            yield refusals.duplicate(f"{path}[{index}]", name)


def rule_errors(rule: Spec, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with what a rule matches."""
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
    yield from _resource_errors(rule.get("resources") or [], f"{path}.resources")
    yield from choice_errors(f"{path}.scope", rule.get("scope"), _SCOPES)


# Complex: upstream's order of errors, which clients see.
def _resource_errors(resources: list[str], path: str) -> Iterator[FieldError]:  # noqa: C901
    if not resources:
        yield required(path)
    whole, below, plain = set[str](), set[str](), False
    for index, each in enumerate(resources):
        resource, slash, sub = each.partition("/")
        if not each:
            yield required(f"{path}[{index}]")
        elif not slash:
            plain = each != "*"
        else:
            if resource in whole:
                yield bad(f"{path}[{index}]", each, f"if '{resource}/*' is present, must not specify {each}")
            if sub in below:
                yield bad(f"{path}[{index}]", each, f"if '*/{sub}' is present, must not specify {each}")
            if sub == "*":
                whole.add(resource)
            if resource == "*":
                below.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        yield bad(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        yield bad(path, resources, "if '*' is present, must not specify other resources without subresources")


def _binding_errors(binding: Object) -> list[FieldError]:
    spec = binding["spec"]
    found, name = [], spec.get("policyName") or ""
    if not name:
        found.append(required("spec.policyName"))
    else:
        found += names.subdomain_errors("spec.policyName", name)
    if spec.get("paramRef") is not None:
        found += _reference_errors(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        found += _limit_errors(spec["matchResources"], "spec.matchResources")
    if binding.get("kind") == "ValidatingAdmissionPolicyBinding":
        found += _action_errors(spec.get("validationActions") or [], "spec.validationActions")
    return found


def _reference_errors(reference: Spec, path: str) -> Iterator[FieldError]:
    by_name, by_label = bool(reference.get("name")), reference.get("selector") is not None
    if by_name:
        for text in names.segment_texts(reference["name"]):
            yield bad(f"{path}.name", reference["name"], text)
        if by_label:
            yield refusals.forbidden_field(f"{path}.name", "name and selector are mutually exclusive")
    if by_label:
        yield from selector_errors(reference["selector"], f"{path}.selector")
        if by_name:
            yield refusals.forbidden_field(f"{path}.selector", "name and selector are mutually exclusive")
    if not by_name and not by_label:
        yield required(path, "one of name or selector must be specified")
    action = reference.get("parameterNotFoundAction")
    if not action:
        yield required(f"{path}.parameterNotFoundAction")
    else:
        yield from choice_errors(f"{path}.parameterNotFoundAction", action, ("Deny", "Allow"))


def _action_errors(actions: list[str], path: str) -> Iterator[FieldError]:
    for index, action in enumerate(actions):
        if action not in _ACTIONS:
            yield unsupported(f"{path}[{index}]", action, _ACTIONS)
        if action in actions[:index]:
            yield refusals.duplicate(f"{path}[{index}]", action)
    if "Deny" in actions and "Warn" in actions:
        text = "must not contain both Deny and Warn (repeating the same validation failure information in the API "
        yield bad(path, actions, f"{text}response and headers serves no purpose)")
    if not actions:
        yield required(path, "at least one validation action is required")


POLICIES = Rules(
    default=_default_policy,
    validate=_policy_errors,
    validate_status_update=policy_status_errors,
    metadata=MetadataChecks(on_update=(METADATA,), status_leaves=RESET_WITH_STATUS),
)
BINDINGS = Rules(default=_default_binding, validate=_binding_errors, metadata=MetadataChecks(on_update=(METADATA,)))
