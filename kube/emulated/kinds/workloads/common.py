"""What workloads share: defaults of their templates, warnings, what a change may do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Row, selector_text, spec_of, status_of
from mews.kube.emulated.kinds.pods.pods import default_spec
from mews.kube.emulated.kinds.pods.warnings import hostname_warnings, pod_warnings


def default_template(spec: dict[str, Any]) -> None:
    """As of a pod; an empty overhead, which admission refuses of pods, is none here."""
    if not spec.get("overhead"):
        spec.pop("overhead", None)
    default_spec(spec)


def default_pods(obj: Object) -> None:
    """Default the pods of a workload's template."""
    default_template(obj["spec"]["template"]["spec"])


def rolling(strategy: dict[str, Any], **numbers: Any) -> None:
    """The numbers of a RollingUpdate."""
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**numbers, **strategy.get("rollingUpdate", {})}


def selector_change(new: Object, old: Object) -> list[FieldError]:
    """Return the refusal of a changed selector."""
    if new["spec"].get("selector") == old["spec"].get("selector"):
        return []
    return [refusals.bad("spec.selector", new["spec"].get("selector"), "field is immutable")]


def warn(new: Object, old: Object | None) -> list[str]:
    """Return those of the pods of a template, if they are new."""
    path = "spec.template" if "spec" in new else "template"
    template = new["spec"].get("template") if "spec" in new else new.get("template")
    return pod_warnings(template or {}, path) if is_new(new, old) else []


def warn_of_name(new: Object, old: Object | None) -> list[str]:
    """Return warnings of a name that no host name can be, and those of the template."""
    return [*([] if old is not None else hostname_warnings(new)), *warn(new, old)]


def is_new(new: Object, old: Object | None) -> bool:
    """Return whether the template or the rest of the spec is not what it was."""
    return old is None or any(new.get(part) != old.get(part) for part in ("spec", "template"))


MANY_COMPLETIONS, MANY_AT_ONCE = 100_000, 10_000


def job_warnings(spec: Mapping[str, Any], path: str) -> list[str]:
    """Return warnings of many completions with many pods at once."""
    found, (completions, parallelism) = [], (spec.get(name) or 0 for name in ("completions", "parallelism"))
    if spec.get("completionMode") == "Indexed" and completions > MANY_COMPLETIONS and parallelism > MANY_AT_ONCE:
        found.append(
            f"{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than "
            "10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
        )
    return found + pod_warnings(spec.get("template") or {}, f"{path}.template")


def keep_gate_shut(new: Object, old: Object) -> None:
    """DeploymentReplicaSetTerminatingReplicas is off by default in 1.34."""
    if "terminatingReplicas" not in (old.get("status") or {}):
        (new.get("status") or {}).pop("terminatingReplicas", None)


def layout(template: Mapping[str, Any]) -> list[str]:
    """Return names and images of the containers of a template."""
    containers = (template.get("spec") or {}).get("containers") or ()
    return [",".join(container.get(field, "") for container in containers) for field in ("name", "image")]


def numbers(obj: Object, *names: str) -> list[int]:
    """Return those numbers of the status."""
    return [status_of(obj).get(name, 0) for name in names]


def described(obj: Object) -> Row:
    """Return what of a workload only wide tables show: names and images of its containers, its selector."""
    spec = spec_of(obj)
    return [*layout(spec.get("template") or {}), selector_text(spec.get("selector"))]
