"""ValidatingAdmissionPolicyBindings (pkg/apis/admissionregistration/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.base import METADATA, Rules
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError, bad, required, unsupported
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of
from mews.kube.emulated.packs.policies.match_rules import Spec, choice_errors, default_limits, limit_errors

_ACTIONS = ("Audit", "Deny", "Warn")


def _default_binding(binding: Object) -> None:
    if binding["spec"].get("matchResources") is not None:
        default_limits(binding["spec"]["matchResources"], ("resourceRules", "excludeResourceRules"))


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
        found += limit_errors(spec["matchResources"], "spec.matchResources")
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


def _policy_binding(obj: Object, _: float) -> Row:
    spec, parameters = spec_of(obj), spec_of(obj).get("paramRef")
    named = "<unset>"
    if parameters:
        place = parameters.get("namespace")
        named = f"{place}/{parameters.get('name', '')}" if place else parameters.get("name") or "*"
    return [spec.get("policyName", ""), named]


RULES = Rules(
    printer=Printer(_policy_binding, is_part=True),
    default=_default_binding,
    validate=_binding_errors,
    metadata=MetadataChecks(on_update=(METADATA,)),
)
