"""PodSecurity: namespaces' labels enforce, audit and warn (k8s.io/pod-security-admission admission)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.api.resources import NAMESPACES, PODS
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, refused
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.selection import Selection
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.kinds.pods.pod_security_checks import CHECKS, LATEST, Finding, findings

_LABEL = "pod-security.kubernetes.io/"
_MODES = ("enforce", "audit", "warn")
_KEYS = frozenset(f"{_LABEL}{mode}" for mode in _MODES)
_VERSION = re.compile(r"v1\.([0-9]|[1-9][0-9]*)")
_TEMPLATED = frozenset(
    "cronjobs daemonsets deployments jobs podtemplates replicasets replicationcontrollers statefulsets".split()  # noqa: SIM905
)
_WRITES = (AdmissionOperation.CREATE, AdmissionOperation.UPDATE)
_SHOWN_PODS = 10

Labels = Mapping[str, str]


def _handles(kind: Kind, operation: AdmissionOperation, subresource: str) -> bool:
    if operation not in _WRITES or kind.custom:
        return False
    if kind.resource == PODS:
        return subresource in ("", "ephemeralcontainers", "resize")
    return not subresource and (kind.resource == NAMESPACES or kind.plural in _TEMPLATED)


def _validate(store: Store, attributes: AdmissionAttributes) -> None:
    if attributes.kind.resource == NAMESPACES:
        _check_namespace(store, attributes)
        return
    namespace = store.find(store.kinds.of(NAMESPACES), "", attributes.namespace)
    labels = ((namespace or {}).get("metadata") or {}).get("labels") or {}
    if _KEYS.isdisjoint(labels):
        return
    if attributes.kind.resource == PODS:
        _check_pod(attributes, labels)
    else:
        _check_template(attributes, labels)


def _level(labels: Labels, mode: str) -> str:
    """Return the level of a mode; what cannot be read is taken for the strictest when enforced, else for none. Where
    nothing is said of warnings, they follow what is enforced."""
    if mode == "warn" and f"{_LABEL}warn" not in labels:
        mode = "enforce"
    level = labels.get(f"{_LABEL}{mode}", "privileged")
    return level if level in CHECKS else "restricted" if mode == "enforce" else "privileged"


def _version(labels: Labels, mode: str) -> str:
    if mode == "warn" and f"{_LABEL}warn" not in labels:
        mode = "enforce"
    version = labels.get(f"{_LABEL}{mode}-version", "latest")
    return version if _VERSION.fullmatch(version) else "latest"


def _found(labels: Labels, mode: str, metadata: Object, spec: Mapping[str, Any]) -> list[Finding]:
    version = _version(labels, mode)
    minor = LATEST if version == "latest" else min(int(version.partition(".")[2]), LATEST)
    return findings(_level(labels, mode), minor, metadata, spec)


def _shown(labels: Labels, mode: str) -> str:
    return f'PodSecurity "{_level(labels, mode)}:{_version(labels, mode)}"'


def _text(found: Sequence[Finding]) -> str:
    return ", ".join(f"{what} ({where})" if where else what for what, where in found)


def _check_pod(attributes: AdmissionAttributes, labels: Labels) -> None:
    pod, old = attributes.obj, attributes.old
    assert pod is not None
    if old is not None and not _is_significant(pod, old):
        return
    found = _found(labels, "enforce", pod["metadata"], pod["spec"])
    if found:
        raise refused(attributes, f"violates {_shown(labels, 'enforce')}: {_text(found)}")
    _warn(attributes, labels, pod["metadata"], pod["spec"])


def _warn(attributes: AdmissionAttributes, labels: Labels, metadata: Object, spec: Mapping[str, Any]) -> None:
    found = _found(labels, "warn", metadata, spec)
    if found:
        attributes.request.warnings.append(f"would violate {_shown(labels, 'warn')}: {_text(found)}")


def _is_significant(new: Object, old: Object) -> bool:
    """Return whether an update of a pod changes more than what never matters to its security: images and the like."""

    def relevant(pod: Object) -> Any:
        spec = {
            key: value
            for key, value in pod["spec"].items()
            if key not in ("tolerations", "activeDeadlineSeconds", "schedulingGates", "nodeName")
        }
        for name in ("containers", "initContainers", "ephemeralContainers"):
            spec[name] = [
                {key: value for key, value in each.items() if key not in ("image", "resources")}
                for each in spec.get(name) or ()
            ]
        annotations = pod["metadata"].get("annotations") or {}
        return spec, {key: value for key, value in annotations.items() if "apparmor" in key}

    return bool(relevant(new) != relevant(old))


def _check_template(attributes: AdmissionAttributes, labels: Labels) -> None:
    obj = attributes.obj
    assert obj is not None
    spec = obj.get("spec") or {}
    if attributes.kind.plural == "cronjobs":
        spec = ((spec.get("jobTemplate") or {}).get("spec")) or {}
    template = obj.get("template") if attributes.kind.plural == "podtemplates" else spec.get("template")
    if template:
        _warn(attributes, labels, template.get("metadata") or {}, template.get("spec") or {})


def _check_namespace(store: Store, attributes: AdmissionAttributes) -> None:
    new, old = attributes.obj, attributes.old
    assert new is not None
    labels = new["metadata"].get("labels") or {}
    before = ((old or {}).get("metadata") or {}).get("labels") or {}
    errors = [*_label_errors(labels)]
    if errors and errors != [*_label_errors(before)]:
        raise refusals.invalid(attributes.kind, new["metadata"].get("name", ""), errors)
    if old is None or [labels.get(k) for k in _ENFORCING] == [before.get(k) for k in _ENFORCING]:
        return
    level = _level(labels, "enforce")
    if _STRICTNESS.index(level) > _STRICTNESS.index(_level(before, "enforce")) or level == _level(before, "enforce"):
        attributes.request.warnings.extend(_offenders(store, attributes.name, labels))


_ENFORCING = (f"{_LABEL}enforce", f"{_LABEL}enforce-version")
_STRICTNESS = ("privileged", "baseline", "restricted")


def _label_errors(labels: Labels) -> Iterator[FieldError]:
    for mode in _MODES:
        level, version = labels.get(f"{_LABEL}{mode}"), labels.get(f"{_LABEL}{mode}-version")
        if level is not None and level not in CHECKS:
            text = "must be one of privileged, baseline, restricted"
            yield refusals.bad(f"metadata.labels[{_LABEL}{mode}]", level, text)
        if version is not None and version != "latest" and not _VERSION.fullmatch(version):
            path = f"metadata.labels[{_LABEL}{mode}-version]"
            yield refusals.bad(path, version, 'must be "latest" or "v1.x"')


def _offenders(store: Store, namespace: str, labels: Labels) -> list[str]:
    """Return what a namespace's pods do that its new level forbids: pods that do the same are counted together."""
    by_text: dict[str, list[str]] = {}
    for pod in store.shelf(store.kinds.of(PODS)).select(Selection(namespace)):
        found = _found(labels, "enforce", pod["metadata"], pod["spec"])
        if found:
            text = ", ".join(what for what, _ in found)
            by_text.setdefault(text, []).append(pod["metadata"]["name"])
    if not by_text:
        return []
    shown = _shown(labels, "enforce").replace("PodSecurity ", "PodSecurity enforce level ")
    warnings = [f'existing pods in namespace "{namespace}" violate the new {shown}']
    named = []
    for text, names in by_text.items():
        rest = len(names) - 1
        more = f" (and {rest} other pod{'s' if rest != 1 else ''})" if rest else ""
        named.append(f"{names[0]}{more}: {text}")
    return [*warnings, *sorted(named)[:_SHOWN_PODS]]


PLUGIN = AdmissionPlugin("PodSecurity", _handles, validate=_validate)
