"""What is wrong with the annotations that mean something to a pod, and with their change.

Upstream: ValidatePodSpecificAnnotations, ValidatePodSpecificAnnotationUpdates, validateSeccompAnnotationsAndFields and
validateAppArmorAnnotationsAndFieldsMatchOnCreate of pkg/apis/core/validation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.emulated.core.checks.common import items, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.json_errors import json_error
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.pod_resources import MIRROR
from mews.kube.emulated.kinds.pods.preparation import APP_ARMOR
from mews.kube.emulated.kinds.pods.spec_errors import toleration_errors
from mews.kube.emulated.kinds.volumes.volume_errors import descending

Annotations = Mapping[str, str]
Spec = Mapping[str, Any]

_TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
_COST = "controller.kubernetes.io/pod-deletion-cost"
_COST_TEXT = re.compile(r"-[0-9]+|0|[1-9][0-9]*")
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_LOCAL = "localhost/"
_SECCOMP_NAMES = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}
_APP_ARMOR_NAMES = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default",)}
_LISTS = ("initContainers", "containers", "ephemeralContainers")


def annotation_errors(
    annotations: Annotations, spec: Spec, path: str, before: Annotations | None = None
) -> Iterator[FieldError]:
    """Yield the errors of a pod or a template; ``before``: those of the pod that is changed, whose wrong cost may stay
    wrong."""
    if MIRROR in annotations and not spec.get("nodeName"):
        text = "must set spec.nodeName if mirror pod annotation is set"
        yield refusals.bad(f"{path}[{MIRROR}]", annotations[MIRROR], text)
    if annotations.get(_TOLERATIONS):
        yield from _toleration_errors(annotations[_TOLERATIONS], path)
    if not _is_cost(annotations) and (before is None or _is_cost(before)):
        yield refusals.bad(f"{path}[{_COST}]", annotations[_COST], "must be a 32bit integer")
    for key in (_SECCOMP_POD, *(key for key in annotations if key.startswith(_SECCOMP))):
        if key in annotations:
            yield from _seccomp_errors(annotations[key], f"{path}.{key}")
    names = [container.get("name") for kind in _LISTS for container in items(spec, kind)]
    for key, profile in annotations.items():
        if key.startswith(APP_ARMOR):
            name = key.removeprefix(APP_ARMOR)
            if name not in names:
                yield refusals.bad(f"{path}[{key}]", name, "container not found")
            if profile not in ("", "runtime/default", "unconfined") and not profile.startswith(_LOCAL):
                text = f"invalid AppArmor profile name: {refusals.shown(profile)}"
                yield refusals.bad(f"{path}[{key}]", profile, text)


def annotation_change_errors(new: Annotations, old: Annotations, path: str) -> Iterator[FieldError]:
    """Yield those that a pod keeps as it was made with."""
    for key in old:
        if new.get(key) != old[key]:
            if key.startswith(APP_ARMOR):
                yield refusals.forbidden_field(f"{path}[{key}]", "may not remove or update AppArmor annotations")
            if key == MIRROR:
                yield refusals.forbidden_field(f"{path}[{key}]", "may not remove or update mirror pod annotation")
    for key in new:
        if key not in old:
            if key.startswith(APP_ARMOR):
                yield refusals.forbidden_field(f"{path}[{key}]", "may not add AppArmor annotations")
            if key == MIRROR:
                yield refusals.forbidden_field(f"{path}[{key}]", "may not add mirror pod annotation")


def profile_errors(annotations: Annotations, spec: Spec, path: str) -> Iterator[FieldError]:
    """Profiles that annotations and fields name otherwise, of what is made."""
    own = part_of(spec, "securityContext")
    if _SECCOMP_POD in annotations:
        profile, here = own.get("seccompProfile"), f"{path}.securityContext.seccompProfile"
        yield from _mismatch(annotations[_SECCOMP_POD], profile, here, _SECCOMP_NAMES, "seccomp")
    places = [
        (container, f"{path}.{kind}[{index}].securityContext")
        for kind in _LISTS
        for index, container in enumerate(items(spec, kind))
    ]
    for container, here in places:
        given = annotations.get(f"{_SECCOMP}{container.get('name', '')}")
        if given is not None:
            profile = part_of(container, "securityContext").get("seccompProfile")
            yield from _mismatch(given, profile, f"{here}.seccompProfile", _SECCOMP_NAMES, "seccomp")
    if part_of(spec, "os").get("name") == "windows":
        return
    for container, here in places:
        given = annotations.get(f"{APP_ARMOR}{container.get('name', '')}")
        if given is not None:
            profile = part_of(container, "securityContext").get("appArmorProfile") or own.get("appArmorProfile")
            yield from _mismatch(given, profile, f"{here}.appArmorProfile", _APP_ARMOR_NAMES, "apparmor")


def _mismatch(
    given: str, profile: Spec | None, path: str, names: Mapping[str, tuple[str, ...]], noun: str
) -> Iterator[FieldError]:
    kind = (profile or {}).get("type")
    if profile is None or kind not in (*names, "Localhost"):
        return
    if given not in names.get(kind, ()) if kind in names else not given.startswith(_LOCAL):
        yield refusals.forbidden_field(f"{path}.type", f"{noun} type in annotation and field must match")
    elif kind == "Localhost" and given.removeprefix(_LOCAL) != profile.get("localhostProfile"):
        text = f"{noun} profile in annotation and field must match"
        yield refusals.forbidden_field(f"{path}.localhostProfile", text)


def _is_cost(annotations: Annotations) -> bool:
    """Return whether what a pod's deletion costs is a number, if it is given (GetDeletionCostFromPodAnnotations)."""
    text = annotations.get(_COST)
    return text is None or (_COST_TEXT.fullmatch(text) is not None and -(2**31) <= int(text) < 2**31)


def _toleration_errors(text: str, path: str) -> Iterator[FieldError]:
    try:
        given = json.loads(text)
    except ValueError:
        yield refusals.bad(path, _TOLERATIONS, json_error(text.encode()))
        return
    if isinstance(given, list) and all(isinstance(each, dict) for each in given):
        for index, toleration in enumerate(given):
            yield from toleration_errors(toleration, f"{path}.{_TOLERATIONS}[{index}]")


def _seccomp_errors(profile: str, path: str) -> Iterator[FieldError]:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return
    if profile.startswith(_LOCAL):
        yield from descending(path, profile.removeprefix(_LOCAL))
    else:
        yield refusals.bad(path, profile, "must be a valid seccomp profile")
