"""Asks a component's keeper, in its container, to kill or start it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mews.harness.errors import RequirementError
from mews.harness.manifests.parts import container_name
from mews.kube.api.errors import ApiError, ServerError, UnavailableError
from mews.kube.client.port import ExecResult, KubeApi
from mews.kube.clock import rest

_REACHED_S = 60.0
_AGAIN_S = 0.5


async def signal(kube: KubeApi, namespace: str, pod: str, component: str, command: Sequence[str]) -> None:
    """Run one of the keeper's commands, both of which may be run twice; ``component``: ``device-manager/host-1``.

    A kubelet that has just started says ``unable to upgrade connection: pod does not exist`` (HTTP 500) until it has
    heard of its pods, and nobody can ask while it restarts: that is waited for, a minute at most.

    Raises RequirementError where it fails.
    """
    container = container_name(component.partition("/")[0])
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + _REACHED_S
    while True:
        try:
            done: ExecResult = await kube.exec(namespace, pod, command, container=container)
            break
        except (ServerError, UnavailableError) as error:
            if loop.time() > deadline_s:
                raise RequirementError(
                    f"{component}: pod {namespace}/{pod} not reached within {_REACHED_S:g} s: {error}"
                ) from error
        except ApiError as error:
            raise RequirementError(f"{component}: exec in pod {namespace}/{pod}: {error}") from error
        await rest(_AGAIN_S)
    if done.exit_code != 0:
        raise RequirementError(f"{component}: {' '.join(command)}: {done.stderr.decode('utf-8', 'replace').strip()}")
