"""Probes as values, and how their results add up to a verdict (upstream pkg/kubelet/prober/worker.go). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

LIVENESS, READINESS, STARTUP = "liveness", "readiness", "startup"
KINDS = (STARTUP, READINESS, LIVENESS)

INITIAL: Mapping[str, bool | None] = {LIVENESS: True, READINESS: False, STARTUP: None}
"""What counts for a new container until its first verdict."""


class Probe(Struct, frozen=True):
    """One probe of a container, with the API's defaults; times in seconds."""

    container: Mapping[str, Any]
    kind: str
    handler: Mapping[str, Any]
    initial_delay_s: float = 0.0
    period_s: float = 10.0
    timeout_s: float = 1.0
    success_threshold: int = 1
    failure_threshold: int = 3

    @property
    def name(self) -> str:
        """The name of the probed container."""
        return str(self.container["name"])

    @property
    def label(self) -> str:
        """The probe's kind as events begin with it: ``Liveness``."""
        return self.kind.capitalize()


def probes_of(container: Mapping[str, Any]) -> tuple[Probe, ...]:
    """Return the probes that a container's spec declares."""
    return tuple(_probe(container, kind) for kind in KINDS if container.get(f"{kind}Probe"))


def _probe(container: Mapping[str, Any], kind: str) -> Probe:
    spec = container[f"{kind}Probe"]
    return Probe(
        container=container,
        kind=kind,
        handler=spec,
        initial_delay_s=float(spec.get("initialDelaySeconds") or 0),
        period_s=float(spec.get("periodSeconds") or 10),
        timeout_s=float(spec.get("timeoutSeconds") or 1),
        success_threshold=int(spec.get("successThreshold") or 1),
        failure_threshold=int(spec.get("failureThreshold") or 3),
    )


class ProbeTally(Struct):
    """The results of one probe in a row. ``held``: a verdict was reached that ends this container, which is asked no
    more."""

    probe: Probe
    held: bool = False
    _last: bool | None = None
    _run: int = 0

    def take(self, well: bool) -> bool | None:
        """Return one more result; the verdict, or None below the threshold."""
        self._run = self._run + 1 if self._last is well else 1
        self._last = well
        if self._run < (self.probe.success_threshold if well else self.probe.failure_threshold):
            return None
        if not well and self.probe.kind != READINESS:
            self.held, self._run = True, 0
        return well

    @property
    def open(self) -> bool:
        """Whether the last results may still add up to a verdict."""
        limit = self.probe.success_threshold if self._last else self.probe.failure_threshold
        return self._last is not None and not self.held and self._run < limit


class Health(Struct, frozen=True):
    """What probes say of a running container; without any it is started and ready at once. ``failed``: the kind of
    probe for whose sake it is to be killed."""

    started: bool = True
    ready: bool = True
    failed: str = ""


WELL = Health()
