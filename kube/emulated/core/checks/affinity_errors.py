"""What is wrong with selectors of labels and nodes, and with affinities (core and apimachinery validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError

_REQUIRED_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED_TERMS = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity_errors(affinity: Part, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a pod's affinities."""
    nodes = part_of(affinity, "nodeAffinity")
    if nodes.get(_REQUIRED_TERMS) is not None:
        yield from node_selector_errors(nodes[_REQUIRED_TERMS], f"{path}.nodeAffinity.{_REQUIRED_TERMS}")
    for index, term in enumerate(items(nodes, _PREFERRED_TERMS)):
        here = f"{path}.nodeAffinity.{_PREFERRED_TERMS}[{index}]"
        yield from _weight_errors(term, here)
        yield from _node_term_errors(part_of(term, "preference"), f"{here}.preference", values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        given = part_of(affinity, kind)
        for index, term in enumerate(items(given, _REQUIRED_TERMS)):
            yield from _pod_term_errors(term, f"{path}.{kind}.{_REQUIRED_TERMS}[{index}]")
        for index, weighed in enumerate(items(given, _PREFERRED_TERMS)):
            here = f"{path}.{kind}.{_PREFERRED_TERMS}[{index}]"
            yield from _weight_errors(weighed, here)
            yield from _pod_term_errors(part_of(weighed, "podAffinityTerm"), f"{here}.podAffinityTerm")


def _weight_errors(weighed: Part, path: str) -> Iterator[FieldError]:
    if not 1 <= weighed.get("weight", 0) <= 100:
        yield refusals.bad(f"{path}.weight", weighed.get("weight", 0), "must be in the range 1-100")


def node_selector_errors(selector: Part, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a selector of nodes (ValidateNodeSelector)."""
    path = f"{path}.nodeSelectorTerms"
    if not items(selector, "nodeSelectorTerms"):
        yield refusals.required(path, "must have at least one node selector term")
    for index, term in enumerate(items(selector, "nodeSelectorTerms")):
        yield from _node_term_errors(term, f"{path}[{index}]")


def _node_term_errors(term: Part, path: str, *, values: bool = True) -> Iterator[FieldError]:
    for index, expression in enumerate(items(term, "matchExpressions")):
        yield from _requirement_errors(expression, f"{path}.matchExpressions[{index}]", values=values)
    for index, expression in enumerate(items(term, "matchFields")):
        yield from _field_requirement_errors(expression, f"{path}.matchFields[{index}]")


def _requirement_errors(expression: Part, path: str, *, values: bool) -> Iterator[FieldError]:
    operator, given = expression.get("operator", ""), items(expression, "values")
    if operator in ("In", "NotIn"):
        if not given:
            yield refusals.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if given:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield refusals.forbidden_field(f"{path}.values", text)
    elif operator in ("Gt", "Lt"):
        if len(given) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield refusals.required(f"{path}.values", text)
    else:
        yield refusals.bad(f"{path}.operator", operator, "not a valid selector operator")
    yield from names.qualified_errors(f"{path}.key", expression.get("key", ""))
    for index, value in enumerate(given if values else ()):
        yield from names.label_value_errors(f"{path}.values[{index}]", value)


def _field_requirement_errors(expression: Part, path: str) -> Iterator[FieldError]:
    operator, given = expression.get("operator", ""), items(expression, "values")
    if operator not in ("In", "NotIn"):
        yield refusals.bad(f"{path}.operator", operator, "not a valid selector operator")
    elif len(given) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield refusals.required(f"{path}.values", text)
    if expression.get("key") != "metadata.name":
        yield refusals.bad(f"{path}.key", expression.get("key", ""), "not a valid field selector key")
        return
    for index, value in enumerate(given):
        yield from names.subdomain_errors(f"{path}.values[{index}]", value)


def _pod_term_errors(term: Part, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a term of (anti-)affinity to pods (validatePodAffinityTerm)."""
    for name in ("labelSelector", "namespaceSelector"):
        yield from selector_errors(part_of(term, name), f"{path}.{name}")
    for space in items(term, "namespaces"):
        for text in names.label_texts(space):
            yield refusals.bad(f"{path}.namespace", space, text)
    yield from match_key_errors(term, path)
    if not term.get("topologyKey"):
        yield refusals.required(f"{path}.topologyKey", "can not be empty")
    yield from names.qualified_errors(f"{path}.topologyKey", term.get("topologyKey", ""))


def match_key_errors(term: Part, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the keys whose values of the pod itself are looked for."""
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        if items(term, name) and term.get("labelSelector") is None:
            yield refusals.forbidden_field(f"{path}.{name}", "must not be specified when labelSelector is not set")
            continue
        for index, key in enumerate(items(term, name)):
            yield from names.qualified_errors(f"{path}.{name}[{index}]", key)
            if name == "matchLabelKeys" and key in items(term, "mismatchLabelKeys"):
                yield refusals.bad(
                    f"{path}.{name}[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys"
                )


def selector_errors(selector: Part, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with a label selector."""
    for key, value in (selector.get("matchLabels") or {}).items():
        yield from names.label_pair_errors(f"{path}.matchLabels", key, value)
    yield from expression_errors(selector, path)


def expression_errors(selector: Part, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the expressions of a label selector; with such it selects nothing."""
    for index, expression in enumerate(items(selector, "matchExpressions")):
        yield from expression_requirement_errors(expression, f"{path}.matchExpressions[{index}]")


def expression_requirement_errors(expression: Part, path: str, *, any_operator: bool = False) -> Iterator[FieldError]:
    """Yield what is wrong with one expression (ValidateLabelSelectorRequirement)."""
    operator, given = expression.get("operator", ""), items(expression, "values")
    if operator in ("In", "NotIn"):
        if not given:
            yield refusals.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if given:
            text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield refusals.forbidden_field(f"{path}.values", text)
    elif not any_operator:
        yield refusals.bad(f"{path}.operator", operator, "not a valid selector operator")
    yield from names.qualified_errors(f"{path}.key", expression.get("key", ""))
    for index, value in enumerate(given):
        yield from names.label_value_errors(f"{path}.values[{index}]", value)
