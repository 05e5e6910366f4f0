"""The status of ValidatingAdmissionPolicies: what their expressions do wrong with the kinds that they are about.

Source: k8s.io/apiserver pkg/admission/plugin/policy/validating/typechecking.go; there the controller manager
writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.cel.types import DYN, Type
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.types.policy_expressions import policy_variables

_MOST_KINDS = 10


def attend(store: Store, kind: Kind, new: Object | None) -> None:
    """After a policy was written: give its new generation its status."""
    if new is None:
        return
    generation, status = new["metadata"].get("generation", 1), new.get("status") or {}
    if status.get("observedGeneration") == generation:
        return
    found = [*_warnings(store, new["spec"])]
    checked = {"expressionWarnings": found} if found else {}
    status = {**status, "observedGeneration": generation, "typeChecking": checked}
    store.commit(kind, ("", new["metadata"]["name"]), {**new, "metadata": dict(new["metadata"]), "status": status})


def _warnings(store: Store, spec: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    kinds = [*_kinds(store, (spec.get("matchConstraints") or {}).get("resourceRules") or ())][:_MOST_KINDS]
    params = _params(store, spec)
    for path, source in _expressions(spec):
        texts = []
        for kind in kinds:
            report = _report(spec, source, kind, params)
            if report:
                resource = kind.resource
                shown = f"{resource.group}/{resource.version}, Kind={resource.kind}"
                texts.append(f"{shown}: {report}\n")
        if texts:
            yield {"fieldRef": path, "warning": "\n".join(texts)}


def _expressions(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for index, validation in enumerate(spec.get("validations") or ()):
        for name in ("expression", "messageExpression"):
            if validation.get(name):
                yield f"spec.validations[{index}].{name}", validation[name]


def _report(spec: Mapping[str, Any], source: str, kind: Kind, params: Type) -> str:
    """Return what is wrong with an expression about objects of that kind."""
    from mews.kube.cel.expressions import compiled
    from mews.kube.emulated.types.cel_types import kind_type

    mine = kind_type(kind)
    declared: dict[str, Type] = {}

    def known() -> dict[str, Type]:
        found = policy_variables(params=spec.get("paramKind") is not None, variables=declared)
        found |= {"object": mine, "oldObject": mine}
        if "params" in found:
            found["params"] = params
        return found

    for variable in spec.get("variables") or ():
        declared[variable["name"]] = compiled(variable["expression"].strip(), known()).type
    return compiled(source.strip(), known()).error


def _params(store: Store, spec: Mapping[str, Any]) -> Type:
    from mews.kube.emulated.types.cel_types import kind_type

    wanted = spec.get("paramKind") or {}
    for kind in store.kinds:
        if (kind.resource.api_version, kind.resource.kind) == (wanted.get("apiVersion"), wanted.get("kind")):
            return kind_type(kind)
    return DYN


def _kinds(store: Store, rules: Sequence[Mapping[str, Any]]) -> Iterator[Kind]:
    """Yield the kinds that rules name outright: of wildcards nothing is said."""
    seen = set()
    for rule in rules:
        if any("*" in (rule.get(name) or ()) for name in ("apiGroups", "apiVersions")):
            continue
        for group in rule.get("apiGroups") or ():
            for version in rule.get("apiVersions") or ():
                for plural in rule.get("resources") or ():
                    kind = store.kinds.find(group, version, plural)
                    if kind is not None and kind.resource not in seen:
                        seen.add(kind.resource)
                        yield kind
