"""Starting one container: back-off, image, PreStartContainer, environment, process; with the events of each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.kube.api.objects import Object, all_containers_of, key_of, name_of, namespace_of, uid_of
from mews.kube.emulated.kubelet.backoff import BackOff, go_duration
from mews.kube.emulated.kubelet.container_resources import resizable
from mews.kube.emulated.kubelet.containerd import ContainerInstance
from mews.kube.emulated.kubelet.devices import PreStartError
from mews.kube.emulated.kubelet.dynamic_resources import with_claims
from mews.kube.emulated.kubelet.environment import check_sub_paths, environment, expand_all
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.hooks import after_start
from mews.kube.emulated.kubelet.image_pulls import ImagePulls
from mews.kube.emulated.kubelet.images import Image
from mews.kube.emulated.kubelet.mount_namespace import lacking, namespaces_lacking
from mews.kube.emulated.kubelet.podstate import ContainerWaiting, PodState, container_of
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.sources import Sources, sources_of
from mews.kube.emulated.kubelet.tools import Tools
from mews.kube.emulated.kubelet.unseen_volumes import (
    REASON,
    SHARED_REASON,
    explanation,
    shared_namespaces,
    unseen_volumes,
)
from mews.kube.events import pod_reference

DEFAULT_GRACE_S = 30.0
"""What a pod that says nothing gives its containers to end."""


class Starter:
    """Starts the containers of one pod; what fails is left in ``waiting`` for the next status."""

    def __init__(self, tools: Tools, waiting: dict[str, ContainerWaiting], backoff: BackOff) -> None:
        self._tools = tools
        self._waiting = waiting
        self._backoff = backoff
        self._pulls = ImagePulls(tools, backoff)

    async def start(self, state: PodState, name: str, *, exited: ContainerInstance | None = None) -> bool:
        """Start a container, or start it again; False when it has to be tried later. ``exited``: the end that the
        back-off counts from, where it is not the last one (of a container that was just killed for its probe)."""
        pod, tools = state.pod, self._tools
        container = container_of(pod, name)
        involved = pod_reference(pod, container=name)
        if not self._may_restart(state, name, exited or state.latest(name), involved):
            return False
        try:
            image = await self._pulls.image(container, involved)
            await self._pre_start(uid_of(pod), name)
            sources = await sources_of(tools.context.kube, namespace_of(pod), container)
            launch = self._launch(state, container, image, sources)
            if tools.hooks is not None:
                launch = await tools.hooks.created(launch, tools.note)
            await tools.sleep(tools.timings.create)
            tools.events.event(involved, "Normal", "Created", f"Created container: {name}")
            await tools.sleep(tools.timings.start)
            await tools.containerd.start(launch)
        except StartError as error:
            self._waiting[name] = ContainerWaiting(error.reason, error.message)
            tools.events.event(involved, "Warning", "Failed", f"Error: {_shown(error)}")
            return False
        self._waiting.pop(name, None)
        tools.events.event(involved, "Normal", "Started", f"Started container {name}")
        if not any(state.instances.values()):
            self._warn_of_volumes(pod)
        env = {key: launch.env[key] for key in sorted(launch.allocation.envs)}
        tools.note("container-started", pod=key_of(pod), uid=uid_of(pod), container=name, env=env)
        return await self._hooked(state, name)

    def _warn_of_volumes(self, pod: Object) -> None:
        """Once, as the first container of the pod starts, where volumes cannot be mounted."""
        missing = "" if self._tools.containerd.volumes is None else namespaces_lacking()
        if self._tools.containerd.volumes is not None and not missing:
            self._warn_of_namespaces(pod)
            return
        names = unseen_volumes(pod, lambda reference: self._tools.containerd.is_process(self._image(reference)))
        if names:
            self._tools.events.event(pod_reference(pod), "Warning", REASON, explanation(names, missing))

    def _warn_of_namespaces(self, pod: Object) -> None:
        images = [self._image(str(each.get("image", ""))) for each in all_containers_of(pod)]
        if any(self._tools.containerd.is_process(image) for image in images):
            text = shared_namespaces(pod, lacking)
            if text:
                self._tools.events.event(pod_reference(pod), "Warning", SHARED_REASON, text)

    def _image(self, reference: str) -> Image | None:
        return self._tools.images.find(reference) or self._tools.images.stand_in(reference)

    async def _hooked(self, state: PodState, name: str) -> bool:
        grace_s = float(state.pod["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_S))
        try:
            await after_start(self._tools, state.pod, name, ip=state.ip, grace_s=grace_s)
        except StartError as error:
            self._waiting[name] = ContainerWaiting(error.reason, error.message)
            return False
        return True

    def _may_restart(
        self, state: PodState, name: str, exited: ContainerInstance | None, involved: Mapping[str, Any]
    ) -> bool:
        pod, speed = state.pod, self._tools.pace.speed
        if exited is None or exited.finished_at is None:
            return True
        since_s, now_s = exited.finished_at * speed, self._tools.emulated_now()
        delay_s = self._backoff.holds(name, since_s, now_s)
        if delay_s is None:
            self._backoff.next(name, since_s, now_s)
            return True
        whole_name = f"{name_of(pod)}_{namespace_of(pod)}({uid_of(pod)})"
        text = f"Back-off restarting failed container {name} in pod {whole_name}"
        self._tools.events.event(involved, "Warning", "BackOff", text)
        text = f"back-off {go_duration(delay_s)} restarting failed container={name} pod={whole_name}"
        self._waiting[name] = ContainerWaiting("CrashLoopBackOff", text)
        return False

    async def _pre_start(self, uid: str, container: str) -> None:
        try:
            await self._tools.devices.pre_start(uid, container)
        except PreStartError as error:
            raise StartError("CreateContainerConfigError", str(error)) from error

    def _launch(self, state: PodState, container: Mapping[str, Any], image: Image, sources: Sources) -> Launch:
        pod, name = state.pod, str(container["name"])
        given = self._tools.devices.container_allocation(uid_of(pod), name)
        allocation = with_claims(self._tools, pod, name, given)
        host_ip = self._tools.host_ip
        env = environment(
            pod,
            container,
            given={**image.env, **allocation.envs},
            pod_ip=state.ip,
            host_ip=host_ip,
            sources=sources,
            allocatable=self._tools.allocatable(),
        )
        check_sub_paths(container, env)
        latest = state.latest(name)
        return Launch(
            pod=pod,
            container=name,
            attempt=0 if latest is None else latest.attempt + 1,
            image=image,
            command=expand_all(container.get("command"), env),
            args=expand_all(container.get("args"), env),
            env=env,
            working_dir=str(container.get("workingDir") or ""),
            allocation=allocation,
            ip=state.ip,
            resources=resizable(container),
        )


def _shown(error: StartError) -> str:
    return error.reason if error.reason.startswith(("ErrImage", "ImagePull")) else error.message
