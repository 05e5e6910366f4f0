"""What stands in the place of a CRI proxy: asks the node's agent about each container before it is created."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from mews.kube.api.objects import Object, annotations_of, key_of, labels_of, name_of, namespace_of, uid_of
from mews.kube.deviceplugin.port import Allocation
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.kubelet_journal import KubeletJournal
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.runtimehook.port import HookedContainer, HookError, HookPolicy, HookRequest, RuntimeHooks


class ContainerHooks(Struct, frozen=True):
    """The hooks of one node, and what becomes of a container whose hook fails."""

    hooks: RuntimeHooks
    policy: HookPolicy = HookPolicy.IGNORE

    async def created(self, launch: Launch, note: KubeletJournal) -> Launch:
        """Return the container as the agent wants it made; as it was asked for where nobody answers
        (``HookPolicy.IGNORE``).

        Raises StartError under ``HookPolicy.FAIL``.
        """
        asked = _asked(launch)
        try:
            answer = await self.hooks.pre_create(_request(launch, asked))
        except HookError as error:
            pod = launch.pod
            note("hook-failed", pod=key_of(pod), uid=uid_of(pod), container=launch.container, message=str(error))
            if self.policy is HookPolicy.IGNORE:
                return launch
            raise StartError("CreateContainerError", f"PreCreateContainerHook: {error}") from error
        return launch if answer == asked else _changed(launch, answer)

    async def updated(
        self, pod: Object, container: str, attempt: int, env: Mapping[str, str], note: KubeletJournal
    ) -> None:
        """Ask the agent about a container that runs, before its resources are changed. Nothing that it answers can
        change a running container.

        Raises StartError under ``HookPolicy.FAIL``.
        """
        request = HookRequest(
            namespace=namespace_of(pod),
            pod=name_of(pod),
            pod_uid=uid_of(pod),
            container=container,
            attempt=attempt,
            pod_annotations=annotations_of(pod),
            pod_labels=labels_of(pod),
            asked=HookedContainer(env=env),
        )
        try:
            await self.hooks.pre_update(request)
        except HookError as error:
            note("hook-failed", pod=key_of(pod), uid=uid_of(pod), container=container, message=str(error))
            if self.policy is HookPolicy.FAIL:
                text = f"PreUpdateContainerResourcesHook: {error}"
                raise StartError("UpdateContainerError", text) from error


def _asked(launch: Launch) -> HookedContainer:
    given = launch.allocation
    return HookedContainer(
        env=launch.env,
        args=launch.args,
        mounts=given.mounts,
        devices=given.devices,
        annotations=given.annotations,
        cdi_devices=given.cdi_devices,
    )


def _request(launch: Launch, asked: HookedContainer) -> HookRequest:
    pod = launch.pod
    return HookRequest(
        namespace=namespace_of(pod),
        pod=name_of(pod),
        pod_uid=uid_of(pod),
        container=launch.container,
        attempt=launch.attempt,
        pod_annotations=annotations_of(pod),
        pod_labels=labels_of(pod),
        asked=asked,
    )


def _changed(launch: Launch, answer: HookedContainer) -> Launch:
    """``allocation`` bears what the hook gave, as it bears what device plugins do."""
    env = dict(answer.env)
    given = {name: env[name] for name in launch.allocation.envs if name in env}
    given |= {name: value for name, value in env.items() if launch.env.get(name) != value}
    allocation = Allocation(given, answer.mounts, answer.devices, dict(answer.annotations), answer.cdi_devices)
    return replace(launch, env=env, args=answer.args, allocation=allocation)
