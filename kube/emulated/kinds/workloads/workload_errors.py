"""What is wrong with workloads (pkg/apis/apps/validation, pkg/apis/batch/validation)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, annotations_of, labels_of
from mews.kube.api.selectors import match_expressions
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.common import items
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import label_and_annotation_errors
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.annotation_errors import annotation_errors, profile_errors
from mews.kube.emulated.kinds.pods.spec_errors import at_least_zero, spec_errors
from mews.kube.emulated.kinds.volumes.persistent_volume_claims import claim_spec_errors

_ALWAYS = ("Always",)
_ANY = ("Always", "OnFailure", "Never")
FOR_JOBS = ("OnFailure", "Never")
_PERCENT = re.compile(r"[0-9]+%")
UNMATCHED = "`selector` does not match template `labels`"


def deployment_errors(deployment: Object) -> list[FieldError]:
    """Return what is wrong with a Deployment."""
    spec = deployment["spec"]
    found = [*at_least_zero("spec.replicas", spec.get("replicas")), *selection_errors(spec)]
    found += _strategy_errors(spec.get("strategy") or {})
    for name in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        found += at_least_zero(f"spec.{name}", spec.get(name))
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        found.append(refusals.bad("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"))
    return found


def replica_set_errors(replica_set: Object) -> list[FieldError]:
    """Return what is wrong with a ReplicaSet."""
    spec = replica_set["spec"]
    found = [*at_least_zero("spec.replicas", spec.get("replicas"))]
    return [*found, *at_least_zero("spec.minReadySeconds", spec.get("minReadySeconds")), *selection_errors(spec)]


def replication_controller_errors(controller: Object) -> list[FieldError]:
    """Return what is wrong with a ReplicationController."""
    spec = controller["spec"]
    found = [*at_least_zero("spec.minReadySeconds", spec.get("minReadySeconds"))]
    if not spec.get("selector"):
        found.append(refusals.required("spec.selector"))
    found += at_least_zero("spec.replicas", spec.get("replicas"))
    template = spec.get("template")
    if template is None:
        return [*found, refusals.required("spec.template")]
    labels = labels_of(template)
    if any(labels.get(key) != value for key, value in (spec.get("selector") or {}).items()):
        found.append(refusals.bad("spec.template.metadata.labels", dict(labels) or None, UNMATCHED))
    return [*found, *template_errors(template, "spec.template", _ALWAYS, of="ReplicationController")]


def daemon_set_errors(daemon_set: Object) -> list[FieldError]:
    """Return what is wrong with a DaemonSet."""
    spec, found = daemon_set["spec"], list[FieldError]()
    selector, template = spec.get("selector"), spec.get("template") or {}
    wrong = list(selector_errors(selector or {}, "spec.selector"))
    empty = selector is not None and not any(selector.values())
    labels = labels_of(template)
    found += wrong
    if not wrong and (selector is None or not (empty or match_expressions(selector, labels))):
        found.append(refusals.bad("spec.template.metadata.labels", dict(labels) or None, UNMATCHED))
    if empty:
        found.append(refusals.bad("spec.selector", {}, "empty selector is invalid for daemonset"))
    found += template_errors(template, "spec.template", _ALWAYS, of="DaemonSet")
    found += at_least_zero("spec.minReadySeconds", spec.get("minReadySeconds"))
    found += _daemon_strategy_errors(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    return [*found, *at_least_zero("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))]


def _daemon_strategy_errors(strategy: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return
    numbers = [(rolling or {}).get(name, 0) for name in ("maxUnavailable", "maxSurge")]
    if kind != "RollingUpdate":
        amounts = None if rolling is None else dict(zip(("MaxUnavailable", "MaxSurge"), numbers, strict=True))
        yield refusals.unsupported(path, {"Type": kind, "RollingUpdate": amounts}, ("RollingUpdate", "OnDelete"))
        return
    path = f"{path}.rollingUpdate"
    if rolling is None:
        yield refusals.required(path)
        return
    paths = (f"{path}.maxUnavailable", f"{path}.maxSurge")
    for check in (common.percent_or_count, common.at_most_everything):
        for here, number in zip(paths, numbers, strict=True):
            yield from check(here, number)
    unavailable, surge = (_amount(number) != 0 for number in numbers)
    if unavailable and surge:
        yield refusals.bad(paths[1], numbers[1], "may not be set when maxUnavailable is non-zero")
    elif not unavailable and not surge:
        yield refusals.required(paths[0], "cannot be 0 when maxSurge is 0")


def _amount(value: Any) -> int:
    """Return a number, or the number of a share; 0 for what is neither."""
    if isinstance(value, str):
        return int(value[:-1]) if _PERCENT.fullmatch(value) else 0
    return int(value or 0)


def stateful_set_errors(stateful_set: Object) -> list[FieldError]:
    """Return what is wrong with a StatefulSet."""
    spec = stateful_set["spec"]
    return [*_stateful_errors(spec, items(spec, "volumeClaimTemplates"), spec.get("serviceName", ""))]


def _stateful_errors(spec: Mapping[str, Any], claims: Sequence[Any], service: str) -> Iterator[FieldError]:
    """``claims`` and ``service``: those that are looked at, since an update cannot change them."""
    policy = spec.get("podManagementPolicy", "")
    if not policy:
        yield refusals.required("spec.podManagementPolicy")
    elif policy not in ("OrderedReady", "Parallel"):
        yield refusals.bad("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _stateful_strategy_errors(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy")
    for name in ("whenDeleted", "whenScaled") if retention is not None else ():
        path = f"spec.persistentVolumeClaimRetentionPolicy.{name}"
        yield from common.option(path, (retention or {}).get(name, "Retain"), ("Retain", "Delete"))
    for index, claim in enumerate(claims):
        yield from claim_spec_errors((claim or {}).get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    yield from at_least_zero("spec.replicas", spec.get("replicas"))
    yield from at_least_zero("spec.minReadySeconds", spec.get("minReadySeconds"))
    yield from at_least_zero("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
    if service:
        yield from common.label("spec.serviceName", service)
    selector = spec.get("selector")
    wrong = list(selector_errors(selector or {}, "spec.selector"))
    selects_all = selector is not None and not any(selector.values())
    if selector is None:
        yield refusals.required("spec.selector")
    yield from wrong
    if selects_all:
        yield refusals.bad("spec.selector", {}, "empty selector is invalid for statefulset")
    if wrong:
        yield FieldError("spec.selector", "FieldValueInvalid", refusals.shown(selector))
    else:
        yield from _stateful_template_errors(spec, selects_all=selects_all)
    yield from _lasting_errors(spec.get("template") or {}, "spec.template", _ALWAYS, "StatefulSet")


def _stateful_strategy_errors(strategy: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    shown = None if rolling is None else {"Partition": rolling.get("partition", 0), "MaxUnavailable": None}
    if not kind:
        yield refusals.required(path)
    elif kind not in ("RollingUpdate", "OnDelete"):
        text = "must be 'RollingUpdate' or 'OnDelete'"
        yield refusals.bad(path, {"Type": kind, "RollingUpdate": shown}, text)
    elif kind == "OnDelete" and rolling is not None:
        yield refusals.bad(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
    elif rolling is not None:
        yield from at_least_zero(f"{path}.rollingUpdate.partition", rolling.get("partition", 0))


def _stateful_template_errors(spec: Mapping[str, Any], *, selects_all: bool) -> Iterator[FieldError]:
    """Pods have the volumes of the claims; host name and subdomain are set by the controller."""
    template, path = spec.get("template") or {}, "spec.template"
    labels, pod = labels_of(template), dict(template.get("spec") or {})
    if (not selects_all and not match_expressions(spec.get("selector") or {}, labels)) or spec.get("selector") is None:
        yield refusals.bad(f"{path}.metadata.labels", dict(labels) or None, UNMATCHED)
    for name in ("subdomain", "hostname"):
        pod.pop(name, None)
    claimed = [((claim or {}).get("metadata") or {}).get("name", "") for claim in items(spec, "volumeClaimTemplates")]
    if claimed:
        volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in dict.fromkeys(claimed)]
        pod["volumes"] = [*volumes, *(each for each in items(pod, "volumes") if each.get("name", "") not in claimed)]
    yield from _template_part_errors({**template, "spec": pod}, path)
    for error in label_and_annotation_errors(template.get("metadata") or {}):
        yield FieldError(f"{path}.{error.path.removeprefix('metadata.')}", error.reason, error.text)


_CHANGEABLE = (
    "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)  # fmt: skip
_STATEFUL_FIXED = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def stateful_set_change_errors(new: Object, old: Object, subresource: str) -> list[FieldError]:
    """Return what is wrong with a StatefulSet that is updated; what is fixed is not looked at once more."""
    if subresource:
        return []
    found = [*_stateful_errors(new["spec"], (), "")]
    fixed, before = (
        {name: value for name, value in obj["spec"].items() if name not in _CHANGEABLE} for obj in (new, old)
    )
    return found + ([] if fixed == before else [refusals.forbidden_field("spec", _STATEFUL_FIXED)])


def selection_errors(
    spec: Mapping[str, Any], allowed: Sequence[str] = _ALWAYS, *, of: str = "deployment"
) -> Iterator[FieldError]:
    """The selector must be there and select the template's pods; the template must be a good one."""
    selector, template = spec.get("selector"), spec.get("template") or {}
    selects_all = selector is not None and not any(selector.values())
    if selector is None:
        yield refusals.required("spec.selector")
    else:
        yield from selector_errors(selector, "spec.selector")
        if selects_all:
            yield refusals.bad("spec.selector", {}, f"empty selector is invalid for {of}")
    labels = labels_of(template)
    if any(selector_errors(selector or {}, "spec.selector")):
        yield refusals.bad("spec.selector", selector, "invalid label selector")
        return
    if selector is None or not (selects_all or match_expressions(selector, labels)):
        yield refusals.bad("spec.template.metadata.labels", dict(labels) or None, UNMATCHED)
    yield from template_errors(template, "spec.template", allowed)


