"""How Jobs and their pods are read (k8s.io/kubernetes pkg/controller/job). Pure."""

from __future__ import annotations

from mews.kube.api.objects import Object, annotations_of, is_deleting, phase_of, seconds
from mews.kube.emulated.controllers.conditions import find

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
_US = "kubernetes.io/job-controller"


def is_finished(job: Object) -> bool:
    """Return whether the job has the condition Complete or Failed."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(c["type"] in ("Complete", "Failed") and c["status"] == "True" for c in conditions)


def is_suspended(job: Object) -> bool:
    """Return whether ``spec.suspend`` is set."""
    return bool(job["spec"].get("suspend"))


def is_indexed(job: Object) -> bool:
    """Return whether ``spec.completionMode`` is Indexed."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def is_managed_elsewhere(job: Object) -> bool:
    """Return whether ``spec.managedBy`` names a controller other than this one, which then keeps off the Job and its
    pods."""
    return bool(job["spec"].get("managedBy", _US) != _US)


def limit_per_index(job: Object) -> int | None:
    """``spec.backoffLimitPerIndex``; None: failures are counted for the Job as a whole."""
    value = job["spec"].get("backoffLimitPerIndex")
    return None if value is None else int(value)


def completions_of(job: Object) -> int | None:
    """``spec.completions``; None: any success ends it."""
    value = job["spec"].get("completions")
    return None if value is None else int(value)


def only_failed_are_replaced(job: Object) -> bool:
    """Return whether pods are replaced only once they have ended (``spec.podReplacementPolicy``)."""
    return job["spec"].get("podReplacementPolicy") == "Failed" or job["spec"].get("podFailurePolicy") is not None


def is_tracked(pod: Object) -> bool:
    """Return whether the pod has not been counted yet."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def has_failed(pod: Object, job: Object) -> bool:
    """Return whether a pod counts as failed: also one that is being deleted, for it may never say so."""
    if phase_of(pod) == "Failed":
        return True
    return not only_failed_are_replaced(job) and is_deleting(pod) and phase_of(pod) != "Succeeded"


def index_of(pod: Object) -> int | None:
    """Return the completion index of a pod of an indexed Job."""
    text = annotations_of(pod).get(INDEX, "")
    return int(text) if text.isdecimal() else None


def counts(pod: Object, job: Object) -> bool:
    """Return whether the pod is one that can count: its index is one of the Job's."""
    index = index_of(pod)
    return not is_indexed(job) or (index is not None and index < (completions_of(job) or 0))


def finished_at(pod: Object) -> float:
    """Unix seconds at which the pod ended, as far as it says."""
    ends: list[float] = []
    known = pod.get("status") or {}
    sidecars = {c["name"] for c in pod["spec"].get("initContainers") or () if c.get("restartPolicy") == "Always"}
    lasting = [each for each in known.get("initContainerStatuses") or () if each["name"] in sidecars]
    for status in (*(known.get("containerStatuses") or ()), *lasting):
        stamp = ((status.get("state") or {}).get("terminated") or {}).get("finishedAt")
        if stamp is None:
            ends = []
            break
        ends.append(seconds(stamp))
    if ends:
        return max(ends)
    ready = find(known.get("conditions") or (), "Ready") or {}
    if ready.get("status") == "False" and ready.get("lastTransitionTime"):
        return seconds(ready["lastTransitionTime"])
    metadata = pod["metadata"]
    if metadata.get("deletionTimestamp"):
        return seconds(metadata["deletionTimestamp"]) - float(metadata.get("deletionGracePeriodSeconds") or 0)
    return seconds(metadata["creationTimestamp"])
