"""Runtime hooks of a node in process: whoever serves them now answers the node's runtime."""

from __future__ import annotations

from mews.kube.runtimehook.port import HookedContainer, HookError, HookRequest, RuntimeHooks

NOBODY = 'rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing"'


class LocalHooks:
    """The place of one node where hooks are answered: RuntimeHooks of whoever serves them."""

    def __init__(self) -> None:
        self._served: RuntimeHooks | None = None

    async def pre_create(self, request: HookRequest) -> HookedContainer:
        """Ask about a container before it is created. Raises HookError."""
        return await self._there().pre_create(request)

    async def pre_update(self, request: HookRequest) -> HookedContainer:
        """Ask about one that runs. Raises HookError."""
        return await self._there().pre_update(request)

    def _there(self) -> RuntimeHooks:
        if self._served is None:
            raise HookError(NOBODY)
        return self._served

    def serve(self, hooks: RuntimeHooks) -> LocalHookEndpoint:
        """Answer from now on, in place of whoever did."""
        self._served = hooks
        return LocalHookEndpoint(self, hooks)

    def end(self, hooks: RuntimeHooks) -> None:
        """Answer no more, unless somebody else does by now."""
        if self._served is hooks:
            self._served = None


class LocalHookEndpoint:
    """Hooks that are being served."""

    def __init__(self, place: LocalHooks, hooks: RuntimeHooks) -> None:
        self._place = place
        self._hooks = hooks

    async def close(self) -> None:
        """Stop serving."""
        self.end()

    def end(self) -> None:
        """The same, of a process that is gone."""
        self._place.end(self._hooks)
