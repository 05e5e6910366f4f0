"""How one incarnation of a component on a node answers runtime hooks, and what its node's runtime tells it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from mews.kube.deviceplugin.port import Endpoint
from mews.kube.runtimehook.port import RunningEnvironment, RuntimeHooks


class NodeHookSocket:
    """A HookSocket that ends with its incarnation. ``serve`` makes an endpoint at the node's place for hooks."""

    def __init__(
        self,
        serve: Callable[[RuntimeHooks], Awaitable[Endpoint]],
        environments: Callable[[], Sequence[RunningEnvironment]],
    ) -> None:
        self._serve = serve
        self._environments = environments
        self._served: list[Endpoint] = []

    async def serve(self, hooks: RuntimeHooks) -> Endpoint:
        """Answer hooks from now on. Raises OSError."""
        endpoint = await self._serve(hooks)
        self._served.append(endpoint)
        return endpoint

    async def running(self) -> Sequence[RunningEnvironment]:
        """Return the containers that run, with their environments."""
        return self._environments()

    async def kill(self) -> None:
        """The process is gone: nobody answers."""
        while self._served:
            await self._served.pop().close()
