"""What is wrong with a question who may do what (pkg/apis/authorization/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.emulated.core.checks.affinity_errors import expression_requirement_errors
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError

_RESOURCE, _PATH = "spec.resourceAttributes", "spec.nonResourceAttributes"


def access_errors(spec: Part, *, user: bool, space: str | None) -> Iterator[FieldError]:
    """Yield what is wrong with the question; ``user``: it names one; ``space``: the namespace that it may be about."""
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        text = "cannot be specified in combination with resourceAttributes"
        yield refusals.bad(_PATH, _path_shown(path), text)
    if resource is None and path is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        yield refusals.bad(_RESOURCE, None, text)
    if user and not spec.get("user") and not spec.get("groups"):
        yield refusals.bad("spec.user", "", "at least one of user or group must be specified")
    if resource is not None:
        yield from _selector_errors(resource.get("fieldSelector"), f"{_RESOURCE}.fieldSelector", labels=False)
        yield from _selector_errors(resource.get("labelSelector"), f"{_RESOURCE}.labelSelector", labels=True)
    if space is None:
        return
    if resource is not None and resource.get("namespace", "") != space:
        yield refusals.bad(f"{_RESOURCE}.namespace", resource.get("namespace", ""), "must match metadata.namespace")
    if path is not None:
        yield refusals.bad(_PATH, _path_shown(path), "disallowed on this kind of request")


def _path_shown(path: Part) -> dict[str, str]:
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


def _selector_errors(selector: Part | None, path: str, *, labels: bool) -> Iterator[FieldError]:
    if selector is None:
        return
    raw, requirements = selector.get("rawSelector", ""), items(selector, "requirements")
    if raw and requirements:
        yield refusals.bad(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
    if not raw and not requirements:
        text = f"when {path} is specified, requirements or rawSelector is required"
        yield refusals.required(f"{path}.requirements", text)
    for index, requirement in enumerate(requirements):
        here = f"{path}.requirements[{index}]"
        if labels:
            yield from expression_requirement_errors(requirement, here, any_operator=True)
        else:
            yield from _field_errors(requirement, here)


def _field_errors(requirement: Part, path: str) -> Iterator[FieldError]:
    operator, values = requirement.get("operator", ""), items(requirement, "values")
    if not requirement.get("key"):
        yield refusals.required(f"{path}.key", "must be specified")
    if operator in ("In", "NotIn"):
        if not values:
            yield refusals.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        yield refusals.forbidden_field(f"{path}.values", text)
