"""What is wrong with a pod, and with a change of one (ValidatePodUpdate of pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, annotations_of, clone
from mews.kube.emulated.core.checks.common import items, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.annotation_errors import annotation_change_errors, annotation_errors
from mews.kube.emulated.kinds.pods.pod_resources import MIRROR, resize_errors, unresizable
from mews.kube.emulated.kinds.pods.spec_errors import spec_errors, toleration_errors
from mews.kube.emulated.types import internal_kinds

Spec = Mapping[str, Any]

_CHANGED_LISTS = ("containers", "initContainers")
_LONGEST_DEADLINE_S = 2**31 - 1
_FORBIDDEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_ANNOTATIONS = "metadata.annotations"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def pod_errors(pod: Object, before: Mapping[str, str] | None = None) -> list[FieldError]:
    """Return what is wrong with a pod, new or changed; ``before``: the annotations of the one that is changed."""
    spec = pod["spec"]
    found = [*annotation_errors(annotations_of(pod), spec, _ANNOTATIONS, before), *spec_errors(spec, "spec")]
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(items(spec, "volumes")):
            for place, source in enumerate(items(part_of(volume, "projected"), "sources")):
                if source.get("serviceAccountToken") is not None:
                    path = f"spec.volumes[{index}].projected.sources[{place}].serviceAccountToken"
                    text = "must not be specified when serviceAccountName is not set"
                    found.append(refusals.forbidden_field(path, text))
    for name in (*_CHANGED_LISTS, "ephemeralContainers"):
        for index, container in enumerate(items(spec, name)):
            found += _space_errors(container, f"spec.{name}[{index}].image")
    return found


def _space_errors(container: Spec, path: str) -> list[FieldError]:
    """Return what is asked of pods but not of templates, whose images others may fill in."""
    image = container.get("image", "")
    if image == image.strip():
        return []
    return [refusals.bad(path, image, "must not have leading or trailing whitespace")]


def pod_change_errors(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with the change of a pod's spec."""
    spec, before, found = new["spec"], old["spec"], list[FieldError]()
    for name in _CHANGED_LISTS:
        if len(items(spec, name)) != len(items(before, name)):
            text = "pod updates may not add or remove containers"
            return [*found, refusals.forbidden_field(f"spec.{name}", text)]
        for index, container in enumerate(items(spec, name)):
            path = f"spec.{name}[{index}].image"
            found += [] if container.get("image") else [refusals.required(path)]
            found += _space_errors(container, path)
    late, stop = _deadline_errors(spec.get("activeDeadlineSeconds"), before.get("activeDeadlineSeconds"))
    found += late
    if stop:
        return found
    found += _toleration_errors(items(spec, "tolerations"), items(before, "tolerations"))
    found += _gate_errors(items(spec, "schedulingGates"), items(before, "schedulingGates"))
    return found + ([] if spec == before else [*_fixed_errors(spec, before)])


def subresource_errors(new: Object, old: Object, subresource: str) -> list[FieldError]:
    """Return what is wrong with a change by PUT or PATCH of the pod, or of one of its subresources."""
    after, before = annotations_of(new), annotations_of(old)
    own = pod_errors(new, before)
    if subresource == "resize":
        return [*unresizable(new, old)] or [*own, *resize_errors(new, old)]
    changed = [*annotation_change_errors(after, before, _ANNOTATIONS)]
    changed += annotation_errors(after, new["spec"], _ANNOTATIONS, before)
    if subresource == "ephemeralcontainers":
        if MIRROR in before:
            return [refusals.forbidden_field("[]", "static pods do not support ephemeral containers")]
        return [*own, *changed, *_ephemeral_errors(new["spec"], old)]
    return [*own, *changed, *pod_change_errors(new, old)]


def _ephemeral_errors(spec: Spec, old: Object) -> Iterator[FieldError]:
    """They are added only (ValidatePodEphemeralContainersUpdate)."""
    path, given = "spec.ephemeralContainers", {each["name"]: each for each in items(spec, "ephemeralContainers")}
    for known in items(old["spec"], "ephemeralContainers"):
        quoted = f'existing ephemeral containers "{known["name"]}"'
        if known["name"] not in given:
            yield refusals.forbidden_field(path, f"{quoted} may not be removed\n")
        elif given[known["name"]] != known:
            changed = internal_kinds.difference(known, given[known["name"]], "core.EphemeralContainer")
            yield refusals.forbidden_field(path, f"{quoted} may not be changed\n{changed}")


