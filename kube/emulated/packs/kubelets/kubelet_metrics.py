"""What a kubelet shows of itself and its pods in Prometheus' text form.

Sources: pkg/kubelet/metrics/collectors/resource_metrics.go for ``/metrics/resource``; cAdvisor's
metrics/prometheus.go for ``/metrics/cadvisor``; pkg/kubelet/metrics/metrics.go for ``/metrics``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence

from mews.kube.api.objects import containers_of, name_of, namespace_of, uid_of
from mews.kube.emulated.ports.kubelets import KubeletApi
from mews.kube.emulated.streaming.usage import ContainerUsage, PodUsage
from mews.kube.releases.release_data import DEFAULT, git_version

TEXT = "text/plain; version=0.0.4; charset=utf-8"
_Labels = Mapping[str, str]
_Sample = tuple[_Labels, float]


class _Page:
    """Lines of families; ``stamp`` is the time in milliseconds at which the values were true."""

    def __init__(self, stamp: int) -> None:
        self._lines: list[str] = []
        self._stamp = stamp

    def family(self, name: str, kind: str, text: str, samples: Sequence[_Sample], *, stamped: bool = True) -> None:
        """One family; none where it has no sample."""
        if not samples:
            return
        self._lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        tail = f" {self._stamp}" if stamped else ""
        self._lines += [f"{name}{_shown(labels)} {value!r}{tail}" for labels, value in samples]

    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)


def _shown(labels: _Labels) -> str:
    pairs = ",".join(f"{name}={json.dumps(labels[name], ensure_ascii=False)}" for name in sorted(labels))
    return f"{{{pairs}}}" if pairs else ""


def _each(usages: Sequence[PodUsage]) -> Iterator[tuple[_Labels, ContainerUsage]]:
    for usage in usages:
        for name, used in usage.containers.items():
            yield {"container": name, **_pod(usage)}, used


def _pod(usage: PodUsage) -> _Labels:
    return {"namespace": namespace_of(usage.pod), "pod": name_of(usage.pod)}


def _resources(kubelet: KubeletApi, now: float) -> str:
    usages, page = kubelet.usage(), _Page(round(now * 1000))
    each = list(_each(usages))
    page.family(
        "container_cpu_usage_seconds_total", "counter",
        "[STABLE] Cumulative cpu time consumed by the container in core-seconds",
        [(labels, used.cpu_s) for labels, used in each],
    )  # fmt: skip
    page.family(
        "container_memory_working_set_bytes", "gauge",
        "[STABLE] Current working set of the container in bytes",
        [(labels, float(used.memory)) for labels, used in each],
    )  # fmt: skip
    page.family(
        "container_start_time_seconds", "gauge",
        "[STABLE] Start time of the container since unix epoch in seconds",
        [(labels, used.started_at) for labels, used in each if used.started_at > 0], stamped=False,
    )  # fmt: skip
    node = kubelet.node_usage()
    page.family(
        "node_cpu_usage_seconds_total", "counter", "[STABLE] Cumulative cpu time consumed by the node in core-seconds",
        [({}, node.cpu_s)],
    )  # fmt: skip
    page.family(
        "node_memory_working_set_bytes", "gauge", "[STABLE] Current working set of the node in bytes",
        [({}, float(node.memory))],
    )  # fmt: skip
    for name, kind, text, value in (
        ("pod_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed by the pod in core-seconds", _cpu),
        ("pod_memory_working_set_bytes", "gauge", "Current working set of the pod in bytes", _memory),
    ):
        page.family(name, kind, f"[STABLE] {text}", [(_pod(usage), value(usage)) for usage in usages])
    text = "1 if there was an error while getting container metrics, 0 otherwise"
    page.family("resource_scrape_error", "gauge", f"[STABLE] {text}", [({}, 0.0)], stamped=False)
    page.family("scrape_error", "gauge", f"[ALPHA] (Deprecated since 1.29.0) {text}", [({}, 0.0)], stamped=False)
    return page.text()


def _cpu(usage: PodUsage) -> float:
    return sum(used.cpu_s for used in usage.containers.values())


def _memory(usage: PodUsage) -> float:
    return float(sum(used.memory for used in usage.containers.values()))


def _cadvisor(kubelet: KubeletApi, now: float) -> str:
    page = _Page(round(now * 1000))
    each = [(_cgroup(usage, name), used) for usage in kubelet.usage() for name, used in usage.containers.items()]
    for name, kind, text, samples in (
        ("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.",
         [({**labels, "cpu": "total"}, used.cpu_s) for labels, used in each]),
        ("container_memory_usage_bytes", "gauge", "Current memory usage in bytes, including all memory.",
         [(labels, float(used.memory)) for labels, used in each]),
        ("container_memory_working_set_bytes", "gauge", "Current working set in bytes.",
         [(labels, float(used.memory)) for labels, used in each]),
        ("container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds.",
         [(labels, used.started_at) for labels, used in each]),
    ):  # fmt: skip
        page.family(name, kind, text, samples)
    return page.text()


def _cgroup(usage: PodUsage, name: str) -> _Labels:
    """Return the labels that the kubelet has cAdvisor give (pkg/kubelet/server/server.go
    containerPrometheusLabelsFunc)."""
    uid = uid_of(usage.pod)
    image = next((each.get("image", "") for each in containers_of(usage.pod) if each["name"] == name), "")
    shown = {"image": image, "name": f"{uid}-{name}", "id": f"/kubepods/pod{uid}/{name}"}
    return {"container": name, **_pod(usage), **shown}


def _own(kubelet: KubeletApi, now: float) -> str:
    page, usages = _Page(0), kubelet.usage()
    running = sum(len(usage.containers) for usage in usages)
    release = git_version(DEFAULT)
    major, minor = release.removeprefix("v").split(".")[:2]
    for name, text, samples in (
        ("kubelet_running_containers", "Number of containers currently running",
         [({"container_state": "running"}, float(running))]),
        ("kubelet_running_pods", "Number of pods that have a running pod sandbox", [({}, float(len(usages)))]),
        ("kubernetes_build_info", "A metric with a constant '1' value.",
         [({"git_version": release, "major": major, "minor": minor}, 1.0)]),
    ):  # fmt: skip
        page.family(name, "gauge", f"[ALPHA] {text}", samples, stamped=False)
    return page.text()


def _probes(kubelet: KubeletApi, now: float) -> str:
    page = _Page(0)
    samples = [
        ({"container": key[2], "namespace": key[0], "pod": key[1], "pod_uid": key[3], "probe_type": key[4],
          "result": key[5]}, float(count))
        for key, count in sorted(kubelet.probe_counts().items())
    ]  # fmt: skip
    text = "[BETA] Cumulative number of a liveness, readiness or startup probe for a container by result."
    page.family("prober_probe_total", "counter", text, samples, stamped=False)
    return page.text()


METRICS: Mapping[str, Callable[[KubeletApi, float], str]] = {
    "metrics": _own,
    "metrics/cadvisor": _cadvisor,
    "metrics/probes": _probes,
    "metrics/resource": _resources,
}
"""Path -> what it shows at a time, in unix seconds."""
