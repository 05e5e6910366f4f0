"""What a TFJob gets where it says nothing: requests, the cluster's domain.

The operator counts with what pods will ask for once the API server has let them in, so it gives them those requests
itself: limits count as requests, then the namespace's LimitRanges, then (for a job none of whose tasks asks for any CPU
or memory) those of the operator's options. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from mews.kube.api.objects import Object, clone, namespace_of
from mews.systems.kod2.checks import is_amount
from mews.systems.kod2.config import OperatorConfig
from mews.systems.kod2.tfjob import Replicas, TFJob

_BASE = ("cpu", "memory")

Template = dict[str, Any]


class JobDefaults:
    """What the operator's options and the namespaces' LimitRanges (``limit_ranges`` lists them all) give a job."""

    def __init__(self, config: OperatorConfig, limit_ranges: Callable[[], Iterable[Object]]) -> None:
        self._config = config
        self._limit_ranges = limit_ranges

    def given_to(self, job: TFJob) -> TFJob:
        """Return the job with them."""
        items = [
            item
            for ranges in self._limit_ranges()
            if namespace_of(ranges) == job.namespace
            for item in (ranges.get("spec") or {}).get("limits") or ()
            if item.get("type") == "Container"
        ]
        roles = {role: _filled(replicas, items) for role, replicas in job.roles.items()}
        if not any(_asks(replicas.template) for replicas in roles.values()):
            amounts = {"cpu": self._config.default_cpu, "memory": self._config.default_memory}
            roles = {role: _asking(replicas, amounts) for role, replicas in roles.items()}
        return replace(job, roles=roles, domain=self._config.cluster_domain)


def _containers(template: Mapping[str, Any], *keys: str) -> list[Any]:
    spec = template.get("spec") or {}
    return [container for key in keys for container in spec.get(key) or ()]


def _filled(replicas: Replicas, items: Iterable[Mapping[str, Any]]) -> Replicas:
    """Return it with the requests that the API server would fill in."""
    template: Template = clone(dict(replicas.template))
    for container in _containers(template, "containers", "initContainers"):
        resources = container.get("resources") or {}
        requests = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
        for item in items:
            given = item.get("defaultRequest") or {}
            requests = {**{name: amount for name, amount in given.items() if is_amount(amount)}, **requests}
        if requests != (resources.get("requests") or {}):
            container["resources"] = {**resources, "requests": requests}
    return replicas if template == replicas.template else replace(replicas, template=template)


def _asks(template: Mapping[str, Any]) -> bool:
    return any(
        (container.get("resources") or {}).get("requests", {}).get(name)
        for container in _containers(template, "containers", "initContainers")
        for name in _BASE
    )


def _asking(replicas: Replicas, amounts: Mapping[str, str]) -> Replicas:
    """Its first container asks for so much; nothing for an empty amount."""
    template: Template = clone(dict(replicas.template))
    wanted = {name: amount for name, amount in amounts.items() if amount}
    for container in _containers(template, "containers")[:1] if wanted else ():
        resources = container.get("resources") or {}
        container["resources"] = {**resources, "requests": {**(resources.get("requests") or {}), **wanted}}
    return replace(replicas, template=template)
