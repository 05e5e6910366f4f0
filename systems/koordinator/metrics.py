"""The scheduler's books in Prometheus' text form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.quantities import parse

_BOOKS = (
    ("koordinator_device_capacity", "deviceTotal", "What healthy devices offer, by node, type, minor and resource."),
    ("koordinator_device_used", "deviceUsed", "What of it is given to pods."),
)


def exposition(summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return that of the summaries of all nodes (``NodeDeviceCache.summary``)."""
    lines = [line for book in _BOOKS for line in _gauge(*book, summaries)]
    lines += ["# HELP koordinator_device_pods Pods that have devices.", "# TYPE koordinator_device_pods gauge"]
    for node, summary in summaries.items():
        for kind, pods in summary["allocateSet"].items():
            lines.append(f"koordinator_device_pods{_labels(node=node, type=kind)} {len(pods)}")
    return "\n".join(lines) + "\n"


def _gauge(name: str, book: str, text: str, summaries: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"
    for node, summary in summaries.items():
        for kind, minors in summary[book].items():
            for minor, amounts in minors.items():
                for resource, amount in amounts.items():
                    labels = _labels(node=node, type=kind, minor=minor, resource=resource)
                    yield f"{name}{labels} {parse(amount)}"


def _labels(**values: str) -> str:
    """Names of nodes and resources need no escapes."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in values.items()) + "}"
