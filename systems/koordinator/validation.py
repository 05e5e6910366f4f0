"""What Koordinator's validating webhook refuses of a pod, in upstream's words (v1.6.0, pkg/webhook/pod/validating).
Pure.

In upstream's order, the first that refuses is the answer: an annotation that nobody may set (verify_annotations.go), a
label that must stay (elasticquota/pod_check.go), and what containers request of GPUs (verify_device_resource.go). That
of quality of service and priority (cluster_colocation_profile.go) is worked out upstream and then dropped
(validating_handler.go), so that it refuses nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object, annotations_of, containers_of, labels_of
from mews.kube.api.quantities import canonical, whole
from mews.systems.koordinator.names import CORE, MEMORY, PREEMPTIBLE, RATIO, RESERVE_POD, SHARED, WHOLE

_REQUESTS = "pod.spec.containers[*].resources.requests"


def refusal_of(pod: Object, old: Object | None = None) -> str:
    """Return why the pod is not admitted; "" where it is. ``old``: what it was before an update."""
    if RESERVE_POD in annotations_of(pod):
        return f"annotations.{RESERVE_POD}: Forbidden: cannot set in annotations"
    if old is not None and labels_of(old).get(PREEMPTIBLE, "") != labels_of(pod).get(PREEMPTIBLE, ""):
        return "Preemptible label is forbidden modify now."
    found = (error for container in containers_of(pod) for error in _of_container(container))
    errors = list(dict.fromkeys(found))  # Kubernetes' aggregates name each error once
    return errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else ""


def _of_container(container: Mapping[str, Any]) -> Iterator[str]:
    requests = (container.get("resources") or {}).get("requests") or {}
    if WHOLE in requests and SHARED in requests:
        yield _forbidden("Forbidden declare GPU and GPU share at same time")
    elif WHOLE in requests:
        yield from _of_whole(requests[WHOLE])
    elif SHARED in requests:
        yield from _of_shared(requests)


def _of_whole(quantity: str) -> Iterator[str]:
    if whole(quantity) == 0:
        yield _invalid(quantity, "the requested GPU must be greater than zero")
    if whole(quantity) > 100 and whole(quantity) % 100:
        yield _invalid(quantity, "the requested GPU must be percentage of 100")


def _of_shared(requests: Mapping[str, str]) -> Iterator[str]:
    number = whole(requests[SHARED])
    if number == 0:
        yield _invalid(requests[SHARED], "the requested GPU must be greater than zero")
    asked = [name for name in (MEMORY, RATIO) if whole(requests.get(name, 0))]
    if not asked:
        yield _forbidden("GPU memory and GPU memory ratio all is zero")
    if len(asked) == 2:
        yield _forbidden("declare GPU memory and GPU memory ratio at same time")
    for name, word in ((CORE, "gpuCore"), (RATIO, "gpuMemoryRatio")) if number else ():
        quantity = requests.get(name, "0")
        if whole(quantity) % number:
            yield _invalid(quantity, f"the requested {word} must multiple of shared")


def _forbidden(detail: str) -> str:
    return f"{_REQUESTS}: Forbidden: {detail}"


def _invalid(quantity: str, detail: str) -> str:
    return f'{_REQUESTS}: Invalid value: "{canonical(quantity)}": {detail}'
