from __future__ import annotations

from urllib.request import urlopen

import pytest

from mews.kube.metrics_options import MetricsOptions
from mews.systems.kubecomp.metrics import KubeCompCounter, KubeCompMemoryMetrics, Phase, timed


def test_the_recorder_keeps_every_duration_and_sums_by_phase() -> None:
    recorder = KubeCompMemoryMetrics()
    ticks = iter((1.0, 3.5))
    with timed(recorder, Phase.REALLOCATION, {}, lambda: next(ticks)):
        pass
    recorder.observe(Phase.REALLOCATION, 0.5)
    recorder.count(KubeCompCounter.MOVED, 2)
    assert recorder.durations[Phase.REALLOCATION] == [2.5, 0.5]
    assert recorder.phase_seconds() == {
        "node_selection": 0.0,
        "availability_update": 0.0,
        "allocation_retrieval": 0.0,
        "reallocation": 3.0,
        "detection_binding": 0.0,
    }
    assert recorder.counts[KubeCompCounter.MOVED] == 2


def test_a_phase_that_fails_is_timed_all_the_same() -> None:
    recorder = KubeCompMemoryMetrics()
    ticks = iter((0.0, 2.0))
    with pytest.raises(ValueError, match="x"), timed(recorder, Phase.REALLOCATION, {}, lambda: next(ticks)):
        raise ValueError("x")
    assert recorder.durations[Phase.REALLOCATION] == [2.0]


@pytest.mark.wall
def test_prometheus_serves_phases_and_counts() -> None:
    from mews.kube.metrics_server import MetricsServer
    from mews.systems.kubecomp.prometheus import KubeCompPrometheusMetrics

    metrics = KubeCompPrometheusMetrics()
    metrics.observe(Phase.REALLOCATION, 22.0)
    metrics.count(KubeCompCounter.MOVED)
    server = MetricsServer(metrics.registry, MetricsOptions(0))
    try:
        with urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=30) as answer:
            text = answer.read().decode()
    finally:
        server.stop()
    assert 'kubecomp_phase_seconds_sum{phase="reallocation"} 22.0' in text
    assert "kubecomp_moved_gpus_total 1.0" in text