def _deadline_errors(now: Any, before: Any) -> tuple[list[FieldError], bool]:
    """Deadlines come nearer only; whether nothing else is looked at."""
    path = "spec.activeDeadlineSeconds"
    if now is None:
        text = "must not update from a positive integer to nil value"
        return ([] if before is None else [refusals.bad(path, None, text)]), False
    if not 0 <= now <= _LONGEST_DEADLINE_S:
        return [refusals.bad(path, now, f"must be between 0 and {_LONGEST_DEADLINE_S}, inclusive")], True
    if before is not None and before < now:
        return [refusals.bad(path, now, "must be less than or equal to previous value")], True
    return [], False


def _toleration_errors(given: Sequence[Spec], before: Sequence[Spec]) -> Iterator[FieldError]:
    fields = ("key", "operator", "value", "effect")
    shown = [tuple(toleration.get(name, "") for name in fields) for toleration in given]
    if any(tuple(known.get(name, "") for name in fields) not in shown for known in before):
        text = "existing toleration can not be modified except its tolerationSeconds"
        yield refusals.forbidden_field("spec.tolerations", text)
        return
    for index, toleration in enumerate(given):
        yield from toleration_errors(toleration, f"spec.tolerations[{index}]")


def _gate_errors(given: Sequence[Spec], before: Sequence[Spec]) -> Iterator[FieldError]:
    known = [gate.get("name", "") for gate in before]
    for index, gate in enumerate(given):
        if gate.get("name", "") not in known:
            text = f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            yield refusals.forbidden_field(f"spec.schedulingGates[{index}].name", text)


def _fixed_errors(spec: Spec, before: Spec) -> Iterator[FieldError]:
    """All the rest stays as it was; a pod that is not to be scheduled yet may narrow down where."""
    fixed: dict[str, Any] = clone(dict(spec))
    for name in _CHANGED_LISTS:
        for container, known in zip(items(fixed, name), items(before, name), strict=True):
            _keep(container, known, "image")
    for name in ("activeDeadlineSeconds", "schedulingGates", "tolerations"):
        _keep(fixed, before, name)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0 and fixed.get("terminationGracePeriodSeconds") == 1:
        _keep(fixed, before, "terminationGracePeriodSeconds")
    if before.get("schedulingGates"):
        yield from _selector_errors(part_of(fixed, "nodeSelector"), part_of(before, "nodeSelector"))
        _keep(fixed, before, "nodeSelector")
        now, former = (part_of(each, "affinity").get("nodeAffinity") for each in (fixed, before))
        if now != former:
            yield from _affinity_errors(now or {}, former or {})
            _keep_affinity(fixed, before, former)
    if fixed != before:
        changed = internal_kinds.difference(before, fixed, "core.PodSpec")
        yield refusals.forbidden_field("spec", f"{_FORBIDDEN}\n{changed}")


def _keep(part: dict[str, Any], before: Spec, name: str) -> None:
    part.pop(name, None)
    if name in before:
        part[name] = before[name]


def _keep_affinity(fixed: dict[str, Any], before: Spec, former: Any) -> None:
    others = {name: value for name, value in part_of(fixed, "affinity").items() if name != "nodeAffinity"}
    if before.get("affinity") is None and not others:
        fixed.pop("affinity", None)
    else:
        fixed["affinity"] = others if former is None else {**others, "nodeAffinity": former}


def _selector_errors(now: Spec, before: Spec) -> Iterator[FieldError]:
    if any(now.get(key) != value for key, value in before.items()):
        text = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield refusals.bad("spec.nodeSelector", dict(now) or None, text)


def _affinity_errors(now: Spec, before: Spec) -> Iterator[FieldError]:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    old_terms, terms = (items(part_of(each, _REQUIRED), "nodeSelectorTerms") for each in (before, now))
    if old_terms and len(old_terms) != len(terms):
        text = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield refusals.bad(path, [_term_shown(term) for term in terms] or None, text)
        return
    for index, (term, known) in enumerate(zip(terms, old_terms, strict=False)):
        if not _only_adds(term, known):
            text = "only additions are allowed (no mutations or deletions)"
            yield refusals.bad(f"{path}[{index}]", _term_shown(term), text)


def _only_adds(term: Spec, known: Spec) -> bool:
    parts = ("matchExpressions", "matchFields")
    if not any(items(known, part) for part in parts) and any(items(term, part) for part in parts):
        return False
    return all([*items(term, part)][: len(items(known, part))] == [*items(known, part)] for part in parts)


def _term_shown(term: Spec) -> dict[str, Any]:
    """Return them as Go prints its own struct."""

    def requirement(each: Spec) -> dict[str, Any]:
        return {"Key": each.get("key", ""), "Operator": each.get("operator", ""), "Values": each.get("values")}

    return {
        shown: [requirement(each) for each in items(term, name)] or None
        for shown, name in (("MatchExpressions", "matchExpressions"), ("MatchFields", "matchFields"))
    }
