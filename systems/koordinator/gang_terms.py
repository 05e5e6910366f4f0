"""What Koordinator's own gangs say of themselves: annotations of a pod, or a PodGroup (v1.6.0, apis/extension/
coscheduling.go, coscheduling/core/gang.go). Bad values count as upstream counts them. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object, annotations_of, labels_of, namespace_of
from mews.systems.koordinator.names import (
    GANG_GROUPS,
    GANG_MATCH_POLICY,
    GANG_MIN,
    GANG_MODE,
    GANG_NAME,
    GANG_TOTAL,
    GANG_WAIT,
    MIN_AVAILABLE,
    POD_GROUP,
    POD_GROUP_MATCH_POLICY,
    POD_GROUP_NAME,
)

STRICT, NON_STRICT = "Strict", "NonStrict"
ONLY_WAITING, WAITING_AND_RUNNING, ONCE_SATISFIED = "only-waiting", "waiting-and-running", "once-satisfied"
_UNITS_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_PART = r"(?:\d+\.?\d*|\.\d+)(?:h|ms|us|µs|ns|m|s)"


class GangTerms(Struct, frozen=True):
    """``key`` is ``namespace/name``; ``wait_s`` None: the scheduler's default; ``group`` are the keys of the gangs that
    go together, its own among them. ``total`` is how many pods it is to have: nothing waits for more than ``least``."""

    key: str
    least: int
    total: int
    mode: str = STRICT
    match_policy: str = ONCE_SATISFIED
    wait_s: float | None = None
    group: tuple[str, ...] = ()


def gang_id(pod: Object) -> str:
    """``namespace/name`` of the gang that a pod belongs to by Koordinator's names; "" for none. Gangs of the design
    (a label with the name and one with the number) are ``gangs.gang_of``'s."""
    labels = labels_of(pod)
    if labels.get(POD_GROUP) and MIN_AVAILABLE in labels:
        return ""
    name = labels.get(POD_GROUP) or labels.get(POD_GROUP_NAME) or annotations_of(pod).get(GANG_NAME) or ""
    return f"{namespace_of(pod)}/{name}" if name else ""


def needs_pod_group(pod: Object) -> bool:
    """Return whether the gang is what a PodGroup says, and nothing until there is one."""
    return bool(labels_of(pod).get(POD_GROUP))


def terms_of_pod(pod: Object) -> GangTerms | None:
    """Return the terms that a pod brings; None where it names no number, or none that is one."""
    labels, annotations = labels_of(pod), annotations_of(pod)
    least = _number(labels.get(MIN_AVAILABLE) or annotations.get(GANG_MIN))
    if least is None:
        return None
    policy = annotations.get(GANG_MATCH_POLICY) or annotations.get(POD_GROUP_MATCH_POLICY)
    wait_s = duration_s(annotations.get(GANG_WAIT, ""))
    return _terms(gang_id(pod), least, annotations, policy, wait_s if wait_s and wait_s > 0 else None)


def terms_of_group(group: Object) -> GangTerms:
    """Return the terms of a PodGroup."""
    spec, annotations = group.get("spec") or {}, annotations_of(group)
    wait_s = spec.get("scheduleTimeoutSeconds")
    key = f"{namespace_of(group)}/{group['metadata']['name']}"
    wait = float(wait_s) if wait_s is not None and wait_s >= 0 else None
    return _terms(key, int(spec.get("minMember", 0)), annotations, annotations.get(GANG_MATCH_POLICY), wait)


def _terms(key: str, least: int, annotations: Mapping[str, str], policy: str | None, wait_s: float | None) -> GangTerms:
    total = _number(annotations.get(GANG_TOTAL))
    mode = annotations.get(GANG_MODE)
    return GangTerms(
        key,
        least,
        least if total is None or 0 != total < least else total,
        mode if mode in (STRICT, NON_STRICT) else STRICT,
        policy if policy in (ONLY_WAITING, WAITING_AND_RUNNING) else ONCE_SATISFIED,
        wait_s,
        _group(annotations.get(GANG_GROUPS, "")) or (key,),
    )


def _number(text: Any) -> int | None:
    """Return it as Go's ParseInt reads it, in 32 bits."""
    if not isinstance(text, str) or not re.fullmatch(r"[+-]?[0-9]+", text) or not -(2**31) <= int(text) < 2**31:
        return None
    return int(text)


def _group(text: str) -> tuple[str, ...]:
    try:
        found = json.loads(text)
    except ValueError:
        return ()
    return tuple(found) if isinstance(found, list) and all(isinstance(each, str) for each in found) else ()


def duration_s(text: str) -> float | None:
    """Return a span as Go writes it (``1m30s``); None for a text that is none."""
    if text in ("0", "+0", "-0"):
        return 0.0
    found = re.fullmatch(rf"([+-]?)((?:{_PART})+)", text)
    if found is None:
        return None
    parts = re.findall(r"(\d+\.?\d*|\.\d+)(h|ms|us|µs|ns|m|s)", found[2])
    span_s = sum(float(amount) * _UNITS_S[unit] for amount, unit in parts)
    return -span_s if found[1] == "-" else span_s
