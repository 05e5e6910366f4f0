"""The metrics for Prometheus. Imported in production only: a virtual run must not load prometheus_client."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest

from mews.systems.kubecomp.metrics import KubeCompCounter, Phase, ReconfigurationTiming

_BUCKETS = (0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)


class KubeCompPrometheusMetrics:
    """``Metrics`` as ``kubecomp_phase_seconds{phase}`` and ``kubecomp_<count>_total``."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._phases = Histogram(
            "kubecomp_phase_seconds",
            "Durations of the five phases of a reconfiguration.",
            ["phase"],
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self._counts = {
            what: Counter(
                f"kubecomp_{what.value}", f"KubeComp: {what.value.replace('_', ' ')}.", registry=self.registry
            )
            for what in KubeCompCounter
        }

    def observe(self, phase: Phase, duration_s: float, pod: str = "") -> None:
        """One duration of a phase, seconds."""
        self._phases.labels(phase.value).observe(duration_s)

    def reconfigured(self, timing: ReconfigurationTiming) -> None:
        """Its phases and devices were observed and counted one by one; a histogram knows no pods."""

    def count(self, what: KubeCompCounter, by: int = 1) -> None:
        """So many more."""
        self._counts[what].inc(by)

    def exposition(self) -> bytes:
        """Return all of it in Prometheus' text form."""
        return generate_latest(self.registry)
