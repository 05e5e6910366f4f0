"""ValidatingAdmissionPolicies (pkg/apis/admissionregistration/validation)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mews.kube.api.objects import Object
from mews.kube.cel.types import Type
from mews.kube.emulated.core.checks.base import METADATA, RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError, bad, required, unsupported
from mews.kube.emulated.core.tables.cells import Printer, Row, parameter_kind, spec_of
from mews.kube.emulated.kinds.workloads.status_errors import policy_status_errors
from mews.kube.emulated.packs.policies.match_rules import Spec, choice_errors, default_limits, limit_errors
from mews.kube.emulated.types.policy_expressions import error_of, policy_variables

_IDENTIFIER = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")


FAILURE_POLICIES = ("Fail", "Ignore")


_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")


_MOST_CONDITIONS = 64


_MOST_ANNOTATIONS = 20


def _default_policy(policy: Object) -> None:
    spec = policy["spec"]
    spec.setdefault("failurePolicy", "Fail")
    if spec.get("matchConstraints") is not None:
        default_limits(spec["matchConstraints"], ("resourceRules", "excludeResourceRules"))


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
        found += limit_errors(constraints, "spec.matchConstraints")
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


def _policy(obj: Object, _: float) -> Row:
    return [len(spec_of(obj).get("validations") or ()), parameter_kind(obj)]


RULES = Rules(
    printer=Printer(_policy, is_part=True),
    default=_default_policy,
    validate=_policy_errors,
    validate_status_update=policy_status_errors,
    metadata=MetadataChecks(on_update=(METADATA,), status_leaves=RESET_WITH_STATUS),
)
