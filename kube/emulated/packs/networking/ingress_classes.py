"""IngressClasses (pkg/apis/networking/validation)."""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.checks.common import Part, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of
from mews.kube.emulated.packs.networking.references import reference_errors

_LONGEST_CONTROLLER = 250


def _class_errors(ingress_class: Object) -> list[FieldError]:
    spec = part_of(ingress_class, "spec")
    controller, parameters = spec.get("controller", ""), spec.get("parameters")
    found = [common.too_long("spec.controller", _LONGEST_CONTROLLER)] if len(controller) > _LONGEST_CONTROLLER else []
    found += common.domain_path("spec.controller", controller)
    return found + ([*_parameter_errors(parameters, "spec.parameters")] if parameters is not None else [])


def _parameter_errors(parameters: Part, path: str) -> Iterator[FieldError]:
    yield from reference_errors(parameters, path)
    scope, space = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        yield refusals.required(f"{path}.scope")
    if scope not in ("Cluster", "Namespace"):
        yield refusals.unsupported(f"{path}.scope", scope or "", ("Cluster", "Namespace"))
    elif scope == "Namespace" and space is None:
        yield refusals.required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from common.label(f"{path}.namespace", str(space))
    elif space is not None:
        yield refusals.forbidden_field(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")


def _default_class(ingress_class: Object) -> None:
    parameters = part_of(ingress_class, "spec").get("parameters")
    if parameters is not None:
        parameters.setdefault("scope", "Cluster")


def _compare_class(new: Object, old: Object) -> list[FieldError]:
    after, before = (part_of(obj, "spec").get("controller", "") for obj in (new, old))
    return [*common.fixed("spec.controller", after, before)]


def _ingress_class(obj: Object, _: float) -> Row:
    parameters, text = spec_of(obj).get("parameters"), "<none>"
    if parameters:
        group = parameters.get("apiGroup")
        text = f"{parameters.get('kind', '')}{f'.{group}' if group else ''}/{parameters.get('name', '')}"
    return [spec_of(obj).get("controller", ""), text]


RULES = Rules(
    printer=Printer(_ingress_class, is_part=True),
    default=_default_class,
    validate=_class_errors,
    compare=_compare_class,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, CHANGE, METADATA, OBJECT)),
)
