"""What is wrong with Jobs and with the templates of CronJobs (pkg/apis/batch/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object, labels_of
from mews.kube.api.selectors import match_expressions
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.spec_errors import at_least_zero
from mews.kube.emulated.kinds.workloads.index_lists import IndexListError, total_of
from mews.kube.emulated.kinds.workloads.workload_errors import FOR_JOBS, UNMATCHED, template_errors
from mews.kube.emulated.types import internal_kinds

Part = Mapping[str, Any]

_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_MODES = ("NonIndexed", "Indexed")
_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_MANY = 100_000
_FEWER = 10_000
_RULES = 20
_EXIT_CODES = 255
_MANAGER = 63
_INDEXES = 64 * 1024
_PREFIXED = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_LEGACY = ("controller-uid", "job-name")
_NEEDS_INDEXES = "requires indexed completion mode"


def is_indexed(spec: Part) -> bool:
    """Return whether its pods are numbered."""
    return spec.get("completionMode") == "Indexed"


def job_errors(job: Object) -> list[FieldError]:
    """Return what is wrong with a Job."""
    return [*_generated_errors(job, prefixed=True), *_own_errors(job["spec"]), *_hostname_errors(job)]


def job_change_errors(new: Object, old: Object, subresource: str) -> list[FieldError]:
    """Return what is wrong with a Job that is updated: upstream looks at the spec twice."""
    if subresource:
        return []
    before = labels_of(old["spec"].get("template") or {})
    own = list(_own_errors(new["spec"]))
    first = [
        *_generated_errors(new, prefixed=all(label in before for label in _PREFIXED)),
        *own,
        *_hostname_errors(new),
    ]
    return [*first, *own, *_fixed_errors(new["spec"], old)]


def _generated_errors(job: Object, *, prefixed: bool) -> Iterator[FieldError]:
    """Yield a selector and labels that were not made by hand are those that the server makes."""
    spec, selector = job["spec"], job["spec"].get("selector")
    if spec.get("manualSelector") or selector is None:
        return
    uid, name = job["metadata"].get("uid", ""), job["metadata"].get("name", "")
    labels = labels_of(spec.get("template") or {})
    wanted = dict(zip(_LEGACY, (uid, name), strict=True))
    if prefixed:
        wanted |= zip(_PREFIXED, (uid, name), strict=True)
    for label, value in wanted.items():
        path = f"spec.template.metadata.labels[{label}]"
        if label not in labels:
            yield refusals.required(path, f"must be '{value}'")
        elif labels[label] != value:
            yield refusals.bad(path, dict(sorted(labels.items())), f"must be '{value}'")
    if not any(selector_errors(selector, "")) and not match_expressions(selector, wanted):
        yield refusals.bad("spec.selector", shown_selector(selector), "`selector` not auto-generated")


def shown_selector(selector: Part) -> dict[str, Any]:
    """Return a label selector as Go prints it."""
    found: dict[str, Any] = {}
    if selector.get("matchLabels"):
        found["matchLabels"] = dict(sorted(selector["matchLabels"].items()))
    if selector.get("matchExpressions"):
        found["matchExpressions"] = selector["matchExpressions"]
    return found


def _hostname_errors(job: Object) -> Iterator[FieldError]:
    spec, name = job["spec"], job["metadata"].get("name", "")
    completions = spec.get("completions") or 0
    if is_indexed(spec) and completions > 0:
        host = f"{name}-{completions - 1}"
        if names.label_texts(host):
            text = f"will not able to create pod with invalid DNS label: {host}"
            yield refusals.bad("metadata.name", name, text)


def _own_errors(spec: Part) -> Iterator[FieldError]:
    """Yield the errors of the spec of a Job: what holds in a template of a CronJob too, and the selector."""
    yield from job_spec_errors(spec, "spec")
    selector, labels = spec.get("selector"), labels_of(spec.get("template") or {})
    if selector is None:
        yield refusals.required("spec.selector")
    else:
        yield from selector_errors(selector, "spec.selector")
        if any(selector_errors(selector, "")):
            return
    if selector is None or not match_expressions(selector, labels):
        yield refusals.bad("spec.template.metadata.labels", dict(sorted(labels.items())) or None, UNMATCHED)


def job_template_errors(template: Part, path: str) -> Iterator[FieldError]:
    """Yield the Jobs of a CronJob, whose selectors are always generated."""
    spec = template.get("spec") or {}
    yield from job_spec_errors(spec, f"{path}.spec")
    if spec.get("selector") is not None:
        text = "`selector` will be auto-generated"
        yield refusals.bad(f"{path}.spec.selector", shown_selector(spec["selector"]), text)
    if spec.get("manualSelector"):
        yield refusals.unsupported(f"{path}.spec.manualSelector", True, ("nil", "false"))


def job_spec_errors(spec: Part, path: str) -> Iterator[FieldError]:
    """Yield the errors of the spec of a Job all but its selector."""
    for name in _COUNTS:
        yield from at_least_zero(f"{path}.{name}", spec.get(name))
    manager = spec.get("managedBy")
    if manager is not None:
        yield from common.domain_path(f"{path}.managedBy", manager)
        if len(manager.encode()) > _MANAGER:
            yield common.too_long(f"{path}.managedBy", _MANAGER)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield refusals.required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    yield from _mode_errors(spec, path)
    if spec.get("podFailurePolicy") is not None:
        yield from _failure_policy_errors(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        yield from _success_policy_errors(spec, f"{path}.successPolicy")
    replacement = spec.get("podReplacementPolicy")
    if replacement is not None:
        allowed = _REPLACEMENTS[:1] if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
        yield from common.option(f"{path}.podReplacementPolicy", replacement, allowed)
    yield from template_errors(spec.get("template") or {}, f"{path}.template", FOR_JOBS)
    yield from _restart_errors(spec, f"{path}.template.spec.restartPolicy")


def _restart_errors(spec: Part, path: str) -> Iterator[FieldError]:
    restart = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    if restart == "Always":
        yield refusals.required(path, 'valid values: "OnFailure", "Never"')
    elif restart not in FOR_JOBS:
        yield refusals.unsupported(path, restart, FOR_JOBS)
    elif spec.get("podFailurePolicy") is not None and restart != "Never":
        yield refusals.bad(path, restart, 'only "Never" is supported when podFailurePolicy is specified')


def _mode_errors(spec: Part, path: str) -> Iterator[FieldError]:
    mode = spec.get("completionMode")
    if mode is not None:
        yield from common.option(f"{path}.completionMode", mode, _MODES)
    if mode == "Indexed":
        yield from _indexed_errors(spec, path)
    elif mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield refusals.bad(f"{path}.{name}", spec[name], _NEEDS_INDEXES)


def _indexed_errors(spec: Part, path: str) -> Iterator[FieldError]:
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        yield refusals.required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _MANY:
        text = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        yield refusals.bad(f"{path}.parallelism", parallelism, text)
    if completions is not None and failed is not None and failed > completions:
        yield refusals.bad(f"{path}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MANY:
        yield refusals.bad(f"{path}.maxFailedIndexes", failed, f"must be less than or equal to {_MANY}")
    if completions is None or completions <= _MANY or spec.get("backoffLimitPerIndex") is None:
        return
    if failed is None:
        yield refusals.required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {_MANY}")
    text = (
        f"must be less than or equal to {_FEWER} when completions are above {_MANY} and used with backoff limit per "
        "index"
    )
    for name, value in (("parallelism", parallelism), ("maxFailedIndexes", failed)):
        if value is not None and value > _FEWER:
            yield refusals.bad(f"{path}.{name}", value, text)


def _failure_policy_errors(spec: Part, path: str) -> Iterator[FieldError]:
    rules = common.items(spec["podFailurePolicy"], "rules")
    if len(rules) > _RULES:
        yield common.too_many(f"{path}.rules", len(rules), _RULES)
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = [
        container.get("name", "") for kind in ("containers", "initContainers") for container in common.items(pod, kind)
    ]
    for index, rule in enumerate(rules):
        yield from _failure_rule_errors(spec, rule or {}, f"{path}.rules[{index}]", containers)


def _failure_rule_errors(spec: Part, rule: Part, path: str, containers: Sequence[str]) -> Iterator[FieldError]:
    action = rule.get("action", "")
    if not action:
        yield refusals.required(f"{path}.action", _valid(_ACTIONS))
    elif action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        yield refusals.bad(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    else:
        yield from common.option(f"{path}.action", action, _ACTIONS)
    codes, conditions = rule.get("onExitCodes"), common.items(rule, "onPodConditions")
    if codes is not None:
        yield from _exit_code_errors(codes, f"{path}.onExitCodes", containers)
    yield from _pattern_errors(conditions, f"{path}.onPodConditions")
    if codes is not None and conditions:
        text = "specifying both OnExitCodes and OnPodConditions is not supported"
        yield FieldError(path, "FieldValueInvalid", text)
    if codes is None and not conditions:
        text = "specifying one of OnExitCodes and OnPodConditions is required"
        yield FieldError(path, "FieldValueInvalid", text)


def _valid(options: Sequence[str]) -> str:
    return "valid values: [" + " ".join(f'"{option}"' for option in options) + "]"


def _pattern_errors(conditions: Sequence[Part], path: str) -> Iterator[FieldError]:
    if len(conditions) > _RULES:
        yield common.too_many(path, len(conditions), _RULES)
    for index, pattern in enumerate(conditions):
        here, status = f"{path}[{index}]", (pattern or {}).get("status", "")
        yield from names.qualified_errors(f"{here}.type", (pattern or {}).get("type", ""))
        if not status:
            yield refusals.required(f"{here}.status", _valid(_STATUSES))
        else:
            yield from common.option(f"{here}.status", status, _STATUSES)


def _exit_code_errors(codes: Part, path: str, containers: Sequence[str]) -> Iterator[FieldError]:
    operator, name, values = codes.get("operator", ""), codes.get("containerName"), codes.get("values")
    if not operator:
        yield refusals.required(f"{path}.operator", _valid(_OPERATORS))
    else:
        yield from common.option(f"{path}.operator", operator, _OPERATORS)
    if name is not None and name not in containers:
        text = "must be one of the container or initContainer names in the pod template"
        yield refusals.bad(f"{path}.containerName", name, text)
    here = f"{path}.values"
    if not values:
        yield refusals.bad(here, values, "at least one value is required")
        return
    if len(values) > _EXIT_CODES:
        yield common.too_many(here, len(values), _EXIT_CODES)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield refusals.bad(f"{here}[{index}]", value, "must not be 0 for the In operator")
        if value in values[:index]:
            yield refusals.duplicate(f"{here}[{index}]", value)
    if list(values) != sorted(values):
        yield refusals.bad(here, values, "must be ordered")


def _success_policy_errors(spec: Part, path: str) -> Iterator[FieldError]:
    policy = spec["successPolicy"]
    rules = common.items(policy, "rules")
    if not is_indexed(spec):
        shown = [
            {"SucceededIndexes": rule.get("succeededIndexes"), "SucceededCount": rule.get("succeededCount")}
            for rule in rules
        ]
        given = shown if policy.get("rules") is not None else None
        yield refusals.bad(path, {"Rules": given}, _NEEDS_INDEXES)
        return
    if not rules:
        text = "at least one rules must be specified when the successPolicy is specified"
        yield refusals.required(f"{path}.rules", text)
    if len(rules) > _RULES:
        yield common.too_many(f"{path}.rules", len(rules), _RULES)
    for index, rule in enumerate(rules):
        yield from _success_rule_errors(rule or {}, spec.get("completions") or 0, f"{path}.rules[{index}]")


def _success_rule_errors(rule: Part, completions: int, path: str) -> Iterator[FieldError]:
    indexes, count, total = rule.get("succeededIndexes"), rule.get("succeededCount"), 0
    if indexes is None and count is None:
        yield refusals.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    if indexes is not None:
        if len(indexes.encode()) > _INDEXES:
            yield common.too_long(f"{path}.succeededIndexes", _INDEXES)
        try:
            total = total_of(indexes, completions)
        except IndexListError as error:
            yield refusals.bad(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    if count is None:
        return
    here = f"{path}.succeededCount"
    yield from at_least_zero(here, count)
    if count > completions:
        text = f"must be less than or equal to {completions} (the number of specified completions)"
        yield refusals.bad(here, count, text)
    if indexes is not None and count > total:
        text = f"must be less than or equal to {total} (the number of indexes in the specified succeededIndexes field)"
        yield refusals.bad(here, count, text)


def _fixed_errors(spec: Part, old: Object) -> Iterator[FieldError]:
    """Yield what of a Job may not change once it is there."""
    before = old["spec"]
    completions = spec.get("completions")
    if not is_indexed(spec):
        yield from common.fixed("spec.completions", completions, before.get("completions"))
    elif completions not in (None, before.get("completions"), spec.get("parallelism")):
        yield refusals.bad("spec.completions", completions, "can only be modified in tandem with spec.parallelism")
    selectors = [None if part.get("selector") is None else shown_selector(part["selector"]) for part in (spec, before)]
    yield from common.fixed("spec.selector", selectors[0], selectors[1])
    template, former = spec.get("template") or {}, before.get("template") or {}
    if before.get("suspend") and not (old.get("status") or {}).get("startTime"):
        former = _with_directives_of(template, former)
    if _plain(template) != _plain(former):
        shown = internal_kinds.internal(template, "core.PodTemplateSpec")
        yield refusals.bad("spec.template", shown, common.IMMUTABLE)
    for name in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
        if _plain(spec.get(name)) != _plain(before.get(name)):
            yield refusals.bad(f"spec.{name}", spec.get(name), common.IMMUTABLE)


def _with_directives_of(template: Part, former: Part) -> Part:
    """Return a former template with what may be changed about placement as long as no pod was ever made."""
    metadata = {**(former.get("metadata") or {})}
    for name in ("labels", "annotations"):
        metadata[name] = (template.get("metadata") or {}).get(name)
    pod, before = template.get("spec") or {}, {**(former.get("spec") or {})}
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        before[name] = pod.get(name)
    affinity = {**(before.get("affinity") or {})}
    affinity["nodeAffinity"] = (pod.get("affinity") or {}).get("nodeAffinity")
    if pod.get("affinity") is not None or any(affinity.values()):
        before["affinity"] = affinity
    else:
        before.pop("affinity", None)
    return {**former, "metadata": metadata, "spec": before}


def _plain(value: Any) -> Any:
    """Return it without what is not there and empty lists, in which upstream sees no difference."""
    if isinstance(value, Mapping):
        found = {name: _plain(item) for name, item in value.items()}
        return {name: item for name, item in found.items() if item is not None and item != []}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
