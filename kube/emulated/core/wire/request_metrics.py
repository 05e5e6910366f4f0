"""``/metrics`` of the API server: what it counts about itself, under kube-apiserver's names, in Prometheus' text."""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from aiohttp import web

from mews.kube.emulated.core.store.selection import EVERYTHING
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.wire.routes import Route
from mews.kube.releases.release_data import git_version

_Labels = tuple[tuple[str, str], ...]
_KINDS = {"apiserver_request_total": "counter", "process_cpu_seconds_total": "counter"}
HELP: Mapping[str, str] = MappingProxyType(
    {
        "apiserver_request_total": "Requests for resources that have their answer.",
        "apiserver_current_inflight_requests": "Requests without one yet, watches left out.",
        "apiserver_registered_watchers": "Open watches.",
        "apiserver_storage_objects": "Stored objects, by kind.",
        "kubernetes_build_info": "The version of Kubernetes that the server follows.",
        "process_cpu_seconds_total": "CPU time of the process.",
        "process_resident_memory_bytes": "Memory that the process holds.",
    }
)
"""Every metric of the server -> its help."""


class RequestMetrics:
    """Counts requests for resources, by what they asked for and how they ended."""

    def __init__(self) -> None:
        self._ended: Counter[_Labels] = Counter()
        self._open = 0

    def begin(self, verb: str, route: Route) -> AskedRequest:
        """A request has come."""
        scope = "resource" if route.name else "namespace" if route.namespace else "cluster"
        labels = (
            ("component", "apiserver"),
            ("group", route.group),
            ("resource", route.plural),
            ("scope", scope),
            ("subresource", route.subresource),
            ("verb", verb.upper()),
            ("version", route.version),
        )
        self._open += 1
        return AskedRequest(self, labels)

    def end(self, labels: _Labels, code: int) -> None:
        """It has its answer."""
        self._open -= 1
        self._ended[(("code", str(code)), *labels)] += 1

    def answer(self, store: Store, watches: int) -> web.Response:
        """Return all of it as text."""
        lines: list[str] = []
        for name, samples in self._families(store, watches).items():
            lines += [f"# HELP {name} {HELP[name]}", f"# TYPE {name} {_KINDS.get(name, 'gauge')}"]
            lines += [f"{name}{_shown(labels)} {value}" for labels, value in samples.items()]
        text = "\n".join(lines) + "\n"
        return web.Response(text=text, headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    def _families(self, store: Store, watches: int) -> Mapping[str, Mapping[_Labels, float]]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return {
            "apiserver_request_total": dict(sorted(self._ended.items())),
            "apiserver_current_inflight_requests": {(("request_kind", "all"),): self._open - watches},
            "apiserver_registered_watchers": {(): watches},
            "apiserver_storage_objects": dict(_objects(store)),
            "kubernetes_build_info": {_built(store.kinds.release): 1},
            "process_cpu_seconds_total": {(): usage.ru_utime + usage.ru_stime},
            "process_resident_memory_bytes": {(): resident_bytes()},
        }


class AskedRequest:
    """One request on its way."""

    def __init__(self, metrics: RequestMetrics, labels: _Labels) -> None:
        self._metrics = metrics
        self._labels = labels

    def end(self, code: int) -> None:
        """It has its answer."""
        self._metrics.end(self._labels, code)


def resident_bytes() -> int:
    """Return how much memory this process holds now; 0 where there is no /proc."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def _objects(store: Store) -> Iterator[tuple[_Labels, float]]:
    for kind in store.kinds:
        if not kind.view:
            count = sum(1 for _ in store.shelf(kind).select(EVERYTHING))
            if count:
                group = kind.resource.group
                yield (("group", group), ("resource", kind.plural)), count


def _shown(labels: _Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}"


def _built(release: str) -> _Labels:
    major, _, number = release.partition(".")
    return (("git_version", git_version(release)), ("major", major), ("minor", number))
