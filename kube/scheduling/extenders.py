"""HTTP extenders: a scheduler's helpers that filter nodes and bind pods (contract apiserver.md section 8).

What goes over the wire is upstream's (k8s.io/kube-scheduler/extender/v1), keys capitalised; answers are read in any
case. How a request gets there is the transport's affair: over HTTP, or in process under virtual time.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from mews.kube.api.objects import Object
from mews.kube.scheduling.cycle import Found
from mews.kube.scheduling.framework import Status, error, unresolvable, unschedulable
from mews.kube.scheduling.podinfo import PodInfo
from mews.kube.scheduling.wake import EXTENDER

Post = Callable[[str, bytes], Awaitable[tuple[int, bytes]]]
"""POST a body to a URL: the status and the answer. Raises ConnectionError or TimeoutError where there is none."""


class ExtenderError(Exception):
    """An extender did not answer, or not with what can be used; the text is the condition's."""


class ExtenderSettings(Struct, frozen=True):
    """One entry of ``extenders`` in a KubeSchedulerConfiguration."""

    url_prefix: str
    filter_verb: str = ""
    bind_verb: str = ""
    node_cache_capable: bool = False
    managed_resources: frozenset[str] = frozenset()
    ignorable: bool = False
    timeout_s: float = 5.0


def settings_of(config: Mapping[str, Any]) -> ExtenderSettings:
    """Return the settings of an entry as KubeSchedulerConfiguration has it."""
    return ExtenderSettings(
        url_prefix=str(config["urlPrefix"]).rstrip("/"),
        filter_verb=str(config.get("filterVerb", "")),
        bind_verb=str(config.get("bindVerb", "")),
        node_cache_capable=bool(config.get("nodeCacheCapable", False)),
        managed_resources=frozenset(str(each["name"]) for each in config.get("managedResources") or ()),
        ignorable=bool(config.get("ignorable", False)),
    )


class Filtered(Struct, frozen=True):
    """An answer to a filter call: nodes that pass, and why others do not, with and without help by preemption."""

    passed: frozenset[str]
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)


class SchedulerExtender:
    """One extender as the scheduler calls it."""

    def __init__(self, settings: ExtenderSettings, post: Post) -> None:
        self.settings = settings
        self._post = post

    def manages(self, pod: PodInfo) -> bool:
        """Return whether such a pod is sent there: one that asks for a managed resource, or any where none is
        managed."""
        managed = self.settings.managed_resources
        return not managed or any(pod.request(name) for name in managed)

    @property
    def binds(self) -> bool:
        """Whether it binds the pods that it manages."""
        return bool(self.settings.bind_verb)

    async def filter(self, pod: PodInfo, nodes: Mapping[str, Object]) -> Filtered:
        """Ask which of these nodes will do.

        Raises ExtenderError.
        """
        named = self.settings.node_cache_capable
        arguments = {
            "Pod": pod.pod,
            "Nodes": None if named else {"metadata": {}, "items": list(nodes.values())},
            "NodeNames": list(nodes) if named else None,
        }
        result = await self._call("filter", self.settings.filter_verb, arguments)
        if result.get("error"):
            raise ExtenderError(str(result["error"]))
        passed = _passed(result, named=named)
        for name in sorted(passed - nodes.keys()):
            raise ExtenderError(f'extender "{self.settings.url_prefix}" claims a filtered node "{name}" which is '
                                "not found in the input node list")  # fmt: skip
        return Filtered(
            passed, dict(result.get("failednodes") or {}), dict(result.get("failedandunresolvablenodes") or {})
        )

    async def bind(self, pod: PodInfo, node: str) -> None:
        """Have it bind the pod.

        Raises ExtenderError.
        """
        arguments = {"PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": pod.uid, "Node": node}
        result = await self._call("bind", self.settings.bind_verb, arguments)
        if result.get("error"):
            raise ExtenderError(str(result["error"]))

    async def _call(self, what: str, verb: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        url = f"{self.settings.url_prefix}/{verb}"
        body = json.dumps(arguments, separators=(",", ":")).encode()
        try:
            status, answer = await self._post(url, body)
        except TimeoutError as late:
            raise ExtenderError(f'Post "{url}": context deadline exceeded') from late
        except ConnectionError as failed:
            raise ExtenderError(f'Post "{url}": {failed}') from failed
        if status != 200:
            raise ExtenderError(f"failed {what} with extender at URL {url}, code {status}")
        try:
            read = json.loads(answer)
        except ValueError as wrong:
            raise ExtenderError(f"extender at URL {url}: {wrong}") from wrong
        if not isinstance(read, dict):
            raise ExtenderError(f"extender at URL {url}: answered no object")
        return {key.lower(): value for key, value in read.items()}


def _passed(result: Mapping[str, Any], *, named: bool) -> frozenset[str]:
    if named:
        return frozenset(result.get("nodenames") or ())
    nodes = result.get("nodes") or {}
    return frozenset(str(node["metadata"]["name"]) for node in nodes.get("items") or ())


async def narrow(found: Found, extenders: Sequence[SchedulerExtender], pod: PodInfo) -> None:
    """Let extenders take nodes out of what filtering found, each of what the one before left."""
    for extender in extenders:
        if not found.feasible:
            return
        if not extender.settings.filter_verb or not extender.manages(pod):
            continue
        try:
            filtered = await extender.filter(pod, {node.name: node.node or {} for node in found.feasible})
        except ExtenderError as failed:
            if extender.settings.ignorable:
                continue
            found.error = error(str(failed))
            return
        for node in found.feasible:
            if node.name not in filtered.passed:
                found.refusals[node.name] = _refusal(filtered, node.name)
                found.refused_by.add(EXTENDER)
        found.feasible = [node for node in found.feasible if node.name in filtered.passed]


def _refusal(filtered: Filtered, node: str) -> Status:
    if node in filtered.unresolvable:
        return unresolvable(filtered.unresolvable[node]).by(EXTENDER)
    return unschedulable(filtered.failed.get(node, "node(s) failed by an extender")).by(EXTENDER)
