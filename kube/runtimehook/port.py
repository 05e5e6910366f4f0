"""Runtime hooks as ports: what stands between kubelet and container runtime asks, and an agent of the node answers.

The calls are those of Koordinator's ``RuntimeHookService`` that concern devices: ``PreCreateContainerHook`` and
``PreUpdateContainerResourcesHook`` (contract koordinator.md section 2). Adapters: grpc.aio on a unix socket
(``mews.kube.runtimehook.grpc_hooks``) and in process (``mews.harness.ports``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from msgspec import Struct, field

from mews.kube.deviceplugin.port import DeviceNode, Endpoint, Mount

HOOKS_SERVED = "hooks-served"
"""What an agent records once it answers."""


class HookError(Exception):
    """A hook was not answered, or with an error; one line."""


class HookPolicy(StrEnum):
    """How a container whose hook fails is handled; the words are koord-runtime-proxy's."""

    IGNORE = "Ignore"
    """It is created as it was asked for: the default, as koordlet's ``--runtime-hooks-failure-policy``."""
    FAIL = "Fail"
    """It is not created; the kubelet tries again."""


class HookedContainer(Struct, frozen=True):
    """A container as its runtime is to make it: what a hook may change."""

    env: Mapping[str, str] = field(default_factory=dict)
    args: tuple[str, ...] = ()
    mounts: tuple[Mount, ...] = ()
    devices: tuple[DeviceNode, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    cdi_devices: tuple[str, ...] = ()


class HookRequest(Struct, frozen=True):
    """Which container of which pod, and what is known of both."""

    namespace: str
    pod: str
    pod_uid: str
    container: str
    attempt: int = 0
    pod_annotations: Mapping[str, str] = field(default_factory=dict)
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    asked: HookedContainer = HookedContainer()


class RuntimeHooks(Protocol):
    """An agent of the node. What it answers covers what was asked."""

    async def pre_create(self, request: HookRequest) -> HookedContainer:
        """Answer for a container before it is created.

        Raises HookError.
        """
        ...

    async def pre_update(self, request: HookRequest) -> HookedContainer:
        """Answer for a running container before its resources are changed: ``asked.env`` is what it runs with.

        Raises HookError.
        """
        ...


class RunningEnvironment(Struct, frozen=True):
    """The environment of a container that runs, as the runtime keeps it."""

    pod_uid: str
    container: str
    env: Mapping[str, str]


class HookSocket(Protocol):
    """The runtime's side of a node as its agent sees it."""

    async def serve(self, hooks: RuntimeHooks) -> Endpoint:
        """Answer hooks from now on, in place of whoever did.

        Raises OSError where that is not possible.
        """
        ...

    async def running(self) -> Sequence[RunningEnvironment]:
        """Return the containers that run now, with their environments.

        Raises HookError where the runtime cannot be asked.
        """
        ...
