"""An autoscaler's status while it is being worked out: conditions, replicas and metrics, as upstream fills them in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mews.kube.api.objects import Object, timestamp
from mews.kube.api.quantities import parse
from mews.kube.emulated.controllers.podautoscaler.behavior import ReplicaBounds
from mews.kube.emulated.controllers.podautoscaler.conditions import with_condition
from mews.kube.emulated.controllers.podautoscaler.replicas import Tolerances

_KEPT = ("desiredReplicas",)


class StatusDraft:
    """The status of one reconciliation. It has no observedGeneration: 1.34's controller never sets it."""

    def __init__(self, autoscaler: Object, now: float) -> None:
        self._before: dict[str, Any] = dict(autoscaler.get("status") or {})
        self._now = now
        self._conditions = list(self._before.get("conditions") or ())
        self._made: dict[str, Any] = {**self._before}

    def put(self, kind: str, status: bool, reason: str, message: str) -> None:
        """Set a condition."""
        self._conditions = with_condition(self._conditions, kind, status, reason, message, now=self._now)

    def fill(self, current: int, desired: int | None, metrics: Sequence[dict[str, Any]], *, rescaled: bool) -> None:
        """Set the replicas and metrics; ``desired`` None leaves what was desired before."""
        kept = self._before.get("desiredReplicas", 0)
        self._made = {
            "currentReplicas": current,
            "desiredReplicas": kept if desired is None else desired,
            "currentMetrics": list(metrics),
            "lastScaleTime": timestamp(self._now) if rescaled else self._before.get("lastScaleTime"),
        }

    def changed(self) -> dict[str, Any] | None:
        """Return the status to write, None where it is as it was."""
        made = _plain({**self._made, "conditions": self._conditions})
        return None if made == _plain(self._before) else made


def _plain(status: dict[str, Any]) -> dict[str, Any]:
    """Return them as Go writes it: what is zero or empty is left out, but for the desired replicas."""
    filled = {key: value for key, value in status.items() if value}
    return {**filled, "desiredReplicas": status.get("desiredReplicas", 0)}


def bounds_of(autoscaler: Object) -> ReplicaBounds:
    """Return the replicas that an autoscaler's spec allows, and its behavior."""
    spec = autoscaler["spec"]
    least = spec.get("minReplicas")
    return ReplicaBounds(1 if least is None else least, spec["maxReplicas"], spec.get("behavior") or None)


def tolerances_of(autoscaler: Object) -> Tolerances:
    """Return those of the behavior, else the controller's own. The API server drops the fields where the gate
    HPAConfigurableTolerance is off, so what is there counts."""
    behavior, usual = autoscaler["spec"].get("behavior") or {}, Tolerances()
    down, up = (behavior.get(name, {}).get("tolerance") for name in ("scaleDown", "scaleUp"))
    return Tolerances(
        down=usual.down if down is None else float(parse(down)), up=usual.up if up is None else float(parse(up))
    )
