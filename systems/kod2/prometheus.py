"""The operator's metrics for Prometheus. Imported in production only: a virtual run must not load prometheus_client."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from mews.systems.kod2.metrics import Kod2Counter
from mews.systems.kod2.model import State
from mews.systems.kod2.tfjob import key_parts

_SPANS_S = (1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400)
_PASSES_S = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3)


class Kod2PrometheusMetrics:
    """``Metrics`` as ``kod2_jobs{state}``, ``kod2_job_workers{namespace,tfjob}``, ``kod2_<count>_total``,
    ``kod2_job_wait_seconds``, ``kod2_job_completion_seconds`` and ``kod2_pass_seconds``."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._jobs = Gauge("kod2_jobs", "TFJobs by state.", ["state"], registry=self.registry)
        self._workers = Gauge(
            "kod2_job_workers", "Workers of running TFJobs.", ["namespace", "tfjob"], registry=self.registry
        )
        self._counts = {
            what: Counter(f"kod2_{what.value}", f"KOD2: {what.value.replace('_', ' ')}.", registry=self.registry)
            for what in Kod2Counter
        }
        self._waits = self._histogram("kod2_job_wait_seconds", "From the waiting queue to the running queue.", _SPANS_S)
        self._jcts = self._histogram("kod2_job_completion_seconds", "From the waiting to the finished queue.", _SPANS_S)
        self._passes = self._histogram("kod2_pass_seconds", "How long a scheduling pass takes.", _PASSES_S)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, text, buckets=buckets, registry=self.registry)

    def count(self, what: Kod2Counter, by: int = 1) -> None:
        """So many more."""
        self._counts[what].inc(by)

    def states(self, jobs: Mapping[str, int]) -> None:
        """How many jobs are in each state now."""
        for state in State:
            self._jobs.labels(state.value).set(jobs.get(state.value, 0))

    def workers(self, jobs: Mapping[str, int]) -> None:
        """How many workers each running job has now."""
        self._workers.clear()
        for key, count in jobs.items():
            self._workers.labels(*key_parts(key)).set(count)

    def finished(self, wait_s: float, jct_s: float) -> None:
        """A job entered the finished queue."""
        self._waits.observe(wait_s)
        self._jcts.observe(jct_s)

    def decided(self, seconds: float) -> None:
        """How long a scheduling pass took."""
        self._passes.observe(seconds)

    def exposition(self) -> bytes:
        """Return all of it in Prometheus' text form."""
        return generate_latest(self.registry)