def pod_template_errors(pod_template: Object) -> list[FieldError]:
    """Return what is wrong with a PodTemplate."""
    return [*template_errors(pod_template.get("template") or {}, "template", _ANY)]


def template_errors(
    template: Mapping[str, Any], path: str, allowed: Sequence[str], *, of: str = "ReplicaSet"
) -> Iterator[FieldError]:
    """Yield a pod template, whose pods may be restarted only so."""
    yield from _template_part_errors(template, path)
    yield from _lasting_errors(template, path, allowed, of)


def _template_part_errors(template: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    spec = template.get("spec") or {}
    for error in label_and_annotation_errors(template.get("metadata") or {}):
        yield FieldError(f"{path}.{error.path.removeprefix('metadata.')}", error.reason, error.text)
    annotations = annotations_of(template)
    yield from annotation_errors(annotations, spec, f"{path}.annotations")
    yield from spec_errors(spec, f"{path}.spec")
    yield from profile_errors(annotations, spec, f"{path}.spec")
    if spec.get("ephemeralContainers"):
        text = "ephemeral containers not allowed in pod template"
        yield refusals.forbidden_field(f"{path}.spec.ephemeralContainers", text)


def _lasting_errors(template: Mapping[str, Any], path: str, allowed: Sequence[str], of: str) -> Iterator[FieldError]:
    """Pods that are kept running are restarted always, and have no end."""
    spec = template.get("spec") or {}
    restart = spec.get("restartPolicy", "")
    if restart not in allowed and allowed is _ALWAYS:
        yield refusals.unsupported(f"{path}.spec.restartPolicy", restart, allowed)
    if spec.get("activeDeadlineSeconds") is not None and allowed is _ALWAYS:
        text = f"activeDeadlineSeconds in {of} is not Supported"
        yield refusals.forbidden_field(f"{path}.spec.activeDeadlineSeconds", text)


_AMOUNTS = ("MaxUnavailable", "MaxSurge")


def _strategy_errors(strategy: Mapping[str, Any]) -> Iterator[FieldError]:
    kind, rolling = strategy.get("type", ""), strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is not None:
            text = "may not be specified when strategy `type` is 'Recreate'"
            yield refusals.forbidden_field("spec.strategy.rollingUpdate", text)
    elif kind != "RollingUpdate":
        amounts = None if rolling is None else {name: rolling.get(name[0].lower() + name[1:], 0) for name in _AMOUNTS}
        yield refusals.unsupported(
            "spec.strategy", {"Type": kind, "RollingUpdate": amounts}, ("Recreate", "RollingUpdate")
        )
    elif rolling is not None:
        yield from _rolling_errors(rolling, "spec.strategy.rollingUpdate")


def _rolling_errors(rolling: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    numbers = {}
    for name in ("maxUnavailable", "maxSurge"):
        value = rolling.get(name)
        if isinstance(value, str) and not _PERCENT.fullmatch(value):
            text = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
            yield refusals.bad(f"{path}.{name}", value, f"{text}regex used for validation is '[0-9]+%')")
        elif isinstance(value, int):
            yield from at_least_zero(f"{path}.{name}", value)
        numbers[name] = int(value.rstrip("%")) if isinstance(value, str) and _PERCENT.fullmatch(value) else value
    if numbers["maxUnavailable"] == 0 and numbers["maxSurge"] == 0:
        yield refusals.bad(f"{path}.maxUnavailable", rolling["maxUnavailable"], "may not be 0 when `maxSurge` is 0")
    unavailable = rolling.get("maxUnavailable")
    if isinstance(unavailable, str) and _PERCENT.fullmatch(unavailable) and int(unavailable[:-1]) > 100:
        yield refusals.bad(f"{path}.maxUnavailable", unavailable, "must not be greater than 100%")
