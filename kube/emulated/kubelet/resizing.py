"""Pods whose cpu and memory are changed while they run (subresource resize; upstream pkg/kubelet/allocation,
kuberuntime_manager.go). What the node cannot give is told by a condition; the rest is given to the containers, after
the node's agent was asked (UpdateContainer)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object, containers_of, init_containers_of, key_of, uid_of
from mews.kube.emulated.kubelet.container_resources import RESIZABLE, SIDES, resizable
from mews.kube.emulated.kubelet.containerd import ContainerInstance
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.hooks import kill_container
from mews.kube.emulated.kubelet.podstate import PodState, ResizeVerdict, is_sidecar
from mews.kube.emulated.kubelet.tools import Tools
from mews.kube.events import pod_reference

Fits = Callable[[Object], ResizeVerdict | None]
"""Why the node cannot give a pod what it asks for now; None where it can."""
Container = Mapping[str, Any]


class PodResize:
    """The resizing of one pod. ``verdict``: why it is not as its spec wants it, None where it is."""

    def __init__(self, tools: Tools, fits: Fits) -> None:
        self._tools, self._fits = tools, fits
        self.verdict: ResizeVerdict | None = None

    @property
    def failed(self) -> bool:
        """Whether it is to be tried again by itself."""
        return self.verdict is not None and self.verdict.reason == "Error"

    @property
    def deferred(self) -> bool:
        """Whether it waits for room on the node."""
        return self.verdict is not None and self.verdict.reason == "Deferred"

    async def settle(self, state: PodState, *, grace_s: float) -> bool:
        """Give running containers what the spec says now; whether there was, or is, something to be given."""
        before, self.verdict, changed = self.verdict, None, list(_changed(state))
        if not changed:
            return before is not None
        self.verdict = self._fits(state.pod)
        if self.verdict is not None:
            return True
        for container, instance in changed:
            if _wants_restart(container, instance):
                text = f"Container {container['name']} resize requires restart"
                tools, name = self._tools, str(container["name"])
                await kill_container(tools, state.pod, name, ip=state.ip, grace_s=grace_s, message=text)
                continue
            try:
                await self._update(state.pod, container, instance)
            except StartError as error:
                self.verdict = ResizeVerdict("PodResizeInProgress", "Error", error.message)
                return True
        self._tools.events.event(pod_reference(state.pod), "Normal", "ResizeCompleted", _completed(state.pod))
        return True

    async def _update(self, pod: Object, container: Container, instance: ContainerInstance) -> None:
        tools, name = self._tools, str(container["name"])
        if tools.hooks is not None:
            env = tools.containerd.environment(uid_of(pod), name)
            await tools.hooks.updated(pod, name, instance.attempt, env, tools.note)
        tools.containerd.resize(uid_of(pod), name, resizable(container))
        tools.note("container-updated", pod=key_of(pod), uid=uid_of(pod), container=name)


def _changed(state: PodState) -> Iterator[tuple[Container, ContainerInstance]]:
    """Containers that run with other resources than the spec has."""
    sidecars = (each for each in init_containers_of(state.pod) if is_sidecar(each))
    for container in (*sidecars, *containers_of(state.pod)):
        latest = state.latest(str(container["name"]))
        if latest is not None and latest.running and latest.resources != resizable(container):
            yield container, latest


def _wants_restart(container: Container, instance: ContainerInstance) -> bool:
    wanted, there = resizable(container), instance.resources
    policies = {each["resourceName"]: each["restartPolicy"] for each in container.get("resizePolicy") or ()}
    return any(
        policies.get(name) == "RestartContainer"
        for name in RESIZABLE
        if any((wanted.get(side) or {}).get(name) != (there.get(side) or {}).get(name) for side in SIDES)
    )


def _completed(pod: Object) -> str:
    parts = (("initContainers", tuple(init_containers_of(pod))), ("containers", tuple(containers_of(pod))))
    summary = {
        part: [{"name": each["name"], "resources": each.get("resources") or {}} for each in listed]
        for part, listed in parts
        if listed
    }
    return f"Pod resize completed: {json.dumps(summary, separators=(',', ':'))}"
