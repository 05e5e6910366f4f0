"""Faults between a component and the API, with parameters drawn. All of them end: by a count or by a time."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from mews.harness.api_faults.registry import API_FAULTS
from mews.harness.api_faults.rpcs import OF_KUBELETS, PausedRpc

API_KINDS = tuple(kind for kind in API_FAULTS.ours() if kind != "frozen-process")
"""All that come with Mews, and that virtual time can play."""
LASTING = (
    *("lagging-watch", "unordered-watches", "repeated-events", "stale-reads", "frozen-api", "expired-token"),
    PausedRpc.kind,
)
"""Those that are drawn with a time; the others with a count."""
SHORT = ("broken-watch", "conflict", "too-many-requests", "server-error", "lost-answer")
"""Those that hold nothing up themselves."""
_FEW = 5
"""So many of them cost a client its back-off, and not all of the time that a scenario allows."""
_RESOURCES = (None, None, None, "pods", "nodes")
_COUNTS = (1, 2, 5, 20)
_SPANS_S = (2.0, 10.0, 30.0, 90.0)


def is_short(spec: Mapping[str, Any]) -> bool:
    """Return whether such a fault is over soon, and leaves nothing behind."""
    return spec["kind"] in SHORT and spec["count"] <= _FEW


def draw_api_fault(kind: str, rng: random.Random) -> dict[str, Any]:
    """Return what a ``fault`` step adds."""
    if kind == PausedRpc.kind:
        return {"kind": kind, "operation": rng.choice(OF_KUBELETS), "expires_s": rng.choice(_SPANS_S)}
    if kind == "expired-token":
        return {"kind": kind, "expires_s": rng.choice(_SPANS_S)}
    resource = rng.choice(_RESOURCES)
    spec: dict[str, Any] = {"kind": kind, **_spec(kind, rng)}
    if resource is not None:
        spec["resource"] = resource
    spec |= {"expires_s": rng.choice(_SPANS_S)} if kind in LASTING else {"count": rng.choice(_COUNTS)}
    return spec


def _spec(kind: str, rng: random.Random) -> Mapping[str, Any]:
    match kind:
        case "lagging-watch" | "unordered-watches" | "slow-request":
            return {"by_s": rng.choice((0.5, 2.0, 10.0, 40.0))}
        case "repeated-events":
            return {"times": rng.choice((1, 3))}
        case "broken-watch":
            return {"how": rng.choice(("closed", "broken", "gone"))}
        case "too-many-requests":
            return {"retry_after_s": rng.choice((1, 10))}
        case "server-error":
            return {"status": rng.choice((500, 503, 504)), "when": rng.choice(("before", "after"))}
        case "lost-answer":
            return {"when": rng.choice(("before", "after"))}
        case "request-timeout":
            return {"hold_s": rng.choice((1.0, 10.0, 30.0)), "when": rng.choice(("before", "after"))}
    return {}
