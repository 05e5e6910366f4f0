"""How long a container of an image runs that nobody knows and that idles in its place.

For ever, but where a pod could never go on then: an init container ends at once, a container of a Job's pod after what
the pod's annotation says. Their exit code is 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object, annotations_of, init_containers_of
from mews.kube.emulated.kubelet.errors import StartError

RUNS_FOR = "mews.dev/runs-for"
"""Annotation of a pod: for how many emulated seconds its idle containers run, as 90, 1.5s, 2m30s or 500ms."""

_OF_A_JOB_S = 1.0
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s)", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern})+|\d+(?:\.\d+)?", re.ASCII)


def idles_for(pod: Object, container: str) -> float:
    """Emulated seconds, infinity where it runs until it is stopped.

    Raises StartError for an annotation that is no span.
    """
    found = next((each for each in init_containers_of(pod) if each["name"] == container), None)
    if found is not None:
        return math.inf if found.get("restartPolicy") == "Always" else 0.0
    given = annotations_of(pod).get(RUNS_FOR)
    if given is not None:
        return _span_s(given)
    return _OF_A_JOB_S if _is_of_a_job(pod) else math.inf


def _is_of_a_job(pod: Mapping[str, Any]) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") and owner["kind"] == "Job" for owner in owners)


def _span_s(text: str) -> float:
    if not _WHOLE.fullmatch(text):
        words = "must be seconds, or a span such as 90s or 2m30s"
        raise StartError("RunContainerError", f"annotation {RUNS_FOR}: {text!r}: {words}")
    parts = _PART.findall(text)
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else float(text)
