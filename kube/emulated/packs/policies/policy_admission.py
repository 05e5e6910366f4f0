"""ValidatingAdmissionPolicy (k8s.io/apiserver pkg/admission/plugin/policy/validating)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.errors import ApiError
from mews.kube.api.objects import Object
from mews.kube.api.resources import Resource
from mews.kube.cel.values import CelError, Variables
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, refused
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.selection import EVERYTHING
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.packs.policies.expressions import (
    POLICY_STEPS,
    ExpressionBudget,
    OutOfBudgetError,
    evaluated,
    unmet,
    variables_of,
    with_variables,
)
from mews.kube.emulated.packs.policies.matching import GROUP, is_configuration, is_review, matched_kind, selects
from mews.kube.emulated.packs.policies.parameters import ParameterError, parameters_of

POLICIES = Resource(GROUP, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False)
BINDINGS = Resource(
    GROUP, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)

_CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}
_LONGEST_MESSAGE = 5 * 1024

Spec = Mapping[str, Any]


class PolicyDenial(Struct, frozen=True):
    """One failed validation of one binding; ``binding`` is "" for what is wrong with the policy itself."""

    policy: str
    binding: str
    message: str
    reason: str = "Invalid"


def handles_policies(kind: Kind, operation: AdmissionOperation, _subresource: str) -> bool:
    """Policies are about all but themselves and reviews."""
    return not is_configuration(kind) and not is_review(kind)


def pairs(store: Store, policies: Resource, bindings: Resource) -> Iterator[tuple[Object, Object]]:
    """Yield each policy with each of its bindings, by name."""
    shelf = store.filled(GROUP, policies.plural)
    if shelf is None:
        return
    found = list(store.shelf(store.kinds.of(bindings)).select(EVERYTHING))
    for policy in shelf.select(EVERYTHING):
        for binding in found:
            if binding["spec"].get("policyName") == policy["metadata"]["name"]:
                yield policy, binding


def meets(store: Store, attributes: AdmissionAttributes, limits: Spec) -> Kind | None:
    """Return the kind as which a request meets a policy's constraints or those of its binding."""
    excluded = limits.get("excludeResourceRules") or ()
    policy = limits.get("matchPolicy")
    if excluded and matched_kind(store, attributes, excluded, policy) is not None:
        return None
    if not selects(store, attributes, limits):
        return None
    rules = limits.get("resourceRules")
    return matched_kind(store, attributes, rules, policy) if rules else attributes.kind


def _validate(store: Store, attributes: AdmissionAttributes) -> None:
    if attributes.request.answers is None or store.filled(GROUP, POLICIES.plural) is None:
        return
    denials: list[PolicyDenial] = []
    for policy, binding in pairs(store, POLICIES, BINDINGS):
        matched = meets(store, attributes, policy["spec"].get("matchConstraints") or {})
        if matched is None:
            continue
        more = binding["spec"].get("matchResources")
        if more is not None and meets(store, attributes, more) is None:
            continue
        for denial in _denials(store, attributes, policy, binding, matched):
            denials += _acted_on(attributes, binding, denial)
    if denials:
        raise _refusal(attributes, denials[0])


def _acted_on(attributes: AdmissionAttributes, binding: Object, denial: PolicyDenial) -> list[PolicyDenial]:
    """Return what a binding does about a denial: those that refuse the request are handed back. There is no audit
    log."""
    actions = binding["spec"].get("validationActions") or ()
    if "Warn" in actions:
        where = f"ValidatingAdmissionPolicy '{denial.policy}' with binding '{binding['metadata']['name']}'"
        attributes.request.warnings.append(f"Validation failed for {where}: {denial.message}")
    return [denial] if "Deny" in actions or not denial.binding else []


def _denials(
    store: Store, attributes: AdmissionAttributes, policy: Object, binding: Object, matched: Kind
) -> Iterator[PolicyDenial]:
    spec, name, bound = policy["spec"], policy["metadata"]["name"], binding["metadata"]["name"]
    fails = spec.get("failurePolicy", "Fail") == "Fail"
    known = variables_of(store, attributes, matched)
    try:
        parameters = parameters_of(store, attributes, spec, binding["spec"])
    except ParameterError as error:
        if fails:
            yield PolicyDenial(name, "" if str(error).startswith("failed to configure policy") else bound, str(error))
        return
    for params in parameters:
        here = {**known, "params": params} if spec.get("paramKind") is not None else known
        try:
            if unmet(spec.get("matchConditions") or (), here):
                continue
        except CelError as error:
            if fails:
                yield PolicyDenial(name, bound, str(error))
            continue
        yield from _judged(spec, here, name, bound)


def _judged(spec: Spec, known: Variables, policy: str, binding: str) -> Iterator[PolicyDenial]:
    """Yield all validations first, then the messages of those that failed, all within one budget."""
    budget, fails = ExpressionBudget(POLICY_STEPS), spec.get("failurePolicy", "Fail") == "Fail"
    known = with_variables(known, spec.get("variables") or (), budget)
    validations = spec.get("validations") or ()
    spent = ""
    try:
        results = [_result(validation, known, budget) for validation in validations]
    except OutOfBudgetError as error:
        if fails:
            yield PolicyDenial(policy, binding, str(error))
        return
    try:
        messages = [_message(validation, known, budget) for validation in validations]
    except OutOfBudgetError as error:
        spent, messages = f"failed messageExpression: {error}", [""] * len(results)
    for validation, result, message in zip(validations, results, messages, strict=True):
        reason = validation.get("reason") or "Invalid"
        if isinstance(result, CelError) or spent:
            if fails:
                yield PolicyDenial(policy, binding, str(result) if isinstance(result, CelError) else spent, reason)
        elif result is not True:
            text = message or (validation.get("message") or "").strip()
            yield PolicyDenial(
                policy, binding, text or f"failed expression: {validation['expression'].strip()}", reason
            )


def _result(validation: Spec, known: Variables, budget: ExpressionBudget) -> Any:
    try:
        return evaluated(validation["expression"], known, budget)
    except OutOfBudgetError:
        raise
    except CelError as error:
        return error


def _message(validation: Spec, known: Variables, budget: ExpressionBudget) -> str:
    """Return what messageExpression makes; "" for what is no message."""
    source = validation.get("messageExpression") or ""
    if not source.strip():
        return ""
    try:
        found = evaluated(source, known, budget)
    except OutOfBudgetError:
        raise
    except CelError:
        return ""
    if not isinstance(found, str) or "\n" in found.strip() or len(found.encode()) > _LONGEST_MESSAGE:
        return ""
    return found.strip()


def _refusal(attributes: AdmissionAttributes, denial: PolicyDenial) -> ApiError:
    where = f" with binding '{denial.binding}'" if denial.binding else ""
    message = f"ValidatingAdmissionPolicy '{denial.policy}'{where} denied request: {denial.message}"
    forbidden = refused(attributes, message)
    details = {**forbidden.details, "causes": [{"message": message}]}
    return ApiError(forbidden.message, code=_CODES.get(denial.reason, 422), reason=denial.reason, details=details)


PLUGIN = AdmissionPlugin("ValidatingAdmissionPolicy", handles_policies, validate=_validate)
